/* Tests of expr.c.  SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "fixtures.h"

static bool lookup(void *ctx, kl_str name, int64_t *value) {
    (void)ctx;
    static const struct {
        const char *name;
        int64_t value;
    } names[] = {{"M", 100},           {"N", 7},  {"zero", 0}, {"big", INT64_MAX},
                 {"small", INT64_MIN}, {"min", 3}};
    for (size_t i = 0; i < KL_COUNT(names); i++)
        if (kl_str_eq(name, kl_str_of(names[i].name))) {
            *value = names[i].value;
            return true;
        }
    return false;
}

static void expect_result(fixture *f, const char *expr, int64_t wanted) {
    int64_t value = -99;
    assert_ok(kl_expr_eval(&value, kl_str_of(expr), lookup, NULL, &f->error));
    if (value != wanted)
        fail_msg("%s gave %lld, not %lld", expr, (long long)value, (long long)wanted);
}

static void expect_fault(fixture *f, const char *expr, kl_err code, int column) {
    int64_t value = -99;
    char where[64];
    assert_err(code, kl_expr_eval(&value, kl_str_of(expr), lookup, NULL, &f->error));
    (void)snprintf(where, sizeof where, "expression:1:%d", column);
    assert_string_equal(f->error.where, where);
    assert_int_equal(value, -99);
}

static void test_task_expr__computes(void **state) {
    fixture *f = *state;
    expect_result(f, "2*M*N+1", 1401);
    expect_result(f, " ( M - N ) % 10 ", 3);
    expect_result(f, "cdiv(M, N) + min(M, N) * max(1, 2) + pow2(M)", 15 + 14 + 128);
    expect_result(f, "pow2(1)", 1);
    expect_result(f, "pow2(-5)", 1);
    expect_result(f, "pow2(4611686018427387904)", (int64_t)1 << 62);
    expect_result(f, "-N - -M", 93);
    expect_result(f, "-2 ** 2", -4);
    expect_result(f, "2 ** 3 ** 2", 512);
    expect_result(f, "2 ** -0", 1);
    expect_result(f, "min", 3);
    expect_result(f, "9223372036854775807", INT64_MAX);
    expect_result(f, "-9223372036854775807 - 1", INT64_MIN);
}

static void test_task_expr__divides_like_c_and_floors_like_python(void **state) {
    fixture *f = *state;
    expect_result(f, "-7 / 2", -3);
    expect_result(f, "-7 // 2", -4);
    expect_result(f, "7 // -2", -4);
    expect_result(f, "-7 % 2", -1);
    expect_result(f, "cdiv(-7, 2)", -3);
    expect_result(f, "cdiv(7, 2)", 4);
    expect_result(f, "cdiv(8, 2)", 4);
}

static void test_task_expr__compares_and_joins(void **state) {
    fixture *f = *state;
    expect_result(f, "M >= 100 && N != 8", 1);
    expect_result(f, "M < N || M == 100", 1);
    expect_result(f, "M % 16 == 0 or N == 7 and not M <= 3", 1);
    expect_result(f, "not M == 100", 0);
    expect_result(f, "not not 5", 1);
    expect_result(f, "(M > N) + (M > 0)", 2);
}

static void test_task_expr__does_not_compute_the_decided_side(void **state) {
    fixture *f = *state;
    expect_result(f, "zero == 0 || M / zero == 1", 1);
    expect_result(f, "zero != 0 && M % zero == 1", 0);
    expect_result(f, "zero != 0 && big * big > pow2(big)", 0);
    expect_fault(f, "zero == 0 || nothing", KL_EINVAL, 14); /* but its names must exist */
}

static void test_task_expr__refuses_what_does_not_fit_64_bits(void **state) {
    fixture *f = *state;
    expect_fault(f, "big + 1", KL_EINVAL, 5);
    expect_fault(f, "small - 1", KL_EINVAL, 7);
    expect_fault(f, "big * 2", KL_EINVAL, 5);
    expect_fault(f, "-small", KL_EINVAL, 1);
    expect_fault(f, "small / -1", KL_EINVAL, 7);
    expect_fault(f, "small % -1", KL_EINVAL, 7);
    expect_fault(f, "2 ** 63", KL_EINVAL, 3);
    expect_fault(f, "2 ** -1", KL_EINVAL, 3);
    expect_fault(f, "pow2(big)", KL_EINVAL, 1);
    expect_fault(f, "9223372036854775808", KL_EINVAL, 1);
}

static void test_task_expr__refuses_division_by_zero_at_its_sign(void **state) {
    fixture *f = *state;
    expect_fault(f, "M / zero", KL_EINVAL, 3);
    expect_fault(f, "M // zero", KL_EINVAL, 3);
    expect_fault(f, "M % (N - 7)", KL_EINVAL, 3);
    expect_fault(f, "1 + cdiv(M, zero)", KL_EINVAL, 5);
    assert_string_equal(f->error.message, "division by zero");
    assert_contains(f->error.detail, "1 + cdiv(M, zero)");
}

static void test_task_expr__points_at_bad_text(void **state) {
    fixture *f = *state;
    expect_fault(f, "", KL_EPARSE, 1);
    expect_fault(f, "M +", KL_EPARSE, 4);
    expect_fault(f, "M N", KL_EPARSE, 3);
    expect_fault(f, "(M", KL_EPARSE, 3);
    expect_fault(f, "M)", KL_EPARSE, 2);
    expect_fault(f, "1.5 * M", KL_EPARSE, 2);
    expect_fault(f, "2M", KL_EPARSE, 2);
    expect_fault(f, "cdiv(M)", KL_EPARSE, 7);
    expect_fault(f, "len(M)", KL_EPARSE, 1);
    expect_fault(f, "0 < M < 5", KL_EPARSE, 7);
    expect_fault(f, "M == 5 if N else 3", KL_EPARSE, 8);
    expect_fault(f, "x[-1]", KL_EINVAL, 1);
    expect_fault(f, "M; N", KL_EPARSE, 2);
    expect_fault(f, "M & N", KL_EPARSE, 3);
    expect_fault(f, "\xff", KL_EPARSE, 1);
    expect_fault(f, "M + BK", KL_EINVAL, 5);
    assert_string_equal(f->error.message, "unknown name 'BK' in an expression");
}

static void expect_too_deep(fixture *f, const char *unit, const char *tail) {
    kl_buf text = {0};
    int64_t value;
    for (int i = 0; i < 100000; i++) kl_buf_add(&text, kl_str_of(unit));
    kl_buf_add(&text, kl_str_of(tail));
    assert_err(KL_EPARSE, kl_expr_eval(&value, kl_buf_str(&text), lookup, NULL, &f->error));
    assert_err(KL_EPARSE, kl_expr_eval(&value, (kl_str){text.ptr, 4000}, lookup, NULL, &f->error));
    kl_buf_fini(&text);
}

static void test_task_expr__bounds_depth_and_length(void **state) {
    fixture *f = *state;
    expect_too_deep(f, "(", "1");
    expect_too_deep(f, "-", "1");
    expect_too_deep(f, "not ", "1");
    expect_too_deep(f, "2**", "1");
    expect_too_deep(f, "min(1,", "1");
    expect_result(f,
                  "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((5"
                  "))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
                  5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_task_expr__computes),
        test_of(test_task_expr__divides_like_c_and_floors_like_python),
        test_of(test_task_expr__compares_and_joins),
        test_of(test_task_expr__does_not_compute_the_decided_side),
        test_of(test_task_expr__refuses_what_does_not_fit_64_bits),
        test_of(test_task_expr__refuses_division_by_zero_at_its_sign),
        test_of(test_task_expr__points_at_bad_text),
        test_of(test_task_expr__bounds_depth_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
