/* experiment.h - a plan: klineage/experiment.h with the bodies of its handles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXPERIMENT_EXPERIMENT_H
#define KL_EXPERIMENT_EXPERIMENT_H

#include <klineage/experiment.h>

#include "search/search.h"

/* One kernel to be made faster: a row of `workloads`, once for each surface. */
struct kl_experiment_workload {
    kl_str name; /* first part of its tracks' names */
    kl_task *task;
    const kl_workload *workload;
    kl_kernel *start, *target_kernel; /* reference NULL: none */
    double recover, goal;             /* as in kl_search_opts */
};

/* What a track is shown of the cards; KLI_ARM_NONE: what its policy shows. */
typedef enum {
    KLI_ARM_NONE,
    KLI_ARM_OURS,  /* index, the few that fit, any one whole on demand; no patch is tried first */
    KLI_ARM_NAMES, /* the index alone */
    KLI_ARM_ALL,   /* every card of the surface, whole */
    KLI_ARM_SHUFFLED, /* as ours, with bodies permuted over names */
    KLI_ARM_ELSEWHERE /* as ours, with names and bodies of other surfaces' cards */
} kli_arm;
const char *kli_arm_name(kli_arm arm);
bool kli_arm_parse(kli_arm *out, kl_str name); /* false: there is none of that name */

/* A policy with its numbers: a row of `policies`. */
struct kl_experiment_policy {
    kl_str name; /* second part of its tracks' names */
    const kl_policy *policy;
    kli_arm arm;
    double mask; /* how probably a card is withheld from a track */
    kl_setting *settings;
    int n_settings;
    int trials, max_steps, patience; /* of the last two, 0: the search's own */
};

struct kl_experiment {
    kl_str title, model, priced_as;          /* empty: not said */
    kl_str library;                          /* folder; empty: the one that is found */
    int64_t budget_microusd, total_microusd; /* of each track and of the run; 0: not said */
    kl_str budget_where;                     /* file:line:column of it, for messages */
    bool quick;
    kl_experiment_workload *workloads;
    int n_workloads;
    kl_experiment_policy *policies;
    int n_policies;
    kl_library *cards; /* NULL until kl_experiment_cards, and where no policy uses any */
    kl_library *whole; /* the same with every card read; NULL where no row has an arm */
};

/* One more of a policy's numbers, "beam=2".  Errors: KL_EINVAL (no such parameter, out of bounds,
 * no number). */
KL_MUST_USE kl_err kli_experiment_set(kl_experiment_policy *p, kl_arena *a, kl_str name,
                                      kl_str value, kl_error *e);

#endif
