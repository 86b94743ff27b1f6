/* learn_test.c - from a lineage to an admitted card, with replies and verdicts that are told
 * beforehand. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "lineage/sample.h"

#define LIFTED                                                                                     \
    "## Intent\nCopy an operand into the order in which it is read.\n\n## Anchor\nThe inner "      \
    "loop.\n\n## "                                                                                 \
    "Carrier\n```\npack(b)\n```\n\n"                                                               \
    "## Preconditions\n- data: [dtype == float32] - floats\n\n## Effect\nFewer lines are "         \
    "touched. It gains "                                                                           \
    "99x.\n\n## Risks\n- wrong: a tail\n\n"                                                        \
    "## Scope\n- cases: gemm conv2d\n"

/* A kernel that no card was born from, without the packing. */
#define HELD_OUT(ns) SAMPLE_DIRECT(ns, SAMPLE_PRAGMA) "/* held out */\n"

static kl_card lifted(sample *s) {
    kl_error e = {0};
    kl_group *groups;
    kl_card *card;
    int n;
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    kl_skill_group(&groups, &n, s->arena, &s->lineage, 1);
    assert_int_equal(n, 1); /* the edge that does not pay teaches nothing */
    fake_says(&s->track, KL_S(LIFTED));
    assert_ok(kl_skill_lift(&card, &s->track.base, &groups[0], &e));
    return *card;
}

static void test_skill_lift__computes_what_can_be_computed(void **state) {
    kl_card c = lifted(*state);
    assert_str(c.name, "pack-b-c");
    assert_int_equal(c.status, KL_CARD_LIFTED);
    assert_true(kli_words_have(c.provides, KL_S("source.buffers")));
    assert_true(c.expected_gain > 1.99 &&
                c.expected_gain < 2.01); /* measured, whatever the model claims */
    assert_int_equal(c.n_trials, 1);
    assert_str(c.trials[0].kind, "birth");
    assert_int_equal(c.verified.cases.n, 1);
    assert_true(kli_names_have(&c.declared.cases, KL_S("conv2d")));
    assert_str(c.pre[0].fact, "dtype");
    assert_contains(c.intent.ptr, "order in which it is read");
    assert_contains(c.carrier.ptr, "<<<<<<< SEARCH");
}

static void test_skill_lift__stands_without_a_model(void **state) {
    sample *s = *state;
    kl_error e = {0};
    kl_group *groups;
    kl_card *c;
    int n;
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    kl_skill_group(&groups, &n, s->arena, &s->lineage, 1);
    fake_says(&s->track, KL_S("nothing of use"));
    assert_ok(kl_skill_lift(&c, &s->track.base, &groups[0], &e));
    assert_true(c->intent.len > 0 && c->anchor.len > 0 && c->n_pre > 0);
}

/* ---- coverage ---------------------------------------------------------------------------- */

/* Its one edge that pays, as the library grows. */
static void test_skill_coverage__a_card_or_the_reason_why_not(void **state) {
    sample *s = *state;
    kl_card c = lifted(s);
    kl_library l = {0};
    kl_coverage *rows;
    int n;
    kl_library_coverage(&rows, &n, s->arena, &l, &s->lineage, 1);
    assert_int_equal(n, 1); /* the other does not pay */
    assert_null(rows[0].card);
    assert_str(rows[0].why, "not lifted yet: it would be pack-b-c");
    l = (kl_library){.cards = &c, .n_cards = 1};
    kl_library_coverage(&rows, &n, s->arena, &l, &s->lineage, 1);
    assert_ptr_equal(rows[0].card, &c);
    assert_contains(rows[0].why.ptr, "candidate");
    c.status = KL_CARD_REJECTED;
    kl_library_coverage(&rows, &n, s->arena, &l, &s->lineage, 1);
    assert_contains(rows[0].why.ptr, "rejected, no held-out start fits it");
    c.status = KL_CARD_ADMITTED;
    kl_library_coverage(&rows, &n, s->arena, &l, &s->lineage, 1);
    assert_int_equal(rows[0].why.len, 0);
    c.n_trials = 0; /* the same action, from elsewhere */
    kl_library_coverage(&rows, &n, s->arena, &l, &s->lineage, 1);
    assert_contains(rows[0].why.ptr, "pack-b-c is admitted");
    s->lineage.edges[rows[0].edge].witness = KL_S("failed");
    kl_library_coverage(&rows, &n, s->arena, &l, &s->lineage, 1);
    assert_contains(rows[0].why.ptr, "it failed");
}

/* ---- admit ------------------------------------------------------------------------------- */

/* What is answered on any start: with the card, without, with another card in its place; NULL:
 * nothing to do.  "" for what is left out of a recording. */
typedef struct {
    const char *with, *without, *placebo;
    int asked;
} script;

static bool asks(const kl_request *q, const char *words) {
    return memmem(q->messages[1].text.ptr, q->messages[1].text.len, words, strlen(words)) != NULL;
}

static const char LATER[] = "later";

static void answers(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    script *x = ctx;
    const char *made = asks(q, "Nothing: use what you know") ? x->without
                       : asks(q, "<card name=\"pack-b-c\"")  ? x->with
                                                             : x->placebo;
    (void)n;
    x->asked++;
    if (made == LATER) return (void)(out->err = KL_PENDING);
    if (made && !*made) return (void)(out->err = KL_ENOENT);
    if (!made) return (void)(out->text = KL_S("DONE: nothing to gain"));
    const kl_str edits = kl_edits_between(kl_track_arena(t), q->subject->source, kl_str_of(made));
    out->text = kl_arena_printf(kl_track_arena(t),
                                "Talk.\nACTION: pack_b\nLOCUS: gemm()\nWHY: it is faster\n%.*s",
                                KL_STR_ARG(edits));
}

#define FAST SAMPLE_PACKED("200", "row")
#define SLOW SAMPLE_PACKED("390", "row")

static kl_start start_of(sample *s, const char *task, const char *name, const char *source) {
    kl_task *t = KL_NEW(s->arena, kl_task);
    *t = *s->task;
    t->name = kl_str_of(task);
    return (kl_start){.task = t,
                      .workload = s->workload,
                      .name = kl_str_of(name),
                      .source = kl_str_of(source),
                      .surface = s->expert->surface};
}

/* One of the card's own task, one of another. */
static void two_starts(kl_start out[2], sample *s) {
    out[0] = start_of(s, "gemm", "own.c", HELD_OUT("400"));
    out[1] = start_of(s, "other", "other.c", HELD_OUT("401"));
}

static kl_err admit_with(sample *s, kl_card *c, script *x, const kl_start *starts, int n,
                         const kl_admit_opts *o, kl_library **kept) {
    kl_error e = {0};
    kl_str dir;
    x->asked = 0;
    fake_answers(&s->track, answers, x);
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    const kl_err err = kl_skill_admit(c, &s->track.base, dir.ptr, starts, n, o, &e);
    if (!err) assert_ok(kl_library_load(kept, s->arena, dir.ptr, &e));
    kli_fs_remove_tree(dir.ptr);
    return err;
}

/* On both starts, one try each, no placebo. */
static void admits(sample *s, kl_card *c, script x, kl_card_status expected) {
    kl_start starts[2];
    kl_library *l;
    two_starts(starts, s);
    assert_int_equal(admit_with(s, c, &x, starts, 2, &(kl_admit_opts){.tries = 1}, &l), KL_OK);
    assert_int_equal(c->status, expected);
    assert_int_equal(l->n_cards, 1);
    assert_int_equal(l->cards[0].status, expected);
    assert_int_equal(l->cards[0].n_trials, c->n_trials);
    assert_int_equal(l->cards[0].n_controls, c->n_controls);
    assert_false(l->cards[0].edited);
}

static void test_skill_admit__what_adds_on_two_kinds_of_starts(void **state) {
    kl_uplift u;
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = FAST, .without = SLOW}, KL_CARD_ADMITTED);
    kl_card_uplift(&u, &c, KL_OVER_NONE);
    assert_int_equal(u.pairs, 3); /* the least that says anything */
    assert_int_equal(u.starts, 2);
    assert_int_equal(u.foreign, 1);
    assert_true(u.log_gain.low > 0.6 && u.log_gain.high < 0.8 && u.success.mean > 0.99);
    assert_true(c.trials[1].held_out && c.trials[1].accepted && c.trials[1].pair == 1);
    assert_false(c.trials[1].foreign);
    assert_true(c.trials[2].foreign);
    assert_str(c.controls[0].kind, "none");
    assert_false(c.controls[0].accepted);
    assert_contains(c.verification.ptr, "over no card, 3 pairs on 2 starts (1 of other work)");
    kl_card_uplift(&u, &c, KL_OVER_PLACEBO);
    assert_int_equal(u.pairs, 0);
}

/* The model alone is as good: whatever it reaches with the card is not the card's. */
static void test_skill_admit__what_the_model_does_by_itself_is_no_uplift(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = FAST, .without = FAST}, KL_CARD_REJECTED);
    assert_int_equal(c.n_trials, 4);
    assert_true(c.trials[1].accepted && c.trials[2].accepted && c.trials[3].accepted);
    assert_contains(c.verification.ptr, "it adds nothing");
}

/* So does any other card of its length. */
static void test_skill_admit__what_a_placebo_does_as_well_is_no_uplift(void **state) {
    sample *s = *state;
    kl_start starts[2];
    kl_library *l;
    kl_card c = lifted(s), again = c, other = c;
    script x = {.with = FAST, .without = SLOW, .placebo = FAST};
    other.name = KL_S("another-c");
    two_starts(starts, s);
    const kl_admit_opts o = {.tries = 1, .placebo = &other};
    assert_int_equal(admit_with(s, &c, &x, starts, 2, &o, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_REJECTED);
    assert_int_equal(x.asked, 9);
    assert_contains(c.verification.ptr, "over a placebo");
    x.placebo = SLOW;
    assert_int_equal(admit_with(s, &again, &x, starts, 2, &o, &l), KL_OK);
    assert_int_equal(again.status, KL_CARD_ADMITTED);
}

/* Nothing of three pairs waits for anything else of them. */
static void test_skill_admit__what_is_open_is_asked_for_together(void **state) {
    sample *s = *state;
    kl_start starts[2];
    kl_library *l;
    kl_card c = lifted(s), again = c, other = c;
    script x = {.with = LATER, .without = SLOW, .placebo = LATER};
    other.name = KL_S("another-c");
    two_starts(starts, s);
    const kl_admit_opts o = {.tries = 1, .placebo = &other};
    assert_int_equal(admit_with(s, &c, &x, starts, 2, &o, &l), KL_PENDING);
    assert_int_equal(x.asked, 9);
    x = (script){.with = FAST, .without = SLOW, .placebo = SLOW};
    assert_int_equal(admit_with(s, &again, &x, starts, 2, &o, &l), KL_OK);
    assert_int_equal(x.asked, 9);
    assert_int_equal(again.status, KL_CARD_ADMITTED);
}

/* Once, on one kernel, by luck. */
static void test_skill_admit__one_success_admits_nothing(void **state) {
    sample *s = *state;
    kl_library *l;
    kl_card c = lifted(s);
    const kl_start one = start_of(s, "gemm", "own.c", HELD_OUT("400"));
    script x = {.with = FAST, .without = SLOW};
    assert_int_equal(admit_with(s, &c, &x, &one, 1, &(kl_admit_opts){.tries = 1}, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_TRIAL);
    assert_int_equal(x.asked, 0); /* it could not be admitted by that */
    assert_contains(c.verification.ptr, "two held-out starts");
    kl_start both[2] = {one, start_of(s, "gemm", "again.c", HELD_OUT("402"))};
    assert_int_equal(admit_with(s, &c, &x, both, 2, &(kl_admit_opts){.tries = 1}, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_TRIAL); /* both of the task that it was lifted from */
}

static void test_skill_admit__too_little_is_rejected_and_kept(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = SAMPLE_PACKED("300", "row"), .without = SLOW},
           KL_CARD_REJECTED); /* 1.33x of the 1.87x that are needed */
    assert_false(c.trials[1].accepted);
    assert_contains(c.trials[1].why.ptr, "that was needed");
    assert_int_equal(c.n_trials, 1 + 6);
}

static void test_skill_admit__a_wrong_kernel_is_no_success(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = SAMPLE_PACKED("100 // outcome wrong", "row")},
           KL_CARD_REJECTED);
    assert_str(c.trials[1].outcome, "wrong");
}

static void test_skill_admit__speed_without_the_trait_is_no_success(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = SAMPLE_DIRECT("100", SAMPLE_PRAGMA) "/* another */\n"},
           KL_CARD_REJECTED);
    assert_contains(c.trials[1].why.ptr, "without what the card provides");
}

static void test_skill_admit__what_else_came_along_is_named(void **state) {
    sample *s = *state;
    kl_start starts[2];
    kl_library *l;
    kl_card c = lifted(s);
    script x = {.with = FAST, .without = SLOW};
    starts[0] = start_of(s, "gemm", "own.c", SAMPLE_DIRECT("400", "") "/* held out */\n");
    starts[1] = start_of(s, "other", "other.c", HELD_OUT("401"));
    assert_int_equal(admit_with(s, &c, &x, starts, 2, &(kl_admit_opts){.tries = 1}, &l), KL_OK);
    for (int i = 1; i < c.n_trials; i++) {
        const bool bare = kl_str_eq(c.trials[i].start_name, KL_S("own.c")); /* has no pragma */
        assert_int_equal(c.trials[i].also.len > 0, bare);
    }
}

static void test_skill_admit__a_state_it_was_born_from_is_not_held_out(void **state) {
    sample *s = *state;
    kl_library *l;
    kl_card c = lifted(s);
    script x = {.with = FAST};
    const kl_start born = start_of(s, "gemm", "own.c", SAMPLE_MIDDLE);
    assert_int_equal(admit_with(s, &c, &x, &born, 1, NULL, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_REJECTED);
    assert_int_equal(c.n_trials, 1);
    assert_contains(c.verification.ptr, "no held-out start");
}

/* A contract that holds on its own result, or refuses its own start, is found before anybody is
 * asked. */
static void test_skill_admit__a_wrong_precondition_is_refused_for_nothing(void **state) {
    sample *s = *state;
    kl_start starts[3];
    kl_library *l;
    kl_str wrong = KL_S("op.recurrence"), there = KL_S("not op.contraction");
    kl_card c = lifted(s);
    script x = {.with = FAST, .without = SLOW};
    two_starts(starts, s);
    starts[2] = start_of(s, "gemm", "sample/K1", SAMPLE_MIDDLE);
    c.needs = &wrong, c.n_needs = 1;
    c.brings = &there, c.n_brings = 1;
    assert_int_equal(admit_with(s, &c, &x, starts, 3, &(kl_admit_opts){.tries = 1}, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_REJECTED);
    assert_int_equal(x.asked, 0);
    assert_contains(c.verification.ptr, "its contract does not hold on its start");
}

/* The card itself was born from nothing here, so what it says of itself decides where it may be
 * tried. */
static void test_skill_admit__an_imported_card_can_be_admitted(void **state) {
    sample *s = *state;
    kl_library *l;
    kl_start starts[2];
    kl_card c = {.name = KL_S("pack-b-c"),
                 .action = KL_S("pack_b"),
                 .status = KL_CARD_LIFTED,
                 .intent = KL_S("pack")};
    kl_card elsewhere = c;
    script x = {.with = FAST, .without = SLOW};
    two_starts(starts, s);
    kli_names_add(&c.declared.surfaces, s->arena, KL_S("c"));
    kli_names_add(&elsewhere.declared.surfaces, s->arena, KL_S("cuda"));
    assert_int_equal(admit_with(s, &elsewhere, &x, starts, 2, NULL, &l), KL_OK);
    assert_int_equal(elsewhere.status, KL_CARD_REJECTED);
    assert_int_equal(elsewhere.n_trials, 0);
    admits(s, &c, x, KL_CARD_ADMITTED);
    assert_true(kli_names_have(&c.verified.surfaces, KL_S("c")));
    assert_true(kli_names_have(&c.verified.cases, s->task->case_name));
}

/* A kernel that is wrong here says nothing of a card: nobody is asked, nothing is held against the
 * card, the next one is tried. */
static void test_skill_admit__a_start_that_is_wrong_is_no_trial(void **state) {
    sample *s = *state;
    kl_library *l;
    kl_start starts[3];
    kl_card c = lifted(s);
    script x = {.with = FAST, .without = SLOW};
    two_starts(starts + 1, s);
    starts[0] = start_of(s, "gemm", "wrong.c", HELD_OUT("400 // outcome wrong"));
    assert_int_equal(admit_with(s, &c, &x, starts, 3, &(kl_admit_opts){.tries = 1}, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_ADMITTED);
    for (int i = 1; i < c.n_trials; i++)
        assert_string_not_equal(c.trials[i].start_name.ptr, "wrong.c");
}

/* Evidence of several runs adds up; the same run again tells its own again. */
static void test_skill_admit__pairs_of_other_runs_count_and_its_own_once(void **state) {
    sample *s = *state;
    kl_library *l;
    kl_start starts[2];
    kl_uplift u;
    kl_card c = lifted(s);
    script x = {.with = FAST, .without = SLOW};
    two_starts(starts, s);
    kl_admit_opts o = {.tries = 1, .trials = 2, .run = "run 1"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(admit_with(s, &c, &x, starts, 2, &o, &l), KL_OK);
        assert_int_equal(c.status, KL_CARD_REJECTED); /* two pairs say nothing yet */
        kl_card_uplift(&u, &c, KL_OVER_NONE);
        assert_int_equal(u.pairs, 2);
    }
    o.run = "run 2";
    assert_int_equal(admit_with(s, &c, &x, starts, 2, &o, &l), KL_OK);
    assert_int_equal(c.status, KL_CARD_ADMITTED);
    kl_card_uplift(&u, &c, KL_OVER_NONE);
    assert_int_equal(u.pairs, 3);
}

/* What was admitted, by whatever rule, and adds nothing now. */
static void test_skill_admit__a_card_without_uplift_is_retired(void **state) {
    kl_card c = lifted(*state);
    c.status = KL_CARD_ADMITTED;
    admits(*state, &c, (script){.with = FAST, .without = FAST}, KL_CARD_RETIRED);
    assert_contains(c.verification.ptr, "Retired: it adds nothing");
}

/* The same gain for less: no more than half the proposals. */
static void test_skill_admit__as_good_for_less_money_is_an_uplift(void **state) {
    kl_uplift u = {.pairs = 3, .log_gain = {0, -0.01, 0.01}, .dollars = {-0.05, -0.06, -0.04}};
    (void)state;
    assert_true(kl_uplift_pays(&u));
    assert_false(kl_uplift_futile(&u));
    u.log_gain.low = -0.3;
    assert_false(kl_uplift_pays(&u));
    u.log_gain = (kl_difference){0, -0.005, 0.005};
    u.dollars = (kl_difference){0.01, 0, 0.02};
    assert_false(kl_uplift_pays(&u));
    assert_true(kl_uplift_futile(&u));
}

/* A pair with the card, and without it: so much faster. */
static void add_pair_to(kl_card *c, kl_arena *a, int pair, double with, double without) {
    kl_trial_record r = {.kind = KL_S("admit"),
                         .pair = pair,
                         .outcome = KL_S("pass"),
                         .gain = with,
                         .low = with,
                         .high = with,
                         .spent_microusd = 2000};
    *KL_PUSH(a, c->trials, c->n_trials) = r;
    r.kind = kl_str_of(kl_control_name(KL_OVER_NONE));
    r.gain = r.low = r.high = without;
    r.spent_microusd = 1000;
    *KL_PUSH(a, c->controls, c->n_controls) = r;
}

/* Three pairs that won hold out for a fourth; one that lost among them is too many for six. */
static void test_skill_admit__an_uplift_out_of_reach(void **state) {
    sample *s = *state;
    kl_card won = {0}, lost = {0};
    assert_true(kl_card_uplift_in_reach(&won, KL_OVER_NONE, 0));
    for (int pair = 1; pair <= 3; pair++) {
        add_pair_to(&won, s->arena, pair, 2 + 0.4 * pair, 2);
        add_pair_to(&lost, s->arena, pair, pair == 2 ? 1.5 : 4, 2);
    }
    assert_false(kl_card_uplift_in_reach(&won, KL_OVER_NONE, 0));
    assert_true(kl_card_uplift_in_reach(&won, KL_OVER_NONE, 3));
    assert_false(kl_card_uplift_in_reach(&lost, KL_OVER_NONE, 3));
    assert_true(kl_card_uplift_in_reach(&lost, KL_OVER_NONE, 60));
}

/* What the run finds out of the placebo's own card changes no question that was asked. */
static void test_skill_admit__a_placebo_stays_as_it_was(void **state) {
    sample *s = *state;
    kl_card c = lifted(s), cards[2] = {c, c};
    const kl_library l = {.cards = cards, .n_cards = 2};
    cards[0].action = cards[1].action = KL_S("prefetch");
    cards[1].intent = kl_arena_printf(s->arena, "%.*s %0*d", KL_STR_ARG(c.intent), 900, 0);
    const kl_str before = kl_card_lesson(s->arena, &cards[0]);
    assert_ptr_equal(kl_card_placebo(&l, s->arena, &c), &cards[0]);
    for (int pair = 1; pair <= 12; pair++) add_pair_to(&cards[0], s->arena, pair, 2, 2);
    assert_true(kl_card_prompt(s->arena, &cards[0]).len > before.len + 600);
    assert_true(kl_str_eq(kl_card_lesson(s->arena, &cards[0]), before));
    assert_ptr_equal(kl_card_placebo(&l, s->arena, &c), &cards[0]);
}

/* ---- what could not be measured is no pair ----------------------------------------------- */

static void test_skill_admit__a_time_that_does_not_settle_leaves_the_card_open(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = SAMPLE_PACKED("200 // wide 0.3", "row")}, KL_CARD_TRIAL);
    assert_str(c.trials[1].outcome, "unstable");
    assert_false(kl_trial_decided(&c.trials[1]));
    assert_int_equal(c.n_controls, 0); /* nothing to compare with */
    assert_contains(c.verification.ptr, "klineage admit pack-b-c");
    admits(*state, &c, (script){.with = FAST, .without = SLOW}, KL_CARD_ADMITTED);
}

/* 2 x settled, and identical code differed by 60 % in the same minute. */
static void test_skill_admit__a_gain_within_the_noise_leaves_the_card_open(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, (script){.with = SAMPLE_PACKED("200 // floor 0.6", "row")}, KL_CARD_TRIAL);
    assert_str(c.trials[1].outcome, "undecided");
    assert_str(c.trials[1].call, "same");
    assert_true(c.trials[1].noise > 0.59 && c.trials[1].noise < 0.61);
}

static void test_skill_admit__an_admitted_card_stays_so_when_nothing_was_decided(void **state) {
    kl_card c = lifted(*state);
    c.status = KL_CARD_ADMITTED;
    admits(*state, &c, (script){.with = SAMPLE_PACKED("200 // wide 0.3", "row")}, KL_CARD_ADMITTED);
    assert_contains(c.verification.ptr, "stays admitted");
}

/* A recording of round trips has no answers of controls. */
static void test_skill_admit__a_recording_without_controls_ends_in_order(void **state) {
    sample *s = *state;
    kl_start starts[2];
    kl_library *l;
    kl_card c = lifted(s);
    two_starts(starts, s);
    s->track.model = "replay of fake";
    s->track.n_replies = s->track.next = 0;
    sample_says(s, "pack_b", HELD_OUT("400"), FAST);
    kl_error e = {0};
    kl_str dir;
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    assert_ok(
        kl_skill_admit(&c, &s->track.base, dir.ptr, starts, 2, &(kl_admit_opts){.tries = 1}, &e));
    assert_ok(kl_library_load(&l, s->arena, dir.ptr, &e));
    kli_fs_remove_tree(dir.ptr);
    assert_int_equal(c.status, KL_CARD_TRIAL);
    assert_int_equal(c.n_trials, 2);
    assert_true(c.trials[1].accepted);
    assert_contains(c.verification.ptr, "no further answer");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_skill_lift__computes_what_can_be_computed),
        CASE(test_skill_lift__stands_without_a_model),
        CASE(test_skill_coverage__a_card_or_the_reason_why_not),
        CASE(test_skill_admit__what_adds_on_two_kinds_of_starts),
        CASE(test_skill_admit__what_the_model_does_by_itself_is_no_uplift),
        CASE(test_skill_admit__what_a_placebo_does_as_well_is_no_uplift),
        CASE(test_skill_admit__what_is_open_is_asked_for_together),
        CASE(test_skill_admit__one_success_admits_nothing),
        CASE(test_skill_admit__too_little_is_rejected_and_kept),
        CASE(test_skill_admit__a_wrong_kernel_is_no_success),
        CASE(test_skill_admit__speed_without_the_trait_is_no_success),
        CASE(test_skill_admit__what_else_came_along_is_named),
        CASE(test_skill_admit__a_state_it_was_born_from_is_not_held_out),
        CASE(test_skill_admit__a_wrong_precondition_is_refused_for_nothing),
        CASE(test_skill_admit__an_imported_card_can_be_admitted),
        CASE(test_skill_admit__a_start_that_is_wrong_is_no_trial),
        CASE(test_skill_admit__pairs_of_other_runs_count_and_its_own_once),
        CASE(test_skill_admit__a_card_without_uplift_is_retired),
        CASE(test_skill_admit__as_good_for_less_money_is_an_uplift),
        CASE(test_skill_admit__an_uplift_out_of_reach),
        CASE(test_skill_admit__a_placebo_stays_as_it_was),
        CASE(test_skill_admit__a_time_that_does_not_settle_leaves_the_card_open),
        CASE(test_skill_admit__a_gain_within_the_noise_leaves_the_card_open),
        CASE(test_skill_admit__an_admitted_card_stays_so_when_nothing_was_decided),
        CASE(test_skill_admit__a_recording_without_controls_ends_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
