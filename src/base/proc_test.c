/* Tests of proc.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/terminal.h"
#include "kit/kit.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND 1000000000ll

static kli_proc_result shell(const char *script, kli_proc_spec spec) {
    kli_proc_result result;
    const char *const argv[] = {"sh", "-c", script, NULL};
    spec.argv = argv;
    assert_ok(kli_proc_run(&result, arena, &spec, &e));
    return result;
}

static void test_base_proc__collects_both_outputs_and_the_exit_code(void **state) {
    (void)state;
    kli_proc_result r = shell("echo out; echo err >&2; exit 7", (kli_proc_spec){0});
    assert_str(r.out, "out\n");
    assert_str(r.err, "err\n");
    assert_int_equal(r.exit_code, 7);
    assert_int_equal(r.signal, 0);
    assert_false(r.timed_out);
    assert_true(r.wall_ns > 0);
}

static void test_base_proc__a_signal_is_not_an_exit_code(void **state) {
    (void)state;
    kli_proc_result r = shell("kill -SEGV $$", (kli_proc_spec){0});
    assert_int_equal(r.exit_code, -1);
    assert_int_equal(r.signal, SIGSEGV);
}

static void test_base_proc__a_missing_program_is_not_found(void **state) {
    (void)state;
    kli_proc_result r;
    const char *const bare[] = {"no-such-program-here", NULL}, *const path[] = {"./no/such", NULL};
    assert_err(KL_ENOENT, kli_proc_run(&r, arena, &(kli_proc_spec){.argv = bare}, &e));
    assert_string_equal(e.where, "no-such-program-here");
    assert_err(KL_ENOENT, kli_proc_run(&r, arena, &(kli_proc_spec){.argv = path}, &e));
}

static void test_base_proc__a_program_that_cannot_be_executed_is_a_spawn_error(void **state) {
    (void)state;
    kli_proc_result r;
    kl_str dir;
    assert_ok(kli_fs_temp_dir(&dir, arena, &e));
    const char *file = kli_fs_join(arena, dir.ptr, "garbage").ptr;
    assert_ok(kli_fs_write(file, KL_S("\x01\x02 not a program"), &e));
    (void)shell(kl_arena_printf(arena, "chmod +x %s", file).ptr, (kli_proc_spec){0});
    const char *const argv[] = {file, NULL};
    kl_err err = kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e);
    kli_fs_remove_tree(dir.ptr);
    assert_int_equal(err, KL_ESPAWN);
}

static void test_base_proc__a_missing_folder_is_a_spawn_error_that_names_it(void **state) {
    (void)state;
    kli_proc_result r;
    const char *const argv[] = {"true", NULL};
    assert_err(
        KL_ESPAWN,
        kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv, .cwd = "/no/such/folder"}, &e));
    assert_contains(e.message, "/no/such/folder");
}

/* Both directions at once, far above what a pipe holds. */
static void test_base_proc__feeds_megabytes_through_without_deadlock(void **state) {
    (void)state;
    size_t n = 8 << 20;
    char *input = KL_ARRAY(arena, char, n);
    memset(input, 'x', n);
    kli_proc_spec spec = {.input = {input, n}, .max_output = n + 1, .timeout_ns = 30 * SECOND};
    kli_proc_result r = shell("cat", spec);
    assert_int_equal(r.out.len, n);
    assert_memory_equal(r.out.ptr, input, n);
}

static void test_base_proc__a_program_that_ignores_its_input_is_fine(void **state) {
    (void)state;
    kli_proc_result r =
        shell("exit 0", (kli_proc_spec){.input = {KL_ARRAY(arena, char, 1 << 20), 1 << 20}});
    assert_int_equal(r.exit_code, 0);
    r = shell("cat; echo end", (kli_proc_spec){0});
    assert_str(r.out, "end\n");
}

static void test_base_proc__keeps_no_more_output_than_asked(void **state) {
    (void)state;
    const char *script = "head -c 3000000 /dev/zero; head -c 500 /dev/zero >&2";
    kli_proc_result r = shell(script, (kli_proc_spec){.max_output = 1000});
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(r.out.len + r.err.len, 1000);
}

static void test_base_proc__a_timeout_kills_the_whole_group(void **state) {
    (void)state;
    kli_proc_result r =
        shell("sleep 50 & echo $!; sleep 50", (kli_proc_spec){.timeout_ns = SECOND / 5});
    assert_true(r.timed_out);
    assert_int_equal(r.signal, SIGKILL);
    assert_true(r.wall_ns < 25 * SECOND);
    pid_t background = (pid_t)atoi(r.out.ptr);
    assert_true(background > 0);
    for (int i = 0; i < 100 && kill(background, 0) == 0;
         i++) { /* init may need a moment to reap it */
        char state_letter = '?';
        kl_str stat_text;
        if (kli_fs_read(&stat_text, arena, kl_arena_printf(arena, "/proc/%d/stat", background).ptr,
                        4096, &e))
            break;
        const char *after_name = strrchr(stat_text.ptr, ')');
        if (after_name) state_letter = after_name[2];
        if (state_letter == 'Z') break;
        assert_int_not_equal(i, 99);
        usleep(10000);
    }
}

static void test_base_proc__endless_output_still_meets_its_timeout(void **state) {
    (void)state;
    kli_proc_result r = shell("yes", (kli_proc_spec){.timeout_ns = SECOND / 5});
    assert_true(r.timed_out);
    assert_true(r.wall_ns < 25 * SECOND);
}

static void test_base_proc__does_not_wait_for_what_was_left_in_the_background(void **state) {
    (void)state;
    kli_proc_result r = shell("sleep 50 & echo done", (kli_proc_spec){.timeout_ns = 30 * SECOND});
    assert_str(r.out, "done\n");
    assert_false(r.timed_out);
    assert_true(r.wall_ns < 25 * SECOND);
    r = shell("setsid sleep 20 & echo done", (kli_proc_spec){.timeout_ns = 30 * SECOND});
    assert_str(r.out, "done\n");
    assert_true(r.wall_ns < 15 * SECOND);
}

static void test_base_proc__closing_output_early_is_not_the_end(void **state) {
    (void)state;
    kli_proc_result r =
        shell("exec >&- 2>&-; sleep 0.2; exit 3", (kli_proc_spec){.timeout_ns = 30 * SECOND});
    assert_int_equal(r.exit_code, 3);
}

static void test_base_proc__environment_and_folder_are_the_given_ones(void **state) {
    (void)state;
    const char *const envp[] = {"A=1", NULL};
    kli_proc_result r = shell("pwd; echo $A$HOME", (kli_proc_spec){.envp = envp, .cwd = "/"});
    assert_str(r.out, "/\n1\n");
}

static void test_base_proc__no_descriptor_leaks_in_or_stays_behind(void **state) {
    (void)state;
    kl_str *names;
    size_t before, after;
    assert_ok(kli_fs_list(&names, &before, arena, "/proc/self/fd", &e));
    kli_proc_result r = shell("ls /proc/self/fd", (kli_proc_spec){.input = KL_S("x")});
    assert_str(r.out, "0\n1\n2\n3\n"); /* 3 is ls looking */
    const char *const argv[] = {"true", NULL};
    (void)!kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv, .cwd = "/no/such"}, &e);
    assert_ok(kli_fs_list(&names, &after, arena, "/proc/self/fd", &e));
    assert_int_equal(before, after);
}

static int refuse(void *ctx) { return *(int *)ctx; }

static void test_base_proc__confinement_that_fails_ends_the_child_with_126(void **state) {
    (void)state;
    int yes = 1, no = 0;
    assert_int_equal(
        shell("exit 0", (kli_proc_spec){.confine = refuse, .confine_ctx = &yes}).exit_code, 126);
    assert_int_equal(
        shell("exit 5", (kli_proc_spec){.confine = refuse, .confine_ctx = &no}).exit_code, 5);
}

static void test_base_proc__shell_words_are_never_interpreted(void **state) {
    (void)state;
    kli_proc_result r;
    const char *const argv[] = {"echo", "$(id); `id` * \"", NULL};
    assert_ok(kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e));
    assert_str(r.out, "$(id); `id` * \"\n");
}

static void test_base_proc__works_with_standard_descriptors_closed(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        close(0);
        close(1);
        kli_proc_result r;
        const char *const argv[] = {"sh", "-c", "cat; echo err >&2", NULL};
        kl_err err =
            kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv, .input = KL_S("in")}, &e);
        _exit(!err && kl_str_eq(r.out, KL_S("in")) && kl_str_eq(r.err, KL_S("err\n")) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Also what the program started, which no longer has us for a parent. */
static void test_base_proc__a_killed_parent_takes_everything_along(void **state) {
    (void)state;
    int ends[2];
    pid_t below[2] = {0, 0};
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char script[64];
        kli_proc_result r;
        snprintf(script, sizeof script, "sleep 50 & echo $$ $! > /proc/%d/fd/%d; wait; exit 0",
                 (int)getpid(), ends[1]);
        const char *const argv[] = {"sh", "-c", script, NULL};
        _exit(kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e));
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    assert_int_equal(fscanf(said, "%d %d", &below[0], &below[1]), 2);
    fclose(said);
    for (int i = 0; i < 2; i++) assert_int_equal(kill(below[i], 0), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 2; i++) {
        char path[32], what = '\0';
        snprintf(path, sizeof path, "/proc/%d/stat", below[i]);
        for (int64_t until = kli_now_ns() + 10 * SECOND; kli_now_ns() < until; usleep(1000)) {
            FILE *stat =
                fopen(path, "r"); /* one that nobody reaps is dead, though it has a number */
            what = '\0';
            if (stat && fscanf(stat, "%*d (%*[^)]) %c", &what) != 1) what = '\0';
            if (stat) fclose(stat);
            if (!what || what == 'Z') break;
        }
        assert_true(!what || what == 'Z');
    }
}

/* In a process of its own: the flag stays up once it is up. */
static void test_base_proc__an_interrupt_stops_the_run_and_the_second_kills(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        kli_terminal_watch(KL_QUIET);
        kli_interrupt_install();
        kli_proc_result r;
        const char *const argv[] = {"sh", "-c", "kill -INT $PPID; sleep 50", NULL};
        int64_t began = kli_now_ns();
        kl_err err = kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e);
        if (err != KL_EINTR || !kli_interrupted() || kli_now_ns() - began > 10 * SECOND) _exit(1);
        if (kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e) != KL_EINTR) _exit(2);
        raise(SIGTERM);
        _exit(3);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_base_proc__collects_both_outputs_and_the_exit_code),
        KIT_TEST(test_base_proc__a_signal_is_not_an_exit_code),
        KIT_TEST(test_base_proc__a_missing_program_is_not_found),
        KIT_TEST(test_base_proc__a_program_that_cannot_be_executed_is_a_spawn_error),
        KIT_TEST(test_base_proc__a_missing_folder_is_a_spawn_error_that_names_it),
        KIT_TEST(test_base_proc__feeds_megabytes_through_without_deadlock),
        KIT_TEST(test_base_proc__a_program_that_ignores_its_input_is_fine),
        KIT_TEST(test_base_proc__keeps_no_more_output_than_asked),
        KIT_TEST(test_base_proc__a_timeout_kills_the_whole_group),
        KIT_TEST(test_base_proc__endless_output_still_meets_its_timeout),
        KIT_TEST(test_base_proc__does_not_wait_for_what_was_left_in_the_background),
        KIT_TEST(test_base_proc__closing_output_early_is_not_the_end),
        KIT_TEST(test_base_proc__environment_and_folder_are_the_given_ones),
        KIT_TEST(test_base_proc__no_descriptor_leaks_in_or_stays_behind),
        KIT_TEST(test_base_proc__confinement_that_fails_ends_the_child_with_126),
        KIT_TEST(test_base_proc__shell_words_are_never_interpreted),
        KIT_TEST(test_base_proc__works_with_standard_descriptors_closed),
        KIT_TEST(test_base_proc__a_killed_parent_takes_everything_along),
        KIT_TEST(test_base_proc__an_interrupt_stops_the_run_and_the_second_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
