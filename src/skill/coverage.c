/* coverage.c - which edges that pay teach a card, and why the others do not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"

/* The one that an edge is a birth of; of several the most alive. */
static const kl_card *born_of(const kl_library *l, const kl_lineage *from, const kl_edge *edge) {
    const kl_card *found = NULL;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        for (int k = 0; k < c->n_trials; k++) {
            const kl_trial_record *r = &c->trials[k];
            if (!kl_str_eq(r->kind, KL_S("birth")) ||
                !kl_str_eq(r->start_hash, from->states[edge->from].hash) ||
                !kl_str_eq(r->result_hash, from->states[edge->to].hash))
                continue;
            if (!found || c->status == KL_CARD_ADMITTED) found = c;
        }
    }
    return found;
}

/* A group has the edge; empty where none teaches it. */
static kl_str group_with(const kl_group *groups, int n, const kl_lineage *l, int edge) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < groups[i].n_births; k++)
            if (groups[i].births[k].lineage == l && groups[i].births[k].edge == edge)
                return groups[i].name;
    return (kl_str){0};
}

static kl_str why_not_grouped(kl_arena *a, const kl_edge *e) {
    if (e->call != KL_DECISION_FASTER)
        return kl_arena_printf(a, "by the gate's rule it is %s: its noise is %.1f %%",
                               kl_decision_name(e->call), e->noise * 100);
    if (kl_str_eq(e->witness, KL_S("failed")))
        return KL_S("derived again without sight of the walk, it failed");
    return KL_S("never derived forward");
}

/* Reaching the goal is not enough where controls reached it too. */
static kl_str standing(kl_arena *a, const kl_card *c) {
    const char *beside = c->n_controls ? ", none the better for it" : "";
    int held_out = 0, accepted = 0;
    for (int i = 0; i < c->n_trials; i++) {
        held_out += c->trials[i].held_out;
        accepted += c->trials[i].held_out && c->trials[i].accepted;
    }
    if (c->status != KL_CARD_REJECTED && c->status != KL_CARD_RETIRED)
        return KL_S("its card is a candidate that was not admitted yet");
    const char *word = c->status == KL_CARD_REJECTED ? "rejected" : "retired";
    return held_out ? kl_arena_printf(a, "its card was %s, %d of %d held-out trials accepted%s",
                                      word, accepted, held_out, beside)
                    : kl_arena_printf(a, "its card was %s, no held-out start fits it", word);
}

static kl_str why_not(kl_arena *a, const kl_library *l, const kl_card *born, kl_str group,
                      const kl_edge *e) {
    if (born) return standing(a, born);
    if (!group.len) return why_not_grouped(a, e);
    const kl_card *same = kl_library_card(l, group);
    if (same && same->status == KL_CARD_ADMITTED)
        return kl_arena_printf(a, "%.*s is admitted, and was lifted before this edge was there",
                               KL_STR_ARG(group));
    return kl_arena_printf(a, "not lifted yet: it would be %.*s", KL_STR_ARG(group));
}

void kl_library_coverage(kl_coverage **out, int *n, kl_arena *a, const kl_library *l,
                         const kl_lineage *lineages, int n_lineages) {
    kl_group *groups;
    int n_groups;
    *out = NULL;
    *n = 0;
    kl_skill_group(&groups, &n_groups, a, lineages, n_lineages);
    for (int i = 0; i < n_lineages; i++)
        for (int k = 0; k < lineages[i].n_edges; k++) {
            const kl_edge *edge = &lineages[i].edges[k];
            if (!edge->pays) continue;
            const kl_card *born = born_of(l, &lineages[i], edge);
            kl_coverage *row = KL_PUSH(a, *out, *n);
            *row = (kl_coverage){.lineage = &lineages[i], .edge = k, .card = born};
            if (!born || born->status != KL_CARD_ADMITTED)
                row->why = why_not(a, l, born, group_with(groups, n_groups, &lineages[i], k), edge);
            KL_ASSERT(row->why.len || row->card);
        }
}
