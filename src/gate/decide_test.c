/* decide_test.c - the rule at its edges.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include <klineage/gate.h>
#include <math.h>

static void test_gate_decide__a_gain_must_clear_twice_the_floor(void **state) {
    (void)state;
    assert_int_equal(kl_decide(1.011, 1.02, 0, true), KL_DECISION_FASTER);
    assert_int_equal(kl_decide(1.009, 1.02, 0, true), KL_DECISION_SAME);
    assert_int_equal(kl_decide(1.03, 1.05, 0.02, true), KL_DECISION_SAME);
    assert_int_equal(kl_decide(1.05, 1.06, 0.02, true), KL_DECISION_FASTER);
}

static void test_gate_decide__slower_is_the_mirror_of_faster(void **state) {
    (void)state;
    assert_int_equal(kl_decide(0.97, 0.989, 0, true), KL_DECISION_SLOWER);
    assert_int_equal(kl_decide(0.97, 0.991, 0, true), KL_DECISION_SAME);
    for (double low = 0.5; low < 2; low += 0.013) {
        const kl_decision there = kl_decide(low, low * 1.03, 0.004, true),
                          back = kl_decide(1 / (low * 1.03), 1 / low, 0.004, true);
        assert_true((there == KL_DECISION_FASTER) == (back == KL_DECISION_SLOWER));
    }
}

static void test_gate_decide__wide_decides_only_far_beyond_its_own_noise(void **state) {
    (void)state;
    assert_int_equal(kl_decide(1.5, 1.6, 0, false),
                     KL_DECISION_UNDECIDED); /* how noisy it was is not known */
    assert_int_equal(kl_decide(1.019, 1.366, 0.216, false), KL_DECISION_UNDECIDED);
    assert_int_equal(kl_decide(1.019, 1.366, 0.216, true), KL_DECISION_SAME);
    assert_int_equal(kl_decide(5.7, 9.0, 0.2, false), KL_DECISION_FASTER);
    assert_int_equal(kl_decide(0.99, 1.005, 0.002, false), KL_DECISION_UNDECIDED);
}

static void test_gate_decide__what_is_no_interval_decides_nothing(void **state) {
    (void)state;
    assert_int_equal(kl_decide(0, 0, 0, true), KL_DECISION_UNDECIDED);
    assert_int_equal(kl_decide(2, 1.5, 0, true), KL_DECISION_UNDECIDED);
    assert_int_equal(kl_decide(NAN, 1.5, 0, true), KL_DECISION_UNDECIDED);
    assert_int_equal(kl_decide(2, INFINITY, 0.01, true), KL_DECISION_UNDECIDED);
    assert_int_equal(kl_decide(2, 3, NAN, true), KL_DECISION_UNDECIDED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_decide__a_gain_must_clear_twice_the_floor),
        cmocka_unit_test(test_gate_decide__slower_is_the_mirror_of_faster),
        cmocka_unit_test(test_gate_decide__wide_decides_only_far_beyond_its_own_noise),
        cmocka_unit_test(test_gate_decide__what_is_no_interval_decides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
