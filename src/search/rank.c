/* rank.c - which of the cards that fit is tried first: by what the gain model expects here, and by
 * what this search has seen of their actions.
 *
 * Thompson sampling: each turn draws a gain for every card out of what is believed of it, and shows
 * the cards in the order of the draws.  So a card whose gain is uncertain comes up now and then,
 * and one that failed here falls.  A verdict weighs as one of PRIOR_TRIES that the model counts
 * for. The search stops where the best of what is expected is worth less than it costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "base/rng.h"
#include <math.h>

#define PRIOR_TRIES 4 /* that the model's word on success weighs */

const kl_policy_param kli_rank_params[] = {
    {"worth", 0, 0, 1e6, "dollars that e times the speed is worth; 0: no card is too dear"}, {0}};

kl_err kli_rank_open(kl_search *s, kl_error *e) {
    const bool ranks = s->policy->params == kli_rank_params && s->o.library->dir.len;
    return ranks ? kl_gain_load(&s->gain, s->arena, s->o.library->dir.ptr, e) : KL_OK;
}

static kli_belief *belief_of(kl_search *s, kl_str action) {
    for (int i = 0; i < s->n_beliefs; i++)
        if (kl_str_eq(s->beliefs[i].action, action)) return &s->beliefs[i];
    kli_belief *b = KL_PUSH(s->arena, s->beliefs, s->n_beliefs);
    *b = (kli_belief){.action = kl_arena_copy(s->arena, action)};
    return b;
}

/* What could not be told is no vote. */
void kli_rank_learn(kl_search *s, const kli_outcome *o) {
    const kl_card *card = kli_cards_named(s, o->proposal.card);
    const kl_str action = card ? card->action : o->proposal.action;
    if (!s->gain || !action.len || o->done || o->ended == KLI_UNDECIDED) return;
    kli_belief *b = belief_of(s, action);
    const bool gained = o->over.ratio > 1 && o->over.call == KL_DECISION_FASTER;
    b->gained += gained;
    b->failed += !gained;
    b->log_gain += gained ? log(o->over.ratio) : 0;
}

/* The model's word and the verdicts of this search together. */
static kl_expectation believed(const kl_expectation *prior, const kli_belief *b) {
    const double n = b->gained + b->failed;
    kl_expectation x = *prior;
    x.p = (PRIOR_TRIES * prior->p + b->gained) / (PRIOR_TRIES + n);
    x.log_gain = (prior->log_gain + b->log_gain) / (1 + b->gained);
    x.deviation = prior->deviation / sqrt(1 + b->gained);
    x.n = prior->n + (int)n;
    KL_ASSERT(x.p >= 0 && x.p <= 1);
    return x;
}

/* One possible truth: a share of successes, in log odds, and a gain. */
static kl_expectation draw(const kl_expectation *x, const kli_belief *b, kl_stream from) {
    const double tries = PRIOR_TRIES + b->gained + b->failed;
    const double yes = fmax(x->p * tries, 0.1), no = fmax((1 - x->p) * tries, 0.1);
    const double odds = log(yes / no) + (double)kli_stream_normal(from, 0) * sqrt(1 / yes + 1 / no);
    kl_expectation drawn = *x;
    drawn.p = 1 / (1 + exp(-odds));
    drawn.log_gain += (double)kli_stream_normal(from, 1) * x->deviation;
    return drawn;
}

/* Each turn has draws of its own, and a resumed one the same (law 9). */
static kl_stream stream_of(const kl_search *s, kl_str card) {
    const char *name =
        kl_arena_printf(s->arena, "rank/%d/%.*s", s->out->proposals, KL_STR_ARG(card)).ptr;
    return kli_stream_of(kl_track_seed(s->track, name), name);
}

static double drawn_value(const kl_expectation *x, double bound) {
    return x->p * fmax(0, fmin(x->log_gain, bound));
}

void kli_rank(kl_search *s, kl_match *m, int n, const kl_facts *f) {
    if (!s->gain) return;
    kl_gain_predict(m, n, s->gain, f);
    for (int i = 0; i < n; i++) {
        const kli_belief *b = belief_of(s, m[i].card->action);
        m[i].expected = believed(&m[i].expected, b);
        const kl_expectation drawn = draw(&m[i].expected, b, stream_of(s, m[i].card->name));
        m[i].score = drawn_value(&drawn, m[i].bound) / kl_match_price(&m[i]);
    }
    kl_matches_sort(m, n);
}

bool kli_rank_over(kl_search *s, const kl_match *m, int n) {
    const double worth = s->gain ? kli_search_param(s, "worth") : 0;
    bool pays = n == 0; /* without cards the model's own ideas go on */
    for (int i = 0; i < n && !pays; i++)
        pays = worth * kl_gain_value(&m[i].expected, m[i].bound) >= kl_match_price(&m[i]);
    if (worth <= 0 || pays) return false;
    s->out->stopped = KL_S("value");
    return true;
}
