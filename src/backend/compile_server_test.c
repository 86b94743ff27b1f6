/* compile_server_test.c - what one job can do to the next, and to the server: nothing.
 * A job here is Python code that the request brings.  SPDX-License-Identifier: Apache-2.0 */
#include "compile_server.h"
#include "compile.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/test.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT                                                                                     \
    "import os, resource, signal, sys, time\n"                                                     \
    "seen = []\n"                                                                                  \
    "def answer(request):\n"                                                                       \
    "    seen.append(request)\n"                                                                   \
    "    return eval(request) if request[0] != '!' else exec(request[1:])\n"

static struct {
    kl_arena *arena;
    kli_compile_script script;
    kli_proc_result r;
    kl_str cold;
} g;

static kl_err ask_of(const char *code) {
    json_t *text = json_string(code);
    char *request = json_dumps(text, JSON_ENCODE_ANY);
    kl_error e = {0};
    const kl_err err = kli_compile_ask(&g.r, &g.cold, g.arena, &g.script, kl_str_of(request), &e);
    free(request);
    json_decref(text);
    return err;
}

static const char *ask(const char *code) {
    assert_int_equal(ask_of(code), KL_OK);
    return g.r.out.ptr;
}

static bool is_warm(void) {
    (void)ask("1");
    return !g.cold.len;
}

static void test_compile_server__answers_and_keeps_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) assert_string_equal(ask("len(seen)"), "1");
    assert_int_equal(g.r.exit_code, 0);
    if (!is_warm()) skip();
    const int first = atoi(ask("os.getpid()"));
    assert_true(atoi(ask("os.getpid()")) > first); /* of one namespace, each another process */
    assert_string_equal(ask("os.getppid()"), "1");
}

static void test_compile_server__an_end_is_told(void **state) {
    (void)state;
    ask("!print('out'); print('err', file=sys.stderr); raise SystemExit('kernel.py:1:2: error')");
    assert_int_equal(g.r.exit_code, 1);
    assert_string_equal(g.r.out.ptr, "");
    assert_contains(g.r.err.ptr, "out\n");
    assert_contains(g.r.err.ptr, "err\nkernel.py:1:2: error\n");
    ask("!raise SystemExit(7)");
    assert_int_equal(g.r.exit_code, 7);
    ask("1 / 0");
    assert_int_equal(g.r.exit_code, 1);
    assert_contains(g.r.err.ptr, "ZeroDivisionError");
    ask("os.kill(os.getpid(), signal.SIGSEGV)");
    assert_int_equal(g.r.signal, SIGSEGV);
    assert_int_equal(ask_of("os.kill(os.getpid(), signal.SIGKILL)"), KL_EBUSY); /* of the system? */
    assert_string_equal(ask("len(seen)"), "1");
}

/* What stays behind would meet the next job. */
static void test_compile_server__nothing_is_left_running(void **state) {
    (void)state;
    if (!is_warm()) skip();
    ask("!\nfor _ in range(20):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "        os._exit(0)\n");
    assert_int_equal(g.r.exit_code, 0);
    ask("os.kill(-1, 0)");
    assert_contains(g.r.err.ptr, "ProcessLookupError");
    assert_true(g.r.wall_ns < 60000000000ll);
}

static void test_compile_server__the_server_cannot_be_reached(void **state) {
    static const char *const ATTACKS[] = {
        "!\nfor s in range(1, 65):\n"
        "    if s != 9:\n"
        "        os.kill(1, s)\n"
        "os.kill(1, 9)",
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))",
        "resource.prlimit(1, resource.RLIMIT_AS, (1, 1))",
        "os.sched_setaffinity(1, {0})",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
        "open('/proc/1/mem', 'r+b')",
        "open('/proc/1/environ')",
        "os.write(3, b'....')",
        "os.pidfd_open(1) and os.kill(-1, 9)"};
    (void)state;
    if (!is_warm()) skip();
    const kl_str limits = kl_str_of(ask("[resource.getrlimit(i) for i in range(16)] + "
                                        "[os.getpriority(0, 0), os.sched_getscheduler(0), "
                                        "sorted(os.sched_getaffinity(0))]"));
    const int first = atoi(ask("os.getpid()"));
    for (size_t i = 0; i < KL_COUNT(ATTACKS); i++) {
        (void)ask_of(ATTACKS[i]);
        assert_string_equal(ask("[resource.getrlimit(i) for i in range(16)] + "
                                "[os.getpriority(0, 0), os.sched_getscheduler(0), "
                                "sorted(os.sched_getaffinity(0))]"),
                            limits.ptr);
        assert_int_equal(g.cold.len, 0);
    }
    assert_true(atoi(ask("os.getpid()")) > first); /* the same server still */
}

static void test_compile_server__leaves_no_trace_outside(void **state) {
    (void)state;
    if (!is_warm()) skip();
    ask("open('/tmp/klineage-trace', 'w')");
    assert_int_equal(g.r.exit_code, 1);
    ask("open(os.path.join(os.path.dirname(os.__file__), 'klineage-trace'), 'w')");
    assert_int_equal(g.r.exit_code, 1);
    ask("__import__('ctypes').CDLL(None).mq_open(b'/klineage-trace', os.O_CREAT, 0o600, None)");
    assert_string_equal(g.r.out.ptr, "-1");
    ask("open('/etc/passwd').read()");
    assert_int_equal(g.r.exit_code, 1);
    ask("__import__('socket').create_connection(('127.0.0.1', 22), 1)");
    assert_int_equal(g.r.exit_code, 1);
}

static void test_compile_server__a_flood_costs_itself_alone(void **state) {
    (void)state;
    if (!is_warm()) skip();
    ask("!\nwhile True: print('x' * 100000)");
    assert_int_equal(g.r.exit_code, 1);
    assert_true(g.r.err.len <= 16u << 20);
    ask("'x' * (100 << 20)");
    assert_true(g.r.exit_code != 0 && g.r.out.len <= 64u << 20);
    ask("len(bytearray(5 << 30))");
    assert_contains(g.r.err.ptr, "MemoryError");
    ask("resource.getrlimit(resource.RLIMIT_CPU)[0]");
    assert_int_equal(atoi(g.r.out.ptr + 0), KL_COMPILE_SECONDS);
    assert_int_equal(g.cold.len, 0);
}

/* How many processes of this host were started for our script. */
static int servers_of_ours(void) {
    int n = 0;
    DIR *d = opendir("/proc");
    for (const struct dirent *f; d && (f = readdir(d));) {
        char path[300], line[4096] = "";
        snprintf(path, sizeof path, "/proc/%s/cmdline", f->d_name);
        FILE *file = atoi(f->d_name) > 0 ? fopen(path, "r") : NULL;
        const size_t read = file ? fread(line, 1, sizeof line, file) : 0;
        n += memmem(line, read, g.script.script, strlen(g.script.script)) != NULL;
        if (file) fclose(file);
    }
    if (d) closedir(d);
    return n;
}

static void wait_until(int wanted) {
    for (int i = 0; i < 500 && servers_of_ours() != wanted; i++) usleep(20000);
    assert_int_equal(servers_of_ours(), wanted);
}

static void test_compile_server__ends_with_its_gate(void **state) {
    (void)state;
    if (!is_warm()) skip();
    const int before = servers_of_ours();
    const pid_t gate = fork();
    if (gate == 0) _exit(ask_of("time.sleep(600)") != KL_OK);
    wait_until(before + 2); /* a server of its own, at work */
    kill(gate, SIGKILL);
    assert_int_equal(waitpid(gate, NULL, 0), gate);
    wait_until(before);
    assert_string_equal(ask("len(seen)"), "1");
}

/* Two jobs at once are two servers. */
static void *ask_often(void *own) {
    const int *number = own;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str cold;
    kli_proc_result r;
    const char *bad = NULL;
    const kl_str wanted = kl_arena_printf(a, "%d", *number);
    const kl_str request = kl_arena_printf(a, "\"time.sleep(0.02) or %d\"", *number);
    for (int i = 0; i < 5 && !bad; i++)
        if (kli_compile_ask(&r, &cold, a, &g.script, request, &e) || !kl_str_eq(r.out, wanted))
            bad = "another's answer";
    kl_arena_free(a);
    return (void *)(uintptr_t)bad;
}

static void test_compile_server__answers_go_to_who_asked(void **state) {
    pthread_t threads[4];
    int numbers[4];
    void *bad;
    (void)state;
    for (int i = 0; i < 4; i++) {
        numbers[i] = 100 + i;
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &numbers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
    assert_string_equal(ask("len(seen)"), "1"); /* servers outlive the threads that began them */
}

static bool is_enough(void *looks) { return ++*(int *)looks > 3; }

/* The server of a job that nobody waits for ends with it. */
static void test_compile_server__a_job_can_be_given_up(void **state) {
    int looks = 0;
    const kl_monitor impatient = {.cancelled = is_enough, .ctx = &looks};
    (void)state;
    if (!is_warm()) skip();
    const kl_monitor *before = kl_monitor_use(&impatient);
    const kl_err err = ask_of("time.sleep(600)");
    (void)kl_monitor_use(before);
    assert_int_equal(err, KL_EINTR);
    assert_string_equal(ask("len(seen)"), "1");
    assert_int_equal(g.cold.len, 0);
}

/* Where a kernel gives no namespace of processes, jobs could meet each other. */
static void test_compile_server__without_namespaces_each_job_has_its_own_process(void **state) {
    (void)state;
    const pid_t gate = fork();
    if (gate == 0) {
        scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
        bool ok =
            f && seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWPID, CLONE_NEWPID)) == 0;
        ok = ok && seccomp_load(f) == 0;
        ok = ok && ask_of("len(seen)") == KL_OK && strcmp(g.r.out.ptr, "1") == 0;
        ok = ok && kl_str_eq(g.cold, KL_S("compiled by a process of its own: no process namespace "
                                          "here"));
        ok = ok && ask_of("!raise SystemExit('refused')") == KL_OK && g.r.exit_code == 1 &&
             strcmp(g.r.err.ptr, "refused\n") == 0;
        ok = ok && ask_of("open('/tmp/klineage-trace', 'w')") == KL_OK && g.r.exit_code == 1;
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(gate, &status, 0), gate);
    assert_int_equal(status, 0);
}

/* Nor is a kernel believed that ends as if its compiler were not there. */
static void test_compile_server__a_compiler_that_does_not_load_is_no_refusal(void **state) {
    static const char *const MODULES[] = {"json", "no_such_compiler", NULL};
    static kli_compile_script broken;
    kl_error e = {0};
    (void)state;
    broken = g.script;
    broken.modules = MODULES;
    assert_int_equal(kli_compile_ask(&g.r, &g.cold, g.arena, &broken, KL_S("\"len(seen)\""), &e),
                     KL_ENODEV);
    assert_contains(e.message, "ModuleNotFoundError: No module named 'no_such_compiler'");
    ask("!raise ModuleNotFoundError('no_such_compiler')");
    assert_int_equal(g.r.exit_code, 1);
}

static int open_all(void **state) {
    static const char *const MODULES[] = {"json", NULL};
    static const char *readable[3];
    kl_error e = {0};
    kl_str dir;
    (void)state;
    g.arena = kl_arena_new();
    if (kli_fs_temp_dir(&dir, g.arena, &e)) return 1;
    readable[0] = dir.ptr;
    readable[1] = kli_fs_dirname(g.arena, kli_fs_find_part(g.arena, KLI_COMPILE_SERVER).ptr).ptr;
    g.script = (kli_compile_script){.python = "/usr/bin/python3",
                                    .site = dir.ptr,
                                    .script = kli_fs_join(g.arena, dir.ptr, "script.py").ptr,
                                    .modules = MODULES,
                                    .readable = readable};
    if (chmod(dir.ptr, 0755) != 0) return 1;
    return kli_fs_write(g.script.script, KL_S(SCRIPT), &e) != KL_OK ||
           chmod(g.script.script, 0644) != 0;
}

static int close_all(void **state) {
    (void)state;
    kli_fs_remove_tree(g.script.site);
    kl_arena_free(g.arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile_server__answers_and_keeps_nothing),
        cmocka_unit_test(test_compile_server__an_end_is_told),
        cmocka_unit_test(test_compile_server__nothing_is_left_running),
        cmocka_unit_test(test_compile_server__the_server_cannot_be_reached),
        cmocka_unit_test(test_compile_server__leaves_no_trace_outside),
        cmocka_unit_test(test_compile_server__a_flood_costs_itself_alone),
        cmocka_unit_test(test_compile_server__ends_with_its_gate),
        cmocka_unit_test(test_compile_server__answers_go_to_who_asked),
        cmocka_unit_test(test_compile_server__a_job_can_be_given_up),
        cmocka_unit_test(test_compile_server__without_namespaces_each_job_has_its_own_process),
        cmocka_unit_test(test_compile_server__a_compiler_that_does_not_load_is_no_refusal),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
