/* cuda_compile_test.c - CUDA C++ to a cubin by both compilers, and what inspection reads from it.
 * Needs a toolkit, but no GPU: on a host without one every test here is skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/compile.h"
#include "backend/cuda_toolkit.h"
#include "base/fs.h"
#include "base/test.h"
#include <stdlib.h>

static const kl_device HOPPER_NVRTC = {.backend = KL_BACKEND_CUDA,
                                       .name = {"a test", 6},
                                       .arch = {"sm_90a", 6},
                                       .toolchain = {"nvrtc 0", 7}};
static const kl_device HOPPER_NVCC = {.backend = KL_BACKEND_CUDA,
                                      .name = {"a test", 6},
                                      .arch = {"sm_90a", 6},
                                      .toolchain = {"nvcc 0", 6}};

typedef struct {
    kl_arena *arena;
    kl_artefact artefact;
} compiled;

static bool have_toolkit(void) {
    kl_arena *a = kl_arena_new();
    kli_cuda_toolkit t;
    kli_cuda_toolkit_find(&t, a);
    bool found = t.nvcc.len && t.include.len;
    kl_arena_free(a);
    return found;
}

static void compile(compiled *c, const kl_device *device, const char *source) {
    kl_error e = {0};
    kl_kernel *kernel;
    kl_task task = {.name = KL_S("line"), .n_axes = 1, .n_inputs = 1, .n_tensors = 2};
    kl_workload w = {.axes = {1000}, .dtypes = {KL_BF16, KL_F32}};
    const kl_compile_opts how = {.cache_dir = "cache", .no_cache = true};
    const kl_kernel_opts candidate = {0};
    task.axes[0] = (kl_axis){.name = KL_S("N"), .kind = KL_AXIS_VAR};
    task.tensors[0] =
        (kl_tensor){.name = KL_S("x"), .dtype = KL_BF16, .ndim = 1, .dims = {KL_S("N")}};
    task.tensors[1] = (kl_tensor){
        .name = KL_S("y"), .dtype = KL_F32, .is_output = true, .ndim = 1, .dims = {KL_S("N")}};
    *c = (compiled){.arena = kl_arena_new()};
    assert_ok(kl_kernel_parse(&kernel, c->arena, kl_str_of(source), KL_S("test.cu"), NULL,
                              &candidate, &e));
    assert_ok(kli_compile(&c->artefact, c->arena, device, kernel, &task, &w, &how, &e));
}

#define HEAD                                                                                       \
    "//! launch f grid(cdiv(N, 256)) block(256) args(x, y, N)\n#include <cuda_bf16.h>\n#include "  \
    "<stdint.h>\n"

static const char PLAIN[] =
    HEAD "extern \"C\" __global__ void f(const kl_t_x *x, kl_t_y *y, int32_t n)\n"
         "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = "
         "(float)x[i];\n}\n";

static void test_cuda_compile__gives_a_cubin_from_either_compiler(void **unused) {
    const kl_device *const devices[] = {&HOPPER_NVRTC, &HOPPER_NVCC};
    const char *const names[] = {"nvrtc", "nvcc"};
    (void)unused;
    if (!have_toolkit()) skip();
    for (int i = 0; i < 2; i++) {
        compiled c;
        compile(&c, devices[i], PLAIN);
        if (!c.artefact.ok) fail_msg("%s: %.*s", names[i], KL_STR_ARG(c.artefact.log));
        assert_int_equal(c.artefact.kind, KL_ARTEFACT_CUBIN);
        assert_true(kl_str_starts(c.artefact.toolchain, kl_str_of(names[i])));
        assert_true(kli_feature_get(&c.artefact, "registers") > 0);
        assert_true(kli_feature_get(&c.artefact, "instructions") > 5);
        assert_int_equal((int)kli_feature_get(&c.artefact, "kernels"), 1);
        assert_int_equal(c.artefact.suspicious.len, 0);
        kl_arena_free(c.arena);
    }
}

/* A walk compares kernels of one toolchain only, so what NVRTC can compile must not reach nvcc. */
static void test_cuda_compile__takes_a_lambda_inside_a_kernel_by_nvrtc(void **unused) {
    compiled c;
    (void)unused;
    if (!have_toolkit()) skip();
    compile(&c, &HOPPER_NVRTC,
            HEAD
            "extern \"C\" __global__ void f(const kl_t_x *x, kl_t_y *y, int32_t n)\n"
            "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    const auto put = [&](auto "
            "scale) { y[i] = scale * (float)x[i]; };\n    if (i < n) put(2.0f);\n}\n");
    if (!c.artefact.ok) fail_msg("%.*s", KL_STR_ARG(c.artefact.log));
    assert_true(kl_str_starts(c.artefact.toolchain, KL_S("nvrtc")));
    kl_arena_free(c.arena);
}

static void test_cuda_compile__says_which_kernels_exist(void **unused) {
    compiled c;
    (void)unused;
    if (!have_toolkit()) skip();
    compile(&c, &HOPPER_NVRTC,
            "//! launch f grid(1) block(32) args(x, y)\n__global__ void f(const void *x, float *y) "
            "{ *y = 1; }\n");
    assert_false(c.artefact.ok);
    assert_contains(
        c.artefact.log.ptr,
        "kernel.cu:1: error: there is no kernel named 'f'; the compiled kernels are: _Z1fPKvPf");
    assert_contains(c.artefact.log.ptr, "hint: declare it  extern \"C\" __global__ void f(...)");
    kl_arena_free(c.arena);
}

static void test_cuda_compile__refuses_with_the_compilers_words(void **unused) {
    compiled c;
    (void)unused;
    if (!have_toolkit()) skip();
    compile(&c, &HOPPER_NVRTC,
            HEAD "extern \"C\" __global__ void f(const kl_t_x *x, float *y, int n) { y[0] = "
                 "undeclared; }\n");
    assert_false(c.artefact.ok);
    assert_contains(c.artefact.log.ptr, "\"undeclared\" is undefined");
    kl_arena_free(c.arena);
}

/* Only nvcc has the C++ library. */
static void test_cuda_compile__falls_to_nvcc_for_other_headers(void **unused) {
    compiled c;
    (void)unused;
    if (!have_toolkit()) skip();
    compile(
        &c, &HOPPER_NVRTC,
        HEAD
        "#include <type_traits>\nextern \"C\" __global__ void f(const kl_t_x *x, float *y, int n)\n"
        "{ y[0] = std::is_same<float, kl_t_y>::value ? 1.0f : 0.0f; }\n");
    if (!c.artefact.ok) fail_msg("%.*s", KL_STR_ARG(c.artefact.log));
    assert_true(kl_str_starts(c.artefact.toolchain, KL_S("nvcc")));
    kl_arena_free(c.arena);
}

static void test_cuda_compile__reads_features_from_compiled_code(void **unused) {
    static const char source[] = "//! launch f grid(1) block(128) args(x, y, N)\n#include "
                                 "<cuda_bf16.h>\n__device__ int state[3];\n"
                                 "extern \"C\" __global__ void f(const float4 *x, float *y, int "
                                 "n)\n{\n    __shared__ float s[128];\n"
                                 "    float4 v = x[threadIdx.x];\n    s[threadIdx.x] = v.x + v.y * "
                                 "v.z;\n    __syncthreads();\n"
                                 "    float sum = s[127 - threadIdx.x] + __shfl_xor_sync(~0u, v.w, "
                                 "1);\n    atomicAdd(y, sum);\n"
                                 "    if (n == 7) __nanosleep(100);\n    if (n == 8) state[0]++;\n "
                                 "   y[1] = (float)clock64();\n}\n";
    compiled c;
    (void)unused;
    if (!have_toolkit()) skip();
    compile(&c, &HOPPER_NVRTC, source);
    if (!c.artefact.ok) fail_msg("%.*s", KL_STR_ARG(c.artefact.log));
    static const char *const present[] = {"vector128", "barriers", "shuffles", "atomics",
                                          "pauses",    "clocks",   "fma",      "variables"};
    for (size_t i = 0; i < KL_COUNT(present); i++)
        if (kli_feature_get(&c.artefact, present[i]) < 1) fail_msg("no feature %s", present[i]);
    assert_int_equal((int)kli_feature_get(&c.artefact, "static_smem_bytes"), 512);
    assert_int_equal((int)kli_feature_get(&c.artefact, "static_bytes"), 12);
    assert_true(kli_feature_get(&c.artefact, "wgmma") == 0 &&
                kli_feature_get(&c.artefact, "tma") == 0);
    kl_arena_free(c.arena);
}

static void test_cuda_compile__suspects_state_that_outlives_a_run(void **unused) {
    compiled c;
    (void)unused;
    if (!have_toolkit()) skip();
    compile(&c, &HOPPER_NVRTC,
            HEAD "extern \"C\" __global__ void f(const kl_t_x *x, float *y, int n)\n"
                 "{ int *p = (int *)malloc(n); p[0] = n; y[0] = (float)(unsigned long long)p; }\n");
    if (!c.artefact.ok) fail_msg("%.*s", KL_STR_ARG(c.artefact.log));
    assert_contains(c.artefact.suspicious.ptr, "device heap");
    kl_arena_free(c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_compile__gives_a_cubin_from_either_compiler),
        cmocka_unit_test(test_cuda_compile__takes_a_lambda_inside_a_kernel_by_nvrtc),
        cmocka_unit_test(test_cuda_compile__says_which_kernels_exist),
        cmocka_unit_test(test_cuda_compile__refuses_with_the_compilers_words),
        cmocka_unit_test(test_cuda_compile__falls_to_nvcc_for_other_headers),
        cmocka_unit_test(test_cuda_compile__reads_features_from_compiled_code),
        cmocka_unit_test(test_cuda_compile__suspects_state_that_outlives_a_run),
    };
    return cmocka_run_group_tests_name("cuda_compile", tests, NULL, NULL);
}
