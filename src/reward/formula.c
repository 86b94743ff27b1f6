/* formula.c - what a verdict is worth to a trainer: facts of it, and a number of these.
 *
 * The order is the same in all: a cheat is worth no more than code that does not compile, that no
 * more than a wrong kernel, that no more than a correct one, and among correct ones the proven
 * faster is worth more.  Whether a kernel is faster is kl_decide's word; a formula only scales what
 * was decided, by that end of the interval that claims less.
 * Not here: how sure a comparison is (gate/decide.c).  SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward.h"
#include <math.h>
#include <string.h>

/* `shaped`.  Steps far apart against the noise of a comparison, which moves log2 by hundredths. */
#define CHEATED (-0.5) /* below everything that is honest */
#define COMPILED 0.1   /* a first foothold for a model that writes no valid code yet */
#define CORRECT 0.3    /* on top of COMPILED */
#define A_DOUBLING 0.5 /* of speed: a step as large as being correct at all */
#define SPEED_MOST                                                                                 \
    2.0 /* four doublings: beyond, the opponent was bad rather than the kernel good */
#define SPEED_LEAST (-0.25) /* a correct kernel stays worth more than a wrong one */
/* `speedup` */
#define RATIO_MOST 16.0 /* the same four doublings */

kli_reward_facts kli_reward_facts_of(const kl_verdict *v) {
    const bool unsettled = v->outcome == KL_OUTCOME_UNSTABLE; /* law 14: what was proven stays */
    kli_reward_facts f = {.call = KL_DECISION_UNDECIDED,
                          .correct = v->outcome == KL_OUTCOME_PASS || unsettled,
                          .cheated = v->outcome == KL_OUTCOME_CHEAT};
    f.compiled = v->outcome != KL_OUTCOME_NO_COMPILE && v->outcome != KL_OUTCOME_REFUSED;
    if (!f.correct || !v->n_comparisons) return f;
    const kl_comparison *c = &v->comparisons[0];
    f.ratio = c->ratio, f.low = c->low, f.high = c->high;
    f.call = kl_decide(c->low, c->high, c->noise, c->stable);
    return f;
}

static double doublings(const kli_reward_facts *f) {
    if (f->call == KL_DECISION_FASTER) return fmin(A_DOUBLING * log2(f->low), SPEED_MOST);
    if (f->call == KL_DECISION_SLOWER) return fmax(A_DOUBLING * log2(f->high), SPEED_LEAST);
    return 0;
}

static double shaped(const kli_reward_facts *f) {
    if (f->cheated) return CHEATED;
    if (!f->compiled) return 0;
    return f->correct ? COMPILED + CORRECT + doublings(f) : COMPILED;
}

static double speedup_ratio(const kli_reward_facts *f) {
    const bool decided = f->call == KL_DECISION_FASTER || f->call == KL_DECISION_SLOWER;
    if (!f->correct) return 0;
    return decided ? fmin(f->ratio, RATIO_MOST) : 1;
}

static double fast(const kli_reward_facts *f) {
    return f->correct && f->call == KL_DECISION_FASTER ? 1 : 0;
}

static double correct(const kli_reward_facts *f) { return f->correct ? 1 : 0; }

static const kli_formula FORMULAS[] = {
    {"shaped", "compiled, honest, correct, and then half a point for each doubling of speed",
     shaped},
    {"speedup",
     "the ratio to the opponent's time where a change is proven, else 1; 0 unless correct",
     speedup_ratio},
    {"fast", "1 where faster is proven", fast},
    {"correct", "1 where correct", correct},
};

const kli_formula *kli_formula_each(int i) {
    return i >= 0 && i < (int)KL_COUNT(FORMULAS) ? &FORMULAS[i] : NULL;
}

const kli_formula *kli_formula_named(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(FORMULAS); i++)
        if (kl_str_eq(name, kl_str_of(FORMULAS[i].name))) return &FORMULAS[i];
    return NULL;
}

json_t *kli_formula_constants(void) {
    return json_pack("{sf sf sf sf sf sf sf}", "cheated", CHEATED, "compiled", COMPILED, "correct",
                     CORRECT, "a_doubling", A_DOUBLING, "speed_most", SPEED_MOST, "speed_least",
                     SPEED_LEAST, "ratio_most", RATIO_MOST);
}
