/* Tests of log.c, monitor.c and terminal.c: who is told what.  SPDX-License-Identifier: Apache-2.0
 */
#include "base/fs.h"
#include "base/log.h"
#include "base/terminal.h"
#include "kit/kit.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What one of each says at `verbosity`; stderr goes to a file meanwhile. */
static kl_str said_at(kl_arena *a, kl_verbosity verbosity) {
    kl_str text;
    FILE *file = tmpfile();
    assert_non_null(file);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    const kl_monitor *before = kl_monitor_use(NULL);
    kli_terminal_watch(verbosity);
    kli_base_progress("working %d", 1);
    kli_warn("be %s", "careful");
    kli_debug("detail %d", 2);
    kli_base_progress("%s", "");
    kl_monitor_use(before);
    kli_warn("heard by %s", "nobody");
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_ok(
        kli_fs_read(&text, a, kl_arena_printf(a, "/proc/self/fd/%d", fileno(file)).ptr, 1000, &e));
    fclose(file);
    return text;
}

static void test_base_log__levels_choose_what_is_said(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    assert_str(said_at(a, KL_QUIET), "");
    assert_str(said_at(a, KL_NORMAL), "klineage: warning: be careful\n");
    assert_str(said_at(a, KL_VERBOSE), "klineage: warning: be careful\nklineage: detail 2\n");
    kl_arena_free(a);
}

static void test_base_log__as_json_a_message_is_an_object_on_a_line(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kli_terminal_json(true);
    const kl_str said = said_at(a, KL_VERBOSE);
    kli_terminal_json(false);
#define MESSAGE(level, text)                                                                       \
    "{\"schema\":\"klineage/message\",\"version\":1,\"level\":\"" level "\",\"text\":\"" text      \
    "\"}\n"
    assert_str(said, MESSAGE("warning", "be careful") MESSAGE("debug", "detail 2"));
    kl_arena_free(a);
}

/* ---- threads ----------------------------------------------------------------------------- */

typedef struct {
    char said[200];
    bool stop, stopped;
} listener;

static void hear(void *ctx, kl_log_level level, const char *line) {
    listener *l = ctx;
    size_t n = strlen(l->said);
    (void)snprintf(l->said + n, sizeof l->said - n, "%d %s\n", (int)level, line);
}

static void see(void *ctx, const char *line) { hear(ctx, KL_LOG_INFO, line); }

static bool wants_to_stop(void *ctx) { return ((listener *)ctx)->stop; }

static void *work(void *ctx) {
    listener *l = ctx;
    kl_monitor m = {.log = hear, .progress = see, .cancelled = wants_to_stop, .ctx = l};
    kli_say("before %d", l->stop);
    kl_monitor_use(&m);
    kli_warn("in %d", l->stop);
    kli_base_progress("line\nline");
    l->stopped = kli_interrupted();
    return NULL;
}

static void test_base_monitor__each_thread_has_its_own(void **state) {
    (void)state;
    pthread_t thread[2];
    listener l[2] = {{.stop = false}, {.stop = true}};
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &l[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_string_equal(l[0].said, "2 in 0\n1 line line\n");
    assert_string_equal(l[1].said, "2 in 1\n1 line line\n");
    assert_false(l[0].stopped);
    assert_true(l[1].stopped);
    assert_false(kli_interrupted());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_log__levels_choose_what_is_said),
        cmocka_unit_test(test_base_log__as_json_a_message_is_an_object_on_a_line),
        cmocka_unit_test(test_base_monitor__each_thread_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
