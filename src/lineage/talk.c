/* talk.c - what the model is told during a walk, and what it answers.
 *
 *   walk:        rules | task, expert, traits | reply | rejected: why, or accepted: the kernel as
 * it is now | reply ... re-derive:   rules | task, simpler kernel, action, locus | reply |
 * rejected: why | reply
 *
 * A conversation only grows, and the rules are the same bytes for every task, so that a provider's
 * prompt cache holds. The second conversation never holds a word of the first: neither the kernel
 * that is to be reached nor the reply that undid it. The texts themselves are the prompts of
 * src/rewrite/prompts.  SPDX-License-Identifier: Apache-2.0 */
#include "walk_impl.h"
#include <string.h>

static void talk_say(kli_walk_dialog *t, kl_arena *a, kl_role role, kl_str text, bool cache) {
    *KL_PUSH(a, t->at, t->n) = (kl_message){.role = role, .text = text, .cache = cache};
}

static kl_str traits_text(kl_arena *a, const kl_traits *t) {
    json_t *o = kl_traits_json(t);
    const kl_str text = kli_json_dump(a, o, false);
    json_decref(o);
    return text;
}

static kl_str speed_text(kl_arena *a, const kl_state *s) {
    if (!(s->ratio > 0)) return KL_S("It is correct; how fast it is could not be measured.");
    if (s->unsettled)
        return kl_arena_printf(a,
                               "It is correct; its time did not settle: about %.4g ms, %.3fx "
                               "[%.3f, %.3f] of the baseline.",
                               (double)s->median_ns * 1e-6, s->ratio, s->low, s->high);
    return kl_arena_printf(a, "It passes the gate: %.4g ms, %.3fx [%.3f, %.3f] of the baseline.",
                           (double)s->median_ns * 1e-6, s->ratio, s->low, s->high);
}

static kl_str task_text(const kli_walk *w) {
    return kl_prompt_task(w->a, w->task, w->workload, w->surface, KL_S(""), true);
}

/* ---- the walk ---------------------------------------------------------------------------- */

void kli_walk_dialog_open(kli_walk *w) {
    const kl_prompt_value values[] = {{"task", task_text(w)},
                                      {"tag", kl_str_of(kl_prompt_tag(w->surface))},
                                      {"kernel", w->current->source},
                                      {"traits", traits_text(w->a, &w->states[0].traits)},
                                      {"feedback", speed_text(w->a, &w->states[0])},
                                      {"done", KL_S("none yet")}};
    talk_say(&w->talk, w->a, KL_ROLE_SYSTEM, kl_prompt_system(w->a, w->surface), true);
    talk_say(&w->talk, w->a, KL_ROLE_USER,
             kl_prompt(w->a, "deoptimize", values, (int)KL_COUNT(values)), true);
}

static kl_str actions_undone(const kli_walk *w) {
    kl_buf b = {0};
    for (int i = 0; i < w->n; i++)
        kl_buf_printf(&b, "%s%.*s", i ? " " : "",
                      KL_STR_ARG(kli_shown_line(w->a, w->edges[i].action, 64)));
    return kli_buf_keep(&b, w->a);
}

void kli_walk_dialog_accepted(kli_walk *w, const kli_attempt *x) {
    const kl_edge *edge = &w->edges[w->n - 1];
    const kl_str outcome =
        edge->call == KL_DECISION_UNDECIDED
            ? kl_arena_printf(w->a,
                              "accepted: undoing %.*s; what it was worth could not be measured",
                              KL_STR_ARG(edge->action))
            : kl_arena_printf(w->a, "accepted: undoing %.*s, which was worth %.3fx [%.3f, %.3f]",
                              KL_STR_ARG(edge->action), edge->gain, edge->gain_low,
                              edge->gain_high);
    const kl_str state =
        kl_arena_printf(w->a, "The kernel as it is now, with the traits %.*s:\n\n```%s\n%.*s\n```",
                        KL_STR_ARG(traits_text(w->a, &x->state.traits)), kl_prompt_tag(w->surface),
                        KL_STR_ARG(x->state.source));
    const kl_str next = kl_arena_printf(w->a,
                                        "Undone so far: %.*s.  Undo ONE further optimization of "
                                        "it, or answer DONE: reason when it is naive.",
                                        KL_STR_ARG(actions_undone(w)));
    const kl_prompt_value values[] = {{"outcome", outcome},
                                      {"feedback", speed_text(w->a, &x->state)},
                                      {"state", state},
                                      {"next", next}};
    talk_say(&w->talk, w->a, KL_ROLE_USER, kl_prompt(w->a, "step", values, (int)KL_COUNT(values)),
             false);
}

/* ---- re-derivation ----------------------------------------------------------------------- */

/* What is to be reached, in numbers where they were measured. */
static kl_str goal_text(const kli_walk *w, const kli_attempt *back, const kl_edge *edge) {
    const kl_str share = kl_arena_printf(
        w->a, "at least %.2f of the speed of a kernel that has this optimization", w->opts.recover);
    const double ms = (double)back->state.median_ns * 1e-6;
    if (!(edge->gain > 0))
        return kl_arena_printf(w->a, "%.*s; how fast that is shows when yours is timed against it",
                               KL_STR_ARG(share));
    return kl_arena_printf(w->a, "%.*s, which runs %.3fx [%.3f, %.3f] as fast as this one%s",
                           KL_STR_ARG(share), edge->gain, edge->gain_low, edge->gain_high,
                           ms > 0 ? kl_arena_printf(w->a, ": about %.4g ms", ms / edge->gain).ptr
                                  : "");
}

void kli_walk_dialog_open_rederive(kli_walk_dialog *talk, kli_walk *w, const kli_attempt *back,
                                   const kl_edge *edge) {
    const kl_action *known = kl_action_find(back->proposal.action);
    const kl_str bundle = back->proposal.bundle, locus = back->proposal.locus;
    const kl_prompt_value values[] = {
        {"task", task_text(w)},
        {"tag", kl_str_of(kl_prompt_tag(w->surface))},
        {"kernel", back->state.source},
        {"feedback", speed_text(w->a, &back->state)},
        {"action", back->proposal.action},
        {"forward", known ? kl_str_of(known->forward) : KL_S("what its name says")},
        {"needs", known ? kl_str_of(known->needs) : KL_S("nothing that is known")},
        {"bundle", bundle.len ? bundle : KL_S("nothing")},
        {"locus", locus.len ? locus : KL_S("where it belongs")},
        {"goal", goal_text(w, back, edge)}};
    talk_say(talk, w->a, KL_ROLE_SYSTEM, kl_prompt_system(w->a, w->surface), true);
    talk_say(talk, w->a, KL_ROLE_USER, kl_prompt(w->a, "rederive", values, (int)KL_COUNT(values)),
             true);
}

/* ---- both -------------------------------------------------------------------------------- */

void kli_walk_dialog_rejected(kli_walk_dialog *talk, kli_walk *w, const kli_attempt *x) {
    const bool walk = talk == &w->talk;
    const int remaining =
        walk ? w->opts.max_rejections - w->in_a_row : w->opts.max_rederive - w->n_tries;
    const kl_prompt_value values[] = {
        {"why", x->symptom},
        {"feedback", x->advice},
        {"left", kl_arena_printf(w->a, "%d", remaining > 0 ? remaining : 0)}};
    talk_say(talk, w->a, KL_ROLE_USER,
             kl_prompt(w->a, walk ? "deoptimize_rejected" : "rederive_rejected", values,
                       (int)KL_COUNT(values)),
             false);
}

/* The newest turn is worth caching as well: the next request begins with it. */
static kl_request request_of(kli_walk_dialog *talk, const kli_walk *w, const char *stage,
                             const kl_kernel *subject) {
    KL_ASSERT(talk->n >= 2 && talk->at[talk->n - 1].role == KL_ROLE_USER);
    for (int i = 2; i < talk->n; i++) talk->at[i].cache = i == talk->n - 1;
    const char *step = kl_arena_printf(w->a, "%d", kli_place(w)).ptr;
    return (kl_request){
        .messages = talk->at, .n = talk->n, .purpose = stage, .place = step, .subject = subject};
}

kl_err kli_walk_dialog_ask(kli_attempt *x, kli_walk_dialog *talk, kli_walk *w,
                           const kl_kernel *subject, kl_error *e) {
    kl_reply reply;
    const kl_request q = request_of(talk, w, x->stage, subject);
    const kl_err err = kl_ask(&reply, w->track, w->a, &q, e);
    if (err) return err;
    w->asked = true;
    w->out->estimated |= reply.usage.estimated;
    x->reply = reply.text;
    /* No provider takes an empty turn of its own back. */
    talk_say(talk, w->a, KL_ROLE_ASSISTANT, reply.text.len ? reply.text : KL_S("(nothing)"), false);
    if (reply.stop == KL_STOP_TRUNCATED)
        kli_reject(x, w, "no_edit",
                   "the reply was cut off; give SEARCH/REPLACE blocks instead of the whole file");
    if (reply.stop == KL_STOP_REFUSED) kli_reject(x, w, "no_edit", "the model refused to answer");
    return KL_OK;
}
