/* surface_test.c - which flags a candidate may ask for, and the lists that messages show.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "kernel/kernel.h"

static const kl_surface *named(const char *name) {
    const kl_surface *s = kl_surface_by_name(kl_str_of(name));
    assert_non_null(s);
    return s;
}

static void test_flag__is_on_the_list_or_fits_a_stem(void **state) {
    static const char *const C[] = {
        "-O3",          "-ffp-contract=fast",        "-mavx512f",
        "-mavx512vnni", "-mprefer-vector-width=512", "-finline-limit=1_0-0.5"};
    static const char *const CUDA[] = {"--maxrregcount=64", "-Xptxas=-O3", "--fmad=false"};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(C); i++)
        assert_true(kli_surface_has_flag(named("c"), kl_str_of(C[i])));
    for (size_t i = 0; i < KL_COUNT(CUDA); i++)
        assert_true(kli_surface_has_flag(named("cuda"), kl_str_of(CUDA[i])));
}

/* Whatever could name a file, bring in another option, or load code. */
static void test_flag__nothing_can_be_smuggled_behind_a_stem(void **state) {
    static const char *const C[] = {"",
                                    "-",
                                    "-O",
                                    "-O33",
                                    "-O3 -fplugin=x",
                                    "-ffp-contract=",
                                    "-ffp-contract=/etc/passwd",
                                    "-ffp-contract=fast,-fplugin=x",
                                    "-ffp-contract=a=b",
                                    "-ffp-contract=aaaaaaaaaaaaaaaaaaaaaaaaa",
                                    "-mavx512",
                                    "-mavx512@file",
                                    "-include=x",
                                    "-Wl,-z",
                                    "-march=../x",
                                    "@file",
                                    "-o",
                                    "-DKL_M=1",
                                    "-fno-stack-protector",
                                    "-specs=x",
                                    "-wrapper"};
    static const char *const CUDA[] = {"-Xptxas=-O3,-v", "-Xcompiler=-x", "--maxrregcount=6 4",
                                       "-I/usr",         "-dlto",         "--fmad=\"x\""};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(C); i++)
        if (kli_surface_has_flag(named("c"), kl_str_of(C[i]))) fail_msg("\"%s\" is allowed", C[i]);
    for (size_t i = 0; i < KL_COUNT(CUDA); i++)
        if (kli_surface_has_flag(named("cuda"), kl_str_of(CUDA[i])))
            fail_msg("\"%s\" is allowed", CUDA[i]);
    assert_false(kli_surface_has_flag(named("c"), (kl_str){"-ffp-contract=fa\0st", 19}));
}

static void test_flag__what_one_surface_allows_is_not_the_others(void **state) {
    (void)state;
    assert_false(kli_surface_has_flag(named("opencl"), KL_S("-O3")));
    assert_false(kli_surface_has_flag(named("cuda"), KL_S("-fopenmp")));
    assert_false(kli_surface_has_flag(named("triton"), KL_S("-O3")));
    assert_true(kli_surface_has_flag(named("opencl"), KL_S("-cl-std=CL3.0")));
    assert_false(kli_surface_has_flag(named("opencl"), KL_S("-cl-std=CL9.0")));
}

static void test_surface__a_shared_ending_needs_a_directive(void **state) {
    (void)state;
    assert_true(kli_surface_has_directive(named("triton"), KL_S("surface")));
    assert_true(kli_surface_has_directive(named("tilelang"), KL_S("surface")));
    assert_false(kli_surface_has_directive(named("c"), KL_S("surface")));
    assert_true(kli_surface_has_directive(named("c"), KL_S("threads")));
    assert_false(kli_surface_has_directive(named("cuda"), KL_S("threads")));
    assert_true(kli_surface_has_directive(named("cuda"), KL_S("tensormap")));
}

static void test_surface__lists_are_in_the_order_of_the_table(void **state) {
    kl_arena *a = kl_arena_new();
    (void)state;
    assert_str(kl_surface_names(a, false), "c opencl cuda triton tilelang");
    assert_str(kl_surface_names(a, true), "c opencl cuda triton tilelang");
    assert_str(kl_surface_endings(a), ".c (c), .cl (opencl), .cu (cuda), .py (triton, tilelang)");
    assert_ptr_equal(kl_surface_of_path(KL_S("a/b.py"), 1), named("tilelang"));
    assert_null(kl_surface_of_path(KL_S("a/b.py"), 2));
    assert_null(kl_surface_of_path(KL_S("c"), 0));
    assert_null(kl_surface_by_name(KL_S("")));
    assert_null(kl_surface_each(5));
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flag__is_on_the_list_or_fits_a_stem),
        cmocka_unit_test(test_flag__nothing_can_be_smuggled_behind_a_stem),
        cmocka_unit_test(test_flag__what_one_surface_allows_is_not_the_others),
        cmocka_unit_test(test_surface__a_shared_ending_needs_a_directive),
        cmocka_unit_test(test_surface__lists_are_in_the_order_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
