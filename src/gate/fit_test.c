/* fit_test.c - sizes of a shape against the memory of a machine.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "gate_impl.h"
#include "base/test.h"

static const double GIB = 1 << 30;

/* x[1 GiB of f32], y[0.5 GiB of f32], scratch of `scratch` GiB */
static kli_needs sample(double scratch) {
    static kl_plan p;
    p = (kl_plan){.n_tensors = 2, .n_buffers = 1};
    p.tensors[0] = (kl_plan_tensor){.dtype = KL_F32, .role = 0, .bytes = 1 << 30};
    p.tensors[1] = (kl_plan_tensor){.dtype = KL_F32, .role = 1, .bytes = 1 << 29};
    p.buffers[0] = (kl_plan_buffer){.bytes = (uint64_t)(scratch * GIB)};
    return kli_needs_of(&p, 3, true);
}

static kl_err fit(double total, double available, double scratch, kl_str *refused, kl_error *e) {
    const kli_memory_room room = {(int64_t)(total * GIB), (int64_t)(available * GIB)};
    const kli_needs n = sample(scratch);
    kl_arena *a = kl_arena_new();
    const kl_err err = kli_needs_fit(&n, &room, a, "cpu", refused, e);
    if (refused->len) assert_contains(refused->ptr, "scratch buffers do not fit");
    kl_arena_free(a);
    return err;
}

static void test_gate_fit__every_copy_counts(void **state) {
    (void)state;
    const kli_needs n = sample(0.25);
    assert_true(n.inputs == 3 * GIB && n.outputs == 1.5 * GIB && n.scratch == 0.75 * GIB);
    assert_true(n.answers == 4 * GIB); /* in float64: three sets and the oracle's page */
}

static void test_gate_fit__says_whose_doing_it_is(void **state) {
    (void)state;
    kl_error e = {0};
    kl_str refused;
    assert_ok(fit(16, 12, 0.25, &refused, &e));
    assert_int_equal(refused.len, 0);
    assert_err(KL_ELIMIT, fit(8, 8, 0, &refused, &e)); /* never here */
    assert_contains(e.message, "needs 8.5 GiB of memory, and there are 8 GiB, of which 90 % may be "
                               "taken: inputs 3, outputs "
                               "1.5, answers 4, scratch 0 GiB");
    assert_err(KL_EBUSY, fit(16, 6, 0, &refused, &e)); /* not now */
    assert_contains(e.message, "6 GiB are free now");
    assert_ok(fit(16, 16, 4, &refused, &e)); /* the kernel's own wish: a verdict */
    assert_true(refused.len > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_fit__every_copy_counts),
        cmocka_unit_test(test_gate_fit__says_whose_doing_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
