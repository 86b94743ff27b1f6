/* sequential.c - an interval for the mean that holds at every look.
 *
 * With a normal prior of precision PRIOR on the effect (mean / spread), the martingale is
 *
 *   sqrt(c / (n + c)) * ((n - 1 + T^2) / (n - 1 + T^2 * c / (n + c)))^(n / 2),   c = PRIOR,
 *
 * T the t-statistic of the mean that is tried.  The interval is where it stays below 1 / alpha,
 * which can be solved for T.  SPDX-License-Identifier: Apache-2.0 */
#include "base/sequential.h"

#include <klineage/base.h>

#include <math.h>

/* The narrowest intervals at three to ten values; at fifty it is a seventh wider than at best. */
static const double PRIOR = 0.03;

void kli_sequence_add(kli_sequence *s, double x) {
    KL_ASSERT(isfinite(x));
    const double before = x - s->mean;
    s->mean += before / (double)++s->n;
    s->squares += before * (x - s->mean);
    KL_ASSERT(s->squares >= 0);
}

kli_bounds kli_sequence_bounds(const kli_sequence *s, double alpha) {
    KL_ASSERT(alpha > 0 && alpha < 1);
    const kli_bounds unknown = {-INFINITY, INFINITY};
    const double n = (double)s->n, share = PRIOR / (n + PRIOR);
    if (s->n < 2) return unknown;
    const double bound = pow(1 / (alpha * alpha * share), 1 / n), room = 1 - bound * share;
    if (room <= 0) return unknown;
    /* T^2 / (n - 1) = (bound - 1) / room, and T = sqrt(n) * (distance) / spread. */
    const double half = sqrt((bound - 1) / room * s->squares / n);
    return (kli_bounds){s->mean - half, s->mean + half};
}
