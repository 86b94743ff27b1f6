/* answers.c - answers that stay with the oracle, on its device.
 *
 *   oracle's process      slot set % n_answers: the answer, until another set's needs the place
 *   gate                  sends the oracle an output of the candidate, and is told how far it is
 * off
 *
 * What is certainly right is known by that, and nothing of the answer, which is wide, crosses the
 * bus.  Whatever is not goes the way of every other backend: the answer is brought to the heap, and
 * compare.c says what is wrong with the output, so that no finding against a kernel is ever made by
 * a device.  Deliberately not here: what right means (compare.c).  SPDX-License-Identifier:
 * Apache-2.0 */
#include "gate_impl.h"

#include "backend/compare.h"

#include <math.h>

enum { PART_OF_DEVICE = 16 }; /* what all answers take; kernels and baselines need the rest */
static const uint64_t STAYS_BYTES = 1u
                                    << 20; /* less is brought as soon as it is mapped elsewhere */

static bool is_narrow_float(kl_dtype t) { return t == KL_F16 || t == KL_BF16 || t == KL_F32; }

static bool can_stay(const kli_problem *s, uint32_t i) {
    const kl_check_kind kind = s->workload->checks[i].kind;
    return kind != KL_CHECK_TOPK && kind != KL_CHECK_EXACT && !kli_is_mutable(&s->plan, i) &&
           is_narrow_float(kli_type_of(&s->plan, i)) &&
           kl_dtype_is_float(kli_type_of(&s->oracle_plan, i));
}

bool kli_answers_can_stay(const kli_problem *s, const kli_evaluation *c) {
    if (c->answers_here || c->backend->id != KL_BACKEND_CUDA || !c->oracle->kernel) return false;
    if (c->oracle->artefact.kind != KL_ARTEFACT_CUBIN) return false;
    for (uint32_t i = 0; i < s->plan.n_tensors; i++)
        if (kli_is_output(&s->plan, i) && !can_stay(s, i)) return false;
    return true;
}

uint32_t kli_answers_that_fit(const kl_layout *l, int64_t memory) {
    const uint64_t one = l->slot_bytes + l->scratch_bytes,
                   room = memory > 0 ? (uint64_t)memory / PART_OF_DEVICE : 0,
                   most = l->n_sets < KL_MAX_ANSWERS ? l->n_sets : KL_MAX_ANSWERS;
    KL_ASSERT(one > 0 && l->n_sets >= 1);
    return room / one < 1 ? 1 : room / one < most ? (uint32_t)(room / one) : (uint32_t)most;
}

bool kli_answer_is_held(const kli_problem *s, uint32_t set) {
    KL_ASSERT(set < s->n_sets && s->n_answers >= 1);
    return s->answer_of[kli_answer_slot(s, set)] == set + 1;
}

/* In the oracle's process, which may have been given another problem since. */
static kl_err hold(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    if (c->oracle->problem == s->id && kli_answer_is_held(s, set)) return KL_OK;
    return kli_problem_ask_oracle(s, c, set, e);
}

static kl_err bring_answer(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    const uint32_t slot = kli_answer_slot(s, set);
    kl_fault fault = {0};
    kl_err err = hold(s, c, set, e);
    if (!err) err = kli_runner_fetch(c->oracle->runner, &fault, &slot, 1, KL_POISON_NAN, e);
    if (err) kli_executable_stop(c->oracle); /* the next verdict starts it afresh */
    if (!err && fault.kind) err = kli_trusted_fault(c->oracle, &fault, e);
    if (!err) err = kli_inputs_fill(s, c, set, e);
    if (!err) kli_problem_keep_answer(s, set);
    return err;
}

/* ---- outputs that stay ------------------------------------------------------------------- */

bool kli_outputs_can_stay(const kli_problem *s, const kli_executable *a) {
    return s->answers_stay && s->memory.layout.slot_bytes >= STAYS_BYTES &&
           a->artefact.kind == KL_ARTEFACT_CUBIN && kli_runner_shares(a->runner);
}

static void note_output(kli_problem *s, const kli_executable *a, uint32_t slot, uint8_t poison,
                        uint32_t i) {
    s->outputs[slot] = (kli_output){.made_by = a->runner,
                                    .poison = poison,
                                    .has_print = !a->trusted,
                                    .print = kli_runner_print(a->runner, i)};
}

kl_err kli_output_run(kli_problem *s, kli_executable *a, const kli_run *q, kl_fault *fault,
                      int64_t *wall_ns, kl_error *e) {
    const bool stays = kli_outputs_can_stay(s, a);
    KL_ASSERT(q->slot < KL_COUNT(s->outputs));
    s->outputs[q->slot] = (kli_output){0};
    if (stays) kli_runner_keep(a->runner, true);
    const kl_err err =
        kli_runner_run(a->runner, fault, q->set, q->slot, q->poison, q->timeout_ns, wall_ns, e);
    if (!err && !fault->kind && stays) note_output(s, a, q->slot, q->poison, 0);
    return err;
}

kl_err kli_output_fetch(kli_problem *s, kli_executable *a, const uint32_t *slots, uint32_t n,
                        uint8_t poison, kl_fault *fault, kl_error *e) {
    const bool stays = kli_outputs_can_stay(s, a);
    const kl_err err = stays ? kli_runner_look(a->runner, fault, slots, n, poison, e)
                             : kli_runner_fetch(a->runner, fault, slots, n, poison, e);
    for (uint32_t i = 0; i < n; i++) {
        s->outputs[slots[i]] = (kli_output){0};
        if (!err && !fault->kind && stays) note_output(s, a, slots[i], poison, i);
    }
    return err;
}

kl_err kli_output_bring(kli_problem *s, uint32_t slot, kl_error *e) {
    kli_output *o = &s->outputs[slot];
    kl_fault fault = {0};
    if (!o->made_by) return KL_OK;
    const kl_err err = kli_runner_fetch(o->made_by, &fault, &slot, 1, o->poison, e);
    o->made_by = NULL;
    return !err && fault.kind ? kl_fail(e, KL_EIO, "device", "an output was lost: %s", fault.text)
                              : err;
}

/* ---- comparing --------------------------------------------------------------------------- */

static bool is_right(kl_check_result *r, const kli_compare_found *found, int64_t n,
                     const kl_check *how) {
    const double rms = sqrt(found->square / (double)n), error = sqrt(found->sum / (double)n);
    r->bad = 0;
    r->first_bad = -1;
    r->max_abs_error = found->max_abs;
    r->rms_error = rms > 0 ? error / rms : error;
    r->ok = found->unsure == 0 && r->rms_error <= r->budget &&
            (how->max_error <= 0 || r->max_abs_error <= how->max_error);
    return r->ok;
}

/* Other bits at every call are compared at every call: where answers take each other's place, the
 * oracle would run again for each. */
static bool is_kept_here(const kli_problem *s, const kli_evaluation *c) {
    KL_ASSERT(s->n_answers >= 1);
    return c->kernel && c->kernel->nondeterministic && s->n_sets > s->n_answers;
}

kl_err kli_answers_compare(bool *sure, kl_check_result *r, kli_problem *s, kli_evaluation *c,
                           uint32_t i, uint32_t set, uint32_t slot, const kl_check *how,
                           kl_error *e) {
    const char *got = kli_memory_output(&s->memory, &s->plan, i, slot);
    const int64_t n = kli_elements_of(&s->plan, i);
    const kli_compare_request q = {.tensor = i,
                                   .slot = kli_answer_slot(s, set),
                                   .got_type = kli_type_of(&s->plan, i),
                                   .made_by = s->outputs[slot].made_by,
                                   .pages_fd = s->memory.outputs_fd,
                                   .offset = (uint64_t)(got - s->memory.outputs),
                                   .atol = how->atol,
                                   .rtol = how->rtol,
                                   .grows = r->scale > 1};
    kli_compare_found found;
    kl_fault fault = {0};
    bool compared = false;
    const bool here = is_kept_here(s, c);
    kl_err err = hold(s, c, set, e);
    if (!err && n > 0 && !here)
        err = kli_runner_compare(c->oracle->runner, &fault, &q, &found, &compared, e);
    if (err) kli_executable_stop(c->oracle);
    if (!err && fault.kind) err = kli_trusted_fault(c->oracle, &fault, e);
    *sure = !err && compared && is_right(r, &found, n, how);
    return err || *sure ? err : bring_answer(s, c, set, e);
}
