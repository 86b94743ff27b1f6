/* Tests of dtype.c.  Expected codes follow from IEEE 754 and the OCP 8-bit formats by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

static uint32_t code_of(kl_dtype t, double v) {
    uint32_t code = 0;
    kl_dtype_store(t, &code, 0, v);
    return code;
}

static double value_of(kl_dtype t, uint32_t code) { return kl_dtype_load(t, &code, 0); }

static const double infinity_ = __builtin_inf();

static void test_base_dtype__names_round_trip(void **state) {
    (void)state;
    for (int t = 1; t < KL_DTYPE_END; t++) {
        kl_dtype back = KL_DTYPE_END;
        assert_true(kl_dtype_parse(&back, kl_str_of(kl_dtype_name((kl_dtype)t))));
        assert_int_equal(back, t);
    }
    kl_dtype t;
    assert_true(kl_dtype_parse(&t, KL_S("bf16")) && t == KL_BF16);
    assert_false(kl_dtype_parse(&t, KL_S("float")));
    assert_false(kl_dtype_parse(&t, KL_S("")));
}

/* Every finite code of a narrow type is a double that encodes back to itself. */
static void test_base_dtype__every_narrow_code_round_trips(void **state) {
    (void)state;
    const kl_dtype types[] = {KL_F16, KL_BF16, KL_F8E4M3, KL_F8E5M2};
    for (size_t k = 0; k < KL_COUNT(types); k++)
        for (uint32_t code = 0; code < 1u << (8 * kl_dtype_bytes(types[k])); code++) {
            double v = value_of(types[k], code);
            if (v == v) assert_int_equal(code_of(types[k], v), code);
        }
}

/* Halfway between neighbours goes to the even code, a hair more or less to the nearer one. */
static void test_base_dtype__ties_go_to_even_everywhere(void **state) {
    (void)state;
    const struct {
        kl_dtype type;
        uint32_t largest;
    } cases[] = {{KL_F16, 0x7bff}, {KL_BF16, 0x7f7f}, {KL_F8E4M3, 0x7e}, {KL_F8E5M2, 0x7b}};
    for (size_t k = 0; k < KL_COUNT(cases); k++)
        for (uint32_t code = 0; code < cases[k].largest; code++) {
            double low = value_of(cases[k].type, code), high = value_of(cases[k].type, code + 1);
            double middle = low + (high - low) / 2, hair = (high - low) * 0x1p-20;
            assert_int_equal(code_of(cases[k].type, middle), code + (code & 1));
            assert_int_equal(code_of(cases[k].type, middle - hair), code);
            assert_int_equal(code_of(cases[k].type, middle + hair), code + 1);
        }
}

static void test_base_dtype__rounds_once_not_through_float(void **state) {
    (void)state;
    /* A hair above a bf16 tie: float would drop the hair and make it a tie. */
    assert_int_equal(code_of(KL_BF16, 1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(code_of(KL_BF16, 1.0 + 0x1p-8), 0x3f80);
    assert_int_equal(code_of(KL_F16, 1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
}

static void test_base_dtype__known_values(void **state) {
    (void)state;
    assert_int_equal(code_of(KL_F16, 65504), 0x7bff);
    assert_int_equal(code_of(KL_F16, 65519.9), 0x7bff);
    assert_int_equal(code_of(KL_F16, 65520), 0x7c00);
    assert_int_equal(code_of(KL_F16, 0x1p-24), 0x0001);
    assert_int_equal(code_of(KL_F16, 0x1p-25), 0x0000);
    assert_int_equal(code_of(KL_F16, -2), 0xc000);
    assert_int_equal(code_of(KL_BF16, 3.140625), 0x4049);
    assert_int_equal(code_of(KL_F8E4M3, 448), 0x7e);
    assert_int_equal(code_of(KL_F8E4M3, 464), 0x7e);
    assert_int_equal(code_of(KL_F8E4M3, 465), 0x7f);
    assert_int_equal(code_of(KL_F8E4M3, 0x1p-9), 0x01);
    assert_int_equal(code_of(KL_F8E5M2, 57344), 0x7b);
    assert_int_equal(code_of(KL_F8E5M2, 61440), 0x7c);
}

static void test_base_dtype__infinity_nan_and_signed_zero(void **state) {
    (void)state;
    assert_int_equal(code_of(KL_F16, -infinity_), 0xfc00);
    assert_int_equal(code_of(KL_F8E4M3, infinity_), 0x7f);
    assert_int_equal(code_of(KL_BF16, -0.0), 0x8000);
    assert_int_equal(code_of(KL_BF16, -0x1p-1074), 0x8000);
    assert_true(value_of(KL_F16, 0x7c00) == infinity_);
    assert_true(value_of(KL_BF16, 0xff80) == -infinity_);
    const kl_dtype types[] = {KL_F64, KL_F32, KL_F16, KL_BF16, KL_F8E4M3, KL_F8E5M2};
    for (size_t k = 0; k < KL_COUNT(types); k++) {
        uint64_t cell = 0;
        kl_dtype_store(types[k], &cell, 0, __builtin_nan(""));
        double back = kl_dtype_load(types[k], &cell, 0);
        assert_true(back != back);
    }
}

static void test_base_dtype__integers_round_and_saturate(void **state) {
    (void)state;
    int64_t wide;
    kl_dtype_store(KL_I64, &wide, 0, 1e30);
    assert_true(wide == INT64_MAX);
    kl_dtype_store(KL_I64, &wide, 0, -1e30);
    assert_true(wide == INT64_MIN);
    kl_dtype_store(KL_I64, &wide, 0, 0x1p53 + 2);
    assert_true(wide == ((int64_t)1 << 53) + 2);
    int8_t small[5];
    const double values[] = {2.5, 3.5, -2.5, 200, -200};
    const int wanted[] = {2, 4, -2, 127, -128};
    for (size_t i = 0; i < 5; i++) {
        kl_dtype_store(KL_I8, small, i, values[i]);
        assert_int_equal(small[i], wanted[i]);
    }
    assert_int_equal(code_of(KL_U8, -3), 0);
    assert_int_equal(code_of(KL_U8, 255.4), 255);
    assert_int_equal(code_of(KL_I32, __builtin_nan("")), 0);
    assert_int_equal(code_of(KL_BOOL, 0.25), 1);
    assert_true(value_of(KL_BOOL, 7) == 1.0);
}

static void test_base_dtype__epsilon_is_half_the_gap_above_one(void **state) {
    (void)state;
    const kl_dtype types[] = {KL_F16, KL_BF16, KL_F8E4M3, KL_F8E5M2};
    for (size_t k = 0; k < KL_COUNT(types); k++) {
        uint32_t one = code_of(types[k], 1);
        assert_true(value_of(types[k], one + 1) - 1 == 2 * kl_dtype_epsilon(types[k]));
    }
    assert_true(kl_dtype_epsilon(KL_I32) == 0);
}

static void test_base_dtype__elements_do_not_touch_their_neighbours(void **state) {
    (void)state;
    for (int t = 1; t < KL_DTYPE_END; t++) {
        unsigned char cells[24];
        size_t bytes = kl_dtype_bytes((kl_dtype)t);
        memset(cells, 0x5a, sizeof cells);
        kl_dtype_store((kl_dtype)t, cells, 1, 1);
        for (size_t i = 0; i < sizeof cells; i++)
            if (i < bytes || i >= 2 * bytes) assert_int_equal(cells[i], 0x5a);
        assert_true(kl_dtype_load((kl_dtype)t, cells, 1) == 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_dtype__names_round_trip),
        cmocka_unit_test(test_base_dtype__every_narrow_code_round_trips),
        cmocka_unit_test(test_base_dtype__ties_go_to_even_everywhere),
        cmocka_unit_test(test_base_dtype__rounds_once_not_through_float),
        cmocka_unit_test(test_base_dtype__known_values),
        cmocka_unit_test(test_base_dtype__infinity_nan_and_signed_zero),
        cmocka_unit_test(test_base_dtype__integers_round_and_saturate),
        cmocka_unit_test(test_base_dtype__epsilon_is_half_the_gap_above_one),
        cmocka_unit_test(test_base_dtype__elements_do_not_touch_their_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
