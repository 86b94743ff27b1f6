/* witness.c - an edge's forward edit derived once more, by somebody who has seen nothing of the
 * walk.
 *
 * In a walk the re-derivation is a conversation of its own.  But who answers both conversations (a
 * person at a mailbox, an agent with a memory) may have seen the kernel that is to be found.  Here
 * every edge is a track of its own, so that each can be answered by somebody else.  What succeeds
 * takes the place of the walk's forward edit; what fails leaves it, marks the edge, and stays as
 * rejections: such an edge teaches nothing. SPDX-License-Identifier: Apache-2.0 */
#include "walk_impl.h"

static kl_err witness_load(kl_kernel **out, kli_walk *w, const kl_state *s, kl_error *e) {
    return kl_kernel_parse(out, w->a, s->source, s->name, w->surface, NULL, e);
}

/* The walk as it stood when the edge was found: K_to current, K_from just accepted.  Verdicts come
 * out of the journal, or are made. */
static kl_err stand_there(kli_walk *w, kli_attempt *back, const kl_lineage *l, const kl_edge *edge,
                          kl_error *e) {
    back->stage = "deoptimize";
    back->source = l->states[edge->from].source;
    back->proposal = (kl_proposal){
        .action = edge->action, .bundle = edge->bundle, .locus = edge->locus, .why = edge->why};
    kl_err err = witness_load(&w->current, w, &l->states[edge->to], e);
    if (!err) err = kli_judge(back, w, e);
    if (!err && !kli_alive(back))
        err = kl_fail(e, KL_EINVAL, l->states[edge->from].name.ptr,
                      "it does not pass the gate here: %.*s", KL_STR_ARG(back->symptom));
    return err;
}

static void witness_open_walk(kli_walk *w, kl_lineage *out, const kl_lineage *l,
                              const kl_walk_opts *o) {
    const int tries = o && o->max_rederive > 0 ? o->max_rederive : 2;
    *out = *l; /* law 4: what is judged now has to be of the same task version and platform */
    out->model = kl_arena_copy(w->a, kl_str_of(kl_track_model(w->track)));
    w->out = out;
    w->opts =
        (kl_walk_opts){.recover = o && o->recover > 0 ? o->recover : 0.99, .max_rederive = tries};
    w->gate = *kl_track_gate_opts(w->track);
    w->gate.workload = kl_arena_copy(w->a, w->workload->label).ptr;
    w->cap_rejections = KLI_MAX_REDERIVE + 2;
    w->rejections = KL_ARRAY(w->a, kl_rejection, w->cap_rejections);
    w->tries = KL_ARRAY(w->a, kli_attempt *, KLI_MAX_REDERIVE);
}

/* What was rejected in the walk, and then here. */
static void join_rejections(kl_edge *out, const kl_edge *edge, const kli_walk *w) {
    kl_rejection *all = KL_ARRAY(w->a, kl_rejection, edge->n_rejections + w->n_rejections + 1);
    for (int i = 0; i < edge->n_rejections; i++) all[i] = edge->rejections[i];
    for (int i = 0; i < w->n_rejections; i++) all[edge->n_rejections + i] = w->rejections[i];
    out->rejections = all;
    out->n_rejections = edge->n_rejections + w->n_rejections;
}

kl_err kl_lineage_rederive(kl_edge *out, kl_track *t, const kl_task *task,
                           const kl_workload *workload, const kl_lineage *l, int index,
                           const kl_walk_opts *o, kl_error *e) {
    KL_ASSERT(index >= 0 && index < l->n_edges);
    const kl_edge *edge = &l->edges[index];
    kl_lineage scratch;
    kli_attempt *back = KL_NEW(kl_track_arena(t), kli_attempt);
    kli_walk w = {.track = t,
                  .a = kl_track_arena(t),
                  .task = task,
                  .workload = workload,
                  .surface = kl_surface_by_name(l->surface)};
    kl_edge anew = *edge;
    *out = *edge;
    if (!w.surface)
        return kl_fail(e, KL_EINVAL, l->name.ptr, "no surface named %.*s", KL_STR_ARG(l->surface));
    witness_open_walk(&w, &scratch, l, o);
    anew.forward = anew.forward_hash = anew.forward_source = (kl_str){0};
    kl_err err = stand_there(&w, back, l, edge, e);
    if (!err) err = kli_rederive(&anew, back, &w, e);
    if (!err && w.over)
        err = kl_fail(e, scratch.termination == KL_WALK_BUDGET ? KL_EBUDGET : KL_EMODEL,
                      l->name.ptr, "%.*s", KL_STR_ARG(scratch.termination_why));
    if (err) return err;
    if (anew.forward.len) *out = anew;
    const bool known = edge->forward.len &&
                       kl_str_eq(edge->witness, KL_S("alone")); /* somebody derived it before */
    out->witness = anew.forward.len || known ? KL_S("alone") : KL_S("failed");
    join_rejections(out, edge, &w);
    kl_track_log(t, "%.*s: %.*s", KL_STR_ARG(edge->action), KL_STR_ARG(out->witness));
    for (int i = 0; !err && i < w.n_tries; i++)
        err = kli_record(&w, w.tries[i], back->state.hash, e);
    return err;
}

void kl_lineage_sign(kl_lineage *l, kl_arena *a) {
    json_t *o = kl_lineage_json(l);
    l->id = kli_lineage_id(a, o);
    json_decref(o);
    KL_ASSERT(l->id.len == 64);
}
