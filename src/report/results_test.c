/* results_test.c - small journals whose results were worked out by hand, and documents that nobody
 * wrote well. SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/test.h"
#include <math.h>
#include <stdlib.h>

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define EVIL "a|b`c`\n# <script>alert(1)</script> [x](http://y) ~~z~~"

typedef struct {
    kl_arena *a;
    kl_store *store;
    kl_str dir;
    kl_buf text;
    json_t *results;
    double noise;       /* of the verdicts to come */
    kl_outcome outcome; /* likewise */
    int n_verdicts, n_charges;
    int64_t n_rows;
} world;

static world w;

/* ---- a journal --------------------------------------------------------------------------- */

static int set_up(void **state) {
    kl_error e = {0};
    (void)state;
    w = (world){.a = kl_arena_new()};
    assert_ok(kli_fs_temp_dir(&w.dir, w.a, &e));
    assert_ok(kl_store_open(&w.store, kli_fs_join(w.a, w.dir.ptr, "klineage.db").ptr, &e));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    json_decref(w.results);
    kl_buf_fini(&w.text);
    kl_store_close(w.store);
    kli_fs_remove_tree(w.dir.ptr);
    kl_arena_free(w.a);
    return 0;
}

static void put_run(const char *id, const char *model) {
    kl_error e = {0};
    json_t *o = json_pack("{ss}", "model", model);
    kl_store_run run = {
        .id = kl_str_of(id), .command = KL_S("experiment"), .json = kli_json_dump(w.a, o, false)};
    assert_ok(kl_store_run_put(w.store, &run, &e));
    json_decref(o);
}

/* Keys count up, so that a test can name the evidence of the n-th timed row. */
static const char *put_verdict(const char *surface, const char *platform, const char *baseline) {
    kl_error e = {0};
    const char *key = kl_arena_printf(w.a, "%064x", ++w.n_verdicts).ptr;
    kl_verdict v = {.task = KL_S("t"),
                    .platform = kl_str_of(platform),
                    .surface = kl_str_of(surface),
                    .workload = KL_S("cpu"),
                    .task_hash = KL_S(RUN_A),
                    .kernel_hash = KL_S(RUN_A),
                    .created = KL_S("2026-01-31T12:00:00Z"),
                    .median_ns = 7,
                    .outcome = w.outcome,
                    .n_comparisons = 1};
    v.comparisons[0] = (kl_comparison){
        .baseline = kl_str_of(baseline), .ratio = 1, .low = 1, .high = 1, .noise = w.noise};
    json_t *o = kl_verdict_json(&v);
    kl_store_verdict row = {.key = kl_str_of(key),
                            .task = v.task,
                            .kernel = v.kernel_hash,
                            .platform = v.platform,
                            .outcome = KL_S("pass"),
                            .json = kli_json_dump(w.a, o, false)};
    assert_ok(kl_store_verdict_put(w.store, &row, &e));
    json_decref(o);
    return key;
}

typedef struct {
    const char *run, *workload, *policy, *track, *surface, *platform, *baseline;
    double error; /* half an interval, relative */
    int64_t n;
} line;

static line line_of(const char *run, const char *workload, const char *policy, int trial) {
    return (line){.run = run,
                  .workload = workload,
                  .policy = policy,
                  .track = kl_arena_printf(w.a, "%s/%s/%d", workload, policy, trial).ptr,
                  .surface = "c",
                  .platform = "x86-64-v4/gcc-12",
                  .baseline = "openblas",
                  .error = 0.001};
}

static const char *stopped_by = "";

/* ratio 0: nothing was timed.  Every proposal is made from the start. */
static void row(line *l, const char *action, const char *outcome, double ratio, bool best,
                int64_t microusd) {
    kl_error e = {0};
    const char *verdict = ratio > 0 ? put_verdict(l->surface, l->platform, l->baseline) : "";
    bool given = strcmp(action, "start") == 0 || strcmp(action, "reference") == 0 ||
                 strcmp(action, "end") == 0;
    const char *parent = given ? "" : "kernel-0";
    const char *name = kl_arena_printf(w.a, "kernel-%lld", (long long)l->n).ptr;
    json_t *o = json_pack("{ss ss ss ss ss ss ss ss sf sf sf si sb sb sI ss}", "workload",
                          l->workload, "policy", l->policy, "phase", "search", "action", action,
                          "parent", parent, "kernel", name, "verdict", verdict, "outcome", outcome,
                          "ratio", ratio, "low", ratio * (1 - l->error), "high",
                          ratio * (1 + l->error), "median_ns", 7, "accepted", best, "best", best,
                          "spent_microusd", (json_int_t)microusd, "why", given ? stopped_by : "");
    kl_store_step s = {.run = kl_str_of(l->run),
                       .track = kl_str_of(l->track),
                       .n = l->n++,
                       .json = kli_json_dump(w.a, o, false)};
    assert_ok(kl_store_step_put(w.store, &s, &e));
    json_decref(o);
}

static void charge(const line *l, const char *phase, int64_t microusd, bool estimated,
                   bool answered) {
    kl_error e = {0};
    const char *key = kl_arena_printf(w.a, "%064x", 1000 + ++w.n_charges).ptr;
    kl_store_charge c = {.effect = kl_str_of(key),
                         .run = kl_str_of(l->run),
                         .track = kl_str_of(l->track),
                         .workload = kl_str_of(l->workload),
                         .policy = kl_str_of(l->policy),
                         .phase = kl_str_of(phase),
                         .model = KL_S("m"),
                         .priced_as = KL_S("m"),
                         .price_date = KL_S("2026-01-31"),
                         .reserved_microusd = 1000000};
    kl_store_effect f = {.key = c.effect,
                         .run = c.run,
                         .track = c.track,
                         .kind = KL_S("ask"),
                         .purpose = c.phase,
                         .request = KL_S("{}"),
                         .answer = KL_S("{}")};
    assert_ok(kl_store_reserve(w.store, &c, false, INT64_C(100000000), 0, &e));
    if (!answered) {
        assert_ok(kl_store_lose(w.store, key, &e));
        return;
    }
    c.settled_microusd = microusd;
    c.estimated = estimated;
    c.input = 100, c.cache_read = 300, c.cache_write_5m = 600, c.output = 50;
    assert_ok(kl_store_settle(w.store, &f, &c, &e));
}

/* A start at 0.5, then one new best, unless it is nothing; the money is spent in one call. */
static void trial(const char *run, const char *workload, const char *policy, int number,
                  double best, int64_t microusd) {
    line l = line_of(run, workload, policy, number);
    row(&l, "start", "pass", 0.5, true, 0);
    if (best > 0)
        row(&l, "edit", "pass", best, true, microusd);
    else
        row(&l, "edit", "wrong", 0, false, microusd);
    charge(&l, "search", microusd, false, true);
}

/* ---- what comes out ---------------------------------------------------------------------- */

static void compute(const char *const *runs, int n) {
    kl_error e = {0};
    assert_ok(
        kl_report_results(&w.results, w.store, &(kl_report_opts){.runs = runs, .n_runs = n}, &e));
    kl_report_results_markdown(&w.text, w.results);
}

static void compute_a(void) {
    const char *runs[] = {RUN_A};
    compute(runs, 1);
}

/* "tracks.0.gain.low": what is there. */
static const json_t *at(const char *path) {
    const json_t *o = w.results;
    while (o && *path) {
        size_t n = strcspn(path, ".");
        const char *key = kl_arena_copy(w.a, (kl_str){path, n}).ptr;
        o = json_is_array(o) ? json_array_get(o, (size_t)atoi(key)) : json_object_get(o, key);
        path += n + (path[n] == '.');
    }
    return o;
}

static void number_is(const char *path, double wanted) {
    const json_t *o = at(path);
    if (!json_is_number(o) || fabs(json_number_value(o) - wanted) > 1e-9 * fabs(wanted) + 1e-12)
        fail_msg("%s is %s, not %g", path,
                 o ? kli_json_dump(w.a, json_pack("[O]", o), false).ptr : "missing", wanted);
}

static void text_is(const char *path, const char *wanted) {
    const json_t *o = at(path);
    if (!json_is_string(o) || strcmp(json_string_value(o), wanted) != 0)
        fail_msg("%s is '%s', not '%s'", path, o ? json_string_value(o) : "missing", wanted);
}

static void null_is(const char *path) {
    if (!json_is_null(at(path))) fail_msg("%s is not null", path);
}

static void write_page(void) {
    kl_error e = {0};
    const char *runs[] = {RUN_A};
    kl_buf_fini(&w.text);
    assert_ok(kl_report_write(&w.text, w.store, &(kl_report_opts){.runs = runs, .n_runs = 1}, &e));
}

/* ---- one track --------------------------------------------------------------------------- */

static void whole_track(void) {
    line l = line_of(RUN_A, "softmax", "generate", 3);
    put_run(RUN_A, "anthropic:x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "reference", "pass", 2, false, 0);
    row(&l, "tile", "no_edit", 0, false, 10000);
    row(&l, "tile", "wrong", 0, false, 20000);
    row(&l, "tile", "pass", 1.5, true, 30000);
    row(&l, "tile", "cheat", 0, false, 40000);
    row(&l, "vectorize", "pass", 1.9, true, 50000);
    row(&l, "tile", "refused", 0, false, 60000);
    row(&l, "tile", "pass", 1.2, false, 70000);
    row(&l, "tile", "unstable", 0, false, 70000);
    charge(&l, "generate", 50000, false, true);
    charge(&l, "repair", 20000, true, true);
    charge(&l, "repair", 0, false, false);
}

static void test_results__a_track_by_hand(void **state) {
    (void)state;
    whole_track();
    compute_a();
    text_is("schema", "klineage/results");
    number_is("tracks.0.trial", 3);
    text_is("tracks.0.baseline", "openblas");
    number_is("tracks.0.start.ratio", 0.5);
    number_is("tracks.0.reference.ratio", 2);
    number_is("tracks.0.best.ratio", 1.9);
    text_is("tracks.0.best.verdict", kl_arena_printf(w.a, "%064x", 4).ptr);
    number_is("tracks.0.gain.ratio", 3.8);
    number_is("tracks.0.gain.low", 3.8 * 0.999 / 1.001);
    number_is("tracks.0.gain.high", 3.8 * 1.001 / 0.999);
    number_is("tracks.0.recovered.ratio", 0.95);
    number_is("tracks.0.recovered.low", 0.95 * 0.999 / 1.001);
    number_is("tracks.0.reached.step", 6);
    number_is("tracks.0.reached.microusd", 50000);
    number_is("tracks.0.proposals", 8);
    number_is("tracks.0.outcomes.pass", 3);
    number_is("tracks.0.outcomes.unstable", 1);
    number_is("tracks.0.cheating", 1);
    number_is("tracks.0.no_kernel", 2);
    assert_true(json_is_true(at("tracks.0.solved")));
    null_is("tracks.0.cards"); /* no library was named, so no word can be told to be a card's */
    assert_contains(w.text.ptr,
                    "the best kernel is faster than its start, 3.8 \xc3\x97 \\[3.79, 3.81\\] by "
                    "the ratios of both, and faster than openblas, 1.9 \xc3\x97 \\[1.898, "
                    "1.902\\]; model calls cost ~$1.0700; undecided: 1 proposal whose time did not "
                    "settle.");
}

static void test_results__how_a_best_came_about(void **state) {
    (void)state;
    whole_track();
    compute_a();
    number_is("tracks.0.path.0.step", 6); /* made from the start, not from the best before */
    text_is("tracks.0.path.0.action", "vectorize");
    assert_null(at("tracks.0.path.1"));
    number_is("tracks.0.curve.0.1", 0.5);
    number_is("tracks.0.curve.1.0", 0.03);
    number_is("tracks.0.curve.1.1", 1.5);
    number_is("tracks.0.curve.2.2", 6);
    number_is("tracks.0.curve.3.0", 1.07); /* a call that was lost counts, and its row never came */
    number_is("tracks.0.curve.3.1", 1.9);
    assert_null(at("tracks.0.curve.4"));
}

static void test_results__money_by_phase(void **state) {
    (void)state;
    whole_track();
    compute_a();
    number_is("tracks.0.spent_microusd", 1070000);
    number_is("tracks.0.unanswered_microusd", 1000000);
    assert_true(json_is_true(at("tracks.0.estimated")));
    number_is("tracks.0.tokens.calls", 3);
    number_is("tracks.0.tokens.cache_hit_rate", 0.3);
    text_is("tracks.0.phases.1.phase", "repair");
    number_is("tracks.0.phases.1.microusd", 1020000);
    assert_true(json_is_false(at("tracks.0.phases.0.estimated")));
    assert_contains(w.text.ptr,
                    "| generate | repair | 2 | 100 | 300 | 600 | 50 | 30 % | ~$1.0200 |");
    assert_contains(w.text.ptr,
                    "| generate | generate | 1 | 100 | 300 | 600 | 50 | 30 % | $0.0500 |");
}

/* The measured middle is at 0.905 of the reference, the lower end is not. */
static void test_results__ninety_percent_must_be_sure(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    l.error = 0.01;
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "reference", "pass", 2, false, 0);
    row(&l, "tile", "pass", 1.81, true, 10000);
    compute_a();
    number_is("tracks.0.recovered.ratio", 0.905);
    null_is("tracks.0.reached");
    number_is("groups.0.recovered", 0);
    number_is("groups.0.referenced", 1);
    assert_contains(
        w.text.ptr,
        "| softmax | generate | 0/1 | 0.905 \xc3\x97 | 0.905 \\[0.887, 0.923\\] | never |");
}

/* Its words are the model's: a slow "reference" of its own would make it look as if it had
 * recovered. */
static void test_results__a_proposal_cannot_call_itself_the_reference(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "start", "pass", 0.4, false, 5);
    row(&l, "reference", "pass", 0.6, true, 5);
    kl_error e = {0};
    for (int i = 1; i < 3; i++) { /* as kl_track_step writes a proposal */
        kl_store_step *steps;
        size_t n;
        assert_ok(kl_store_step_list(&steps, &n, w.store, w.a, RUN_A, &e));
        json_t *o = json_loads(steps[i].json.ptr, 0, NULL);
        json_object_set_new(o, "parent", json_string("kernel-0"));
        steps[i].json = kli_json_dump(w.a, o, false);
        assert_ok(kl_store_step_put(w.store, &steps[i], &e));
        json_decref(o);
    }
    compute_a();
    null_is("tracks.0.reference");
    number_is("tracks.0.start.step", 0);
    number_is("tracks.0.proposals", 2);
}

/* The quotient of the two ratios would be 4; side by side it was 3. */
static void test_results__the_end_says_what_was_gained(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "tile", "pass", 2, true, 5);
    row(&l, "done", "done", 0, false, 7);
    row(&l, "end", "pass", 3, false, 7);
    compute_a();
    number_is("tracks.0.gain.ratio", 3);
    assert_true(json_is_true(at("tracks.0.gain_timed")));
    number_is("tracks.0.proposals", 1);
    number_is("tracks.0.best.ratio", 2);
    assert_contains(w.text.ptr, "the best kernel is faster than its start, 3 \xc3\x97 \\[2.997, "
                                "3.003\\], and faster than openblas, 2 \xc3\x97 \\[1.998, "
                                "2.002\\]; no model call cost anything; nothing is undecided.");
}

/* 4 x by the ratios of start and best; side by side they are the same: a phantom, shown nowhere. */
static void test_results__a_best_that_is_not_faster_in_the_end_is_the_start(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "tile", "pass", 2, true, 5);
    row(&l, "end", "pass", 1.002, false, 7);
    charge(&l, "search", 7, false, true);
    compute_a();
    text_is("tracks.0.call", "same");
    assert_contains(w.text.ptr,
                    "no kernel was faster than the start; the start is slower than openblas, 0.5 "
                    "\xc3\x97 \\[0.499, 0.5\\]; model calls cost $0.0000; nothing is undecided.");
    number_is("tracks.0.best.ratio", 2); /* what the journal says */
    number_is("tracks.0.shown.ratio", 0.5);
    assert_true(json_is_false(at("tracks.0.solved")));
    assert_true(json_is_true(at("tracks.0.disagrees")));
    number_is("groups.0.best.median", 0.5);
    number_is("groups.0.gain.median", 1);
    number_is("groups.0.band.0.1", 0.5);
    assert_null(at("groups.0.band.2"));
    assert_null(at("tracks.0.path.0"));
    assert_contains(w.text.ptr, "| softmax | generate | 1 \xc3\x97 | 1 | 0.5 \xc3\x97 | 0.5 "
                                "\\[0.499, 0.5\\] \xe2\x89\xa0 | 0/1 |");
    write_page();
    assert_null(strstr(w.text.ptr, "id=\"kernels\""));
}

/* 1.8 x, measured while identical code differed by half. */
static void test_results__a_best_within_the_noise_is_not_measurable(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "tile", "pass", 2, true, 5);
    w.noise = 0.5, w.outcome = KL_OUTCOME_UNSTABLE, l.error = 0.1;
    row(&l, "end", "pass", 1.8, false, 7);
    compute_a();
    text_is("tracks.0.call", "undecided");
    assert_contains(
        w.text.ptr,
        "no kernel proved faster than the start; whether the last candidate is stays undecided, "
        "1.8 \xc3\x97 \\[1.62, 1.98\\]; the start is slower than openblas, 0.5 \xc3\x97 \\[0.499, "
        "0.5\\]; no model call cost anything; undecided: 1 trial over its start.");
    number_is("groups.0.undecided", 1);
    number_is("groups.0.gain.median", 1);
    assert_contains(w.text.ptr, "not measurable \\[1.62, 1.98\\]");
    assert_contains(w.text.ptr, "0/1, 1 not measurable");
    write_page();
    assert_contains(w.text.ptr, "not measurably different from the start");
}

/* Nobody was asked: the policy has neither won nor lost. */
static void test_results__a_track_without_money_for_a_question_is_no_trial(void **state) {
    (void)state;
    line l = line_of(RUN_A, "gemm", "generate", 1), m = line_of(RUN_A, "topk", "generate", 1);
    put_run(RUN_A, "x");
    stopped_by = "budget";
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "end", "pass", 0, false, 0);
    row(&m, "start", "pass", 0.5, true, 0);
    row(&m, "tile", "pass", 2, true, 5);
    row(&m, "end", "pass", 4, false, 7); /* money went later: a trial */
    stopped_by = "";
    compute_a();
    text_is("summary.1", "gemm: the budget was too small for a first call; the start is slower "
                         "than openblas, 0.5 \xc3\x97 [0.499, 0.5].");
    text_is("summary.2", "topk: the best kernel is faster than its start, 4 \xc3\x97 [3.996, "
                         "4.004], and faster than openblas, 2 \xc3\x97 [1.998, 2.002].");
    assert_true(json_is_true(at("tracks.0.never_asked")));
    assert_true(json_is_false(at("tracks.1.never_asked")));
    number_is("groups.0.trials", 0);
    number_is("groups.0.never_asked", 1);
    null_is("groups.0.middle");
    null_is("groups.0.best");
    number_is("contenders.0.targets", 1);
    number_is("contenders.0.gain.share", 1);
    assert_contains(w.text.ptr, "0/0, 1 never asked");
    assert_contains(w.text.ptr, "1/1, 1 never asked");
    write_page();
    assert_contains(w.text.ptr, "never asked");
}

/* One that was kept by a version without floors and calls: its intervals decide, and no quotient
 * close to 1 does. */
static void test_results__an_old_document_is_decided_by_its_intervals(void **state) {
    (void)state;
    kl_buf text = {0};
    json_t *old = json_loads(
        "{\"targets\": [{\"label\": \"t\"}], \"contenders\": [{\"label\": \"p\"}], \"groups\": "
        "[{\"target\": 0, \"contender\": 0, "
        "\"tracks\": [0, 1, 2, 3], \"gain\": {\"median\": 1, \"min\": 1, \"max\": 2}}], "
        "\"tracks\": ["
        "{\"gain_timed\": true, \"gain\": {\"ratio\": 1.004, \"low\": 0.99, \"high\": 1.02}},"
        "{\"gain_timed\": false, \"gain\": {\"ratio\": 1.2, \"low\": 1.15, \"high\": 1.25}},"
        "{\"gain_timed\": true, \"gain\": {\"ratio\": 1.2, \"low\": 1.15, \"high\": 1.25}},"
        "{\"gain_timed\": false, \"gain\": {\"ratio\": 1.0, \"low\": 1.0, \"high\": 1.0}}]}",
        0, NULL);
    kl_report_results_markdown(&text, old);
    assert_contains(text.ptr, "| 1, not measurable \\[1.15, 1.25\\], 1.2 \\[1.15, 1.25\\], 1 |");
    kl_buf_fini(&text);
    json_decref(old);
}

static void test_results__a_track_that_ended_without_a_proposal_is_a_trial(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "bestofn", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "end", "pass", 0, false, 0);
    compute_a();
    number_is("tracks.0.proposals", 0);
    number_is("tracks.0.gain.ratio", 1);
    assert_true(json_is_false(at("tracks.0.gain_timed")));
}

static void test_results__half_a_percent_is_no_success(void **state) {
    (void)state;
    put_run(RUN_A, "x");
    trial(RUN_A, "softmax", "generate", 1, 0.5025, 1);
    compute_a();
    assert_true(json_is_false(at("tracks.0.solved")));
    null_is("contenders.0.best.geomean");
    number_is("contenders.0.best.fail_as_zero", 0);
}

/* A track that waits for its first answer is no failed trial. */
static void test_results__nothing_but_a_start_is_no_trial(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    trial(RUN_A, "softmax", "generate", 2, 1, 0);
    compute_a();
    number_is("contenders.0.trials", 1);
    number_is("tracks.0.trial", 2);
}

/* Proposals that came to nothing, and no money. */
static void test_results__nothing_but_no_edits(void **state) {
    (void)state;
    line l = line_of(RUN_A, "softmax", "generate", 1);
    put_run(RUN_A, "x");
    row(&l, "start", "pass", 0.5, true, 0);
    row(&l, "edit", "no_edit", 0, false, 0);
    compute_a();
    number_is("tracks.0.gain.ratio", 1);
    number_is("tracks.0.proposals", 1);
    null_is("contenders.0.correct");
    null_is("contenders.0.tokens.cache_hit_rate");
    assert_contains(w.text.ptr, "| softmax | generate | 1 \xc3\x97 | 1 | 0.5 \xc3\x97 | 0.5 "
                                "\\[0.499, 0.5\\] | 0/1 | $0.0000 |");
}

/* ---- policies ---------------------------------------------------------------------------- */

static void three_by_two(void) {
    put_run(RUN_A, "x");
    const double best[2][2][3] = {{{1.2, 1.6, 2.5}, {0, 0.8, 1.5}},
                                  {{4, 0, 0}, {0, 0, 0}}}; /* target, policy, trial */
    const char *targets[] = {"gemm", "topk"}, *policies[] = {"klineage", "generate"};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 3; k++)
                trial(RUN_A, targets[i], policies[j], k + 1, best[i][j][k], 100000 * (k + 1));
}

static void test_results__policies_by_hand(void **state) {
    (void)state;
    three_by_two();
    compute_a();
    text_is("contenders.0.label", "klineage");
    number_is("contenders.0.targets", 2);
    number_is("contenders.0.solved", 4);
    number_is("contenders.0.best.share", (1 + 1.0 / 3) / 2);
    number_is("contenders.0.best.geomean", sqrt(1.6 * 4));
    number_is("contenders.0.best.fail_as_zero", (1 + 1.0 / 3) / 2 * sqrt(1.6 * 4));
    number_is("contenders.0.gain.geomean", sqrt(3.2 * 8));
    number_is("contenders.0.fast_1", (1 + 1.0 / 3) / 2);
    number_is("contenders.0.fast_2", (1.0 / 3 + 1.0 / 3) / 2);
    number_is("contenders.0.amsr", ((1.2 + 1.6 + 2.5) / 3 + 4.0 / 3) / 2);
    number_is("contenders.0.correct", 4.0 / 6);
    number_is("contenders.0.spent_microusd", 1200000);
    number_is("contenders.1.best.geomean", 1.15); /* of 0.8 and 1.5: both beat a start at 0.5 */
    number_is("contenders.1.best.fail_as_zero", 1.15 / 3);
    number_is("contenders.1.amsr", 1.5 / 3 / 2); /* 0.8 counts as 0 here */
}

static void test_results__groups_by_hand(void **state) {
    (void)state;
    three_by_two();
    compute_a();
    text_is("summary.0", "Asked for faster kernels of 2 targets, 12 trials by 2 policies: 6 "
                         "ended faster than their start; the highest ratio is that of topk by "
                         "klineage, faster than openblas, 4 \xc3\x97 [3.996, 4.004]; model "
                         "calls cost $2.4000; nothing is undecided.");
    text_is("summary.1", "gemm: the best of 6 trials, by klineage in trial 3, is faster than "
                         "its start, 5 \xc3\x97 [4.99, 5.01] by the ratios of both, and faster "
                         "than openblas, 2.5 \xc3\x97 [2.498, 2.502].");
    text_is("summary.2", "topk: the best of 6 trials, by klineage in trial 1, is faster than "
                         "its start, 8 \xc3\x97 [7.98, 8.02] by the ratios of both, and faster "
                         "than openblas, 4 \xc3\x97 [3.996, 4.004].");
    number_is("groups.0.trials", 3);
    number_is("groups.0.best.median", 1.6);
    number_is("groups.0.best.min", 1.2);
    number_is("groups.0.best.max", 2.5);
    number_is("groups.0.middle", 4);        /* klineage, trial 2 */
    number_is("groups.2.best.median", 0.5); /* those that failed stay at the start */
    number_is("groups.2.solved", 1);
    assert_contains(w.text.ptr, "| gemm | 1.6 \xc3\x97 3/3 | 0.8 \xc3\x97 2/3 |");
    assert_contains(
        w.text.ptr,
        "| gemm | klineage | 3.2 \xc3\x97 (2.4\xe2\x80\x93"
        "5) | 2.4 \\[2.4, 2.4\\], 3.2 \\[3.19, 3.21\\], 5 \\[4.99, 5.01\\] | 1.6 \xc3\x97");
}

/* Steps at 0.1, 0.2 and 0.3 dollars, one of each trial: the median rises with the second. */
static void test_results__a_band_over_dollars(void **state) {
    (void)state;
    three_by_two();
    compute_a();
    const double wanted[][4] = {
        {0, 0.5, 0.5, 0.5}, {0.1, 0.5, 0.5, 1.2}, {0.2, 1.2, 0.5, 1.6}, {0.3, 1.6, 1.2, 2.5}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            number_is(kl_arena_printf(w.a, "groups.0.band.%d.%d", i, j).ptr, wanted[i][j]);
    assert_null(at("groups.0.band.4"));
}

static void test_results__without_a_baseline(void **state) {
    (void)state;
    line l = line_of(RUN_A, "odd", "generate", 1);
    put_run(RUN_A, "x");
    l.baseline = "candidate"; /* timed against itself */
    row(&l, "start", "pass", 1, true, 0);
    l.baseline = "tasks/odd/naive.c";
    row(&l, "edit", "pass", 3, true, 5);
    compute_a();
    null_is("tracks.0.baseline");
    null_is("contenders.0.best");
    null_is("contenders.0.fast_1");
    null_is("contenders.0.amsr");
    number_is("contenders.0.gain.geomean", 3);
}

static void test_results__surfaces_and_platforms_are_targets_of_their_own(void **state) {
    (void)state;
    line cuda = line_of(RUN_A, "gemm", "generate", 1), tile = line_of(RUN_A, "gemm", "generate", 2);
    put_run(RUN_A, "x");
    cuda.surface = "cuda", tile.surface = "tilelang",
    cuda.platform = tile.platform = "nvidia-sm90a/cuda-13.0";
    row(&cuda, "start", "pass", 1, true, 0);
    row(&cuda, "edit", "wrong", 0, false, 0);
    row(&tile, "start", "pass", 1, true, 0);
    row(&tile, "edit", "wrong", 0, false, 0);
    compute_a();
    text_is("targets.0.label", "gemm cuda");
    text_is("targets.1.label", "gemm tilelang");
    number_is("groups.1.trials", 1);
}

static void test_results__trials_of_two_experiments_do_not_mix(void **state) {
    (void)state;
    const char *runs[] = {RUN_A, RUN_B};
    put_run(RUN_A, "x");
    put_run(RUN_B, "x");
    trial(RUN_A, "gemm", "generate", 1, 2, 1);
    trial(RUN_B, "gemm", "generate", 1, 3, 1);
    compute(runs, 2);
    text_is("contenders.0.label", "generate in aaaaaaaa");
    text_is("contenders.1.label", "generate in bbbbbbbb");
}

static void test_results__trials_of_one_experiment_may_be_in_two_runs(void **state) {
    (void)state;
    const char *runs[] = {RUN_A, RUN_B};
    put_run(RUN_A, "x");
    put_run(RUN_B, "x");
    trial(RUN_A, "gemm", "generate", 1, 2, 1);
    trial(RUN_B, "gemm", "generate", 2, 3, 1);
    compute(runs, 2);
    number_is("groups.0.trials", 2);
    null_is("contenders.0.run");
}

static void test_results__models_are_contenders(void **state) {
    (void)state;
    const char *runs[] = {RUN_A, RUN_B};
    put_run(RUN_A, "anthropic:x");
    put_run(RUN_B, "openai:y");
    trial(RUN_A, "gemm", "generate", 1, 2, 1);
    trial(RUN_B, "gemm", "generate", 1, 3, 1);
    compute(runs, 2);
    text_is("contenders.1.label", "generate by openai:y");
    number_is("groups.0.trials", 1);
}

static void test_results__an_experiment_names_its_policies(void **state) {
    (void)state;
    put_run(RUN_A, "x");
    trial(RUN_A, "gemm", "no-cards", 1, 2, 1);
    trial(RUN_A, "gemm", "klineage", 1, 3, 1);
    compute_a();
    text_is("contenders.0.label", "klineage");
    text_is("contenders.1.label", "no-cards");
    number_is("tracks.1.contender", 1);
}

static void test_results__a_walk_is_no_search(void **state) {
    (void)state;
    line l = line_of(RUN_A, "gemm", "walk", 1);
    put_run(RUN_A, "x");
    row(&l, "prefetch", "pass", 2, true, 1);
    row(&l, "start", "pass", 2, true, 1);
    compute_a();
    assert_int_equal(json_array_size(at("tracks")), 0);
    assert_string_equal(w.text.ptr,
                        "These runs contain no search and no lineage; no model call cost anything; "
                        "nothing is undecided.\n\n");
}

/* ---- words from elsewhere ---------------------------------------------------------------- */

static void test_results__hostile_words_are_no_markdown(void **state) {
    (void)state;
    put_run(RUN_A, "x");
    trial(RUN_A, EVIL, "generate", 1, 2, 1);
    compute_a();
    assert_contains(
        w.text.ptr,
        "| a\\|b\\`c\\` \\# \\<script\\>alert(1)\\</script\\> \\[x\\](http://y) \\~\\~z\\~\\~ |");
    assert_null(strstr(w.text.ptr, " <script"));
}

/* A document may come from a file.  Every value of a good one is replaced by something that it
 * should not be. */
static void spoil(json_t *o, int *at_value, int chosen, const json_t *with) {
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(o)) json_object_foreach(o, key, value) {
            if ((*at_value)++ == chosen) {
                json_object_set(o, key, (json_t *)with);
                return;
            }
            spoil(value, at_value, chosen, with);
        }
    if (json_is_array(o)) json_array_foreach(o, i, value) {
            if ((*at_value)++ == chosen) {
                json_array_set(o, i, (json_t *)with);
                return;
            }
            spoil(value, at_value, chosen, with);
        }
}

static void test_results__a_spoilt_document_is_still_read(void **state) {
    (void)state;
    static const char *const values[] = {"null", "-1", "99999999999",   "\"x\"",
                                         "[]",   "{}", "[[1], -5, {}]", "\"NaN\""};
    three_by_two();
    compute_a();
    for (size_t v = 0; v < KL_COUNT(values); v++) {
        json_t *with = json_loads(values[v], JSON_DECODE_ANY, NULL);
        for (int chosen = 0, n = 1; chosen < n; chosen++) {
            json_t *copy = json_deep_copy(w.results);
            kl_buf text = {0};
            n = 0;
            spoil(copy, &n, chosen, with);
            if (chosen == n) n = chosen + 1;
            kl_report_results_markdown(&text, copy);
            assert_true(text.len > 0);
            kl_buf_fini(&text);
            json_decref(copy);
        }
        json_decref(with);
    }
    kl_report_results_markdown(&w.text, NULL);
}

/* ---- the page ---------------------------------------------------------------------------- */

static void test_page__numbers_of_a_comparison_lead_to_verdicts(void **state) {
    (void)state;
    three_by_two();
    write_page();
    assert_contains(w.text.ptr, "<h2 id=\"comparison\">");
    assert_contains(w.text.ptr, "Which policy is fastest at what?");
    for (const char *at = w.text.ptr; (at = strstr(at, "href=\"#")); at++) {
        const char *name = at + 7, *end = strchr(name, '"');
        const char *id = kl_arena_printf(w.a, "id=\"%.*s\"", (int)(end - name), name).ptr;
        if (!strstr(w.text.ptr, id)) fail_msg("%s is not on the page", id);
    }
    assert_null(strstr(w.text.ptr, "gnuplot failed"));
}

static void test_page__hostile_words_in_a_comparison(void **state) {
    (void)state;
    put_run(RUN_A, EVIL);
    trial(RUN_A, EVIL, "generate", 1, 2, 1);
    trial(RUN_A, EVIL, "klineage", 1, 2, 1);
    write_page();
    assert_null(strstr(w.text.ptr, "<script"));
    assert_null(strstr(w.text.ptr, "gnuplot failed"));
}

static void test_page__a_search_without_money_or_success(void **state) {
    (void)state;
    put_run(RUN_A, "x");
    trial(RUN_A, "gemm", "generate", 1, 0, 0);
    trial(RUN_A, "gemm", "klineage", 1, 0, 0);
    write_page();
    assert_null(strstr(w.text.ptr, "gnuplot failed"));
    assert_null(strstr(w.text.ptr, "id=\"kernels\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_results__a_track_by_hand),
        CASE(test_results__how_a_best_came_about),
        CASE(test_results__money_by_phase),
        CASE(test_results__ninety_percent_must_be_sure),
        CASE(test_results__a_proposal_cannot_call_itself_the_reference),
        CASE(test_results__the_end_says_what_was_gained),
        CASE(test_results__a_best_that_is_not_faster_in_the_end_is_the_start),
        CASE(test_results__a_best_within_the_noise_is_not_measurable),
        CASE(test_results__a_track_without_money_for_a_question_is_no_trial),
        CASE(test_results__an_old_document_is_decided_by_its_intervals),
        CASE(test_results__a_track_that_ended_without_a_proposal_is_a_trial),
        CASE(test_results__half_a_percent_is_no_success),
        CASE(test_results__nothing_but_a_start_is_no_trial),
        CASE(test_results__nothing_but_no_edits),
        CASE(test_results__policies_by_hand),
        CASE(test_results__groups_by_hand),
        CASE(test_results__a_band_over_dollars),
        CASE(test_results__without_a_baseline),
        CASE(test_results__surfaces_and_platforms_are_targets_of_their_own),
        CASE(test_results__trials_of_two_experiments_do_not_mix),
        CASE(test_results__trials_of_one_experiment_may_be_in_two_runs),
        CASE(test_results__models_are_contenders),
        CASE(test_results__an_experiment_names_its_policies),
        CASE(test_results__a_walk_is_no_search),
        CASE(test_results__hostile_words_are_no_markdown),
        CASE(test_results__a_spoilt_document_is_still_read),
        CASE(test_page__numbers_of_a_comparison_lead_to_verdicts),
        CASE(test_page__hostile_words_in_a_comparison),
        CASE(test_page__a_search_without_money_or_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
