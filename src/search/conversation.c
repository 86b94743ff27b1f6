/* conversation.c - policies klineage and generate: one append-only conversation, the kernel
 * improved step by step.
 *
 * klineage, source: KLineage paper, section 3.4.  Cards are retrieved by scope and contract; a line
 * of each card of the surface stands in front, the same for all tasks, so that the provider's cache
 * holds it for every track, and every turn shows the few that fit the kernel best as it is now. The
 * whole of a card is shown when the model asks for it.  A card whose patch applies verbatim is
 * tried first, for nothing. Deviation from the release: the model chooses among the cards that fit,
 * best expected gain per dollar first, instead of being dealt one card a step.
 *
 * generate: the same without a library: what the model knows by itself (paper, section 4.4,
 * "generated-only").
 *
 * A correct kernel that is a little slower may become current, as a preparation; two in a row
 * without a new best go back to the best. SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"

#define PREPARATION 0.85 /* a correct kernel this close to current may become current */
#define MAX_PREPARATIONS 2

/* A search and its conversation. */
typedef struct {
    kl_search *s;
    kli_search_dialog talk;
    kli_point current;
    int since_accepted;
    kl_str prior; /* actions that are part of `current`, separated by spaces */
    kl_str cards; /* cards likewise */
    kl_str best_prior, best_cards;
} conversation;

static void conversation_say(conversation *c, kl_role role, kl_str text) {
    kli_search_dialog_add(&c->talk, c->s->arena, role, text);
}

/* ---- turns ------------------------------------------------------------------------------- */

/* The surface's rules, and behind them the library: both stay the same for the whole conversation.
 */
static kl_str conversation_system_text(kl_search *s) {
    kl_str rules = kli_search_rules(s), library = kli_cards_text(s);
    return library.len
               ? kl_arena_printf(s->arena, "%.*s\n%.*s", KL_STR_ARG(rules), KL_STR_ARG(library))
               : rules;
}

static kl_str fitting_text(conversation *c) {
    return kli_cards_fitting(c->s, &c->current, c->prior, &c->talk);
}

static kl_str conversation_memory_text(conversation *c) {
    if (!c->s->o.library) return KL_S("Nothing was handed down: use what you know.");
    if (kli_shown(c->s) != KLI_SHOW_FITTING)
        return kl_prompt(c->s->arena, "search_given_turn", NULL, 0);
    kl_prompt_value values[] = {{"cards", fitting_text(c)}};
    return kl_prompt(c->s->arena, "search_cards", values, 1);
}

static void open_conversation(conversation *c) {
    kl_prompt_value memory[] = {{"memory", conversation_memory_text(c)}};
    conversation_say(c, KL_ROLE_SYSTEM, conversation_system_text(c->s));
    conversation_say(c, KL_ROLE_USER, kli_search_prompt(c->s, "generate", &c->current, memory, 1));
}

/* `returned`: current went back to the best, so the model is shown its text again. */
static kl_str next_text(conversation *c, bool returned) {
    kl_search *s = c->s;
    kl_str again = KL_S(""), cards = KL_S("");
    if (returned)
        again = kl_arena_printf(
            s->arena, "\nThe current kernel is the best one again:\n\n```%.*s\n%.*s\n```\n",
            KL_STR_ARG(kli_search_tag(s)), KL_STR_ARG(s->best.kernel->source));
    if (s->o.library && kli_shown(s) == KLI_SHOW_FITTING)
        cards = kl_arena_printf(s->arena, "\nCards by the kernel as it is now:\n\n%.*s",
                                KL_STR_ARG(fitting_text(c)));
    kl_prompt_value values[] = {{"cards", cards}, {"kernel", again}};
    return kl_prompt(s->arena, "search_next", values, (int)KL_COUNT(values));
}

static void next_turn(conversation *c, const kli_outcome *o, bool returned) {
    kl_search *s = c->s;
    kl_prompt_value values[] = {
        {"outcome", kl_str_of(kli_step_result_words(o->ended))},
        {"feedback", kl_arena_printf(s->arena, "%.*s%.*s", KL_STR_ARG(o->feedback),
                                     KL_STR_ARG(kli_search_limits(s, &o->point)))},
        {"state", kl_arena_printf(s->arena, "Current: %.*s\nBest: %.*s",
                                  KL_STR_ARG(kli_search_describe(s, &c->current)),
                                  KL_STR_ARG(kli_search_describe(s, &s->best)))},
        {"next", next_text(c, returned)}};
    conversation_say(c, KL_ROLE_ASSISTANT, o->reply);
    conversation_say(c, KL_ROLE_USER, kl_prompt(s->arena, "step", values, (int)KL_COUNT(values)));
}

/* The model asked for a card instead of proposing. */
static void fetched_turn(conversation *c, const kli_outcome *o) {
    kl_track_log(c->s->track, "shown whole: card %.*s", KL_STR_ARG(o->fetch));
    conversation_say(c, KL_ROLE_ASSISTANT, o->reply);
    conversation_say(c, KL_ROLE_USER, kli_cards_fetched(c->s, o->fetch));
}

/* ---- what becomes current ---------------------------------------------------------------- */

static void advance(conversation *c, const kli_outcome *o) {
    c->current = o->point;
    c->prior = kli_with_word(c->s->arena, c->prior, o->proposal.action);
    if (kli_cards_named(c->s, o->proposal.card))
        c->cards = kli_with_word(c->s->arena, c->cards, o->proposal.card);
}

/* Returns whether current went back to the best. */
static bool conversation_settle(conversation *c, const kli_outcome *o) {
    if (o->ended == KLI_BETTER) {
        advance(c, o);
        c->best_prior = c->prior;
        c->best_cards = c->cards;
        return c->since_accepted = 0, false;
    }
    bool preparation =
        o->ended >= KLI_UNDECIDED && o->point.ratio >= PREPARATION * c->current.ratio;
    if (preparation) advance(c, o);
    if (c->current.kernel == c->s->best.kernel || ++c->since_accepted <= MAX_PREPARATIONS)
        return false;
    c->current = c->s->best;
    c->prior = c->best_prior;
    c->cards = c->best_cards;
    return c->since_accepted = 0, true;
}

/* ---- patches ----------------------------------------------------------------------------- */

/* Before the first question, for nothing: of the fitting cards' patches, best first, until one is a
 * new best. */
static kl_err try_patches(conversation *c, kl_error *e) {
    kl_match *m;
    int n = kli_cards_match(c->s, &m, &c->current, c->prior);
    for (int i = 0; i < n; i++) {
        kli_outcome o = {0};
        kl_str source;
        if (!kli_cards_patch(c->s, &o, &source, &c->current, m[i].card)) continue;
        kl_err err = kli_search_gate(c->s, &o, source, &c->current, m[i].card->name, e);
        if (err) return err;
        if (o.ended == KLI_BETTER) return conversation_settle(c, &o), KL_OK;
    }
    return KL_OK;
}

/* ---- the line ---------------------------------------------------------------------------- */

static kl_err turn(conversation *c, bool *done, kl_error *e) {
    kli_outcome o;
    kl_search *s = c->s;
    kl_track_phase(s->track, s->since_best ? "repair" : "materialize");
    kl_track_log(s->track, "asking for step %d", s->out->proposals + 1);
    const kl_err err = kli_search_propose(
        s, &o, &c->talk, s->o.library ? "materialize" : "generate", &c->current, e);
    if (err) return err;
    *done = o.done;
    if (o.fetch.len)
        fetched_turn(c, &o);
    else if (!o.done)
        next_turn(c, &o, conversation_settle(c, &o));
    return KL_OK;
}

/* Is no card worth its price any more?  Asked where cards are ranked by the gain model alone. */
static bool too_dear(conversation *c) {
    kl_match *m;
    if (!c->s->gain) return false;
    const int n = kli_cards_match(c->s, &m, &c->current, c->prior);
    return kli_rank_over(c->s, m, n);
}

/* generate is the same line without a library. */
kl_err kli_policy_klineage(kl_search *s, kl_error *e) {
    conversation c = {.s = s, .current = s->start};
    bool done = false;
    s->may_fetch = s->o.library && kli_shown(s) == KLI_SHOW_FITTING;
    kl_err err = s->o.arm ? KL_OK : try_patches(&c, e);
    if (!err) open_conversation(&c);
    while (!err && !done && !kli_search_over(s) && !too_dear(&c)) err = turn(&c, &done, e);
    if (done) s->out->stopped = KL_S("model says done");
    s->out->cards = c.best_cards;
    return err;
}
