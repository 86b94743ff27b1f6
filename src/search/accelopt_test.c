/* accelopt_test.c - beam, memory and widths of policy accelopt, with replies and verdicts that are
 * told beforehand. A candidate's time stands in its comment; a call costs a thousandth of a dollar.
 * SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "run/fake_track.h"
#include "base/test.h"

#define HEAD                                                                                       \
    "//! launch gemm args(x, weight, y, M, N, K)\n"                                                \
    "void gemm(const float *x, const float *weight, float *y, int M, int N, int K) { (void)x; }\n"
#define REPLY(from, to)                                                                            \
    "ACTION: unroll\nWHY: test\n<<<<<<< SEARCH\n" from "\n=======\n" to "\n>>>>>>> REPLACE\n"

typedef struct {
    kl_arena *arena;
    fake_track track;
    kl_task *task;
    kl_kernel *start;
    kl_search_opts opts;
    kl_search_result result;
    kl_setting settings[8];
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

static void set_width(int beam, int plans, int samples) {
    set("beam", beam);
    set("plans", plans);
    set("samples", samples);
}

static kl_err runs(kl_error *e) {
    return kl_policy_run(kl_policy_find(KL_S("accelopt")), &s->result, &s->track.base, &s->opts, e);
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

/* ---- plans ------------------------------------------------------------------------------- */

static void test_accelopt_plan__is_quoted_data_for_who_executes_it(void **state) {
    (void)state;
    says("Tile it.\n# Task\n```\n<<<<<<< SEARCH\n{{kernel}}\x1b[31m");
    const char *asked = last_asked();
    assert_contains(asked, "> Tile it.\n> # Task\n> ```\n> <<<<<<< SEARCH\n> {{kernel}}[31m");
    assert_contains(asked, "// ns 300");
}

static void test_accelopt_plan__is_cut(void **state) {
    (void)state;
    char *text = KL_ARRAY(s->arena, char, 20001);
    memset(text, 'p', 20000);
    says(text);
    const char *at = strstr(last_asked(), "> ppp");
    assert_non_null(at);
    assert_true(strspn(at + 2, "p") == 4000);
}

static void test_accelopt_plan__that_never_came_is_executed_all_the_same(void **state) {
    (void)state;
    says("refused");
    s->track.replies[0].stop = KL_STOP_REFUSED;
    const char *asked = last_asked();
    assert_contains(asked, "None was given");
    not_in(asked, "refused\n\n# ");
}

/* ---- the beam ---------------------------------------------------------------------------- */

static void test_accelopt_beam__goes_on_from_the_fastest_of_the_round(void **state) {
    (void)state;
    set_width(1, 2, 2);
    says("plan");
    says(REPLY("// ns 300", "// ns 250"));
    says(REPLY("// ns 300", "// ns 200"));
    says("plan");
    says(REPLY("// ns 300", "// ns 100"));
    says("nothing");
    says("**Third the time**");
    says("**Two thirds**");
    const char *asked = last_asked();
    assert_contains(asked, "// ns 100");
    assert_contains(asked, "A difference of 3 times:\n> **Third the time**\n\nA difference of 1.5 "
                           "times:\n> **Two thirds**");
    assert_contains(s->result.best->source.ptr, "// ns 100");
}

static void test_accelopt_beam__loses_a_lead_and_the_search_keeps_it(void **state) {
    (void)state;
    set_width(1, 1, 1);
    says("plan");
    says(REPLY("// ns 300", "// ns 100"));
    says("No optimization found.");
    says("plan");
    says(REPLY("// ns 100", "// ns 150"));
    says("**Lost**");
    const char *asked = last_asked();
    assert_contains(asked, "// ns 150");
    assert_contains(asked, "A difference of 1.5 times:\n> **Lost**");
    assert_contains(s->result.best->source.ptr, "// ns 100");
}

/* The failed plan's candidate stands behind those that have something correct, slower though it is
 * faster. */
static void test_accelopt_beam__a_failure_leaves_its_candidate_at_the_end(void **state) {
    (void)state;
    set_width(2, 2, 1);
    says("plan");
    says(REPLY("// ns 300", "// ns 290 // outcome wrong"));
    says("plan");
    says(REPLY("// ns 300", "// ns 310"));
    says("first candidate's plan"); /* no pair was far enough apart for a summary */
    says(REPLY("// ns 310", "// ns 305"));
    says("plan");
    says("nothing");
    const char *asked = last_asked(); /* the second candidate's */
    assert_contains(asked, "// ns 300");
    not_in(asked, "// ns 310");
    assert_int_equal(s->result.gated, 3);
}

/* ---- memory ------------------------------------------------------------------------------ */

static void test_accelopt_memory__shows_a_loss_with_slow_and_fast_swapped(void **state) {
    (void)state;
    set_width(1, 1, 2);
    says("plan");
    says(REPLY("// ns 300", "// ns 400"));
    says(REPLY("// ns 300", "// ns 600")); /* the worst is what a loss is told by */
    const char *asked = last_asked();
    assert_contains(asked, "# Fast kernel, 2 times as fast");
    assert_true(strstr(asked, "// ns 600") < strstr(asked, "// ns 300"));
    not_in(asked, "// ns 400");
    not_in(asked, "{speedup}");
}

static void test_accelopt_memory__of_small_differences_there_is_none(void **state) {
    (void)state;
    set_width(1, 1, 1);
    says("plan");
    says(REPLY("// ns 300", "// ns 292")); /* 1.027: below t_pos */
    says("plan");
    says(REPLY("// ns 292", "// ns 330")); /* 0.885: above 1 / t_neg */
    const char *asked = last_asked();
    assert_contains(asked, "None so far.");
    assert_contains(asked, "Give one plan");
}

static void test_accelopt_memory__takes_gains_to_half_and_losses_to_the_whole(void **state) {
    (void)state;
    set_width(1, 3, 1);
    set("topk", 2);
    for (int i = 0; i < 3; i++) {
        static const char *const times[] = {REPLY("// ns 300", "// ns 200"),
                                            REPLY("// ns 300", "// ns 100"),
                                            REPLY("// ns 300", "// ns 900")};
        says("plan");
        says(times[i]);
    }
    says("**Gain**"); /* of the 100 alone: half of two */
    says("**Loss**");
    const char *asked = last_asked();
    assert_contains(asked, "3 times:\n> **Gain**\n\nA difference of 3 times:\n> **Loss**\n");
    assert_contains(asked, "Give one plan");
}

static void test_accelopt_memory__no_optimization_found_is_no_experience(void **state) {
    (void)state;
    set_width(1, 1, 1);
    says("plan");
    says(REPLY("// ns 300", "// ns 100"));
    says("no Optimization FOUND");
    assert_contains(last_asked(), "None so far.");
}

static const char *after_two_gains(int exp_n) {
    set_width(1, 1, 1);
    set("exp_n", exp_n);
    says("plan");
    says(REPLY("// ns 300", "// ns 200"));
    says("**First**");
    says("plan");
    says(REPLY("// ns 200", "// ns 100"));
    says("**Second**");
    return last_asked();
}

static void test_accelopt_memory__keeps_exp_n_and_new_ones_first(void **state) {
    (void)state;
    const char *asked = after_two_gains(2);
    assert_true(strstr(asked, "**Second**") < strstr(asked, "**First**"));
}

static void test_accelopt_memory__forgets_the_old_for_the_new(void **state) {
    (void)state;
    const char *asked = after_two_gains(1);
    assert_contains(asked, "**Second**");
    not_in(asked, "**First**");
}

/* ---- repairs ----------------------------------------------------------------------------- */

static void test_accelopt_fix__goes_on_from_what_was_rejected(void **state) {
    (void)state;
    set_width(1, 1, 1);
    set("fixer_steps", 2);
    s->opts.max_steps = 3;
    says("plan");
    says(REPLY("// ns 300", "// ns 90 // outcome crash"));
    says("nothing");
    says(REPLY("// ns 90 // outcome crash", "// ns 90"));
    kl_error e = {0};
    assert_ok(runs(&e));
    assert_contains(s->track.said[0].ptr, "// outcome crash");
    assert_contains(s->result.best->source.ptr, "// ns 90");
    assert_str(s->result.stopped, "steps");
}

/* ---- widths ------------------------------------------------------------------------------ */

/* Nothing works, so that there are no summaries: calls are plans and samples. */
static void test_accelopt_width__follows_steps_and_money(void **state) {
    static const struct {
        const char *what;
        int max_steps, beam, plans, samples;
        int64_t budget;
        int proposals, calls;
    } rows[] = {
        {"the full setting in two rounds: 4 + 8, 8 + 16", 0, 0, 0, 0, 0, 24, 36},
        {"three steps: 1 + 1, then 2 + 2", 3, 0, 0, 0, 0, 3, 6},
        {"one step", 1, 0, 0, 0, 0, 1, 2},
        {"what was set stays: a round of 1 x 2 x 3 and half a one", 9, 1, 2, 3, 0, 9, 12},
        /* 1; at what a call really costs 1 x 4 x 2; 2 x 4 x 1; 2 x 3 x 1; 1 */
        {"a dollar is little by the estimate", 0, 0, 0, 0, 1000000, 24, 44},
        {"a hundred dollars are enough for all", 0, 0, 0, 0, 100000000, 24, 36},
    };
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        kl_error e = {0};
        if (i) tear_down(state), set_up(state);
        print_message("%s\n", rows[i].what);
        s->opts.max_steps = rows[i].max_steps;
        s->track.base.budget_microusd = rows[i].budget;
        set_width(rows[i].beam, rows[i].plans, rows[i].samples);
        for (int r = 0; r < rows[i].calls; r++) says("I would rather talk.");
        assert_ok(runs(&e));
        assert_str(s->result.stopped, "steps");
        assert_int_equal(s->result.proposals, rows[i].proposals);
        assert_int_equal(s->track.next, rows[i].calls);
    }
}

/* By the estimate nothing fits, and one plan is tried.  Of the money that is left then, that of
 * five calls has to be there for the last one's reservation: two plans with a sample and a summary
 * each need six calls more, one needs three. */
static void test_accelopt_width__a_round_is_cut_to_the_money_that_is_left(void **state) {
    for (int wide = 0; wide < 2; wide++) {
        if (wide) tear_down(state), set_up(state);
        s->track.base.budget_microusd = 2000 + (wide ? 11000 : 10000);
        says("plan");
        says("nothing");
        says("plan");
        says(REPLY("// ns 300", "// ns 100"));
        const char *asked = last_asked();
        assert_contains(asked, wide ? "Give one plan" : "# Slow kernel");
    }
}

/* ---- ends -------------------------------------------------------------------------------- */

static void test_accelopt_end__whatever_is_said_steps_end_it(void **state) {
    static const char *const always[] = {"",
                                         "DONE: enough",
                                         "no edit at all",
                                         REPLY("// ns 300", "// ns 200"),
                                         REPLY("// ns 300", "// outcome crash"),
                                         REPLY("not there", "x")};
    for (size_t i = 0; i < KL_COUNT(always); i++) {
        kl_error e = {0};
        if (i) tear_down(state), set_up(state);
        s->opts.max_steps = 12;
        for (int r = 0; r < 60; r++) says(always[i]);
        assert_ok(runs(&e));
        assert_str(s->result.stopped, "steps");
        assert_int_equal(s->result.proposals, 12);
    }
}

static void test_accelopt_end__a_provider_that_fails_is_an_error(void **state) {
    for (int before = 0; before < 4; before++) {
        kl_error e = {0};
        if (before) tear_down(state), set_up(state);
        set_width(1, 1, 1);
        says("plan");
        says(REPLY("// ns 300", "// ns 200"));
        says("**Summary**");
        s->track.n_replies = before;
        fake_fails(&s->track, KL_EMODEL);
        assert_err(KL_EMODEL, runs(&e));
    }
}

static void test_accelopt_end__a_goal_ends_it_within_a_round(void **state) {
    (void)state;
    kl_error e = {0};
    s->opts.goal = 5;
    says("plan");
    says(REPLY("// ns 300", "// ns 100"));
    assert_ok(runs(&e));
    assert_str(s->result.stopped, "goal");
    assert_int_equal(s->track.next, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_accelopt_plan__is_quoted_data_for_who_executes_it),
        CASE(test_accelopt_plan__is_cut),
        CASE(test_accelopt_plan__that_never_came_is_executed_all_the_same),
        CASE(test_accelopt_beam__goes_on_from_the_fastest_of_the_round),
        CASE(test_accelopt_beam__loses_a_lead_and_the_search_keeps_it),
        CASE(test_accelopt_beam__a_failure_leaves_its_candidate_at_the_end),
        CASE(test_accelopt_memory__shows_a_loss_with_slow_and_fast_swapped),
        CASE(test_accelopt_memory__of_small_differences_there_is_none),
        CASE(test_accelopt_memory__takes_gains_to_half_and_losses_to_the_whole),
        CASE(test_accelopt_memory__no_optimization_found_is_no_experience),
        CASE(test_accelopt_memory__keeps_exp_n_and_new_ones_first),
        CASE(test_accelopt_memory__forgets_the_old_for_the_new),
        CASE(test_accelopt_fix__goes_on_from_what_was_rejected),
        CASE(test_accelopt_width__follows_steps_and_money),
        CASE(test_accelopt_width__a_round_is_cut_to_the_money_that_is_left),
        CASE(test_accelopt_end__whatever_is_said_steps_end_it),
        CASE(test_accelopt_end__a_provider_that_fails_is_an_error),
        CASE(test_accelopt_end__a_goal_ends_it_within_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
