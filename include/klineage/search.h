/* search.h - spending a budget on one kernel: policies that propose, the gate that decides.
 *
 * Owns the policies (src/search/policies.c, one row each).  *best* changes only by a verdict; a
 * correct but slower preparation may become *current*.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_SEARCH_H
#define KLINEAGE_SEARCH_H

#include <klineage/skill.h>

KL_API_BEGIN

/* One of a policy's own numbers, by name: "beam" = 2. */
typedef struct {
    kl_str name;
    double value;
} kl_setting;

/* What is shown of the cards, for experiments on what of them it is that helps. */
typedef struct kl_cards_arm kl_cards_arm;

typedef struct {
    const kl_task *task;
    const kl_workload *workload;
    const kl_kernel *start;    /* K_0 of the search */
    const kl_library *library; /* NULL: none */
    const kl_cards_arm *arm;   /* NULL: as cards are shown, after the patches of those that fit */
    const kl_setting *settings;
    int n_settings; /* instead of the policy's defaults; names that it does not have are ignored */
    int max_steps;  /* proposals; 0: 24 */
    int patience;   /* stop after so many without a new best; 0: 8, and never for a policy whose
                       attempts say nothing of each other */
    double roof;    /* stop at this share of the roofline; 0: 0.9 */
    double goal; /* stop when the ratio to the primary baseline surely is at least this; 0: none */
    const kl_kernel *target_kernel; /* what the best is compared with, an expert's kernel: judged
                                       once, its own step; NULL: none */
    double recover; /* stop when the best's ratio surely is at least this share of the reference's;
                       0: none */
} kl_search_opts;

typedef struct {
    kl_kernel *best;                   /* the start when nothing was better */
    kl_verdict start_verdict, verdict; /* of the start; of the best, full */
    double target_ratio;               /* to the same baseline; 0: no reference */
    double gain, gain_low, gain_high; /* best over start, interleaved; from their two verdicts where
                                         that cannot be; 1 when it is the start */
    kl_decision call; /* what `gain` means; KL_DECISION_SAME when the best is the start, which it is
                         wherever it did not prove to be faster */
    bool gain_timed;  /* the two were timed side by side when the search ended */
    kl_str stopped;   /* "budget" "steps" "patience" "roof" "goal" "recovered" "model says done"
                         "value" (no card is worth its price) "recording ended" */
    int proposals, gated, passed, improved;
    kl_str cards; /* names of those whose application became part of the best, in order */
    int64_t spent_microusd;
} kl_search_result;

/* What a quotient [low, high] of two ratios to one baseline means.  That baseline drifts between
 * two measurements, on a shared machine by a half, so it says faster or slower only where the two
 * are further apart than that, and never the same. */
kl_decision kl_search_far_apart(double low, double high);

/* One row of the table. */
typedef struct kl_policy kl_policy;

const char *kl_policy_name(const kl_policy *p);
const kl_policy *kl_policy_each(int i); /* NULL past the end */
const kl_policy *kl_policy_find(kl_str name);

/* Judge the start, let the policy go on from it, and measure the best over it.  An exhausted budget
 * and the end of a recording are ends, not errors.  Errors: KL_EINVAL when the start is not correct
 * or the policy needs a library. */
KL_MUST_USE kl_err kl_policy_run(const kl_policy *p, kl_search_result *out, kl_track *t,
                                 const kl_search_opts *o, kl_error *e);

KL_API_END
#endif
