/* stats.h - medians and bootstrap intervals of small samples.  SPDX-License-Identifier: Apache-2.0
 */
#ifndef KL_BASE_STATS_H
#define KL_BASE_STATS_H
#include <klineage/base.h>
#include "rng.h"

typedef struct {
    double median, low, high;
} kl_interval;

double kli_median(const double *x, size_t n); /* n > 0; does not change x */
double kli_mad(const double *x, size_t n);    /* median absolute deviation x 1.4826 */
/* n > 0.  Largest less smallest over the median, and the coefficient of variation (0 of one). */
double kli_relative_spread(const double *x, size_t n);
double kli_cv(const double *x, size_t n);
double kli_quantile(const double *x, size_t n, double q);
/* Percentile bootstrap of the median: `resamples` draws from stream `s`.  n = 1 gives low = high =
 * x[0]. */
kl_interval kli_bootstrap_median(const double *x, size_t n, size_t resamples, double confidence,
                                 kl_stream s);
/* Two clusters more than `gap` (relative) apart that hold >= 15 % each. */
bool kli_bimodal(const double *x, size_t n, double gap);
#endif
