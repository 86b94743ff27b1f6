/* materialize.c - a card's intent written into a target's code by a model.
 *
 * The model sees the card and the start, nothing else: what a card teaches is then what helped.  A
 * card's patch is not tried here: that it applies to a text says nothing of what was learned
 * (search tries it, for nothing).  One append-only conversation, at most `tries` proposals, the
 * gate's words in between.  Every attempt is timed against the start itself, interleaved, so that
 * one run of the gate says both "correct" and "how much faster".  A correct kernel whose time over
 * the start's stays open ends it: a model cannot help a busy machine.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "skill_impl.h"
#include <stdio.h>

#define HALF_WIDTH                                                                                 \
    0.02 /* of a gain that is asked to be nine tenths of another: finer than the question */
#define MATERIALIZE_SECONDS 20
#define MATERIALIZE_QUICK_SECONDS 3

typedef struct {
    kl_track *track;
    kl_arena *arena;
    kl_str label; /* the card's name, in rows and in what is logged */
    const kl_start *start;
    kl_kernel *from;
    kl_verdict before; /* of the start */
    double reach;
    kl_materialized *out;
    const char *place; /* of the requests' slots */
    kl_str next;       /* what is asked for after a proposal that did not do */
    kl_message messages[2 * KL_MAX_TRIES + 2];
    int n;
} materialize_ctx;

/* ---- the start --------------------------------------------------------------------------- */

/* A start that is wrong here is nothing to apply a card to, and nothing can be timed against it.
 * One whose time does not settle is correct. The journal has the verdict when another card met the
 * same start. */
static kl_err materialize_judge_start(materialize_ctx *m, kl_error *e) {
    const kl_verdict *v = &m->before;
    kl_gate_opts o = *kl_track_gate_opts(m->track);
    o.workload = m->start->workload->label.ptr;
    if (o.quick) o.max_seconds = MATERIALIZE_QUICK_SECONDS; /* its time decides nothing */
    kl_err err = kl_kernel_parse(&m->from, m->arena, m->start->source, m->start->name,
                                 m->start->surface, NULL, e);
    if (!err) err = kl_judge(&m->before, m->track, m->arena, m->start->task, m->from, &o, e);
    if (err) return err;
    m->out->bad_start = v->outcome != KL_OUTCOME_PASS && v->outcome != KL_OUTCOME_UNSTABLE;
    if (m->out->bad_start)
        m->out->why = kl_arena_printf(m->arena, "the start does not pass the gate: %s: %.*s",
                                      kl_outcome_name(v->outcome), KL_STR_ARG(v->why));
    return KL_OK;
}

/* ---- one attempt ------------------------------------------------------------------------- */

/* Of the verdict in the journal; empty for an attempt that none was given to. */
static const char *materialize_key_of(const materialize_ctx *m, const kl_verdict *v) {
    return v->task.len ? kl_track_verdict_key(m->track) : "";
}

static kl_err write_step(materialize_ctx *m, const kl_verdict *v, kl_str source, kl_str identity,
                         kl_error *e) {
    const kl_comparison *c = v->n_comparisons ? &v->comparisons[0] : NULL;
    kl_step s = {.phase = KL_S("materialize"),
                 .action = m->label,
                 .parent = kl_str_of(m->from->hash),
                 .kernel = identity,
                 .verdict = kl_str_of(materialize_key_of(m, v)),
                 .outcome = kl_str_of(kl_outcome_name(v->outcome)),
                 .ratio = c ? c->ratio : 0,
                 .low = c ? c->low : 0,
                 .high = c ? c->high : 0,
                 .median_ns = v->median_ns,
                 .accepted = c && v->outcome == KL_OUTCOME_PASS && c->ratio >= m->reach &&
                             c->call == KL_DECISION_FASTER,
                 .gain = c ? c->ratio : 0,
                 .gain_low = c ? c->low : 0,
                 .gain_high = c ? c->high : 0,
                 .gain_noise = c ? c->noise : 0,
                 .call = c ? kl_str_of(kl_decision_name(c->call)) : KL_S(""),
                 .why = v->why};
    return kl_track_step(m->track, &s, source, e);
}

/* A proposal of which nothing was gated: declined, or no edit.  The verdict before it says on what
 * task and machine. */
static kl_err write_ungated(const materialize_ctx *m, const char *outcome, kl_error *e) {
    const kl_step s = {.phase = KL_S("materialize"),
                       .action = m->label,
                       .parent = kl_str_of(m->from->hash),
                       .verdict = kl_str_of(kl_track_verdict_key(m->track)),
                       .outcome = kl_str_of(outcome),
                       .why = m->out->why};
    return kl_track_step(m->track, &s, KL_S(""), e);
}

static void materialize_keep(materialize_ctx *m, kl_kernel *k, const kl_verdict *v) {
    const kl_comparison *c = &v->comparisons[0];
    kl_materialized *out = m->out;
    KL_ASSERT(v->n_comparisons > 0 || v->outcome == KL_OUTCOME_UNSTABLE);
    *out = (kl_materialized){.kernel = k,
                             .verdict = *v,
                             .gain = c->ratio,
                             .low = c->low,
                             .high = c->high,
                             .noise = c->noise,
                             .call = c->call,
                             .tries = out->tries,
                             .estimated = out->estimated};
    snprintf(out->verdict_key, sizeof out->verdict_key, "%s", materialize_key_of(m, v));
}

static void keep_if_better(materialize_ctx *m, kl_kernel *k, const kl_verdict *v) {
    if (v->outcome != KL_OUTCOME_PASS || !v->n_comparisons) return;
    if (!m->out->kernel || v->comparisons[0].ratio > m->out->gain) materialize_keep(m, k, v);
}

/* It may have reached, and the measurement does not say: it never settled, or the noise of this
 * minute hides what would be faster in a quiet one.  An unstable verdict admits nothing, however
 * far its interval is from 1: the check after timing was not reached. */
static bool cannot_tell(const materialize_ctx *m, const kl_verdict *v) {
    const kl_comparison *c = v->n_comparisons ? &v->comparisons[0] : NULL;
    if (v->outcome == KL_OUTCOME_UNSTABLE) return !c || !(c->high < m->reach);
    return v->outcome == KL_OUTCOME_PASS && c && c->high >= m->reach &&
           c->call != KL_DECISION_FASTER &&
           kl_decide(c->low, c->high, 0, true) == KL_DECISION_FASTER;
}

static kl_str materialize_fate(const materialize_ctx *m, const kl_verdict *v) {
    if (m->out->undecided)
        return v->n_comparisons
                   ? kl_arena_printf(
                         m->arena,
                         "correct, and not measurable here: [%.3g, %.3g] beside a floor of %.1f %%",
                         v->comparisons[0].low, v->comparisons[0].high,
                         v->comparisons[0].noise * 100)
                   : kl_arena_printf(m->arena, "not measurable here: %.*s", KL_STR_ARG(v->why));
    return v->outcome == KL_OUTCOME_PASS ? KL_S("correct, and not fast enough") : v->why;
}

/* A start that passed and cannot be timed against any more is the machine's doing: nothing is known
 * of the attempt. */
static kl_err materialize_judge(materialize_ctx *m, kl_str source, kl_verdict *v, kl_kernel **k,
                                const kl_gate_opts *o, kl_error *e) {
    kl_error own = {0};
    kl_err err =
        kl_judge_text(v, k, m->track, m->arena, m->start->task, source, m->start->surface, o, &own);
    if (err == KL_EBASELINE) {
        *v = (kl_verdict){.outcome = KL_OUTCOME_UNSTABLE,
                          .why = kl_arena_copy(m->arena, kl_str_of(own.message)),
                          .platform = m->before.platform,
                          .created = m->before.created};
        return KL_OK;
    }
    if (err && e) *e = own;
    return err;
}

/* Gate one text; its verdict in `v`.  A text that does not parse is a verdict too. */
static kl_err materialize_attempt(materialize_ctx *m, kl_str source, kl_verdict *v, kl_error *e) {
    kl_gate_opts o = *kl_track_gate_opts(m->track);
    kl_kernel *k = NULL;
    o.workload = m->start->workload->label.ptr;
    o.baseline = NULL;
    o.against = m->from;
    o.half_width = HALF_WIDTH;
    o.max_seconds = o.quick ? MATERIALIZE_QUICK_SECONDS : MATERIALIZE_SECONDS;
    kl_err err = materialize_judge(m, source, v, &k, &o, e);
    if (err) return err;
    const bool open = k && cannot_tell(m, v);
    if (k && open) materialize_keep(m, k, v);
    if (k && !open) keep_if_better(m, k, v);
    m->out->undecided = open;
    if (!m->out->kernel) m->out->verdict = *v;
    m->out->why = materialize_fate(m, v);
    return write_step(m, v, source, kl_str_of(k ? k->hash : ""), e);
}

/* The median reaches, and the gate calls it faster. */
static bool reached(const materialize_ctx *m) {
    return m->out->kernel && m->out->gain >= m->reach && m->out->call == KL_DECISION_FASTER;
}

/* ---- the model --------------------------------------------------------------------------- */

static void materialize_say(materialize_ctx *m, kl_role role, kl_str text, bool cache) {
    KL_ASSERT(m->n < (int)KL_COUNT(m->messages));
    m->messages[m->n++] = (kl_message){.role = role, .text = text, .cache = cache};
}

static void materialize_begin(materialize_ctx *m, const char *prompt, kl_str handed_down) {
    kl_arena *a = m->arena;
    kl_prompt_value values[] = {{"task", kl_prompt_task(a, m->start->task, m->start->workload,
                                                        m->start->surface, KL_S(""), true)},
                                {"card", handed_down},
                                {"handed_down", handed_down},
                                {"tag", kl_str_of(kl_prompt_tag(m->start->surface))},
                                {"kernel", m->start->source},
                                {"feedback", kl_rewrite_feedback(a, &m->before)}};
    materialize_say(m, KL_ROLE_SYSTEM, kl_prompt_system(a, m->start->surface), true);
    materialize_say(m, KL_ROLE_USER, kl_prompt(a, prompt, values, (int)KL_COUNT(values)), true);
}

/* What the model is told of its last proposal. */
static kl_str materialize_answer(materialize_ctx *m, const kl_verdict *v, const kl_error *refused) {
    if (refused->code) {
        kl_prompt_value values[] = {
            {"error", kl_arena_copy(m->arena, kl_str_of(refused->message))},
            {"detail", kl_arena_copy(m->arena, kl_str_of(refused->detail))}};
        return kl_prompt(m->arena, "repair", values, (int)KL_COUNT(values));
    }
    kl_prompt_value values[] = {{"outcome", v->outcome == KL_OUTCOME_PASS
                                                ? KL_S("correct, but it gained too little")
                                                : KL_S("rejected by the gate")},
                                {"feedback", kl_rewrite_feedback(m->arena, v)},
                                {"state", KL_S("The kernel is as it was in the first message.")},
                                {"next", m->next}};
    return kl_prompt(m->arena, "step", values, (int)KL_COUNT(values));
}

/* The recorded line decided otherwise at this place, or was never here: what was measured stands,
 * and nothing more is asked. */
static void materialize_recording_ended(materialize_ctx *m) {
    m->out->ended = true;
    m->out->why = m->out->tries
                      ? kl_arena_printf(m->arena, "%.*s; the recording has no further answer",
                                        KL_STR_ARG(m->out->why))
                      : KL_S("the recording has no answer for it");
    kl_track_log(m->track, "%.*s: replay finished: %.*s", KL_STR_ARG(m->start->name),
                 KL_STR_ARG(m->out->why));
}

static kl_err ask_once(materialize_ctx *m, bool *done, kl_error *e) {
    kl_reply reply;
    kl_proposal p;
    kl_str source;
    kl_verdict v = {0};
    kl_error refused = {0}, unanswered = {0};
    kl_request q = {.messages = m->messages,
                    .n = m->n,
                    .purpose = "materialize",
                    .place = m->place,
                    .subject = m->from};
    kl_err err = kl_ask(&reply, m->track, m->arena, &q, &unanswered);
    if (kl_model_recording_ended(&unanswered)) return materialize_recording_ended(m), KL_OK;
    if (err) {
        *e = unanswered;
        return err;
    }
    m->out->tries++;
    m->out->estimated |= reply.usage.estimated;
    if (reply.stop != KL_STOP_END)
        kl_fail(&refused, KL_EPARSE, "reply", "the reply was %s",
                reply.stop == KL_STOP_TRUNCATED ? "cut off: answer with fewer, smaller edits"
                                                : "refused");
    else if (!kl_proposal_parse(&p, m->arena, reply.text, m->start->surface, &refused) &&
             !(*done = p.kind == KL_PROPOSAL_DONE))
        (void)!kl_proposal_apply(&source, m->arena, m->start->source, &p, &refused);
    if (*done) {
        m->out->why = kl_arena_printf(m->arena, "the model declined: %.*s", KL_STR_ARG(p.why));
        return write_ungated(m, "done", e);
    }
    if (refused.code) m->out->why = kl_arena_copy(m->arena, kl_str_of(refused.message));
    err = refused.code ? write_ungated(m, "no_edit", e) : materialize_attempt(m, source, &v, e);
    materialize_say(m, KL_ROLE_ASSISTANT, reply.text, false);
    materialize_say(m, KL_ROLE_USER, materialize_answer(m, &v, &refused), true);
    return err;
}

static kl_err materialize_all(materialize_ctx *m, const char *prompt, kl_str handed_down, int tries,
                              kl_error *e) {
    kl_materialized *out = m->out;
    *out = (kl_materialized){.why = KL_S("nothing was proposed")};
    if (!(m->reach > 0)) m->reach = 1 + kl_decide_margin(0);
    KL_ASSERT(tries <= KL_MAX_TRIES);
    kl_err err = materialize_judge_start(m, e);
    if (err || out->bad_start) return err;
    materialize_begin(m, prompt, handed_down);
    bool done = false;
    for (int i = 0; !err && !done && !out->undecided && !out->ended && i < tries && !reached(m);
         i++) {
        kl_track_phase(m->track, i ? "repair" : "materialize");
        kl_track_log(m->track, "%.*s on %.*s, try %d", KL_STR_ARG(m->label),
                     KL_STR_ARG(m->start->name), i + 1);
        err = ask_once(m, &done, e);
    }
    return err;
}

kl_err kl_skill_materialize(kl_materialized *out, kl_track *t, const kl_card *card,
                            const kl_start *start, int tries, double reach, kl_error *e) {
    kl_arena *a = kl_track_arena(t);
    materialize_ctx m = {.track = t,
                         .arena = a,
                         .label = card->name,
                         .place = kl_arena_copy(a, start->name).ptr,
                         .next = KL_S("Apply the card again, repaired. SEARCH lines refer to the "
                                      "kernel of the first message."),
                         .start = start,
                         .reach = reach,
                         .out = out};
    return materialize_all(&m, "materialize", kl_card_prompt(a, card), tries, e);
}

kl_err kli_skill_attempt(kl_materialized *out, kl_track *t, const kli_attempt *x, int tries,
                         double reach, kl_error *e) {
    materialize_ctx m = {.track = t,
                         .arena = kl_track_arena(t),
                         .label = x->label,
                         .place = x->place,
                         .next = KL_S("Propose again. SEARCH lines refer to the kernel of the "
                                      "first message."),
                         .start = x->start,
                         .reach = reach,
                         .out = out};
    return materialize_all(&m, "admit", x->handed_down, tries, e);
}
