/* learned_test.c - lift, reports and tables of searches, out of recordings and of a journal that
 * was written for the test; and what the commands that spend refuse before they do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit/fake_provider.h"
#include "command/asked.h"
#include "command/effort.h"
#include "command/searched.h"

#define LINEAGES KL_TEST_ROOT "/library/lineages/"
#define RECORDINGS KL_TEST_ROOT "/library/recordings/"

static int set_up(void **state) {
    asked_set_up(state);
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    unsetenv("KLINEAGE_PRICES");
    always(KL_OPTION_STORE, kit_path("k.db"));
    always(KL_OPTION_LIBRARY, kit_path("mine"));
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, asked_tear_down)

/* ---- lift --------------------------------------------------------------------------------- */

static kl_err lift(void) {
    with(KL_OPTION_MODEL, "replay:" RECORDINGS "lift.jsonl");
    return ASK(LIFT, LINEAGES "gemm-c.json", LINEAGES "fmha-c.json", LINEAGES "conv2d-c.json",
               LINEAGES "topk-c.json", NULL);
}

static void test_lift__makes_a_candidate_of_each_group(void **state) {
    size_t lifted = 0;
    (void)state;
    assert_ok(lift());
    lifted = count_of("cards");
    assert_true(lifted > 5);
    for (size_t i = 0; i < lifted; i++) {
        const json_t *row = row_of("cards", i);
        assert_true(number(row, "births") >= 1);
        assert_true(kli_json_real_or(row, "expected_gain", 0) > 1);
        assert_false(kli_json_bool_or(row, "kept_out", true));
        assert_true(kli_fs_is_dir(kl_arena_printf(arena, "%s/lifted/%.*s", kit_path("mine"),
                                                  KL_STR_ARG(said(row, "name")))
                                      .ptr));
    }
    assert_contains(text, "next: klineage admit --all");
    assert_ok(ASK(LIBRARY_LIST, NULL));
    assert_int_equal(count_of("cards"), lifted);
}

/* An admitted card keeps its place and its text; the others are written beside it. */
static void test_lift__leaves_an_admitted_card_alone(void **state) {
    (void)state;
    mine_has("admitted/fma-simd-c");
    const char *before = kit_read(mine("admitted/fma-simd-c/SKILL.md"));
    assert_ok(lift());
    assert_true(kli_json_bool_or(row_named("cards", "name", "fma-simd-c"), "kept_out", false));
    assert_contains(text, "already admitted: unchanged");
    assert_string_equal(kit_read(mine("admitted/fma-simd-c/SKILL.md")), before);
    assert_false(kli_fs_exists(mine("lifted/fma-simd-c")));
}

/* A recording of other edges: what it does not answer is written up in the words of the walk. */
static void test_lift__a_replay_needs_no_answer_for_each(void **state) {
    (void)state;
    with(KL_OPTION_MODEL, "replay:" RECORDINGS "lift-qgemm.jsonl");
    assert_ok(ASK(LIFT, LINEAGES "gemm-c.json", NULL));
    row_named("cards", "name", "pack-b-c");   /* it is in the recording */
    row_named("cards", "name", "fma-simd-c"); /* it is not */
    assert_ok(ASK(COST, NULL));
    assert_int_equal(number(json_object_get(json, "total"), "microusd"), 0);
}

static void test_lift__a_lineage_named_twice_is_no_second_witness(void **state) {
    (void)state;
    with(KL_OPTION_MODEL, "builtin");
    assert_ok(ASK(LIFT, LINEAGES "gemm-c.json", NULL));
    const char *once = text;
    with(KL_OPTION_MODEL, "builtin");
    with(KL_OPTION_TRIAL, "2");
    assert_ok(ASK(LIFT, LINEAGES "gemm-c.json", LINEAGES "gemm-c.json", NULL));
    assert_string_equal(text, once);
}

/* ---- refused before anything is spent ----------------------------------------------------- */

static kl_err rederive(const char *edges) {
    with(KL_OPTION_MODEL, "builtin");
    with(KL_OPTION_EDGES, edges);
    return ASK(LINEAGE_REDERIVE, LINEAGES "gemm-c.json", NULL);
}

static void test_rederive__edges_are_numbers_of_edges_that_pay(void **state) {
    static const char *const REFUSED[] = {
        "0", "99", "-1", "x", "1x", "1-3", "1,x", "1,", ",1", "1 ", "18446744073709551617"};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(REFUSED); i++) {
        assert_err(KL_EINVAL, rederive(REFUSED[i]));
        assert_contains(e.message, "no profitable edge leads to such a state");
        assert_contains(e.hint, "K1 to K7");
    }
}

/* Nothing is judged of a lineage of another version of its task. */
static void test_lineage__of_another_version_of_its_task_is_refused(void **state) {
    (void)state;
    copy(KL_TEST_ROOT "/tasks/gemm", kit_path("tasks/gemm"));
    setenv("KLINEAGE_TASKS", kit_path("tasks"), 1);
    const char *path = kit_path("tasks/gemm/definition.json");
    json_t *o = json_loads(kit_read(path), 0, NULL);
    json_object_set_new(o, "description", json_string("something else"));
    assert_ok(kli_fs_write(path, kli_json_dump(arena, o, true), &e));
    json_decref(o);
    assert_err(KL_EINVAL, rederive("1"));
    assert_contains(e.message, "belongs to another version of the task gemm");
    assert_err(KL_EINVAL, ASK(LINEAGE_JUDGE, LINEAGES "gemm-c.json", NULL));
}

static void test_admit__a_card_must_be_there(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    with(KL_OPTION_MODEL, "builtin");
    assert_err(KL_ENOENT, ASK(ADMIT, "packbc", NULL));
    assert_contains(e.message, "no card named packbc");
    with(KL_OPTION_MODEL, "builtin");
    with(KL_OPTION_ALL, ""); /* an admitted card does not wait */
    assert_err(KL_EINVAL, ASK(ADMIT, NULL));
    assert_contains(e.message, "none is waiting for admission");
    with(KL_OPTION_MODEL, "builtin");
    with(KL_OPTION_REPRODUCE, "most");
    assert_err(KL_EINVAL, ASK(ADMIT, "pack-b-c", NULL));
    with(KL_OPTION_MODEL, "builtin");
    with(KL_OPTION_TRIALS, "0");
    assert_err(KL_EINVAL, ASK(ADMIT, "pack-b-c", NULL));
}

static void test_optimize__settings_and_surfaces_are_checked(void **state) {
    static const struct {
        kli_option_id id;
        const char *value, *message;
    } ROWS[] = {{KL_OPTION_POLICY, ",", "no policy named"},
                {KL_OPTION_POLICY, "klineage,nothing", "no policy named nothing"},
                {KL_OPTION_POLICY, "generate,generate", "duplicate track"},
                {KL_OPTION_SURFACE, "tilelang", "no such file"},
                {KL_OPTION_PATIENCE, "0", "--patience must be from 1"},
                {KL_OPTION_GOAL, "fast", "--goal takes a number"},
                {KL_OPTION_WORKLOAD, "cpuu", "no workload 'cpuu'"}};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        with(KL_OPTION_MODEL, "builtin");
        with(KL_OPTION_POLICY, "generate");
        with(ROWS[i].id, ROWS[i].value);
        assert_true(ASK(OPTIMIZE, "softmax", NULL) != KL_OK);
        assert_contains(e.message, ROWS[i].message);
    }
}

/* ---- a run that ended --------------------------------------------------------------------- */

static kl_err body(kl_track *t, void *ctx, kl_error *error) {
    kl_reply r;
    (void)ctx;
    kl_track_phase(t, "materialize");
    const kl_err err = fake_question(&r, t, "one", error);
    const kl_step s = {.phase = KL_S("materialize"), .outcome = KL_S("no_edit")};
    return err ? err : kl_track_step(t, &s, (kl_str){0}, error);
}

/* A run with one paid call, by track "softmax/generate/1". */
static kl_run *paid_run(void) {
    const kl_run_opts o = {.command = "optimize",
                           .store = kit_path("k.db"),
                           .model = kl_arena_printf(arena, "fake:%s", kit_path("calls")).ptr,
                           .provider = &fake_paid,
                           .priced_as = "claude-opus-4-6",
                           .budget_microusd = 1000000};
    const kl_track_spec track = {
        .name = "softmax/generate/1", .workload = "softmax", .policy = "generate", .body = body};
    kl_run *r;
    assert_ok(kl_run_open(&r, &o, &e));
    assert_ok(kl_run_tracks(r, &track, 1, NULL, &e));
    return r;
}

static void test_effort__what_was_spent_is_told_with_its_run(void **state) {
    (void)state;
    kl_buf b = {0};
    bool estimated = true;
    kl_run *r = paid_run();
    assert_ok(kli_effort_estimated(&estimated, r, arena, &e));
    assert_false(estimated);
    kli_effort_spent(&b, r, 1234567, estimated);
    assert_str(kl_buf_str(&b),
               kl_arena_printf(arena, "spent $1.2346; klineage cost %.12s\n", kl_run_id(r)).ptr);
    kl_buf_fini(&b);
    kli_effort_spent(&b, r, 0, true);
    assert_contains(b.ptr, "spent $0.0000 (estimated); ");
    kl_buf_fini(&b);
    kl_run_close(r);
}

/* ---- the table of a search ---------------------------------------------------------------- */

enum { TRACKS = 5 };

static kl_search_result result_of(kl_kernel *best, kl_decision call, double gain) {
    kl_search_result r = {.best = best,
                          .gain = gain,
                          .gain_low = gain * 0.95,
                          .gain_high = gain * 1.05,
                          .call = call,
                          .gain_timed = true,
                          .stopped = KL_S("steps"),
                          .proposals = 3,
                          .spent_microusd = 250000};
    r.start_verdict.n_comparisons = r.verdict.n_comparisons = 1;
    r.start_verdict.comparisons[0] = (kl_comparison){.baseline = KL_S("onednn"), .ratio = 0.5};
    r.verdict.comparisons[0] = (kl_comparison){.baseline = KL_S("onednn"), .ratio = 0.5 * gain};
    return r;
}

/* A track for each way to end. */
static void make_tracks(kl_experiment_track *tracks, kl_kernel *k, kl_task *task,
                        kl_experiment_policy *policy) {
    for (int i = 0; i < TRACKS; i++) {
        const kl_str name = kl_arena_printf(arena, "softmax/generate/%d", i + 1);
        tracks[i] = (kl_experiment_track){.name = name.ptr, .policy = policy, .trial = i + 1};
        tracks[i].opts.task = task;
        tracks[i].opts.start = k;
    }
    kl_fail(&tracks[0].error, KL_EMODEL, "anthropic", "wrong key");
    kl_hint(&tracks[0].error, "look at ANTHROPIC_API_KEY");
    kl_fail(&tracks[1].error, KL_PENDING, "mailbox", "no answer yet");
    tracks[2].result = result_of(k, KL_DECISION_FASTER, 2);
    tracks[2].result.cards = KL_S("pack-b-c");
    tracks[3].result = result_of(k, KL_DECISION_UNDECIDED, 1.02);
    tracks[3].result.start_verdict.outcome = KL_OUTCOME_UNSTABLE;
    tracks[4].result = result_of(k, KL_DECISION_SAME, 1);
}

static const char *searched(kli_searched *s) {
    kl_experiment_policy policy = {.name = KL_S("generate")};
    kl_experiment_track *tracks = KL_ARRAY(arena, kl_experiment_track, TRACKS);
    kl_task *task;
    kl_kernel *k;
    kl_buf b = {0};
    assert_ok(kl_task_load(&task, arena, KL_TEST_ROOT "/tasks/softmax", &e));
    assert_ok(kl_kernel_load(&k, arena, KL_TEST_ROOT "/tasks/softmax/naive.c", NULL, &e));
    make_tracks(tracks, k, task, &policy);
    kl_run *r = paid_run();
    assert_ok(kli_searched_show(s, &b, arena, r, tracks, TRACKS, &e));
    kl_run_close(r);
    assert_str(kli_searched_file(arena, &tracks[2]), "softmax-generate-3.c");
    return kl_buf_take(&b, arena).ptr;
}

static void test_searched__has_a_row_for_every_end(void **state) {
    kli_searched s;
    (void)state;
    const char *table = searched(&s);
    assert_int_equal(s.ended, 3);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.waiting, 1);
    assert_true(s.improved && !s.estimated);
    assert_int_equal(json_array_size(s.rows), TRACKS);
    assert_contains(table, " failed: anthropic: wrong key\n    look at ANTHROPIC_API_KEY\n");
    assert_contains(table, " waits: mailbox: no answer yet\n");
    assert_contains(table, "2x [1.9, 2.1]");
    assert_contains(table, "    cards: pack-b-c\n");
    assert_contains(table, "not measurable [0.969, 1.07]");
    assert_contains(table, "its time against the baseline did not converge");
    const json_t *faster = json_array_get(s.rows, 2);
    assert_str(said(faster, "call"), "faster");
    assert_str(said(faster, "baseline"), "onednn");
    assert_true(kli_json_real_or(faster, "ratio", 0) == 1);
    const json_t *failed = json_object_get(json_array_get(s.rows, 0), "error");
    assert_str(said(failed, "hint"), "look at ANTHROPIC_API_KEY");
    json_decref(s.rows);
}

/* A line that failed has no result, but what it spent is in the ledger. */
static void test_searched__money_of_a_failed_track_counts(void **state) {
    kli_searched s;
    (void)state;
    searched(&s);
    const int64_t failed = number(json_array_get(s.rows, 0), "spent_microusd");
    assert_true(failed > 0);
    assert_int_equal(s.spent_microusd, failed + 3 * 250000);
    assert_int_equal(number(json_array_get(s.rows, 1), "spent_microusd"), 0);
    json_decref(s.rows);
}

/* ---- report ------------------------------------------------------------------------------- */

static void test_report__writes_what_was_asked_for(void **state) {
    (void)state;
    kl_run *r = paid_run();
    const char *id = kl_arena_copy(arena, kl_str_of(kl_run_id(r))).ptr;
    kl_run_close(r);
    always(KL_OPTION_LIBRARY, NULL);
    with(KL_OPTION_OUT, kit_path("page.html"));
    assert_ok(ASK(REPORT, id, NULL));
    assert_string_equal(text, kl_arena_printf(arena, "%s\n", kit_path("page.html")).ptr);
    assert_contains(kit_read(kit_path("page.html")), "<!doctype html>");
    with(KL_OPTION_MARKDOWN, "");
    assert_ok(ASK(REPORT, id, NULL));
    assert_true(strlen(text) > 0);
    assert_false(kli_fs_exists("report.html")); /* numbers were asked for, and no page */
    with(KL_OPTION_OUT, kit_path("page.html"));
    assert_err(KL_ENOENT, ASK(REPORT, "0123456789", NULL));
    with(KL_OPTION_OUT, kit_path("page.html"));
    with(KL_OPTION_LIBRARY, kit_path("none")); /* one that is named must be there */
    assert_true(ASK(REPORT, id, NULL) != KL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_lift__makes_a_candidate_of_each_group),
        TEST(test_lift__leaves_an_admitted_card_alone),
        TEST(test_lift__a_replay_needs_no_answer_for_each),
        TEST(test_lift__a_lineage_named_twice_is_no_second_witness),
        TEST(test_rederive__edges_are_numbers_of_edges_that_pay),
        TEST(test_lineage__of_another_version_of_its_task_is_refused),
        TEST(test_admit__a_card_must_be_there),
        TEST(test_optimize__settings_and_surfaces_are_checked),
        TEST(test_effort__what_was_spent_is_told_with_its_run),
        TEST(test_searched__has_a_row_for_every_end),
        TEST(test_searched__money_of_a_failed_track_counts),
        TEST(test_report__writes_what_was_asked_for),
    };
    return cmocka_run_group_tests_name("learned", tests, NULL, NULL);
}
