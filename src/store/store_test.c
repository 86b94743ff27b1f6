/* store_test.c - the file of the sqlite member, with the faults of the world: full disk, damage, no
 * right to write, other programs' files, newer schemas, a writer that does not let go.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/rng.h"
#include "store/sqlite_impl.h"
#include "store/store_impl.h"
#include "kit/kit.h"
#include <klineage/limits.h>
#include <klineage/store.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir, *path;

static int set_up(void **state) {
    kit_set_up(state);
    dir = kit_folder();
    path = kli_fs_join(arena, dir, "sub/klineage.db").ptr;
    return 0;
}

static kl_store *opened(void) {
    kl_store *s;
    assert_ok(kl_store_open(&s, path, &e));
    return s;
}

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

/* Another program's view of the same file. */
static void sql(const char *text) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_store__a_verdict_comes_back_after_reopening(void **state) {
    (void)state;
    kl_store *s = opened();
    kl_store_verdict v = sample(1);
    kl_str json;
    assert_err(KL_ENOENT, kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_ok(kl_store_verdict_put(s, &v, &e));
    kl_store_close(s);
    s = opened();
    assert_ok(kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_str(json, "{\"i\":1}");
    kl_store_close(s);
    kl_store_close(NULL);
}

static void test_store__text_is_data_never_sql(void **state) {
    (void)state;
    kl_store *s = opened();
    kl_store_verdict v = sample(1), *rows;
    size_t n;
    v.task = KL_S("x'); DROP TABLE verdict; --");
    assert_ok(kl_store_verdict_put(s, &v, &e));
    assert_ok(kl_store_verdict_list(&rows, &n, s, arena,
                                    &(kl_store_verdict_query){.task = v.task.ptr}, &e));
    assert_int_equal(n, 1);
    kl_store_close(s);
}

static void test_store__refuses_a_newer_schema_and_leaves_it_alone(void **state) {
    (void)state;
    kl_store *s = opened();
    kl_store_close(s);
    sql("PRAGMA user_version = 7");
    kl_str before, after;
    assert_ok(kli_fs_read(&before, arena, path, 1 << 24, &e));
    assert_err(KL_EINVAL, kl_store_open(&s, path, &e));
    assert_null(s);
    assert_contains(e.message, "newer klineage: schema 7, this program knows 3");
    assert_contains(e.hint, "upgrade");
    assert_ok(kli_fs_read(&after, arena, path, 1 << 24, &e));
    assert_true(kl_str_eq(before, after));
}

static void test_store__refuses_another_programs_file(void **state) {
    (void)state;
    kl_store *s;
    assert_ok(kli_fs_mkdirs(kli_fs_dirname(arena, path).ptr, &e));
    sql("CREATE TABLE bookmarks (x)");
    assert_err(KL_EINVAL, kl_store_open(&s, path, &e));
    assert_contains(e.message, "another program");
    sql("PRAGMA application_id = 99");
    assert_err(KL_EINVAL, kl_store_open(&s, path, &e));
}

static void test_store__refuses_a_file_that_is_no_database(void **state) {
    (void)state;
    kl_store *s;
    kl_str after,
        text = KL_S(
            "dear diary, this file is longer than the head of a database file, and yet it is none "
            "at all; it only wants to be kept as it is, please.\n");
    assert_ok(kli_fs_mkdirs(kli_fs_dirname(arena, path).ptr, &e));
    assert_ok(kli_fs_write(path, text, &e));
    assert_err(KL_EIO, kl_store_open(&s, path, &e));
    assert_contains(e.hint, "ledger");
    assert_contains(e.hint, ".dump | sed");
    assert_null(strstr(e.hint, "again"));
    assert_ok(kli_fs_read(&after, arena, path, 1 << 20, &e));
    assert_true(kl_str_eq(text, after));
}

static void test_store__a_damaged_page_is_reported(void **state) {
    (void)state;
    kl_store *s = opened();
    for (int i = 0; i < 200; i++) {
        kl_store_verdict v = sample(i);
        assert_ok(kl_store_verdict_put(s, &v, &e));
    }
    kl_store_close(s);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (off_t at = 2 * 4096; at < info.st_size; at += 7)
        assert_int_equal(pwrite(fd, "\xa5\x5a\xff", 3, at), 3);
    close(fd);
    s = opened(); /* the first page is whole, so the damage shows on use */
    kl_str json;
    assert_err(KL_EIO, kl_store_verdict_get(&json, s, arena, sample(5).key.ptr, &e));
    assert_contains(e.message, "damaged");
    assert_contains(e.hint, "ledger");
    assert_contains(e.hint, ".dump | sed");
    assert_contains(e.hint, "--store '");
    kl_store_close(s);
}

/* A full disk, played by the limit on file sizes. */
static void test_store__a_full_disk_is_reported_and_keeps_what_was_there(void **state) {
    (void)state;
    kl_store *s = opened();
    kl_store_verdict v = sample(1), big = sample(2);
    assert_ok(kl_store_verdict_put(s, &v, &e));
    char *filler = KL_ARRAY(arena, char, 1 << 20);
    const kl_stream noise = kli_stream_of(1, "filler"); /* nothing packs it */
    for (size_t i = 0; i < 1 << 20; i++) filler[i] = (char)('0' + kli_stream_below(noise, i, 64));
    memcpy(filler, "[\"", 2);
    for (size_t i = 2; i < 1 << 20; i++)
        if (filler[i] == '\\') filler[i] = '-';
    memcpy(filler + (1 << 20) - 2, "\"]", 2);
    big.json = (kl_str){filler, 1 << 20};
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){200000, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    kl_err err = kl_store_verdict_put(s, &big, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(err, KL_EIO);
    assert_contains(e.hint, "space left");
    kl_str json;
    assert_ok(kl_store_verdict_get(&json, s, arena, v.key.ptr, &e));
    assert_err(KL_ENOENT, kl_store_verdict_get(&json, s, arena, big.key.ptr, &e));
    assert_ok(kl_store_verdict_put(s, &big, &e)); /* and goes on once there is space */
    kl_store_close(s);
}

/* In a process without root's rights, for which no file is read-only. */
static int open_as_nobody(void) {
    pid_t pid = fork();
    if (pid == 0) {
        kl_store *s;
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
        kl_err err = kl_store_open(&s, path, &e);
        _exit(err == KL_EIO && !s && strstr(e.hint, "--store PATH") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_store__a_file_that_cannot_be_written_is_reported(void **state) {
    (void)state;
    kl_store_close(opened());
    const char *folder = kli_fs_dirname(arena, path).ptr;
    assert_int_equal(chmod(dir, 0755) | chmod(path, 0444) | chmod(folder, 0555), 0);
    assert_int_equal(open_as_nobody(), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(unlink(path), 0); /* nothing there, and no right to create it */
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(open_as_nobody(), 0);
    chmod(folder, 0755);
}

static void test_store__a_folder_that_cannot_exist_is_reported(void **state) {
    (void)state;
    kl_store *s;
    assert_ok(kli_fs_write(kli_fs_join(arena, dir, "sub").ptr, KL_S("a file"), &e));
    assert_err(KL_EIO, kl_store_open(&s, path, &e));
    assert_contains(e.hint, "--store PATH");
    assert_err(KL_EIO, kl_store_open(&s, dir, &e)); /* a folder where the file should be */
}

static void test_store__a_writer_that_does_not_let_go_is_busy(void **state) {
    (void)state;
    kl_store *s = opened();
    kl_store_verdict v = sample(1);
    sqlite3 *other;
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_busy_timeout(((kli_sqlite_file *)s->self)->db, 20); /* not the 5 s of everyday */
    kl_str json;
    assert_err(KL_EBUSY, kl_store_verdict_put(s, &v, &e));
    assert_contains(e.hint, "--store PATH");
    assert_err(KL_ENOENT,
               kl_store_verdict_get(&json, s, arena, v.key.ptr, &e)); /* readers do not wait */
    sqlite3_close(other);
    assert_ok(kl_store_verdict_put(s, &v, &e));
    kl_store_close(s);
}

static void test_store__two_processes_create_and_fill_one_file(void **state) {
    (void)state;
    pid_t pids[4];
    for (int p = 0; p < 4; p++) {
        pids[p] = fork();
        if (pids[p] != 0) continue;
        kl_store *s;
        if (kl_store_open(&s, path, &e)) _exit(1);
        for (int i = 0; i < 20; i++) {
            kl_store_verdict v = sample(i + p * 10); /* half of them collide with a neighbour's */
            if (kl_store_verdict_put(s, &v, &e)) _exit(2);
        }
        kl_store_close(s);
        _exit(0);
    }
    for (int p = 0; p < 4; p++) {
        int status;
        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_int_equal(status, 0);
    }
    kl_store *s = opened();
    kl_store_verdict *rows;
    size_t n;
    assert_ok(kl_store_verdict_list(&rows, &n, s, arena, &(kl_store_verdict_query){0}, &e));
    assert_int_equal(n, 50);
    kl_store_close(s);
}

static void test_store__a_killed_writer_leaves_a_whole_store(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        kl_store *s;
        if (kl_store_open(&s, path, &e)) _exit(1);
        for (int i = 0;; i++) {
            kl_store_verdict v = sample(i);
            if (kl_store_verdict_put(s, &v, &e)) _exit(2);
            if (write(ends[1], "x", 1) != 1) _exit(3);
        }
    }
    close(ends[1]);
    char marks[30];
    size_t said = 0;
    while (said < sizeof marks) {
        ssize_t got = read(ends[0], marks + said, sizeof marks - said);
        assert_true(got > 0);
        said += (size_t)got;
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    kl_store *s = opened();
    kl_str json;
    for (int i = 0; i < (int)said; i++)
        assert_ok(kl_store_verdict_get(&json, s, arena, sample(i).key.ptr, &e));
    kl_store_close(s);
}

static void test_store__the_default_path_obeys_its_variables_in_order(void **state) {
    (void)state;
    setenv("HOME", "/home/x", 1);
    unsetenv("XDG_STATE_HOME");
    unsetenv("KLINEAGE_STORE");
    assert_str(kl_store_default_path(arena), "/home/x/.local/state/klineage/klineage.db");
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_str(kl_store_default_path(arena), "/state/klineage/klineage.db");
    setenv("KLINEAGE_STORE", "own.db", 1);
    assert_str(kl_store_default_path(arena), "own.db");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_store__a_verdict_comes_back_after_reopening),
        TEST(test_store__text_is_data_never_sql),
        TEST(test_store__refuses_a_newer_schema_and_leaves_it_alone),
        TEST(test_store__refuses_another_programs_file),
        TEST(test_store__refuses_a_file_that_is_no_database),
        TEST(test_store__a_damaged_page_is_reported),
        TEST(test_store__a_full_disk_is_reported_and_keeps_what_was_there),
        TEST(test_store__a_file_that_cannot_be_written_is_reported),
        TEST(test_store__a_folder_that_cannot_exist_is_reported),
        TEST(test_store__a_writer_that_does_not_let_go_is_busy),
        TEST(test_store__two_processes_create_and_fill_one_file),
        TEST(test_store__a_killed_writer_leaves_a_whole_store),
        TEST(test_store__the_default_path_obeys_its_variables_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
