/* retrieve.c - which cards fit a target, best first.
 *
 * Source: KLineage paper, section 3.4: the union of the top-k of each dimension (case, language,
 * platform, prior actions), over verified scope, among the cards whose contract holds: surface,
 * operator, stage and not-there-already are a conjunction.  Then expected log-gain per dollar.
 * A card's carrier belongs to its surface; elsewhere it is an intent, offered behind all others
 * where its contract holds and no card of this surface has its action.  The gain is an
 * empirical-Bayes estimate: outcomes of a card are shrunk towards the mean of all cards, the more
 * the fewer there are; a failed trial counts as no gain, and one that could not be measured not at
 * all.  Gains of several cards are never multiplied.  What is not here: any opinion on whether to
 * apply; the gate has it.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASE, SURFACE, PLATFORM, PRIOR, DIMENSIONS };

#define SHRINK 2.0              /* trials that the prior weighs: two of a card's own outweigh it */
#define TOKENS_PER_ATTEMPT 3000 /* output of one proposal, the dearest part */
#define DOLLARS_PER_TOKEN                                                                          \
    25e-6 /* of output, the paper's backbone; only the order of cards depends on it */

/* ---- similarity -------------------------------------------------------------------------- */

/* Shared beginning of two platform names, in parts: same all 1, same architecture 2/3, same vendor
 * 1/3. */
static double platform_similarity(kl_str a, kl_str b) {
    if (kl_str_eq(a, b)) return 1;
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n] && a.ptr[n] != '/') n++;
    bool arch = n < a.len && n < b.len && a.ptr[n] == '/' && b.ptr[n] == '/';
    return arch ? 2.0 / 3 : n >= 3 ? 1.0 / 3 : 0;
}

static double best_platform(const kl_scope *s, kl_str platform) {
    double best = 0;
    for (int i = 0; i < s->platforms.n; i++)
        best = fmax(best, platform_similarity(s->platforms.at[i], platform));
    return best;
}

/* Jaccard over the actions that came before. */
static double prior_similarity(const kl_scope *s, kl_str prior) {
    int n = 0, both = 0;
    for (kl_str w, rest = prior; kli_next_word(&w, &rest);) {
        if (kli_words_have(kli_between(prior.ptr, w.ptr), w))
            continue; /* an action applied twice is one action */
        both += kli_names_have(&s->prior, w);
        n++;
    }
    int either = n + s->prior.n - both;
    return either ? (double)both / either : 1;
}

static void similarities(kl_match *m, const kl_target *t) {
    const kl_scope *s = &m->card->verified;
    m->similarity[CASE] = kli_names_have(&s->cases, t->case_name);
    m->similarity[SURFACE] = kli_names_have(&s->surfaces, t->surface);
    m->similarity[PLATFORM] = best_platform(s, t->platform);
    m->similarity[PRIOR] = prior_similarity(s, t->prior);
}

/* ---- expected gain ----------------------------------------------------------------------- */

static double log_gain(const kl_trial_record *r) {
    return r->gain > 1 && r->accepted ? log(r->gain) : 0;
}

static bool retrieve_usable(const kl_card *c) {
    return c->status == KL_CARD_ADMITTED && !c->edited;
}

/* Of those that may be used alone: what is expected stands in prompts, and candidates come and go
 * while a run is resumed (law 8). */
static double mean_of_all(const kl_library *l) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < l->n_cards; i++)
        for (int j = 0; retrieve_usable(&l->cards[i]) && j < l->cards[i].n_trials; j++) {
            const kl_trial_record *r = &l->cards[i].trials[j];
            if (!kl_trial_decided(r)) continue;
            sum += log_gain(r);
            n++;
        }
    return n ? sum / n : 0;
}

/* Trials on the target's own platform and language weigh in full, others half. */
static double expected(const kl_card *c, const kl_target *t, double prior) {
    double sum = SHRINK * prior, weight = SHRINK;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (!kl_trial_decided(r)) continue;
        double w =
            kl_str_eq(r->platform, t->platform) && kl_str_eq(r->surface, t->surface) ? 1 : 0.5;
        sum += w * log_gain(r);
        weight += w;
    }
    KL_ASSERT(weight >= SHRINK);
    return sum / weight;
}

static double retrieve_cost_of(const kl_card *c) {
    double tokens = TOKENS_PER_ATTEMPT + (double)(c->carrier.len + c->intent.len + c->risks.len) /
                                             4 / 10; /* cached input: a tenth */
    return tokens * DOLLARS_PER_TOKEN;
}

/* ---- choose ------------------------------------------------------------------------------ */

static _Thread_local int sort_dimension; /* qsort has no context */

static int by_dimension(const void *x, const void *y) {
    const kl_match *a = x, *b = y;
    double da = a->similarity[sort_dimension], db = b->similarity[sort_dimension];
    if (da != db) return da < db ? 1 : -1;
    if (a->expected_log_gain != b->expected_log_gain)
        return a->expected_log_gain < b->expected_log_gain ? 1 : -1;
    return strcmp(a->card->name.ptr, b->card->name.ptr);
}

/* A card of another language: its idea may carry over, its code does not. */
static bool foreign(const kl_card *c, const kl_target *t) {
    return t->surface.len && c->verified.surfaces.n &&
           !kli_names_have(&c->verified.surfaces, t->surface);
}

static int by_score(const void *x, const void *y) {
    const kl_match *a = x, *b = y;
    if (a->intent != b->intent) return a->intent ? 1 : -1;
    if (a->fit != b->fit) return (int)a->fit - (int)b->fit;
    if ((a->similarity[SURFACE] > 0) != (b->similarity[SURFACE] > 0))
        return a->similarity[SURFACE] > 0 ? -1 : 1;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return strcmp(a->card->name.ptr, b->card->name.ptr);
}

/* Mark the top-k of each dimension that are similar at all. */
static void mark_union(bool *chosen, const kl_card *first, kl_match *m, int n, int top) {
    for (sort_dimension = 0; sort_dimension < DIMENSIONS; sort_dimension++) {
        qsort(m, (size_t)n, sizeof *m, by_dimension);
        for (int i = 0; i < n && i < top; i++)
            if (m[i].similarity[sort_dimension] > 0) chosen[m[i].card - first] = true;
    }
}

/* Does a card of the target's own surface do the same? */
static bool is_covered(const kl_library *l, const kl_card *c, const kl_target *t) {
    for (int i = 0; i < l->n_cards; i++)
        if (retrieve_usable(&l->cards[i]) && !foreign(&l->cards[i], t) &&
            kl_str_eq(l->cards[i].action, c->action))
            return true;
    return false;
}

/* A card of another surface whose contract holds here: an idea, unless one of ours has it. */
static void judge_foreign(kl_match *m, kl_arena *a, const kl_library *l, const kl_target *t) {
    const kl_str home = m->card->verified.surfaces.at[0];
    const bool asked = kl_card_has_contract(m->card);
    const bool holds = m->fit == KL_FIT_MET;
    m->intent = true;
    if (holds && asked && is_covered(l, m->card, t)) {
        m->fit = KL_FIT_VIOLATED;
        m->why = kl_arena_printf(a, "refused, it is of %.*s, and a card of %.*s does the same",
                                 KL_STR_ARG(home), KL_STR_ARG(t->surface));
    } else if (holds) {
        m->fit = KL_FIT_UNKNOWN;
        m->why = kl_arena_printf(
            a, "verified for %.*s alone: its idea may carry over, its code does not",
            KL_STR_ARG(home));
    } else if (asked) {
        m->fit = KL_FIT_VIOLATED; /* nobody offers an idea of which it is not known that it fits */
    }
}

static int usable_ones(kl_match *m, kl_arena *a, const kl_library *l, const kl_target *t) {
    double prior = mean_of_all(l);
    int n = 0;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        if (!retrieve_usable(c)) continue;
        m[n] = (kl_match){
            .card = c, .expected_log_gain = expected(c, t, prior), .cost_usd = retrieve_cost_of(c)};
        if (foreign(c, t) && kl_card_has_contract(c)) {
            m[n].fit =
                kli_contract_fits(c, t, a, &m[n].why); /* what its carrier needs is its own */
        } else {
            m[n].fit = kli_card_fits(c, t, a, &m[n].why);
        }
        if (foreign(c, t)) judge_foreign(&m[n], a, l, t);
        KL_ASSERT(m[n].cost_usd > 0);
        m[n].score = m[n].expected_log_gain / m[n].cost_usd;
        similarities(&m[n], t);
        n++;
    }
    return n;
}

void kl_library_retrieve(kl_match **out, int *n, kl_arena *a, const kl_library *l,
                         const kl_target *target, const kl_retrieve_opts *o) {
    kl_match *all = KL_ARRAY(a, kl_match, l->n_cards + 1),
             *kept = KL_ARRAY(a, kl_match, l->n_cards + 1);
    bool *chosen = KL_ARRAY(a, bool, l->n_cards + 1);
    int top = o && o->top ? o->top : 4, total = usable_ones(all, a, l, target);
    /* Violated contracts drop out before the ranking, so that they do not take places. */
    int m = 0;
    for (int i = 0; i < total; i++)
        if (all[i].fit != KL_FIT_VIOLATED || (o && o->all)) kept[m++] = all[i];
    mark_union(chosen, l->cards, kept, m, top);
    KL_ASSERT(m <= total && total <= l->n_cards);
    *n = 0;
    *out = all;
    for (int i = 0; i < m; i++)
        if (chosen[kept[i].card - l->cards]) all[(*n)++] = kept[i];
    qsort(all, (size_t)*n, sizeof *all, by_score);
}
