/* cuda_describe_test.c - verdicts whose artefact is disassembled while the kernel is checked: a
 * real gate on the fake of fake_cuda.c, with scripts in the places of compiler and disassembler.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_gate.h"

/* A disassembler that finds so many instructions. */
#define FINDS_ONE                                                                                  \
    "echo 'Function : scale'\necho '        /*0000*/  FFMA R4, R5, R6, R4 ;  /* 0x1 */'\n"
#define FINDS_TWO FINDS_ONE "echo '        /*0010*/  EXIT ;  /* 0x2 */'\n"

static kl_kernel *kernel;
static bool stops, is_checked;

static int set_up(void **state) {
    stops = is_checked = false;
    return open_gate(state);
}

/* A gate that waits for others says so too, of a later stage. */
static void on_stage(void *ctx, kl_stage stage, const char *text) {
    (void)ctx, (void)text;
    if ((stage != KL_STAGE_TINY && stage != KL_STAGE_REAL) || is_checked) return;
    is_checked = true;
    (void)kit_write("toolkit/checked", "");
}

static bool wants_to_stop(void *ctx) { return (void)ctx, stops && is_checked; }

static kl_err judge(const char *entry) {
    const char *const kernels[] = {entry, NULL};
    const kl_monitor monitor = {.cancelled = wants_to_stop};
    const kl_gate_opts opts = {
        .workload = "tiny", .check_only = true, .progress = on_stage, .monitor = &monitor};
    make_toolkit(kernels);
    kernel = kernel_of(entry);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, close_gate)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_cuda_describe__the_checks_do_not_wait_for_it),
        TEST(test_cuda_describe__what_is_rejected_has_all_features),
        TEST(test_cuda_describe__a_user_who_wants_to_stop_waits_for_no_disassembler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
