/* rows_test.c - which steps are rows: only what the gate called faster, only best steps that tell
 * nothing of each other, and no pair out of an open measurement.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "dataset_impl.h"
#include "kit/kit.h"

enum { MOST = 6 };
static kl_dataset_step at[MOST];
static bool take[MOST];

/* A proposal about "p" that gave "k<n>". */
static kl_dataset_step *step(int n, const char *outcome, const char *call, double gain) {
    at[n] = (kl_dataset_step){.n = n,
                              .task = KL_S("t"),
                              .task_hash = KL_S("h"),
                              .phase = KL_S("search"),
                              .parent = KL_S("p"),
                              .kernel = kl_arena_printf(arena, "k%d", n),
                              .source = kl_arena_printf(arena, "source of k%d", n),
                              .reply = kl_arena_printf(arena, "reply %d", n),
                              .link = KL_S("applied"),
                              .assurance = KL_S("B"),
                              .outcome = kl_str_of(outcome),
                              .call = kl_str_of(call),
                              .gain = gain,
                              .best = true};
    at[n].prompt = KL_NEW(arena, kl_dataset_turn);
    at[n].prompt->content = KL_S("make p faster");
    at[n].n_prompt = 1;
    return &at[n];
}

static kli_samples all(int n) {
    for (int i = 0; i < n; i++) take[i] = !kli_left_out(&at[i], KL_DATASET_RL);
    return (kli_samples){.at = at, .n = n};
}

static const char *sft(const kl_dataset_step *s) { return kli_left_out(s, KL_DATASET_SFT); }

static void test_dataset_rows__the_gates_call_decides(void **state) {
    (void)state;
    assert_null(sft(step(0, "pass", "faster", 1.02)));
    assert_string_equal(sft(step(0, "pass", "undecided", 40)), "undecided");
    assert_string_equal(sft(step(0, "pass", "same", 1.3)), "same");
    assert_string_equal(sft(step(0, "pass", "slower", 1.3)), "slower");
    assert_non_null(sft(step(0, "pass", "", 3)));
    assert_string_equal(sft(step(0, "unstable", "faster", 3)), "unstable");
    assert_string_equal(sft(step(0, "cheat", "faster", 3)), "cheat");
}

static void test_dataset_rows__what_cannot_be_shown_is_left_out(void **state) {
    (void)state;
    step(0, "pass", "faster", 2)->link = KL_S("order");
    assert_non_null(sft(&at[0]));
    step(0, "pass", "faster", 2)->assurance = KL_S("C");
    assert_string_equal(sft(&at[0]), "assurance C");
    step(0, "pass", "faster", 2)->parent = KL_S("");
    assert_non_null(sft(&at[0]));
    step(0, "pass", "faster", 2)->task_hash = KL_S("");
    assert_non_null(kli_left_out(&at[0], KL_DATASET_TRACE));
    step(0, "pass", "faster", 2)->best = false;
    assert_null(sft(&at[0]));
    assert_non_null(kli_left_out(&at[0], KL_DATASET_RL));
    assert_null(kli_left_out(step(0, "wrong", "", 0), KL_DATASET_TRACE));
}

/* Of a step and the one after it, whose prompt shows the first one's answer, the higher gain. */
static void test_dataset_rows__best_steps_tell_nothing_of_each_other(void **state) {
    (void)state;
    step(0, "pass", "faster", 2);
    step(1, "pass", "faster", 3)->parent = KL_S("k0");
    step(2, "pass", "faster", 1.5)->parent = KL_S("k1");
    step(3, "pass", "faster", 1.2)->prompt->content = KL_S("this is: source of k1; go on");
    step(4, "pass", "faster", 1.1)->task = KL_S("another");
    at[4].parent = KL_S("k1");
    const kli_samples s = all(5);
    kli_best_steps(&s, take, arena);
    assert_false(take[0]);
    assert_true(take[1]);
    assert_false(take[2]);
    assert_false(take[3]);
    assert_true(take[4]);
}

static void test_dataset_rows__pairs_are_of_one_parent(void **state) {
    (void)state;
    int n;
    step(0, "pass", "faster", 2);
    step(1, "wrong", "", 0)->prompt->content = KL_S("make p faster, once more");
    step(2, "pass", "slower", 0.5);
    step(3, "pass", "undecided", 0.5);
    step(4, "no_compile", "", 0)->parent = KL_S("k0");
    step(5, "unstable", "", 0);
    const kli_samples s = all(6);
    const kl_dataset_pair *pairs = kli_pairs(&n, &s, take, arena);
    assert_int_equal(n, 2);
    assert_int_equal(pairs[0].rejected_n, 2); /* the same prompt comes first */
    assert_true(pairs[0].same_prompt);
    assert_int_equal(pairs[1].rejected_n, 1);
    assert_false(pairs[1].same_prompt);
    at[1].platform = at[2].platform = KL_S("elsewhere");
    kli_pairs(&n, &s, take, arena);
    assert_int_equal(n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_dataset_rows__the_gates_call_decides),
        KIT_TEST(test_dataset_rows__what_cannot_be_shown_is_left_out),
        KIT_TEST(test_dataset_rows__best_steps_tell_nothing_of_each_other),
        KIT_TEST(test_dataset_rows__pairs_are_of_one_parent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
