/* brief_test.c - what is said of a card in few words, and what is not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/test.h"
#include <string.h>

static kl_arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = kl_arena_new();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
}

static kl_card a_card(void) {
    kl_card c = {.name = KL_S("pack-b-c"),
                 .action = KL_S("pack_b"),
                 .intent = KL_S("Copy a panel once. Read it\nmany times."),
                 .anchor = KL_S("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"),
                 .carrier = KL_S("Words.\n\n```c\npack(b);\nuse(b);\n```\n\nThe edit as it was "
                                 "gated:\n\n```\n<<<<<<< SEARCH\n```"),
                 .risks = KL_S("- one: a\n- two: b\n- three: c\n- four: d")};
    c.n_pre = kli_predicates_parse(&c.pre, arena,
                                   KL_S("- data: [dtype == float32] - floats\n- hardware: "
                                        "[cores >= 8] - many\n- storage: prose alone"));
    return c;
}

static void tried(kl_card *c, const char *task, double gain, bool accepted, bool held_out) {
    const kl_trial_record r = {.task = kl_str_of(task),
                               .outcome = accepted ? KL_S("pass") : KL_S("wrong"),
                               .accepted = accepted,
                               .held_out = held_out,
                               .gain = gain};
    kli_card_add_trial(c, arena, &r);
}

static void test_skill_brief__a_line_is_short_and_of_the_card_alone(void **state) {
    (void)state;
    const kl_card c = a_card();
    assert_str(kl_card_line(arena, &c, 20),
               "pack-b-c | pack_b | Copy a panel once. Read it many times. | 1 2 3 4 5 6 7 8 9 10 "
               "11 12 13 14 15 16 17 18 19 20 ...\n");
}

static void test_skill_brief__few_trials_are_told_one_by_one(void **state) {
    (void)state;
    kl_card c = a_card();
    const kl_match m = {.card = &c, .expected_log_gain = 1, .fit = KL_FIT_MET};
    assert_str(kl_card_standing(arena, &m), "pack-b-c: fits; n = 0\n");
    tried(&c, "gemm", 3.951, true, false);
    tried(&c, "fmha", 0, false, true);
    assert_str(kl_card_standing(arena, &m),
               "pack-b-c: fits; n = 2: 3.95x on gemm (where it is from); wrong on fmha\n");
}

static void test_skill_brief__a_number_rests_on_five(void **state) {
    (void)state;
    kl_card c = a_card();
    const kl_match m = {.card = &c,
                        .expected_log_gain = 0.6931471805599453,
                        .fit = KL_FIT_UNKNOWN,
                        .why = KL_S("unknown whether it holds that cores >= 8")};
    for (int i = 0; i < 4; i++) tried(&c, "gemm", 2, true, true);
    assert_null(strstr(kl_card_standing(arena, &m).ptr, "expected"));
    tried(&c, "gemm", 0, false, true);
    assert_str(kl_card_standing(arena, &m),
               "pack-b-c: may fit, unknown whether it holds that cores >= 8; n = 5, 4 gained, "
               "expected 2x\n");
}

static void
test_skill_brief__has_values_and_the_sketch_and_no_code_of_another_kernel(void **state) {
    (void)state;
    const kl_card c = a_card();
    const kl_match m = {.card = &c};
    const kl_target t = {.dtype = KL_S("float16")};
    const kl_str text = kl_card_brief(arena, &m, &t);
    assert_contains(text.ptr, "Copy a panel once.");
    assert_contains(text.ptr, "- dtype == float32: fails, it is float16\n");
    assert_contains(text.ptr, "- cores >= 8: not known\n");
    assert_contains(text.ptr, "```\npack(b);\nuse(b);\n```\n");
    assert_contains(text.ptr, "- three: c\n");
    assert_null(strstr(text.ptr, "four"));
    assert_null(strstr(text.ptr, "SEARCH"));
}

/* Of another surface: what it is about, not its code. */
static void test_skill_brief__an_idea_is_marked_and_has_no_sketch(void **state) {
    (void)state;
    kl_card c = a_card();
    const kl_match m = {
        .card = &c, .fit = KL_FIT_UNKNOWN, .intent = true, .why = KL_S("verified for c alone")};
    tried(&c, "gemm", 2, true, true);
    assert_str(kl_card_standing(arena, &m),
               "pack-b-c: an idea, verified for c alone; there n = 1: 2x on gemm\n");
    const kl_str text = kl_card_brief(arena, &m, &(kl_target){0});
    assert_contains(text.ptr, "## pack-b-c (pack_b, an idea of another surface)\n");
    assert_contains(text.ptr, "Copy a panel once.");
    assert_null(strstr(text.ptr, "pack(b);"));
}

static void test_skill_brief__is_bounded(void **state) {
    (void)state;
    kl_card c = a_card();
    const kl_match m = {.card = &c};
    kl_buf b = {0};
    kl_buf_add(&b, KL_S("```\n"));
    for (int i = 0; i < 2000; i++) kl_buf_printf(&b, "line %d of a long sketch\n", i);
    kl_buf_add(&b, KL_S("```\n"));
    c.carrier = c.intent = c.risks = kl_buf_take(&b, arena);
    const kl_str text = kl_card_brief(arena, &m, &(kl_target){0});
    assert_true(text.len < 2500);
    assert_contains(text.ptr, "(the beginning of the sketch)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skill_brief__a_line_is_short_and_of_the_card_alone),
        cmocka_unit_test(test_skill_brief__few_trials_are_told_one_by_one),
        cmocka_unit_test(test_skill_brief__a_number_rests_on_five),
        cmocka_unit_test(test_skill_brief__has_values_and_the_sketch_and_no_code_of_another_kernel),
        cmocka_unit_test(test_skill_brief__an_idea_is_marked_and_has_no_sketch),
        cmocka_unit_test(test_skill_brief__is_bounded)};
    return cmocka_run_group_tests_name("skill_brief", tests, set_up, tear_down);
}
