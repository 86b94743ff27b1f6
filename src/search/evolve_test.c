/* evolve_test.c - a population out of replies and verdicts that are told beforehand: who is shown,
 * who is changed, what is told. SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "run/fake_track.h"
#include "base/test.h"

#define HEAD                                                                                       \
    "//! launch gemm args(x, weight, y, M, N, K)\n"                                                \
    "void gemm(const float *x, const float *weight, float *y, int M, int N, int K) { (void)x; }\n"
#define FILE(rest) "ACTION: unroll\n```c\n" HEAD rest "\n```\n" /* applies to every parent */
#define EDIT(from, to)                                                                             \
    "ACTION: unroll\n<<<<<<< SEARCH\n" from "\n=======\n" to "\n>>>>>>> REPLACE\n"

typedef struct {
    kl_arena *arena;
    fake_track track;
    kl_task *task;
    kl_search_opts opts;
    kl_setting settings[16];
    kl_search_result result;
} scene;

static scene *s;

static void starts(const char *text) {
    kl_error e = {0};
    kl_kernel *start;
    assert_ok(kl_kernel_parse(&start, s->arena, kl_str_of(text), KL_S("start.c"), NULL, NULL, &e));
    s->opts.start = start;
}

static int set_up(void **state) {
    (void)state;
    kl_error e = {0};
    kl_arena *a = kl_arena_new();
    s = KL_NEW(a, scene);
    s->arena = a;
    fake_track_open(&s->track, a);
    assert_ok(kl_task_load(&s->task, a, KL_TEST_ROOT "/tasks/gemm", &e));
    s->opts = (kl_search_opts){.task = s->task,
                               .workload = kl_task_workload(s->task, KL_S("tiny"), KL_ON_CPU),
                               .settings = s->settings};
    starts(HEAD "// ns 300\n");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    fake_track_close(&s->track);
    kl_arena_free(s->arena);
    return 0;
}

static void says(const char *text) { fake_says(&s->track, kl_str_of(text)); }
static void set(const char *name, double value) {
    s->settings[s->opts.n_settings++] = (kl_setting){kl_str_of(name), value};
}
static const char *last_prompt(void) { return s->track.said[0].ptr; }

static void runs(const char *policy) {
    kl_error e = {0};
    assert_ok(
        kl_policy_run(kl_policy_find(kl_str_of(policy)), &s->result, &s->track.base, &s->opts, &e));
}

/* One island, always its best: then every prompt is known beforehand. */
static void one_line(void) {
    set("islands", 1);
    set("p_top", 1);
    set("top_share", 0);
}

/* ---- rounds ------------------------------------------------------------------------------ */

static void test_search_evolve__best_is_the_fastest_that_passed(void **state) {
    (void)state;
    s->opts.max_steps = 4;
    says(FILE("// ns 200"));
    says(FILE("// ns 50 // outcome wrong"));
    says(FILE("// ns 150"));
    says(FILE("// ns 250"));
    runs("evolve");
    assert_contains(s->result.best->source.ptr, "// ns 150");
    assert_str(s->result.stopped, "steps");
    assert_int_equal(s->result.passed, 3);
    assert_int_equal(s->track.turns[0],
                     2); /* every child is asked for in a conversation of its own */
}

static void test_search_evolve__forty_rounds_and_no_patience(void **state) {
    (void)state;
    for (int i = 0; i < 41; i++) says("I would rather talk.");
    runs("evolve");
    assert_int_equal(s->result.proposals, 40);
    assert_str(s->result.stopped, "steps");
}

static void test_search_evolve__patience_that_was_asked_for_counts(void **state) {
    (void)state;
    s->opts.patience = 3;
    for (int i = 0; i < 10; i++) says("I would rather talk.");
    runs("evolve");
    assert_int_equal(s->result.proposals, 3);
}

static void test_search_evolve__rounds_and_max_steps_both_bound(void **state) {
    (void)state;
    set("rounds", 2);
    s->opts.max_steps = 5;
    for (int i = 0; i < 10; i++) says("nothing");
    runs("evolve");
    assert_int_equal(s->result.proposals, 2);
}

static void test_search_evolve__done_on_every_island_is_an_end(void **state) {
    (void)state;
    says("DONE: enough");
    says(FILE("// ns 200"));
    for (int i = 0; i < 5; i++) says("DONE: enough");
    runs("evolve");
    assert_str(s->result.stopped, "model says done");
    assert_int_equal(s->result.proposals, 5);
}

static void test_search_evolve__no_money_is_an_end(void **state) {
    (void)state;
    says(FILE("// ns 200"));
    fake_fails(&s->track, KL_EBUDGET);
    runs("evolve");
    assert_str(s->result.stopped, "budget");
    assert_contains(s->result.best->source.ptr, "// ns 200");
}

/* ---- prompts ----------------------------------------------------------------------------- */

static void test_search_evolve__a_parent_is_shown_with_what_was_measured(void **state) {
    (void)state;
    one_line();
    s->opts.max_steps = 2;
    says(FILE("// ns 150"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(), "# Current program\n\n```c\n" HEAD "// ns 150\n");
    assert_contains(last_prompt(), "2 x the start's speed");
    assert_contains(last_prompt(), "outcome: pass");
    assert_contains(last_prompt(), "speed relative to blas: 6.667");
    assert_contains(
        last_prompt(),
        "Among the fastest. 1 x the start's speed"); /* the start is still of another kind */
    assert_contains(last_prompt(), "From the current program to it:\n\n```diff\n@@");
    assert_contains(last_prompt(), "+// ns 300");
}

static void test_search_evolve__a_parent_is_told_of_its_last_failed_child(void **state) {
    (void)state;
    one_line();
    set("p_fix", 0);
    s->opts.max_steps = 3;
    says(FILE("// ns 100 // outcome wrong"));
    says(FILE("// ns 90 // outcome crash"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(),
                    "# Its last child that was not kept\n\n`unroll`: rejected by the gate");
    assert_contains(last_prompt(), "> outcome: crash");
    assert_contains(last_prompt(), "+// ns 90 // outcome crash");
    assert_null(strstr(last_prompt(), "start.c")); /* no paths */
    assert_null(strstr(last_prompt(),
                       "Other programs")); /* failures hold cells, and are nothing to follow */
}

static void test_search_evolve__what_could_not_be_applied_is_told(void **state) {
    (void)state;
    one_line();
    s->opts.max_steps = 2;
    says(EDIT("// ns 999", "// ns 100"));
    says("nothing");
    runs("evolve");
    assert_int_equal(s->result.gated, 0);
    assert_contains(last_prompt(), "nothing could be gated");
}

static void test_search_evolve__a_clone_is_told_and_not_added(void **state) {
    (void)state;
    one_line();
    s->opts.max_steps = 4;
    says(FILE("// ns 200"));
    says(FILE("// ns 250"));
    says(FILE("// ns 250"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(), "it is a program that is known already");
}

static void test_search_evolve__no_better_than_its_kind_is_told(void **state) {
    (void)state;
    one_line();
    s->opts.max_steps = 3;
    says(FILE("// ns 200"));
    says(FILE("// ns 210"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(), "correct, and no better than what is known of its kind");
    assert_null(strstr(last_prompt(),
                       "Built differently")); /* it lost its cell: it is not in the population */
}

/* What a model writes is never expanded, and other programs are cut. */
static void test_search_evolve__programs_are_data(void **state) {
    (void)state;
    char *big = KL_ARRAY(s->arena, char, 70000);
    one_line();
    s->opts.max_steps = 3;
    strcpy(big, "ACTION: unroll\n```c\n" HEAD "// ns 250 {{feedback}} {{nobody}}\n");
    for (size_t n = strlen(big); n < 60000; n += 8) memcpy(big + n, "int a;\n\n", 9);
    strcat(big, "```\n");
    says(big);
    says(FILE("// ns 100"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(), "// ns 100");
    assert_contains(last_prompt(), "{{feedback}} {{nobody}}");
    assert_contains(last_prompt(), "[cut]");
    assert_true(s->track.said[0].len < 30000);
}

static void test_search_evolve__the_same_answers_give_the_same_prompts(void **state) {
    (void)state;
    kl_str first[2];
    for (int i = 0; i < 2; i++) {
        fake_track_close(&s->track);
        fake_track_open(&s->track, s->arena);
        for (int j = 0; j < 12; j++)
            says(kl_arena_printf(s->arena, FILE("// ns %d%s"), 290 - 13 * j,
                                 j % 3 ? "" : " // outcome wrong")
                     .ptr);
        s->opts.max_steps = 12;
        runs("evolve");
        first[i] = kl_arena_copy(s->arena, kl_buf_str(&s->track.said[0]));
    }
    assert_true(kl_str_eq(first[0], first[1]));
}

/* ---- repairing --------------------------------------------------------------------------- */

static void test_search_evolve__a_failed_program_is_repaired(void **state) {
    (void)state;
    one_line();
    set("p_fix", 1);
    s->opts.max_steps = 2;
    says(FILE("// ns 100 // outcome wrong"));
    says(EDIT("// ns 100 // outcome wrong", "// ns 100"));
    runs("evolve");
    assert_contains(last_prompt(), "The current program fails the gate. Repair it");
    assert_contains(last_prompt(), "It fails the gate: wrong.");
    assert_contains(s->result.best->source.ptr, "// ns 100\n");
}

static void test_search_evolve__what_does_not_parse_is_repaired_as_well(void **state) {
    (void)state;
    one_line();
    set("p_fix", 1);
    s->opts.max_steps = 2;
    says("ACTION: unroll\n```c\n//! launch gemm args(\n// ns 100\n```\n");
    says(EDIT("//! launch gemm args(", HEAD));
    runs("evolve");
    assert_contains(last_prompt(), "It fails the gate: refused.");
    assert_contains(s->result.best->source.ptr, "// ns 100");
}

static void
test_search_evolve__nothing_is_repaired_by_preference_once_something_is_correct(void **state) {
    (void)state;
    one_line();
    set("p_fix", 1);
    s->opts.max_steps = 3;
    says(FILE("// ns 200"));
    says(FILE("// ns 100 // outcome wrong"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(), "Make the current program faster");
}

/* ---- islands ----------------------------------------------------------------------------- */

/* Round 1 makes something fast on the first island; round 5 is the second one's. */
static void fast_on_the_first(double every) {
    set("p_top", 1);
    set("top_share", 0);
    set("p_fix", 0);
    set("migrate_every", every);
    s->opts.max_steps = 5;
    says(FILE("// ns 100"));
    for (int i = 0; i < 4; i++) says("nothing");
    runs("evolve");
}

static void test_search_evolve__islands_migrate_within_the_run(void **state) {
    (void)state;
    fast_on_the_first(3);
    assert_contains(last_prompt(), "# Current program\n\n```c\n" HEAD "// ns 100");
}

static void test_search_evolve__islands_keep_apart_until_then(void **state) {
    (void)state;
    fast_on_the_first(40);
    assert_contains(last_prompt(), "# Current program\n\n```c\n" HEAD "// ns 300");
    assert_null(strstr(last_prompt(), "Other programs"));
}

static void test_search_evolve__features_can_be_the_axes(void **state) {
    (void)state;
    one_line();
    set("axes", 1);
    s->opts.max_steps = 3;
    says("ACTION: unroll\n```c\n//! buffer t: f32[64]\n//! launch gemm args(x, weight, y, t, M, N, "
         "K)\n"
         "void gemm(const float *x, const float *weight, float *y, float *t, int M, int N, int K) "
         "{ (void)x; }\n// ns "
         "290\n```\n");
    says(FILE("// ns 100"));
    says("nothing");
    runs("evolve");
    assert_contains(
        last_prompt(),
        "//! buffer t: f32[64]\n//! launch gemm args(x, weight, y, t, M"); /* slower, of about the
                                                                              same size, and of
                                                                              another kind */
}

/* ---- ranges ------------------------------------------------------------------------------ */

#define RANGES HEAD "// EVOLVE-BLOCK-START\n// ns 300\n// EVOLVE-BLOCK-END\n// tail\n"

static void test_search_evolve__only_the_ranges_may_change(void **state) {
    (void)state;
    static const char *const POLICIES[] = {"evolve", "generate", "bestofn"};
    for (size_t i = 0; i < KL_COUNT(POLICIES); i++) {
        fake_track_close(&s->track);
        fake_track_open(&s->track, s->arena);
        starts(RANGES);
        s->opts.max_steps = 3;
        says(EDIT("// tail", "// ns 50"));
        says(FILE("// EVOLVE-BLOCK-START\n// ns 60\n// EVOLVE-BLOCK-END")); /* a whole file without
                                                                               its tail */
        says(EDIT("// ns 300", "// ns 200"));
        runs(POLICIES[i]);
        assert_int_equal(s->result.gated, 1);
        assert_contains(s->result.best->source.ptr, "// ns 200");
        assert_int_equal(s->track.steps, 5); /* the start, three, refused ones too, and the end */
        assert_contains(last_prompt(), "Only the lines between the markers");
    }
}

static void test_search_evolve__a_refused_change_is_told(void **state) {
    (void)state;
    one_line();
    starts(RANGES);
    s->opts.max_steps = 2;
    says(EDIT("// tail", "// ns 50"));
    says("nothing");
    runs("evolve");
    assert_contains(last_prompt(),
                    "only the lines between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END may change");
    assert_contains(last_prompt(), "the line that has to be there: // tail");
}

static void test_search_evolve__ranges_of_a_start_are_whole(void **state) {
    (void)state;
    kl_error e = {0};
    starts(HEAD "// EVOLVE-BLOCK-START\n// ns 300\n");
    assert_err(KL_EPARSE, kl_policy_run(kl_policy_find(KL_S("evolve")), &s->result, &s->track.base,
                                        &s->opts, &e));
    assert_contains(e.message, "without its EVOLVE-BLOCK-END");
    assert_int_equal(s->track.judged, 0);
}

/* ---- cards ------------------------------------------------------------------------------- */

static kl_library one_card(const char *patch) {
    kl_card *c = KL_NEW(s->arena, kl_card);
    kl_trial_record *trial = KL_NEW(s->arena, kl_trial_record);
    static kl_str cases[] = {{"gemm", 4}}, surfaces[] = {{"c", 1}}, platforms[] = {{"fake", 4}};
    *trial = (kl_trial_record){
        .platform = KL_S("fake"), .surface = KL_S("c"), .accepted = true, .gain = 2};
    *c = (kl_card){.name = KL_S("unroll-c"),
                   .action = KL_S("unroll"),
                   .status = KL_CARD_ADMITTED,
                   .intent = KL_S("the intent of the card"),
                   .expected_gain = 1.5,
                   .patch = kl_str_of(patch),
                   .trials = trial,
                   .n_trials = 1,
                   .verified = {{cases, 1}, {surfaces, 1}, {platforms, 1}, {0}}};
    return (kl_library){.cards = c, .n_cards = 1};
}

static void test_search_evolve_cards__needs_a_library(void **state) {
    (void)state;
    kl_error e = {0};
    assert_err(KL_EINVAL, kl_policy_run(kl_policy_find(KL_S("evolve-cards")), &s->result,
                                        &s->track.base, &s->opts, &e));
}

static void test_search_evolve_cards__a_card_is_the_mutation(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    s->opts.max_steps = 1;
    set("p_free", 0);
    says("CARD: unroll-c\n" FILE("// ns 200"));
    runs("evolve-cards");
    assert_contains(last_prompt(), "the intent of the card");
    assert_contains(last_prompt(), "Apply the card `unroll-c`");
    assert_str(s->result.cards, "unroll-c");
}

static void test_search_evolve_cards__some_rounds_are_free(void **state) {
    (void)state;
    kl_library l = one_card(EDIT("// ns 300", "// ns 120"));
    s->opts.library = &l;
    s->opts.max_steps = 1;
    set("p_free", 1);
    says(FILE("// ns 200"));
    runs("evolve-cards");
    assert_null(strstr(last_prompt(), "Apply the card"));
    assert_contains(s->result.best->source.ptr, "// ns 200");
    assert_str(s->result.cards, "");
}

static void test_search_evolve_cards__a_patch_that_fits_costs_nothing(void **state) {
    (void)state;
    kl_library l = one_card(EDIT("// ns 300", "// ns 120"));
    s->opts.library = &l;
    s->opts.max_steps = 1;
    one_line();
    set("p_free", 0);
    says(EDIT("// ns 120", "// ns 110"));
    runs("evolve-cards");
    assert_contains(s->result.best->source.ptr, "// ns 110");
    assert_int_equal(s->result.proposals, 1);
    assert_int_equal(s->result.gated, 2);
    assert_str(s->result.cards,
               "unroll-c unroll-c"); /* the reply did the action that it was asked for */
}

/* It inserts a faster time at the top, again and again: it never costs anything, and it ends. */
static void test_search_evolve_cards__patches_end(void **state) {
    (void)state;
    kl_library l = one_card(EDIT("//! launch gemm args(x, weight, y, M, N, K)",
                                 "//! launch gemm args(x, weight, y, M, N, K)\n// x"));
    s->opts.library = &l;
    s->opts.max_steps = 2;
    set("p_free", 0);
    says("nothing");
    says("nothing");
    runs("evolve-cards");
    assert_str(s->result.stopped, "steps");
}

static void test_search_evolve_cards__a_failure_is_a_risk_of_the_card(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    s->opts.max_steps = 2;
    one_line();
    set("p_free", 0);
    set("p_fix", 0);
    says("CARD: unroll-c\n" FILE("// ns 100 // outcome wrong"));
    says("CARD: made-up\n" FILE("// ns 100 // outcome crash"));
    runs("evolve-cards");
    assert_contains(last_prompt(),
                    "- unroll-c: failed 1 of 1 times; the last time: wrong: as the source says");
}

static void test_search_evolve__sees_no_card(void **state) {
    (void)state;
    kl_library l = one_card(EDIT("// ns 300", "// ns 120"));
    s->opts.library = &l;
    s->opts.max_steps = 1;
    says("CARD: unroll-c\n" FILE("// ns 200"));
    runs("evolve");
    assert_null(strstr(last_prompt(), "the intent of the card"));
    assert_contains(s->result.best->source.ptr, "// ns 200");
    assert_str(s->result.cards, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_search_evolve__best_is_the_fastest_that_passed),
        CASE(test_search_evolve__forty_rounds_and_no_patience),
        CASE(test_search_evolve__patience_that_was_asked_for_counts),
        CASE(test_search_evolve__rounds_and_max_steps_both_bound),
        CASE(test_search_evolve__done_on_every_island_is_an_end),
        CASE(test_search_evolve__no_money_is_an_end),
        CASE(test_search_evolve__a_parent_is_shown_with_what_was_measured),
        CASE(test_search_evolve__a_parent_is_told_of_its_last_failed_child),
        CASE(test_search_evolve__what_could_not_be_applied_is_told),
        CASE(test_search_evolve__a_clone_is_told_and_not_added),
        CASE(test_search_evolve__no_better_than_its_kind_is_told),
        CASE(test_search_evolve__programs_are_data),
        CASE(test_search_evolve__the_same_answers_give_the_same_prompts),
        CASE(test_search_evolve__a_failed_program_is_repaired),
        CASE(test_search_evolve__what_does_not_parse_is_repaired_as_well),
        CASE(test_search_evolve__nothing_is_repaired_by_preference_once_something_is_correct),
        CASE(test_search_evolve__islands_migrate_within_the_run),
        CASE(test_search_evolve__islands_keep_apart_until_then),
        CASE(test_search_evolve__features_can_be_the_axes),
        CASE(test_search_evolve__only_the_ranges_may_change),
        CASE(test_search_evolve__a_refused_change_is_told),
        CASE(test_search_evolve__ranges_of_a_start_are_whole),
        CASE(test_search_evolve_cards__needs_a_library),
        CASE(test_search_evolve_cards__a_card_is_the_mutation),
        CASE(test_search_evolve_cards__some_rounds_are_free),
        CASE(test_search_evolve_cards__a_patch_that_fits_costs_nothing),
        CASE(test_search_evolve_cards__patches_end),
        CASE(test_search_evolve_cards__a_failure_is_a_risk_of_the_card),
        CASE(test_search_evolve__sees_no_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
