/* adaexplore_test.c - the tree, the pool and the rules of policy adaexplore, with replies and
 * verdicts that are told beforehand. A candidate's time stands in its comment; the start takes 300
 * ns.  SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "run/fake_track.h"
#include "base/test.h"

#define HEAD                                                                                       \
    "//! launch gemm args(x, weight, y, M, N, K)\n"                                                \
    "void gemm(const float *x, const float *weight, float *y, int M, int N, int K) { (void)x; }\n"
#define REPLY(from, to)                                                                            \
    "ACTION: unroll\nWHY: test\n<<<<<<< SEARCH\n" from "\n=======\n" to "\n>>>>>>> REPLACE\n"
#define WHOLE(comment) "ACTION: tile_block\nWHY: test\n```c\n" HEAD comment "\n```\n"

typedef struct {
    kl_arena *arena;
    fake_track track;
    kl_task *task;
    kl_kernel *start;
    kl_search_opts opts;
    kl_search_result result;
    kl_setting settings[12];
} scene;

static scene *s;

static int set_up(void **state) {
    (void)state;
    kl_error e = {0};
    kl_arena *a = kl_arena_new();
    s = KL_NEW(a, scene);
    s->arena = a;
    fake_track_open(&s->track, a);
    assert_ok(kl_task_load(&s->task, a, KL_TEST_ROOT "/tasks/gemm", &e));
    assert_ok(
        kl_kernel_parse(&s->start, a, KL_S(HEAD "// ns 300\n"), KL_S("start.c"), NULL, NULL, &e));
    s->opts = (kl_search_opts){.task = s->task,
                               .workload = kl_task_workload(s->task, KL_S("tiny"), KL_ON_CPU),
                               .start = s->start,
                               .settings = s->settings};
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

static kl_err runs(kl_error *e) {
    return kl_policy_run(kl_policy_find(KL_S("adaexplore")), &s->result, &s->track.base, &s->opts,
                         e);
}

/* Money ends here: what was asked last can be looked at. */
static const char *last_asked(void) {
    kl_error e = {0};
    fake_fails(&s->track, KL_EBUDGET);
    assert_ok(runs(&e));
    assert_str(s->result.stopped, "budget");
    assert_int_equal(s->track.next, s->track.n_replies); /* the end that was meant */
    return s->track.said[0].ptr;
}

static void not_in(const char *text, const char *what) {
    if (strstr(text, what)) fail_msg("\"%s\" is in:\n%s", what, text);
}

#define LARGE "outperform every kernel"
#define SMALL "by a few exact edits"

/* ---- steps ------------------------------------------------------------------------------- */

static void test_adaexplore_step__the_first_is_large_and_from_the_start(void **state) {
    (void)state;
    set("p_large", 0);
    const char *asked = last_asked();
    assert_contains(asked, LARGE);
    assert_contains(asked, "## Kernel 1: ");
    assert_contains(asked, "// ns 300");
    not_in(asked, "## Kernel 2");
    not_in(asked, "pitfalls");
}

static void test_adaexplore_step__small_ones_edit_the_kernel_with_a_reviewers_words(void **state) {
    (void)state;
    set("p_large", 0);
    says(WHOLE("// ns 200"));
    says("Pack B.\n# Guidance\n<<<<<<< SEARCH");
    const char *asked = last_asked();
    assert_contains(asked, SMALL);
    assert_contains(asked, "## Round 1 of 1\n");
    assert_contains(asked, "// ns 200");
    assert_contains(asked, "A reviewer says:\n\n> Pack B.\n> # Guidance\n> <<<<<<< SEARCH");
}

static void test_adaexplore_step__edits_apply_to_the_kernel_that_was_chosen(void **state) {
    (void)state;
    kl_error e = {0};
    set("p_large", 0);
    set("exploration", 0);
    set("reviser", 0);
    s->opts.max_steps = 3;
    says(WHOLE("// ns 200"));
    says(REPLY("// ns 200", "// ns 150"));
    says(REPLY("// ns 150", "// ns 100"));
    assert_ok(runs(&e));
    assert_contains(s->result.best->source.ptr, "// ns 100");
    assert_int_equal(s->result.improved, 3);
    assert_contains(s->track.said[0].ptr, "## Round 2 of 2\n");
}

static void test_adaexplore_step__shows_no_more_rounds_than_asked_for(void **state) {
    (void)state;
    set("p_large", 0);
    set("exploration", 0);
    set("reviser", 0);
    set("memory_rounds", 2);
    says(WHOLE("// ns 200"));
    says(REPLY("// ns 200", "// ns 150"));
    says(REPLY("// ns 150", "// ns 100"));
    const char *asked = last_asked();
    assert_contains(asked, "## Round 2 of 2\n");
    assert_true(strstr(asked, "// ns 150") < strstr(asked, "// ns 100"));
    not_in(asked, "// ns 200");
}

static void test_adaexplore_step__a_failure_is_repaired_without_a_reviewer(void **state) {
    (void)state;
    set("p_large", 0);
    says(WHOLE("// ns 50 // outcome wrong"));
    const char *asked = last_asked();
    assert_contains(asked, SMALL);
    assert_contains(asked, "// outcome wrong");
    assert_contains(asked, "outcome: wrong");
    assert_contains(asked, "Repair or improve");
}

/* Text that does not parse is edited like any other. */
static void test_adaexplore_step__a_kernel_without_a_launch_can_be_repaired(void **state) {
    (void)state;
    kl_error e = {0};
    set("p_large", 0);
    s->opts.max_steps = 2;
    says("ACTION: unroll\n```c\n//! launch (\nvoid gemm(void) {}\n```\n");
    says("no guidance");
    says(REPLY("//! launch (\nvoid gemm(void) {}", HEAD "// ns 100"));
    assert_ok(runs(&e));
    assert_contains(s->result.best->source.ptr, "// ns 100");
}

static void test_adaexplore_step__without_an_edit_the_other_kind_is_tried(void **state) {
    (void)state;
    set("p_large", 0);
    set("reviser", 0);
    says(WHOLE("// ns 200"));
    says("I would rather talk.");
    const char *asked = last_asked();
    assert_contains(asked, LARGE);
    assert_contains(asked, "// ns 200");
    assert_int_equal(s->result.proposals, 2);
}

static void test_adaexplore_step__past_the_limit_of_small_ones_it_is_large(void **state) {
    (void)state;
    set("p_large", 0);
    set("small_step_limit", 0);
    says(WHOLE("// ns 200"));
    assert_contains(last_asked(), LARGE);
}

/* ---- the tree ---------------------------------------------------------------------------- */

/* All as fast as each other: the bonus alone decides.  Visits of the root and its two: 6, 3, 3. One
 * more child of the root would be worth sqrt(ln 6) / 2 = 0.67 by children squared, and sqrt(ln 6 /
 * 2) = 0.95 by children; going deeper sqrt(ln 6 / 3) = 0.77. */
static void test_adaexplore_tree__widens_by_children_squared(void **state) {
    static const char *const kinds[] = {LARGE, SMALL, LARGE, SMALL, SMALL, SMALL, SMALL};
    static const char *const replies[] = {WHOLE("// a"), WHOLE("// b"), WHOLE("// c"),
                                          WHOLE("// d"), WHOLE("// e"), WHOLE("// f")};
    for (size_t n = 0; n < KL_COUNT(kinds); n++) {
        if (n) tear_down(state), set_up(state);
        set("p_large", 0);
        set("exploration", 10);
        set("small_step_limit", 64);
        set("reviser", 0);
        for (size_t i = 0; i < n; i++) says(replies[i]);
        assert_contains(last_asked(), kinds[n]);
    }
}

/* Without a bonus the mean decides: 200 ns, made worse twice, still beats 280 ns; and one look at
 * each is enough. */
static void test_adaexplore_tree__without_a_bonus_it_follows_the_best_mean(void **state) {
    (void)state;
    set("p_large", 0);
    set("exploration", 0);
    set("reviser", 0);
    says(WHOLE("// ns 200"));
    says(REPLY("// ns 200", "// ns 100"));
    says(REPLY("// ns 100", "// ns 5000"));
    const char *asked = last_asked();
    assert_contains(asked, "## Round 3 of 3");
    assert_contains(asked, "// ns 5000");
}

/* A kernel and an edit of it, then another large step; where the next one goes tells what the three
 * were worth. */
static const char *fourth_step(double exploration, double alpha, const char *first,
                               const char *edited, const char *other) {
    set("p_large", 0);
    set("reviser", 0);
    set("exploration", exploration);
    set("reward_alpha", alpha);
    says(first);
    says(edited);
    says(other);
    if (strstr(other, "no_compile")) says("no guidance");
    return last_asked();
}

/* Twice 1.5 times the start is 0.5697 in the mean of two visits; the other is gone to when it is
 * worth more than that less 0.307 x 1.77 = 0.543. */
static void
test_adaexplore_tree__a_wrong_kernel_is_worth_a_little_and_no_kernel_nothing(void **state) {
    assert_contains(fourth_step(1.77, 0, WHOLE("// ns 200"), WHOLE("// ns 200 // again"),
                                WHOLE("// outcome wrong")),
                    "// outcome wrong");
    tear_down(state), set_up(state);
    const char *asked = fourth_step(1.77, 0, WHOLE("// ns 200"), WHOLE("// ns 200 // again"),
                                    WHOLE("// outcome no_compile"));
    assert_contains(asked, "## Round 2 of 2");
    assert_contains(asked, "// again");
    not_in(asked, "no_compile");
}

/* Three times the start and a failure: 0.40 in the mean, 0.75 at best; the other is 0.57. */
static void test_adaexplore_tree__alpha_follows_the_best_instead_of_the_mean(void **state) {
    assert_contains(
        fourth_step(0.3, 0, WHOLE("// ns 100"), WHOLE("// outcome wrong"), WHOLE("// ns 200")),
        "// ns 200");
    tear_down(state), set_up(state);
    const char *asked =
        fourth_step(0.3, 1, WHOLE("// ns 100"), WHOLE("// outcome wrong"), WHOLE("// ns 200"));
    assert_contains(asked, "## Round 2 of 2");
    assert_contains(asked, "// outcome wrong");
}

/* ---- the pool ---------------------------------------------------------------------------- */

static void test_adaexplore_pool__has_the_best_correct_kernel_of_each_large_step(void **state) {
    (void)state;
    set("p_large", 0);
    set("exploration", 0);
    set("reviser", 0);
    says(WHOLE("// ns 200"));
    says(REPLY("// ns 200", "// ns 100"));
    says(REPLY("// ns 100", "// ns 50 // outcome wrong"));
    says("no edit");
    const char *asked = last_asked();
    assert_contains(asked, LARGE);
    assert_contains(asked, "// ns 100");
    not_in(asked, "// ns 200");
    not_in(asked, "// ns 50");
    not_in(asked, "## Kernel 2");
}

static void large_steps(int n, int size, int extra, double geometric) {
    static const char *const replies[] = {WHOLE("// ns 200"), WHOLE("// ns 190"),
                                          WHOLE("// ns 180"), WHOLE("// ns 170"),
                                          WHOLE("// ns 160"), WHOLE("// ns 150")};
    set("p_large", 1);
    set("pool_size", size);
    set("pool_extra", extra);
    set("geometric", geometric);
    for (int i = 0; i < n; i++) says(replies[i]);
}

static void test_adaexplore_pool__is_the_path_from_the_root(void **state) {
    (void)state;
    large_steps(3, 5, 0, 0);
    set("exploration", 0);
    const char *asked = last_asked();
    assert_contains(asked, "// ns 200");
    assert_true(strstr(asked, "// ns 190") < strstr(asked, "// ns 180"));
    assert_contains(asked, "## Kernel 3");
}

static void test_adaexplore_pool__is_never_larger_than_asked_for(void **state) {
    (void)state;
    large_steps(5, 2, 16, 0);
    set("exploration", 0);
    const char *asked = last_asked();
    assert_contains(asked, "## Kernel 2");
    not_in(asked, "## Kernel 3");
}

/* From the third step on the root is always worth widening: its path is empty, and everything else
 * is elsewhere.  How many of those are shown is drawn, evenly where nothing falls off. */
static void test_adaexplore_pool__further_kernels_come_from_elsewhere(void **state) {
    int with_others = 0;
    for (int n = 3; n <= 6; n++) {
        if (n > 3) tear_down(state), set_up(state);
        large_steps(n, 5, 5, 0);
        set("exploration", 10);
        set("expand_ratio", 100);
        const char *asked = last_asked();
        const bool others =
            strstr(asked, "// ns 300") == NULL; /* the start stands in for an empty pool alone */
        with_others += others;
        if (!others) not_in(asked, "## Kernel 2");
    }
    assert_in_range(with_others, 1, 4);
}

static void test_adaexplore_pool__falls_off_to_none(void **state) {
    (void)state;
    large_steps(6, 5, 5, 1);
    set("exploration", 10);
    set("expand_ratio", 100);
    const char *asked = last_asked();
    assert_contains(asked, "// ns 300");
    not_in(asked, "## Kernel 2");
}

/* ---- rules ------------------------------------------------------------------------------- */

#define CRASH WHOLE("// outcome crash")

static void fails_and_learns(const char *rule) {
    set("p_large", 0);
    says(CRASH);
    says(rule);
}

static void test_adaexplore_rule__is_asked_for_with_the_kernel_and_the_error(void **state) {
    (void)state;
    set("p_large", 0);
    says(CRASH);
    const char *asked = last_asked();
    assert_contains(asked, "You turn one failure");
    assert_contains(asked, "// outcome crash");
    assert_contains(asked, "outcome: crash");
}

static void test_adaexplore_rule__becomes_a_pitfall(void **state) {
    (void)state;
    fails_and_learns("Here it is:\n- \"You cannot write past the end of y, e.g. with a tile. Use a "
                     "tail loop instead.\"\n");
    const char *asked = last_asked();
    assert_contains(asked, SMALL);
    assert_contains(asked, "# Common pitfalls");
    assert_contains(asked, "\n- You cannot write past the end of y, e.g. with a tile.\n");
    not_in(asked, "tail loop");
}

static void test_adaexplore_rule__is_a_sentence_of_its_kind_or_none(void **state) {
    char longer[400] = "You cannot ";
    memset(longer + 11, 'x', 300);
    const char *const none[] = {"no guidance",
                                "",
                                "You should use fewer registers.",
                                "Kernels: You cannot do this",
                                "You cannot establish an HTTP connection to 0.0.0.0:12017.",
                                longer};
    for (size_t i = 0; i < KL_COUNT(none); i++) {
        if (i) tear_down(state), set_up(state);
        fails_and_learns(none[i]);
        const char *asked = last_asked();
        assert_contains(asked, SMALL);
        not_in(asked, "pitfalls");
    }
}

static void test_adaexplore_rule__counts_what_it_saw_before(void **state) {
    for (int threshold = 1; threshold <= 3; threshold++) {
        if (threshold > 1) tear_down(state), set_up(state);
        set("rule_threshold", threshold);
        fails_and_learns("You cannot call `malloc` in a kernel.");
        says(REPLY("// outcome crash", "// outcome hang"));
        says("You cannot  call malloc, in a KERNEL");
        const char *asked = last_asked();
        if (threshold == 3) {
            not_in(asked, "pitfalls");
            continue;
        }
        const char *first = strstr(asked, "You cannot call `malloc` in a kernel.");
        assert_non_null(first);
        not_in(first + 1, "You cannot call");
        not_in(asked, "KERNEL");
    }
}

static void test_adaexplore_rule__of_a_wrong_result_only_when_asked_for(void **state) {
    (void)state;
    set("p_large", 0);
    set("rule_wrong", 1);
    says(WHOLE("// outcome wrong"));
    assert_contains(last_asked(), "You turn one failure");
}

static void test_adaexplore_rule__of_an_unsettled_time_there_is_none(void **state) {
    (void)state;
    set("p_large", 0);
    says(WHOLE("// outcome unstable"));
    not_in(last_asked(), "You turn one failure");
}

static void test_adaexplore_rule__after_the_last_step_is_not_paid_for(void **state) {
    (void)state;
    kl_error e = {0};
    s->opts.max_steps = 1;
    says(CRASH);
    assert_ok(runs(&e));
    assert_int_equal(s->track.next, 1);
}

/* ---- ends -------------------------------------------------------------------------------- */

static void test_adaexplore_end__whatever_is_said_steps_end_it(void **state) {
    static const char *const always[] = {"",
                                         "DONE: enough",
                                         "no edit at all",
                                         WHOLE("// ns 200"),
                                         CRASH,
                                         WHOLE("// outcome refused"),
                                         REPLY("// ns 300", "// ns 100"),
                                         "You cannot win."};
    for (size_t i = 0; i < KL_COUNT(always); i++) {
        kl_error e = {0};
        if (i) tear_down(state), set_up(state);
        s->opts.max_steps = 20;
        for (int r = 0; r < 64; r++) says(always[i]);
        assert_ok(runs(&e));
        assert_str(s->result.stopped, "steps");
        assert_int_equal(s->result.proposals, 20);
    }
}

static void test_adaexplore_end__a_provider_that_fails_is_an_error(void **state) {
    for (int before = 0; before < 4; before++) {
        kl_error e = {0};
        if (before) tear_down(state), set_up(state);
        set("p_large", 0);
        says(WHOLE("// ns 200"));
        says("review");
        says(REPLY("// ns 200", "// outcome crash"));
        s->track.n_replies = before;
        fake_fails(&s->track, KL_EMODEL);
        assert_err(KL_EMODEL, runs(&e));
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_adaexplore_step__the_first_is_large_and_from_the_start),
        CASE(test_adaexplore_step__small_ones_edit_the_kernel_with_a_reviewers_words),
        CASE(test_adaexplore_step__edits_apply_to_the_kernel_that_was_chosen),
        CASE(test_adaexplore_step__shows_no_more_rounds_than_asked_for),
        CASE(test_adaexplore_step__a_failure_is_repaired_without_a_reviewer),
        CASE(test_adaexplore_step__a_kernel_without_a_launch_can_be_repaired),
        CASE(test_adaexplore_step__without_an_edit_the_other_kind_is_tried),
        CASE(test_adaexplore_step__past_the_limit_of_small_ones_it_is_large),
        CASE(test_adaexplore_tree__widens_by_children_squared),
        CASE(test_adaexplore_tree__without_a_bonus_it_follows_the_best_mean),
        CASE(test_adaexplore_tree__a_wrong_kernel_is_worth_a_little_and_no_kernel_nothing),
        CASE(test_adaexplore_tree__alpha_follows_the_best_instead_of_the_mean),
        CASE(test_adaexplore_pool__has_the_best_correct_kernel_of_each_large_step),
        CASE(test_adaexplore_pool__is_the_path_from_the_root),
        CASE(test_adaexplore_pool__is_never_larger_than_asked_for),
        CASE(test_adaexplore_pool__further_kernels_come_from_elsewhere),
        CASE(test_adaexplore_pool__falls_off_to_none),
        CASE(test_adaexplore_rule__is_asked_for_with_the_kernel_and_the_error),
        CASE(test_adaexplore_rule__becomes_a_pitfall),
        CASE(test_adaexplore_rule__is_a_sentence_of_its_kind_or_none),
        CASE(test_adaexplore_rule__counts_what_it_saw_before),
        CASE(test_adaexplore_rule__of_a_wrong_result_only_when_asked_for),
        CASE(test_adaexplore_rule__of_an_unsettled_time_there_is_none),
        CASE(test_adaexplore_rule__after_the_last_step_is_not_paid_for),
        CASE(test_adaexplore_end__whatever_is_said_steps_end_it),
        CASE(test_adaexplore_end__a_provider_that_fails_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
