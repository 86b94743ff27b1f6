/* Tests of arena.c, buf.c and text.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

static void test_base_arena__gives_zeroed_aligned_memory_of_every_size(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t size = 0; size < 70000; size = size * 2 + 1)
        for (int i = 0; i < 5; i++) {
            unsigned char *p = kl_arena_alloc(a, size, 1);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t j = 0; j < size; j++) assert_int_equal(p[j], 0);
            if (size) memset(p, 0xa5, size);
        }
    kl_arena_free(a);
}

static void test_base_arena__keeps_what_was_written_before_growth(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_str kept[200];
    for (int i = 0; i < 200; i++) {
        kept[i] = kl_arena_printf(a, "text %d", i);
        (void)KL_ARRAY(a, char, 4000 * (i % 7));
    }
    for (int i = 0; i < 200; i++) assert_str(kept[i], kl_arena_printf(a, "text %d", i).ptr);
    kl_arena_free(a);
}

static void test_base_arena__free_accepts_null(void **state) {
    (void)state;
    kl_arena_free(NULL);
}

static void test_base_arena__copy_ends_with_nul_and_takes_empty_text(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_str copy = kl_arena_copy(a, (kl_str){"abcdef", 3});
    assert_string_equal(copy.ptr, "abc");
    assert_string_equal(kl_arena_copy(a, (kl_str){0}).ptr, "");
    kl_arena_free(a);
}

static void test_base_buf__grows_and_stays_terminated(void **state) {
    (void)state;
    kl_buf b = {0};
    assert_int_equal(kl_buf_str(&b).len, 0);
    kl_buf_add(&b, (kl_str){0});
    assert_string_equal(b.ptr, "");
    for (int i = 0; i < 1000; i++) {
        kl_buf_printf(&b, "%04d", i);
        kl_buf_add(&b, KL_S(";"));
    }
    assert_int_equal(b.len, 5000);
    assert_int_equal(strlen(b.ptr), 5000);
    assert_memory_equal(b.ptr + 4995, "0999;", 5);
    kl_buf_fini(&b);
    assert_null(b.ptr);
}

static void test_base_arena__an_array_grows_by_pushing(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    int *squares = NULL, n = 0;
    for (int i = 0; i < 1000; i++) {
        int *last = KL_PUSH(a, squares, n);
        assert_int_equal(*last, 0);
        *last = i * i;
    }
    assert_int_equal(n, 1000);
    for (int i = 0; i < n; i++) assert_int_equal(squares[i], i * i);
    kl_arena_free(a);
}

static void test_base_text__compares_bytes_and_lengths(void **state) {
    (void)state;
    assert_true(kl_str_eq((kl_str){0}, KL_S("")));
    assert_false(kl_str_eq(KL_S("ab"), KL_S("abc")));
    assert_true(kl_str_starts(KL_S("launch gemm"), KL_S("launch")));
    assert_false(kl_str_starts(KL_S("la"), KL_S("launch")));
    assert_true(kl_str_ends(KL_S("naive.cu"), KL_S(".cu")));
    assert_false(kl_str_ends(KL_S("u"), KL_S(".cu")));
    assert_true(kl_str_ends((kl_str){0}, KL_S("")));
    assert_int_equal(kl_str_of(NULL).len, 0);
}

static void test_base_text__trims_both_ends_only(void **state) {
    (void)state;
    assert_str(kl_str_trim(KL_S(" \t a b\r\n")), "a b");
    assert_str(kl_str_trim(KL_S(" \n ")), "");
    assert_str(kl_str_trim((kl_str){0}), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_arena__gives_zeroed_aligned_memory_of_every_size),
        cmocka_unit_test(test_base_arena__keeps_what_was_written_before_growth),
        cmocka_unit_test(test_base_arena__free_accepts_null),
        cmocka_unit_test(test_base_arena__copy_ends_with_nul_and_takes_empty_text),
        cmocka_unit_test(test_base_arena__an_array_grows_by_pushing),
        cmocka_unit_test(test_base_buf__grows_and_stays_terminated),
        cmocka_unit_test(test_base_text__compares_bytes_and_lengths),
        cmocka_unit_test(test_base_text__trims_both_ends_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
