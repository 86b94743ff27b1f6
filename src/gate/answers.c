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
#include <string.h>

enum {
    PART_OF_DEVICE = 16, /* what all answers take; kernels and baselines need the rest */
    FEW_FETCHED = 4      /* of more, even small ones are mapped sooner than brought */
};
static const uint64_t SMALL_ANSWERS = 64u << 20; /* all of them */
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
                   places = one * KL_MAX_ANSWERS <= SMALL_ANSWERS ? KL_MAX_ANSWERS : KL_FEW_ANSWERS,
                   most = l->n_sets < places ? l->n_sets : places;
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

static bool can_be_reached(const kli_problem *s, const kli_executable *a) {
    return s->answers_stay && a->artefact.kind == KL_ARTEFACT_CUBIN && kli_runner_shares(a->runner);
}

bool kli_outputs_can_stay(const kli_problem *s, const kli_executable *a) {
    return can_be_reached(s, a) && s->memory.layout.slot_bytes >= STAYS_BYTES;
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
    const bool stays = n > FEW_FETCHED ? can_be_reached(s, a) : kli_outputs_can_stay(s, a);
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

/* Outputs `i` of the first n slots, which lie in one place, all brought or all on the device. */
static kli_compare_request request_for(const kli_problem *s, uint32_t i, const uint32_t *slots,
                                       uint32_t n, const kl_check *how) {
    kli_compare_request q = {.tensor = i,
                             .got_type = kli_type_of(&s->plan, i),
                             .made_by = s->outputs[slots[0]].made_by,
                             .pages_fd = s->memory.outputs_fd,
                             .atol = how->atol,
                             .rtol = how->rtol,
                             .grows = s->scale > 1,
                             .n = n};
    for (uint32_t k = 0; k < n; k++) {
        const char *got = kli_memory_output(&s->memory, &s->plan, i, slots[k]);
        KL_ASSERT(s->outputs[slots[k]].made_by == q.made_by);
        q.offsets[k] = (uint64_t)(got - s->memory.outputs);
    }
    return q;
}

static kl_err compare_there(kli_compare_found *found, bool *compared, kli_evaluation *c,
                            const kli_compare_request *q, kl_error *e) {
    kl_fault fault = {0};
    int64_t runs_ns = 0;
    const kl_err err =
        kli_runner_compare(c->oracle->runner, &fault, q, found, &runs_ns, compared, e);
    c->run_ns += runs_ns;
    if (err) kli_executable_stop(c->oracle);
    return !err && fault.kind ? kli_trusted_fault(c->oracle, &fault, e) : err;
}

kl_err kli_answers_compare(bool *sure, kl_check_result *r, kli_problem *s, kli_evaluation *c,
                           uint32_t i, uint32_t set, uint32_t slot, const kl_check *how,
                           kl_error *e) {
    const int64_t n = kli_elements_of(&s->plan, i);
    const kli_output *o = &s->outputs[slot];
    kli_compare_found found = o->found;
    bool compared = o->found_of == set + 1 && how == &s->workload->checks[i];
    kl_err err = compared ? KL_OK : hold(s, c, set, e);
    if (!err && !compared && n > 0 && !is_kept_here(s, c)) {
        kli_compare_request q = request_for(s, i, &slot, 1, how);
        q.sets[0] = KLI_NO_SET;
        q.slots[0] = kli_answer_slot(s, set);
        err = compare_there(&found, &compared, c, &q, e);
    }
    *sure = !err && compared && is_right(r, &found, n, how);
    return err || *sure ? err : bring_answer(s, c, set, e);
}

/* ---- comparing many ---------------------------------------------------------------------- */

/* The task's, where it has but one. */
static bool only_output(uint32_t *out, const kli_problem *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->plan.n_tensors; i++)
        if (kli_is_output(&s->plan, i)) *out = i, n++;
    return n == 1 && kli_elements_of(&s->plan, *out) > 0;
}

static kl_err give_inputs(kli_problem *s, kli_evaluation *c, kl_error *e) {
    kl_fault fault = {0};
    if (c->oracle->problem == s->id && s->is_given) return KL_OK;
    const kl_err err = kli_executable_enter(c->oracle, s, c, 0, s->n_sets, &fault, e);
    if (err) kli_executable_stop(c->oracle);
    if (!err && fault.kind) return kli_trusted_fault(c->oracle, &fault, e);
    s->is_given = !err;
    return err;
}

/* Where each set has a place of its own, the answer is given once and stays there.  Else the places
 * are taken one after the other, and no set holds any afterwards. */
static void place_answers(kli_problem *s, kli_compare_request *q, const uint32_t *sets) {
    const bool own = s->n_sets <= s->n_answers;
    KL_ASSERT(q->n >= 1 && q->n <= KL_FETCH_SLOTS && (own || q->n <= s->n_answers));
    for (uint32_t k = 0; k < q->n; k++) {
        q->slots[k] = own ? kli_answer_slot(s, sets[k]) : k;
        q->sets[k] = own && kli_answer_is_held(s, sets[k]) ? KLI_NO_SET : sets[k];
        s->answer_of[q->slots[k]] = own ? sets[k] + 1 : 0;
    }
}

/* As many as the oracle has places for answers. */
static kl_err foresee_some(kli_problem *s, kli_evaluation *c, uint32_t i, const uint32_t *sets,
                           const uint32_t *slots, uint32_t n, kl_error *e) {
    kli_compare_found found[KL_FETCH_SLOTS];
    kli_compare_request q = request_for(s, i, slots, n, &s->workload->checks[i]);
    bool compared = false;
    place_answers(s, &q, sets);
    const kl_err err = compare_there(found, &compared, c, &q, e);
    if (!compared) memset(s->answer_of, 0, sizeof s->answer_of);
    for (uint32_t k = 0; k < n && !err && compared; k++) {
        s->outputs[slots[k]].found_of = sets[k] + 1;
        s->outputs[slots[k]].found = found[k];
    }
    return err;
}

kl_err kli_answers_foresee(kli_problem *s, kli_evaluation *c, const uint32_t *sets,
                           const uint32_t *slots, uint32_t n, kl_error *e) {
    uint32_t i = 0;
    if (!s->answers_stay || n < 2 || is_kept_here(s, c) || !only_output(&i, s)) return KL_OK;
    kl_err err = give_inputs(s, c, e);
    for (uint32_t k = 0; k < n && !err; k += s->n_answers)
        err = foresee_some(s, c, i, sets + k, slots + k,
                           n - k < s->n_answers ? n - k : s->n_answers, e);
    return err;
}
