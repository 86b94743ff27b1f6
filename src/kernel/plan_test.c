/* plan_test.c - what planning promises beyond the single cases of tests/cases/directive: plain
 * bytes, bounds, every tensor type.  SPDX-License-Identifier: Apache-2.0 */

#include "fixture.h"
#include "kit/kit.h"

#include <stdlib.h>

static kl_kernel *kernel;
static kl_plan *plan;
static kl_fixture fixture;

static int set_up(void **state) {
    kit_set_up(state);
    plan = KL_NEW(arena, kl_plan);
    fixture_init(&fixture, 128, 256);
    return 0;
}

static kl_err plan_of(const char *text, const char *path, const kl_device_limits *limits) {
    assert_ok(kl_kernel_parse(&kernel, arena, kl_str_of(text), kl_str_of(path), NULL, NULL, &e));
    return kli_kernel_plan(plan, kernel, &fixture.task, &fixture.workload, limits, &e);
}

static void test_kernel_plan__same_inputs_give_same_bytes(void **state) {
    (void)state;
    const char *text = "//! buffer t: f32[M, N] zero\n//! tensormap m: t box(32, 8) swizzle(128)\n"
                       "//! launch f grid(M) block(N) args(m, t, A, alpha, f32(2.5), i64(K))\n";
    kl_plan *again = KL_NEW(arena, kl_plan);
    memset(again, 0xa5, sizeof *again);
    assert_ok(plan_of(text, "k.cu", NULL));
    assert_ok(kli_kernel_plan(again, kernel, &fixture.task, &fixture.workload, NULL, &e));
    assert_memory_equal(plan, again, sizeof *plan);
    assert_int_equal(plan->magic, KL_PLAN_MAGIC);
    assert_int_equal(plan->version, KL_PLAN_VERSION);
}

static void test_kernel_plan__null_error_keeps_the_code(void **state) {
    (void)state;
    assert_ok(plan_of("//! launch f grid(M) block(N) args(A)\n", "k.cu", NULL));
    assert_ok(kl_kernel_parse(&kernel, arena, KL_S("//! launch f grid(q) block(1) args(A)\n"),
                              KL_S("k.cu"), NULL, NULL, &e));
    assert_int_equal(
        kli_kernel_plan(plan, kernel, &fixture.task, &fixture.workload, NULL, kl_ignored()),
        KL_EINVAL);
}

static void test_kernel_plan__total_memory_is_bounded(void **state) {
    (void)state;
    const char *two =
        "//! buffer a: u8[60 * 1024 * 1024 * 1024]\n//! buffer b: u8[K * 1024 * 1024 * 1024]\n"
        "//! launch f args(a, b)\n";
    assert_err(KL_ELIMIT, plan_of(two, "k.c", NULL));
    assert_string_equal(e.where, "k.c:2:12");
    assert_ok(
        plan_of("//! buffer b: u8[K * 1024 * 1024 * 1024]\n//! launch f args(b)\n", "k.c", NULL));
    assert_true(plan->buffers[0].bytes == KL_MAX_TENSOR_BYTES);
    assert_err(KL_ELIMIT,
               plan_of("//! buffer b: u8[K * 1024 * 1024 * 1024 + 1]\n//! launch f args(b)\n",
                       "k.c", NULL));
    assert_err(KL_ELIMIT, plan_of("//! buffer b: f64[M * 72057594037927935, 3037000500, "
                                  "3037000500]\n//! launch f args(b)\n",
                                  "k.c", NULL));
}

static void test_kernel_plan__device_constants_come_from_the_device(void **state) {
    (void)state;
    const char *text = "//! launch f grid(sms) block(cores) smem(smem_max) args(A)\n";
    kl_device_limits limits = {.sms = 132, .cores = 16, .smem_max = 232448};
    assert_ok(plan_of(text, "k.cu", &limits));
    assert_int_equal(plan->launches[0].grid[0], 132);
    assert_int_equal(plan->launches[0].block[0], 16);
    assert_int_equal(plan->launches[0].smem, 232448);
    limits.sms = 0;
    assert_err(KL_EINVAL, plan_of(text, "k.cu", &limits));
}

static void test_kernel_plan__short_circuit_guards_a_division(void **state) {
    (void)state;
    assert_ok(plan_of("//! param Q = 0\n//! require Q == 0 || M % Q == 0\n//! launch f args(A)\n",
                      "k.c", NULL));
}

static void test_kernel_plan__every_dtype_has_a_name_on_every_surface(void **state) {
    (void)state;
    static const char *const texts[][2] = {{"//! launch f args(A)\n", "k.c"},
                                           {"//! launch f global(1) args(A)\n", "k.cl"},
                                           {"//! launch f grid(1) block(1) args(A)\n", "k.cu"}};
    for (size_t s = 0; s < KL_COUNT(texts); s++)
        for (int d = 1; d < KL_DTYPE_END; d++) {
            fixture.workload.dtypes[FIXTURE_A] = (kl_dtype)d;
            assert_ok(plan_of(texts[s][0], texts[s][1], NULL));
            const char **flags =
                kli_kernel_defines(arena, kernel, &fixture.task, &fixture.workload);
            const char *type = NULL;
            for (; *flags; flags++)
                if (strncmp(*flags, "-Dkl_t_A=", 9) == 0) type = *flags + 9;
            assert_non_null(type);
            assert_true(strlen(type) > 2);
            assert_null(strstr(type, "null"));
            if (s == 1)
                assert_null(strchr(type, ' ')); /* options of clBuildProgram are split at spaces */
        }
}

static void test_kernel_plan__foreign_names_get_no_macro(void **state) {
    (void)state;
    fixture.task.tensors[FIXTURE_B].name = KL_S("weird name=1 -DX");
    assert_ok(plan_of("//! launch f args(A)\n", "k.c", NULL));
    const char **flags = kli_kernel_defines(arena, kernel, &fixture.task, &fixture.workload);
    for (; *flags; flags++) assert_null(strstr(*flags, "weird"));
}

static void test_kernel_plan__default_view_of_every_rank(void **state) {
    (void)state;
    assert_ok(plan_of("//! buffer b: f32[2, 3, 5, 7, 8]\n"
                      "//! tensormap r1: b box(8)\n//! tensormap r2: b box(8, 1)\n//! tensormap "
                      "r3: b box(8, 7, 5)\n"
                      "//! tensormap r5: b box(8, 7, 5, 3, 2)\n//! launch f grid(1) block(1) "
                      "args(r1, r2, r3, r5)\n",
                      "k.cu", NULL));
    static const uint64_t dims[4][5] = {{1680}, {8, 210}, {8, 7, 30}, {8, 7, 5, 3, 2}};
    for (int i = 0; i < 4; i++) {
        const kl_plan_tensormap *m = &plan->tensormaps[i];
        uint64_t stride = 4;
        for (uint32_t d = 0; d < m->rank; d++) {
            assert_int_equal(m->dims[d], dims[i][d]);
            if (d) assert_int_equal(m->strides[d], stride);
            stride *= m->dims[d];
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_kernel_plan__same_inputs_give_same_bytes),
        TEST(test_kernel_plan__null_error_keeps_the_code),
        TEST(test_kernel_plan__total_memory_is_bounded),
        TEST(test_kernel_plan__device_constants_come_from_the_device),
        TEST(test_kernel_plan__short_circuit_guards_a_division),
        TEST(test_kernel_plan__every_dtype_has_a_name_on_every_surface),
        TEST(test_kernel_plan__foreign_names_get_no_macro),
        TEST(test_kernel_plan__default_view_of_every_rank),
    };
    return cmocka_run_group_tests_name("kernel_plan", tests, NULL, NULL);
}
