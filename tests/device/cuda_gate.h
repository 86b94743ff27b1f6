/* cuda_gate.h - a real gate on the fake of fake_cuda.c, with a task of y = 2.5 x and a script in
 * the place of the compiler.  For cuda_describe_test.c and cuda_rounds_test.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TEST_CUDA_GATE_H
#define KL_TEST_CUDA_GATE_H
#include "backend/backend.h"
#include "backend/compile.h"
#include "base/fs.h"
#include "fake_cubin.h"
#include "gate/gate_impl.h"
#include "kernel/kernel.h"
#include "kit/kit.h"
#include <sys/stat.h>

static const char DEFINITION[] =
    "{\"name\": \"scaled\", \"axes\": {\"N\": {\"type\": \"var\"}}, \"inputs\": {\"x\": "
    "{\"shape\": [\"N\"], \"dtype\": \"float32\"}, \"s\": {\"shape\": null, \"dtype\": "
    "\"float32\"}}, \"outputs\": {\"y\": {\"shape\": [\"N\"], \"dtype\": \"float32\"}}}";
static const char WORKLOADS[] =
    "{\"uuid\": \"u1\", \"axes\": {\"N\": 1000}, \"inputs\": {\"x\": {\"type\": \"random\"}, "
    "\"s\": {\"type\": \"scalar\", \"value\": 2.5}}, \"klineage\": {\"label\": \"tiny\"}}\n";
static const char ORACLE[] = "//! launch oracle args(x, s, y, N)\n"
                             "void oracle(const float *x, float s, double *y, int n) {\n"
                             "    for (int i = 0; i < n; i++) y[i] = (double)s * x[i];\n}\n";

static kl_task *task;
static kl_gate *gate;
static kl_verdict verdict;

static void program(const char *name, const char *lines) {
    const char *text = kl_arena_printf(arena, "#!/bin/sh\n%s", lines).ptr;
    assert_int_equal(chmod(kit_write(name, text), 0755), 0);
}

static void make_toolkit(const char *const *kernels) {
    fake_cubin cubin;
    assert_ok(kli_fs_mkdirs(kit_path("toolkit/bin"), &e));
    fake_cubin_make(&cubin, kernels, NULL);
    fake_cubin_write(&cubin, kit_path("toolkit/made.cubin"));
    program("toolkit/bin/nvcc",
            kl_arena_printf(arena,
                            "if [ \"$1\" = --version ]; then echo ', V13.0.88'; exit; fi\n"
                            "exec cp %s kernel.cubin\n",
                            kit_path("toolkit/made.cubin"))
                .ptr);
}

/* The source is one that no real compiler takes. */
static kl_kernel *kernel_of(const char *entry) {
    kl_kernel *k;
    const kl_str source = kl_arena_printf(
        arena, "#error a stand-in\n//! launch %s grid(1) block(256) args(x, s, y, N)\n", entry);
    assert_ok(kl_kernel_parse(&k, arena, source, KL_S("kernel.cu"),
                              kl_surface_by_name(KL_S("cuda")), NULL, &e));
    return k;
}

static int open_gate(void **state) {
    kit_set_up(state);
    assert_int_equal(chmod(kit_folder(), 0755), 0); /* a confined program may be another user's */
    assert_ok(kli_fs_mkdirs(kit_path("task"), &e));
    (void)kit_write("task/definition.json", DEFINITION);
    (void)kit_write("task/workloads.jsonl", WORKLOADS);
    (void)kit_write("task/oracle.c", ORACLE);
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", "", 1), 0);
    assert_int_equal(setenv("KLINEAGE_CACHE", kit_path("cache"), 1), 0);
    assert_int_equal(setenv("CUDA_HOME", kit_path("toolkit"), 1), 0);
    assert_ok(kl_task_load(&task, arena, kit_path("task"), &e));
    assert_ok(kl_gate_open(&gate, &e));
    return 0;
}

static int close_gate(void **state) {
    kl_gate_close(gate);
    return kit_tear_down(state);
}

#endif
