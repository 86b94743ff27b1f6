/* cuda_rounds_test.c - a close call is asked again in other processes: a real gate on the fake of
 * fake_cuda.c, whose events know a made-up clock.  SPDX-License-Identifier: Apache-2.0 */
#include "cuda_gate.h"

/* Both do the same, and one is slower by 3 % on that clock. */
static const char *const KERNELS[] = {"scale", "many_registers", NULL};

static int set_up(void **state) {
    open_gate(state);
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", "clock@200", 1), 0);
    assert_ok(kli_fs_mkdirs(kit_path("toolkit/bin"), &e));
    program("toolkit/bin/cuobjdump", "echo 'Function : scale'\n");
    make_toolkit(KERNELS);
    return 0;
}

static bool race(const char *candidate, const char *opponent) {
    const kl_gate_opts opts = {
        .workload = "tiny", .against = kernel_of(opponent), .quick = true, .min_seconds = 1e-9};
    assert_ok(kl_gate_run(&verdict, gate, arena, task, kernel_of(candidate), &opts, &e));
    return verdict.outcome != KL_OUTCOME_NO_COMPILE; /* in a jail that shows no such folder */
}

static void test_cuda_rounds__a_close_call_is_asked_again(void **state) {
    (void)state;
    for (int slower = 0; slower < 2; slower++) {
        if (!race(KERNELS[slower], KERNELS[!slower])) skip();
        assert_int_equal(verdict.outcome, KL_OUTCOME_PASS);
        const kl_comparison *m = &verdict.comparisons[0];
        assert_int_equal(m->call, slower ? KL_DECISION_SLOWER : KL_DECISION_FASTER);
        assert_int_equal(m->processes, 4);
        assert_true(m->pairs >= 10 + 3 * 8);
    }
}

static void test_cuda_rounds__the_same_is_not(void **state) {
    (void)state;
    if (!race(KERNELS[0], KERNELS[0])) skip();
    assert_int_equal(verdict.outcome, KL_OUTCOME_PASS);
    assert_int_equal(verdict.comparisons[0].call, KL_DECISION_SAME);
    assert_int_equal(verdict.comparisons[0].processes, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, close_gate)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_cuda_rounds__a_close_call_is_asked_again),
        TEST(test_cuda_rounds__the_same_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
