/* noise_test.c - what makes a machine noisy, and one real look at this one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"
#include "base/test.h"

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
    assert_ok(kl_gate_noise(&n, &e));
    assert_true(n.pairs >= 4 && n.noise >= 0 && n.left_out <= n.pairs);
    assert_true(n.noisy || n.noise <= KL_NOISY);
    n.noise = 56;
    assert_contains(kl_noise_text(&n, text, sizeof text), "A/A noise above 100 %");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_noise__pairs_that_kept_their_core_tell_the_floor),
        cmocka_unit_test(test_gate_noise__a_wide_floor_is_noisy),
        cmocka_unit_test(test_gate_noise__says_a_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
