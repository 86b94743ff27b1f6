/* rederive.c - the forward edit of a step, found without sight of the kernel that it leads to.
 *
 * A fresh conversation sees the simpler kernel, the action and the locus.  What it makes must pass
 * the gate, bring the action's traits back, and be as fast as the kernel that the step came from
 * (KLineage paper, section 3.2). Where it makes the very kernel that the step came from, there is
 * nothing to compare. A step that does not pay has nothing to reach: one try, correctness and
 * traits alone; without success it is kept as a simplification.  Where nobody can derive (the
 * builtin provider) the backward edit is turned round, gated like any other, and marked as
 * mechanical.  SPDX-License-Identifier: Apache-2.0 */
#include "walk_impl.h"
#include <string.h>

/* Is one of the traits that the step took away there again? */
static void restored(kli_attempt *x, kli_walk *w, const kl_edge *edge, const kli_attempt *back) {
    kl_str word, again = kl_traits_raised(w->a, &back->state.traits, &x->state.traits);
    if (!edge->raised.len) return;
    while (kli_next_word(&word, &again))
        if (kli_words_have(edge->raised, word)) return;
    kli_reject(x, w, "not_restored", "it is correct, and none of these rose again: %.*s",
               KL_STR_ARG(edge->raised));
}

/* The very kernel that was to be reached: timing it against itself would measure the machine. */
static bool is_current(const kli_attempt *x, const kli_walk *w) {
    return kl_str_eq(x->state.hash, kl_str_of(w->current->hash));
}

static kl_err rederive_race(kli_pairwise *r, kli_attempt *x, kli_walk *w, kl_error *e) {
    const kl_err err = kli_compare(r, x, w, w->current, e);
    if (!err && kli_alive(x) && r->call == KL_DECISION_SLOWER && r->high < w->opts.recover)
        kli_reject(
            x, w, "not_recovered",
            "it is correct and runs at %.4f [%.4f, %.4f] of the speed that has to be reached",
            r->ratio, r->low, r->high);
    return err;
}

void kli_recovered(kl_edge *edge, const kli_pairwise *r) {
    KL_ASSERT(r->low <= r->ratio && r->ratio <= r->high);
    edge->recovered = r->ratio;
    edge->recovered_low = r->low;
    edge->recovered_high = r->high;
    edge->recovered_verdict_key = r->verdict_key;
    edge->recovered_receipt = r->receipt;
}

static void adopt(kl_edge *edge, kli_attempt *x, kli_walk *w, const kli_attempt *back,
                  const kli_pairwise *r) {
    KL_ASSERT(kli_correct(&x->verdict) && x->state.verdict_key.len); /* law 4 */
    x->accepted = true;
    edge->forward = kl_edits_between(w->a, back->state.source, x->state.source);
    edge->forward_hash = x->state.hash;
    edge->forward_source = x->state.source;
    edge->forward_verdict_key = x->state.verdict_key;
    edge->forward_receipt = x->state.receipt;
    edge->forward_ratio = x->state.ratio;
    edge->forward_low = x->state.low;
    edge->forward_high = x->state.high;
    kli_recovered(edge, r);
}

/* The recording has no answer to a time that cannot be told here; that it was fast enough then is
 * what counts. */
static void untold(kl_edge *edge, kli_walk *w, const kli_pairwise *r) {
    kli_mark_recorded(
        edge, w,
        kl_arena_printf(
            w->a,
            "undecided: %.4f [%.4f, %.4f] of the speed that has to be reached, A/A floor %.1f %%",
            r->ratio, r->low, r->high, 100 * r->noise));
}

/* From a proposed text to the edge's forward part, or a symptom.  `then`: what became of the try
 * when it was recorded. */
static kl_err prove(kl_edge *edge, kli_attempt *x, kli_walk *w, const kli_attempt *back,
                    kli_recorded then, kl_error *e) {
    kli_pairwise r = {0};
    if (kli_alive(x) && edge->pays) kli_prefetch_comparison(x, w, w->current);
    kl_err err = kli_alive(x) ? kli_judge(x, w, e) : KL_OK;
    if (!err && kli_alive(x)) restored(x, w, edge, back);
    if (!err && x->judged) kli_follow(edge, x, w, then);
    if (!err && kli_alive(x) && edge->pays && !is_current(x, w)) err = rederive_race(&r, x, w, e);
    if (!err && x->judged) kli_follow(edge, x, w, then);
    if (!err && kli_alive(x) && then == KLI_ACCEPTED && r.verdict_key.len &&
        r.call == KL_DECISION_UNDECIDED)
        untold(edge, w, &r);
    if (!err && kli_alive(x)) adopt(edge, x, w, back, &r);
    return err;
}

static kli_attempt *new_try(kli_walk *w) {
    kli_attempt *x = KL_NEW(w->a, kli_attempt);
    x->stage = "rederive";
    KL_ASSERT(w->n_tries < KLI_MAX_REDERIVE);
    w->tries[w->n_tries++] = x;
    return x;
}

static kl_err mechanical(kl_edge *edge, const kli_attempt *back, kli_walk *w, kl_error *e) {
    kl_error own = {0};
    kli_attempt *x = new_try(w);
    x->reply = kl_edits_between(w->a, back->state.source, w->current->source);
    kl_err err = kl_proposal_parse(&x->proposal, w->a, x->reply, w->surface, &own);
    if (!err) err = kl_proposal_apply(&x->source, w->a, back->state.source, &x->proposal, &own);
    if (err) kli_reject(x, w, "no_edit", "%s", own.message);
    x->proposal.action = back->proposal.action;
    x->proposal.locus = back->proposal.locus;
    edge->mechanical = true;
    return prove(edge, x, w, back, KLI_UNKNOWN, e); /* nobody was asked */
}

static kl_err derived(kl_edge *edge, kli_walk_dialog *talk, const kli_attempt *back, kli_walk *w,
                      kl_error *e) {
    kli_attempt *x = new_try(w);
    const kl_err err = kli_propose(x, talk, w, back->kernel, e);
    if (err) return w->n_tries--, kli_ends(w, err, e) ? KL_OK : err;
    if (kli_alive(x) && x->proposal.kind == KL_PROPOSAL_DONE)
        kli_reject(x, w, "no_edit",
                   "an edit was asked for, and the reply says that there is nothing to do");
    x->proposal.action = back->proposal.action; /* given, whatever the reply calls it */
    if (!x->proposal.locus.len) x->proposal.locus = back->proposal.locus;
    return prove(edge, x, w, back, kli_recorded_try(w), e);
}

/* No try brought the step back: without a forward edit only one that does not pay is kept, or one
 * that the recording kept. */
static void given_up(kl_edge *edge, kli_attempt *back, kli_walk *w) {
    const kli_recorded then = kli_recorded_step(w);
    const kl_str symptom =
        w->n_tries ? w->tries[w->n_tries - 1]->symptom : KL_S("nobody was asked to");
    edge->mechanical = false;
    if (edge->pays)
        edge->witness =
            w->n_tries ? KL_S("failed") : KL_S("none"); /* only a recording keeps such an edge */
    if (edge->pays) kli_reject(back, w, "not_rederived", "%.*s", KL_STR_ARG(symptom));
    kli_follow(edge, back, w, then);
    if (kli_alive(back)) return;
    back->advice = KL_S("The simpler kernel is correct, but this step could not be derived again "
                        "from it. Propose another step.");
    back->stage = "rederive";
}

kl_err kli_rederive(kl_edge *edge, kli_attempt *back, kli_walk *w, kl_error *e) {
    const bool by_model = !kli_is_mechanical(w);
    const int tries = by_model && edge->pays ? w->opts.max_rederive : 1;
    kli_walk_dialog talk = {0};
    kl_err err = KL_OK;
    w->n_tries = 0;
    if (w->opts.backward_only) return edge->witness = KL_S("none"), KL_OK;
    kl_track_phase(w->track, "rederive");
    if (by_model) kli_walk_dialog_open_rederive(&talk, w, back, edge);
    for (int i = 0; !err && !w->over && !edge->forward.len && kli_another_try(w, i, tries); i++) {
        if (i) kli_walk_dialog_rejected(&talk, w, w->tries[w->n_tries - 1]);
        err = by_model ? derived(edge, &talk, back, w, e) : mechanical(edge, back, w, e);
        if (err || w->over || edge->forward.len) continue;
        kl_track_log(w->track, "  re-derive: %.*s", KL_STR_ARG(w->tries[w->n_tries - 1]->symptom));
        kli_keep_rejection(w, w->tries[w->n_tries - 1]);
    }
    if (!err && !w->over && !edge->forward.len) given_up(edge, back, w);
    return err;
}
