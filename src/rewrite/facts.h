/* facts.h - what the two halves of facts share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_FACTS_H
#define KL_REWRITE_FACTS_H

#include "rewrite_impl.h"

static inline kl_fact kli_fact_number(double v, int line) {
    return (kl_fact){.known = v == v, .number = v, .line = line};
}
static inline kl_fact kli_fact_truth(bool v, kl_str from) {
    return (kl_fact){.known = true, .number = v, .from = from};
}
static inline kl_fact kli_fact_text(kl_str v, int line) {
    return (kl_fact){.known = v.len != 0, .text = v, .line = line};
}

/* operator.c: what a task asks for. */
void kli_facts_of_task(kl_facts *out, kl_arena *a, const kl_task *t, const kl_workload *w);

#endif
