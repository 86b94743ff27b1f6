/* Tests of error.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

static const kl_str kernel = KL_S("//! param BM = 64\n//! param BN = 64\n"
                                  "//! launch gemm grid(cdiv(M, BK)) block(256)\n");

static void expect_rendered(const kl_error *e, const char *wanted) {
    kl_buf text = {0};
    kl_error_render(e, &text);
    assert_string_equal(text.ptr, wanted);
    kl_buf_fini(&text);
}

static void test_base_error__points_at_line_and_column(void **state) {
    (void)state;
    kl_error e = {0};
    size_t offset = (size_t)(strstr(kernel.ptr, "BK") - kernel.ptr);
    assert_err(KL_EPARSE, kl_fail_at(&e, KL_EPARSE, KL_S("naive.cu"), kernel, offset,
                                     "unknown name '%s'", "BK"));
    kl_hint(&e, "declare it with `//! param BK = 64`");
    expect_rendered(&e, "naive.cu:3:30: error: unknown name 'BK'\n"
                        "  3 | //! launch gemm grid(cdiv(M, BK)) block(256)\n"
                        "    |                              ^\n"
                        "hint: declare it with `//! param BK = 64`\n");
}

static void test_base_error__points_behind_the_end_and_into_empty_text(void **state) {
    (void)state;
    kl_error e = {0};
    kl_fail_at(&e, KL_EPARSE, KL_S("a"), KL_S("xy\n"), 99, "more was expected");
    expect_rendered(&e, "a:2:1: error: more was expected\n  2 | \n    | ^\n");
    kl_fail_at(&e, KL_EPARSE, KL_S("a"), (kl_str){0}, 0, "empty");
    expect_rendered(&e, "a:1:1: error: empty\n  1 | \n    | ^\n");
}

static void test_base_error__keeps_tabs_before_the_caret(void **state) {
    (void)state;
    kl_error e = {0};
    kl_fail_at(&e, KL_EPARSE, KL_S("a"), KL_S("\tx = ?;\r\n"), 5, "no");
    assert_string_equal(e.detail, "  1 | \tx = ?;\n    | \t    ^");
}

static void test_base_error__shows_a_window_of_a_huge_line(void **state) {
    (void)state;
    static char line[100000];
    kl_error e = {0};
    memset(line, 'a', sizeof line);
    line[50000] = '!';
    kl_fail_at(&e, KL_EPARSE, KL_S("a"), (kl_str){line, sizeof line}, 50000, "no");
    assert_string_equal(e.where, "a:1:50001");
    assert_true(strlen(e.detail) < 400);
    const char *caret_line = strchr(e.detail, '\n') + 1;
    size_t column = (size_t)(strchr(caret_line, '^') - caret_line);
    assert_int_equal(e.detail[column], '!');
}

static void test_base_error__lets_no_control_character_through(void **state) {
    (void)state;
    kl_error e = {0};
    kl_fail(&e, KL_EIO, "evil\033[2Jname", "first\nsecond\x7f");
    assert_string_equal(e.where, "evil [2Jname");
    assert_string_equal(e.message, "first second ");
    kl_fail_at(&e, KL_EPARSE, KL_S("a"), KL_S("x\033]0;title\007"), 0, "no");
    assert_null(strchr(e.detail, '\033'));
    assert_null(strchr(e.detail, '\007'));
}

static void test_base_error__what_is_ignored_is_still_a_failure_and_long_text_is_cut(void **state) {
    (void)state;
    assert_int_equal(kl_fail(kl_ignored(), KL_EBUSY, "x", "y"), KL_EBUSY);
    assert_int_equal(kl_fail_at(kl_ignored(), KL_EPARSE, KL_S("x"), kernel, 3, "y"), KL_EPARSE);
    assert_int_equal(kl_hint(kl_ignored(), "z"), KL_EPARSE);
    static char long_text[5000];
    memset(long_text, 'w', sizeof long_text - 1);
    kl_error e = {0};
    kl_fail(&e, KL_EIO, long_text, "%s", long_text);
    assert_int_equal(strlen(e.where), sizeof e.where - 1);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_int_equal(kl_hint(&e, "%s", long_text), KL_EIO);
}

static void test_base_error__a_new_failure_drops_the_old_hint(void **state) {
    (void)state;
    kl_error e = {0};
    kl_fail_at(&e, KL_EPARSE, KL_S("a"), kernel, 0, "old");
    kl_hint(&e, "old");
    kl_fail(&e, KL_ENODEV, NULL, "no CUDA device");
    expect_rendered(&e, "error: no CUDA device\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_error__points_at_line_and_column),
        cmocka_unit_test(test_base_error__points_behind_the_end_and_into_empty_text),
        cmocka_unit_test(test_base_error__keeps_tabs_before_the_caret),
        cmocka_unit_test(test_base_error__shows_a_window_of_a_huge_line),
        cmocka_unit_test(test_base_error__lets_no_control_character_through),
        cmocka_unit_test(test_base_error__what_is_ignored_is_still_a_failure_and_long_text_is_cut),
        cmocka_unit_test(test_base_error__a_new_failure_drops_the_old_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
