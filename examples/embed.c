/* embed.c - the gate inside a program: gate one kernel, read the verdict as a struct.
 * Built with every build, and run as a test.  SPDX-License-Identifier: Apache-2.0 */
#include <klineage/klineage.h>
#include <stdio.h>

int main(int argc, char **argv) {
    kl_arena *arena = kl_arena_new();
    kl_error e = {0};
    kl_str folder;
    kl_task *task;
    kl_kernel *kernel;
    kl_gate *gate = NULL;
    kl_verdict verdict;
    kl_gate_opts opts = {.quick = true, .workload = argc > 3 ? argv[3] : NULL};
    if (argc < 3) return fprintf(stderr, "usage: embed TASK KERNEL [WORKLOAD]\n"), 2;
    kl_err err = kl_task_find(&folder, arena, argv[1], &e);
    if (!err) err = kl_task_load(&task, arena, folder.ptr, &e);
    if (!err) err = kl_kernel_load(&kernel, arena, argv[2], &(kl_kernel_opts){0}, &e);
    if (!err) err = kl_gate_open(&gate, &e);
    if (!err) err = kl_gate_run(&verdict, gate, arena, task, kernel, &opts, &e);
    if (err)
        fprintf(stderr, "%s: %s\n%s\n", e.where, e.message, e.hint);
    else
        printf("%s in %lld ns %.*s\n", kl_outcome_name(verdict.outcome),
               (long long)verdict.median_ns, KL_STR_ARG(verdict.why));
    kl_gate_close(gate);
    kl_arena_free(arena);
    return err ? 2 : kl_verdict_exit_code(&verdict);
}
