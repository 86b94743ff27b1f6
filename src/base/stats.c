/* stats.c - medians and bootstrap intervals of small samples.
 *
 * Everything works on a sorted copy.  A bootstrap resample of sorted data needs no sorting: count
 * how often each rank was drawn, then walk the counts to the middle.  Cost: resamples x n draws;
 * 2000 x 1000 takes a few milliseconds. Not here: anything that assumes a distribution.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int stats_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *stats_allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) kl_oom(count * size);
    return memory;
}

static double *sorted_copy(const double *x, size_t n) {
    KL_ASSERT(n > 0);
    double *copy = stats_allocate(n, sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, stats_by_value);
    return copy;
}

/* Linear between the two nearest ranks. */
static double sorted_quantile(const double *x, size_t n, double q) {
    KL_ASSERT(n > 0 && q >= 0 && q <= 1);
    double position = q * (double)(n - 1);
    size_t low = position <= 0 ? 0 : (size_t)position;
    if (low >= n - 1) return x[n - 1];
    double part = position - (double)low;
    return part > 0 ? x[low] + part * (x[low + 1] - x[low]) : x[low];
}

double kli_quantile(const double *x, size_t n, double q) {
    double *copy = sorted_copy(x, n);
    double value = sorted_quantile(copy, n, q);
    free(copy);
    return value;
}

double kli_median(const double *x, size_t n) { return kli_quantile(x, n, 0.5); }

double kli_mad(const double *x, size_t n) {
    double middle = kli_median(x, n);
    double *away = stats_allocate(n, sizeof *away);
    for (size_t i = 0; i < n; i++) away[i] = x[i] > middle ? x[i] - middle : middle - x[i];
    double spread = 1.4826 * kli_median(away, n);
    free(away);
    return spread;
}

double kli_relative_spread(const double *x, size_t n) {
    return (kli_quantile(x, n, 1) - kli_quantile(x, n, 0)) / kli_median(x, n);
}

double kli_cv(const double *x, size_t n) {
    double sum = 0, squares = 0;
    KL_ASSERT(n > 0);
    for (size_t i = 0; i < n; i++) sum += x[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? sqrt(squares / (double)(n - 1)) / mean : 0;
}

/* Median of the resample that holds x[i] counts[i] times; the counts sum to n. */
static double counted_median(const double *x, const uint32_t *counts, size_t n) {
    size_t lower_rank = (n - 1) / 2, upper_rank = n / 2, i = 0, seen = counts[0];
    while (seen <= lower_rank) seen += counts[++i];
    KL_ASSERT(i < n);
    double lower = x[i];
    while (seen <= upper_rank) seen += counts[++i];
    return lower + 0.5 * (x[i] - lower);
}

kl_interval kli_bootstrap_median(const double *x, size_t n, size_t resamples, double confidence,
                                 kl_stream s) {
    KL_ASSERT(resamples > 0 && n <= UINT32_MAX && confidence > 0 && confidence < 1);
    double *sorted = sorted_copy(x, n);
    double *medians = stats_allocate(resamples, sizeof *medians);
    uint32_t *counts = stats_allocate(n, sizeof *counts);
    for (size_t r = 0; r < resamples; r++) {
        memset(counts, 0, n * sizeof *counts);
        for (size_t i = 0; i < n; i++) counts[kli_stream_below(s, r * n + i, n)]++;
        medians[r] = counted_median(sorted, counts, n);
    }
    qsort(medians, resamples, sizeof *medians, stats_by_value);
    double tail = 0.5 * (1 - confidence);
    kl_interval interval = {.median = sorted_quantile(sorted, n, 0.5),
                            .low = sorted_quantile(medians, resamples, tail),
                            .high = sorted_quantile(medians, resamples, 1 - tail)};
    KL_ASSERT(!(interval.low > interval.high));
    free(sorted);
    free(medians);
    free(counts);
    return interval;
}

/* Where cutting the sorted sample explains most of its variance (Otsu), each side keeping at least
 * `least`. */
static size_t best_cut(const double *x, size_t n, size_t least) {
    double total = 0, left = 0, best = -1;
    size_t cut = least;
    for (size_t i = 0; i < n; i++) total += x[i] - x[0];
    for (size_t i = 1; i <= n - least; i++) {
        left += x[i - 1] - x[0];
        if (i < least) continue;
        double apart = left / (double)i - (total - left) / (double)(n - i);
        double between = (double)i * (double)(n - i) * apart * apart;
        if (between > best) {
            best = between;
            cut = i;
        }
    }
    return cut;
}

/* Far apart is not enough, or every wide sample would count: the two middles must also stand more
 * than twice the summed spreads apart.  One bell gives 1.1, a uniform 1.35, an exponential 1.5. */
bool kli_bimodal(const double *x, size_t n, double gap) {
    size_t least = (n * 15 + 99) / 100;
    if (n < 8) return false;
    double *sorted = sorted_copy(x, n);
    size_t cut = best_cut(sorted, n, least);
    KL_ASSERT(cut >= least && cut <= n - least);
    double low = sorted_quantile(sorted, cut, 0.5),
           high = sorted_quantile(sorted + cut, n - cut, 0.5);
    double spread = kli_mad(sorted, cut) + kli_mad(sorted + cut, n - cut);
    free(sorted);
    return high - low > gap * (low < 0 ? -low : low) && high - low > 2 * spread;
}
