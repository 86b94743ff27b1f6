/* Tests of sequential.c on simulated timings: how often the interval ever leaves out the truth, and
 * how soon it tells a clear difference.  Seeds are fixed.  SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/sequential.h"
#include "base/stats.h"
#include "base/test.h"

#include <math.h>

enum { STREAMS = 2000, LOOKS = 200 };
#define ALPHA 0.05
/* Three standard errors of a rate of ALPHA over STREAMS streams. */
#define MOST (ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / STREAMS))

typedef struct {
    double noise, burst, tail; /* spread of a half; share of halves that are held up; by how much */
    double drift;              /* of the machine's speed over the whole comparison */
    double ratio;              /* baseline / candidate */
    bool lopsided;             /* bursts hold up the candidate alone: a skewed ratio */
} machine;

/* One half of a pair: a time in no unit. */
static double half(const machine *m, kl_stream s, int pair, int which) {
    const uint64_t i = (uint64_t)pair * 8 + (uint64_t)which * 3;
    double t = exp(m->noise * (double)kli_stream_normal(s, i));
    if (kli_stream_uniform(s, i + 1) < m->burst)
        t *= 1 - m->tail * log(1 - kli_stream_uniform(s, i + 2));
    return t * (1 + m->drift * (pair + 0.5 * which) / LOOKS);
}

/* Pairs of a comparison, each side first in half of them. */
static double log_ratio(const machine *m, kl_stream s, int pair) {
    const int leads = (int)(kli_stream_u64(s, (uint64_t)pair / 2 + 1000000) + (uint64_t)pair) & 1;
    machine baseline = *m;
    if (m->lopsided) baseline.burst = 0;
    return log(m->ratio) + log(half(&baseline, s, pair, leads)) - log(half(m, s, pair, !leads));
}

typedef struct {
    kli_sequence mean;
    double values[LOOKS];
} sample;

typedef kli_bounds interval(sample *s, double x);

static kli_bounds of_mean(sample *s, double x) {
    kli_sequence_add(&s->mean, x);
    return kli_sequence_bounds(&s->mean, ALPHA);
}

static kli_bounds of_median(sample *s, double x) {
    s->values[s->mean.n++] = x;
    return kli_median_bounds(s->values, s->mean.n, ALPHA);
}

/* The narrower of both, which share ALPHA: what a comparison looks at. */
static kli_bounds of_either(sample *s, double x) {
    double sorted[LOOKS];
    s->values[s->mean.n] = x;
    kli_sequence_add(&s->mean, x);
    memcpy(sorted, s->values, s->mean.n * sizeof *sorted);
    const kli_bounds mean = kli_sequence_bounds(&s->mean, 0.8 * ALPHA),
                     median = kli_median_bounds(sorted, s->mean.n, 0.2 * ALPHA);
    return median.high - median.low < mean.high - mean.low ? median : mean;
}

static double middle_of_log_ratios(const machine *m) {
    static double many[10 * STREAMS];
    for (int pair = 0; pair < (int)KL_COUNT(many); pair++)
        many[pair] = log_ratio(m, kli_stream_of(STREAMS, "middle"), pair);
    return kli_median(many, KL_COUNT(many));
}

static double share_that_ever_misses(const machine *m, interval *add) {
    const double truth = m->lopsided ? middle_of_log_ratios(m) : log(m->ratio);
    int missed = 0;
    for (uint64_t k = 0; k < STREAMS; k++) {
        const kl_stream s = kli_stream_of(k, "sequential");
        sample all = {0};
        bool out = false;
        for (int pair = 0; pair < LOOKS && !out; pair++) {
            const kli_bounds b = add(&all, log_ratio(m, s, pair));
            out = b.low > truth || b.high < truth;
        }
        missed += out;
    }
    return (double)missed / STREAMS;
}

static void test_base_sequential__holds_at_every_look(void **state) {
    const machine machines[] = {
        {.noise = 0.01, .ratio = 1},
        {.noise = 0.3, .ratio = 2},
        {.noise = 0.01, .drift = 0.3, .ratio = 1},                            /* it heats up */
        {.noise = 0.005, .burst = 0.05, .tail = 0.5, .ratio = 1},             /* neighbours */
        {.noise = 0.005, .burst = 0.3, .tail = 2, .drift = 0.2, .ratio = 0.9} /* all of it */
    };
    (void)state;
    for (size_t i = 0; i < KL_COUNT(machines); i++) {
        const double mean = share_that_ever_misses(&machines[i], of_mean),
                     median = share_that_ever_misses(&machines[i], of_median);
        if (mean > MOST) fail_msg("machine %zu: %.3f of the streams", i, mean);
        if (median > MOST) fail_msg("machine %zu: the median of %.3f of the streams", i, median);
    }
}

/* Where one side alone is held up, the mean of the ratios is none of its typical values; the
 * verdict reports the median, and the narrower interval holds for it. */
static void test_base_sequential__holds_for_the_median_of_a_skewed_ratio(void **state) {
    const machine m = {.noise = 0.02, .burst = 0.1, .tail = 2, .ratio = 2, .lopsided = true};
    (void)state;
    assert_true(share_that_ever_misses(&m, of_mean) > MOST);
    assert_true(share_that_ever_misses(&m, of_either) <= MOST);
}

/* The bootstrap's or the t-test's interval of one look, looked at all the time, does not. */
static void test_base_sequential__a_fixed_interval_would_not(void **state) {
    int missed = 0;
    (void)state;
    for (uint64_t k = 0; k < STREAMS; k++) {
        const machine m = {.noise = 0.01, .ratio = 1};
        const kl_stream s = kli_stream_of(k, "sequential");
        kli_sequence q = {0};
        bool out = false;
        for (int pair = 0; pair < LOOKS && !out; pair++) {
            kli_sequence_add(&q, log_ratio(&m, s, pair));
            const double n = (double)q.n,
                         t = q.n < 10 ? INFINITY : q.mean / sqrt(q.squares / n / (n - 1));
            out = q.n >= 10 && fabs(t) > 2.26; /* 0.975 of nine degrees of freedom */
        }
        missed += out;
    }
    assert_true((double)missed / STREAMS > 3 * ALPHA);
}

static int pairs_until_beyond(const machine *m, kl_stream s, double factor, interval *add) {
    sample all = {0};
    for (int pair = 0; pair < LOOKS; pair++) {
        const kli_bounds b = add(&all, log_ratio(m, s, pair));
        if (b.low > log(factor) || b.high < -log(factor)) return pair + 1;
    }
    return LOOKS + 1;
}

static int most_pairs_of_nine_in_ten(const machine *m, double factor, interval *add) {
    int within[LOOKS + 2] = {0}, seen = 0, pairs = 0;
    for (uint64_t k = 0; k < STREAMS; k++)
        within[pairs_until_beyond(m, kli_stream_of(k, "power"), factor, add)]++;
    while (seen < STREAMS * 9 / 10) seen += within[++pairs];
    return pairs;
}

static void test_base_sequential__tells_a_clear_difference_soon(void **state) {
    (void)state;
    assert_true(most_pairs_of_nine_in_ten(&(machine){.noise = 0.01, .ratio = 0.1}, 1.2, of_mean) <=
                3);
    assert_true(most_pairs_of_nine_in_ten(&(machine){.noise = 0.02, .ratio = 2}, 1.2, of_mean) <=
                4);
    assert_true(most_pairs_of_nine_in_ten(&(machine){.noise = 0.02, .ratio = 1.5}, 1.2, of_mean) <=
                6);
    assert_true(most_pairs_of_nine_in_ten(&(machine){.noise = 0.01, .ratio = 1.01}, 1.2, of_mean) >
                LOOKS);
}

static void test_base_sequential__wild_pairs_do_not_widen_the_median(void **state) {
    const machine wild = {.noise = 0.02, .burst = 0.1, .tail = 5, .ratio = 3};
    (void)state;
    assert_true(most_pairs_of_nine_in_ten(&wild, 2.5, of_mean) > LOOKS);
    assert_true(most_pairs_of_nine_in_ten(&wild, 2.5, of_median) <= 25);
    assert_true(most_pairs_of_nine_in_ten(&(machine){.noise = 0.01, .ratio = 3}, 2.5, of_median) <=
                8);
}

static void test_base_sequential__says_nothing_of_one_value(void **state) {
    kli_sequence q = {0};
    (void)state;
    assert_true(isinf(kli_sequence_bounds(&q, ALPHA).high));
    kli_sequence_add(&q, 1);
    assert_true(isinf(kli_sequence_bounds(&q, ALPHA).low));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_sequential__holds_at_every_look),
        cmocka_unit_test(test_base_sequential__holds_for_the_median_of_a_skewed_ratio),
        cmocka_unit_test(test_base_sequential__a_fixed_interval_would_not),
        cmocka_unit_test(test_base_sequential__tells_a_clear_difference_soon),
        cmocka_unit_test(test_base_sequential__wild_pairs_do_not_widen_the_median),
        cmocka_unit_test(test_base_sequential__says_nothing_of_one_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
