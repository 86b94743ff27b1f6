/* isolation_test.c - what a confined process can still do: nothing outside its folder.  Layers that
 * this host lacks are reported as lacking, and their part is skipped.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "backend/compile.h"
#include "backend/isolation.h"
#include "base/fs.h"
#include "base/test.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    kl_arena *arena;
    kl_isolation here;
    kl_str dir;
} g;

static kli_proc_result run_confined(const char *program, const char *argument) {
    kl_error e = {0};
    kli_proc_result r;
    const char *argv[] = {program, "-c", argument, NULL};
    assert_ok(kli_compile_run(&r, g.arena, argv, g.dir.ptr, NULL, 0, &e));
    return r;
}

static void test_isolation__works_in_its_folder(void **state) {
    (void)state;
    kli_proc_result r = run_confined("/bin/sh", "echo hello > here && cat here && echo $TMPDIR");
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out.ptr, "hello");
    assert_contains(r.out.ptr, g.dir.ptr);
}

static void test_isolation__cannot_leave_its_folder(void **state) {
    (void)state;
    if (!g.here.landlock) skip();
    assert_int_not_equal(run_confined("/bin/sh", "cat /etc/passwd").exit_code, 0);
    assert_int_not_equal(run_confined("/bin/sh", "echo x > /tmp/klineage-escape").exit_code, 0);
    assert_false(kli_fs_exists("/tmp/klineage-escape"));
    assert_int_not_equal(run_confined("/bin/sh", "cat /proc/1/environ").exit_code, 0);
    assert_int_not_equal(run_confined("/bin/sh", "ls /root /home").exit_code, 0);
}

static void test_isolation__has_no_environment(void **state) {
    (void)state;
    assert_int_equal(setenv("KLINEAGE_SECRET", "tell", 1), 0);
    assert_null(strstr(run_confined("/bin/sh", "set; env").out.ptr, "tell"));
}

/* A port that listens here: reachable for us, not for it. */
static void test_isolation__has_no_network(void **state) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    char connect_to[64];
    (void)state;
    if (!g.here.namespaces || !kli_fs_find_program(g.arena, "bash").len) skip();
    int port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(port >= 0 && bind(port, (struct sockaddr *)&address, n) == 0 &&
                listen(port, 1) == 0);
    assert_int_equal(getsockname(port, (struct sockaddr *)&address, &n), 0);
    (void)snprintf(connect_to, sizeof connect_to, ": < /dev/tcp/127.0.0.1/%d",
                   ntohs(address.sin_port));
    assert_int_not_equal(run_confined("/bin/bash", connect_to).exit_code, 0);
    close(port);
}

static void test_isolation__is_nobody(void **state) {
    (void)state;
    if (!g.here.user_switch) skip();
    assert_contains(run_confined("/bin/sh", "id -u").out.ptr, "65534");
}

static void test_isolation__has_limits(void **state) {
    (void)state;
    if (!g.here.rlimits) skip();
    char seconds[32];
    (void)snprintf(seconds, sizeof seconds, "%d\n", KL_COMPILE_SECONDS);
    assert_string_equal(run_confined("/bin/sh", "ulimit -t").out.ptr, seconds);
    assert_string_equal(run_confined("/bin/sh", "ulimit -c").out.ptr, "0\n");
}

static void test_isolation__text(void **state) {
    char text[64];
    const kl_isolation none = {0}, some = {.seccomp = true, .landlock = true, .landlock_abi = 3};
    (void)state;
    assert_string_equal(kli_isolation_text(&none, text, sizeof text), "none");
    assert_string_equal(kli_isolation_text(&some, text, sizeof text), "seccomp+landlock3");
}

static void test_isolation__every_filter_builds(void **state) {
    kli_filter f;
    (void)state;
    for (int kind = KLI_FILTER_KERNEL; kind <= KLI_FILTER_COMPILE; kind++) {
        assert_true(kli_filter_build(&f, (kli_filter_kind)kind));
        assert_true(f.program.len > 4 && f.program.len < 1000);
        kli_filter_fini(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isolation__works_in_its_folder),
        cmocka_unit_test(test_isolation__cannot_leave_its_folder),
        cmocka_unit_test(test_isolation__has_no_environment),
        cmocka_unit_test(test_isolation__has_no_network),
        cmocka_unit_test(test_isolation__is_nobody),
        cmocka_unit_test(test_isolation__has_limits),
        cmocka_unit_test(test_isolation__text),
        cmocka_unit_test(test_isolation__every_filter_builds),
    };
    char text[64];
    kl_error e = {0};
    g.arena = kl_arena_new();
    kli_isolation_probe(&g.here);
    print_message("here: %s\n", kli_isolation_text(&g.here, text, sizeof text));
    if (kli_fs_temp_dir(&g.dir, g.arena, &e)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kli_fs_remove_tree(g.dir.ptr);
    kl_arena_free(g.arena);
    return failed;
}
