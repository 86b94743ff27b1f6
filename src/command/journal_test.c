/* journal_test.c - what the commands over the journal show of rows that were written for the test:
 * verdicts, the ledger, lineages.  SPDX-License-Identifier: Apache-2.0 */
#include "command/asked.h"
#include "base/hash.h"
#include "base/proc.h"
#include "command/journal.h"
#include <klineage/lineage.h>

#define GEMM_LINEAGE KL_TEST_ROOT "/library/lineages/gemm-c.json"

static kl_store *store;

static int set_up(void **state) {
    asked_set_up(state);
    always(KL_OPTION_STORE, kit_path("k.db"));
    assert_ok(kl_store_open(&store, kit_path("k.db"), &e));
    return 0;
}

static int tear_down(void **state) {
    kl_store_close(store);
    return asked_tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static kl_str hash_of(const char *name) {
    return kl_arena_copy(arena, kl_str_of(kli_hash_of(kl_str_of(name)).hex));
}

/* ---- verdicts ----------------------------------------------------------------------------- */

static kl_verdict verdict_of(const char *task, kl_outcome outcome) {
    return (kl_verdict){.outcome = outcome,
                        .stage = outcome == KL_OUTCOME_PASS ? KL_STAGE_DONE : KL_STAGE_TINY,
                        .assurance = 'B',
                        .task = kl_str_of(task),
                        .task_hash = hash_of(task),
                        .kernel_path = KL_S("mine.c"),
                        .kernel_hash = hash_of("kernel"),
                        .surface = KL_S("c"),
                        .workload = KL_S("cpu"),
                        .platform = KL_S("x86-64-v4/gcc-12"),
                        .device = KL_S("a core"),
                        .toolchain = KL_S("gcc 12.2.0"),
                        .isolation = KL_S("seccomp+landlock7"),
                        .artefact_hash = hash_of("artefact"),
                        .seed = 42,
                        .created = KL_S("2026-01-31T12:00:00Z")};
}

static const char *keep(const char *name, const kl_verdict *v) {
    char *key = KL_ARRAY(arena, char, 65);
    memcpy(key, hash_of(name).ptr, 65);
    assert_ok(kli_verdicts_keep(key, store, arena, v, &e));
    return key;
}

static kl_verdict timed_verdict(void) {
    kl_verdict v = verdict_of("gemm", KL_OUTCOME_PASS);
    v.median_ns = 1500000;
    v.n_comparisons = 1;
    v.comparisons[0] = (kl_comparison){.baseline = KL_S("openblas"),
                                       .ratio = 1.25,
                                       .low = 1.2,
                                       .high = 1.3,
                                       .call = KL_DECISION_FASTER};
    return v;
}

static void test_verdict_list__shows_a_ratio_only_of_what_was_timed(void **state) {
    const kl_verdict timed = timed_verdict(), wrong = verdict_of("gemm", KL_OUTCOME_WRONG);
    (void)state;
    const char *of_timed = keep("a", &timed), *of_wrong = keep("b", &wrong);
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_int_equal(count_of("verdicts"), 2);
    const json_t *row = row_named("verdicts", "key", of_timed);
    assert_str(said(row, "outcome"), "pass");
    assert_str(said(row, "workload"), "cpu");
    assert_str(said(row, "path"), "mine.c");
    assert_true(kli_json_real_or(row, "ratio", 0) == 1.25);
    row = row_named("verdicts", "key", of_wrong);
    assert_null(json_object_get(row, "ratio"));
    assert_contains(text, "1.250x faster");
    assert_contains(text, kl_arena_printf(arena, "%.12s", of_wrong).ptr);
}

static void test_verdict_list__selects_by_task_outcome_and_number(void **state) {
    const kl_verdict rows[] = {verdict_of("gemm", KL_OUTCOME_WRONG),
                               verdict_of("gemm", KL_OUTCOME_CRASH),
                               verdict_of("softmax", KL_OUTCOME_WRONG)};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        keep(kl_arena_printf(arena, "row %zu", i).ptr, &rows[i]);
    with(KL_OPTION_TASK, "gemm");
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_int_equal(count_of("verdicts"), 2);
    with(KL_OPTION_OUTCOME, "wrong");
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_int_equal(count_of("verdicts"), 2);
    with(KL_OPTION_TASK, "gemm");
    with(KL_OPTION_OUTCOME, "wrong");
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_int_equal(count_of("verdicts"), 1);
    with(KL_OPTION_LIMIT, "1");
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_int_equal(count_of("verdicts"), 1);
    with(KL_OPTION_TASK, "topk");
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_contains(text, "no verdicts");
}

/* A row that another program wrote is listed by its columns. */
static void test_verdict_list__a_row_that_is_no_verdict_is_listed_still(void **state) {
    const kl_store_verdict row = {.key = hash_of("strange"),
                                  .task = KL_S("gemm"),
                                  .kernel = hash_of("kernel"),
                                  .platform = KL_S("p"),
                                  .outcome = KL_S("pass"),
                                  .json = KL_S("{\"schema\": \"another\"}")};
    (void)state;
    assert_ok(kl_store_verdict_put(store, &row, &e));
    assert_ok(ASK(VERDICT_LIST, NULL));
    assert_str(said(row_of("verdicts", 0), "outcome"), "pass");
    assert_null(json_object_get(row_of("verdicts", 0), "path"));
    assert_true(ASK(VERDICT_SHOW, row.key.ptr, NULL) != KL_OK);
}

static void test_verdict_show__has_every_check_and_the_identity(void **state) {
    kl_verdict v = verdict_of("gemm", KL_OUTCOME_WRONG);
    kl_check_result checks[] = {{.workload = KL_S("tiny"),
                                 .output = KL_S("y"),
                                 .scale = 1,
                                 .ok = true,
                                 .rms_error = 1e-7,
                                 .budget = 4e-7,
                                 .first_bad = -1},
                                {.workload = KL_S("hidden"),
                                 .output = KL_S("y"),
                                 .scale = 8,
                                 .rms_error = 0.5,
                                 .budget = 4e-7,
                                 .bad = 3,
                                 .first_bad = 17,
                                 .got = 2,
                                 .expected = 1}};
    (void)state;
    v.checks = checks;
    v.n_checks = KL_COUNT(checks);
    v.why = KL_S("3 elements of y differ");
    const char *key = keep("v", &v);
    assert_ok(ASK(VERDICT_SHOW, kl_arena_printf(arena, "%.8s", key).ptr, NULL));
    assert_int_equal(answer.exit_code, 0); /* showing worked, whatever it says */
    assert_contains(text, "3 elements of y differ");
    assert_contains(text, "ok  tiny       y            1e-07 of 4e-07\n");
    assert_contains(text, "BAD hidden");
    assert_contains(text, "inputs x 8; 3 bad, first at 17: 2 instead of 1\n");
    assert_contains(text, "seed      42\n");
    assert_contains(text, "isolation seccomp+landlock7\n");
    assert_str(said(json, "outcome"), "wrong");
}

static void test_verdict_show__a_prefix_must_mean_one(void **state) {
    const kl_verdict v = verdict_of("gemm", KL_OUTCOME_WRONG);
    kl_verdict w = v;
    char key[65];
    (void)state;
    w.seed = 43;
    memcpy(key, hash_of("v").ptr, sizeof key);
    assert_ok(kli_verdicts_keep(key, store, arena, &v, &e));
    key[63] = key[63] == '0' ? '1' : '0';
    assert_ok(kli_verdicts_keep(key, store, arena, &w, &e));
    assert_err(KL_EINVAL, ASK(VERDICT_SHOW, kl_arena_printf(arena, "%.8s", key).ptr, NULL));
    assert_ok(ASK(VERDICT_SHOW, key, NULL));
    assert_err(KL_ENOENT, ASK(VERDICT_SHOW, "00000000", NULL));
    assert_contains(e.hint, "klineage verdict list");
}

/* ---- the ledger --------------------------------------------------------------------------- */

static kl_store_charge charge(const char *call, const char *run, const char *phase,
                              int64_t microusd) {
    return (kl_store_charge){.effect = hash_of(call),
                             .run = hash_of(run),
                             .track = KL_S("t"),
                             .workload = KL_S("gemm"),
                             .policy = KL_S("walk"),
                             .phase = kl_str_of(phase),
                             .model = KL_S("m"),
                             .priced_as = KL_S("m"),
                             .reserved_microusd = microusd};
}

static void reserve(const kl_store_charge *c) {
    kl_store_charge reserved = *c;
    assert_ok(kl_store_reserve(store, &reserved, false, 1000000000, 0, &e));
}

static void settle(kl_store_charge c, int64_t microusd, int64_t input, int64_t cached) {
    const kl_store_effect f = {.key = c.effect,
                               .run = c.run,
                               .track = c.track,
                               .kind = KL_S("ask"),
                               .purpose = KL_S("x"),
                               .request = KL_S("{}"),
                               .answer = KL_S("{}")};
    reserve(&c);
    c.settled_microusd = microusd;
    c.input = input;
    c.cache_read = cached;
    c.output = 10;
    assert_ok(kl_store_settle(store, &f, &c, &e));
}

static void put_run(const char *name) {
    const kl_store_run r = {.id = hash_of(name),
                            .command = KL_S("walk"),
                            .json = KL_S("{\"model\": \"a\\u001b[2Jmodel\"}")};
    assert_ok(kl_store_run_put(store, &r, &e));
}

/* Two runs: what was answered, what was lost on the way, and what is still out. */
static void write_ledger(void) {
    const kl_store_charge lost = charge("3", "one", "walk", 700),
                          out = charge("4", "one", "walk", 900);
    put_run("one");
    put_run("two");
    settle(charge("1", "one", "walk", 500), 400, 25, 75);
    settle(charge("2", "one", "rederive", 500), 300, 100, 0);
    reserve(&lost);
    assert_ok(kl_store_lose(store, lost.effect.ptr, &e));
    reserve(&out);
    settle(charge("5", "two", "lift", 2000000), 1500000, 0, 0);
}

static void test_cost__keeps_apart_what_is_known_and_what_may_be(void **state) {
    (void)state;
    write_ledger();
    assert_ok(ASK(COST, kl_arena_printf(arena, "%.8s", hash_of("one").ptr).ptr, NULL));
    assert_int_equal(count_of("rows"), 2);
    const json_t *walk = row_named("rows", "phase", "walk");
    assert_int_equal(number(walk, "calls"), 1);
    assert_int_equal(number(walk, "microusd"), 400);
    assert_int_equal(number(walk, "lost"), 1);
    assert_int_equal(number(walk, "lost_microusd"), 700);
    assert_int_equal(number(walk, "open"), 1);
    assert_int_equal(number(walk, "open_microusd"), 900);
    assert_true(kli_json_real_or(walk, "hit_rate", 0) == 0.75);
    assert_true(kli_json_real_or(row_named("rows", "phase", "rederive"), "hit_rate", 1) == 0);
    const json_t *total = json_object_get(json, "total");
    assert_int_equal(number(total, "microusd"), 700);
    assert_int_equal(number(json_object_get(total, "usage"), "input"), 125);
    assert_contains(text, "+ 1 lost, up to $0.0007  + 1 open, up to $0.0009\n");
    assert_contains(text, "counted at the maximum cost");
    assert_contains(text, "\ntotal ");
    assert_null(strstr(text, "~")); /* the provider counted the tokens */
}

static void test_cost__without_a_run_has_a_line_for_each(void **state) {
    (void)state;
    write_ledger();
    assert_ok(ASK(COST, NULL));
    assert_int_equal(count_of("rows"), 2);
    const json_t *two = row_named("rows", "run", hash_of("two").ptr);
    assert_int_equal(number(two, "microusd"), 1500000);
    assert_true(kli_json_real_or(two, "hit_rate", 1) == 0); /* no prompt: no share of one */
    assert_int_equal(number(json_object_get(json, "total"), "microusd"), 1500700);
    assert_contains(text, "$1.5007  + 1 lost");
    assert_err(KL_ENOENT, ASK(COST, "0123456789", NULL));
}

static void test_run_list__sums_what_was_settled(void **state) {
    (void)state;
    write_ledger();
    assert_ok(ASK(RUN_LIST, NULL));
    assert_int_equal(count_of("runs"), 2);
    const json_t *one = row_named("runs", "id", hash_of("one").ptr);
    assert_int_equal(number(one, "calls"), 2);
    assert_int_equal(number(one, "microusd"), 700);
    assert_contains(text, "    2 calls  $0.0007  a [2Jmodel\n"); /* words of others are data */
}

static void test_run_show__says_where_questions_without_answers_are(void **state) {
    (void)state;
    write_ledger();
    assert_ok(ASK(RUN_SHOW, hash_of("one").ptr, NULL));
    assert_int_equal(count_of("open"), 2);
    assert_contains(text, "lost in transit\n");
    assert_contains(text, "in progress, or interrupted by a crash\n");
    assert_ok(ASK(RUN_SHOW, hash_of("two").ptr, NULL));
    assert_int_equal(count_of("open"), 0);
    assert_contains(text, "1 model calls for $1.5000, 0 verdicts, 0 steps\n");
}

/* What was lost and then answered in another attempt is no open question. */
static void test_run_show__the_last_attempt_counts(void **state) {
    const kl_store_charge c = charge("call", "run", "walk", 100);
    (void)state;
    put_run("run");
    reserve(&c);
    assert_ok(kl_store_lose(store, c.effect.ptr, &e));
    settle(c, 50, 1, 0);
    assert_ok(ASK(RUN_SHOW, hash_of("run").ptr, NULL));
    assert_int_equal(count_of("open"), 0);
    assert_err(KL_EINVAL, ASK(RUN_RECORD, hash_of("run").ptr, NULL));
    assert_contains(e.hint, "--out FILE");
}

static void test_run_record__wants_calls(void **state) {
    (void)state;
    put_run("silent");
    with(KL_OPTION_OUT, kit_path("calls.jsonl"));
    assert_err(KL_ENOENT, ASK(RUN_RECORD, hash_of("silent").ptr, NULL));
    assert_contains(e.message, "made no model calls");
    assert_false(kli_fs_exists(kit_path("calls.jsonl")));
}

/* ---- lineages ----------------------------------------------------------------------------- */

static const char *imported(void) {
    assert_ok(ASK(LINEAGE_IMPORT, GEMM_LINEAGE, NULL));
    assert_contains(text, "its verdicts are not part of the file");
    return kl_arena_copy(arena, said(json, "lineage")).ptr;
}

static void test_lineage_import__is_listed_and_found_by_name_and_id(void **state) {
    (void)state;
    const char *id = imported();
    assert_string_equal(imported(), id); /* twice is once */
    assert_ok(ASK(LINEAGE_LIST, NULL));
    assert_int_equal(count_of("lineages"), 1);
    const json_t *row = row_of("lineages", 0);
    assert_str(said(row, "id"), id);
    assert_str(said(row, "name"), "gemm-c");
    assert_str(said(row, "surface"), "c");
    assert_str(said(row, "termination"), "complete");
    const int64_t steps = number(row, "steps");
    assert_ok(ASK(LINEAGE_SHOW, "gemm-c", NULL));
    assert_int_equal(count_of("edges"), steps);
    const char *by_name = text;
    assert_ok(ASK(LINEAGE_SHOW, kl_arena_printf(arena, "%.10s", id).ptr, NULL));
    assert_string_equal(text, by_name);
    assert_ok(ASK(LINEAGE_SHOW, GEMM_LINEAGE, NULL));
    assert_string_equal(text, by_name);
}

static void test_lineage_show__a_slip_is_answered_with_the_name(void **state) {
    (void)state;
    imported();
    assert_err(KL_ENOENT, ASK(LINEAGE_SHOW, "gem-c", NULL));
    assert_contains(e.hint, "did you mean gemm-c?");
    assert_err(KL_ENOENT, ASK(LINEAGE_SHOW, "nothing-like-it", NULL));
    assert_null(strstr(e.hint, "did you mean"));
    assert_true(ASK(LINEAGE_SHOW, "./gemm-c", NULL) != KL_OK); /* a path is no name */
    assert_null(strstr(e.hint, "did you mean"));
}

/* A document that does not hold what it must is not taken, and leaves nothing. */
static void test_lineage_import__checks_first(void **state) {
    (void)state;
    assert_err(KL_EPARSE, ASK(LINEAGE_IMPORT, kit_write("no.json", "{\"schema\": 1}"), NULL));
    assert_err(KL_ENOENT, ASK(LINEAGE_IMPORT, kit_path("nowhere.json"), NULL));
    const char *whole = kit_read(GEMM_LINEAGE), *source = strstr(whole, "\"source\": \"");
    assert_non_null(source);
    const kl_str forged = kl_arena_printf(arena, "%.*s\"source\": \"x%s", (int)(source - whole),
                                          whole, source + strlen("\"source\": \""));
    assert_true(ASK(LINEAGE_IMPORT, kit_write("forged.json", forged.ptr), NULL) != KL_OK);
    assert_ok(ASK(LINEAGE_LIST, NULL));
    assert_int_equal(count_of("lineages"), 0);
}

static void test_lineage_export__is_the_document_again(void **state) {
    (void)state;
    imported();
    with(KL_OPTION_OUT, kit_path("again.json"));
    assert_ok(ASK(LINEAGE_EXPORT, "gemm-c", NULL));
    assert_str(said(json, "file"), kit_path("again.json"));
    json_t *a = json_loads(kit_read(GEMM_LINEAGE), 0, NULL),
           *b = json_loads(kit_read(kit_path("again.json")), 0, NULL);
    assert_true(a && json_equal(a, b));
    json_decref(a);
    json_decref(b);
    assert_err(KL_EINVAL, ASK(LINEAGE_EXPORT, "gemm-c", NULL));
    assert_contains(e.message, "--git DIR or --out FILE");
    with(KL_OPTION_OUT, kit_path("x.json"));
    with(KL_OPTION_GIT, kit_path("x"));
    assert_err(KL_EINVAL, ASK(LINEAGE_EXPORT, "gemm-c", NULL));
}

/* A name of bytes that are no text is still one document. */
static void test_lineage_export__says_where_whatever_the_name(void **state) {
    (void)state;
    with(KL_OPTION_OUT, kit_path("a\xff.json"));
    assert_ok(ASK(LINEAGE_EXPORT, GEMM_LINEAGE, NULL));
    assert_true(kl_str_ends(said(json, "file"), KL_S("a\xef\xbf\xbd.json")));
    assert_true(kli_fs_exists(kit_path("a\xff.json")));
}

static void test_lineage_export__is_a_history_with_a_commit_a_state(void **state) {
    const char *dir = kit_path("history");
    const char *const argv[] = {"git", "-C", dir, "rev-list", "--count", "HEAD", NULL};
    kli_proc_result r;
    (void)state;
    with(KL_OPTION_GIT, dir);
    assert_ok(ASK(LINEAGE_EXPORT, GEMM_LINEAGE, NULL));
    assert_str(said(json, "git"), dir);
    assert_ok(kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e));
    assert_contains(text,
                    kl_arena_printf(arena, "%.*s commits in", KL_STR_ARG(kl_str_trim(r.out))).ptr);
    with(KL_OPTION_GIT, dir); /* it must not exist */
    assert_true(ASK(LINEAGE_EXPORT, GEMM_LINEAGE, NULL) != KL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_verdict_list__shows_a_ratio_only_of_what_was_timed),
        TEST(test_verdict_list__selects_by_task_outcome_and_number),
        TEST(test_verdict_list__a_row_that_is_no_verdict_is_listed_still),
        TEST(test_verdict_show__has_every_check_and_the_identity),
        TEST(test_verdict_show__a_prefix_must_mean_one),
        TEST(test_cost__keeps_apart_what_is_known_and_what_may_be),
        TEST(test_cost__without_a_run_has_a_line_for_each),
        TEST(test_run_list__sums_what_was_settled),
        TEST(test_run_show__says_where_questions_without_answers_are),
        TEST(test_run_show__the_last_attempt_counts),
        TEST(test_run_record__wants_calls),
        TEST(test_lineage_import__is_listed_and_found_by_name_and_id),
        TEST(test_lineage_show__a_slip_is_answered_with_the_name),
        TEST(test_lineage_import__checks_first),
        TEST(test_lineage_export__is_the_document_again),
        TEST(test_lineage_export__says_where_whatever_the_name),
        TEST(test_lineage_export__is_a_history_with_a_commit_a_state),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
