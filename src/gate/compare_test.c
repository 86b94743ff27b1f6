/* compare_test.c - what counts as right.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "gate_impl.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const kl_check BUDGET = {
    .kind = KL_CHECK_BUDGET, .rtol = 0.01, .atol = 0.01, .matched = 1, .budget = 4};

static kl_check_result judge(const float *got, const double *want, int64_t n) {
    kl_check_result r = {.budget = 1e-3};
    kli_gate_compare(&r, KL_F32, got, KL_F64, want, n, &BUDGET);
    return r;
}

static void test_gate_compare__accepts_rounding(void **state) {
    (void)state;
    const float got[] = {1.0001f, -2.0f, 3.0f};
    const double want[] = {1, -2, 3};
    assert_true(judge(got, want, 3).ok);
}

static void test_gate_compare__names_the_first_bad_element(void **state) {
    (void)state;
    const float got[] = {1, 2, 9, 9};
    const double want[] = {1, 2, 3, 4};
    const kl_check_result r = judge(got, want, 4);
    assert_false(r.ok);
    assert_int_equal(r.first_bad, 2);
    assert_int_equal(r.bad, 2);
    assert_true(r.got == 9 && r.expected == 3);
}

static void test_gate_compare__nan_is_no_wildcard(void **state) {
    (void)state;
    const float got[] = {NAN, 2};
    const double want[] = {1, 2}, nan_want[] = {NAN, 2};
    assert_false(judge(got, want, 2).ok);
    assert_true(judge(got, nan_want, 2).ok);
}

static void test_gate_compare__infinity_must_match_its_sign(void **state) {
    (void)state;
    const float plus[] = {INFINITY}, minus[] = {-INFINITY};
    const double want[] = {INFINITY};
    assert_true(judge(plus, want, 1).ok);
    assert_false(judge(minus, want, 1).ok);
}

/* 1e6 is beyond float16: infinity is the right answer there, and a NaN or a finite number is none.
 */
static void test_gate_compare__overflow_of_the_outputs_type_is_right(void **state) {
    (void)state;
    const double want[] = {1e6, 1};
    uint16_t got[2];
    const double answers[] = {INFINITY, -INFINITY, NAN, 65504};
    const bool right[] = {true, false, false, false};
    for (size_t i = 0; i < KL_COUNT(answers); i++) {
        kl_check_result r = {.budget = 1e-3};
        kl_dtype_store(KL_F16, got, 0, answers[i]);
        kl_dtype_store(KL_F16, got, 1, 1);
        kli_gate_compare(&r, KL_F16, got, KL_F64, want, 2, &BUDGET);
        assert_true(r.ok == right[i]);
    }
}

static void test_gate_compare__zeros_fail_where_answers_are_tiny(void **state) {
    (void)state;
    const float zeros[] = {0, 0, 0, 0};
    const double want[] = {1e-5, -2e-5, 3e-5, -1e-5}; /* all far below the absolute tolerance */
    assert_false(judge(zeros, want, 4).ok);
}

static void test_gate_compare__budget_catches_what_elements_allow(void **state) {
    (void)state;
    const float got[] = {1.005f, 2.01f,
                         3.015f}; /* 0.5 % off everywhere: inside rtol, far over the budget */
    const double want[] = {1, 2, 3};
    const kl_check_result r = judge(got, want, 3);
    assert_int_equal(r.bad, 0);
    assert_false(r.ok);
}

static void test_gate_compare__exact_counts_every_difference(void **state) {
    (void)state;
    const int32_t got[] = {1, 2, 3}, want[] = {1, 5, 3};
    const kl_check exact = {.kind = KL_CHECK_EXACT};
    kl_check_result r = {0};
    kli_gate_compare(&r, KL_I32, got, KL_I32, want, 3, &exact);
    assert_int_equal(r.bad, 1);
    assert_int_equal(r.first_bad, 1);
}

/* ---- top-k: 2 rows of 4, k = 2 ----------------------------------------------------------- */

static bool topk(const float *values, const int64_t *indices) {
    static const float x[] = {5, 7, 1, 7, 2, 9, 8, 3};
    static const double want[] = {7, 7, 9, 8};
    kl_plan p = {.n_tensors = 3};
    p.tensors[0] = (kl_plan_tensor){.dtype = KL_F32, .ndim = 2, .dims = {2, 4}, .bytes = 32};
    p.tensors[1] = (kl_plan_tensor){.dtype = KL_F32, .ndim = 2, .dims = {2, 2}, .bytes = 16};
    p.tensors[2] = (kl_plan_tensor){.dtype = KL_I64, .ndim = 2, .dims = {2, 2}, .bytes = 32};
    kl_arena *a = kl_arena_new();
    kl_check_result r = {0};
    const bool ok = kli_compare_topk(&r, a, &p, 1, 2, 0, values, indices, KL_F64, want, x);
    kl_arena_free(a);
    return ok;
}

/* However many cores share it out. */
static void test_gate_compare__large_outputs_are_judged_as_a_whole(void **state) {
    enum { MANY = 5 << 20, FIRST = 3 << 20, SECOND = MANY - 1 };
    (void)state;
    float *got = malloc(MANY * sizeof *got), *want = malloc(MANY * sizeof *want);
    assert_true(got && want);
    for (int i = 0; i < MANY; i++) got[i] = want[i] = (float)(i % 1000) / 7;
    got[FIRST] += 50, got[SECOND] -= 90;
    for (int exact = 0; exact < 2; exact++) {
        kl_check how = BUDGET;
        kl_check_result all = {.budget = 1}, one = {.budget = 1};
        cpu_set_t before, single;
        if (exact) how.kind = KL_CHECK_EXACT;
        kli_gate_compare(&all, KL_F32, got, KL_F32, want, MANY, &how);
        assert_true(!all.ok && all.bad == 2 && all.first_bad == FIRST);
        assert_true(all.got == (double)got[FIRST] && all.expected == (double)want[FIRST]);
        assert_true(fabs(all.max_abs_error - 90) < 1e-3);
        assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
        CPU_ZERO(&single);
        for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&single); i++)
            if (CPU_ISSET(i, &before)) CPU_SET(i, &single);
        assert_int_equal(sched_setaffinity(0, sizeof single, &single), 0);
        kli_gate_compare(&one, KL_F32, got, KL_F32, want, MANY, &how);
        assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
        assert_true(one.rms_error == all.rms_error && one.max_abs_error == all.max_abs_error);
        assert_true(one.bad == all.bad && one.first_bad == all.first_bad);
    }
    free(got);
    free(want);
}

static void test_gate_compare__topk_order_is_free(void **state) {
    (void)state;
    const float values[] = {7, 7, 8, 9};
    const int64_t indices[] = {3, 1, 2, 1};
    assert_true(topk(values, indices));
}

static void test_gate_compare__topk_indices_are_unique(void **state) {
    (void)state;
    const float values[] = {7, 7, 8, 9};
    const int64_t indices[] = {1, 1, 2, 1};
    assert_false(topk(values, indices));
}

static void test_gate_compare__topk_index_must_hold_the_value(void **state) {
    (void)state;
    const float values[] = {7, 7, 8, 9};
    const int64_t indices[] = {1, 2, 2, 1}, outside[] = {1, 4, 2, 1}, negative[] = {1, -1, 2, 1};
    assert_false(topk(values, indices));
    assert_false(topk(values, outside));
    assert_false(topk(values, negative));
}

static void test_gate_compare__topk_must_be_the_largest(void **state) {
    (void)state;
    const float values[] = {7, 5, 8, 9};
    const int64_t indices[] = {1, 0, 2, 1};
    assert_false(topk(values, indices));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_compare__accepts_rounding),
        cmocka_unit_test(test_gate_compare__names_the_first_bad_element),
        cmocka_unit_test(test_gate_compare__nan_is_no_wildcard),
        cmocka_unit_test(test_gate_compare__infinity_must_match_its_sign),
        cmocka_unit_test(test_gate_compare__overflow_of_the_outputs_type_is_right),
        cmocka_unit_test(test_gate_compare__zeros_fail_where_answers_are_tiny),
        cmocka_unit_test(test_gate_compare__budget_catches_what_elements_allow),
        cmocka_unit_test(test_gate_compare__exact_counts_every_difference),
        cmocka_unit_test(test_gate_compare__large_outputs_are_judged_as_a_whole),
        cmocka_unit_test(test_gate_compare__topk_order_is_free),
        cmocka_unit_test(test_gate_compare__topk_indices_are_unique),
        cmocka_unit_test(test_gate_compare__topk_index_must_hold_the_value),
        cmocka_unit_test(test_gate_compare__topk_must_be_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
