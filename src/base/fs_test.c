/* Tests of fs.c and clock.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    kl_arena *a;
    const char *dir;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    kl_str dir;
    kl_error e;
    f->a = kl_arena_new();
    if (kli_fs_temp_dir(&dir, f->a, &e)) return -1;
    f->dir = dir.ptr;
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    kli_fs_remove_tree(f->dir);
    bool gone = !kli_fs_exists(f->dir);
    kl_arena_free(f->a);
    free(f);
    return gone ? 0 : -1;
}

static const char *in(const fixture *f, const char *name) {
    return kli_fs_join(f->a, f->dir, name).ptr;
}

static void test_base_fs__reads_back_what_it_wrote(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    kl_str text;
    assert_ok(kli_fs_write(in(f, "x"), (kl_str){"a\0b", 3}, &e));
    assert_ok(kli_fs_read(&text, f->a, in(f, "x"), 3, &e));
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.ptr, "a\0b", 4);
    assert_ok(kli_fs_write(in(f, "x"), KL_S(""), &e));
    assert_ok(kli_fs_read(&text, f->a, in(f, "x"), 0, &e));
    assert_str(text, "");
}

static void test_base_fs__read_names_each_failure(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    kl_str text;
    assert_err(KL_ENOENT, kli_fs_read(&text, f->a, in(f, "absent"), 10, &e));
    assert_string_equal(e.where, in(f, "absent"));
    assert_err(KL_EIO, kli_fs_read(&text, f->a, f->dir, 10, &e));
    assert_ok(kli_fs_write(in(f, "x"), KL_S("12345"), &e));
    assert_err(KL_ELIMIT, kli_fs_read(&text, f->a, in(f, "x"), 4, &e));
    assert_contains(e.message, "4 bytes");
    assert_err(KL_ENOENT, kli_fs_read(&text, f->a, in(f, "x/y"), 10, &e));
}

static void test_base_fs__reads_files_whose_size_is_not_known(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    kl_str text;
    assert_ok(kli_fs_read(&text, f->a, "/proc/self/status", 1 << 20, &e));
    assert_true(text.len > 100);
}

/* A disk that is full after 4096 bytes, as the limit on file sizes plays it. */
static void test_base_fs__a_full_disk_leaves_the_old_file_and_no_rest(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    kl_str text, *names;
    size_t n;
    assert_ok(kli_fs_write(in(f, "x"), KL_S("old"), &e));
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){4096, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    kl_err err = kli_fs_write(in(f, "x"), (kl_str){KL_ARRAY(f->a, char, 100000), 100000}, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(err, KL_EIO);
    assert_ok(kli_fs_read(&text, f->a, in(f, "x"), 100, &e));
    assert_str(text, "old");
    assert_ok(kli_fs_list(&names, &n, f->a, f->dir, &e));
    assert_int_equal(n, 1);
}

static void test_base_fs__write_into_a_missing_folder_fails(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    assert_err(KL_ENOENT, kli_fs_write(in(f, "no/x"), KL_S("a"), &e));
}

static void test_base_fs__mkdirs_makes_parents_and_is_idempotent(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    assert_ok(kli_fs_mkdirs(in(f, "a//b/c/"), &e));
    assert_true(kli_fs_is_dir(in(f, "a/b/c")));
    assert_ok(kli_fs_mkdirs(in(f, "a/b/c"), &e));
    assert_ok(kli_fs_write(in(f, "file"), KL_S(""), &e));
    assert_err(KL_EIO, kli_fs_mkdirs(in(f, "file/below"), &e));
    assert_err(KL_EIO, kli_fs_mkdirs(in(f, "file"), &e));
}

static void test_base_fs__lists_sorted_and_a_missing_folder_is_empty(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    kl_str *names;
    size_t n;
    for (int i = 39; i >= 0; i--)
        assert_ok(kli_fs_write(in(f, kl_arena_printf(f->a, "f%02d", i).ptr), KL_S(""), &e));
    assert_ok(kli_fs_list(&names, &n, f->a, f->dir, &e));
    assert_int_equal(n, 40);
    for (int i = 0; i < 40; i++) assert_str(names[i], kl_arena_printf(f->a, "f%02d", i).ptr);
    assert_ok(kli_fs_list(&names, &n, f->a, in(f, "absent"), &e));
    assert_int_equal(n, 0);
}

static void test_base_fs__remove_tree_does_not_follow_links(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    assert_ok(kli_fs_mkdirs(in(f, "keep"), &e));
    assert_ok(kli_fs_write(in(f, "keep/x"), KL_S("a"), &e));
    assert_ok(kli_fs_mkdirs(in(f, "gone/deep/er"), &e));
    assert_ok(kli_fs_write(in(f, "gone/deep/er/y"), KL_S("a"), &e));
    assert_int_equal(symlink(in(f, "keep"), in(f, "gone/deep/link")), 0);
    assert_int_equal(chmod(in(f, "gone/deep"), 0), 0);
    kli_fs_remove_tree(in(f, "gone"));
    assert_false(kli_fs_exists(in(f, "gone")));
    assert_true(kli_fs_exists(in(f, "keep/x")));
    kli_fs_remove_tree(in(f, "absent"));
}

static void test_base_fs__temp_dirs_are_private_and_distinct(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    kl_str one, two;
    assert_ok(kli_fs_temp_dir(&one, f->a, &e));
    assert_ok(kli_fs_temp_dir(&two, f->a, &e));
    struct stat s;
    assert_int_equal(stat(one.ptr, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    assert_false(kl_str_eq(one, two));
    kli_fs_remove_tree(one.ptr);
    kli_fs_remove_tree(two.ptr);
}

/* A child that makes a folder and is killed leaves it; the next process removes it, but neither a
 * living one's nor a fresh one. */
static void test_base_fs__temporary_folders_of_the_killed_are_removed(void **state) {
    fixture *f = *state;
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    const char *orphan = in(f, "klineage-orphan"), *fresh = in(f, "klineage-fresh0"),
               *other = in(f, "klineage-flow-orphan");
    assert_int_equal(mkdir(orphan, 0700) | mkdir(fresh, 0700) | mkdir(other, 0700), 0);
    const pid_t child = fork();
    if (child == 0) {
        kl_error e;
        kl_str mine, again;
        setenv("TMPDIR", in(f, "."), 1);
        if (kli_fs_temp_dir(&mine, f->a, &e) != KL_OK) _exit(1);
        if (kli_fs_exists(orphan) == false) _exit(6); /* too young */
        if (utimensat(AT_FDCWD, mine.ptr, old, 0) || utimensat(AT_FDCWD, orphan, old, 0) ||
            utimensat(AT_FDCWD, other, old, 0))
            _exit(2);
        setenv("TMPDIR", f->dir, 1); /* each spelling is looked through once */
        if (kli_fs_temp_dir(&again, f->a, &e) != KL_OK) _exit(3);
        if (!kli_fs_exists(mine.ptr) || !kli_fs_exists(other) || !kli_fs_exists(fresh)) _exit(4);
        _exit(kli_fs_exists(orphan) ? 5 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_base_fs__splits_and_joins_paths(void **state) {
    fixture *f = *state;
    assert_str(kli_fs_join(f->a, "a", "b"), "a/b");
    assert_str(kli_fs_join(f->a, "a/", "b"), "a/b");
    assert_str(kli_fs_join(f->a, "a", "/b"), "/b");
    assert_str(kli_fs_dirname(f->a, "a/b/"), "a");
    assert_str(kli_fs_dirname(f->a, "/b"), "/");
    assert_str(kli_fs_dirname(f->a, "b"), ".");
    assert_str(kli_fs_basename("a/b/"), "b");
    assert_str(kli_fs_basename("b"), "b");
    assert_str(kli_fs_basename("/"), "/");
}

static void test_base_fs__finds_programs_but_no_folders_or_plain_files(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    assert_true(kli_fs_find_program(f->a, "sh").len > 0);
    assert_int_equal(kli_fs_find_program(f->a, "no-such-program-here").len, 0);
    assert_int_equal(kli_fs_find_program(f->a, "").len, 0);
    assert_int_equal(kli_fs_find_program(f->a, f->dir).len, 0);
    assert_ok(kli_fs_write(in(f, "plain"), KL_S("x"), &e));
    assert_int_equal(kli_fs_find_program(f->a, in(f, "plain")).len, 0);
}

static void test_base_fs__cache_dir_obeys_its_variables_in_order(void **state) {
    fixture *f = *state;
    setenv("HOME", "/home/x", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("KLINEAGE_CACHE");
    assert_str(kl_fs_cache_dir(f->a), "/home/x/.cache/klineage");
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    assert_str(kl_fs_cache_dir(f->a), "/xdg/klineage");
    setenv("KLINEAGE_CACHE", "/own", 1);
    assert_str(kl_fs_cache_dir(f->a), "/own");
}

static void test_base_clock__moves_forward_and_prints_utc(void **state) {
    fixture *f = *state;
    int64_t before = kli_now_ns();
    kl_str text = kli_utc_now(f->a);
    assert_true(kli_now_ns() >= before);
    assert_int_equal(text.len, 20);
    assert_int_equal(text.ptr[10], 'T');
    assert_int_equal(text.ptr[19], 'Z');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_base_fs__reads_back_what_it_wrote),
        TEST(test_base_fs__read_names_each_failure),
        TEST(test_base_fs__reads_files_whose_size_is_not_known),
        TEST(test_base_fs__a_full_disk_leaves_the_old_file_and_no_rest),
        TEST(test_base_fs__write_into_a_missing_folder_fails),
        TEST(test_base_fs__mkdirs_makes_parents_and_is_idempotent),
        TEST(test_base_fs__lists_sorted_and_a_missing_folder_is_empty),
        TEST(test_base_fs__remove_tree_does_not_follow_links),
        TEST(test_base_fs__temp_dirs_are_private_and_distinct),
        TEST(test_base_fs__temporary_folders_of_the_killed_are_removed),
        TEST(test_base_fs__splits_and_joins_paths),
        TEST(test_base_fs__finds_programs_but_no_folders_or_plain_files),
        TEST(test_base_fs__cache_dir_obeys_its_variables_in_order),
        TEST(test_base_clock__moves_forward_and_prints_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
