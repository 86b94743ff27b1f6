/* rows_test.c - blobs, runs, effects, steps and records; the step from schema 1; a fork.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/hash.h"
#include "store/store_impl.h"
#include "kit/kit.h"
#include <klineage/limits.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir, *path;
static kl_store *s;

static int set_up(void **state) {
    kit_set_up(state);
    dir = kit_folder();
    path = kl_fs_join(arena, dir, "klineage.db").ptr;
    return kl_store_open(&s, path, &e) ? -1 : 0;
}

static int tear_down(void **state) {
    kl_store_close(s);
    return kit_tear_down(state);
}

static kl_str hash_of(const char *text) { return kl_arena_copy(arena, kl_str_of(kl_hash_of(kl_str_of(text)).hex)); }

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

static void test_store_blob__any_bytes_come_back(void **state) {
    (void)state;
    const kl_str texts[] = {KL_S(""), KL_S("plain"), KL_S("nul \0 inside"), KL_S("\xff\xfe no UTF-8 \x80"),
                            KL_S("'); DROP TABLE blob; --")};
    for (size_t i = 0; i < KL_COUNT(texts); i++) {
        char hash[65];
        kl_str back;
        assert_ok(kl_store_blob_put(hash, s, texts[i], &e));
        assert_string_equal(hash, kl_hash_of(texts[i]).hex);
        assert_ok(kl_store_blob_put(hash, s, texts[i], &e)); /* once more is the same row */
        assert_ok(kl_store_blob_get(&back, s, arena, kl_str_of(hash), &e));
        assert_true(kl_str_eq(back, texts[i]));
        assert_int_equal(back.ptr[back.len], 0);
    }
    kl_str none;
    assert_err(KL_ENOENT, kl_store_blob_get(&none, s, arena, hash_of("never put"), &e));
    assert_err(KL_ENOENT, kl_store_blob_get(&none, s, arena, KL_S("' OR 1=1"), &e));
}

static void test_store_blob__too_much_is_refused(void **state) {
    (void)state;
    char hash[65];
    const kl_str much = {"", KL_MAX_JSON_BYTES + 1u}; /* never read: the length is looked at first */
    assert_err(KL_ELIMIT, kl_store_blob_put(hash, s, much, &e));
}

/* ---- runs and effects --------------------------------------------------------------------------------------------- */

static void test_store_run__a_known_id_keeps_its_row(void **state) {
    (void)state;
    kl_store_run one = {.id = hash_of("one"), .command = KL_S("walk"), .json = KL_S("{\"a\":1}")}, found;
    kl_store_run two = {.id = hash_of("two"), .command = KL_S("optimize"), .json = KL_S("{}")}, *rows;
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
    assert_err(KL_ENOENT, kl_store_run_find(&found, s, arena, "0000aaaa", &e));
    assert_contains(e.hint, "klineage run list");
    assert_err(KL_EINVAL, kl_store_run_find(&found, s, arena, "xyz%", &e));
    one = (kl_store_run){.id = KL_S("short"), .command = KL_S("walk"), .json = KL_S("{}")};
    assert_err(KL_EINVAL, kl_store_run_put(s, &one, &e));
    one = (kl_store_run){.id = hash_of("three"), .command = KL_S("walk"), .json = KL_S("{no json")};
    assert_err(KL_EINVAL, kl_store_run_put(s, &one, &e));
    assert_contains(e.message, "no JSON");
}

static kl_store_effect effect(const char *name, const char *track, int64_t ordinal) {
    return (kl_store_effect){.key = hash_of(name),
                             .run = hash_of("run"),
                             .track = kl_str_of(track),
                             .kind = KL_S("ask"),
                             .purpose = KL_S("deoptimize"),
                             .ordinal = ordinal,
                             .request = KL_S("{}"),
                             .answer = kl_arena_printf(arena, "\"%s\"", name)};
}

static void test_store_effect__the_first_answer_stays(void **state) {
    (void)state;
    kl_store_effect a = effect("a", "t1", 0), b = effect("b", "t2", 0), c = effect("c", "t1", 1), got, *rows;
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
    assert_ok(kl_store_effect_list(&rows, &n, s, arena, hash_of("run").ptr, NULL, &e));
    assert_int_equal(n, 3);
    assert_str(rows[1].answer, "\"b\""); /* as they were written */
    assert_ok(kl_store_effect_list(&rows, &n, s, arena, hash_of("run").ptr, "t1", &e));
    assert_int_equal(n, 2);
    assert_int_equal(rows[1].ordinal, 1);
    a = effect("d", "t1", 0);
    a.kind = KL_S("guess");
    assert_err(KL_EINVAL, kl_store_effect_put(s, &a, &e));
}

/* ---- steps and records ---------------------------------------------------------------------------------------------- */

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
    assert_err(KL_ENOENT, kl_store_record_find(&r, s, arena, "lineage", "abc", &e)); /* too short for an id */
    put_record("trial", "abcd11", "other2", "{}");
    assert_err(KL_EINVAL, kl_store_record_find(&r, s, arena, "trial", "abcd", &e));
    assert_err(KL_ENOENT, kl_store_record_find(&r, s, arena, "trial", "'; --", &e));
    assert_ok(kl_store_record_list(&rows, &n, s, arena, "lineage", &e));
    assert_int_equal(n, 3);
    assert_str(rows[0].id, "ef0000");
}

/* ---- the file --------------------------------------------------------------------------------------------------------- */

extern const unsigned char kl_store_schema[];
extern const size_t kl_store_schema_bytes;

/* A file as the first release left it, with a verdict in it. */
static void make_version_1(void) {
    sqlite3 *db;
    kl_str schema = kl_arena_copy(arena, (kl_str){(const char *)kl_store_schema, kl_store_schema_bytes});
    char *second = strstr(schema.ptr, "\n-- version 2");
    assert_non_null(second);
    *second = '\0';
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, schema.ptr, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
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
    assert_ok(kl_store_open(&s, path, &e));
    assert_ok(kl_store_verdict_find(key, s, "abcd", &e));
    kl_store_effect f = effect("a", "t", 0);
    assert_ok(kl_store_effect_put(s, &f, &e));
}

static void test_store__a_paused_store_is_opened_anew_on_both_sides_of_a_fork(void **state) {
    (void)state;
    kl_store_effect here = effect("parent", "t", 0), there = effect("child", "t", 1), got;
    kl_store_pause(s);
    pid_t pid = fork();
    if (pid == 0) {
        kl_err err = kl_store_resume(s, &e);
        if (!err) err = kl_store_effect_put(s, &there, &e);
        kl_store_pause(s);
        _exit(err ? 1 : 0);
    }
    int status;
    assert_ok(kl_store_resume(s, &e));
    assert_ok(kl_store_resume(s, &e)); /* once more does nothing */
    assert_ok(kl_store_effect_put(s, &here, &e));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_ok(kl_store_effect_get(&got, s, arena, there.key.ptr, &e));
    assert_ok(kl_store_effect_get(&got, s, arena, here.key.ptr, &e));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_store_blob__any_bytes_come_back),
        TEST(test_store_blob__too_much_is_refused),
        TEST(test_store_run__a_known_id_keeps_its_row),
        TEST(test_store_effect__the_first_answer_stays),
        TEST(test_store_step__a_resumed_line_writes_the_same_rows),
        TEST(test_store_record__is_found_by_name_or_by_the_beginning_of_its_id),
        TEST(test_store__a_file_of_version_1_is_brought_up_to_date),
        TEST(test_store__a_paused_store_is_opened_anew_on_both_sides_of_a_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
