/* sequential.h - intervals for the middle of a growing sample that hold at every look.
 *
 * A bootstrap interval of 95 % misses far more often than once in twenty when it is looked at after
 * every pair until it says something.  This one does not: with independent normal draws of unknown
 * mean and spread, the probability that it ever leaves out the mean, at any n, is at most `alpha`.
 *
 * Source of the first: Wang and Ramdas 2023, "Anytime-valid t-tests and confidence sequences for
 * Gaussian means with unknown variance": the t-statistic's likelihood ratio, mixed over effects of
 * either sign with a normal prior, is a test martingale, and Ville's inequality bounds it (after
 * Lai 1976).
 *
 * The other interval is for the median and assumes nothing but independence: how many values lie
 * below the median is a sum of fair coins, and the likelihood ratio of coins with a uniform prior
 * on their bias is a martingale too.  It takes eight values to say anything, and wild ones among
 * more do not widen it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_SEQUENTIAL_H
#define KL_BASE_SEQUENTIAL_H
#include <stddef.h>

typedef struct {
    size_t n;
    double mean, squares; /* of n values; sum of squared distances from their mean */
} kli_sequence;

typedef struct {
    double low, high; /* -INFINITY, INFINITY while nothing can be said */
} kli_bounds;

void kli_sequence_add(kli_sequence *s, double x);                    /* x is finite */
kli_bounds kli_sequence_bounds(const kli_sequence *s, double alpha); /* 0 < alpha < 1 */
kli_bounds kli_median_bounds(double *x, size_t n, double alpha);     /* sorts x */
#endif
