/* postgresql_test.c - the database of the postgresql member, with the faults of the world: another
 * program's tables, an older and a newer schema, no room, no right, a server that is killed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "store/members.h"
#include "store/migrations.h"
#include <stdio.h>
#include <unistd.h>

extern const unsigned char kl_store_schema_postgresql[];
extern const size_t kl_store_schema_postgresql_bytes;

static kl_str key_number(int i) { return key_of(kl_arena_printf(arena, "verdict %d", i).ptr); }

static kl_store_verdict sample(int i) {
    return (kl_store_verdict){.key = key_number(i),
                              .task = KL_S("gemm"),
                              .kernel = KL_S("k"),
                              .platform = KL_S("p"),
                              .outcome = KL_S("pass"),
                              .json = kl_arena_printf(arena, "{\"i\":%d}", i)};
}

/* Another program's view of the same database: what psql says. */
static const char *sql(const char *text) {
    const char *name = strstr(path, "@/") + 2;
    return kit_server_ask(
        kl_arena_printf(arena, "sql %.*s %s", (int)strcspn(name, "?"), name, text).ptr);
}

static kl_err reopened(void) {
    kl_store_close(s);
    return kl_store_open(&s, path, &e);
}

static void test_postgresql__a_verdict_comes_back_after_reopening(void **state) {
    (void)state;
    const kl_store_verdict v = sample(1);
    kl_str json;
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_ok(reopened());
    assert_ok(kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_str(json, "{\"i\":1}");
    assert_string_equal(sql("SELECT count(*) FROM klineage.verdict"), "1");
}

static void test_postgresql__text_is_data_never_sql(void **state) {
    (void)state;
    kl_store_verdict v = sample(1), *rows;
    size_t n;
    v.task = KL_S("x'); DROP SCHEMA klineage CASCADE; --");
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_ok(kl_store_verdict_list(&rows, &n, s, arena,
                                    &(kl_store_verdict_query){.task = v.task.ptr}, &e));
    assert_int_equal(n, 1);
}

static void test_postgresql__what_is_no_utf8_is_refused(void **state) {
    (void)state;
    kl_store_verdict v = sample(1), good = sample(2);
    v.task = KL_S("\xff\xfe");
    assert_err(KL_EINVAL, kl_store_verdict_put(s, &v, &e));
    assert_contains(e.message, "keep a verdict");
    assert_ok(kl_store_verdict_put(s, &good, &e));
}

static void test_postgresql__refuses_a_newer_schema_and_leaves_it_alone(void **state) {
    (void)state;
    sql("UPDATE klineage.meta SET value = '7' WHERE key = 'schema'");
    assert_err(KL_EINVAL, reopened());
    assert_null(s);
    assert_contains(e.message, "newer klineage: schema 7, this program knows 3");
    assert_contains(e.hint, "upgrade");
    assert_string_equal(sql("SELECT value FROM klineage.meta WHERE key = 'schema'"), "7");
}

static void test_postgresql__refuses_another_programs_schema_by_name(void **state) {
    (void)state;
    static const char *const theirs[] = {
        "CREATE TABLE klineage.bookmarks (x int)",
        "CREATE TABLE klineage.meta (x int)",
        "CREATE TABLE klineage.meta (key text, value text); INSERT INTO klineage.meta VALUES "
        "('application', 'bookmarks'), ('schema', '3')",
    };
    for (size_t i = 0; i < KL_COUNT(theirs); i++) {
        sql("DROP SCHEMA klineage CASCADE; CREATE SCHEMA klineage");
        sql(theirs[i]);
        assert_err(KL_EINVAL, reopened());
        assert_contains(e.message, "the schema klineage of the database test");
        assert_contains(e.message, "belongs to another program");
        assert_string_equal(sql("SELECT count(*) FROM pg_class WHERE relname = 'verdict'"), "0");
    }
}

/* Everything outside of its schema is not its business. */
static void test_postgresql__shares_a_database_with_others(void **state) {
    (void)state;
    sql("CREATE TABLE public.verdict (theirs int); INSERT INTO public.verdict VALUES (1)");
    const kl_store_verdict v = sample(1);
    assert_ok(reopened());
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_string_equal(sql("SELECT theirs FROM public.verdict"), "1");
}

static void test_postgresql__an_older_schema_is_brought_up_to_date(void **state) {
    (void)state;
    const kl_str schema = kl_arena_copy(arena, (kl_str){(const char *)kl_store_schema_postgresql,
                                                        kl_store_schema_postgresql_bytes});
    int64_t number;
    const char *first = kli_next_section(schema.ptr, 0, &number),
               *last = kli_next_section(schema.ptr, 2, &number);
    const kl_str old = {first, (size_t)(last - first)};
    const char *file = kit_write(
        "old.sql",
        kl_arena_printf(
            arena,
            "DROP SCHEMA klineage CASCADE; CREATE SCHEMA klineage; "
            "SET search_path = klineage;\n%.*s\n"
            "UPDATE meta SET value = '2' WHERE key = 'schema';\n"
            "INSERT INTO verdict (key, task, kernel, platform, outcome, json, created) VALUES "
            "('%s', 'gemm', 'k', 'p', 'pass', '{\"old\":true}', '2026-01-01T00:00:00Z');",
            KL_STR_ARG(old), key_number(1).ptr)
            .ptr);
    kl_str json;
    const char *name = strstr(path, "@/") + 2;
    assert_string_equal(
        kit_server_ask(
            kl_arena_printf(arena, "file %.*s %s", (int)strcspn(name, "?"), name, file).ptr),
        "");
    assert_ok(reopened());
    assert_ok(kl_store_verdict_get(&json, s, arena, key_number(1).ptr, &e));
    assert_str(json, "{\"old\":true}");
    assert_string_equal(sql("SELECT value FROM klineage.meta WHERE key = 'schema'"), "3");
    const kl_store_verdict v = sample(2);
    assert_ok(kl_store_verdict_put(s, &v, &e));
}

static void test_postgresql__what_cannot_be_reached_is_said_without_the_password(void **state) {
    (void)state;
    kl_store *other;
    assert_err(KL_EIO,
               kl_store_open(
                   &other,
                   "postgresql://me:secret@127.0.0.1:1/klineage?connect_timeout=2&password=hidden",
                   &e));
    assert_null(other);
    assert_contains(e.where, "postgresql://127.0.0.1:1/klineage");
    assert_contains(e.hint, "psql");
    assert_null(strstr(e.where, "secret"));
    assert_null(strstr(e.hint, "secret"));
    assert_null(strstr(e.where, "hidden"));
    assert_null(strstr(e.message, "secret"));
    assert_err(KL_EINVAL, kl_store_open(&other, "mysql://127.0.0.1/klineage", &e));
    assert_contains(e.message, "mysql://");
}

static void test_postgresql__without_the_right_to_create_it_says_which(void **state) {
    (void)state;
    sql("DROP SCHEMA klineage CASCADE; DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN");
    kl_store *other;
    const char *rest = strchr(path, '@');
    assert_err(KL_EIO,
               kl_store_open(&other, kl_arena_printf(arena, "postgresql://guest%s", rest).ptr, &e));
    assert_contains(e.message, "permission denied");
    assert_contains(e.hint, "GRANT CREATE ON DATABASE");
}

/* A transaction in which something failed is not kept by whoever forgets to say so. */
static void test_postgresql__a_failed_transaction_is_never_committed(void **state) {
    (void)state;
    const kl_store_verdict good = sample(1);
    const kli_lease_row bad = {KL_S("\xff"), KL_S("x"), 1};
    kl_str json;
    assert_ok(kli_begin(s, "try", &e));
    assert_ok(kl_store_verdict_put(s, &good, &e));
    assert_err(KL_EINVAL, kli_put(s, &kli_leases, &bad, &e));
    assert_err(KL_EIO, kli_end(s, KL_OK, "try", &e));
    assert_err(KL_ENOENT, kl_store_verdict_get(&json, s, arena, good.key.ptr, &e));
}

static void test_postgresql__a_killed_server_keeps_what_was_put(void **state) {
    (void)state;
    kl_str json;
    for (int i = 0; i < 20; i++) {
        const kl_store_verdict v = sample(i);
        assert_ok(kl_store_verdict_put(s, &v, &e));
    }
    assert_string_equal(kit_server_ask("kill"), "killed");
    assert_string_equal(kit_server_ask("start"), "ready");
    for (int i = 0; i < 20; i++) /* by the same handle, which connects again */
        assert_ok(kl_store_verdict_get(&json, s, arena, key_number(i).ptr, &e));
}

static void test_postgresql__a_server_that_goes_away_ends_the_transaction(void **state) {
    (void)state;
    const kl_store_verdict v = sample(1);
    kl_str json;
    assert_ok(kli_begin(s, "try", &e));
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_string_equal(kit_server_ask("kill"), "killed");
    assert_string_equal(kit_server_ask("start"), "ready");
    assert_err(KL_EIO, kli_end(s, KL_OK, "try", &e));
    assert_contains(e.hint, "again");
    assert_err(KL_ENOENT, kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_ok(kl_store_verdict_put(s, &v, &e));
}

/* A disk without room, played by a limit on the size of files. */
static void test_postgresql__a_full_disk_is_reported_and_keeps_what_was_there(void **state) {
    (void)state;
    enum { BYTES = 1 << 20, MOST = 40 };
    const kl_store_verdict before = sample(1);
    char hash[65], *noise = KL_ARRAY(arena, char, BYTES);
    kl_str json;
    kl_err err = KL_OK;
    assert_ok(kl_store_verdict_put(s, &before, &e));
    assert_string_equal(kit_server_ask("kill"), "killed");
    assert_string_equal(kit_server_ask("start 8392704"), "ready"); /* no whole number of pages */
    for (int n = 0; !err && n < MOST; n++) {
        const kl_stream draws = kli_stream_of((uint64_t)n, "filler");
        for (size_t i = 0; i < BYTES; i++) noise[i] = (char)kli_stream_below(draws, i, 256);
        err = kl_store_blob_put(hash, s, (kl_str){noise, BYTES}, &e);
    }
    assert_int_equal(err, KL_EIO);
    assert_contains(e.hint, "no space left");
    assert_ok(kl_store_verdict_get(&json, s, arena, before.key.ptr, &e));
    assert_string_equal(kit_server_ask("kill"), "killed");
    assert_string_equal(kit_server_ask("start"), "ready");
    assert_ok(kl_store_blob_put(hash, s, (kl_str){noise, BYTES}, &e)); /* and goes on */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_POSTGRESQL(test_postgresql__a_verdict_comes_back_after_reopening),
        ON_POSTGRESQL(test_postgresql__text_is_data_never_sql),
        ON_POSTGRESQL(test_postgresql__what_is_no_utf8_is_refused),
        ON_POSTGRESQL(test_postgresql__refuses_a_newer_schema_and_leaves_it_alone),
        ON_POSTGRESQL(test_postgresql__refuses_another_programs_schema_by_name),
        ON_POSTGRESQL(test_postgresql__shares_a_database_with_others),
        ON_POSTGRESQL(test_postgresql__an_older_schema_is_brought_up_to_date),
        ON_POSTGRESQL(test_postgresql__what_cannot_be_reached_is_said_without_the_password),
        ON_POSTGRESQL(test_postgresql__without_the_right_to_create_it_says_which),
        ON_POSTGRESQL(test_postgresql__a_failed_transaction_is_never_committed),
        ON_POSTGRESQL(test_postgresql__a_killed_server_keeps_what_was_put),
        ON_POSTGRESQL(test_postgresql__a_server_that_goes_away_ends_the_transaction),
        ON_POSTGRESQL(test_postgresql__a_full_disk_is_reported_and_keeps_what_was_there),
    };
    setenv("KL_TEST_MEMBER", "postgresql", 1); /* of this one alone */
    return RUN_MEMBERS(tests);
}
