/* split_test.c - a family has one split, and nearly the same text is in one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"
#include "kit/kit.h"

static kl_str family_in(kli_split split, int nth) {
    for (int i = 0;; i++) {
        const kl_str name = kl_arena_printf(arena, "family %d", i);
        if (kli_split_of(name) == split && !nth--) return name;
    }
}

/* Statements `from` to `to`: each has tokens of its own. */
static kl_str text_of(int from, int to) {
    kl_buf b = {0};
    for (int i = from; i < to; i++) kl_buf_printf(&b, "y[%d] = x%d * scale_%d + %d;\n", i, i, i, i);
    return kl_buf_take(&b, arena);
}

static double alike(kl_str x, kl_str y) {
    kli_sketch s, t;
    kli_sketch_of(&s, x);
    kli_sketch_of(&t, y);
    return kli_alike(&s, &t);
}

static void test_dataset_split__likeness(void **state) {
    (void)state;
    const kl_str text = text_of(0, 100);
    assert_true(alike(text, text) == 1);
    assert_true(alike(text, text_of(0, 97)) > KLI_NEARLY_SAME);
    assert_true(alike(text, text_of(50, 150)) < 0.5);
    assert_true(alike(text, text_of(200, 300)) < 0.1);
    assert_true(alike(KL_S("a = b;"), KL_S("  a=\n b ;")) == 1); /* white space is none */
    assert_true(alike(KL_S(""), KL_S("")) == 0);
    assert_true(alike(KL_S("a"), KL_S("a")) == 1);
    assert_true(alike(KL_S("a"), KL_S("b")) == 0);
}

/* A tenth each, by the name alone: these must never change, or a test set leaks into training. */
static void test_dataset_split__of_a_family_stays(void **state) {
    (void)state;
    int n[KLI_SPLITS] = {0};
    for (int i = 0; i < 2000; i++) n[kli_split_of(kl_arena_printf(arena, "f%d", i))]++;
    assert_in_range(n[KLI_TEST], 120, 280);
    assert_in_range(n[KLI_VALIDATION], 120, 280);
    assert_int_equal(n[KLI_HELD_OUT], 0);
    assert_int_equal(kli_split_of(KL_S("softmax")), KLI_VALIDATION);
    assert_int_equal(kli_split_of(KL_S("scan")), KLI_TRAIN);
}

static void test_dataset_split__nearly_the_same_is_in_one(void **state) {
    (void)state;
    kl_dataset_step at[] = {
        {.family = family_in(KLI_TRAIN, 0), .source = text_of(0, 99), .task = KL_S("a")},
        {.family = family_in(KLI_TEST, 0), .source = text_of(0, 100), .task = KL_S("b")},
        {.family = family_in(KLI_VALIDATION, 0), .source = text_of(100, 200), .task = KL_S("c")},
        {.family = family_in(KLI_TRAIN, 1), .source = text_of(300, 400), .task = KL_S("d")},
        {.family = family_in(KLI_TRAIN, 0), .source = text_of(0, 98), .task = KL_S("a")},
        {.family = family_in(KLI_TRAIN, 2), .parent_source = text_of(100, 199), .task = KL_S("e")}};
    bool take[] = {true, true, true, true, true, true};
    const kli_samples s = {.at = at, .n = 6};
    kli_split split[6];
    kl_dataset_opts o = {0};
    kli_splits(split, &s, take, &o, arena);
    assert_int_equal(split[0], KLI_SPLITS);
    assert_int_equal(split[1], KLI_TEST);
    assert_int_equal(split[2], KLI_VALIDATION);
    assert_int_equal(split[3], KLI_TRAIN);
    assert_int_equal(split[4], KLI_SPLITS);
    assert_int_equal(split[5], KLI_SPLITS); /* its prompt shows a row of validation */
    take[1] = false;                        /* what is not written takes nothing away */
    kli_splits(split, &s, take, &o, arena);
    assert_int_equal(split[0], KLI_TRAIN);
}

/* By task or by family; what is nearly the same must not appear either, written or not. */
static void test_dataset_split__held_out(void **state) {
    (void)state;
    kl_dataset_step at[] = {
        {.family = family_in(KLI_TEST, 0), .source = text_of(0, 99), .task = KL_S("a")},
        {.family = family_in(KLI_TRAIN, 0), .source = text_of(0, 100), .task = KL_S("b")},
        {.family = family_in(KLI_TRAIN, 1), .source = text_of(300, 400), .task = KL_S("c")}};
    const bool take[] = {true, false, true};
    const kli_samples s = {.at = at, .n = 3};
    const kl_str names[] = {KL_S("b*"), at[2].family};
    kl_dataset_opts o = {.held_out = names, .n_held_out = 2};
    kli_split split[3];
    kli_splits(split, &s, take, &o, arena);
    assert_int_equal(split[0], KLI_SPLITS);
    assert_int_equal(split[1], KLI_HELD_OUT);
    assert_int_equal(split[2], KLI_HELD_OUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {KIT_TEST(test_dataset_split__likeness),
                                       KIT_TEST(test_dataset_split__of_a_family_stays),
                                       KIT_TEST(test_dataset_split__nearly_the_same_is_in_one),
                                       KIT_TEST(test_dataset_split__held_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
