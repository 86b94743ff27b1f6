/* stop_test.c - when a comparison has enough: the stop rule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include "benchmark_impl.h"

#include "base/fs.h"

static kli_advice rule_after(double elapsed_s, double timed_s, int pairs, double spread,
                             const kl_gate_opts *o) {
    static double ratios[MAX_PAIRS], controls[MAX_PAIRS];
    static bool led[MAX_PAIRS];
    const kli_benchmark r = {.ratios = ratios,
                             .controls = controls,
                             .led = led,
                             .control_led = led,
                             .pairs = pairs,
                             .n_controls = pairs / 2,
                             .timed_ns = timed_s * 1e9,
                             .start_ns = kli_now_ns() - (int64_t)(elapsed_s * 1e9),
                             .order = kli_stream_of(5, "order")};
    for (int i = 0; i < pairs; i++)
        ratios[i] = 1 + spread * (kli_stream_uniform(r.order, (uint64_t)i) - 0.5);
    for (int i = 0; i < pairs / 2; i++) controls[i] = 1;
    for (int i = 0; i < pairs; i++) led[i] = i % 2;
    return kli_benchmark_advice(&r, o);
}

static void test_gate_stop__wants_pairs_time_and_a_narrow_interval(void **state) {
    (void)state;
    const kl_gate_opts o = {0};
    assert_int_equal(rule_after(1, 0.5, 30, 0.005, &o), ENOUGH);
    assert_int_equal(rule_after(1, 0.5, 28, 0.005, &o), GO_ON);
    assert_int_equal(rule_after(0.8, 0.1, 30, 0.005, &o), GO_ON);
    assert_int_equal(rule_after(1, 0.5, 30, 0.2, &o), GO_ON);
    assert_int_equal(rule_after(1, 0.5, 31, 0.005, &o), GO_ON); /* an odd number is not balanced */
    assert_int_equal(rule_after(10.5, 0.5, 30, 0.5, &o), GIVE_UP);
}

static void test_gate_stop__ends_where_it_is_clear(void **state) {
    (void)state;
    const kl_gate_opts o = {0}, lost = {.abandon_below = 1.2};
    assert_int_equal(rule_after(0.1, 0.02, 6, 0.005, &lost), CLEAR);
    assert_int_equal(rule_after(0.1, 0.02, 5, 0.005, &lost), GO_ON); /* not balanced */
    assert_int_equal(rule_after(0.1, 0.02, 6, 0.5, &lost), GO_ON);   /* too wide to tell */
    assert_int_equal(rule_after(0.1, 0.02, 6, 0.005, &o), GO_ON);    /* near a tie */
}

/* A ratio of 1/1.6 and two controls, one of which went wrong by half: noise could be the cause. */
static void test_gate_stop__goes_on_where_controls_disagree(void **state) {
    (void)state;
    static double ratios[MAX_PAIRS], good[] = {1.001, 0.999}, bad[] = {1.001, 1.5};
    const kl_gate_opts o = {0};
    kli_benchmark r = {.ratios = ratios,
                       .pairs = 4,
                       .controls = good,
                       .led = (bool[MAX_PAIRS]){0},
                       .control_led = (bool[MAX_PAIRS]){0},
                       .n_controls = 2,
                       .timed_ns = 1e7,
                       .start_ns = kli_now_ns() - 100000000};
    for (int i = 0; i < r.pairs; i++) ratios[i] = 1 / 1.6 + 0.0001 * i;
    assert_int_equal(kli_benchmark_advice(&r, &o), CLEAR);
    r.controls = bad;
    assert_int_equal(kli_benchmark_advice(&r, &o), GO_ON);
    r.controls = good;
    r.recorded = 0.5; /* and a host that was known to be so could hide it as well */
    assert_int_equal(kli_benchmark_advice(&r, &o), GO_ON);
}

static void test_gate_stop__does_not_starve_nanosecond_kernels(void **state) {
    (void)state;
    const kl_gate_opts o = {0};
    assert_int_equal(rule_after(1, 0.02, 100, 0.005, &o),
                     ENOUGH); /* 200 ns: batches of 0.1 ms between forks of milliseconds */
}

static void test_gate_stop__does_not_starve_slow_kernels(void **state) {
    (void)state;
    const kl_gate_opts o = {0};
    assert_int_equal(rule_after(11, 9, 6, 0.001, &o),
                     GO_ON); /* 0.5 s a run: 6 pairs at the cap, a few more will do */
    assert_int_equal(rule_after(16, 14, 10, 0.001, &o), ENOUGH);
    assert_int_equal(rule_after(40, 38, 4, 0.001, &o),
                     GIVE_UP); /* 5 s a run: four pairs bound nothing */
    const kl_gate_opts patient = {.max_seconds = 120};
    assert_int_equal(rule_after(80, 70, 4, 0.001, &patient), GO_ON);
}

static void test_gate_stop__ends_for_good(void **state) {
    (void)state;
    const kl_gate_opts o = {.max_seconds = 1};
    for (int pairs = 4; pairs <= 64; pairs += 2)
        assert_int_not_equal(rule_after(4, 3, pairs, 0.5, &o), GO_ON);
    const kli_benchmark without_noise = {
        .pairs = 30, .timed_ns = 1e9, .start_ns = kli_now_ns() - 2000000000ll};
    assert_int_equal(kli_benchmark_advice(&without_noise, &o), GIVE_UP);
    const kli_benchmark crowded = {
        .left_out = CAP_PAIRS, .timed_ns = 1e9, .start_ns = kli_now_ns() - 2000000000ll};
    assert_int_equal(kli_benchmark_advice(&crowded, &o), GIVE_UP);
    assert_int_not_equal(rule_after(0.5, 0.2, MAX_PAIRS, 0.5, &o), GO_ON);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_stop__wants_pairs_time_and_a_narrow_interval),
        cmocka_unit_test(test_gate_stop__ends_where_it_is_clear),
        cmocka_unit_test(test_gate_stop__goes_on_where_controls_disagree),
        cmocka_unit_test(test_gate_stop__does_not_starve_nanosecond_kernels),
        cmocka_unit_test(test_gate_stop__does_not_starve_slow_kernels),
        cmocka_unit_test(test_gate_stop__ends_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
