/* batch_test.c - how many calls, on how much data, on which pages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include "benchmark_impl.h"

#include <math.h>

static void test_gate_batch__batches_have_as_many_calls_as_fit(void **state) {
    (void)state;
    assert_int_equal(kli_calls_for(5e6, 1e5, 511), 50);
    assert_int_equal(kli_calls_for(5e6, 3e6, 511), 2);
    assert_int_equal(kli_calls_for(5e6, 5e9, 511), 1);
    assert_int_equal(kli_calls_for(5e6, 200, 511), 511);
    assert_int_equal(kli_calls_for(5e6, 0, 511), 511); /* below what the clock resolves */
    assert_int_equal(kli_calls_for(1e6, 5e4, 511), 20);
    assert_int_equal(kli_sets_for(5e6, 5e4, 20, 511), 64);
    assert_int_equal(kli_sets_for(5e6, 5e4, 20, 40), 40);
    assert_int_equal(kli_sets_for(5e6, 1e3, 511, 511), 511);
    assert_int_equal(kli_sets_for(5e6, 1e6, 5, 511), 5);
    assert_int_equal(kli_calls_for(1e6, 4e5, 511), 8); /* some calls follow one another ... */
    assert_int_equal(kli_calls_for(1e6, 9e5, 511), 6); /* ... in a batch that is not longer */
}

static void test_gate_batch__a_batch_is_as_long_as_its_clock_needs(void **state) {
    const kl_backend *cpu = kli_backend_get(KL_BACKEND_CPU);
    (void)state;
    assert_true(kli_batch_ns(cpu, 250) == 2e5);    /* spinning at both ends */
    assert_true(kli_batch_ns(cpu, 1500) == 7.5e5); /* two caches far apart */
    assert_true(kli_batch_ns(cpu, 40000) == 5e6);  /* sleeping: threads on several cores */
    assert_true(kli_batch_ns(kli_backend_get(KL_BACKEND_OPENCL), 250) == 5e6);
    assert_true(kli_batch_ns(kli_backend_get(KL_BACKEND_CUDA), 0) == 5e6);
}

static void test_gate_batch__a_batch_has_little_data(void **state) {
    (void)state;
    assert_int_equal(kli_calls_within(300, 1000), 300);
    assert_int_equal(kli_calls_within(300, 200 << 10), 40);
    assert_int_equal(kli_calls_within(30, 1ull << 40), 8); /* some calls follow one another */
    assert_int_equal(kli_calls_within(2, 1ull << 40), 2);
    assert_int_equal(kli_calls_within(2, 0), 2);
}

static void test_gate_batch__equal_kernels_have_equal_batches(void **state) {
    const uint32_t rows[][4] = {{200, 270, 270, 270}, {270, 200, 270, 270}, {8, 16, 16, 16},
                                {8, 17, 8, 17},       {512, 50, 512, 50},   {1, 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        uint32_t one = rows[i][0], other = rows[i][1];
        kli_even_out(&one, &other);
        assert_int_equal(one, rows[i][2]);
        assert_int_equal(other, rows[i][3]);
    }
}

/* A comparison may end after four pairs: two of them lie on other pages than the first two. */
static void test_gate_batch__no_comparison_ends_on_one_set_of_pages(void **state) {
    (void)state;
    for (int tried = 0; tried <= 90; tried++) {
        const bool due = tried == 2 || (tried > 0 && tried % (tried < 30 ? 6 : 30) == 0);
        assert_int_equal(kli_pages_are_due(tried, 3), due);
        assert_false(kli_pages_are_due(tried, 32)); /* their own are many */
    }
}

/* A tenth for whoever comes second; or one pair in three that went wrong. */
static void test_gate_batch__what_agrees_best_is_taken(void **state) {
    double ratios[30], wild[30], out[30];
    bool led[30];
    (void)state;
    for (int i = 0; i < 30; i++) {
        led[i] = i % 2 == 0;
        ratios[i] = (led[i] ? 0.9 : 1 / 0.9) + 0.0001 * i;
        wild[i] = 1 + 0.001 * i + (i % 3 == 0 ? i : 0);
    }
    assert_int_equal(kli_steadier(out, ratios, led, 30), 15);
    for (int i = 0; i < 15; i++) assert_true(fabs(out[i] - 1) < 0.01);
    assert_int_equal(kli_steadier(out, wild, led, 30), 30);
    assert_memory_equal(out, wild, sizeof wild);
    assert_int_equal(kli_steadier(out, ratios, led, 8), 8); /* four couples tell nothing yet */
}

static void test_gate_batch__slots_are_bounded_by_memory(void **state) {
    (void)state;
    kl_plan p = {.n_tensors = 1};
    p.tensors[0] = (kl_plan_tensor){.role = 1, .bytes = 4};
    assert_int_equal(kli_copies_that_fit(&p, false, SHARED_BYTES, 512), 512);
    p.tensors[0].bytes = 1 << 20;
    assert_in_range(kli_copies_that_fit(&p, false, SHARED_BYTES, 512), 200, 256);
    p.tensors[0].bytes = KL_MAX_TENSOR_BYTES;
    assert_int_equal(kli_copies_that_fit(&p, false, SHARED_BYTES, 512), 4);
}

static void test_gate_batch__couples_have_one_of_each_order(void **state) {
    const double ratios[] = {0.9, 0.8, 1.1, 1.2, 0.7, 1.3};
    const bool led[] = {true, true, false, false, true, false}, all[6] = {0};
    double out[6];
    (void)state;
    assert_int_equal(kli_couples(out, ratios, led, 6), 3);
    assert_true(fabs(out[0] - sqrt(0.99)) < 1e-12 && fabs(out[1] - sqrt(0.96)) < 1e-12);
    assert_true(fabs(out[2] - sqrt(0.91)) < 1e-12);
    assert_int_equal(kli_couples(out, ratios, led, 5), 2);
    assert_int_equal(kli_couples(out, ratios, led, 2), 0);
    assert_int_equal(kli_couples(out, ratios, all, 6), 0);
}

static void test_gate_batch__a_small_device_has_room_for_less(void **state) {
    (void)state;
    const uint64_t most = 8ull << 30;
    assert_true(kli_device_room(141ll << 30, most, 8) == most);
    assert_true(kli_device_room(8ll << 30, most, 8) == 1ull << 30);
    assert_true(kli_device_room(0, most, 8) == most); /* it did not say */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_batch__batches_have_as_many_calls_as_fit),
        cmocka_unit_test(test_gate_batch__a_batch_is_as_long_as_its_clock_needs),
        cmocka_unit_test(test_gate_batch__a_batch_has_little_data),
        cmocka_unit_test(test_gate_batch__equal_kernels_have_equal_batches),
        cmocka_unit_test(test_gate_batch__no_comparison_ends_on_one_set_of_pages),
        cmocka_unit_test(test_gate_batch__what_agrees_best_is_taken),
        cmocka_unit_test(test_gate_batch__couples_have_one_of_each_order),
        cmocka_unit_test(test_gate_batch__slots_are_bounded_by_memory),
        cmocka_unit_test(test_gate_batch__a_small_device_has_room_for_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
