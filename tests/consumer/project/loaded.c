/* loaded.c - the gate through dlopen, as another language's foreign functions call it; links
 * nothing of klineage. usage: loaded LIBRARY... KERNEL WORKLOAD; the first library that opens is
 * used.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/gate.h>
#include <stdio.h>

#define FUNCTION(name) __typeof__(name) *name##_ptr
static struct {
    FUNCTION(kl_arena_new);
    FUNCTION(kl_arena_free);
    FUNCTION(kl_task_find);
    FUNCTION(kl_task_load);
    FUNCTION(kl_kernel_load);
    FUNCTION(kl_gate_open);
    FUNCTION(kl_gate_run);
    FUNCTION(kl_gate_close);
    FUNCTION(kl_outcome_name);
} api;

static bool load(void *library) {
#define LOAD(name) ((*(void **)&api.name##_ptr = dlsym(library, #name)) != NULL)
    return LOAD(kl_arena_new) && LOAD(kl_arena_free) && LOAD(kl_task_find) && LOAD(kl_task_load) &&
           LOAD(kl_kernel_load) && LOAD(kl_gate_open) && LOAD(kl_gate_run) && LOAD(kl_gate_close) &&
           LOAD(kl_outcome_name);
}

static kl_err gate_one(kl_verdict *out, kl_arena *a, const char *path, const char *workload,
                       kl_error *e) {
    kl_str folder;
    kl_task *task;
    kl_kernel *kernel;
    kl_gate *gate = NULL;
    kl_gate_opts opts = {.check_only = true, .workload = workload};
    kl_err err = api.kl_task_find_ptr(&folder, a, "gemm", e);
    if (!err) err = api.kl_task_load_ptr(&task, a, folder.ptr, e);
    if (!err) err = api.kl_kernel_load_ptr(&kernel, a, path, NULL, e);
    if (!err) err = api.kl_gate_open_ptr(&gate, e);
    if (!err) err = api.kl_gate_run_ptr(out, gate, a, task, kernel, &opts, e);
    api.kl_gate_close_ptr(gate);
    return err;
}

int main(int argc, char **argv) {
    kl_error e = {0};
    kl_verdict verdict = {0};
    void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library || !load(library)) return printf("%s\n", dlerror()), 1;
    if (dlsym(library, "kli_fs_read") || dlsym(library, "kli_gate_device"))
        return printf("a private symbol is visible\n"), 1;
    kl_arena *arena = api.kl_arena_new_ptr();
    kl_err err = gate_one(&verdict, arena, argv[argc - 2], argv[argc - 1], &e);
    printf("%s %s\n", err ? e.message : api.kl_outcome_name_ptr(verdict.outcome), e.hint);
    bool passed = !err && verdict.outcome == KL_OUTCOME_PASS;
    api.kl_arena_free_ptr(arena);
    return passed ? 0 : 1;
}
