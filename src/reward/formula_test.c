/* formula_test.c - what verdicts are worth, against each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "reward/reward.h"

static kl_verdict verdict_of(kl_outcome outcome, double low, double high) {
    kl_verdict v = {.outcome = outcome, .stage = KL_STAGE_DONE};
    if (low > 0) {
        v.n_comparisons = 1;
        v.comparisons[0] = (kl_comparison){
            .ratio = (low + high) / 2, .low = low, .high = high, .noise = 0.001, .stable = true};
    }
    return v;
}

static double worth(const char *formula, kl_outcome outcome, double low, double high) {
    kl_verdict v = verdict_of(outcome, low, high);
    const kli_reward_facts f = kli_reward_facts_of(&v);
    const double reward = kli_formula_named(kl_str_of(formula))->of(&f);
    return reward;
}

static void test_reward_formula__each_step_is_worth_more_than_the_one_before(void **state) {
    (void)state;
    const double steps[] = {
        worth("shaped", KL_OUTCOME_CHEAT, 0, 0),
        worth("shaped", KL_OUTCOME_NO_COMPILE, 0, 0),
        worth("shaped", KL_OUTCOME_WRONG, 0, 0),
        worth("shaped", KL_OUTCOME_PASS, 0.01, 0.02),
        worth("shaped", KL_OUTCOME_PASS, 0.90, 0.91),
        worth("shaped", KL_OUTCOME_PASS, 0.995, 1.005),
        worth("shaped", KL_OUTCOME_PASS, 1.1, 1.2),
        worth("shaped", KL_OUTCOME_PASS, 2, 2.1),
        worth("shaped", KL_OUTCOME_PASS, 8, 9),
    };
    for (size_t i = 1; i < KL_COUNT(steps); i++) assert_true(steps[i - 1] < steps[i]);
    assert_true(worth("shaped", KL_OUTCOME_REFUSED, 0, 0) == 0);
    assert_true(worth("shaped", KL_OUTCOME_HANG, 0, 0) == worth("shaped", KL_OUTCOME_CRASH, 0, 0));
    assert_true(worth("shaped", KL_OUTCOME_PASS, 900, 1000) ==
                worth("shaped", KL_OUTCOME_PASS, 90, 100));
}

static void test_reward_formula__no_speed_is_paid_that_was_not_proven(void **state) {
    (void)state;
    const double correct = worth("shaped", KL_OUTCOME_PASS, 0, 0);
    assert_true(worth("shaped", KL_OUTCOME_PASS, 1.001, 1.5) == correct); /* undecided or same */
    assert_true(worth("shaped", KL_OUTCOME_PASS, 2, 2.2) == worth("shaped", KL_OUTCOME_PASS, 2, 9));
    assert_true(worth("shaped", KL_OUTCOME_UNSTABLE, 0, 0) == correct); /* law 14 */
    assert_true(worth("fast", KL_OUTCOME_PASS, 1.001, 1.5) == 0);
    assert_true(worth("fast", KL_OUTCOME_PASS, 1.1, 1.5) == 1);
    assert_true(worth("fast", KL_OUTCOME_WRONG, 3, 3.1) == 0);
}

static void test_reward_formula__the_papers_signal_is_the_ratio(void **state) {
    (void)state;
    assert_true(worth("speedup", KL_OUTCOME_PASS, 1.9, 2.1) == 2);
    assert_true(worth("speedup", KL_OUTCOME_PASS, 0.49, 0.51) == 0.5);
    assert_true(worth("speedup", KL_OUTCOME_PASS, 0.99, 1.01) == 1);
    assert_true(worth("speedup", KL_OUTCOME_PASS, 90, 100) == 16);
    assert_true(worth("speedup", KL_OUTCOME_CHEAT, 90, 100) == 0);
    assert_true(worth("correct", KL_OUTCOME_PASS, 0.1, 0.2) == 1);
    assert_true(worth("correct", KL_OUTCOME_CHEAT, 0, 0) == 0);
    assert_null(kli_formula_named(KL_S("generous")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reward_formula__each_step_is_worth_more_than_the_one_before),
        cmocka_unit_test(test_reward_formula__no_speed_is_paid_that_was_not_proven),
        cmocka_unit_test(test_reward_formula__the_papers_signal_is_the_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
