/* probe_plan.c - which cell of the matrix to fill next: where most is to be learned of what is most
 * often asked.
 *
 *   worth = variance of what comes out  x  how often retrieval meets it  /  rows that are there
 *
 * The variance is the gain model's, of a gain that fails with 1 - p; without a model all cells are
 * alike.  A card that fits is met; one that its contract refuses is met when the contract errs: a
 * few of those are worth a try as well.  Kernels of one task with the same features are one cell.
 * A card of another surface is an idea: where that is asked for it is tried, unless its contract
 * refuses or a card of the kernel's own surface has its action.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MET 1.0
#define UNKNOWN 0.5
#define REFUSED 0.1 /* as often as a contract is believed to err, generously */

typedef struct {
    kl_str hash;
    const kl_start *start;
    const kl_facts *facts;
    double features[KL_GAIN_FEATURES];
} plan_state;

typedef struct {
    kl_arena *arena;
    const kl_probes *known;
    const kl_gain_model *model;
    const kl_library *across; /* NULL: each card on its own surface */
    kl_probe_cell *cells;
    int n;
} probe_plan;

static bool plan_state_of(plan_state *out, kl_arena *a, const kl_start *s) {
    kl_kernel *k;
    if (kl_kernel_parse(&k, a, s->source, s->name, s->surface, NULL, kl_ignored())) return false;
    *out = (plan_state){.hash = kl_str_of(k->hash),
                        .start = s,
                        .facts = kl_facts_of(a, k, s->task, s->workload, NULL)};
    kl_gain_features(out->features, out->facts);
    return true;
}

static bool same_features(const plan_state *a, const plan_state *b) {
    return kl_str_eq(a->start->task->name, b->start->task->name) &&
           a->start->surface == b->start->surface &&
           memcmp(a->features, b->features, sizeof a->features) == 0;
}

/* Born there, or tried there already. */
static bool was_probed(const probe_plan *p, const kl_card *c, const plan_state *s) {
    const kl_str task = s->start->task->name;
    for (int i = 0; i < c->n_trials; i++)
        if (kl_str_eq(c->trials[i].task, task) && (kl_str_eq(c->trials[i].start_hash, s->hash) ||
                                                   kl_str_eq(c->trials[i].result_hash, s->hash)))
            return true;
    for (size_t i = 0; i < p->known->n; i++) {
        const kl_probe *row = &p->known->at[i];
        if (kl_str_eq(row->card, c->name) && kl_str_eq(row->state, s->hash) &&
            kl_str_eq(row->task, task) && row->outcome != KL_PROBE_UNDECIDED)
            return true;
    }
    return false;
}

static int rows_at(const probe_plan *p, const kl_card *c, kl_str task) {
    int n = 0;
    for (size_t i = 0; i < p->known->n; i++)
        n += kl_str_eq(p->known->at[i].card, c->name) && kl_str_eq(p->known->at[i].task, task);
    return n;
}

/* Of a gain that is 0 where it fails. */
static double variance_of_outcome(const kl_expectation *x) {
    return x->p * x->deviation * x->deviation + x->p * (1 - x->p) * x->log_gain * x->log_gain;
}

static kl_target target_of(const plan_state *s) {
    return (kl_target){.case_name = s->start->task->case_name,
                       .surface = kl_str_of(s->start->surface->name),
                       .dtype = kl_str_of(kl_dtype_name(s->start->workload->dtypes[0])),
                       .traits = &s->facts->traits,
                       .facts = s->facts};
}

static void add_cell(probe_plan *p, const kl_card *c, const plan_state *s, kl_fit fit) {
    kl_probe_cell cell = {.card = c,
                          .start = s->start,
                          .fit = fit,
                          .rows = rows_at(p, c, s->start->task->name),
                          .expected = {.p = 0.5, .log_gain = 1, .deviation = 1}};
    if (p->model) kl_gain_expect(&cell.expected, p->model, c->action, s->features);
    const double met = cell.fit == KL_FIT_MET       ? MET
                       : cell.fit == KL_FIT_UNKNOWN ? UNKNOWN
                                                    : REFUSED;
    cell.worth = met * variance_of_outcome(&cell.expected) / (1 + cell.rows);
    KL_ASSERT(cell.worth >= 0);
    *KL_PUSH(p->arena, p->cells, p->n) = cell;
}

static bool of_surface(const kl_card *c, kl_str surface) {
    const kl_names *n = c->verified.surfaces.n ? &c->verified.surfaces : &c->declared.surfaces;
    return kli_names_have(n, surface);
}

static bool is_covered(const kl_library *l, kl_str action, kl_str surface) {
    for (int i = 0; i < l->n_cards; i++)
        if (l->cards[i].status != KL_CARD_REJECTED && kl_str_eq(l->cards[i].action, action) &&
            of_surface(&l->cards[i], surface))
            return true;
    return false;
}

static void consider_cell(probe_plan *p, const kl_card *c, const plan_state *s) {
    kl_str why;
    const kl_target t = target_of(s);
    const bool ours = of_surface(c, t.surface);
    if (!ours && (!p->across || is_covered(p->across, c->action, t.surface))) return;
    if (was_probed(p, c, s)) return;
    /* what an idea's carrier needs is not asked of another surface */
    const kl_fit fit =
        ours ? kli_card_fits(c, &t, p->arena, &why) : kli_contract_fits(c, &t, p->arena, &why);
    if (ours || fit != KL_FIT_VIOLATED) add_cell(p, c, s, fit);
}

static int most_worth_first(const void *x, const void *y) {
    const kl_probe_cell *a = x, *b = y;
    if (a->worth != b->worth) return a->worth < b->worth ? 1 : -1;
    const int order = strcmp(a->card->name.ptr, b->card->name.ptr);
    return order ? order : strcmp(a->start->name.ptr, b->start->name.ptr);
}

/* Of kernels with the same features the first stands for all. */
static int distinct_states(plan_state *out, kl_arena *a, const kl_start *starts, int n) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        bool fresh = plan_state_of(&out[kept], a, &starts[i]);
        for (int k = 0; fresh && k < kept; k++) fresh = !same_features(&out[k], &out[kept]);
        kept += fresh;
    }
    return kept;
}

int kl_probe_plan(kl_probe_cell **out, kl_arena *a, const kl_card *const *cards, int n_cards,
                  const kl_start *starts, int n_starts, const kl_probes *known,
                  const kl_gain_model *model, const kl_library *across) {
    probe_plan p = {.arena = a, .known = known, .model = model, .across = across};
    plan_state *states = KL_ARRAY(a, plan_state, n_starts + 1);
    const int n = distinct_states(states, a, starts, n_starts);
    for (int i = 0; i < n_cards; i++)
        for (int k = 0; k < n; k++) consider_cell(&p, cards[i], &states[k]);
    if (p.n) qsort(p.cells, (size_t)p.n, sizeof *p.cells, most_worth_first);
    *out = p.cells;
    return p.n;
}
