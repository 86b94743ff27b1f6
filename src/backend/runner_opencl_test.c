/* runner_opencl_test.c - OpenCL kernels in their runners; left out where there is no OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "base/fs.h"
#include <signal.h>

#define LAUNCH "//! launch scale global(cdiv(N, 64) * 64) local(64) args(x, s, y, N)\n"
#define HEAD                                                                                       \
    "__kernel void scale(__global const float *x, float s, __global float *y, int n) { int i = "   \
    "(int)get_global_id(0);\n"
#define SCALE LAUNCH HEAD "if (i < n) y[i] = s * x[i]; }\n"

static void test_runner_opencl__computes(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_OPENCL);
    fixture_ready(&f, SCALE, false);
    assert_int_equal(f.artefact.suspicious.len, 0);
    for (uint32_t set = 0; set < N_SETS; set++) {
        fixture_run(&f, set, set + 1);
        if (f.fault.kind) fail_msg("%s", f.fault.text);
        fixture_expect_scaled(&f, set, set + 1);
        assert_int_equal(kli_memory_guard_damage(&f.memory, &f.plan, set + 1, 0xA5), -1);
    }
    fixture_close(&f);
}

static void test_runner_opencl__times_batches_and_serves_shapes(void **state) {
    fixture f;
    kl_error e = {0};
    double ns;
    (void)state;
    fixture_open(&f, KL_BACKEND_OPENCL);
    fixture_ready(&f, SCALE, false);
    const kl_time_request q = {
        .method = KL_TIME_BATCH, .calls = 4, .warm = 2, .poison = 0xA5, .freeze = true};
    for (int shape = 0; shape < 2; shape++) {
        for (int round = 0; round < 3; round++) {
            for (uint32_t slot = 0; slot < 4; slot++)
                kli_memory_poison(&f.memory, &f.plan, slot, 0xA5);
            assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
            if (f.fault.kind) fail_msg("%s", f.fault.text);
            for (uint32_t slot = 0; slot < 4; slot++)
                assert_true(fixture_y(&f, slot)[5] == 2.5f * (float)(5 + 1000 * (int)slot));
            assert_true(ns > 0);
        }
        fixture_load(&f); /* the same plan on the same pages */
        assert_int_equal(f.fault.kind, KL_FAULT_NONE);
        fixture_run(&f, 0, 0);
        assert_int_equal(f.fault.kind, KL_FAULT_NONE);
        f.workload.axes[0] = 900; /* another plan: another process behind the same handle */
        kl_layout layout;
        kli_memory_close(&f.memory);
        assert_ok(kli_kernel_plan(&f.plan, f.kernel, &f.task, &f.workload, &f.device.limits, &e));
        assert_ok(kli_layout_make(&layout, &f.plan, N_SETS, N_SLOTS, &e));
        assert_ok(kli_memory_open(&f.memory, &layout, &e));
        for (uint32_t set = 0; set < N_SETS; set++)
            for (int i = 0; i < 900; i++)
                ((float *)kli_memory_input(&f.memory, &f.plan, 0, set))[i] =
                    (float)(i + 1000 * (int)set);
        fixture_load(&f);
        if (f.fault.kind) fail_msg("%s", f.fault.text);
    }
    fixture_close(&f);
}

static void test_runner_opencl__a_refusal_has_a_log(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_OPENCL);
    fixture_compile_for(&f, LAUNCH HEAD "y[i] = no_such_thing; }\n", false);
    assert_false(f.artefact.ok);
    assert_contains(f.artefact.log.ptr, "no_such_thing");
    assert_null(strstr(f.artefact.log.ptr, "/tmp"));
    fixture_close(&f);
}

static const struct {
    const char *body;
    kl_fault_kind kind;
    int signal;
    const char *text;
} FAULTS[] = {
    {"(void)s; (void)n; y[i] = x[i + 300]; }", KL_FAULT_GUARD, SIGSEGV, "read past the end of `x`"},
    {"(void)s; (void)n; ((__global float *)x)[i] = 1; y[i] = 1; }", KL_FAULT_INPUT, SIGSEGV,
     "wrote to input `x`"},
    {"(void)s; (void)n; (void)x; *(__global volatile int *)8 = 1; y[i] = 1; }", KL_FAULT_CRASH,
     SIGSEGV, "null pointer"},
};

static void test_runner_opencl__names_each_fault(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(FAULTS); i++) {
        fixture f;
        char source[1024];
        (void)snprintf(source, sizeof source, "%s%s%s\n", LAUNCH, HEAD, FAULTS[i].body);
        fixture_open(&f, KL_BACKEND_OPENCL);
        fixture_ready(&f, source, false);
        fixture_run(&f, 0, 1);
        fixture_expect_fault(&f, FAULTS[i].kind, FAULTS[i].signal, FAULTS[i].text);
        fixture_close(&f);
    }
}

static void test_runner_opencl__ends_an_endless_loop(void **state) {
    fixture f;
    kl_error e = {0};
    int64_t wall;
    (void)state;
    fixture_open(&f, KL_BACKEND_OPENCL);
    fixture_ready(
        &f,
        LAUNCH HEAD
        "(void)s; (void)n; (void)x; for (volatile __global float *p = y + i;;) p[0] += 1; }\n",
        false);
    assert_ok(kli_runner_run(f.runner, &f.fault, 0, 0, 0xA5, SECOND / 2, &wall, &e));
    fixture_expect_fault(&f, KL_FAULT_HANG, 0, "time allowed");
    fixture_close(&f);
}

static void test_runner_opencl__forbids_system_calls(void **state) {
    static const int NUMBERS[] = {41, 59, 62, 85}; /* socket execve kill creat */
    (void)state;
    for (size_t i = 0; i < KL_COUNT(NUMBERS); i++) {
        fixture f;
        char source[1024];
        (void)snprintf(source, sizeof source,
                       "%s%s(void)s; (void)n; (void)x; long r; __asm__ volatile(\"syscall\" : "
                       "\"=a\"(r) : \"a\"(%dl), "
                       "\"D\"(0l), \"S\"(0l) : \"rcx\", \"r11\", \"memory\"); y[i] = (float)r; }\n",
                       LAUNCH, HEAD, NUMBERS[i]);
        fixture_open(&f, KL_BACKEND_OPENCL);
        fixture_compile_for(&f, source, false);
        if (!f.artefact
                 .ok) { /* PoCL 5 takes no inline assembly, so that there is nothing to forbid */
            fixture_close(&f);
            skip();
        }
        fixture_ready(&f, source, false);
        assert_contains(f.artefact.suspicious.ptr, "syscall");
        fixture_run(&f, 0, 1);
        fixture_expect_fault(&f, KL_FAULT_CRASH, SIGSYS, "forbidden system call");
        fixture_close(&f);
    }
}

static void test_runner_opencl__sees_state_between_launches(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_OPENCL);
    fixture_compile_for(&f,
                        "//! flags -cl-std=CL3.0\n" LAUNCH "__global int calls;\n" HEAD
                        "(void)s; (void)n; (void)x; y[i] = (float)calls++; }\n",
                        false);
    assert_true(!f.artefact.ok ||
                f.artefact.suspicious.len > 0); /* refused by the compiler or by inspection */
    fixture_close(&f);
}

static void test_runner_opencl__kernels_are_looked_into(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_OPENCL);
    fixture_compile_for(&f, SCALE, false);
    double instructions = 0;
    for (int i = 0; i < f.artefact.n_features; i++)
        if (kl_str_eq(f.artefact.features[i].name, KL_S("instructions")))
            instructions = f.artefact.features[i].value;
    assert_true(instructions > 10);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runner_opencl__computes),
        cmocka_unit_test(test_runner_opencl__times_batches_and_serves_shapes),
        cmocka_unit_test(test_runner_opencl__a_refusal_has_a_log),
        cmocka_unit_test(test_runner_opencl__names_each_fault),
        cmocka_unit_test(test_runner_opencl__ends_an_endless_loop),
        cmocka_unit_test(test_runner_opencl__forbids_system_calls),
        cmocka_unit_test(test_runner_opencl__sees_state_between_launches),
        cmocka_unit_test(test_runner_opencl__kernels_are_looked_into),
    };
    kl_device device;
    kl_error e = {0};
    if (kl_device_probe(&device, NULL, KL_BACKEND_OPENCL, &e) == KL_ENODEV) {
        print_message("skipped: %s\n", e.message);
        return 77; /* skipped, to ctest */
    }
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
