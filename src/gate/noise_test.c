/* noise_test.c - what makes a machine noisy, and one real look at this one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"
#include "base/test.h"
#include <math.h>

enum { MOST = 4 * KL_NOISE_LEAST_PAIRS };

typedef struct {
    double whole[MOST], all[MOST];
    int n_whole, n_all;
} pairs;

static void test_gate_noise__pairs_that_kept_their_core_tell_the_floor(void **state) {
    (void)state;
    kl_noise n = {0};
    pairs b = {0};
    for (int i = 0; i < KL_NOISE_LEAST_PAIRS; i++)
        b.whole[b.n_whole++] = b.all[b.n_all++] = i % 2 ? 1.001 : 0.999;
    for (int i = 0; i < 3 * KL_NOISE_LEAST_PAIRS; i++) b.all[b.n_all++] = 7;
    kli_noise_judge(&n, b.whole, b.n_whole, b.all, b.n_all);
    assert_false(n.noisy);
    assert_true(n.noise < 0.01 && n.pairs == MOST && n.left_out == 3 * KL_NOISE_LEAST_PAIRS);
    b.n_whole--;
    kli_noise_judge(&n, b.whole, b.n_whole, b.all, b.n_all);
    assert_true(n.noisy && n.noise > 1);
}

static void test_gate_noise__a_wide_floor_is_noisy(void **state) {
    (void)state;
    kl_noise n = {0};
    pairs b = {0};
    char text[160];
    for (int i = 0; i < MOST; i++) b.whole[b.n_whole++] = b.all[b.n_all++] = i % 2 ? 1.6 : 0.6;
    kli_noise_judge(&n, b.whole, b.n_whole, b.all, b.n_all);
    assert_true(n.noisy && n.left_out == 0);
    assert_contains(kl_noise_text(&n, text, sizeof text), "load ");
}

static void test_gate_noise__says_a_floor(void **state) {
    (void)state;
    kl_error e = {0};
    kl_noise n;
    char text[160];
    kl_arena *a = kl_arena_new();
    assert_ok(kl_gate_noise(&n, a, &e));
    assert_true(n.pairs >= 4 && n.noise >= 0 && n.left_out <= n.pairs);
    assert_true(n.noisy || n.noise <= KL_NOISY);
    assert_true(n.median > 0 && n.spread >= 0 && n.cv >= 0);
    assert_true(n.host.len && n.device.len && n.length.len && n.created.len == 20 && n.cores >= 1);
    n.noise = 56;
    assert_contains(kl_noise_text(&n, text, sizeof text), "A/A noise above 100 % (spread ");
    assert_contains(text, "cv ");
    kl_arena_free(a);
}

/* What was measured before a day and on another device tells how it was, and no floor. */
static void test_gate_noise__a_record_sums_up_what_settled(void **state) {
    (void)state;
    const kl_str one = KL_S("one"), other = KL_S("other");
    const kl_noise rows[] = {
        {.device = one, .median = 1.01, .noise = 0.02, .created = KL_S("2026-01-03T00:00:00Z")},
        {.device = other, .median = 7, .noise = 7, .created = KL_S("2026-01-02T23:00:00Z")},
        {.device = one, .median = 1.00, .noise = 0.04, .created = KL_S("2026-01-02T22:00:00Z")},
        {.device = one, .median = 0.99, .noise = 0.50, .created = KL_S("2026-01-01T00:00:00Z")}};
    kl_noise_record r;
    kl_noise_sum_up(&r, rows, (int)KL_COUNT(rows), KL_S("2026-01-02T00:00:00Z"));
    assert_int_equal(r.n, 3);
    assert_int_equal(r.fresh, 2);
    assert_true(fabs(r.median - 1) < 1e-9 && fabs(r.spread - 0.02) < 1e-9);
    assert_true(fabs(r.cv - 0.01) < 1e-9 && fabs(r.noise - 0.03) < 1e-9);
    assert_string_equal(r.since.ptr, "2026-01-01T00:00:00Z");
    kl_noise_sum_up(&r, rows, (int)KL_COUNT(rows), KL_S("2026-01-04T00:00:00Z"));
    assert_true(r.n == 3 && r.fresh == 0 && !(r.noise > 0));
    kl_noise_sum_up(&r, rows, 0, KL_S(""));
    assert_int_equal(r.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_noise__pairs_that_kept_their_core_tell_the_floor),
        cmocka_unit_test(test_gate_noise__a_wide_floor_is_noisy),
        cmocka_unit_test(test_gate_noise__says_a_floor),
        cmocka_unit_test(test_gate_noise__a_record_sums_up_what_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
