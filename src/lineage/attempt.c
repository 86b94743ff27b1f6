/* attempt.c - one proposal, from a reply to a judged kernel; whatever stops it on the way is its
 * symptom.
 *
 *   ask -> read -> apply -> gate -> comparison against a proven kernel
 *
 * A rejection is a result with one line that says why; only the world failing is an error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "walk_impl.h"
#include <math.h>
#include <string.h>

#define SYMPTOM_BYTES 600
/* Quick asks whether it works: a state is timed for its place in a table, a comparison for steps
 * that are worth something. */
#define QUICK_STATE_HALF_WIDTH 0.05
#define QUICK_STATE_SECONDS 1
#define QUICK_RACE_SECONDS 2

void kli_reject(kli_attempt *x, kli_walk *w, const char *kind, const char *fmt, ...) {
    if (!kli_alive(x)) return; /* the first reason is the reason */
    char text[SYMPTOM_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    x->symptom = kli_shown_line(w->a, kl_arena_printf(w->a, "%s: %s", kind, text), SYMPTOM_BYTES);
}

/* The same for an error of the rewriting, whose detail shows the model where it went wrong. */
static void reject_edit(kli_attempt *x, kli_walk *w, const kl_error *why) {
    kli_reject(x, w, "no_edit", "%s", why->message);
    x->advice =
        kl_arena_printf(w->a, "%s%s%s", why->message, why->detail[0] ? "\n" : "", why->detail);
}

kl_err kli_propose(kli_attempt *x, kli_walk_dialog *talk, kli_walk *w, const kl_kernel *base,
                   kl_error *e) {
    kl_error own = {0};
    if (kli_recorded_ends(w)) return kl_fail(e, KL_ENOENT, NULL, "the recording ends here");
    const kl_err err = kli_walk_dialog_ask(x, talk, w, base, e);
    if (err || !kli_alive(x)) return err;
    if (kl_proposal_parse(&x->proposal, w->a, x->reply, w->surface, &own))
        reject_edit(x, w, &own);
    else if (x->proposal.kind != KL_PROPOSAL_DONE &&
             kl_proposal_apply(&x->source, w->a, base->source, &x->proposal, &own))
        reject_edit(x, w, &own);
    return KL_OK;
}

/* ---- the gate ---------------------------------------------------------------------------- */

/* Law 4: every state of a lineage was judged for one task version, on one platform with one
 * toolchain.  They can differ when a journal was carried to another machine between two halves of a
 * walk. */
static kl_err attempt_same_place(const kli_walk *w, const kl_verdict *v, kl_error *e) {
    const kl_lineage *l = w->out;
    if (kl_str_eq(v->task_hash, l->task_hash) && kl_str_eq(v->platform, l->platform) &&
        kl_str_eq(v->toolchain, l->toolchain))
        return KL_OK;
    kl_fail(e, KL_EINVAL, "walk",
            "the lineage belongs to %.*s (%.*s), and this kernel was judged on %.*s (%.*s) or for "
            "another version of "
            "the task",
            KL_STR_ARG(l->platform), KL_STR_ARG(l->toolchain), KL_STR_ARG(v->platform),
            KL_STR_ARG(v->toolchain));
    return kl_hint(e, "a lineage belongs to one platform: continue there, or walk the expert here "
                      "with --trial N");
}

/* What was measured; nothing where a time that jumped left an interval without an end. */
static kl_comparison attempt_interval(const kl_verdict *v) {
    const kl_comparison *c = &v->comparisons[0];
    const bool there = v->n_comparisons && isfinite(c->high) && c->low > 0 && c->low <= c->ratio &&
                       c->ratio <= c->high;
    return there ? *c : (kl_comparison){.call = KL_DECISION_UNDECIDED};
}

static void attempt_evidence(kl_state *out, kli_walk *w, const kl_kernel *k, const kl_verdict *v) {
    const kl_comparison c = attempt_interval(v);
    *out = (kl_state){.hash = k ? kl_arena_copy(w->a, kl_str_of(k->hash)) : (kl_str){0},
                      .source = k ? k->source : (kl_str){0},
                      .verdict_key = kl_arena_copy(w->a, kl_str_of(kl_track_verdict_key(w->track))),
                      .receipt = kl_arena_copy(w->a, kl_str_of(v->receipt)),
                      .median_ns = v->median_ns,
                      .unsettled = v->outcome == KL_OUTCOME_UNSTABLE,
                      .ratio = c.ratio,
                      .low = c.low,
                      .high = c.high};
}

kl_err kli_state_of(kl_state *out, kli_walk *w, const kl_kernel *k, const kl_verdict *v,
                    kl_error *e) {
    attempt_evidence(out, w, k, v);
    kl_traits_of(&out->traits, w->a, k, v);
    return attempt_same_place(w, v, e);
}

kl_gate_opts kli_state_opts(const kli_walk *w) {
    kl_gate_opts opts = w->gate;
    if (!opts.quick) return opts;
    opts.half_width = QUICK_STATE_HALF_WIDTH;
    opts.max_seconds = QUICK_STATE_SECONDS;
    return opts;
}

static kl_gate_opts rival_opts(const kli_walk *w, const kl_kernel *proven) {
    kl_gate_opts opts = w->gate;
    opts.against = proven;
    opts.baseline = NULL;
    if (!opts.quick) return opts;
    opts.max_seconds = QUICK_RACE_SECONDS;
    return opts;
}

void kli_prefetch_comparison(const kli_attempt *x, kli_walk *w, const kl_kernel *proven) {
    const kl_gate_opts opts = rival_opts(w, proven);
    const kl_str path = kl_arena_printf(w->a, "candidate%s", w->surface->suffix);
    kl_kernel *k;
    if (kl_kernel_parse(&k, w->a, x->source, path, w->surface, NULL, kl_ignored()))
        return; /* the gate will say why */
    if (strcmp(k->hash, proven->hash) != 0) kl_prefetch(w->track, w->task, k, &opts);
}

kl_err kli_judge(kli_attempt *x, kli_walk *w, kl_error *e) {
    const kl_gate_opts opts = kli_state_opts(w);
    const kl_err err = kl_judge_text(&x->verdict, &x->kernel, w->track, w->a, w->task, x->source,
                                     w->surface, &opts, e);
    if (err) return err;
    x->judged = true;
    KL_ASSERT(x->kernel || !kli_correct(&x->verdict));
    if (kli_correct(&x->verdict)) return kli_state_of(&x->state, w, x->kernel, &x->verdict, e);
    x->failed = true;
    attempt_evidence(&x->state, w, x->kernel, &x->verdict);
    kli_reject(x, w, kl_outcome_name(x->verdict.outcome), "%.*s", KL_STR_ARG(x->verdict.why));
    x->advice = kl_rewrite_feedback(w->a, &x->verdict);
    return KL_OK;
}

/* A comparison that did not settle is kept as wide as it is, with what the gate's rule makes of it.
 */
static void result_of(kli_pairwise *out, kli_walk *w, const kl_verdict *v) {
    const kl_comparison c = attempt_interval(v);
    *out = (kli_pairwise){.ratio = c.ratio,
                          .low = c.low,
                          .high = c.high,
                          .noise = isfinite(c.noise) && c.noise > 0 ? c.noise : 0,
                          .call = c.call,
                          .verdict_key =
                              kl_arena_copy(w->a, kl_str_of(kl_track_verdict_key(w->track))),
                          .receipt = kl_arena_copy(w->a, kl_str_of(v->receipt))};
}

/* The newer kernel is the candidate, which is checked in full, and the proven one its opponent: a
 * kernel that fails only now is then a verdict, not an error. */
kl_err kli_compare(kli_pairwise *out, kli_attempt *x, kli_walk *w, const kl_kernel *proven,
                   kl_error *e) {
    const kl_gate_opts opts = rival_opts(w, proven);
    kl_verdict v;
    const kl_err err = kl_judge(&v, w->track, w->a, w->task, x->kernel, &opts, e);
    if (err) return err;
    if (!kli_correct(&v)) {
        x->failed = true;
        kli_reject(x, w, kl_outcome_name(v.outcome), "when timed against the kernel before: %.*s",
                   KL_STR_ARG(v.why));
        x->advice = kl_rewrite_feedback(w->a, &v);
        return KL_OK;
    }
    result_of(out, w, &v);
    return attempt_same_place(w, &v, e);
}

/* ---- what is kept of it ------------------------------------------------------------------ */

void kli_keep_rejection(kli_walk *w, const kli_attempt *x) {
    KL_ASSERT(w->n_rejections < w->cap_rejections);
    w->rejections[w->n_rejections++] = (kl_rejection){.action = x->proposal.action,
                                                      .locus = x->proposal.locus,
                                                      .why = x->proposal.why,
                                                      .symptom = x->symptom,
                                                      .edit = x->reply,
                                                      .verdict_key = x->state.verdict_key,
                                                      .stage = kl_str_of(x->stage)};
}

kl_err kli_record(kli_walk *w, const kli_attempt *x, kl_str parent, kl_error *e) {
    const kl_step step = {
        .phase = strcmp(x->stage, "rederive") == 0 ? KL_S("rederive") : KL_S("walk"),
        .action = x->proposal.action,
        .locus = x->proposal.locus,
        .parent = parent,
        .kernel = x->state.hash,
        .verdict = x->state.verdict_key,
        .outcome = x->judged ? kl_str_of(kl_outcome_name(x->verdict.outcome)) : KL_S("no_edit"),
        .ratio = x->state.ratio,
        .low = x->state.low,
        .high = x->state.high,
        .median_ns = x->state.median_ns,
        .accepted = x->accepted,
        .why = x->accepted ? x->proposal.why : x->symptom};
    return kl_track_step(w->track, &step, x->source, e);
}
