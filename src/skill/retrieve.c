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

static void similarities(double out[DIMENSIONS], const kl_scope *s, const kl_target *t) {
    out[CASE] = kli_names_have(&s->cases, t->case_name);
    out[SURFACE] = kli_names_have(&s->surfaces, t->surface);
    out[PLATFORM] = best_platform(s, t->platform);
    out[PRIOR] = prior_similarity(s, t->prior);
}

/* ---- expected gain ----------------------------------------------------------------------- */

/* Trials on the target's own platform and language (`here`) weigh in full, others half. */
static double expected(const kli_candidate *c, int here, double prior) {
    double sum = SHRINK * prior, weight = SHRINK;
    for (int i = 0; i < c->n_sums; i++) {
        const double w = c->sums[i].place == here ? 1 : 0.5;
        sum += w * c->sums[i].log_gain;
        weight += w * c->sums[i].n;
    }
    KL_ASSERT(weight >= SHRINK);
    return sum / weight;
}

static double retrieve_cost_of(const kli_candidate *c) {
    const double tokens =
        TOKENS_PER_ATTEMPT + (double)c->bytes / 4 / 10; /* cached input: a tenth */
    return tokens * DOLLARS_PER_TOKEN;
}

/* ---- fit --------------------------------------------------------------------------------- */

/* A card of another language: its idea may carry over, its code does not. */
static bool foreign(const kl_card *c, const kl_target *t) {
    return t->surface.len && c->verified.surfaces.n &&
           !kli_names_have(&c->verified.surfaces, t->surface);
}

/* What cards of one scope share: looked at once. */
typedef struct {
    bool seen;
    double similarity[DIMENSIONS];
} seen_scope;

/* One retrieval. */
typedef struct {
    const kl_target *target;
    kli_candidates from;
    kl_arena *scratch;
    seen_scope *scopes;
    kli_screen *screen; /* NULL: each is asked itself */
    int here;           /* place of the target */
    bool all;
} retrieval;

static const double *similar(retrieval *r, int at) {
    seen_scope *s = &r->scopes[r->from.at[at].scope];
    if (!s->seen) similarities(s->similarity, kli_candidate_scope(&r->from, at), r->target);
    s->seen = true;
    return s->similarity;
}

/* A card of another surface whose contract holds here: an idea, unless one of ours has it. */
static void judge_foreign(kl_match *m, const retrieval *r, kl_arena *a) {
    const kl_str home = m->card->verified.surfaces.at[0], here = r->target->surface;
    const bool asked = kl_card_has_contract(m->card);
    const bool holds = m->fit == KL_FIT_MET;
    m->intent = true;
    if (holds && asked && kli_candidates_cover(&r->from, here, m->card->action)) {
        m->fit = KL_FIT_VIOLATED;
        m->why = kl_arena_printf(a, "refused, it is of %.*s, and a card of %.*s does the same",
                                 KL_STR_ARG(home), KL_STR_ARG(here));
    } else if (holds) {
        m->fit = KL_FIT_UNKNOWN;
        m->why = kl_arena_printf(
            a, "verified for %.*s alone: its idea may carry over, its code does not",
            KL_STR_ARG(home));
    } else if (asked) {
        m->fit = KL_FIT_VIOLATED; /* nobody offers an idea of which it is not known that it fits */
    }
}

/* Of `card`: fit, why and intent. */
static void judge_fit(kl_match *m, const retrieval *r, kl_arena *a) {
    const bool other = foreign(m->card, r->target);
    m->fit = other && kl_card_has_contract(m->card) /* what its carrier needs is its own */
                 ? kli_contract_fits(m->card, r->target, a, &m->why)
                 : kli_card_fits(m->card, r->target, a, &m->why);
    if (other) judge_foreign(m, r, a);
}

static bool violated(retrieval *r, int at) {
    kl_match m = {.card = r->from.at[at].card};
    if (r->all) return false;
    if (r->screen) return kli_screen_refuses(r->screen, at);
    judge_fit(&m, r, r->scratch);
    return m.fit == KL_FIT_VIOLATED;
}

/* ---- the best of each dimension ---------------------------------------------------------- */

typedef struct {
    double similarity, gain;
    kl_str name;
    int at;
} ranked;

static int by_rank(const void *x, const void *y) {
    const ranked *a = x, *b = y;
    if (a->similarity != b->similarity) return a->similarity < b->similarity ? 1 : -1;
    if (a->gain != b->gain) return a->gain < b->gain ? 1 : -1;
    return strcmp(a->name.ptr, b->name.ptr);
}

/* The best `top` of a stream: room for twice as many, cut when full.  After the first cut the last
 * of the kept ones is a bound: what is behind it can never come in. */
typedef struct {
    ranked *at;
    int n, top;
    bool bounded;
} best_of;

static void cut_best(best_of *b) {
    if (b->n) qsort(b->at, (size_t)b->n, sizeof *b->at, by_rank);
    b->bounded |= b->n >= b->top;
    if (b->n > b->top) b->n = b->top;
}

static bool may_enter(const best_of *b, const ranked *r) {
    return r->similarity > 0 && (!b->bounded || by_rank(r, &b->at[b->top - 1]) < 0);
}

static void enter(best_of *b, const ranked *r) {
    KL_ASSERT(b->n < 2 * b->top);
    b->at[b->n++] = *r;
    if (b->n == 2 * b->top) cut_best(b);
}

/* A violated contract keeps a card out before it takes a place; it is looked at only where the card
 * would take one. */
static void offer(retrieval *r, best_of dimensions[DIMENSIONS], int at) {
    const kli_candidate *c = &r->from.at[at];
    const double gain = expected(c, r->here, r->from.mean), *similarity = similar(r, at);
    bool asked = false;
    for (int d = 0; d < DIMENSIONS; d++) {
        const ranked mine = {similarity[d], gain, c->name, at};
        if (!may_enter(&dimensions[d], &mine)) continue;
        if (!asked && violated(r, at)) return;
        asked = true;
        enter(&dimensions[d], &mine);
    }
}

/* Marks the union of the best of each dimension; how many. */
static int mark_union(bool *chosen, retrieval *r, int top) {
    best_of dimensions[DIMENSIONS];
    int n = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        dimensions[d] = (best_of){.at = KL_ARRAY(r->scratch, ranked, 2 * top), .top = top};
    for (int i = 0; i < r->from.n; i++) offer(r, dimensions, i);
    for (int d = 0; d < DIMENSIONS; d++) {
        cut_best(&dimensions[d]);
        for (int i = 0; i < dimensions[d].n; i++) {
            n += !chosen[dimensions[d].at[i].at];
            chosen[dimensions[d].at[i].at] = true;
        }
    }
    KL_ASSERT(n <= r->from.n);
    return n;
}

/* ---- choose ------------------------------------------------------------------------------ */

static int by_score(const void *x, const void *y) {
    const kl_match *a = x, *b = y;
    if (a->intent != b->intent) return a->intent ? 1 : -1;
    if (a->fit != b->fit) return (int)a->fit - (int)b->fit;
    if ((a->similarity[SURFACE] > 0) != (b->similarity[SURFACE] > 0))
        return a->similarity[SURFACE] > 0 ? -1 : 1;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return strcmp(a->card->name.ptr, b->card->name.ptr);
}

void kl_matches_sort(kl_match *m, int n) {
    if (n) qsort(m, (size_t)n, sizeof *m, by_score);
}

/* What is said of a card comes from the card itself: false when it is gone, or does not fit as it
 * is now. */
static bool match_of(kl_match *m, retrieval *r, kl_arena *a, int at) {
    const kli_candidate *c = &r->from.at[at];
    *m = (kl_match){.card = kli_candidate_card(&r->from, at),
                    .expected_log_gain = expected(c, r->here, r->from.mean),
                    .cost_usd = retrieve_cost_of(c)};
    if (!m->card) return false;
    judge_fit(m, r, a);
    similarities(m->similarity, &m->card->verified, r->target);
    KL_ASSERT(m->cost_usd > 0);
    m->score = m->expected_log_gain / m->cost_usd;
    return r->all || m->fit != KL_FIT_VIOLATED;
}

void kl_library_retrieve(kl_match **out, int *n, kl_arena *a, const kl_library *l,
                         const kl_target *target, const kl_retrieve_opts *o) {
    retrieval r = {.target = target, .scratch = kl_arena_new(), .all = o && o->all};
    kli_candidates_of(&r.from, r.scratch, l);
    const int cards = r.from.n, asked = o && o->top ? o->top : 4,
              top = asked < cards ? asked : cards;
    const kl_str here = kl_arena_printf(r.scratch, "%.*s %.*s", KL_STR_ARG(target->surface),
                                        KL_STR_ARG(target->platform));
    r.here = kli_candidates_place(&r.from, here);
    r.scopes = KL_ARRAY(r.scratch, seen_scope, r.from.n_scopes + 1);
    if (r.from.index) r.screen = kli_screen_new(r.scratch, &r.from, target);
    bool *chosen = KL_ARRAY(r.scratch, bool, cards + 1);
    const int most = cards ? mark_union(chosen, &r, top) : 0;
    *n = 0;
    *out = KL_ARRAY(a, kl_match, most + 1);
    for (int i = 0; i < cards; i++)
        if (chosen[i]) *n += match_of(&(*out)[*n], &r, a, i);
    KL_ASSERT(*n <= most);
    kl_matches_sort(*out, *n);
    kl_arena_free(r.scratch);
}

/* ---- the shelf of a surface -------------------------------------------------------------- */

static int by_name(const void *x, const void *y) {
    return strcmp((*(const kl_card *const *)x)->name.ptr, (*(const kl_card *const *)y)->name.ptr);
}

int kl_library_of_surface(const kl_card ***out, kl_arena *a, const kl_library *l, kl_str surface,
                          int most) {
    kl_arena *scratch = kl_arena_new();
    kli_candidates from;
    int n = 0;
    kli_candidates_of(&from, scratch, l);
    best_of best = {.at = KL_ARRAY(scratch, ranked, 2 * most), .top = most};
    for (int i = 0; i < from.n; i++) {
        const bool here = kli_names_have(&kli_candidate_scope(&from, i)->surfaces, surface);
        const ranked mine = {here, expected(&from.at[i], 0, from.mean), from.at[i].name, i};
        if (may_enter(&best, &mine)) enter(&best, &mine);
    }
    cut_best(&best);
    *out = KL_ARRAY(a, const kl_card *, best.n + 1);
    for (int i = 0; i < best.n; i++) {
        const kl_card *c = kli_candidate_card(&from, best.at[i].at);
        if (c) (*out)[n++] = c;
    }
    if (n) qsort(*out, (size_t)n, sizeof **out, by_name);
    kl_arena_free(scratch);
    return n;
}
