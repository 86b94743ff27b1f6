/* gate.c - a program outside the tree that gates one kernel with libklgate, and cancels it.
 * usage: gate KERNEL WORKLOAD; the task is found by its name.  SPDX-License-Identifier: Apache-2.0
 */
#include <klineage/gate.h>
#include <stdio.h>
#include <string.h>

static bool always(void *ctx) { return ++*(int *)ctx > 0; }

int main(int argc, char **argv) {
    kl_arena *arena = kl_arena_new();
    kl_error e = {0};
    kl_str folder;
    kl_task *task;
    kl_kernel *kernel;
    kl_gate *gate = NULL;
    kl_verdict verdict = {0};
    int asked = 0;
    kl_monitor impatient = {.cancelled = always, .ctx = &asked};
    kl_gate_opts opts = {.check_only = true, .workload = argc > 2 ? argv[2] : NULL};
    if (argc != 3) return 2;
    kl_err err = kl_task_find(&folder, arena, "gemm", &e);
    if (!err) err = kl_task_load(&task, arena, folder.ptr, &e);
    if (!err) err = kl_kernel_load(&kernel, arena, argv[1], NULL, &e);
    if (!err) err = kl_gate_open(&gate, &e);
    if (!err) err = kl_gate_run(&verdict, gate, arena, task, kernel, &opts, &e);
    printf("%s %s %s\n", err ? e.message : kl_outcome_name(verdict.outcome), e.where, e.hint);
    bool passed = !err && verdict.outcome == KL_OUTCOME_PASS;
    opts.monitor = &impatient;
    if (passed)
        passed =
            kl_gate_run(&verdict, gate, arena, task, kernel, &opts, &e) == KL_EINTR && asked > 0;
    if (!passed) printf("a cancelled gate went on: %s\n", e.message);
    kl_gate_close(gate);
    kl_arena_free(arena);
    return passed ? 0 : 1;
}
