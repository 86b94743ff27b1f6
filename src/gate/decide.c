/* decide.c - what a measurement means: faster, slower, same, or nothing yet.
 *
 *            1/(1+m)      1      1+m          m = max(1 %, 2 x A/A noise)
 *   ---[slower]--|-------------|--[faster]---
 *                   [ same ]                  only when the interval is as narrow as was asked
 *
 * The one place that holds an interval against a threshold (law 11): gate, walk, search, admission,
 * tables and figures ask here. Not here: how an interval comes about and when it is narrow enough
 * (benchmark.c).  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include <math.h>

static const double LEAST = 0.01; /* below 1 % nothing repeats from machine to machine */
static const double NOISE_FACTOR = 2;

double kl_decide_margin(double noise) { return fmax(LEAST, NOISE_FACTOR * noise); }

kl_decision kl_decide(double low, double high, double noise, bool settled) {
    if (!(low > 0) || !(low <= high) || !isfinite(high) || !isfinite(noise))
        return KL_DECISION_UNDECIDED;
    if (!settled && !(noise > 0))
        return KL_DECISION_UNDECIDED; /* a wide interval counts only beside the noise of its own run
                                       */
    const double margin = kl_decide_margin(noise);
    KL_ASSERT(margin >= LEAST && 1 / (1 + margin) < 1 + margin);
    if (low > 1 + margin) return KL_DECISION_FASTER;
    if (high < 1 / (1 + margin)) return KL_DECISION_SLOWER;
    return settled ? KL_DECISION_SAME : KL_DECISION_UNDECIDED;
}

static const double NARROW =
    0.02; /* of an A/A noise: a wider one asks for more than 4 % of difference */

bool kl_comparison_busy(const kl_comparison *m) {
    return m->noise > NARROW || m->controls == 0 || m->left_out > m->pairs / 3;
}
