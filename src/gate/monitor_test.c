/* Two gates at once in one process: each tells its own watcher, and one is stopped while the other
 * goes on. SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"
#include "kit/kit.h"
#include <klineage/gate.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TASK KL_TEST_ROOT "/tasks/gemm"

typedef struct {
    bool impatient; /* stops once it was told that the profile begins */
    char said[16 << 10];
    pthread_t thread;
    bool elsewhere; /* a slot was called on another thread */
    bool profiling;
    kl_err err;
    kl_verdict verdict;
    kl_arena *arena;
} watcher;

static void on_log(void *ctx, kl_log_level level, const char *line) {
    watcher *w = ctx;
    size_t n = strlen(w->said);
    (void)level;
    (void)snprintf(w->said + n, sizeof w->said - n, "%s\n", line);
    w->elsewhere = w->elsewhere || !pthread_equal(w->thread, pthread_self());
}

static void on_stage(void *ctx, kl_stage stage, const char *text) {
    (void)text;
    if (stage == KL_STAGE_PROFILE) ((watcher *)ctx)->profiling = true;
}

static bool wants_to_stop(void *ctx) {
    watcher *w = ctx;
    return w->impatient && w->profiling;
}

static kl_err gate_one(watcher *w, kl_error *own) {
    kl_task *task;
    kl_kernel *kernel;
    kl_gate *gate = NULL;
    kl_monitor monitor = {.log = on_log, .cancelled = wants_to_stop, .ctx = w};
    kl_gate_opts opts = {.workload = "M=64,N=64,K=64",
                         .baseline = "none",
                         .quick = true,
                         .monitor = &monitor,
                         .progress = on_stage,
                         .progress_ctx = w};
    kl_err err = kl_task_load(&task, w->arena, TASK, own);
    if (!err) err = kl_kernel_load(&kernel, w->arena, TASK "/naive.c", NULL, own);
    if (!err) err = kl_gate_open(&gate, own);
    if (!err) err = kl_gate_run(&w->verdict, gate, w->arena, task, kernel, &opts, own);
    kl_gate_close(gate);
    return err;
}

static void *work(void *ctx) {
    watcher *w = ctx;
    kl_error own = {0};
    w->thread = pthread_self();
    w->arena = kl_arena_new();
    w->err = gate_one(w, &own);
    return NULL;
}

static void test_gate_monitor__two_gates_have_two_watchers(void **state) {
    pthread_t thread[2];
    static watcher w[2] = {{.impatient = false}, {.impatient = true}};
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(w[0].err, KL_OK);
    assert_true(w[0].verdict.outcome == KL_OUTCOME_PASS ||
                w[0].verdict.outcome == KL_OUTCOME_UNSTABLE);
    assert_true(w[0].verdict.n_checks > 0);
    assert_int_equal(w[1].err, KL_EINTR);
    for (int i = 0; i < 2; i++) {
        assert_true(w[i].profiling);
        assert_false(w[i].elsewhere);
        kl_arena_free(w[i].arena);
    }
    assert_non_null(strstr(w[0].said, "calls of")); /* of its profile, which went to its end */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_monitor__two_gates_have_two_watchers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
