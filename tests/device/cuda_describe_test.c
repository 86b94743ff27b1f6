/* cuda_describe_test.c - verdicts whose artefact is disassembled while the kernel is checked: a
 * real gate on the fake of fake_cuda.c, with scripts in the places of compiler and disassembler.
 * SPDX-License-Identifier: Apache-2.0 */
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

/* A disassembler that finds so many instructions. */
#define FINDS_ONE                                                                                  \
    "echo 'Function : scale'\necho '        /*0000*/  FFMA R4, R5, R6, R4 ;  /* 0x1 */'\n"
#define FINDS_TWO FINDS_ONE "echo '        /*0010*/  EXIT ;  /* 0x2 */'\n"

static kl_task *task;
static kl_kernel *kernel;
static kl_gate *gate;
static kl_verdict verdict;
static bool stops, is_checked;

static void program(const char *name, const char *lines) {
    const char *text = kl_arena_printf(arena, "#!/bin/sh\n%s", lines).ptr;
    assert_int_equal(chmod(kit_write(name, text), 0755), 0);
}

static void make_toolkit(const char *entry) {
    fake_cubin cubin;
    const char *const kernels[] = {entry, NULL};
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

static int set_up(void **state) {
    kit_set_up(state);
    stops = is_checked = false;
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

static int tear_down(void **state) {
    kl_gate_close(gate);
    return kit_tear_down(state);
}

/* A gate that waits for others says so too, of a later stage. */
static void on_stage(void *ctx, kl_stage stage, const char *text) {
    (void)ctx, (void)text;
    if ((stage != KL_STAGE_TINY && stage != KL_STAGE_REAL) || is_checked) return;
    is_checked = true;
    (void)kit_write("toolkit/checked", "");
}

static bool wants_to_stop(void *ctx) { return (void)ctx, stops && is_checked; }

/* The source is one that no real compiler takes. */
static kl_err judge(const char *entry) {
    const kl_monitor monitor = {.cancelled = wants_to_stop};
    const kl_gate_opts opts = {
        .workload = "tiny", .check_only = true, .progress = on_stage, .monitor = &monitor};
    const kl_str source = kl_arena_printf(
        arena, "#error a stand-in\n//! launch %s grid(1) block(256) args(x, s, y, N)\n", entry);
    make_toolkit(entry);
    assert_ok(kl_kernel_parse(&kernel, arena, source, KL_S("kernel.cu"),
                              kl_surface_by_name(KL_S("cuda")), NULL, &e));
    return kl_gate_run(&verdict, gate, arena, task, kernel, &opts, &e);
}

static int feature(const char *name) {
    for (int i = 0; i < verdict.n_features; i++)
        if (kl_str_eq(verdict.features[i].name, kl_str_of(name)))
            return (int)verdict.features[i].value;
    return -1;
}

static bool took(const char *stage) {
    for (int i = 0; i < verdict.n_stages; i++)
        if (kl_str_eq(verdict.stages[i].name, kl_str_of(stage))) return true;
    return false;
}

static bool is_confined_elsewhere(void) { /* in a jail that shows no such folder */
    return verdict.outcome == KL_OUTCOME_NO_COMPILE || !feature("disassembled");
}

/* It waits for the checks, which a gate that waited for it would never come to. */
static void test_cuda_describe__the_checks_do_not_wait_for_it(void **state) {
    const char *waits =
        "i=0\nwhile [ ! -e %s ]; do i=$((i+1)); [ $i -lt 100 ] || exec echo 'Function : late'; "
        "sleep 0.1; done\n" FINDS_TWO;
    (void)state;
    if (kli_last_core() < 0) skip(); /* there is no thread */
    assert_ok(kli_fs_mkdirs(kit_path("toolkit/bin"), &e));
    program("toolkit/bin/cuobjdump",
            kl_arena_printf(arena, waits, kit_path("toolkit/checked")).ptr);
    assert_ok(judge("scale"));
    if (is_confined_elsewhere()) skip();
    assert_int_equal(verdict.outcome, KL_OUTCOME_PASS);
    assert_true(feature("instructions") == 2 && feature("fma") == 1 && took("describe"));
    program("toolkit/bin/cuobjdump", FINDS_ONE); /* and is not asked again */
    assert_ok(judge("scale"));
    assert_true(took("compile_cached") && !took("describe"));
    assert_int_equal(feature("instructions"), 2);
}

static void test_cuda_describe__what_is_rejected_has_all_features(void **state) {
    (void)state;
    assert_ok(kli_fs_mkdirs(kit_path("toolkit/bin"), &e));
    program("toolkit/bin/cuobjdump", "sleep 1\n" FINDS_TWO);
    assert_ok(judge("scale_half"));
    if (is_confined_elsewhere()) skip();
    assert_int_equal(verdict.outcome, KL_OUTCOME_WRONG);
    assert_int_equal(feature("instructions"), 2);
}

/* What was left undone is done by the next who compiles it. */
static void test_cuda_describe__a_user_who_wants_to_stop_waits_for_no_disassembler(void **state) {
    kl_artefact made;
    const kl_device *device;
    (void)state;
    if (kli_last_core() < 0) skip();
    stops = true;
    assert_ok(kli_fs_mkdirs(kit_path("toolkit/bin"), &e));
    program("toolkit/bin/cuobjdump", "exec sleep 1000\n");
    const kl_err err = judge("scale"); /* or this test never ends */
    if (!err && is_confined_elsewhere()) skip();
    assert_int_equal(err, KL_EINTR);
    program("toolkit/bin/cuobjdump", FINDS_TWO);
    assert_ok(kli_gate_device(&device, gate, KL_BACKEND_CUDA, &e));
    for (int whole = 0; whole < 2; whole++) {
        const kl_workload *w = &task->workloads[0];
        assert_ok((whole ? kli_compile : kli_compile_code)(&made, arena, device, kernel, task, w,
                                                           NULL, &e));
        assert_true(made.cached && kli_compile_is_described(&made, kernel) == whole);
    }
    assert_true(kli_feature_get(&made, "instructions") == 2.0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_cuda_describe__the_checks_do_not_wait_for_it),
        TEST(test_cuda_describe__what_is_rejected_has_all_features),
        TEST(test_cuda_describe__a_user_who_wants_to_stop_waits_for_no_disassembler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
