/* tilelang_test.c - which lines are TileLang's, which variables are a kernel's, which
 * configurations are flags.  SPDX-License-Identifier: Apache-2.0 */
#include "surface/tilelang/tilelang.h"
#include "kernel/kernel.h"
#include "kit/kit.h"

#define KERNEL "extern \"C\" __global__ void f_kernel(float* __restrict__ y, int N) {\n"

static void line_is(int line, const char *text) {
    const int got = kli_tilelang_foreign_line(kl_str_of(text));
    if (got != line) fail_msg("line %d, not %d, of\n%s", got, line, text);
}

static void test_tilelang_text__is_its_own(void **state) {
    (void)state;
    line_is(0, "");
    line_is(0,
            "#include <tl_templates/cuda/reduce.h>\n#include <math_constants.h>\n#ifdef "
            "ENABLE_BF16\n#include <tl_templates/cuda/cuda_bf16_fallbacks.cuh>\n#endif\n\n" KERNEL
            "  #pragma unroll\n  for (int i = 0; i < 8; ++i) {\n    y[i] = 0x0p+0f;\n  }\n}\n");
    line_is(0, KERNEL "  debug_print_var(\"x (first); of\", y[0]);\n}\n");
}

static void test_tilelang_text__of_others_is_found(void **state) {
    static const char *const LINES[] = {
        "__device__ int state;",
        "int state;",
        "#include </etc/passwd>",
        "#include \"x.h\"",
        "#include <tl_templates/cuda/../../../x.h>",
        "#define float int",
        "extern \"C\" __device__ int f();",
        "extern \"C\" __global__ void g(int N) {} __device__ int state; void h() {",
        "} int state;",
        "  __device__ int state;",
        "  #include <tl_templates/cuda/reduce.h>",
        "  #pragma nv_diag_suppress 1",
        "  asm volatile(\"ret;\");",
        "  __constant__ int table[4];",
        "  debug_print_var(\"\"); y[0] = 1; (\"\", y[0]);",
        "  debug_print_var(\"\"), y[0] = 1.0f, (\"\", y[0]);",
        "  debug_print_var(\"\\\"\", y[0]);",
        "  debug_print_var(\"no end, y[0]);",
    };
    (void)state;
    for (size_t i = 0; i < KL_COUNT(LINES); i++)
        line_is(2, kl_arena_printf(arena, KERNEL "%s\n}\n", LINES[i]).ptr);
}

static void kept(const char *ptx, const char *left) {
    kl_buf b = {0};
    kli_tilelang_without_idle(&b, kl_str_of(ptx));
    assert_str(kl_arena_copy(arena, kl_buf_str(&b)), left);
    kl_buf_fini(&b);
}

static void test_tilelang_variables__without_a_name_in_the_code_go(void **state) {
    (void)state;
    kept(".global .align 4 .u32 idle = 7;\n.global .align 1 .b8 table[3] = {1, 2, 3};\nret;\n",
         "ret;\n");
    kept(".global .align 4 .u32 state;\nld.global.u32 %r1, [state];\n",
         ".global .align 4 .u32 state;\nld.global.u32 %r1, [state];\n");
    kept("ld.global.u32 %r1, [%rd1];\n", "ld.global.u32 %r1, [%rd1];\n");
}

static void test_tilelang_flags__switch_off_no_check(void **state) {
    static const char *const GOOD[] = {"-tl.enable_fast_math", "-tl.disable_warp_specialized",
                                       "-tl.config_index_bitwidth=64"};
    static const char *const BAD[] = {"-tl.disable_data_race_check",
                                      "-tl.disable_safe_memory_legalize",
                                      "-tl.disable_thread_storage_sync",
                                      "-tl.device_compile_flags=-I.",
                                      "-tl.config_index_bitwidth=8",
                                      "-tl.dump_ir_path=x",
                                      "-tirx.add_lower_pass",
                                      "-O3"};
    const kl_surface *s = kl_surface_by_name(KL_S("tilelang"));
    (void)state;
    for (size_t i = 0; i < KL_COUNT(GOOD); i++)
        assert_true(kli_surface_has_flag(s, kl_str_of(GOOD[i])));
    for (size_t i = 0; i < KL_COUNT(BAD); i++)
        if (kli_surface_has_flag(s, kl_str_of(BAD[i]))) fail_msg("%s is allowed", BAD[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_tilelang_text__is_its_own),
        KIT_TEST(test_tilelang_text__of_others_is_found),
        KIT_TEST(test_tilelang_variables__without_a_name_in_the_code_go),
        KIT_TEST(test_tilelang_flags__switch_off_no_check),
    };
    return cmocka_run_group_tests_name("tilelang", tests, NULL, NULL);
}
