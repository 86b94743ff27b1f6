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

/* ---- admit ------------------------------------------------------------------------------- */

static void admits(sample *s, kl_card *c, const char *start, const char *made,
                   kl_card_status expected) {
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_start one = {.task = s->task,
                    .workload = s->workload,
                    .name = KL_S("held-out.c"),
                    .source = kl_str_of(start),
                    .surface = s->expert->surface};
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    if (made) sample_says(s, "pack_b", start, made);
    assert_ok(
        kl_skill_admit(c, &s->track.base, dir.ptr, &one, 1, &(kl_admit_opts){.tries = 1}, &e));
    assert_int_equal(c->status, expected);
    assert_ok(kl_library_load(&l, s->arena, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1);
    assert_int_equal(l->cards[0].status, expected);
    assert_int_equal(l->cards[0].n_trials, c->n_trials);
    assert_false(l->cards[0].edited);
    kli_fs_remove_tree(dir.ptr);
}

static void test_skill_admit__a_round_trip_that_reproduces_the_effect(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("200", "row"), KL_CARD_ADMITTED);
    assert_true(c.trials[1].held_out && c.trials[1].accepted);
    assert_true(c.trials[1].gain > 1.99 && c.trials[1].gain < 2.01);
}

static void test_skill_admit__too_little_is_rejected_and_kept(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("300", "row"),
           KL_CARD_REJECTED); /* 1.33x of the 1.87x that are needed */
    assert_int_equal(c.n_trials, 2);
    assert_false(c.trials[1].accepted);
    assert_contains(c.trials[1].why.ptr, "that was needed");
}

static void test_skill_admit__a_wrong_kernel_is_no_success(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("100 // outcome wrong", "row"),
           KL_CARD_REJECTED);
    assert_str(c.trials[1].outcome, "wrong");
}

static void test_skill_admit__speed_without_the_trait_is_no_success(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_DIRECT("100", SAMPLE_PRAGMA) "/* another */\n",
           KL_CARD_REJECTED);
    assert_contains(c.trials[1].why.ptr, "without what the card provides");
}

static void test_skill_admit__a_state_it_was_born_from_is_not_held_out(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, SAMPLE_MIDDLE, NULL, KL_CARD_REJECTED);
    assert_int_equal(c.n_trials, 1);
    assert_contains(c.verification.ptr, "no held-out start");
}

/* The card itself was born from nothing here, so what it says of itself decides where it may be
 * tried. */
static void test_skill_admit__an_imported_card_can_be_admitted(void **state) {
    kl_card c = {.name = KL_S("pack"),
                 .action = KL_S("pack_b"),
                 .status = KL_CARD_LIFTED,
                 .intent = KL_S("pack")};
    kl_card elsewhere = c;
    kl_arena *a = ((sample *)*state)->arena;
    kli_names_add(&c.declared.surfaces, a, KL_S("c"));
    kli_names_add(&elsewhere.declared.surfaces, a, KL_S("cuda"));
    admits(*state, &elsewhere, HELD_OUT("400"), NULL, KL_CARD_REJECTED);
    assert_int_equal(elsewhere.n_trials, 0);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("200", "row"), KL_CARD_ADMITTED);
    assert_true(kli_names_have(&c.verified.surfaces, KL_S("c")));
    assert_true(kli_names_have(&c.verified.cases, ((sample *)*state)->task->case_name));
}

/* A kernel that is wrong here says nothing of a card: nobody is asked, nothing is held against the
 * card, the next one is tried. */
static void test_skill_admit__a_start_that_is_wrong_is_no_trial(void **state) {
    sample *s = *state;
    kl_error e = {0};
    kl_str dir;
    kl_card c = lifted(s);
    kl_start starts[2] = {{.task = s->task,
                           .workload = s->workload,
                           .name = KL_S("wrong.c"),
                           .source = KL_S(HELD_OUT("400 // outcome wrong")),
                           .surface = s->expert->surface}};
    starts[1] = starts[0];
    starts[1].name = KL_S("right.c");
    starts[1].source = KL_S(HELD_OUT("400"));
    c.patch = KL_S("");
    sample_says(s, "pack_b", HELD_OUT("400"), SAMPLE_PACKED("200", "row"));
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    assert_ok(kl_skill_admit(&c, &s->track.base, dir.ptr, starts, 2,
                             &(kl_admit_opts){.trials = 1, .tries = 1}, &e));
    kli_fs_remove_tree(dir.ptr);
    assert_int_equal(c.status, KL_CARD_ADMITTED);
    assert_int_equal(c.n_trials, 2);
    assert_str(c.trials[1].start_name, "right.c");
}

/* A start gives one vote, and a state of the lineage that a card came from gives none. */
static void test_skill_admit__a_start_that_was_tried_is_not_tried_again(void **state) {
    sample *s = *state;
    kl_error e = {0};
    kl_str dir;
    kl_card c = lifted(s);
    kl_start start = {.task = s->task,
                      .workload = s->workload,
                      .name = KL_S("x.c"),
                      .source = KL_S(HELD_OUT("400")),
                      .surface = s->expert->surface};
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    sample_says(s, "pack_b", HELD_OUT("400"), SAMPLE_PACKED("390", "row"));
    assert_ok(
        kl_skill_admit(&c, &s->track.base, dir.ptr, &start, 1, &(kl_admit_opts){.tries = 1}, &e));
    assert_int_equal(c.n_trials, 2);
    assert_ok(
        kl_skill_admit(&c, &s->track.base, dir.ptr, &start, 1, &(kl_admit_opts){.tries = 1}, &e));
    assert_int_equal(c.n_trials, 2);
    start.source = KL_S(HELD_OUT("401"));
    start.lineage = s->lineage.id;
    assert_ok(
        kl_skill_admit(&c, &s->track.base, dir.ptr, &start, 1, &(kl_admit_opts){.tries = 1}, &e));
    assert_int_equal(c.n_trials, 2);
    kli_fs_remove_tree(dir.ptr);
}

/* ---- what could not be measured is no vote ----------------------------------------------- */

static void test_skill_admit__a_time_that_does_not_settle_leaves_the_card_open(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("200 // wide 0.3", "row"), KL_CARD_TRIAL);
    assert_str(c.trials[1].outcome, "unstable");
    assert_false(c.trials[1].accepted);
    assert_false(kl_trial_decided(&c.trials[1]));
    assert_contains(c.verification.ptr, "klineage admit pack-b-c");
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("200", "row"),
           KL_CARD_ADMITTED); /* the same start, on a quieter day */
    assert_int_equal(c.n_trials, 3);
}

/* Told twice, it is one trial still. */
static void test_skill_admit__the_same_run_again_adds_no_second_open_trial(void **state) {
    sample *s = *state;
    kl_error e = {0};
    kl_str dir;
    kl_card c = lifted(s);
    kl_start one = {.task = s->task,
                    .workload = s->workload,
                    .name = KL_S("held-out.c"),
                    .source = KL_S(HELD_OUT("400")),
                    .surface = s->expert->surface};
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    for (int i = 0; i < 3; i++) {
        sample_says(s, "pack_b", HELD_OUT("400"), SAMPLE_PACKED("200 // wide 0.3", "row"));
        const kl_admit_opts o = {.tries = 1, .run = i < 2 ? "run 1" : "run 2"};
        assert_ok(kl_skill_admit(&c, &s->track.base, dir.ptr, &one, 1, &o, &e));
    }
    kli_fs_remove_tree(dir.ptr);
    assert_int_equal(c.n_trials, 3); /* its birth, and one of each run */
}

/* 2 x settled, and identical code differed by 60 % in the same minute. */
static void test_skill_admit__a_gain_within_the_noise_leaves_the_card_open(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("200 // floor 0.6", "row"), KL_CARD_TRIAL);
    assert_str(c.trials[1].outcome, "undecided");
    assert_str(c.trials[1].call, "same");
    assert_true(c.trials[1].noise > 0.59 && c.trials[1].noise < 0.61);
}

/* Settled and far below what is needed is a failure however noisy the machine; what never settled
 * is none. */
static void test_skill_admit__what_settled_and_is_too_little_fails_beside_any_noise(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("390 // wide 0.1", "row"),
           KL_CARD_TRIAL); /* unstable: no vote */
    assert_false(kl_trial_decided(&c.trials[1]));
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("390 // floor 0.6", "row"), KL_CARD_REJECTED);
}

static void test_skill_admit__an_admitted_card_stays_so_when_nothing_was_decided(void **state) {
    kl_card c = lifted(*state);
    admits(*state, &c, HELD_OUT("400"), SAMPLE_PACKED("200", "row"), KL_CARD_ADMITTED);
    admits(*state, &c, HELD_OUT("401"), SAMPLE_PACKED("200 // wide 0.3", "row"), KL_CARD_ADMITTED);
    assert_contains(c.verification.ptr, "stays admitted");
}

static void test_skill_admit__a_recording_without_an_answer_ends_in_order(void **state) {
    sample *s = *state;
    kl_card c = lifted(s);
    s->track.model = "replay of fake";
    admits(s, &c, HELD_OUT("400"), NULL, KL_CARD_TRIAL);
    assert_int_equal(c.n_trials, 1); /* nobody was asked, so nothing was tried */
    assert_contains(c.verification.ptr, "no further answer");
}

/* Then the first proposal was enough; on this machine it is too little, and nothing was recorded
 * for a second. */
static void test_skill_admit__a_recording_that_ends_within_a_trial_rejects_nothing(void **state) {
    sample *s = *state;
    kl_error e = {0};
    kl_str dir;
    kl_card c = lifted(s);
    kl_start one = {.task = s->task,
                    .workload = s->workload,
                    .name = KL_S("held-out.c"),
                    .source = KL_S(HELD_OUT("400")),
                    .surface = s->expert->surface};
    s->track.model = "replay of fake";
    sample_says(s, "pack_b", HELD_OUT("400"), SAMPLE_PACKED("300", "row"));
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    assert_ok(
        kl_skill_admit(&c, &s->track.base, dir.ptr, &one, 1, &(kl_admit_opts){.tries = 3}, &e));
    kli_fs_remove_tree(dir.ptr);
    assert_int_equal(c.status, KL_CARD_TRIAL);
    assert_str(c.trials[1].outcome, "undecided");
    assert_contains(c.trials[1].why.ptr, "no further answer");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_skill_lift__computes_what_can_be_computed),
        CASE(test_skill_lift__stands_without_a_model),
        CASE(test_skill_admit__a_round_trip_that_reproduces_the_effect),
        CASE(test_skill_admit__too_little_is_rejected_and_kept),
        CASE(test_skill_admit__a_wrong_kernel_is_no_success),
        CASE(test_skill_admit__speed_without_the_trait_is_no_success),
        CASE(test_skill_admit__a_state_it_was_born_from_is_not_held_out),
        CASE(test_skill_admit__an_imported_card_can_be_admitted),
        CASE(test_skill_admit__a_start_that_is_wrong_is_no_trial),
        CASE(test_skill_admit__a_start_that_was_tried_is_not_tried_again),
        CASE(test_skill_admit__a_time_that_does_not_settle_leaves_the_card_open),
        CASE(test_skill_admit__the_same_run_again_adds_no_second_open_trial),
        CASE(test_skill_admit__a_gain_within_the_noise_leaves_the_card_open),
        CASE(test_skill_admit__what_settled_and_is_too_little_fails_beside_any_noise),
        CASE(test_skill_admit__an_admitted_card_stays_so_when_nothing_was_decided),
        CASE(test_skill_admit__a_recording_without_an_answer_ends_in_order),
        CASE(test_skill_admit__a_recording_that_ends_within_a_trial_rejects_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
