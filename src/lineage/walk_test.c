/* walk_test.c - the straight line with replies and verdicts that are told beforehand: what is
 * accepted, what is rejected and why, and what ends a walk.  SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "walk_impl.h"
#include <math.h>

#define s (*(sample **)state)
#define near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void test_lineage_walk__goes_from_expert_to_naive(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    const kl_lineage *l = &s->lineage;
    assert_int_equal(l->termination, KL_WALK_COMPLETE);
    assert_str(l->termination_why, "three plain loops");
    assert_int_equal(l->n_states, 3);
    assert_int_equal(l->n_edges, 2);
    assert_str(l->states[0].source, SAMPLE_SIMPLE);
    assert_str(l->states[1].source, SAMPLE_MIDDLE);
    assert_str(l->states[2].source, SAMPLE_EXPERT);
    assert_str(l->states[2].name, "K2");
    assert_str(l->name, "gemm-c-expert-9");
    assert_str(l->model, "fake");
    assert_str(l->dtype, "float32");
    assert_str(l->created, "2026-01-31T12:00:00Z");
    assert_int_equal(l->spent_microusd, 5000);
    assert_int_equal(l->n_rejections, 0);
    assert_str(s->track.phases, "WRWr");
}

/* Steps without their way back: a document that can be read again, and says that nobody derived
 * them. */
static void test_lineage_walk__backward_only_leaves_the_edges_to_others(void **state) {
    kl_error e = {0};
    kl_lineage back;
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_SIMPLE);
    fake_says(&s->track, KL_S("DONE: three plain loops"));
    s->opts.backward_only = true;
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_COMPLETE);
    assert_str(s->track.phases, "WW");
    assert_true(s->lineage.edges[1].pays);
    assert_str(s->lineage.edges[1].witness, "none");
    json_t *o = kl_lineage_json(&s->lineage);
    assert_ok(
        kl_lineage_parse(&back, s->arena, kli_json_dump(s->arena, o, true), KL_S("test"), &e));
    json_decref(o);
    assert_str(back.edges[1].witness, "none");
    assert_int_equal(back.edges[1].forward.len, 0);
}

/* The naive kernel with the expert, and every comparison with the verdict that it waits for: one
 * visit to another host instead of two. */
static void test_lineage_walk__says_ahead_what_it_will_ask(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->track.prefetched,
                     4); /* naive, two steps back, one forward; the other step does not pay */
    assert_int_equal(s->track.came_true, 4);
}

/* The simpler kernel was the candidate, so the gate said 0.5; the gain is that of going forward. */
static void test_lineage_walk__the_gain_is_that_of_going_forward(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    const kl_edge *pack = &s->lineage.edges[1], *pragma = &s->lineage.edges[0];
    assert_str(pack->action, "pack_b");
    near(pack->gain, 2.0);
    near(pack->gain_low, 2.0 / 1.002);
    near(pack->gain_high, 2.0 / 0.998);
    assert_true(pack->pays);
    near(pack->recovered, 100 / 100.2);
    assert_false(pack->mechanical);
    assert_str(pack->forward_source, SAMPLE_PACKED("100.2", "depth"));
    assert_true(kli_words_have(pack->raised, KL_S("source.buffers")));
    assert_str(pragma->action, "simd_pragma");
    near(pragma->gain, 201.0 / 200);
    assert_false(pragma->pays);
    assert_int_equal(pragma->forward.len, 0);
    assert_int_equal(pragma->recovered_verdict_key.len, 0);
    assert_int_equal(pragma->n_rejections, 1); /* the one try */
    assert_str(pragma->rejections[0].stage, "rederive");
}

static void test_lineage_walk__the_second_conversation_sees_nothing_of_the_first(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    s->opts.max_steps = 1;
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_STEP_LIMIT);
    const char *rederive = s->track.said[1].ptr;
    assert_contains(rederive, "weight[j * K + k]");
    assert_contains(rederive, "pack_b");
    assert_contains(rederive, "as fast as this one: about "); /* the goal in numbers */
    assert_null(strstr(rederive, "packed"));
    assert_null(
        strstr(rederive, "it is simpler")); /* the words of who undid it may give the answer away */
    assert_int_equal(s->track.turns[1], 2);
}

static void test_lineage_walk__conversation_only_grows(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->track.turns[0], 6); /* rules, task, step, accepted, step, accepted */
    assert_contains(s->track.said[0].ptr, "packed");
    assert_contains(s->track.said[0].ptr, "pack_b simd_pragma");
}

/* ---- rejections -------------------------------------------------------------------------- */

static void reject_one(void **state, const char *symptom, bool gated) {
    kl_error e = {0};
    s->opts.max_rejections = 1;
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_REJECTION_LIMIT);
    assert_int_equal(s->lineage.n_states, 1);
    assert_int_equal(s->lineage.n_rejections, 1);
    const kl_rejection *r = &s->lineage.rejections[0];
    assert_contains(kl_arena_copy(s->arena, r->symptom).ptr, symptom);
    assert_int_equal(r->verdict_key.len, gated ? 64 : 0);
    assert_str(r->stage, "deoptimize");
    assert_true(r->edit.len > 0 || !gated);
}

static void test_lineage_walk__talk_is_no_edit(void **state) {
    fake_says(&s->track, KL_S("I would start with the loops."));
    reject_one(state, "no_edit: ", false);
}

static void test_lineage_walk__an_empty_reply_is_no_edit(void **state) {
    fake_says(&s->track, KL_S(""));
    reject_one(state, "no_edit: ", false);
}

static void test_lineage_walk__a_truncated_reply_is_no_edit(void **state) {
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    s->track.replies[0].stop = KL_STOP_TRUNCATED;
    reject_one(state, "no_edit: the reply was cut off", false);
}

static void test_lineage_walk__a_refusal_is_no_edit(void **state) {
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    s->track.replies[0].stop = KL_STOP_REFUSED;
    reject_one(state, "no_edit: the model refused", false);
}

static void test_lineage_walk__an_action_comes_from_the_vocabulary(void **state) {
    sample_says(s, "make_it_slow", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    reject_one(state, "'make_it_slow' is no action", false);
}

static void test_lineage_walk__an_edit_that_names_no_action_is_none(void **state) {
    fake_says(&s->track, kl_edits_between(s->arena, KL_S(SAMPLE_EXPERT), KL_S(SAMPLE_MIDDLE)));
    reject_one(state, "ACTION: is missing", false);
}

static void test_lineage_walk__edits_of_another_kernel_do_not_apply(void **state) {
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_DIRECT("201", ""));
    reject_one(state, "no_edit: ", false);
}

static void test_lineage_walk__a_wrong_kernel_is_rejected_with_its_verdict(void **state) {
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_DIRECT("200 // outcome wrong", SAMPLE_PRAGMA));
    reject_one(state, "wrong: as the source says", true);
}

static void
test_lineage_walk__a_kernel_that_does_not_parse_is_rejected_with_its_verdict(void **state) {
    sample_says(s, "pack_b", SAMPLE_EXPERT, "//! lunch gemm\n" SAMPLE_MIDDLE);
    reject_one(state, "refused: ", true);
}

static void test_lineage_walk__what_was_named_must_be_gone(void **state) {
    sample_says(s, "prefetch", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    reject_one(state, "not_simpler: ", true);
}

static void test_lineage_walk__slower_than_twice_naive_is_sabotage(void **state) {
    sample_says(s, "pack_b", SAMPLE_EXPERT,
                SAMPLE_DIRECT("610", SAMPLE_PRAGMA)); /* naive.c says nothing: 300 */
    reject_one(state, "sabotage: ", true);
}

static void test_lineage_walk__done_counts_only_when_the_traits_agree(void **state) {
    fake_says(&s->track, KL_S("DONE: it is naive, believe me"));
    reject_one(state, "not_naive: still has source.", false);
}

static void test_lineage_walk__a_kernel_that_was_there_is_no_step(void **state) {
    kl_error e = {0};
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_DIRECT("200 // outcome wrong", SAMPLE_PRAGMA));
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_DIRECT("200 // outcome wrong", SAMPLE_PRAGMA));
    s->opts.max_rejections = 2;
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_rejections, 2);
    assert_contains(kl_arena_copy(s->arena, s->lineage.rejections[1].symptom).ptr, "repeated: ");
    assert_int_equal(s->lineage.rejections[1].verdict_key.len, 0);
}

#define UNSTABLE_MIDDLE                                                                            \
    SAMPLE_DIRECT("200 // outcome unstable // wide 0.2 // floor 0.2", SAMPLE_PRAGMA)

/* A state needs correctness; a comparison that stays wide decides all the same when it is far
 * beyond its own noise. */
static void test_lineage_walk__a_time_that_does_not_settle_is_no_rejection(void **state) {
    kl_error e = {0};
    s->opts.max_steps = 1;
    sample_says(s, "pack_b", SAMPLE_EXPERT, UNSTABLE_MIDDLE);
    sample_says(s, "pack_b", UNSTABLE_MIDDLE, SAMPLE_EXPERT);
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 1);
    assert_true(s->lineage.states[0].unsettled);
    assert_int_equal(s->lineage.states[0].median_ns, 200);
    assert_int_equal(s->lineage.edges[0].call, KL_DECISION_FASTER);
    assert_true(s->lineage.edges[0].pays);
}

static void test_lineage_walk__an_undecided_race_is_kept_and_does_not_pay(void **state) {
    kl_error e = {0};
    kl_lineage back;
    const char *slow = SAMPLE_DIRECT("130 // outcome unstable // wide 0.2 // floor 0.2",
                                     SAMPLE_PRAGMA); /* 1.3x within 20 %, floor 20 % */
    s->opts.max_steps = 1;
    sample_says(s, "pack_b", SAMPLE_EXPERT, slow);
    sample_says(
        s, "pack_b", slow,
        SAMPLE_PACKED("150",
                      "depth")); /* correct, and not held to a speed that nobody could measure */
    assert_ok(sample_walk(s, &e));
    const kl_edge *d = &s->lineage.edges[0];
    assert_int_equal(s->lineage.n_edges, 1);
    assert_int_equal(d->call, KL_DECISION_UNDECIDED);
    assert_false(d->pays);
    near(d->gain, 1.3);
    near(d->noise, 0.2);
    assert_true(d->forward.len > 0);
    assert_int_equal(d->recovered_verdict_key.len, 0);
    assert_contains(s->lineage.termination_why.ptr, "1 steps");
    json_t *o = kl_lineage_json(&s->lineage);
    assert_ok(
        kl_lineage_parse(&back, s->arena, kli_json_dump(s->arena, o, true), KL_S("test"), &e));
    json_decref(o);
    assert_int_equal(back.edges[0].call, KL_DECISION_UNDECIDED);
    assert_true(kl_str_eq(back.id, s->lineage.id));
    kl_lineage_sign(&back, s->arena);
    assert_true(kl_str_eq(back.id, s->lineage.id));
}

static void test_lineage_walk__a_recovery_that_cannot_be_told_is_no_rejection(void **state) {
    kl_error e = {0};
    s->opts.max_steps = 1;
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE,
                SAMPLE_PACKED("130 // outcome unstable // wide 0.2 // floor 0.2",
                              "depth")); /* 0.77 [0.62, 0.92] */
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 1);
    assert_true(s->lineage.edges[0].pays && s->lineage.edges[0].forward.len > 0);
}

/* The gate fails (a busy device, a full disk, ^C) while the second step is judged. */
static void breaks_off(void **state, kl_err err, kl_termination how) {
    kl_error e = {0};
    sample_whole_walk(s);
    s->track.judge_fails = 7; /* expert, naive; back, comparison, forward, comparison; then the
                                 second step back passes and its comparison does not */
    s->track.fails = err;
    assert_err(err, sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 1);
    assert_true(s->lineage.edges[0].pays);
    assert_int_equal(s->lineage.termination, how);
    assert_contains(s->lineage.termination_why.ptr, "as told");
    assert_int_equal(s->lineage.id.len, 64);
    json_t *o = kl_lineage_json(&s->lineage);
    kl_lineage back;
    assert_ok(
        kl_lineage_parse(&back, s->arena, kli_json_dump(s->arena, o, true), KL_S("test"), &e));
    json_decref(o);
    assert_int_equal(back.termination, how);
}

static void test_lineage_walk__a_gate_that_fails_leaves_the_lineage_so_far(void **state) {
    breaks_off(state, KL_EBUSY, KL_WALK_UNSETTLED);
}

static void test_lineage_walk__an_interrupt_leaves_the_lineage_so_far(void **state) {
    breaks_off(state, KL_EINTR, KL_WALK_INTERRUPTED);
}

static void test_lineage_walk__without_an_edge_there_is_nothing_to_leave(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    s->track.judge_fails = 3;
    s->track.fails = KL_EBUSY;
    assert_err(KL_EBUSY, sample_walk(s, &e));
    assert_int_equal(s->lineage.id.len, 0);
    fake_track_close(&s->track);
    fake_track_open(&s->track, s->arena);
    sample_whole_walk(s);
    s->track.judge_fails = 7;
    s->track.fails = KL_PENDING; /* not an end: the same line goes on later */
    assert_err(KL_PENDING, sample_walk(s, &e));
    assert_int_equal(s->lineage.id.len, 0);
}

static void test_lineage_walk__rejections_count_in_a_row_and_stay_with_the_next_edge(void **state) {
    kl_error e = {0};
    s->opts.max_rejections = 2;
    fake_says(&s->track, KL_S("hm"));
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE, SAMPLE_EXPERT);
    fake_says(&s->track, KL_S("hm"));
    fake_says(&s->track, KL_S("hm"));
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_REJECTION_LIMIT);
    assert_int_equal(s->lineage.n_edges, 1);
    assert_int_equal(s->lineage.edges[0].n_rejections, 1);
    assert_int_equal(s->lineage.n_rejections, 2);
    assert_str(s->track.phases, "wWRww");
}

/* ---- re-derivation ----------------------------------------------------------------------- */

static void test_lineage_walk__a_paying_step_that_is_not_recovered_is_no_edge(void **state) {
    kl_error e = {0};
    s->opts.max_rejections = 1;
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE, SAMPLE_PACKED("120", "depth")); /* too slow */
    sample_says(s, "pack_b", SAMPLE_MIDDLE,
                SAMPLE_DIRECT("100", SAMPLE_PRAGMA)); /* fast, and without the buffer */
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 0);
    assert_int_equal(s->lineage.n_rejections, 3);
    const kl_rejection *r = s->lineage.rejections;
    assert_contains(kl_arena_copy(s->arena, r[0].symptom).ptr, "not_recovered: ");
    assert_contains(kl_arena_copy(s->arena, r[1].symptom).ptr, "not_restored: ");
    assert_contains(kl_arena_copy(s->arena, r[2].symptom).ptr, "not_rederived: not_restored: ");
    for (int i = 0; i < 3; i++) assert_str(r[i].stage, "rederive");
    assert_str(s->track.phases, "rrr");
    assert_int_equal(s->track.turns[1], 4); /* the second try had been told of the first */
}

static void test_lineage_walk__surely_slower_is_held_against_the_upper_end(void **state) {
    kl_error e = {0};
    s->opts.max_steps = 1;
    s->opts.recover = 0.98;
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE,
                SAMPLE_PACKED("102.1", "depth")); /* 0.9794 [0.9775, 0.9814] */
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 1);
    assert_true(s->lineage.edges[0].recovered < 0.98);
}

static void test_lineage_walk__builtin_turns_the_edit_round_and_says_so(void **state) {
    kl_error e = {0};
    s->track.model = "builtin";
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_SIMPLE);
    fake_says(&s->track, KL_S("DONE: nothing left"));
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 2);
    for (int i = 0; i < 2; i++) {
        const kl_edge *d = &s->lineage.edges[i];
        assert_true(d->mechanical);
        assert_true(kl_str_eq(d->forward_source, s->lineage.states[i + 1].source));
        assert_true(kl_str_eq(d->forward_hash, s->lineage.states[i + 1].hash));
        assert_int_equal(d->recovered_verdict_key.len,
                         0); /* a kernel is not timed against itself */
    }
}

static void test_lineage_walk__a_step_back_that_is_faster_is_kept_and_does_not_pay(void **state) {
    kl_error e = {0};
    s->opts.max_steps = 1;
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_DIRECT("80", SAMPLE_PRAGMA));
    sample_says(s, "pack_b", SAMPLE_DIRECT("80", SAMPLE_PRAGMA), SAMPLE_EXPERT);
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 1);
    assert_true(s->lineage.edges[0].gain_high < 1);
    assert_false(s->lineage.edges[0].pays);
    assert_true(s->lineage.edges[0].forward.len > 0);
}

/* ---- replayed ---------------------------------------------------------------------------- */

static void recorded(sample *x, const char *const *slots) {
    for (int i = 0; slots[i]; i++) x->track.recorded[i] = slots[i];
}

/* It was fast enough then, and is not here: the recording has nothing else to say, and the walk
 * goes its way. */
static void test_lineage_walk__a_replay_goes_the_recorded_way(void **state) {
    kl_error e = {0};
    recorded(s, (const char *[]){"deoptimize 1/0", "rederive 1/0", "deoptimize 2/0", "rederive 2/0",
                                 "deoptimize 3/0", NULL});
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE,
                SAMPLE_PACKED("120", "depth")); /* 0.83 of what was needed */
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_SIMPLE);
    fake_says(&s->track, KL_S("hm"));
    fake_says(&s->track, KL_S("DONE: three plain loops"));
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_COMPLETE);
    const kl_edge *d = &s->lineage.edges[1];
    assert_str(d->decided, "recorded");
    assert_contains(kl_arena_copy(s->arena, d->here).ptr,
                    "not_recovered: it is correct and runs at 0.83");
    assert_str(d->forward_source, SAMPLE_PACKED("120", "depth"));
    assert_true(d->recovered < 0.84);
    assert_int_equal(s->lineage.edges[0].decided.len, 0);
}

static void test_lineage_walk__a_replay_rejects_what_was_rejected(void **state) {
    kl_error e = {0};
    recorded(s, (const char *[]){"deoptimize 1/0", "deoptimize 1/1", "rederive 1/0", "rederive 1/1",
                                 "deoptimize 2/0", NULL});
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_DIRECT("200", ""));
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE, SAMPLE_PACKED("100", "deep"));
    sample_says(s, "pack_b", SAMPLE_MIDDLE, SAMPLE_PACKED("100", "depth"));
    fake_says(&s->track, KL_S("DONE: it is naive, believe me"));
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 1);
    assert_str(s->lineage.edges[0].forward_source, SAMPLE_PACKED("100", "depth"));
    assert_int_equal(s->lineage.edges[0].n_rejections, 2);
    assert_contains(kl_arena_copy(s->arena, s->lineage.edges[0].rejections[0].symptom).ptr,
                    "recorded: ");
    assert_int_equal(s->lineage.termination, KL_WALK_STOPPED);
    assert_contains(s->lineage.termination_why.ptr, "the recording ends here");
}

/* A re-derivation that is wrong here is not taken, however it went then; the step back is sound all
 * the same. */
static void test_lineage_walk__a_replay_takes_no_wrong_kernel(void **state) {
    kl_error e = {0};
    recorded(s, (const char *[]){"deoptimize 1/0", "rederive 1/0", "deoptimize 2/0",
                                 "deoptimize 3/0", "rederive 3/0", NULL});
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE, SAMPLE_PACKED("100 // outcome wrong", "depth"));
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_DIRECT("200 // outcome wrong", ""));
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE,
                SAMPLE_SIMPLE); /* of step 3, and it fits where step 2 could not be taken */
    fake_says(&s->track, KL_S("hm"));
    s->opts.max_steps = 2;
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 2);
    const kl_edge *pack = &s->lineage.edges[1];
    assert_true(pack->pays);
    assert_int_equal(pack->forward.len, 0);
    assert_str(pack->witness, "failed");
    assert_str(pack->decided, "recorded");
    assert_str(s->lineage.states[0].source, SAMPLE_SIMPLE);
    assert_contains(kl_arena_copy(s->arena, s->lineage.edges[0].rejections[0].symptom).ptr,
                    "wrong: ");
}

/* ---- what ends a walk -------------------------------------------------------------------- */

static void test_lineage_walk__an_exhausted_budget_keeps_what_there_is(void **state) {
    kl_error e = {0};
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(s, "pack_b", SAMPLE_MIDDLE, SAMPLE_EXPERT);
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_SIMPLE);
    fake_fails(&s->track, KL_EBUDGET); /* within a re-derivation */
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_BUDGET);
    assert_int_equal(s->lineage.n_edges, 1);
    assert_true(s->lineage.id.len == 64);
}

static void test_lineage_walk__a_recording_that_ends_stops_it(void **state) {
    kl_error e = {0};
    fake_says(&s->track, KL_S("hm"));
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_STOPPED);
    assert_contains(kl_arena_copy(s->arena, s->lineage.termination_why).ptr,
                    "the recording has no answer");
    assert_int_equal(s->lineage.n_rejections, 1);
}

static void test_lineage_walk__a_model_that_never_answers_is_an_error(void **state) {
    kl_error e = {0};
    assert_err(KL_ENOENT, sample_walk(s, &e));
    fake_fails(&s->track, KL_EMODEL);
    assert_err(KL_EMODEL, sample_walk(s, &e));
    fake_fails(&s->track, KL_PENDING);
    assert_err(KL_PENDING, sample_walk(s, &e));
    fake_says(&s->track, KL_S("hm"));
    fake_fails(&s->track, KL_EINTR);
    assert_err(KL_EINTR, sample_walk(s, &e));
}

static void test_lineage_walk__the_expert_must_pass(void **state) {
    kl_error e = {0};
    assert_ok(kl_kernel_parse(&s->expert, s->arena, KL_S("// outcome cheat\n" SAMPLE_EXPERT),
                              KL_S("expert.c"), NULL, NULL, &e));
    assert_err(KL_EINVAL, sample_walk(s, &e));
    assert_contains(e.message, "fails the gate: cheat");
}

static void test_lineage_walk__one_lineage_one_platform(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    s->track.moves_at = 2; /* after expert and naive */
    assert_err(KL_EINVAL, sample_walk(s, &e));
    assert_contains(e.message, "elsewhere");
}

static void test_lineage_walk__the_naive_kernel_itself_needs_no_question(void **state) {
    kl_error e = {0};
    assert_ok(kl_kernel_load(&s->expert, s->arena, KL_TEST_ROOT "/tasks/gemm/naive.c", NULL, &e));
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.termination, KL_WALK_COMPLETE);
    assert_int_equal(s->track.next, 0);
}

static void test_lineage_walk__again_makes_the_same_document(void **state) {
    kl_error e = {0};
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    const kl_str first = s->lineage.id;
    s->track.next = 0;
    s->track.base.spent_microusd = 0;
    assert_ok(sample_walk(s, &e));
    assert_true(kl_str_eq(first, s->lineage.id));
}

/* ---- judged again ------------------------------------------------------------------------ */

static void test_lineage_judge__an_edge_is_what_the_gate_says_today(void **state) {
    kl_error e = {0};
    kl_lineage now, back;
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    kl_edge *pack = &s->lineage.edges[1], *pragma = &s->lineage.edges[0];
    pack->gain = 9, pack->gain_low = 8, pack->gain_high = 10,
    pack->recovered = pack->recovered_low = 0.5;
    pragma->gain = pragma->gain_low = pragma->gain_high = 1.5;
    pragma->call = KL_DECISION_FASTER;
    pragma->pays = true;
    assert_ok(kl_lineage_judge(&now, &s->track.base, s->task, s->workload, &s->lineage, &e));
    near(now.edges[1].gain, 2.0);
    near(now.edges[1].recovered, 100 / 100.2);
    assert_true(now.edges[1].pays && !now.edges[0].pays);
    assert_true(s->lineage.edges[0].pays); /* what was given stays as it was */
    json_t *o = kl_lineage_json(&now);
    assert_ok(
        kl_lineage_parse(&back, s->arena, kli_json_dump(s->arena, o, true), KL_S("test"), &e));
    json_decref(o);
}

static void test_lineage_judge__stays_on_its_platform(void **state) {
    kl_error e = {0};
    kl_lineage now;
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    s->track.moves_at = s->track.judged;
    assert_err(KL_EINVAL,
               kl_lineage_judge(&now, &s->track.base, s->task, s->workload, &s->lineage, &e));
    assert_contains(e.message, "elsewhere");
    assert_contains(e.hint, "belongs to one platform");
}

static void test_lineage_judge__waits_when_an_answer_is_missing(void **state) {
    kl_error e = {0};
    kl_lineage now;
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    s->track.judge_fails = s->track.judged + 1; /* the first comparison is there */
    s->track.fails = KL_PENDING;
    assert_err(KL_PENDING,
               kl_lineage_judge(&now, &s->track.base, s->task, s->workload, &s->lineage, &e));
}

#undef s
/* ---- what a comparison says of an edge --------------------------------------------------- */

/* The simpler kernel is the candidate, so the edge's gain is the inverse, and what is faster and
 * slower change places; a comparison without an interval is no gain. */
static void test_gain__is_the_comparison_turned_round(void **state) {
    (void)state;
    static const struct {
        kli_pairwise said;
        double gain, low, high;
        kl_decision call;
    } ROWS[] = {
        {{.ratio = 0.5, .low = 0.4, .high = 0.8, .noise = 0.01, .call = KL_DECISION_SLOWER},
         2,
         1.25,
         2.5,
         KL_DECISION_FASTER},
        {{.ratio = 2, .low = 1.6, .high = 2.5, .call = KL_DECISION_FASTER},
         0.5,
         0.4,
         0.625,
         KL_DECISION_SLOWER},
        {{.ratio = 1, .low = 1, .high = 1, .call = KL_DECISION_SAME}, 1, 1, 1, KL_DECISION_SAME},
        {{.ratio = 0.8, .low = 0.5, .high = 1.25, .noise = 0.3, .call = KL_DECISION_UNDECIDED},
         1.25,
         0.8,
         2,
         KL_DECISION_UNDECIDED},
        {{.call = KL_DECISION_UNDECIDED}, 0, 0, 0, KL_DECISION_UNDECIDED},
    };
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        kl_edge edge = {0};
        kli_gain(&edge, &ROWS[i].said);
        near(edge.gain, ROWS[i].gain);
        near(edge.gain_low, ROWS[i].low);
        near(edge.gain_high, ROWS[i].high);
        near(edge.noise, ROWS[i].said.noise);
        assert_int_equal(edge.call, ROWS[i].call);
        assert_true(edge.has_call && edge.pays == (ROWS[i].call == KL_DECISION_FASTER));
    }
}

static void test_recovered__keeps_the_numbers_with_their_verdict(void **state) {
    (void)state;
    kl_edge edge = {0};
    const kli_pairwise r = {.ratio = 0.99,
                            .low = 0.97,
                            .high = 1.01,
                            .verdict_key = KL_S("key"),
                            .receipt = KL_S("receipt")};
    kli_recovered(&edge, &r);
    near(edge.recovered, 0.99);
    assert_true(edge.recovered_low < edge.recovered && edge.recovered < edge.recovered_high);
    assert_str(edge.recovered_verdict_key, "key");
    assert_str(edge.recovered_receipt, "receipt");
}

#define with_sample(f) cmocka_unit_test_setup_teardown(f, sample_setup, sample_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gain__is_the_comparison_turned_round),
        cmocka_unit_test(test_recovered__keeps_the_numbers_with_their_verdict),
        with_sample(test_lineage_walk__goes_from_expert_to_naive),
        with_sample(test_lineage_walk__says_ahead_what_it_will_ask),
        with_sample(test_lineage_walk__the_gain_is_that_of_going_forward),
        with_sample(test_lineage_walk__the_second_conversation_sees_nothing_of_the_first),
        with_sample(test_lineage_walk__backward_only_leaves_the_edges_to_others),
        with_sample(test_lineage_walk__conversation_only_grows),
        with_sample(test_lineage_walk__talk_is_no_edit),
        with_sample(test_lineage_walk__an_empty_reply_is_no_edit),
        with_sample(test_lineage_walk__a_truncated_reply_is_no_edit),
        with_sample(test_lineage_walk__a_refusal_is_no_edit),
        with_sample(test_lineage_walk__an_action_comes_from_the_vocabulary),
        with_sample(test_lineage_walk__an_edit_that_names_no_action_is_none),
        with_sample(test_lineage_walk__edits_of_another_kernel_do_not_apply),
        with_sample(test_lineage_walk__a_wrong_kernel_is_rejected_with_its_verdict),
        with_sample(test_lineage_walk__a_kernel_that_does_not_parse_is_rejected_with_its_verdict),
        with_sample(test_lineage_walk__what_was_named_must_be_gone),
        with_sample(test_lineage_walk__slower_than_twice_naive_is_sabotage),
        with_sample(test_lineage_walk__done_counts_only_when_the_traits_agree),
        with_sample(test_lineage_walk__a_kernel_that_was_there_is_no_step),
        with_sample(test_lineage_walk__a_time_that_does_not_settle_is_no_rejection),
        with_sample(test_lineage_walk__an_undecided_race_is_kept_and_does_not_pay),
        with_sample(test_lineage_walk__a_recovery_that_cannot_be_told_is_no_rejection),
        with_sample(test_lineage_walk__a_gate_that_fails_leaves_the_lineage_so_far),
        with_sample(test_lineage_walk__an_interrupt_leaves_the_lineage_so_far),
        with_sample(test_lineage_walk__without_an_edge_there_is_nothing_to_leave),
        with_sample(test_lineage_judge__an_edge_is_what_the_gate_says_today),
        with_sample(test_lineage_judge__stays_on_its_platform),
        with_sample(test_lineage_judge__waits_when_an_answer_is_missing),
        with_sample(test_lineage_walk__a_replay_goes_the_recorded_way),
        with_sample(test_lineage_walk__a_replay_rejects_what_was_rejected),
        with_sample(test_lineage_walk__a_replay_takes_no_wrong_kernel),
        with_sample(test_lineage_walk__rejections_count_in_a_row_and_stay_with_the_next_edge),
        with_sample(test_lineage_walk__a_paying_step_that_is_not_recovered_is_no_edge),
        with_sample(test_lineage_walk__surely_slower_is_held_against_the_upper_end),
        with_sample(test_lineage_walk__builtin_turns_the_edit_round_and_says_so),
        with_sample(test_lineage_walk__a_step_back_that_is_faster_is_kept_and_does_not_pay),
        with_sample(test_lineage_walk__an_exhausted_budget_keeps_what_there_is),
        with_sample(test_lineage_walk__a_recording_that_ends_stops_it),
        with_sample(test_lineage_walk__a_model_that_never_answers_is_an_error),
        with_sample(test_lineage_walk__the_expert_must_pass),
        with_sample(test_lineage_walk__one_lineage_one_platform),
        with_sample(test_lineage_walk__the_naive_kernel_itself_needs_no_question),
        with_sample(test_lineage_walk__again_makes_the_same_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
