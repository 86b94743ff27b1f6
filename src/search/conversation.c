/* conversation.c - policies klineage and generate: one append-only conversation, the kernel
 * improved step by step.
 *
 * klineage, source: KLineage paper, section 3.4.  Cards are retrieved by scope and contract; those
 * that could come into play stand in front, so that the provider's cache holds them, and every turn
 * says which of them fit the kernel as it is now.  A card whose patch applies verbatim is tried
 * first, for nothing. Deviation from the release: the model chooses among the cards that fit, best
 * expected gain per dollar first, instead of being dealt one card a step.
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
    kli_search s;
    kli_search_dialog talk;
    kli_point current;
    int since_accepted;
    kl_str prior; /* actions that are part of `current`, separated by spaces */
    kl_str cards; /* cards likewise */
    kl_str best_prior, best_cards;
} conversation;

static void conversation_say(conversation *c, kl_role role, kl_str text) {
    kli_search_dialog_add(&c->talk, c->s.arena, role, text);
}

/* ---- turns ------------------------------------------------------------------------------- */

/* The surface's rules, and behind them the library: both stay the same for the whole conversation.
 */
static kl_str conversation_system_text(kli_search *s) {
    kl_str rules = kli_search_rules(s), library = kli_cards_text(s);
    return library.len
               ? kl_arena_printf(s->arena, "%.*s\n%.*s", KL_STR_ARG(rules), KL_STR_ARG(library))
               : rules;
}

/* Which cards fit now, and the text of those that were not among the ones in front, which are the
 * likeliest at the start. */
static kl_str fitting_text(conversation *c) {
    kl_str lines = kli_cards_fitting(&c->s, &c->current, c->prior);
    kl_str texts = kli_cards_unsaid(&c->s, &c->current, c->prior, &c->talk);
    return kl_arena_printf(c->s.arena, "%.*s%.*s", KL_STR_ARG(lines), KL_STR_ARG(texts));
}

static kl_str conversation_memory_text(conversation *c) {
    if (!c->s.o->library) return KL_S("Nothing was handed down: use what you know.");
    kl_prompt_value values[] = {{"cards", fitting_text(c)}};
    return kl_prompt(c->s.arena, "search_cards", values, 1);
}

static void open_conversation(conversation *c) {
    kli_search *s = &c->s;
    conversation_say(c, KL_ROLE_SYSTEM, conversation_system_text(s));
    kl_prompt_value values[] = {{"task", kli_search_task(s)},
                                {"tag", kli_search_tag(s)},
                                {"kernel", c->current.kernel->source},
                                {"feedback", kl_rewrite_feedback(s->arena, &c->current.verdict)},
                                {"memory", conversation_memory_text(c)}};
    conversation_say(c, KL_ROLE_USER,
                     kl_prompt(s->arena, "generate", values, (int)KL_COUNT(values)));
}

/* `returned`: current went back to the best, so the model is shown its text again. */
static kl_str next_text(conversation *c, bool returned) {
    kli_search *s = &c->s;
    kl_str again = KL_S(""), cards = KL_S("");
    if (returned)
        again = kl_arena_printf(
            s->arena, "\nThe current kernel is the best one again:\n\n```%.*s\n%.*s\n```\n",
            KL_STR_ARG(kli_search_tag(s)), KL_STR_ARG(s->best.kernel->source));
    if (s->o->library)
        cards = kl_arena_printf(s->arena, "\nCards by the kernel as it is now:\n\n%.*s",
                                KL_STR_ARG(fitting_text(c)));
    kl_prompt_value values[] = {{"cards", cards}, {"kernel", again}};
    return kl_prompt(s->arena, "search_next", values, (int)KL_COUNT(values));
}

static void next_turn(conversation *c, const kl_reply *reply, const kli_outcome *o, bool returned) {
    kli_search *s = &c->s;
    kl_prompt_value values[] = {
        {"outcome", kl_str_of(kli_step_result_words(o->ended))},
        {"feedback", o->feedback},
        {"state", kl_arena_printf(s->arena, "Current: %.*s\nBest: %.*s",
                                  KL_STR_ARG(kli_search_describe(s, &c->current)),
                                  KL_STR_ARG(kli_search_describe(s, &s->best)))},
        {"next", next_text(c, returned)}};
    conversation_say(c, KL_ROLE_ASSISTANT, reply->text);
    conversation_say(c, KL_ROLE_USER, kl_prompt(s->arena, "step", values, (int)KL_COUNT(values)));
}

/* ---- what becomes current ---------------------------------------------------------------- */

static void advance(conversation *c, const kli_outcome *o) {
    c->current = o->point;
    c->prior = kli_with_word(c->s.arena, c->prior, o->proposal.action);
    if (kli_cards_named(&c->s, o->proposal.card))
        c->cards = kli_with_word(c->s.arena, c->cards, o->proposal.card);
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
    if (c->current.kernel == c->s.best.kernel || ++c->since_accepted <= MAX_PREPARATIONS)
        return false;
    c->current = c->s.best;
    c->prior = c->best_prior;
    c->cards = c->best_cards;
    return c->since_accepted = 0, true;
}

/* ---- patches ----------------------------------------------------------------------------- */

/* A card's patch as a proposal for the current kernel; false when it does not apply verbatim. */
static bool conversation_patched(conversation *c, kli_outcome *o, kl_str *source,
                                 const kl_card *card) {
    kli_search *s = &c->s;
    if (!card->patch.len ||
        kl_proposal_parse(&o->proposal, s->arena, card->patch, s->o->start->surface,
                          kl_ignored()) ||
        kl_proposal_apply(source, s->arena, c->current.kernel->source, &o->proposal, kl_ignored()))
        return false;
    o->proposal.card = card->name;
    o->proposal.action = card->action;
    return true;
}

/* Before the first question, for nothing: of the fitting cards' patches, best first, until one is a
 * new best. */
static kl_err try_patches(conversation *c, kl_error *e) {
    kl_match *m;
    int n = kli_cards_match(&c->s, &m, &c->current, c->prior);
    for (int i = 0; i < n; i++) {
        kli_outcome o = {0};
        kl_str source;
        if (!conversation_patched(c, &o, &source, m[i].card)) continue;
        kl_err err = kli_search_gate(&c->s, &o, source, &c->current, m[i].card->name, e);
        if (err) return err;
        if (o.ended == KLI_BETTER) return conversation_settle(c, &o), KL_OK;
    }
    return KL_OK;
}

/* ---- the line ---------------------------------------------------------------------------- */

static kl_err turn(conversation *c, bool *done, kl_error *e) {
    kl_reply reply;
    kli_outcome o;
    kli_search *s = &c->s;
    kl_track_phase(s->track, s->since_best ? "repair" : "materialize");
    kl_track_log(s->track, "asking for step %d", s->out->proposals + 1);
    kl_err err = kli_search_ask(s, &reply, &c->talk, s->o->library ? "materialize" : "generate",
                                c->current.kernel, e);
    if (!err) err = kli_search_take(s, &o, &reply, &c->current, e);
    if (err) return err;
    *done = o.done;
    if (!o.done) next_turn(c, &reply, &o, conversation_settle(c, &o));
    return KL_OK;
}

static kl_err converse(const char *policy, kl_search_result *out, kl_track *t,
                       const kl_search_opts *o, kl_error *e) {
    conversation c = {0};
    bool done = false;
    kl_err err = kli_search_begin(&c.s, policy, out, t, o, e);
    if (err) return err;
    c.current = c.s.start;
    err = try_patches(&c, e);
    if (!err) open_conversation(&c);
    while (!err && !done && !kli_search_over(&c.s)) err = turn(&c, &done, e);
    if (done) out->stopped = KL_S("model says done");
    out->cards = c.best_cards;
    return kli_search_end(&c.s, err, e);
}

kl_err kli_policy_klineage(kl_search_result *out, kl_track *t, const kl_search_opts *o,
                           kl_error *e) {
    if (!o->library)
        return kl_fail(e, KL_EINVAL, "policy klineage",
                       "it needs a library of cards; --library DIR");
    return converse("klineage", out, t, o, e);
}

kl_err kli_policy_generate(kl_search_result *out, kl_track *t, const kl_search_opts *o,
                           kl_error *e) {
    kl_search_opts without = *o;
    without.library = NULL;
    return converse("generate", out, t, &without, e);
}
