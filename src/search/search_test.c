/* search_test.c - what policies make of replies and verdicts that are told beforehand: best by
 * verdict alone, ends that are ends. SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "run/fake_track.h"
#include "base/test.h"
#include <dirent.h>

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
                               .start = s->start};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    fake_track_close(&s->track);
    kl_arena_free(s->arena);
    return 0;
}

static void says(const char *text) { fake_says(&s->track, kl_str_of(text)); }

static void runs(const char *policy) {
    kl_error e = {0};
    assert_ok(
        kl_policy_run(kl_policy_find(kl_str_of(policy)), &s->result, &s->track.base, &s->opts, &e));
}

/* Intervals to a baseline that overlap say nothing: the two are timed against each other. */
static void test_search_gate__overlapping_intervals_end_in_a_duel(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 250 // spread 0.3"));
    says(REPLY("// ns 250 // spread 0.3", "// ns 255 // spread 0.3"));
    says("DONE: enough");
    runs("generate");
    assert_int_equal(s->result.improved, 1);
    assert_contains(s->result.best->source.ptr, "// ns 250");
    assert_int_equal(s->track.judged,
                     6); /* the start, two proposals, a comparison for each, and the best against
                            the start, which is the first comparison once more */
}

static void test_search_generate__best_is_the_fastest_that_passed(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 200"));                  /* better */
    says(REPLY("// ns 200", "// ns 100 // outcome wrong")); /* faster and wrong */
    says(REPLY("// ns 200", "// ns 210"));                  /* a preparation: current, not best */
    says("DONE: enough");
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 200");
    assert_str(s->result.stopped, "model says done");
    assert_int_equal(s->result.proposals, 4);
    assert_int_equal(s->result.passed, 2);
    assert_int_equal(s->result.improved, 1);
    assert_true(s->result.gain > 1.49 && s->result.gain < 1.51);
}

static void test_search_generate__a_preparation_is_what_the_next_edit_applies_to(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 310"));
    says(REPLY("// ns 310", "// ns 100"));
    says("DONE: enough");
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 100");
}

static void test_search_generate__the_start_stays_when_nothing_is_better(void **state) {
    (void)state;
    says("I would rather talk.");
    says(REPLY("// ns 300", "// ns 299")); /* within the noise */
    says("DONE: enough");
    runs("generate");
    assert_ptr_equal(s->result.best, s->start);
    assert_int_equal(s->result.improved, 0);
    assert_true(s->result.gain >= 1 && s->result.gain <= 1);
}

static void test_search_generate__no_money_is_an_end(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 200"));
    fake_fails(&s->track, KL_EBUDGET);
    runs("generate");
    assert_str(s->result.stopped, "budget");
    assert_contains(s->result.best->source.ptr, "// ns 200");
}

static void test_search_generate__a_recording_that_ends_is_an_end(void **state) {
    (void)state;
    s->track.model = "replay of fake";
    says(REPLY("// ns 300", "// ns 200"));
    runs("generate");
    assert_str(s->result.stopped, "recording ended");
    assert_contains(s->result.best->source.ptr, "// ns 200");
}

static void test_search_generate__a_recording_of_something_else_ends_in_order(void **state) {
    (void)state;
    s->track.model = "replay of fake";
    runs("generate");
    assert_str(s->result.stopped, "recording ended");
    assert_ptr_equal(s->result.best, s->start);
}

/* Then the first edit was no new best, and the second began from the start again. */
static void
test_search_generate__a_recorded_edit_finds_the_kernel_that_it_was_made_for(void **state) {
    (void)state;
    s->track.model = "replay of fake";
    says(REPLY("// ns 300", "// ns 290"));
    says(REPLY("// ns 300", "// ns 100"));
    says(REPLY("// ns 17", "// ns 10"));
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 100");
    assert_int_equal(s->result.gated, 2); /* what fits nothing is no edit, as ever */
}

static void test_search_generate__a_live_edit_that_does_not_fit_is_no_edit(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 290"));
    says(REPLY("// ns 300", "// ns 100"));
    says("DONE: enough");
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 290");
}

/* ---- the gate's call decides ------------------------------------------------------------- */

static void test_search_gate__a_duel_that_stays_open_is_undecided(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 250 // wide 0.3"));
    says("DONE: enough");
    runs("generate");
    assert_ptr_equal(s->result.best, s->start);
    assert_int_equal(s->result.passed, 1);
    assert_int_equal(s->result.call, KL_DECISION_SAME);
    assert_contains(s->track.said[0].ptr, "could not be told");
}

/* 1.2 x beside a floor of 20 % is no change that anybody could measure. */
static void test_search_gate__noise_makes_no_best(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 250 // floor 0.2"));
    says("DONE: enough");
    runs("generate");
    assert_ptr_equal(s->result.best, s->start);
    assert_int_equal(s->result.improved, 0);
}

static void test_search_gate__an_unstable_proposal_is_correct_and_no_best(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 250 // outcome unstable"));
    says(REPLY("// ns 250 // outcome unstable", "// ns 100"));
    says("DONE: enough");
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 100"); /* it could become current */
    assert_string_equal(s->track.rows[1].outcome, "unstable");
    assert_false(s->track.rows[1].best);
}

static void starts_from(const char *source) {
    kl_error e = {0};
    assert_ok(
        kl_kernel_parse(&s->start, s->arena, kl_str_of(source), KL_S("start.c"), NULL, NULL, &e));
    s->opts.start = s->start;
}

static void test_search_start__whose_time_does_not_settle_is_one(void **state) {
    (void)state;
    starts_from(HEAD "// ns 300 // outcome unstable\n");
    says(REPLY("// ns 300 // outcome unstable", "// ns 100"));
    says("DONE: enough");
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 100");
    assert_string_equal(s->track.rows[0].outcome, "unstable");
    assert_int_equal(s->result.call, KL_DECISION_FASTER);
}

static void test_search_reference__whose_time_does_not_settle_ends_nothing(void **state) {
    (void)state;
    kl_error e = {0};
    kl_kernel *target_kernel;
    assert_ok(kl_kernel_parse(&target_kernel, s->arena, KL_S(HEAD "// ns 90 // outcome unstable\n"),
                              KL_S("r.c"), NULL, NULL, &e));
    s->opts.target_kernel = target_kernel;
    s->opts.recover = 0.9;
    says(REPLY("// ns 300", "// ns 60"));
    says("DONE: enough");
    runs("generate");
    assert_str(s->result.stopped,
               "model says done"); /* a time that is not known is not recovered */
}

/* Far from the best by ratios to the baseline, and in the end not measurably faster than the start.
 */
static void test_search_end__a_best_that_cannot_be_told_from_the_start_says_so(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 100 // wide 0.9"));
    says("DONE: enough");
    runs("generate");
    assert_int_equal(s->result.call, KL_DECISION_UNDECIDED);
    assert_true(s->result.gain_timed);
    assert_contains(s->result.best->source.ptr, "// ns 100");
}

static void test_search_end__a_best_that_is_not_faster_gives_way_to_the_start(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 100 // floor 5"));
    says("DONE: enough");
    runs("generate");
    assert_int_equal(s->result.call, KL_DECISION_SAME);
    assert_ptr_equal(s->result.best, s->start);
    assert_true(s->result.gain >= 1 && s->result.gain <= 1);
}

static void test_search_generate__a_provider_that_fails_is_an_error(void **state) {
    (void)state;
    kl_error e = {0};
    fake_fails(&s->track, KL_EMODEL);
    assert_err(KL_EMODEL, kl_policy_run(kl_policy_find(KL_S("generate")), &s->result,
                                        &s->track.base, &s->opts, &e));
}

static void test_search_generate__a_reply_that_was_cut_off_is_not_used(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 200"));
    s->track.replies[0].stop = KL_STOP_TRUNCATED;
    says("DONE: enough");
    runs("generate");
    assert_ptr_equal(s->result.best, s->start);
    assert_int_equal(s->result.gated, 0);
}

static void test_search_generate__patience_and_steps_end_it(void **state) {
    (void)state;
    s->opts.patience = 2;
    for (int i = 0; i < 5; i++) says("nothing");
    runs("generate");
    assert_str(s->result.stopped, "patience");
    assert_int_equal(s->result.proposals, 2);
}

static void test_search_bestofn__attempts_know_nothing_of_each_other(void **state) {
    (void)state;
    s->opts.max_steps = 3;
    says(REPLY("// ns 300", "// ns 200"));
    says(REPLY("// ns 300", "// ns 150")); /* against the start, not against the attempt before */
    says(REPLY("// ns 300", "// ns 250"));
    runs("bestofn");
    assert_contains(s->result.best->source.ptr, "// ns 150");
    assert_int_equal(s->track.turns[0], 2); /* system and one question, however many attempts */
    assert_str(s->result.stopped, "steps");
}

static void test_search_start__has_to_pass(void **state) {
    (void)state;
    kl_error e = {0};
    assert_ok(kl_kernel_parse(&s->start, s->arena, KL_S(HEAD "// outcome wrong\n"), KL_S("start.c"),
                              NULL, NULL, &e));
    s->opts.start = s->start;
    assert_err(KL_EINVAL, kl_policy_run(kl_policy_find(KL_S("generate")), &s->result,
                                        &s->track.base, &s->opts, &e));
    assert_contains(e.message, "wrong");
}

/* ---- with cards -------------------------------------------------------------------------- */

static kl_library one_card(const char *patch) {
    kl_card *c = KL_NEW(s->arena, kl_card);
    static kl_str cases[] = {{"gemm", 4}}, surfaces[] = {{"c", 1}}, platforms[] = {{"fake", 4}};
    *c = (kl_card){
        .name = KL_S("unroll-c"),
        .action = KL_S("unroll"),
        .status = KL_CARD_ADMITTED,
        .intent = KL_S("the intent of the card"),
        .expected_gain = 1.5,
        .patch = kl_str_of(patch),
        .verified = {.cases = {cases, 1}, .surfaces = {surfaces, 1}, .platforms = {platforms, 1}}};
    return (kl_library){.cards = c, .n_cards = 1};
}

static void test_search_klineage__needs_a_library(void **state) {
    (void)state;
    kl_error e = {0};
    assert_err(KL_EINVAL, kl_policy_run(kl_policy_find(KL_S("klineage")), &s->result,
                                        &s->track.base, &s->opts, &e));
}

static void test_search_klineage__shows_cards_and_names_those_that_were_used(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    says("CARD: unroll-c\n" REPLY("// ns 300", "// ns 200"));
    says("DONE: enough");
    runs("klineage");
    assert_str(s->result.cards, "unroll-c");
    assert_contains(s->track.said[0].ptr, "the intent of the card");
}

#define CARRIER "```\nfor (;;)\n```\n\nthe edit as it was gated"

/* An arm shows less or more, and says in the row of the start what it was. */
static void test_search_klineage__an_arm_shows_what_it_says(void **state) {
    (void)state;
    kl_library l = one_card("");
    kl_cards_arm arm = {.shown = KLI_SHOW_INDEX, .note = KL_S("cards: names")};
    l.cards->carrier = KL_S(CARRIER);
    s->opts.library = &l;
    s->opts.arm = &arm;
    says("FETCH: unroll-c");
    says("DONE: enough");
    runs("klineage");
    assert_int_equal(s->result.proposals, 2); /* no card is shown on demand */
    assert_contains(s->track.said[0].ptr, "unroll-c | unroll | the intent of the card");
    assert_null(strstr(s->track.said[0].ptr, "unroll-c: fits"));
    assert_null(strstr(s->track.said[0].ptr, "for (;;)"));
    assert_str(kl_str_of(s->track.rows[0].locus), "cards: names");
}

static void test_search_klineage__the_arm_with_everything_shows_cards_whole(void **state) {
    (void)state;
    kl_library l = one_card("<<<<<<< SEARCH\n// ns 300\n=======\n// ns 10\n>>>>>>> REPLACE\n");
    kl_cards_arm arm = {.shown = KLI_SHOW_ALL};
    l.cards->carrier = KL_S(CARRIER);
    s->opts.library = &l;
    s->opts.arm = &arm;
    says("DONE: enough");
    runs("klineage");
    assert_contains(s->track.said[0].ptr, "the edit as it was gated");
    assert_int_equal(s->result.gated, 0); /* no patch is tried first */
}

static void test_search_klineage__a_withheld_card_is_a_line_and_no_more(void **state) {
    (void)state;
    kl_library l = one_card("");
    kl_str name = KL_S("unroll-c");
    kl_cards_arm arm = {.shown = KLI_SHOW_FITTING, .withheld = {&name, 1}};
    l.cards->carrier = KL_S(CARRIER);
    s->opts.library = &l;
    s->opts.arm = &arm;
    says("FETCH: unroll-c");
    says("DONE: enough");
    runs("klineage");
    assert_contains(s->track.said[0].ptr, "unroll-c | unroll | the intent of the card");
    assert_contains(s->track.said[0].ptr, "none: rely on your own judgement");
    assert_contains(s->track.said[0].ptr, "There is no card of this name");
    assert_null(strstr(s->track.said[0].ptr, "for (;;)"));
}

/* A line in front, and what fits behind the kernel. */
static void test_search_klineage__shows_the_best_in_few_words(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    l.cards->carrier = KL_S(CARRIER);
    says("DONE: enough");
    runs("klineage");
    assert_contains(s->track.said[0].ptr, "unroll-c | unroll | the intent of the card | ");
    assert_contains(s->track.said[0].ptr, "- unroll-c: fits; n = 0");
    assert_contains(s->track.said[0].ptr, "for (;;)");
    assert_null(strstr(s->track.said[0].ptr, "the edit as it was gated"));
}

/* The whole when it is asked for, which is a turn and no proposal. */
static void test_search_klineage__shows_a_card_whole_when_asked(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    l.cards->carrier = KL_S(CARRIER);
    says("FETCH: unroll-c");
    says("**FETCH:** `nobody-c`");
    says("CARD: unroll-c\n" REPLY("// ns 300", "// ns 200"));
    says("DONE: enough");
    runs("klineage");
    assert_int_equal(s->result.proposals, 2);
    assert_contains(s->track.said[0].ptr, "the edit as it was gated");
    assert_contains(s->track.said[0].ptr, "There is no card of this name");
    assert_str(s->result.cards, "unroll-c");
}

/* Who asks for nothing but cards comes to an end. */
static void test_search_klineage__asking_for_cards_ends(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    s->opts.max_steps = 2;
    for (int i = 0; i < 18; i++) says("FETCH: unroll-c");
    runs("klineage");
    assert_int_equal(s->result.proposals, 2);
    assert_str(s->result.stopped, "steps");
}

/* A line of the first message that no policy but this one explains. */
static void test_search_generate__fetches_nothing(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    says("FETCH: unroll-c");
    says("DONE: enough");
    runs("generate");
    assert_int_equal(s->result.proposals, 2);
    assert_contains(s->track.said[0].ptr, "no SEARCH/REPLACE block");
}

/* A name that no card has is no card, whoever says it. */
static void test_search_klineage__names_no_card_that_is_not_there(void **state) {
    (void)state;
    kl_library l = one_card("");
    s->opts.library = &l;
    says("CARD: made-up\n" REPLY("// ns 300", "// ns 200"));
    says("DONE: enough");
    runs("klineage");
    assert_contains(s->result.best->source.ptr, "// ns 200");
    assert_str(s->result.cards, "");
}

/* ---- the first request ------------------------------------------------------------------- */

#define MOST_TOKENS 7000
/* What the fake gate does not say: of the compiler, of its times, of a real machine. */
#define TOKENS_OF_COMPILED 900

typedef struct {
    size_t tokens;
    kl_str system;
} first_request;

static void keep_first(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    first_request *kept = ctx;
    (void)t;
    *out = (fake_reply){.text = KL_S("DONE: enough"), .stop = KL_STOP_END};
    if (n) return;
    for (int i = 0; i < q->n; i++) kept->tokens += (q->messages[i].text.len + 3) / 4;
    kept->system = kl_arena_copy(s->arena, q->messages[0].text);
    assert_int_equal(q->messages[0].role, KL_ROLE_SYSTEM);
    assert_true(q->messages[0].cache);
}

/* Of one task, with the shipped library; false where it has no such kernel. */
static bool first_request_of(first_request *out, const char *task, const char *naive) {
    kl_error e = {0};
    kl_task *t;
    kl_kernel *k;
    const kl_str dir = kl_arena_printf(s->arena, KL_TEST_ROOT "/tasks/%s", task);
    if (kl_task_load(&t, s->arena, dir.ptr, &e) ||
        kl_kernel_load(&k, s->arena, kl_arena_printf(s->arena, "%s/%s", dir.ptr, naive).ptr, NULL,
                       kl_ignored()))
        return false;
    *out = (first_request){0};
    s->opts.task = t;
    s->opts.start = k;
    s->opts.workload = kl_task_workload(t, KL_S(""), k->surface->on);
    assert_non_null(s->opts.workload);
    fake_track_close(&s->track);
    fake_track_open(&s->track, s->arena);
    fake_answers(&s->track, keep_first, out);
    runs("klineage");
    return true;
}

/* No request is long, and the system turns of a surface are the same bytes for every task, so that
 * a provider's cache serves every track with one. */
static void holds_first_requests(const char *naive) {
    first_request first = {0}, next;
    int n = 0;
    DIR *tasks = opendir(KL_TEST_ROOT "/tasks");
    assert_non_null(tasks);
    for (struct dirent *d; (d = readdir(tasks));) {
        if (*d->d_name == '.' || !first_request_of(&next, d->d_name, naive)) continue;
        if (!n++) first = next;
        if (next.tokens + TOKENS_OF_COMPILED > MOST_TOKENS)
            fail_msg("%s: %zu tokens", d->d_name, next.tokens + TOKENS_OF_COMPILED);
        assert_true(kl_str_eq(next.system, first.system));
    }
    closedir(tasks);
    assert_true(n > 4);
}

static void test_search_klineage__first_requests_are_short_and_share_their_system_turn(void **p) {
    (void)p;
    kl_error e = {0};
    kl_library *l;
    assert_ok(kl_library_open(&l, s->arena, KL_TEST_ROOT "/library", &e));
    s->opts.library = l;
    holds_first_requests("naive.c");
    holds_first_requests("naive.cu");
}

/* For once the baseline could not be timed, and the kernel was timed against another one: ratios
 * say nothing, side by side they do. */
static void test_search_generate__a_ratio_to_something_else_leads_to_a_duel(void **state) {
    (void)state;
    says(REPLY("// ns 300", "// ns 250 // baseline other"));
    says(REPLY("// ns 250 // baseline other", "// ns 200"));
    says("DONE: enough");
    runs("generate");
    assert_contains(s->result.best->source.ptr, "// ns 200");
    assert_int_equal(s->result.improved, 2);
    assert_true(s->track.rows[1].best && !(s->track.rows[1].ratio > 0));
}

static void test_search_klineage__a_patch_that_fits_costs_nothing(void **state) {
    (void)state;
    kl_library l = one_card(REPLY("// ns 300", "// ns 120"));
    s->opts.library = &l;
    says("DONE: enough");
    runs("klineage");
    assert_contains(s->result.best->source.ptr, "// ns 120");
    assert_str(s->result.cards, "unroll-c");
    assert_int_equal(s->result.proposals, 1); /* the DONE alone was asked for */
}

static void test_search_generate__sees_no_card(void **state) {
    (void)state;
    kl_library l = one_card(REPLY("// ns 300", "// ns 120"));
    s->opts.library = &l;
    says("DONE: enough");
    runs("generate");
    assert_ptr_equal(s->result.best, s->start);
    assert_null(strstr(s->track.said[0].ptr, "the intent of the card"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_search_generate__best_is_the_fastest_that_passed),
        CASE(test_search_generate__a_preparation_is_what_the_next_edit_applies_to),
        CASE(test_search_generate__the_start_stays_when_nothing_is_better),
        CASE(test_search_generate__no_money_is_an_end),
        CASE(test_search_generate__a_recording_that_ends_is_an_end),
        CASE(test_search_generate__a_recording_of_something_else_ends_in_order),
        CASE(test_search_generate__a_recorded_edit_finds_the_kernel_that_it_was_made_for),
        CASE(test_search_generate__a_live_edit_that_does_not_fit_is_no_edit),
        CASE(test_search_gate__a_duel_that_stays_open_is_undecided),
        CASE(test_search_gate__noise_makes_no_best),
        CASE(test_search_gate__an_unstable_proposal_is_correct_and_no_best),
        CASE(test_search_start__whose_time_does_not_settle_is_one),
        CASE(test_search_reference__whose_time_does_not_settle_ends_nothing),
        CASE(test_search_end__a_best_that_cannot_be_told_from_the_start_says_so),
        CASE(test_search_end__a_best_that_is_not_faster_gives_way_to_the_start),
        CASE(test_search_generate__a_provider_that_fails_is_an_error),
        CASE(test_search_generate__a_reply_that_was_cut_off_is_not_used),
        CASE(test_search_generate__patience_and_steps_end_it),
        CASE(test_search_bestofn__attempts_know_nothing_of_each_other),
        CASE(test_search_start__has_to_pass),
        CASE(test_search_klineage__needs_a_library),
        CASE(test_search_gate__overlapping_intervals_end_in_a_duel),
        CASE(test_search_klineage__shows_cards_and_names_those_that_were_used),
        CASE(test_search_klineage__shows_the_best_in_few_words),
        CASE(test_search_klineage__an_arm_shows_what_it_says),
        CASE(test_search_klineage__the_arm_with_everything_shows_cards_whole),
        CASE(test_search_klineage__a_withheld_card_is_a_line_and_no_more),
        CASE(test_search_klineage__shows_a_card_whole_when_asked),
        CASE(test_search_klineage__asking_for_cards_ends),
        CASE(test_search_generate__fetches_nothing),
        CASE(test_search_klineage__names_no_card_that_is_not_there),
        CASE(test_search_klineage__first_requests_are_short_and_share_their_system_turn),
        CASE(test_search_generate__a_ratio_to_something_else_leads_to_a_duel),
        CASE(test_search_klineage__a_patch_that_fits_costs_nothing),
        CASE(test_search_generate__sees_no_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
