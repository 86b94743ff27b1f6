/* Tests of rng.c and stats.c.  Seeds are fixed, so nothing here can fail by chance.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/stats.h"
#include "base/test.h"
#include <stdlib.h>
#include <string.h>

static double distance(double a, double b) { return a > b ? a - b : b - a; }

/* Recorded bits: a change here silently changes every input of every task. */
static void test_base_rng__gives_the_recorded_bits(void **state) {
    (void)state;
    kl_stream s = kli_stream_of(1, "inputs");
    assert_true(kli_stream_u64((kl_stream){0}, 0) ==
                0xe220a8397b1dcdafull); /* splitmix64's published outputs, seed 0 */
    assert_true(kli_stream_u64((kl_stream){0}, 1) == 0x6e789e6aa1b965f4ull);
    assert_true(kli_stream_u64(s, 0) == 0xddd1aa6ba6be05f3ull);
    assert_true(kli_stream_normal(s, 0) == 0x1.f59242p-2f);
}

static void test_base_rng__streams_differ_by_seed_and_by_name(void **state) {
    (void)state;
    kl_stream a = kli_stream_of(1, "a"), b = kli_stream_of(1, "b"), c = kli_stream_of(2, "a"),
              ab = kli_stream_of(1, "ab"), ba = kli_stream_of(1, "ba");
    assert_true(a.key != b.key && a.key != c.key && ab.key != ba.key && a.key != ab.key);
    assert_true(a.key == kli_stream_of(1, "a").key);
    assert_true(kli_seed_fresh() != kli_seed_fresh());
}

/* kli_mix64 backwards: what a reader of one value does. */
static uint64_t unmix(uint64_t x) {
    x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642b2d24d8ec3ull;
    x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089ull;
    return x ^ (x >> 30) ^ (x >> 60);
}

static void test_base_rng__a_derived_seed_leads_nowhere_else(void **state) {
    (void)state;
    const kl_stream s = {0x1234567890abcdefull};
    const uint64_t back = unmix(kli_stream_u64(s, 41)) - 42 * 0x9e3779b97f4a7c15ull;
    assert_true(back == s.key); /* a stream's key is read off one of its values ... */
    const uint64_t inputs = kli_seed_derive(back, "inputs", 3),
                   schedule = kli_seed_derive(back, "schedule", 3);
    assert_true(inputs == kli_seed_derive(back, "inputs", 3));
    assert_true(inputs != schedule && inputs != kli_seed_derive(back, "inputs", 4) &&
                inputs != kli_seed_derive(back + 1, "inputs", 3));
    /* ... a derived one is the beginning of a SHA-256 that takes in all three. */
    const uint64_t root = back, index = 3;
    char first[17] = "";
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, KL_S("klineage/seed/1"));
    kli_hasher_add(&h, (kl_str){(const char *)&root, 8});
    kli_hasher_add(&h, KL_S("inputs"));
    kli_hasher_add(&h, (kl_str){(const char *)&index, 8});
    memcpy(first, kli_hasher_end(&h).hex, 16);
    assert_true(inputs == strtoull(first, NULL, 16));
}

static void test_base_rng__normal_has_the_moments_of_its_law(void **state) {
    (void)state;
    size_t n = 1 << 20;
    float *x = malloc(n * sizeof *x);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0;
    kl_stream s = kli_stream_of(5, "normal");
    kli_stream_fill_normal(s, 100, x, n);
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        assert_true(v > -4.9 && v < 4.9);
        m1 += v, m2 += v * v, m3 += v * v * v, m4 += v * v * v * v;
        if (i) lag += v * (double)x[i - 1];
    }
    for (size_t i = 0; i < 1000; i++) assert_true(x[i] == kli_stream_normal(s, 100 + i));
    free(x);
    double count = (double)n;
    assert_true(distance(m1 / count, 0) < 0.004);
    assert_true(distance(m2 / count, 1) < 0.006);
    assert_true(distance(m3 / count, 0) < 0.02);
    assert_true(distance(m4 / count, 2.85) <
                0.05); /* 3 - 1.2 / 8: eight uniforms have lighter tails than a bell */
    assert_true(distance(lag / count, 0) < 0.004);
}

static void test_base_rng__uniform_and_below_stay_inside_and_fill(void **state) {
    (void)state;
    kl_stream s = kli_stream_of(6, "x");
    int seen[7] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < 7000; i++) {
        double u = kli_stream_uniform(s, i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        seen[kli_stream_below(s, i, 7)]++;
    }
    assert_true(distance(sum / 7000, 0.5) < 0.02);
    for (int i = 0; i < 7; i++) assert_in_range(seen[i], 850, 1150);
    assert_int_equal(kli_stream_below(s, 0, 1), 0);
}

static void test_base_rng__shuffle_is_a_permutation_and_fair(void **state) {
    (void)state;
    int first_place[4] = {0};
    for (uint64_t seed = 0; seed < 4000; seed++) {
        uint32_t order[] = {0, 1, 2, 3}, bits = 0;
        kli_stream_shuffle(kli_stream_of(seed, "shuffle"), order, 4);
        for (int i = 0; i < 4; i++) bits |= 1u << order[i];
        assert_int_equal(bits, 15);
        first_place[order[0]]++;
    }
    for (int i = 0; i < 4; i++) assert_in_range(first_place[i], 900, 1100);
    kli_stream_shuffle(kli_stream_of(1, "x"), NULL, 0);
}

static void test_base_stats__median_and_quantiles_interpolate(void **state) {
    (void)state;
    const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    assert_true(kli_median(odd, 3) == 3);
    assert_true(kli_median(even, 4) == 2.5);
    assert_true(odd[0] == 5);
    assert_true(kli_quantile(even, 4, 0) == 1);
    assert_true(kli_quantile(even, 4, 1) == 4);
    assert_true(distance(kli_quantile(even, 4, 0.1), 1.3) < 1e-12);
    assert_true(distance(kli_mad(odd, 3), 2 * 1.4826) < 1e-12);
    assert_true(distance(kli_relative_spread(odd, 3), 4.0 / 3) < 1e-12);
    assert_true(distance(kli_cv(odd, 3), 2.0 / 3) < 1e-12);
    assert_true(kli_relative_spread(odd, 1) == 0 && kli_cv(odd, 1) == 0);
    const double with_infinity[] = {1, 2, __builtin_inf()};
    assert_true(kli_median(with_infinity, 3) == 2);
}

/* Of 400 samples drawn from a law whose median is 0, about 95 % of the intervals hold 0. */
static void test_base_stats__the_interval_covers_the_median_as_often_as_it_says(void **state) {
    (void)state;
    int covered = 0;
    double x[40];
    for (uint64_t trial = 0; trial < 400; trial++) {
        kl_stream s = kli_stream_of(trial, "sample");
        for (size_t i = 0; i < 40; i++) x[i] = (double)kli_stream_normal(s, i);
        kl_interval interval =
            kli_bootstrap_median(x, 40, 500, 0.95, kli_stream_of(trial, "bootstrap"));
        assert_true(interval.low <= interval.median && interval.median <= interval.high);
        covered += interval.low <= 0 && 0 <= interval.high;
    }
    assert_in_range(covered, 368, 394);
}

static void test_base_stats__one_sample_has_no_width_and_equal_streams_agree(void **state) {
    (void)state;
    const double one[] = {7}, five[] = {1, 2, 3, 4, 5};
    kl_interval interval = kli_bootstrap_median(one, 1, 100, 0.95, kli_stream_of(1, "x"));
    assert_true(interval.low == 7 && interval.median == 7 && interval.high == 7);
    kl_interval a = kli_bootstrap_median(five, 5, 300, 0.95, kli_stream_of(1, "x"));
    kl_interval b = kli_bootstrap_median(five, 5, 300, 0.95, kli_stream_of(1, "x"));
    assert_true(a.low == b.low && a.high == b.high);
    assert_true(a.low >= 1 && a.high <= 5 && a.low < a.high);
}

static void test_base_stats__two_clusters_are_told_from_one_wide_one(void **state) {
    (void)state;
    double x[400];
    kl_stream s = kli_stream_of(3, "x");
    for (size_t i = 0; i < 400; i++) x[i] = 100 + 10 * (double)kli_stream_normal(s, i);
    assert_false(kli_bimodal(x, 400, 0.02));
    for (size_t i = 0; i < 400; i++) x[i] = 100 + 50 * kli_stream_uniform(s, i);
    assert_false(kli_bimodal(x, 400, 0.02));
    for (size_t i = 0; i < 400; i++)
        x[i] = (i % 4 ? 100 : 110) + (double)kli_stream_normal(s, i) / 2;
    assert_true(kli_bimodal(x, 400, 0.02));
    assert_false(kli_bimodal(x, 400, 0.2));
    for (size_t i = 0; i < 400; i++)
        x[i] = (i % 20 ? 100 : 110) + (double)kli_stream_normal(s, i) / 2;
    assert_false(kli_bimodal(x, 400, 0.02)); /* 5 % are outliers, not a second mode */
    for (size_t i = 0; i < 400; i++) x[i] = 100;
    assert_false(kli_bimodal(x, 400, 0.02));
    assert_false(kli_bimodal(x, 3, 0.02));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_rng__gives_the_recorded_bits),
        cmocka_unit_test(test_base_rng__streams_differ_by_seed_and_by_name),
        cmocka_unit_test(test_base_rng__a_derived_seed_leads_nowhere_else),
        cmocka_unit_test(test_base_rng__normal_has_the_moments_of_its_law),
        cmocka_unit_test(test_base_rng__uniform_and_below_stay_inside_and_fill),
        cmocka_unit_test(test_base_rng__shuffle_is_a_permutation_and_fair),
        cmocka_unit_test(test_base_stats__median_and_quantiles_interpolate),
        cmocka_unit_test(test_base_stats__the_interval_covers_the_median_as_often_as_it_says),
        cmocka_unit_test(test_base_stats__one_sample_has_no_width_and_equal_streams_agree),
        cmocka_unit_test(test_base_stats__two_clusters_are_told_from_one_wide_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
