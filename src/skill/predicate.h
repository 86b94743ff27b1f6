/* predicate.h - one question about facts and its answer.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SKILL_PREDICATE_H
#define KL_SKILL_PREDICATE_H

#include "skill_impl.h"

/* What a target tells beside its facts. */
#define KLI_TARGET_FACTS "arch case cores dtype language platform simd_bits"
kl_fact kli_target_fact(const kl_target *t, kl_str name); /* contract.c */

typedef struct {
    const kl_target *target; /* NULL: nothing is known; a question is read for its grammar */
    const kl_facts *facts;
    const kl_surface *own; /* of the card that asks: what that cannot have is no fact; NULL: any */
} kli_question;

typedef struct {
    kl_fit fit;
    kl_str why; /* the fact that decided, its value, and the line that it comes from */
    int met;    /* parts of a conjunction that hold */
} kli_answer;

/* Errors: KL_EPARSE with the place: it cannot be read, no fact is called so, or none that the
 * asker's surface gives. */
KL_MUST_USE kl_err kli_predicate_ask(kli_answer *out, kl_arena *arena, kl_str text,
                                     const kli_question *q, kl_error *e);

#endif
