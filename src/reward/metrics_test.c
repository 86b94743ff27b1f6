/* metrics_test.c - what Prometheus reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "reward/reward_impl.h"
#include <stdlib.h>

static void test_reward_metrics__buckets_add_up(void **state) {
    (void)state;
    kli_metrics m = {0};
    kl_buf text = {0};
    const int64_t ms = 1000000;
    kli_histogram_add(&m.beyond, -1);
    kli_histogram_add(&m.beyond, 1 * ms);
    kli_histogram_add(&m.beyond, 3 * ms);
    kli_histogram_add(&m.beyond, 3600 * INT64_C(1000000000));
    m.outcomes[KL_OUTCOME_CHEAT] = 7;
    m.statuses[429] = 5;
    kli_metrics_text(&text, &m, 3, 2, 1);
    static const char *const LINES[] = {
        "klineage_reward_beyond_seconds_bucket{le=\"0.0001\"} 1\n",
        "klineage_reward_beyond_seconds_bucket{le=\"0.001\"} 2\n",
        "klineage_reward_beyond_seconds_bucket{le=\"0.0025\"} 2\n",
        "klineage_reward_beyond_seconds_bucket{le=\"0.005\"} 3\n",
        "klineage_reward_beyond_seconds_bucket{le=\"300\"} 3\n",
        "klineage_reward_beyond_seconds_bucket{le=\"+Inf\"} 4\n",
        "klineage_reward_beyond_seconds_count 4\n",
        "klineage_reward_beyond_seconds_sum 3600.004000\n",
        "# TYPE klineage_reward_beyond_seconds histogram\n",
        "klineage_reward_outcomes_total{outcome=\"cheat\"} 7\n",
        "klineage_reward_responses_total{status=\"429\"} 5\n",
        "klineage_reward_queue_depth 3\n",
        "klineage_reward_judging 2\n",
    };
    for (size_t i = 0; i < KL_COUNT(LINES); i++) assert_contains(text.ptr, LINES[i]);
    kl_buf_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reward_metrics__buckets_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
