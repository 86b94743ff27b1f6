/* compiled_test.c - what readers are told of compiled code, on the CPU and for a GPU that need not
 * be here.  SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"
#include "base/test.h"
#include <string.h>

static kl_arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = kl_arena_new();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
}

/* Of gemm at its tiny shape. */
static kl_err compiled(kl_compiled *out, const kl_device *d, const char *name, kl_str source,
                       kl_error *refused) {
    kl_error e = {0};
    kl_task *t;
    kl_kernel *k;
    assert_ok(kl_task_load(&t, arena, KL_TEST_ROOT "/tasks/gemm", &e));
    assert_ok(kl_kernel_parse(&k, arena, source, kl_str_of(name), NULL, NULL, &e));
    return kl_compiled_of(out, arena, d, k, t, kl_task_workload(t, KL_S("tiny"), k->surface->on),
                          NULL, refused);
}

#define C_LAUNCH "//! launch gemm args(x, weight, y, M, N, K)\n"
#define C_HEAD                                                                                     \
    C_LAUNCH "#include <math.h>\nvoid gemm(const float *x, const float *w, float *y, int M, int "  \
             "N, int K)\n"

static void test_compiled__a_call_in_a_loop_is_named(void **state) {
    (void)state;
    kl_error e = {0};
    kl_device d;
    kl_compiled c;
    assert_ok(kl_device_probe(&d, arena, KL_BACKEND_CPU, &e));
    if (!kl_str_starts(d.toolchain, KL_S("gcc"))) skip();
    assert_ok(compiled(&c, &d, "k.c",
                       KL_S(C_HEAD "{\n    (void)w, (void)N, (void)K;\n    for (int i = 0; i < M; "
                                   "i++) y[i] = tgammaf(x[i]);\n}\n"),
                       &e));
    assert_contains(c.remarks.ptr, "line 6: not vectorized: it calls tgammaf\n");
    assert_int_equal(c.resources.len, 0); /* of a CPU nothing is counted */
    if (c.hot_loop.len) assert_contains(c.hot_loop.ptr, "call ");
    assert_err(KL_EINVAL, compiled(&c, &d, "k.c", KL_S(C_HEAD "{ no }\n"), &e));
    assert_int_equal(c.remarks.len + c.hot_loop.len, 0);
}

/* 48 KiB of shared memory a block: four of them fit the 228 KiB of a multiprocessor, eight would
 * fit its warps. */
static void test_compiled__blocks_that_fit_a_multiprocessor(void **state) {
    (void)state;
    kl_error e = {0};
    kl_device d;
    kl_compiled c;
    assert_ok(kl_device_target(&d, arena, KL_BACKEND_CUDA, "sm_90a", &e));
    const kl_err err = compiled(
        &c, &d, "k.cu",
        KL_S("//! launch gemm grid(1) block(256) args(x, weight, y, M, N, K)\n"
             "extern \"C\" __global__ void gemm(const float *x, const float *w, float *y, int M, "
             "int N, int K)\n{\n    __shared__ float tile[12288];\n    for (int i = threadIdx.x; i "
             "< 12288; i += 256) tile[i] = x[i];\n    __syncthreads();\n    for (int i = 0; i < "
             "K; i++) y[threadIdx.x] += tile[(i * 7 + threadIdx.x) % 12288] * w[i];\n}\n"),
        &e);
    if (err == KL_ENODEV) skip(); /* no compiler for it */
    assert_ok(err);
    assert_contains(c.resources.ptr, "registers of a thread: ");
    assert_contains(c.resources.ptr, "spilled: 0 bytes\n");
    assert_contains(c.resources.ptr,
                    "launch `gemm`: 4 blocks of 256 threads and 49152 bytes of shared memory fit a "
                    "multiprocessor, 32 of 64 warps (occupancy 50 %), limited by shared memory\n");
    assert_contains(c.hot_loop.ptr, "hottest loop");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiled__a_call_in_a_loop_is_named),
        cmocka_unit_test(test_compiled__blocks_that_fit_a_multiprocessor)};
    return cmocka_run_group_tests_name("backend_compiled", tests, set_up, tear_down);
}
