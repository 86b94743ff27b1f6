/* rows_test.c - verdicts, blobs, runs, effects, steps and records over every member of the store;
 * of the file: older schemas and a fork.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/members.h"
#include "store/sqlite_impl.h"
#include <klineage/limits.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- verdicts ------------------------------------------------------------------------ */

static kl_store_verdict sample(int i) {
    kl_str name = kl_arena_printf(arena, "verdict %d", i);
    return (kl_store_verdict){
        .key = kl_arena_copy(arena, kl_str_of(kli_hash_of(name).hex)),
        .task = i % 2 ? KL_S("gemm") : KL_S("softmax"),
        .kernel = KL_S("0123456789abcdef"),
        .platform = KL_S("x86-64-v4/gcc-12"),
        .outcome = i % 3 ? KL_S("pass") : KL_S("wrong"),
        .json = kl_arena_printf(arena, "{\"i\":%d}", i),
    };
}

static void test_store_verdict__the_first_writer_wins(void **state) {
    (void)state;
    kl_store_verdict v = sample(1);
    kl_str json;
    assert_ok(kl_store_verdict_put(s, &v, &e));
    v.json = KL_S("{\"i\":2}");
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_ok(kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_str(json, "{\"i\":1}");
}

static void test_store_verdict__what_is_no_hash_or_no_json_is_refused(void **state) {
    (void)state;
    kl_store_verdict v = sample(1), bad = v;
    bad.json = KL_S("{oops");
    assert_err(KL_EINVAL, kl_store_verdict_put(s, &bad, &e));
    assert_contains(e.message, "no JSON");
    bad = v;
    bad.key = KL_S("short");
    assert_err(KL_EINVAL, kl_store_verdict_put(s, &bad, &e));
    bad.key = KL_S("ZZ23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    assert_err(KL_EINVAL, kl_store_verdict_put(s, &bad, &e));
    bad = v;
    bad.json.len = KL_MAX_JSON_BYTES + 1; /* refused by its length before a byte is read */
    assert_err(KL_ELIMIT, kl_store_verdict_put(s, &bad, &e));
    assert_ok(kl_store_verdict_put(s, &v, &e));
}

static void list(kl_store_verdict_query q, kl_store_verdict **rows, size_t wanted) {
    size_t n;
    assert_ok(kl_store_verdict_list(rows, &n, s, arena, &q, &e));
    assert_int_equal(n, wanted);
}

static void test_store_verdict__are_listed_newest_first_by_every_column(void **state) {
    (void)state;
    kl_store_verdict *rows;
    for (int i = 0; i < 60; i++) {
        kl_store_verdict v = sample(i);
        assert_ok(kl_store_verdict_put(s, &v, &e));
    }
    list((kl_store_verdict_query){0}, &rows, 60);
    assert_str(rows[0].json, "{\"i\":59}");
    assert_int_equal(rows[0].created.len, 20);
    list((kl_store_verdict_query){.task = "gemm", .outcome = "wrong"}, &rows, 10);
    assert_str(rows[0].json, "{\"i\":57}");
    list((kl_store_verdict_query){.task = "gemm", .limit = 3}, &rows, 3);
    list((kl_store_verdict_query){.platform = "elsewhere"}, &rows, 0);
    list((kl_store_verdict_query){.kernel = "0123456789abcdef", .limit = 1}, &rows, 1);
    assert_str(rows[0].platform, "x86-64-v4/gcc-12");
}

static kl_err stop_at_once(void *ctx, const kl_store_verdict *v) {
    (void)v;
    ++*(int *)ctx;
    return KL_EINTR;
}

static void test_store_verdict__a_visitor_may_stop_and_the_store_goes_on(void **state) {
    (void)state;
    int calls = 0;
    for (int i = 0; i < 3; i++) {
        kl_store_verdict v = sample(i);
        assert_ok(kl_store_verdict_put(s, &v, &e));
    }
    assert_err(KL_EINTR,
               kl_store_verdict_each(s, &(kl_store_verdict_query){0}, stop_at_once, &calls, &e));
    assert_int_equal(calls, 1);
    kl_store_verdict v = sample(9);
    assert_ok(kl_store_verdict_put(s, &v, &e));
}

static void test_store_verdict__is_found_by_the_beginning_of_its_key(void **state) {
    (void)state;
    kl_store_verdict one = sample(1), two = sample(2);
    char key[65];
    one.key = KL_S("abcd000000000000000000000000000000000000000000000000000000000000");
    two.key = KL_S("abcdffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");
    assert_ok(kl_store_verdict_put(s, &one, &e));
    assert_ok(kl_store_verdict_put(s, &two, &e));
    assert_ok(kl_store_verdict_find(key, s, "abcdf", &e));
    assert_string_equal(key, two.key.ptr);
    assert_ok(kl_store_verdict_find(key, s, one.key.ptr, &e));
    assert_string_equal(key, one.key.ptr);
    assert_err(KL_EINVAL, kl_store_verdict_find(key, s, "abcd", &e));
    assert_contains(e.message, "several");
    assert_err(KL_ENOENT, kl_store_verdict_find(key, s, "abce", &e));
    const char *const bad[] = {"", "abc", "abcg", "ABCD", "abcd%", "abcd'--"};
    for (size_t i = 0; i < KL_COUNT(bad); i++)
        assert_err(KL_EINVAL, kl_store_verdict_find(key, s, bad[i], &e));
}

static void test_store_verdict__any_text_comes_back_byte_for_byte(void **state) {
    (void)state;
    char *large = KL_ARRAY(arena, char, 1 << 20);
    memset(large, ' ', 1 << 20);
    large[0] = '{';
    large[(1 << 20) - 1] = '}';
    const kl_str texts[] = {
        KL_S("{}"), KL_S(" {\"a\" :\t[1,\n2.50, \"\xc3\xbc\\u0000\"] } "), {large, 1 << 20}};
    for (size_t i = 0; i < KL_COUNT(texts); i++) {
        kl_store_verdict v = sample(1000 + (int)i);
        kl_str back;
        v.json = texts[i];
        assert_ok(kl_store_verdict_put(s, &v, &e));
        assert_ok(kl_store_verdict_get(&back, s, arena, v.key.ptr, &e));
        assert_true(kl_str_eq(back, texts[i]));
        assert_int_equal(back.ptr[back.len], 0);
    }
}

/* Another program's view of the same file. */
static sqlite3 *beside(void) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static int64_t number(const char *sql) {
    sqlite3 *db = beside();
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t got = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return got;
}

static void change(const char *sql) {
    sqlite3 *db = beside();
    char *why = NULL;
    sqlite3_exec(db, sql, NULL, NULL, &why);
    if (why) fail_msg("%s", why);
    sqlite3_close(db);
}

static void test_store_verdict__is_packed_in_the_file(void **state) {
    (void)state;
    kl_store_verdict v = sample(1);
    v.json = kl_arena_printf(arena, "{\"a\": \"%0999d\"}", 0);
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_int_equal(number("SELECT length(json) FROM verdict"), 0);
    assert_true(number("SELECT length(packed) FROM verdict") < 100);
}

/* A zstd frame: 4 bytes of mark, 1 of flags, then the number of its dictionary; at its end a
 * checksum. */
static void test_store_verdict__a_damaged_or_foreign_frame_is_said(void **state) {
    (void)state;
    kl_store_verdict v = sample(1);
    kl_str json;
    assert_ok(kl_store_verdict_put(s, &v, &e));
    change(
        "UPDATE verdict SET packed = CAST(substr(packed, 1, length(packed) - 1) || x'99' AS BLOB)");
    assert_err(KL_EIO, kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_contains(e.message, "packed verdict");
    change("UPDATE verdict SET packed = "
           "CAST(substr(packed, 1, 5) || x'07' || substr(packed, 7) AS BLOB)");
    assert_err(KL_EIO, kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_contains(e.message, "dictionary 7");
    assert_contains(e.hint, "upgrade");
    change("UPDATE verdict SET packed = x'00'");
    assert_err(KL_EIO, kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    change("UPDATE verdict SET packed = NULL, json = '{\"as\":\"it is\"}'");
    assert_ok(kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_str(json, "{\"as\":\"it is\"}");
}

/* ---- blobs --------------------------------------------------------------------------- */

static void test_store_blob__any_bytes_come_back(void **state) {
    (void)state;
    const kl_str texts[] = {KL_S(""), KL_S("plain"), KL_S("nul \0 inside"),
                            KL_S("\xff\xfe no UTF-8 \x80"), KL_S("'); DROP TABLE blob; --")};
    for (size_t i = 0; i < KL_COUNT(texts); i++) {
        char hash[65];
        kl_str back;
        assert_ok(kl_store_blob_put(hash, s, texts[i], &e));
        assert_string_equal(hash, kli_hash_of(texts[i]).hex);
        assert_ok(kl_store_blob_put(hash, s, texts[i], &e)); /* once more is the same row */
        assert_ok(kl_store_blob_get(&back, s, arena, kl_str_of(hash), &e));
        assert_true(kl_str_eq(back, texts[i]));
        assert_int_equal(back.ptr[back.len], 0);
    }
    kl_str none;
    assert_err(KL_ENOENT, kl_store_blob_get(&none, s, arena, key_of("never put"), &e));
    assert_err(KL_ENOENT, kl_store_blob_get(&none, s, arena, KL_S("' OR 1=1"), &e));
}

static void test_store_blob__too_much_is_refused(void **state) {
    (void)state;
    char hash[65];
    const kl_str much = {"",
                         KL_MAX_JSON_BYTES + 1u}; /* never read: the length is looked at first */
    assert_err(KL_ELIMIT, kl_store_blob_put(hash, s, much, &e));
}

/* ---- runs and effects ---------------------------------------------------------------- */

static void test_store_run__a_known_id_keeps_its_row(void **state) {
    (void)state;
    kl_store_run one = {.id = key_of("one"), .command = KL_S("walk"), .json = KL_S("{\"a\":1}")},
                 found;
    kl_store_run two = {.id = key_of("two"), .command = KL_S("optimize"), .json = KL_S("{}")},
                 *rows;
    size_t n;
    assert_ok(kl_store_run_put(s, &one, &e));
    assert_ok(kl_store_run_put(s, &two, &e));
    one.json = KL_S("{\"a\":2}");
    assert_ok(kl_store_run_put(s, &one, &e));
    assert_ok(kl_store_run_list(&rows, &n, s, arena, &e));
    assert_int_equal(n, 2);
    assert_str(rows[0].command, "optimize"); /* newest first */
    assert_str(rows[1].json, "{\"a\":1}");
    assert_int_equal(rows[0].created.len, 20);
    const char *prefix = kl_arena_copy(arena, (kl_str){two.id.ptr, 10}).ptr;
    assert_ok(kl_store_run_find(&found, s, arena, prefix, &e));
    assert_true(kl_str_eq(found.id, two.id));
    assert_ok(kl_store_run_find(&found, s, arena, "last", &e));
    assert_true(kl_str_eq(found.id, two.id));
    assert_err(KL_ENOENT, kl_store_run_find(&found, s, arena, "0000aaaa", &e));
    assert_contains(e.hint, "klineage run list");
    assert_err(KL_EINVAL, kl_store_run_find(&found, s, arena, "xyz%", &e));
    one = (kl_store_run){.id = KL_S("short"), .command = KL_S("walk"), .json = KL_S("{}")};
    assert_err(KL_EINVAL, kl_store_run_put(s, &one, &e));
    one = (kl_store_run){.id = key_of("three"), .command = KL_S("walk"), .json = KL_S("{no json")};
    assert_err(KL_EINVAL, kl_store_run_put(s, &one, &e));
    assert_contains(e.message, "no JSON");
}

static kl_store_effect effect(const char *name, const char *track, int64_t ordinal) {
    return (kl_store_effect){.key = key_of(name),
                             .run = key_of("run"),
                             .track = kl_str_of(track),
                             .kind = KL_S("ask"),
                             .purpose = KL_S("deoptimize"),
                             .ordinal = ordinal,
                             .request = KL_S("{}"),
                             .answer = kl_arena_printf(arena, "\"%s\"", name)};
}

static void test_store_effect__the_first_answer_stays(void **state) {
    (void)state;
    kl_store_effect a = effect("a", "t1", 0), b = effect("b", "t2", 0), c = effect("c", "t1", 1),
                    got, *rows;
    size_t n;
    assert_err(KL_ENOENT, kl_store_effect_get(&got, s, arena, a.key.ptr, &e));
    assert_ok(kl_store_effect_put(s, &a, &e));
    assert_ok(kl_store_effect_put(s, &b, &e));
    assert_ok(kl_store_effect_put(s, &c, &e));
    a.answer = KL_S("\"another\"");
    assert_ok(kl_store_effect_put(s, &a, &e));
    assert_ok(kl_store_effect_get(&got, s, arena, a.key.ptr, &e));
    assert_str(got.answer, "\"a\"");
    assert_str(got.purpose, "deoptimize");
    assert_ok(kl_store_effect_list(&rows, &n, s, arena, key_of("run").ptr, NULL, &e));
    assert_int_equal(n, 3);
    assert_str(rows[1].answer, "\"b\""); /* as they were written */
    assert_ok(kl_store_effect_list(&rows, &n, s, arena, key_of("run").ptr, "t1", &e));
    assert_int_equal(n, 2);
    assert_int_equal(rows[1].ordinal, 1);
    a = effect("d", "t1", 0);
    a.kind = KL_S("guess");
    assert_err(KL_EINVAL, kl_store_effect_put(s, &a, &e));
}

/* ---- steps and records --------------------------------------------------------------- */

static void test_store_step__a_resumed_line_writes_the_same_rows(void **state) {
    (void)state;
    kl_store_step *rows;
    size_t n;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 2; i >= 0; i--) {
            kl_store_step row = {.run = KL_S("r"),
                                 .track = i == 1 ? KL_S("b") : KL_S("a"),
                                 .n = i,
                                 .json = kl_arena_printf(arena, "{\"pass\":%d}", pass)};
            assert_ok(kl_store_step_put(s, &row, &e));
        }
    assert_ok(kl_store_step_list(&rows, &n, s, arena, "r", &e));
    assert_int_equal(n, 3);
    assert_str(rows[0].track, "a");
    assert_int_equal(rows[0].n, 0);
    assert_int_equal(rows[1].n, 2);
    assert_str(rows[2].track, "b");
    assert_str(rows[2].json, "{\"pass\":1}");
    assert_ok(kl_store_step_cut(s, "r", "a", 2, &e));
    assert_ok(kl_store_step_list(&rows, &n, s, arena, "r", &e));
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].n, 0);
    assert_str(rows[1].track, "b");
    kl_store_step bad = {.run = KL_S("r"), .track = KL_S("a"), .n = 9, .json = KL_S("nothing")};
    assert_err(KL_EINVAL, kl_store_step_put(s, &bad, &e));
}

static void put_record(const char *kind, const char *id, const char *name, const char *json) {
    kl_store_record r = {.kind = kl_str_of(kind),
                         .id = kl_str_of(id),
                         .name = kl_str_of(name),
                         .task = KL_S("gemm"),
                         .json = kl_str_of(json)};
    assert_ok(kl_store_record_put(s, &r, &e));
}

static void test_store_record__is_found_by_name_or_by_the_beginning_of_its_id(void **state) {
    (void)state;
    kl_store_record r, *rows;
    size_t n;
    put_record("lineage", "abcd00", "expert", "{\"v\":1}");
    put_record("lineage", "abcd11", "expert", "{\"v\":2}");
    put_record("lineage", "ef0000", "abcd", "{\"v\":3}");
    put_record("trial", "abcd00", "other", "{\"v\":4}");
    assert_ok(kl_store_record_find(&r, s, arena, "lineage", "expert", &e));
    assert_str(r.json, "{\"v\":2}"); /* the newest of that name */
    put_record("lineage", "abcd00", "expert", "{\"v\":5}");
    assert_ok(kl_store_record_find(&r, s, arena, "lineage", "abcd0", &e));
    assert_str(r.json, "{\"v\":5}"); /* replaced */
    assert_ok(kl_store_record_find(&r, s, arena, "lineage", "abcd", &e));
    assert_str(r.json, "{\"v\":3}"); /* a name wins over a beginning */
    assert_ok(kl_store_record_find(&r, s, arena, "trial", "abcd", &e));
    assert_str(r.name, "other");
    assert_err(KL_ENOENT,
               kl_store_record_find(&r, s, arena, "lineage", "abc", &e)); /* too short for an id */
    put_record("trial", "abcd11", "other2", "{}");
    assert_err(KL_EINVAL, kl_store_record_find(&r, s, arena, "trial", "abcd", &e));
    assert_err(KL_ENOENT, kl_store_record_find(&r, s, arena, "trial", "'; --", &e));
    assert_ok(kl_store_record_list(&rows, &n, s, arena, "lineage", &e));
    assert_int_equal(n, 3);
    assert_str(rows[0].id, "ef0000");
}

static void test_store__a_transaction_that_fails_changes_nothing(void **state) {
    (void)state;
    kl_store_run run = {.id = key_of("one"), .command = KL_S("walk"), .json = KL_S("{}")}, *rows;
    kl_store_step step = {.run = KL_S("r"), .track = KL_S("t"), .json = KL_S("{}")}, *steps;
    size_t n;
    assert_ok(kl_store_step_put(s, &step, &e));
    assert_ok(kli_begin(s, "try", &e));
    assert_ok(kl_store_run_put(s, &run, &e));
    assert_ok(kl_store_step_cut(s, "r", "t", 0, &e));
    assert_int_equal(kli_end(s, KL_EBUDGET, "try", &e), KL_EBUDGET);
    assert_ok(kl_store_run_list(&rows, &n, s, arena, &e));
    assert_int_equal(n, 0);
    assert_ok(kl_store_step_list(&steps, &n, s, arena, "r", &e));
    assert_int_equal(n, 1);
    assert_ok(kli_begin(s, "try", &e));
    assert_ok(kl_store_run_put(s, &run, &e));
    assert_ok(kli_end(s, KL_OK, "try", &e));
    assert_ok(kl_store_run_list(&rows, &n, s, arena, &e));
    assert_int_equal(n, 1);
}

/* ---- the file ------------------------------------------------------------------------ */

extern const unsigned char kl_store_schema[];
extern const size_t kl_store_schema_bytes;

/* A file as the first release left it, with a verdict in it. */
static void make_version_1(void) {
    sqlite3 *db;
    kl_str schema =
        kl_arena_copy(arena, (kl_str){(const char *)kl_store_schema, kl_store_schema_bytes});
    char *second = strstr(schema.ptr, "\n-- version 2");
    assert_non_null(second);
    *second = '\0';
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, schema.ptr, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db,
            "PRAGMA application_id = 1263298926; PRAGMA user_version = 1;"
            "INSERT INTO verdict VALUES ('abcd000000000000000000000000000000000000000000000000"
            "000000000000', 'gemm', 'k', 'p', 'pass', '{}', '2026-01-01T00:00:00Z')",
            NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

static void test_store__a_file_of_version_1_is_brought_up_to_date(void **state) {
    (void)state;
    char key[65];
    kl_store_close(s);
    assert_int_equal(unlink(path), 0);
    make_version_1();
    s = opened();
    assert_ok(kl_store_verdict_find(key, s, "abcd", &e));
    kl_store_effect f = effect("a", "t", 0);
    assert_ok(kl_store_effect_put(s, &f, &e));
}

/* Written by the program of schema 2, with what the commands before left in it, as text. */
static void make_version_2(void) {
    kl_str dump;
    sqlite3 *db;
    char *why = NULL;
    assert_ok(kli_fs_read(&dump, arena, KL_TEST_ROOT "/tests/data/journal-2.sql", 1 << 20, &e));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, dump.ptr, NULL, NULL, &why);
    if (why) fail_msg("%s", why);
    sqlite3_close(db);
}

static void test_store__a_journal_of_version_2_is_read_and_goes_on(void **state) {
    (void)state;
    kl_store_verdict *verdicts, more = sample(1);
    kl_store_run *runs;
    kl_store_charge *charges;
    kl_str json, before;
    size_t n, n_runs, n_charges;
    kl_store_close(s);
    assert_int_equal(unlink(path), 0);
    make_version_2();
    const int64_t bytes = number("SELECT sum(length(CAST(json AS BLOB))) FROM verdict");
    s = opened();
    assert_ok(kl_store_verdict_list(&verdicts, &n, s, arena, &(kl_store_verdict_query){0}, &e));
    assert_true(n >= 3);
    int64_t read = 0;
    for (size_t i = 0; i < n; i++) {
        assert_contains(verdicts[i].json.ptr, "\"schema\":\"klineage/verdict\"");
        read += (int64_t)verdicts[i].json.len;
    }
    assert_int_equal(read, bytes);
    assert_ok(kl_store_run_list(&runs, &n_runs, s, arena, &e));
    assert_ok(kl_store_charge_list(&charges, &n_charges, s, arena, NULL, &e));
    assert_true(n_runs > 0 && n_charges > 0);
    assert_ok(kl_store_verdict_put(s, &verdicts[0], &e)); /* a known key keeps its row, as it is */
    assert_ok(kl_store_verdict_put(s, &more, &e));
    assert_ok(kl_store_verdict_get(&before, s, arena, verdicts[0].key.ptr, &e));
    assert_true(kl_str_eq(before, verdicts[0].json));
    assert_ok(kl_store_verdict_get(&json, s, arena, more.key.ptr, &e));
    assert_str(json, "{\"i\":1}");
    assert_int_equal(number("SELECT count(*) FROM verdict WHERE packed IS NULL"), n);
    assert_int_equal(number("PRAGMA user_version"), 3);
}

static void test_store__both_sides_of_a_fork_go_on(void **state) {
    (void)state;
    kl_store_effect here = effect("parent", "t", 0), there = effect("child", "t", 1), got;
    assert_err(KL_ENOENT, kl_store_effect_get(&got, s, arena, there.key.ptr, &e));
    const pid_t pid = kl_store_fork(s);
    if (pid == 0) {
        const kl_err err = kl_store_effect_put(s, &there, &e);
        kl_store_close(s);
        _exit(err ? 1 : 0);
    }
    int status;
    assert_ok(kl_store_effect_put(s, &here, &e));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_ok(kl_store_effect_get(&got, s, arena, there.key.ptr, &e));
    assert_ok(kl_store_effect_get(&got, s, arena, here.key.ptr, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_MEMBERS(test_store_verdict__the_first_writer_wins),
        OVER_MEMBERS(test_store_verdict__what_is_no_hash_or_no_json_is_refused),
        OVER_MEMBERS(test_store_verdict__are_listed_newest_first_by_every_column),
        OVER_MEMBERS(test_store_verdict__a_visitor_may_stop_and_the_store_goes_on),
        OVER_MEMBERS(test_store_verdict__is_found_by_the_beginning_of_its_key),
        OVER_MEMBERS(test_store_verdict__any_text_comes_back_byte_for_byte),
        OVER_MEMBERS(test_store_blob__any_bytes_come_back),
        OVER_MEMBERS(test_store_blob__too_much_is_refused),
        OVER_MEMBERS(test_store_run__a_known_id_keeps_its_row),
        OVER_MEMBERS(test_store_effect__the_first_answer_stays),
        OVER_MEMBERS(test_store_step__a_resumed_line_writes_the_same_rows),
        OVER_MEMBERS(test_store_record__is_found_by_name_or_by_the_beginning_of_its_id),
        OVER_MEMBERS(test_store__a_transaction_that_fails_changes_nothing),
        ON_SQLITE(test_store_verdict__is_packed_in_the_file),
        ON_SQLITE(test_store_verdict__a_damaged_or_foreign_frame_is_said),
        ON_SQLITE(test_store__a_file_of_version_1_is_brought_up_to_date),
        ON_SQLITE(test_store__a_journal_of_version_2_is_read_and_goes_on),
        OVER_PROCESSES(test_store__both_sides_of_a_fork_go_on),
    };
    return RUN_MEMBERS(tests);
}
