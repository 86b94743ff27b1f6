/* decide.c - what a measurement means: faster, slower, same, or nothing yet.
 *
 *            1/(1+m)      1      1+m          m = max(1 %, 2 x A/A floor)
 *   ---[slower]--|-------------|--[faster]---
 *                   [ same ]                  only when the interval is as narrow as was asked
 *
 * The one place that holds an interval against a threshold (law 11): gate, walk, search, admission, tables and figures ask here.
 * Not here: how an interval comes about and when it is narrow enough (profile.c).  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include <math.h>

static const double LEAST = 0.01; /* below 1 % nothing repeats from machine to machine */
static const double FLOORS = 2;

double kl_decide_margin(double floor) { return fmax(LEAST, FLOORS * floor); }

kl_call kl_decide(double low, double high, double floor, bool settled) {
    if (!(low > 0) || !(low <= high) || !isfinite(high) || !isfinite(floor)) return KL_UNDECIDED;
    if (!settled && !(floor > 0)) return KL_UNDECIDED; /* a wide interval counts only beside the noise of its own run */
    const double margin = kl_decide_margin(floor);
    if (low > 1 + margin) return KL_FASTER;
    if (high < 1 / (1 + margin)) return KL_SLOWER;
    return settled ? KL_SAME : KL_UNDECIDED;
}

static const double NARROW = 0.02; /* of an A/A floor: a wider one asks for more than 4 % of difference */

bool kl_comparison_busy(const kl_comparison *m) {
    return m->floor > NARROW || m->controls == 0 || m->left_out > m->pairs / 3;
}
