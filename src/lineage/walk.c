/* walk.c - from an expert back to naive, one proven simplification at a time.
 *
 *   judge expert and naive -> { ask -> edit -> gate -> simpler? -> comparison -> re-derive } ... ->
 * lineage
 *
 * A straight line over kl_ask and kl_judge, so that to resume is to run again (law 8).  Every state
 * rests on a full verdict, every edge on two kernels timed against each other in the same minutes;
 * a proposal that fails anywhere is a rejection, and rejections are kept, because they say where an
 * optimization does not come off.  A state needs correctness alone: a comparison that the gate
 * leaves undecided is an edge that could not be measured, and no reason to stop. A limit does not
 * make a kernel naive: `complete` needs the traits of the task's own naive kernel. Not here: one
 * proposal (attempt.c), the forward edit (rederive.c), the words (talk.c), what a recording decides
 * (recorded.c). SPDX-License-Identifier: Apache-2.0 */
#include "walk_impl.h"
#include "base/fs.h"
#include <string.h>

#define WALK_DEFAULT_STEPS 16
#define DEFAULT_REJECTIONS 4
#define DEFAULT_RECOVER 0.99
#define DEFAULT_REDERIVE 2

static void walk_end(kli_walk *w, kl_termination how, const char *fmt, ...) KL_PRINTF(3, 4);
static void walk_end(kli_walk *w, kl_termination how, const char *fmt, ...) {
    char why[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    KL_ASSERT(!w->over || how == KL_WALK_UNSETTLED || how == KL_WALK_INTERRUPTED);
    w->over = true;
    w->out->termination = how;
    w->out->termination_why = kli_shown_line(w->a, kl_str_of(why), 600);
}

bool kli_is_mechanical(const kli_walk *w) {
    return kl_str_eq(w->out->model, KL_S("builtin")) ||
           kl_str_eq(kl_model_replayed(w->out->model), KL_S("builtin"));
}

bool kli_ends(kli_walk *w, kl_err err, const kl_error *e) {
    const bool spent = err == KL_EBUDGET,
               ended = err == KL_EMODEL || err == KL_ENOENT || err == KL_ELIMIT;
    if (!spent && !(ended && w->asked))
        return false; /* a model that never answered is an error of the caller */
    walk_end(w, spent ? KL_WALK_BUDGET : KL_WALK_STOPPED, "%s", e->message);
    return true;
}

/* ---- before the first step --------------------------------------------------------------- */

static kl_err expert_fails(kli_walk *w, const kl_kernel *expert, const kl_verdict *v, kl_error *e) {
    kl_fail(e, KL_EINVAL, kl_arena_copy(w->a, expert->path).ptr,
            "the expert kernel fails the gate: %s: %.*s", kl_outcome_name(v->outcome),
            KL_STR_ARG(v->why));
    return kl_hint(e, "for details: klineage gate %.*s %.*s", KL_STR_ARG(w->task->name),
                   KL_STR_ARG(expert->path));
}

static kl_err walk_judge(kl_verdict *v, kli_walk *w, const kl_kernel *k, kl_error *e) {
    const kl_gate_opts opts = kli_state_opts(w);
    return kl_judge(v, w->track, w->a, w->task, k, &opts, e);
}

static kl_err judge_expert(kli_walk *w, const kl_kernel *expert, const kl_kernel *naive,
                           kl_error *e) {
    kl_verdict v;
    kl_track_log(w->track, "expert %.*s", KL_STR_ARG(expert->path));
    const kl_gate_opts opts = kli_state_opts(w);
    if (naive) kl_prefetch(w->track, w->task, naive, &opts);
    const kl_err err = walk_judge(&v, w, expert, e);
    if (err) return err;
    if (!kli_correct(&v)) return expert_fails(w, expert, &v, e);
    kl_lineage *l = w->out;
    l->task_hash = v.task_hash;
    l->platform = v.platform;
    l->toolchain = v.toolchain;
    l->created = v.created; /* out of the journal when the walk is resumed, so that the document
                               stays the same */
    w->current = KL_NEW(w->a, kl_kernel);
    *w->current = *expert;
    w->seen[w->n_seen++] = kl_str_of(w->current->hash);
    return kli_state_of(&w->states[0], w, expert, &v, e);
}

/* What "naive" means and how slow may be.  A task without one can be walked; only nobody can then
 * say that the end is reached. */
static kl_kernel *load_naive(kli_walk *w) {
    kl_kernel *naive;
    kl_error own = {0};
    if (!w->surface->naive) return NULL;
    const kl_str path = kli_fs_join(w->a, w->task->dir.ptr, w->surface->naive);
    if (!kl_kernel_load(&naive, w->a, path.ptr, NULL, &own)) return naive;
    kl_track_log(w->track, "no naive kernel to compare with: %s", own.message);
    return NULL;
}

static kl_err judge_naive(kli_walk *w, const kl_kernel *naive, kl_error *e) {
    kl_verdict v;
    if (!naive) return KL_OK;
    kl_track_log(w->track, "naive kernel %.*s", KL_STR_ARG(naive->path));
    const kl_err err = walk_judge(&v, w, naive, e);
    if (err) return err;
    if (kli_correct(&v)) { /* it is no end of an edge: its traits count, and half its speed */
        const kl_err placed = kli_state_of(&w->out->naive, w, naive, &v, e);
        w->out->naive.name = KL_S("naive");
        return placed;
    }
    kl_track_log(w->track, "the task's naive kernel fails the gate: %s: %.*s",
                 kl_outcome_name(v.outcome), KL_STR_ARG(v.why));
    return KL_OK;
}

/* ---- is it one sound step? --------------------------------------------------------------- */

static void known_word(kli_attempt *x, kli_walk *w) {
    if (!x->proposal.action.len)
        kli_reject(x, w, "no_edit",
                   "the line ACTION: is missing; it names the optimization that the edit undoes");
    else if (!kl_action_valid(x->proposal.action))
        kli_reject(x, w, "no_edit",
                   "'%.60s' is no action; take one from the list, or other:a_few_words",
                   kl_arena_copy(w->a, x->proposal.action).ptr);
}

/* A kernel that was judged before in this walk is the same answer again; only one whose time did
 * not settle may come back. */
static void new_kernel(kli_attempt *x, kli_walk *w) {
    kl_kernel *k;
    if (kl_kernel_parse(&k, w->a, x->source, KL_S("proposal"), w->surface, NULL, kl_ignored()))
        return; /* the gate will say why */
    for (int i = 0; i < w->n_seen; i++)
        if (kl_str_eq(w->seen[i], kl_str_of(k->hash)))
            return kli_reject(x, w, "repeated", "this kernel was there before in this walk");
}

static void walk_remember(kli_walk *w, const kli_attempt *x) {
    if (x->kernel) w->seen[w->n_seen++] = kl_str_of(x->kernel->hash);
}

static void simpler(kli_attempt *x, kli_walk *w) {
    const kl_state *now = &w->states[w->n], *naive = &w->out->naive;
    kl_error own = {0};
    if (kl_rewrite_check_undo(x->proposal.action, x->proposal.bundle, w->current, &now->traits,
                              x->kernel, &x->state.traits, &own))
        kli_reject(x, w, "not_simpler", "%s", own.message);
    /* By ratios to the same baseline: two times that were taken in different minutes are not
     * compared.  One that is not known accuses nobody. */
    if (kli_alive(x) && x->state.ratio > 0 && KLI_SABOTAGE * x->state.high < naive->low)
        kli_reject(x, w, "sabotage",
                   "%.4gx of the baseline, and the naive kernel of the task has %.4gx: undo the "
                   "optimization, add no work",
                   x->state.ratio, naive->ratio);
}

/* The gate timed the simpler kernel over the current one, and the gain is that of going forward: 1
 * / ratio, and the ends of the interval and what is faster change places. */
void kli_gain(kl_edge *edge, const kli_pairwise *r) {
    edge->gain = r->ratio > 0 ? 1 / r->ratio : 0;
    edge->gain_low = r->high > 0 ? 1 / r->high : 0;
    edge->gain_high = r->low > 0 ? 1 / r->low : 0;
    edge->gain_verdict_key = r->verdict_key;
    edge->gain_receipt = r->receipt;
    edge->noise = r->noise;
    edge->call = r->call == KL_DECISION_SLOWER   ? KL_DECISION_FASTER
                 : r->call == KL_DECISION_FASTER ? KL_DECISION_SLOWER
                                                 : r->call;
    KL_ASSERT(edge->gain_low <= edge->gain && edge->gain <= edge->gain_high);
    edge->has_call = true;
    edge->pays = edge->call == KL_DECISION_FASTER;
}

/* What undoing it cost. */
static kl_err price(kl_edge *edge, kli_attempt *x, kli_walk *w, kl_error *e) {
    kli_pairwise r = {0};
    const kl_err err = kli_compare(&r, x, w, w->current, e);
    if (err || !kli_alive(x)) return err;
    const kl_state *now = &w->states[w->n];
    edge->action = x->proposal.action;
    edge->bundle = x->proposal.bundle;
    edge->locus = x->proposal.locus;
    edge->why = x->proposal.why;
    edge->backward = kl_edits_between(w->a, now->source, x->state.source);
    edge->raised = kl_traits_raised(w->a, &x->state.traits, &now->traits);
    edge->before = x->state.traits;
    edge->after = now->traits;
    kli_gain(edge, &r);
    return KL_OK;
}

/* ---- what comes of a proposal ------------------------------------------------------------ */

static const char *worth(kl_arena *a, const kl_edge *edge) {
    if (edge->call == KL_DECISION_FASTER) return "";
    if (edge->call == KL_DECISION_SLOWER) return "; the kernel is faster without it";
    if (edge->call == KL_DECISION_SAME) return "; not profitable";
    return kl_arena_printf(a, "; not measurable here (A/A noise %.1f %%)", 100 * edge->noise).ptr;
}

static void accept(kli_walk *w, kli_attempt *x, kl_edge *edge) {
    edge->rejections = w->rejections;
    edge->n_rejections = w->n_rejections;
    KL_ASSERT(w->n < w->opts.max_steps);
    KL_ASSERT(edge->gain_verdict_key.len && x->state.verdict_key.len); /* laws 4 and 10 */
    w->edges[w->n++] = *edge;
    w->states[w->n] = x->state;
    w->current = x->kernel;
    w->rejections = KL_ARRAY(w->a, kl_rejection, w->cap_rejections);
    w->n_rejections = w->in_a_row = 0;
    kl_track_log(w->track, "step %d: removed %.*s: %.3fx [%.3f, %.3f]%s%s", w->n,
                 KL_STR_ARG(edge->action), edge->gain, edge->gain_low, edge->gain_high,
                 worth(w->a, edge),
                 edge->forward.len || w->opts.backward_only ? "" : "; no forward edit");
    kli_walk_dialog_accepted(w, x);
}

static void rejected(kli_walk *w, kli_attempt *x) {
    kli_keep_rejection(w, x);
    kl_track_log(w->track, "step %d: rejected %.*s: %.*s", w->n + 1, KL_STR_ARG(x->proposal.action),
                 KL_STR_ARG(x->symptom));
    if (kli_recorded_step(w) == KLI_ACCEPTED) kli_skip(w);
    if (++w->in_a_row < w->opts.max_rejections) return kli_walk_dialog_rejected(&w->talk, w, x);
    walk_end(w, KL_WALK_REJECTION_LIMIT, "%d proposals in a row were rejected, the last one %.*s",
             w->in_a_row, KL_STR_ARG(x->symptom));
}

/* The model's word that nothing is left counts when the traits agree. */
static void done(kli_walk *w, kli_attempt *x) {
    kl_str left = {0};
    if (!w->out->naive.hash.len)
        return walk_end(
            w, KL_WALK_STOPPED,
            "the model says done, and the task has no naive%s that passes to hold that against",
            w->surface->suffix);
    if (kl_traits_naive(&w->states[w->n].traits, &w->out->naive.traits, &left, w->a))
        return walk_end(w, KL_WALK_COMPLETE, "%s",
                        x->proposal.why.len ? kl_arena_copy(w->a, x->proposal.why).ptr
                                            : "nothing that the naive kernel lacks is left");
    if (kli_is_mechanical(w)) /* it says the same however often it is asked */
        return walk_end(w, KL_WALK_STOPPED, "%.*s; %.*s", KL_STR_ARG(x->proposal.why),
                        KL_STR_ARG(left));
    kli_reject(x, w, "not_naive", "still has %.*s, more than the naive kernel of the task",
               KL_STR_ARG(left));
}

/* The backward attempt first, then the tries that came of it. */
static kl_err walk_record(kli_walk *w, const kli_attempt *x, kl_str parent, kl_error *e) {
    kl_err err = kli_record(w, x, parent, e);
    for (int i = 0; !err && i < w->n_tries; i++) err = kli_record(w, w->tries[i], x->state.hash, e);
    return err;
}

static kl_err proposal(kli_walk *w, kl_edge *edge, kli_attempt *x, kl_error *e) {
    const kli_recorded then = kli_recorded_gate(w); /* before a re-derivation asks on */
    kl_err err = KL_OK;
    if (kli_alive(x)) known_word(x, w);
    if (kli_alive(x)) new_kernel(x, w);
    if (kli_alive(x)) kli_prefetch_comparison(x, w, w->current);
    if (kli_alive(x)) err = kli_judge(x, w, e);
    const bool passed = kli_alive(x);
    if (!err && passed) simpler(x, w);
    if (!err && x->judged) kli_follow(edge, x, w, then);
    if (!err && x->judged && (kli_alive(x) || !passed))
        walk_remember(w, x); /* one that was named wrongly may be named again */
    if (!err && kli_alive(x)) err = price(edge, x, w, e);
    if (!err && kli_alive(x)) err = kli_rederive(edge, x, w, e);
    x->accepted = !err && !w->over && kli_alive(x);
    return err;
}

static kl_err walk_step(kli_walk *w, kl_error *e) {
    const kl_str parent = w->states[w->n].hash;
    kli_attempt *x = KL_NEW(w->a, kli_attempt);
    kl_edge edge = {0};
    x->stage = "deoptimize";
    w->n_tries = 0;
    kl_track_phase(w->track, "walk");
    kl_err err = kli_propose(x, &w->talk, w, w->current, e);
    if (err) return kli_ends(w, err, e) ? KL_OK : err;
    if (kli_alive(x) && x->proposal.kind == KL_PROPOSAL_DONE)
        done(w, x);
    else
        err = proposal(w, &edge, x, e);
    if (!err && !(w->over && !x->judged)) err = walk_record(w, x, parent, e);
    if (err || w->over) return err;
    if (kli_alive(x))
        accept(w, x, &edge);
    else
        rejected(w, x);
    return KL_OK;
}

/* Ends without asking: nothing is left, or no more steps are wanted. */
static bool at_an_end(kli_walk *w) {
    if (w->over) return true;
    if (kl_str_eq(w->states[w->n].hash, w->out->naive.hash))
        walk_end(w, KL_WALK_COMPLETE, "it is the naive kernel of the task");
    else if (w->n == w->opts.max_steps)
        walk_end(w, KL_WALK_STEP_LIMIT,
                 "%d steps were asked for; this does not make the kernel naive", w->n);
    return w->over;
}

/* ---- the lineage ------------------------------------------------------------------------- */

/* The walk went from the expert down; a lineage reads from naive up. */
static void turn_round(kli_walk *w) {
    kl_lineage *l = w->out;
    l->n_edges = w->n;
    l->n_states = w->n + 1;
    l->states = KL_ARRAY(w->a, kl_state, l->n_states);
    l->edges = KL_ARRAY(w->a, kl_edge, l->n_edges + 1);
    for (int i = 0; i <= w->n; i++) {
        l->states[i] = w->states[w->n - i];
        l->states[i].name = kl_arena_printf(w->a, "K%d", i);
    }
    KL_ASSERT(l->n_states == l->n_edges + 1);
    for (int i = 0; i < w->n; i++) {
        l->edges[i] = w->edges[w->n - 1 - i];
        l->edges[i].from = i;
        l->edges[i].to = i + 1;
    }
}

static void walk_finish(kli_walk *w) {
    kl_lineage *l = w->out;
    turn_round(w);
    l->rejections = w->rejections;
    l->n_rejections = w->n_rejections;
    l->spent_microusd = kl_track_spent(w->track);
    kl_lineage_sign(l, w->a);
    kl_track_log(w->track, "%s after %d steps: %.*s", kl_termination_name(l->termination), w->n,
                 KL_STR_ARG(l->termination_why));
}

/* "gemm-c-expert"; also the name of a folder one day, so nothing but a-z 0-9 and "-". */
static kl_str default_name(kl_arena *a, const kl_task *task, const kl_kernel *expert) {
    const kl_str path = kl_arena_copy(a, expert->path);
    kl_str file = kli_fs_basename(path.ptr);
    if (kl_str_ends(file, kl_str_of(expert->surface->suffix)))
        file.len -= strlen(expert->surface->suffix);
    const kl_str name = kl_arena_printf(a, "%.*s-%s-%.*s", KL_STR_ARG(task->name),
                                        expert->surface->name, KL_STR_ARG(file));
    char *out = KL_ARRAY(a, char, name.len + 1);
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i], low = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        out[i] = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') ? low : '-';
    }
    return (kl_str){out, name.len};
}

static void set_out(kli_walk *w, const kl_kernel *expert) {
    const kl_task *t = w->task;
    *w->out = (kl_lineage){.name = w->opts.name ? kl_arena_copy(w->a, kl_str_of(w->opts.name))
                                                : default_name(w->a, t, expert),
                           .task = t->name,
                           .case_name = t->case_name,
                           .surface = kl_str_of(w->surface->name),
                           .workload = w->workload->label,
                           .dtype = t->n_inputs ? kl_str_of(kl_dtype_name(w->workload->dtypes[0]))
                                                : (kl_str){0},
                           .model = kl_arena_copy(w->a, kl_str_of(kl_track_model(w->track))),
                           .run = kl_arena_copy(w->a, kl_str_of(w->opts.run)),
                           .expert = expert->path};
}

static int walk_within(int requested, int otherwise, int most) {
    return requested <= 0 ? otherwise : requested < most ? requested : most;
}

static void walk_open_walk(kli_walk *w, const kl_kernel *expert, const kl_walk_opts *o) {
    if (o) w->opts = *o;
    w->opts.max_steps = walk_within(w->opts.max_steps, WALK_DEFAULT_STEPS, KL_MAX_STEPS);
    w->opts.max_rejections = walk_within(w->opts.max_rejections, DEFAULT_REJECTIONS, KL_MAX_STEPS);
    w->opts.max_rederive = walk_within(w->opts.max_rederive, DEFAULT_REDERIVE, KLI_MAX_REDERIVE);
    if (!(w->opts.recover > 0)) w->opts.recover = DEFAULT_RECOVER;
    w->gate = *kl_track_gate_opts(w->track);
    w->gate.workload = kl_arena_copy(w->a, w->workload->label).ptr;
    w->gate.against = NULL;
    w->gate.check_only = false;
    const int per_step = w->opts.max_rejections, steps = w->opts.max_steps;
    const int tries =
        KLI_MAX_REDERIVE; /* a recording may hold more of them than are asked for here */
    w->states = KL_ARRAY(w->a, kl_state, steps + 1);
    w->edges = KL_ARRAY(w->a, kl_edge, steps);
    w->seen = KL_ARRAY(w->a, kl_str, 1 + (per_step + 1) * steps + per_step);
    w->cap_rejections =
        (per_step + 1) * (tries + 1); /* each may bring the tries that failed before it */
    w->rejections = KL_ARRAY(w->a, kl_rejection, w->cap_rejections);
    w->tries = KL_ARRAY(w->a, kli_attempt *, tries);
    set_out(w, expert);
}

/* What was proven until the world failed is a lineage; the error stays one. */
static void break_off(kli_walk *w, kl_err err, const kl_error *e) {
    walk_end(w, err == KL_EINTR ? KL_WALK_INTERRUPTED : KL_WALK_UNSETTLED, "%s%s%s", e->where,
             e->where[0] ? ": " : "", e->message);
}

kl_err kl_lineage_walk(kl_lineage *out, kl_track *t, const kl_task *task,
                       const kl_workload *workload, const kl_kernel *expert, const kl_walk_opts *o,
                       kl_error *e) {
    kli_walk w = {.out = out,
                  .track = t,
                  .a = kl_track_arena(t),
                  .task = task,
                  .workload = workload,
                  .surface = expert->surface};
    walk_open_walk(&w, expert, o);
    kl_track_phase(t, "walk");
    const kl_kernel *naive = load_naive(&w);
    kl_err err = judge_expert(&w, expert, naive, e);
    if (!err) err = judge_naive(&w, naive, e);
    if (!err) kli_walk_dialog_open(&w);
    while (!err && !at_an_end(&w)) err = walk_step(&w, e);
    if (err && err != KL_PENDING && w.n > 0) break_off(&w, err, e);
    if (!err || w.over) walk_finish(&w);
    return err;
}
