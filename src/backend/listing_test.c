/* listing_test.c - the hottest loop in three notations, and what compilers say of loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/listing.h"
#include "base/test.h"
#include <stdio.h>
#include <string.h>

#define NATIVE                                                                                     \
    "0000000000001100 <f>:\n"                                                                      \
    "    1100:\txor    %eax,%eax\n"                                                                \
    "    1102:\tmov    %rax,-0x8(%rsp)\n"                                                          \
    "    1107:\tvmovups (%rdi,%rax,1),%zmm1\n"                                                     \
    "    110e:\tvfmadd231ps 0x40(%rsp),%zmm1,%zmm0        # 1180 <f+0x80>\n"                       \
    "    1116:\tadd    $0x40,%rax\n"                                                               \
    "    111a:\tcmp    %rdx,%rax\n"                                                                \
    "    111d:\tjne    1107 <f+0x7>\n"                                                             \
    "    111f:\tdec    %ecx\n"                                                                     \
    "    1121:\tjne    1102 <f+0x2>\n"                                                             \
    "    1123:\tmov    (%rsi),%ecx\n"                                                              \
    "    1125:\tdec    %ecx\n"                                                                     \
    "    1127:\tjne    1123 <f+0x23>\n"                                                            \
    "    1129:\tjmp    1100 <f>\n"

static void test_listing__the_inner_loop_with_arithmetic_is_the_hottest(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_str text = kli_listing_hottest(a, KL_S(NATIVE));
    assert_contains(text.ptr, ": 5 instructions, 2 of them touch memory, 1 the "
                              "stack (spills)\n    vmovups (%rdi,%rax,1),%zmm1\n");
    assert_contains(text.ptr, "    vfmadd231ps 0x40(%rsp),%zmm1,%zmm0\n"); /* without its comment */
    assert_null(strstr(text.ptr, "dec"));
    kl_arena_free(a);
}

static void test_listing__code_of_devices(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_str ptx = kli_listing_hottest(
        a, KL_S(".visible .entry k(\n)\n{\n\t.reg .pred %p<3>;\n$L__BB0_1:\n\tmul.f32 %f1, %f2, "
                "%f3;\n$L__BB0_2:\n\tld.local.f32 %f4, [%rd1];\n\tfma.rn.f32 %f1, %f4, %f4, "
                "%f1;\n\t@%p1 bra $L__BB0_2;\n\t@%p2 bra $L__BB0_1;\n\tret;\n"));
    assert_contains(ptx.ptr, ": 3 instructions, 1 of them touch memory, 1 the "
                             "stack (spills)\n    ld.local.f32 %f4, [%rd1]\n");
    const kl_str sass = kli_listing_hottest(
        a, KL_S("\t\tFunction : k\n        /*0000*/    MOV R1, c[0x0][0x28] ;   /* 0x0a00 */\n"
                "                                          /* 0x000fe400 */\n"
                "        /*0010*/    LDG.E R2, [R4] ;  /* 0x1 */\n"
                "        /*0020*/    FFMA R0, R2, R2, R0 ;  /* 0x1 */\n"
                "        /*0030*/   @P0 BRA 0x10 ;  /* 0x1 */\n"
                "        /*0040*/    EXIT ;  /* 0x1 */\n        /*0050*/    BRA 0x50 ;\n"));
    assert_contains(sass.ptr, ": 3 instructions, 1 of them");
    assert_contains(sass.ptr, "    LDG.E R2, [R4]\n    FFMA R0, R2, R2, R0\n    @P0 BRA 0x10\n");
    assert_int_equal(kli_listing_hottest(a, KL_S("    10:\tret\n")).len, 0);
    kl_arena_free(a);
}

/* A long loop is cut, a long instruction too. */
static void test_listing__is_bounded(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_buf b = {0};
    for (int i = 0; i < 400; i++)
        kl_buf_printf(&b, "    %x:\tvmulps %0200d,%%zmm1,%%zmm2\n", 16 * i, i);
    kl_buf_printf(&b, "    1900:\tjne    0 <f+0x0>\n");
    const kl_str text = kli_listing_hottest(a, kl_buf_str(&b));
    assert_contains(text.ptr, ": 401 instructions");
    assert_contains(text.ptr, "; the densest 25:\n");
    assert_true(text.len > 1000 && text.len < 2400);
    kl_buf_fini(&b);
    kl_arena_free(a);
}

static void test_listing__remarks_name_lines_and_reasons_once(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_str gcc = kli_listing_remarks(
        a, KL_S("kernel.c:4:15: optimized: loop vectorized using 64 byte vectors\n"
                "kernel.c:2:15: missed: couldn't vectorize loop\n"
                "kernel.c:2:60: missed: not vectorized: complicated access pattern.\n"
                "kernel.c:2:70: missed: not vectorized: complicated access pattern.\n"
                "kernel.c:2:70: missed: not vectorized: no vectype for stmt: _1 = *_2\n"
                "kernel.c:6:34: missed: statement clobbers memory: _21 = expf (_20);\n"
                "kernel.c:7:3: missed: statement clobbers memory: f ();\n"));
    assert_str(gcc, "line 4: loop vectorized using 64 byte vectors\n"
                    "line 2: not vectorized: complicated access pattern.\n"
                    "line 6: not vectorized: it calls expf\n"
                    "line 7: not vectorized: it calls f\n");
    const kl_str clang = kli_listing_remarks(
        a, KL_S("kernel.c:2:57: remark: loop not vectorized: cannot prove it is safe to reorder "
                "floating-point operations; allow reordering by ... [-Rpass-analysis=x]\n for(;;)\n"
                "kernel.c:4:2: remark: vectorized loop (vectorization width: 16) [-Rpass=x]\n"));
    assert_str(clang, "line 2: loop not vectorized: cannot prove it is safe to reorder "
                      "floating-point operations\n"
                      "line 4: vectorized loop (vectorization width: 16)\n");
    const kl_str ptxas = kli_listing_warnings(
        a, KL_S("ptxas info    : 0 bytes gmem\nptxas info    : (C7510) Potential Performance Loss: "
                "wgmma.mma_async instructions are serialized\n"));
    assert_str(ptxas, "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
                      "instructions are serialized\n");
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listing__the_inner_loop_with_arithmetic_is_the_hottest),
        cmocka_unit_test(test_listing__code_of_devices), cmocka_unit_test(test_listing__is_bounded),
        cmocka_unit_test(test_listing__remarks_name_lines_and_reasons_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
