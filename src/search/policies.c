/* policies.c - the table: one row a policy, one file each.  How to add one:
 * docs/how-to/add-a-policy.md. SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"

static const kl_policy policies_policies[] = {
    {"klineage",
     "cards retrieved by scope and contract, one conversation, kernels improved step by step",
     "KLineage, section 3.4", true, NULL, 24, 8, kli_policy_klineage},
    {"klineage-gain",
     "the same, cards ranked by what the gain model and this search expect of them here",
     "Thompson sampling; docs/method.md", true, kli_rank_params, 24, 8, kli_policy_klineage},
    {"generate", "the same conversation without any card", "KLineage, section 4.4", false, NULL, 24,
     8, kli_policy_klineage},
    {"bestofn", "independent attempts at the start kernel, the best one kept",
     "the control at equal cost", false, NULL, 24, 0, kli_policy_bestofn},
    {"accelopt",
     "a beam of kernels, plans written out several times, a memory of what gained and what lost",
     "AccelOpt", false, kli_accelopt_params, 24, 0, kli_policy_accelopt},
    {"adaexplore", "a tree of rewrites and edits, and rules learned from failures", "AdaExplore",
     false, kli_adaexplore_params, 24, 0, kli_policy_adaexplore},
    {"evolve", "a population on islands, kept by kind and speed, one child a round",
     "Kernel-Smith, on OpenEvolve", false, kli_evolve_params, KL_MAX_PROPOSALS, KL_MAX_PROPOSALS,
     kli_policy_evolve},
    {"evolve-cards", "the same with cards as mutations and their failures as risks",
     "Kernel-Smith and KLineage", true, kli_evolve_cards_params, KL_MAX_PROPOSALS, KL_MAX_PROPOSALS,
     kli_policy_evolve},
};

const char *kl_policy_name(const kl_policy *p) { return p->name; }

const kl_policy *kl_policy_each(int i) {
    return i >= 0 && (size_t)i < KL_COUNT(policies_policies) ? &policies_policies[i] : NULL;
}

const kl_policy *kl_policy_find(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(policies_policies); i++)
        if (kl_str_eq(name, kl_str_of(policies_policies[i].name))) return &policies_policies[i];
    return NULL;
}

const kl_policy_param *kli_policy_param_find(const kl_policy *p, kl_str name) {
    for (const kl_policy_param *q = p->params; q && q->name; q++)
        if (kl_str_eq(name, kl_str_of(q->name))) return q;
    return NULL;
}
