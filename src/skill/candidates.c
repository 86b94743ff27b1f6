/* candidates.c - the cards that retrieval chooses from, each as little as choosing needs.
 *
 * A library that was loaded has its cards in memory; of one that was opened the index knows the
 * same in short.  Whoever chooses sees no difference.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <math.h>

bool kli_card_usable(const kl_card *c) { return c->status == KL_CARD_ADMITTED && !c->edited; }

int64_t kli_card_said_bytes(const kl_card *c) {
    return (int64_t)(c->carrier.len + c->intent.len + c->risks.len);
}

/* ---- sums -------------------------------------------------------------------------------- */

static double log_gain(const kl_trial_record *r) {
    return r->gain > 1 && r->accepted ? log(r->gain) : 0;
}

int kli_candidates_place(const kli_candidates *c, kl_str name) {
    for (int i = 0; i < c->n_places; i++)
        if (kl_str_eq(c->places[i], name)) return i + 1;
    return 0;
}

static int place_of(kli_candidates *places, kl_arena *a, const kl_trial_record *r) {
    const kl_str name =
        kl_arena_printf(a, "%.*s %.*s", KL_STR_ARG(r->surface), KL_STR_ARG(r->platform));
    const int known = kli_candidates_place(places, name);
    if (!known) *KL_PUSH(a, places->places, places->n_places) = name;
    return known ? known : places->n_places;
}

static kli_sum *sum_at(kli_sum **sums, int *n, kl_arena *a, int place) {
    for (int i = 0; i < *n; i++)
        if ((*sums)[i].place == place) return &(*sums)[i];
    kli_sum *s = KL_PUSH(a, *sums, *n);
    s->place = place;
    return s;
}

int kli_card_sums(kli_sum **out, kli_candidates *places, kl_arena *a, const kl_card *c) {
    int n = 0;
    *out = NULL;
    for (int i = 0; i < c->n_trials; i++) {
        if (!kl_trial_decided(&c->trials[i])) continue;
        kli_sum *s = sum_at(out, &n, a, place_of(places, a, &c->trials[i]));
        s->n++;
        s->log_gain += log_gain(&c->trials[i]);
    }
    KL_ASSERT(n <= c->n_trials && n <= places->n_places);
    return n;
}

/* Of those that may be used alone: what is expected stands in prompts, and candidates come and go
 * while a run is resumed (law 8). */
void kli_candidates_settle(kli_candidates *c) {
    double sum = 0;
    int64_t n = 0;
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < c->at[i].n_sums; j++) {
            sum += c->at[i].sums[j].log_gain;
            n += c->at[i].sums[j].n;
        }
    c->mean = n ? sum / (double)n : 0;
}

/* ---- candidates -------------------------------------------------------------------------- */

void kli_candidates_of(kli_candidates *out, kl_arena *a, const kl_library *l) {
    if (l->index) {
        *out = *kli_index_candidates(l->index);
        return;
    }
    *out = (kli_candidates){.at = KL_ARRAY(a, kli_candidate, l->n_cards + 1)};
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        kli_sum *sums;
        if (!kli_card_usable(c)) continue;
        const int n = kli_card_sums(&sums, out, a, c);
        out->at[out->n] = (kli_candidate){.name = c->name,
                                          .scope = out->n,
                                          .terms = out->n,
                                          .n_sums = n,
                                          .sums = sums,
                                          .bytes = kli_card_said_bytes(c),
                                          .card = c};
        out->n++;
    }
    KL_ASSERT(out->n <= l->n_cards);
    out->n_scopes = out->n_terms = out->n;
    kli_candidates_settle(out);
}

const kl_scope *kli_candidate_scope(const kli_candidates *c, int at) {
    KL_ASSERT(at >= 0 && at < c->n);
    return c->index ? kli_index_scope(c->index, c->at[at].scope) : &c->at[at].card->verified;
}

bool kli_candidates_cover(const kli_candidates *c, kl_str surface, kl_str action) {
    if (c->index) return kli_index_covers(c->index, surface, action);
    for (int i = 0; i < c->n; i++)
        if (kl_str_eq(c->at[i].card->action, action) &&
            kli_names_have(&c->at[i].card->verified.surfaces, surface))
            return true;
    return false;
}

const kl_card *kli_candidate_card(const kli_candidates *c, int at) {
    KL_ASSERT(at >= 0 && at < c->n);
    return c->index ? kli_index_card(c->index, at) : c->at[at].card;
}
