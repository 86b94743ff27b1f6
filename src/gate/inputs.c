/* inputs.c - how the input sets of a problem get to where kernels read them.
 *
 *   drawn here      into the shared pages, mutable ones into private memory, from where every run
 *                   restores them
 *   drawn there     on a device, by the same arithmetic (base/draw.h): what it cannot draw is
 *                   uploaded, and of one set of each problem, picked at random, both ends of each
 *                   tensor are drawn here as well and must have the same bytes, in the candidate's
 * runner and in scripts, which reach the driver by other means
 *
 * A set that a device draws is drawn here only when somebody reads it: an oracle, a comparison, a
 * runner without a kernel for it.  Its seed goes to the runner with the request for the set itself,
 * never before.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "backend/draw.h"
#include "task/inputs.h"

#include <stdlib.h>
#include <string.h>

/* Only a device's memory is worth it: shared pages are read where they are drawn. */
void kli_inputs_plan(kli_problem *s, const kli_evaluation *c) {
    kl_stream picks = kli_stream_of(c->schedule.key, "proof");
    s->proof = (uint32_t)kli_stream_below(picks, s->id, s->n_sets);
    for (uint32_t i = 0; i < s->plan.n_tensors; i++)
        if (c->backend->id == KL_BACKEND_CUDA && kli_is_input(&s->plan, i) &&
            kli_task_draw(&s->draws[i], s->task, s->workload, (int)i, s->scale))
            s->is_drawn = true;
}

static bool drawn_there(const kli_problem *s, uint32_t i) {
    return s->draws[i].kind != KLI_DRAW_NONE;
}

static bool keep_mutable(kli_problem *s, uint32_t i, uint32_t set) {
    void **kept = &s->pristine[set][i];
    if (!kli_is_mutable(&s->plan, i)) return false;
    if (!*kept) *kept = malloc(s->plan.tensors[i].bytes + 1);
    if (!*kept) kl_oom(s->plan.tensors[i].bytes);
    return true;
}

static kl_err fill_tensor(kli_problem *s, const kli_evaluation *c, uint32_t i, uint32_t set,
                          kl_error *e) {
    const bool is_mutable = keep_mutable(s, i, set);
    if (s->workload->dists[i].kind == KL_DIST_CUSTOM) return KL_OK;
    void *data = is_mutable ? s->pristine[set][i] : kli_memory_input(&s->memory, &s->plan, i, set);
    return kl_task_fill(data, s->task, s->workload, (int)i, s->seeds[set], s->scale,
                        c->opts->threads, e);
}

static kl_err fill_set(kli_problem *s, kli_evaluation *c, uint32_t set, bool there, kl_error *e) {
    kl_err err = KL_OK;
    for (uint32_t i = 0; !err && i < s->plan.n_tensors; i++)
        if ((kli_is_input(&s->plan, i) || kli_is_mutable(&s->plan, i)) &&
            drawn_there(s, i) == there)
            err = fill_tensor(s, c, i, set, e);
    const bool makes = !there && kli_inputs_are_generated(s);
    return err || !makes ? err : kli_inputs_generate(s, c, set, e);
}

kl_err kli_inputs_begin(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    KL_ASSERT(set < s->n_sets);
    s->in_pages[set] = !s->is_drawn;
    s->is_given = false;
    if (set == s->proof) s->has_proof = false;
    return fill_set(s, c, set, false, e);
}

kl_err kli_inputs_fill(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    KL_ASSERT(set < s->n_sets);
    if (s->in_pages[set]) return KL_OK;
    const kl_err err = fill_set(s, c, set, true, e);
    s->in_pages[set] = !err;
    return err;
}

/* ---- to a runner ------------------------------------------------------------------------- */

static bool proves(const kli_evaluation *c, const kli_executable *a) {
    return a == &c->candidate || a->artefact.kind == KL_ARTEFACT_SCRIPT;
}

typedef struct {
    const kli_draw *draw;
    char *data;
    int64_t from, to;
    pthread_t thread;
    bool runs;
} proof_share;

static void *draw_share(void *ctx) {
    const proof_share *p = ctx;
    for (int64_t i = p->from; i < p->to; i++) kli_draw_put(p->draw, p->data, i);
    return NULL;
}

static void draw_range(const kli_draw *d, void *data, int64_t from, int64_t to) {
    enum { MOST = 8, LEAST_ELEMS = 1 << 11 }; /* fewer are drawn before a thread is up */
    proof_share shares[MOST];
    const int64_t n = (to - from) / LEAST_ELEMS + 1, k = n < MOST ? n : MOST;
    for (int64_t i = 0; i < k; i++) {
        proof_share *p = &shares[i];
        *p = (proof_share){d, data, from + (to - from) * i / k, from + (to - from) * (i + 1) / k,
                           0, false};
        p->runs = i + 1 < k && pthread_create(&p->thread, NULL, draw_share, p) == 0;
        if (!p->runs) (void)draw_share(p);
    }
    for (int64_t i = 0; i < k; i++)
        if (shares[i].runs) (void)pthread_join(shares[i].thread, NULL);
}

/* Both ends of a tensor: an index that wraps, a block too few and a tail are seen there. */
static void draw_proof(kli_problem *s) {
    if (s->in_pages[s->proof] || s->has_proof) return;
    s->has_proof = true;
    for (uint32_t i = 0; i < s->plan.n_tensors; i++) {
        kli_draw d = s->draws[i];
        const int64_t n = d.elems, end = n < KLI_PROOF_ELEMS ? n : KLI_PROOF_ELEMS;
        if (!drawn_there(s, i)) continue;
        void *data = kli_memory_input(&s->memory, &s->plan, i, s->proof);
        kli_draw_seed(&d, s->seeds[s->proof], s->task->tensors[i].name);
        draw_range(&d, data, 0, end);
        draw_range(&d, data, n - end, n);
    }
}

static kl_err draw_there(kli_problem *s, const kli_evaluation *c, kli_executable *a, uint32_t first,
                         uint32_t n, bool *drawn, kl_fault *fault, kl_error *e) {
    kli_draw_request q = {.first = first, .n = n, .proof = KLI_NO_PROOF, .in_pages = true};
    if (proves(c, a) && s->proof >= first && s->proof < first + n) {
        draw_proof(s);
        q.proof = s->proof;
    }
    memcpy(q.draws, s->draws, sizeof q.draws);
    for (uint32_t set = first; set < first + n; set++) {
        q.seeds[set] = s->seeds[set];
        q.in_pages &= s->in_pages[set];
    }
    return kli_runner_draw(a->runner, fault, &q, drawn, e);
}

kl_err kli_inputs_send(kli_problem *s, kli_evaluation *c, kli_executable *a, uint32_t first,
                       uint32_t n, kl_fault *fault, kl_error *e) {
    bool drawn = false;
    kl_err err = s->is_drawn ? draw_there(s, c, a, first, n, &drawn, fault, e) : KL_OK;
    if (err || drawn || fault->kind) return err;
    for (uint32_t set = first; !err && set < first + n; set++) err = kli_inputs_fill(s, c, set, e);
    return err ? err : kli_runner_upload(a->runner, fault, first, n, e);
}
