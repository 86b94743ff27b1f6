/* shapes_test.c - which shapes are compiled ahead, and when not.  The compiler is a stand-in; the
 * thread and the machine's lock are real.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"
#include "base/log.h"
#include "base/test.h"
#include <unistd.h>

static struct {
    bool depends, waits;
    const kl_workload *alike; /* its code is that of the real shape */
    atomic_int compiled;
    const kl_workload *which[8];
} seen;

bool __wrap_kli_compile_depends_on_shape(const kl_kernel *k) { return (void)k, seen.depends; }

bool __wrap_kli_compile_is_same(kl_arena *a, const kl_device *d, const kl_kernel *k,
                                const kl_task *t, const kl_workload *x, const kl_workload *y) {
    (void)a, (void)d, (void)k, (void)t, (void)y;
    return x == seen.alike;
}

kl_err __wrap_kli_compile_code(kl_artefact *out, kl_arena *a, const kl_device *d,
                               const kl_kernel *k, const kl_task *t, const kl_workload *w,
                               const kl_compile_opts *o, kl_error *e) {
    (void)out, (void)a, (void)d, (void)k, (void)t, (void)o;
    seen.which[atomic_fetch_add(&seen.compiled, 1)] = w;
    while (seen.waits && !kli_interrupted()) usleep(1000);
    return kl_fail(e, KL_ENODEV, "compile", "as told");
}

typedef struct {
    kl_gate gate;
    kl_gate_opts opts;
    kl_workload shapes[5];
    kl_task task;
    kli_evaluation c;
} fixture;

enum { TINY, REAL, OTHER, HIDDEN, HIDDEN_TOO };

static int setup(void **state) {
    static fixture f;
    memset(&seen, 0, sizeof seen);
    seen.depends = true;
    f = (fixture){.gate.core = kli_last_core(),
                  .shapes = {[TINY] = {.label = KL_S("tiny")},
                             [REAL] = {.label = KL_S("paper")},
                             [OTHER] = {.label = KL_S("large")},
                             [HIDDEN] = {.label = KL_S("h1"), .hidden = true},
                             [HIDDEN_TOO] = {.label = KL_S("h2"), .hidden = true}}};
    for (size_t i = 0; i < KL_COUNT(f.shapes); i++) f.shapes[i].on = KL_ON_ANY;
    f.task = (kl_task){.workloads = f.shapes, .n_workloads = (int)KL_COUNT(f.shapes)};
    f.c = (kli_evaluation){.gate = &f.gate,
                           .opts = &f.opts,
                           .task = &f.task,
                           .workload = &f.shapes[REAL],
                           .backend = kli_backend_get(KL_BACKEND_CUDA)};
    *state = &f;
    return f.gate.core < 0 ? -1 : 0; /* on one core there is no thread */
}

static int compiled_of(fixture *f) {
    kli_shapes_begin(&f->c);
    kli_shapes_end(&f->c, true);
    kli_shapes_end(&f->c, true); /* again: nothing */
    return atomic_load(&seen.compiled);
}

/* A compile that fails is said by the check that needs it; the others are still made. */
static void test_gate_shapes__what_is_checked_later_is_compiled(void **state) {
    fixture *f = *state;
    assert_int_equal(compiled_of(f), 3);
    assert_ptr_equal(seen.which[0], &f->shapes[TINY]);
    assert_ptr_equal(seen.which[1], &f->shapes[HIDDEN]);
    assert_ptr_equal(seen.which[2], &f->shapes[HIDDEN_TOO]);
}

static void test_gate_shapes__the_real_shapes_code_is_compiled_once(void **state) {
    fixture *f = *state;
    seen.alike = &f->shapes[HIDDEN];
    assert_int_equal(compiled_of(f), 2);
    assert_ptr_equal(seen.which[1], &f->shapes[HIDDEN_TOO]);
}

static void test_gate_shapes__nothing_where_a_compiler_does_not_look_at_shapes(void **state) {
    fixture *f = *state;
    seen.depends = false;
    assert_int_equal(compiled_of(f), 0);
    seen.depends = true;
    f->opts.compile.no_cache = true; /* or nobody would find it */
    assert_int_equal(compiled_of(f), 0);
}

static void test_gate_shapes__without_an_answer_the_compiler_is_ended(void **state) {
    fixture *f = *state;
    seen.waits = true;
    kli_shapes_begin(&f->c);
    for (int i = 0; i < 5000 && !atomic_load(&seen.compiled); i++) usleep(1000);
    kli_shapes_end(&f->c, false); /* or this test never ends */
    assert_int_equal(atomic_load(&seen.compiled), 1);
}

/* Who has the cores alone waits for this verdict, so this verdict does not wait for him. */
static void test_gate_shapes__nobody_is_waited_for(void **state) {
    fixture *f = *state;
    kli_machine_lock turn;
    kli_machine_lock_open(&turn, "gate gemm", false);
    assert_int_equal(kli_machine_lock_exclusive(&turn), KL_MACHINE_LOCK_TAKEN);
    assert_int_equal(compiled_of(f), 0);
    kli_machine_lock_close(&turn);
}

#define TEST(test) cmocka_unit_test_setup(test, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_gate_shapes__what_is_checked_later_is_compiled),
        TEST(test_gate_shapes__the_real_shapes_code_is_compiled_once),
        TEST(test_gate_shapes__nothing_where_a_compiler_does_not_look_at_shapes),
        TEST(test_gate_shapes__without_an_answer_the_compiler_is_ended),
        TEST(test_gate_shapes__nobody_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
