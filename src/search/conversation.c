/* conversation.c - policies klineage and generate: one append-only conversation, the kernel improved step by step.
 *
 * klineage, source: KLineage paper, section 3.4.  Cards are retrieved by scope and contract; those that could come into play stand in front, so that the provider's
 * cache holds them, and every turn says which of them fit the kernel as it is now.  A card whose patch applies verbatim is tried first, for nothing.
 * Deviation from the release: the model chooses among the cards that fit, best expected gain per dollar first, instead of being dealt one card a step.
 *
 * generate: the same without a library: what the model knows by itself (paper, section 4.4, "generated-only").
 *
 * A correct kernel that is a little slower may become current, as a preparation; two in a row without a new best go back to the best.
 * SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include <math.h>

#define MAX_CARDS 16     /* in one prompt: about 30k tokens */
#define PREPARATION 0.85 /* a correct kernel this close to current may become current */
#define MAX_PREPARATIONS 2

/* ---- the library in front -------------------------------------------------------------------------------------------------- */

static kl_target target_of(const kli_search *s, const kl_traits *traits) {
    const kl_search_opts *o = s->o;
    return (kl_target){.case_name = o->task->case_name,
                       .language = kl_str_of(o->start->surface->name),
                       .platform = s->start.verdict.platform,
                       .dtype = kl_str_of(kl_dtype_name(o->workload->dtypes[0])),
                       .prior = s->prior,
                       .traits = traits};
}

/* What may come into play in this search: violated contracts too, since later kernels may meet them. */
static int cards_in_play(kli_search *s, kl_match **out) {
    int n = 0;
    if (!s->o->library) return 0;
    kl_target target = target_of(s, &s->start.traits);
    kl_library_retrieve(out, &n, s->arena, s->o->library, &target, &(kl_retrieve_opts){.top = 8, .all = true});
    return n < MAX_CARDS ? n : MAX_CARDS;
}

static kl_str library_text(kli_search *s, const kl_match *cards, int n) {
    kl_buf b = {0};
    for (int i = 0; i < n; i++) kl_buf_add(&b, kl_card_prompt(s->arena, cards[i].card));
    kl_str text = kl_arena_copy(s->arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* "pack-b-c (fits, expected 1.31x); ..." for the kernel as it is now. */
static kl_str fitting(kli_search *s) {
    kl_match *m;
    int n, said = 0;
    kl_target target = target_of(s, &s->current.traits);
    kl_buf b = {0};
    kl_library_retrieve(&m, &n, s->arena, s->o->library, &target, &(kl_retrieve_opts){.top = 8});
    for (int i = 0; i < n && said < 8; i++, said++)
        kl_buf_printf(&b, "- %.*s: %s, expected %.3gx%s%.*s\n", KL_STR_ARG(m[i].card->name),
                      m[i].fit == KL_FITS ? "fits" : "may fit", exp(m[i].expected_log_gain), m[i].why.len ? "; " : "",
                      KL_STR_ARG(m[i].why));
    if (!said) kl_buf_add(&b, KL_S("- none: rely on your own judgement\n"));
    kl_str text = kl_arena_copy(s->arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* ---- turns ------------------------------------------------------------------------------------------------------------------- */

/* The surface's rules, and behind them the library: both stay the same for the whole conversation. */
static kl_str system_text(kli_search *s) {
    kl_match *cards = NULL;
    kl_str rules = kl_prompt_rules(s->arena, s->o->start->surface);
    int n = cards_in_play(s, &cards);
    if (!n) return rules;
    kl_prompt_value values[] = {{"library", library_text(s, cards, n)}};
    return kl_arena_printf(s->arena, "%.*s\n%.*s", KL_STR_ARG(rules),
                           KL_STR_ARG(kl_prompt(s->arena, "search_library", values, 1)));
}

static kl_str memory_text(kli_search *s) {
    if (!s->o->library) return KL_S("Nothing was handed down: use what you know.");
    kl_prompt_value values[] = {{"cards", fitting(s)}};
    return kl_prompt(s->arena, "search_cards", values, 1);
}

static void open_conversation(kli_search *s) {
    const kl_search_opts *o = s->o;
    kl_prompt_value values[] = {{"task", kl_prompt_task(s->arena, o->task, o->workload, o->start->surface)},
                                {"tag", kl_str_of(kl_prompt_tag(o->start->surface))},
                                {"kernel", s->current.kernel->source},
                                {"feedback", kl_rewrite_feedback(s->arena, &s->current.verdict)},
                                {"memory", memory_text(s)}};
    kli_search_say(s, KL_ROLE_SYSTEM, system_text(s));
    kli_search_say(s, KL_ROLE_USER, kl_prompt(s->arena, "generate", values, (int)KL_COUNT(values)));
}

static const char *verdict_word(kli_fate fate) {
    switch (fate) {
    case KLI_NO_EDIT:
        return "not gated: nothing could be applied";
    case KLI_FAILED:
        return "rejected by the gate";
    case KLI_SLOWER:
        return "correct, and not a new best";
    case KLI_BETTER:
        return "correct, and the new best";
    }
    return "";
}

/* `returned`: current went back to the best, so the model is shown its text again. */
static kl_str next_text(kli_search *s, bool returned) {
    kl_str again = KL_S(""), cards = KL_S("");
    if (returned)
        again = kl_arena_printf(s->arena, "\nThe current kernel is the best one again:\n\n```%s\n%.*s\n```\n",
                                kl_prompt_tag(s->o->start->surface), KL_STR_ARG(s->best.kernel->source));
    if (s->o->library)
        cards = kl_arena_printf(s->arena, "\nCards by the kernel as it is now:\n\n%.*s", KL_STR_ARG(fitting(s)));
    kl_prompt_value values[] = {{"cards", cards}, {"kernel", again}};
    return kl_prompt(s->arena, "search_next", values, (int)KL_COUNT(values));
}

static void next_turn(kli_search *s, const kl_reply *reply, const kli_outcome *o, bool returned) {
    kl_prompt_value values[] = {{"outcome", kl_str_of(verdict_word(o->fate))},
                                {"feedback", o->feedback},
                                {"state", kl_arena_printf(s->arena, "Current: %.*s\nBest: %.*s",
                                                          KL_STR_ARG(kli_search_describe(s, &s->current)),
                                                          KL_STR_ARG(kli_search_describe(s, &s->best)))},
                                {"next", next_text(s, returned)}};
    kli_search_say(s, KL_ROLE_ASSISTANT, reply->text);
    kli_search_say(s, KL_ROLE_USER, kl_prompt(s->arena, "step", values, (int)KL_COUNT(values)));
}

/* ---- what becomes current -------------------------------------------------------------------------------------------------- */

static kl_str with_word(kl_arena *a, kl_str words, kl_str word) {
    if (!word.len) return words;
    return words.len ? kl_arena_printf(a, "%.*s %.*s", KL_STR_ARG(words), KL_STR_ARG(word)) : kl_arena_copy(a, word);
}

/* What the model calls a card need not be one. */
static bool is_card(const kli_search *s, kl_str name) {
    const kl_card *c = s->o->library ? kl_library_card(s->o->library, name) : NULL;
    return c && c->status == KL_CARD_ADMITTED;
}

static void advance(kli_search *s, const kli_outcome *o) {
    s->current = o->point;
    s->prior = with_word(s->arena, s->prior, o->proposal.action);
    if (is_card(s, o->proposal.card)) s->cards = with_word(s->arena, s->cards, o->proposal.card);
}

/* Returns whether current went back to the best. */
static bool settle(kli_search *s, const kli_outcome *o) {
    if (o->fate == KLI_BETTER) {
        advance(s, o);
        s->best_prior = s->prior;
        s->best_cards = s->cards;
        return s->since_accepted = 0, false;
    }
    bool preparation = o->fate == KLI_SLOWER && o->point.ratio >= PREPARATION * s->current.ratio;
    if (preparation) advance(s, o);
    if (s->current.kernel == s->best.kernel || ++s->since_accepted <= MAX_PREPARATIONS) return false;
    s->current = s->best;
    s->prior = s->best_prior;
    s->cards = s->best_cards;
    return s->since_accepted = 0, true;
}

/* ---- patches ------------------------------------------------------------------------------------------------------------------ */

/* Before the first question, for nothing: of the fitting cards' patches, best first, until one is a new best. */
static kl_err try_patches(kli_search *s, kl_error *e) {
    kl_match *m;
    int n;
    if (!s->o->library) return KL_OK;
    kl_target target = target_of(s, &s->current.traits);
    kl_library_retrieve(&m, &n, s->arena, s->o->library, &target, &(kl_retrieve_opts){.top = 8});
    for (int i = 0; i < n; i++) {
        kli_outcome o = {0};
        kl_str source;
        kl_error unused = {0};
        if (!m[i].card->patch.len ||
            kl_proposal_parse(&o.proposal, s->arena, m[i].card->patch, s->o->start->surface, &unused) ||
            kl_proposal_apply(&source, s->arena, s->current.kernel->source, &o.proposal, &unused))
            continue;
        kl_err err = kli_search_gate(s, &o, source, &s->current, m[i].card->name, e);
        o.proposal.card = m[i].card->name;
        o.proposal.action = m[i].card->action;
        if (err) return err;
        if (o.fate == KLI_BETTER) return settle(s, &o), KL_OK;
    }
    return KL_OK;
}

/* ---- the line ------------------------------------------------------------------------------------------------------------------ */

static kl_err turn(kli_search *s, bool *done, kl_error *e) {
    kl_reply reply;
    kli_outcome o;
    kl_track_phase(s->track, s->since_best ? "repair" : "materialize");
    kl_track_say(s->track, "asking for step %d", s->out->proposals + 1);
    kl_err err = kli_search_ask(s, &reply, s->o->library ? "materialize" : "generate", e);
    if (!err) err = kli_search_take(s, &o, &reply, &s->current, e);
    if (err) return err;
    *done = o.done;
    if (!o.done) next_turn(s, &reply, &o, settle(s, &o));
    return KL_OK;
}

static kl_err converse(kl_search_result *out, kl_track *t, const kl_search_opts *o, kl_error *e) {
    kli_search s;
    bool done = false;
    kl_err err = kli_search_begin(&s, out, t, o, e);
    if (err) return err;
    err = try_patches(&s, e);
    if (!err) open_conversation(&s);
    while (!err && !done && !kli_search_over(&s)) err = turn(&s, &done, e);
    if (done) out->stopped = KL_S("model says done");
    return kli_search_end(&s, err, e);
}

kl_err kli_policy_klineage(kl_search_result *out, kl_track *t, const kl_search_opts *o, kl_error *e) {
    if (!o->library) return kl_fail(e, KL_EINVAL, "policy klineage", "it needs a library of cards; --library DIR");
    return converse(out, t, o, e);
}

kl_err kli_policy_generate(kl_search_result *out, kl_track *t, const kl_search_opts *o, kl_error *e) {
    kl_search_opts without = *o;
    without.library = NULL;
    return converse(out, t, &without, e);
}
