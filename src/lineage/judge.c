/* judge.c - the races of a lineage held once more, by today's gate and rule.
 *
 *   every K_i against K_(i+1), every forward kernel against K_(i+1)  ->  gain, floor, call,
 * recovered of each edge
 *
 * The kernels, edits and states stay as they are.  What waits for a spool is asked for together: a
 * pass puts every question before it waits for the first answer.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "walk_impl.h"

typedef struct {
    kli_walk w;
    kl_err waits; /* KL_PENDING: an answer is missing, `why` says which */
    kl_error why;
} judge_judge_ctx;

/* Law 4: an edge without a passing verdict at both ends is none. */
static kl_err not_correct(const kl_lineage *l, const char *kernel, const kl_edge *edge,
                          kl_str symptom, kl_error *e) {
    return kl_fail(e, KL_EINVAL, l->name.ptr, "edge %d: %s is not correct by today's gate: %.*s",
                   edge->to, kernel, KL_STR_ARG(symptom));
}

/* `*there` false: the answer is waited for. */
static kl_err judge_race(kli_pairwise *r, bool *there, judge_judge_ctx *j, const kl_edge *edge,
                         const char *named, kl_str source, kl_error *e) {
    KL_ASSERT(edge->to == edge->from + 1 && edge->to < j->w.out->n_states);
    kli_attempt x = {.stage = "judge"};
    kl_kernel *to;
    kl_error own = {0};
    *there = false;
    kl_err err =
        kl_kernel_parse(&x.kernel, j->w.a, source, kl_str_of(named), j->w.surface, NULL, e);
    if (!err)
        err = kl_kernel_parse(&to, j->w.a, j->w.out->states[edge->to].source, KL_S("rival"),
                              j->w.surface, NULL, e);
    if (err) return err;
    err = kli_compare(r, &x, &j->w, to, &own);
    if (err == KL_PENDING) return j->waits = err, j->why = own, KL_OK;
    if (err) return *e = own, err;
    *there = true;
    return kli_alive(&x) ? KL_OK : not_correct(j->w.out, named, edge, x.symptom, e);
}

static kl_err judge_forward(kl_edge *edge, judge_judge_ctx *j, kl_error *e) {
    kli_pairwise r = {0};
    bool there;
    if (!edge->forward.len || kl_str_eq(edge->forward_hash, j->w.out->states[edge->to].hash))
        return KL_OK;
    const kl_err err =
        judge_race(&r, &there, j, edge, "the forward kernel", edge->forward_source, e);
    if (err || !there) return err;
    kli_recovered(edge, &r);
    return KL_OK;
}

static kl_err judge_edge(kl_edge *edge, judge_judge_ctx *j, kl_error *e) {
    kli_pairwise r = {0};
    bool there;
    kl_err err = judge_race(&r, &there, j, edge, "the simpler kernel",
                            j->w.out->states[edge->from].source, e);
    if (!err && there) {
        kli_gain(edge, &r);
        if (edge->pays && !edge->forward.len && !edge->witness.len) edge->witness = KL_S("none");
        kl_track_log(j->w.track, "K%d %.*s: %.3fx [%.3f, %.3f] %s", edge->to,
                     KL_STR_ARG(edge->action), edge->gain, edge->gain_low, edge->gain_high,
                     kl_decision_name(edge->call));
    }
    return err ? err : judge_forward(edge, j, e);
}

kl_err kl_lineage_judge(kl_lineage *out, kl_track *t, const kl_task *task,
                        const kl_workload *workload, const kl_lineage *l, kl_error *e) {
    kl_arena *a = kl_track_arena(t);
    *out = *l;
    out->edges = KL_ARRAY(a, kl_edge, l->n_edges + 1);
    judge_judge_ctx j = {.w = {.out = out,
                               .track = t,
                               .a = a,
                               .task = task,
                               .workload = workload,
                               .surface = kl_surface_by_name(l->surface),
                               .gate = *kl_track_gate_opts(t)}};
    j.w.gate.workload = kl_arena_copy(a, workload->label).ptr;
    j.w.gate.seed = kl_track_seed(
        t, "judge"); /* a question of its own: what was measured before is no answer */
    kl_track_phase(t, "judge");
    if (!j.w.surface)
        return kl_fail(e, KL_EINVAL, l->name.ptr, "no surface named %.*s", KL_STR_ARG(l->surface));
    kl_err err = KL_OK;
    for (int i = 0; !err && i < l->n_edges; i++) {
        out->edges[i] = l->edges[i];
        err = judge_edge(&out->edges[i], &j, e);
    }
    if (!err && j.waits) return *e = j.why, j.waits;
    if (!err) kl_lineage_sign(out, a);
    return err;
}
