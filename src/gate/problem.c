/* problem.c - one shape with its fresh inputs and the oracle's answers.
 *
 *   gate's private heap          shared pages (memory)                oracle's own pages
 *   -------------------          ---------------------                ------------------
 *   expected[set][output]        inputs   set 0..n_sets   read-only   outputs  slot 0..n_answers
 * (float64) pristine[set][mutable]       outputs  slot 0..n_slots
 *
 * The expected answers are copied out of the oracle's pages into this process, or stay on the
 * device of the oracle's process (answers.c); no candidate ever maps those pages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "backend/compare.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/recall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SMALL_DRAWS = 4,
    MORE_DRAWS = 8
}; /* input sets on which the reference's error is measured */
static const uint64_t SMALL_BYTES =
    4ull << 20; /* at shapes below this; a naive kernel takes milliseconds there */

static const double LITTLE_FLOPS = 4e6; /* milliseconds of an oracle */

static void *heap(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) kl_oom(bytes);
    return p;
}

/* A second thread is awaited by spinning on the gate's core, which costs more than a small answer.
 */
static bool is_little_work(const kli_problem *s) {
    double flops = 0, bytes = 0;
    return !kl_task_work(&flops, &bytes, s->task, s->workload, kl_ignored()) && flops > 0 &&
           flops < LITTLE_FLOPS;
}

/* A reference that runs in float64 answers in it. */
static void widen_outputs(kl_plan *p) {
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        kl_plan_tensor *t = &p->tensors[i];
        if (t->role != KL_ROLE_OUTPUT || !kl_dtype_is_float(kli_type_of(p, i))) continue;
        t->bytes = t->bytes / kl_dtype_bytes(kli_type_of(p, i)) * sizeof(double);
        t->dtype = KL_F64;
    }
}

/* The oracle's plan: the same tensors with its own output types, and its own pages for outputs. */
static kl_err open_oracle_pages(kli_problem *s, kli_evaluation *c, kl_error *e) {
    if (!c->oracle) return KL_OK;
    s->oracle_plan = s->plan;
    if (c->oracle->kernel) {
        const kl_err err = kli_executable_plan(&s->oracle_plan, c->oracle, c, s->workload, e);
        if (err) return err;
        if (is_little_work(s)) s->oracle_plan.threads = 1;
    } else {
        s->oracle_plan.n_buffers = s->oracle_plan.n_tensormaps = s->oracle_plan.n_launches = 0;
        if (s->task->wide_reference) widen_outputs(&s->oracle_plan);
    }
    s->answers_stay = kli_answers_can_stay(s, c);
    kl_layout layout;
    kl_err err = kli_layout_make(&layout, &s->oracle_plan, s->n_sets, 1, e);
    s->n_answers =
        !err && s->answers_stay ? kli_answers_that_fit(&layout, c->device->limits.memory) : 1;
    if (s->n_answers > 1)
        err = kli_layout_make(&layout, &s->oracle_plan, s->n_sets, s->n_answers, e);
    if (!err) err = kli_memory_open_beside(&s->oracle_memory, &layout, &s->memory, e);
    /* Law 2: the answers are written where no candidate can read. */
    KL_ASSERT(err || (s->oracle_memory.outputs != s->memory.outputs &&
                      s->oracle_memory.outputs_fd != s->memory.outputs_fd));
    return err;
}

kl_err kli_problem_open(kli_problem *s, kli_evaluation *c, const kl_workload *w, uint32_t n_sets,
                        uint32_t n_slots, double scale, kl_error *e) {
    KL_ASSERT(n_sets >= 1 && n_sets <= KL_MAX_SETS && n_slots >= 1);
    *s = (kli_problem){.id = ++c->gate->problems,
                       .task = c->task,
                       .workload = w,
                       .n_sets = n_sets,
                       .n_slots = n_slots,
                       .n_answers = 1,
                       .pages_seen = c->backend->shared_memory || c->device->pageable_access,
                       .scale = scale};
    s->memory.inputs_fd = s->oracle_memory.inputs_fd = -1;
    c->problems++; /* seeds count from the case's beginning, so that one root seed means the same
                      inputs in every gate */
    const kl_device_limits *limits = &c->device->limits;
    kl_err err = kli_kernel_plan(&s->plan, c->kernel, c->task, w, limits, e);
    if (!err)
        err = kli_plan_complete(&s->plan, c->candidate.artefact.completion, c->kernel, c->task, w,
                                limits, e);
    if (err) return err;
    kl_layout layout;
    err = kli_layout_make(&layout, &s->plan, n_sets, n_slots, e);
    if (!err) err = kli_memory_open(&s->memory, &layout, e);
    if (!err) err = open_oracle_pages(s, c, e);
    if (!err) kli_inputs_plan(s, c);
    for (uint32_t set = 0; !err && set < n_sets; set++) {
        s->seeds[set] = kli_seed_derive(c->root, "inputs", c->problems * KL_MAX_SETS + set);
        for (uint32_t i = 0; i < s->plan.n_tensors; i++)
            s->naive_error[set][i] = s->reference_error[i] = -1;
        err = kli_inputs_begin(s, c, set, e);
        kli_memory_slack(&s->memory, &s->plan, set, -1, KL_POISON_NAN);
    }
    if (err) kli_problem_close(s);
    return err;
}

/* Physical placement of pages decides a few percent of a CPU kernel's time; new pages with the same
 * bytes average it out. */
kl_err kli_problem_renew(kli_problem *s, kli_evaluation *c, kl_error *e) {
    kl_memory fresh;
    kl_err err = kli_memory_open(&fresh, &s->memory.layout, e);
    if (err) return err;
    KL_ASSERT(fresh.inputs_bytes == s->memory.inputs_bytes);
    memcpy(fresh.inputs, s->memory.inputs, s->memory.inputs_bytes);
    kli_memory_close(&s->oracle_memory);
    kli_memory_close(&s->memory);
    s->memory = fresh;
    s->id = ++c->gate->problems;
    return open_oracle_pages(s, c, e);
}

/* Of `plan`, the candidate's or the oracle's: inputs have one type in both. */
static void problem_restore_mutable(const kli_problem *s, kl_memory *m, const kl_plan *plan,
                                    uint32_t set, uint32_t slot) {
    for (uint32_t i = 0; i < plan->n_tensors; i++)
        if (kli_is_mutable(plan, i))
            memcpy(kli_memory_output(m, plan, i, slot), s->pristine[set][i],
                   s->plan.tensors[i].bytes);
}

void kli_problem_ready_slot(kli_problem *s, uint32_t set, uint32_t slot, uint8_t poison) {
    KL_ASSERT(set < s->n_sets && slot < s->n_slots);
    if (s->pages_seen) kli_memory_poison(&s->memory, &s->plan, slot, poison);
    problem_restore_mutable(s, &s->memory, &s->plan, set, slot);
}

void kli_problem_hide_slot(kli_problem *s, const kli_evaluation *c, uint32_t set, uint32_t slot) {
    if (s->pages_seen && !c->backend->shared_memory)
        kli_problem_ready_slot(s, set, slot, KL_POISON_NAN);
}

/* ---- expectations ------------------------------------------------------------------------ */

/* Of trusted code at sizes the task chose: only a broken machine takes longer. */
static const int64_t TRUSTED_NS = 600ll * 1000000000ll;

kl_err kli_trusted_fault(kli_executable *a, const kl_fault *fault, kl_error *e) {
    kli_executable_stop(a); /* the next verdict starts it afresh */
    kl_fail(e, KL_EINVAL, a->name.ptr, "the task's own %.*s failed: %s", KL_STR_ARG(a->name),
            fault->text);
    return kl_hint(e, "klineage task check shows whether the task is sound here");
}

/* The answer for a set into the slot that it has, where it lies until another's is asked for. */
static kl_err run_oracle(kli_problem *s, kli_evaluation *c, uint32_t set, uint32_t slot,
                         kl_fault *fault, kl_error *e) {
    int64_t wall = 0;
    kl_err err = c->oracle->problem == s->id && s->is_given
                     ? KL_OK
                     : kli_executable_enter(c->oracle, s, c, set, 1, fault, e);
    if (err || fault->kind) return err;
    problem_restore_mutable(s, &s->oracle_memory, &s->oracle_plan, set, slot);
    kli_runner_keep(c->oracle->runner, s->answers_stay);
    s->answer_of[slot] = 0;
    err = kli_runner_run(c->oracle->runner, fault, set, slot, KL_POISON_NAN, TRUSTED_NS, &wall, e);
    if (wall > s->oracle_ns) s->oracle_ns = wall;
    c->run_ns += wall;
    return err;
}

kl_err kli_problem_ask_oracle(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    const uint32_t slot = kli_answer_slot(s, set);
    kl_fault fault = {0};
    const kl_err err = run_oracle(s, c, set, slot, &fault, e);
    if (err) kli_executable_stop(c->oracle);
    if (err == KL_ENODEV) return kli_oracle_missing(c, kl_str_of(e->message), e);
    if (err) return err;
    if (fault.kind) return kli_trusted_fault(c->oracle, &fault, e);
    s->answer_of[slot] = set + 1;
    return KL_OK;
}

void kli_problem_keep_answer(kli_problem *s, uint32_t set) {
    KL_ASSERT(kli_answer_is_held(s, set));
    for (uint32_t i = 0; i < s->plan.n_tensors; i++) {
        if (!kli_is_output(&s->plan, i)) continue;
        const size_t bytes = s->oracle_plan.tensors[i].bytes;
        KL_ASSERT(!s->expected[set][i]);
        s->expected[set][i] = heap(bytes);
        memcpy(s->expected[set][i],
               kli_memory_output(&s->oracle_memory, &s->oracle_plan, i, kli_answer_slot(s, set)),
               bytes);
    }
}

/* Whoever compares here reads inputs too. */
static kl_err answer(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    kl_err err = s->answers_stay ? KL_OK : kli_inputs_fill(s, c, set, e);
    if (!err) err = kli_problem_ask_oracle(s, c, set, e);
    if (!err && !s->answers_stay) kli_problem_keep_answer(s, set);
    return err;
}

/* Other processes of this machine measured it for the same task on the same device: the task's hash
 * is over its naive kernel too. */
static const char *error_file(const kli_naive_error *m, kli_evaluation *c) {
    return kl_arena_printf(c->arena, "naive-error-%s", kli_hash_of(m->key).hex).ptr;
}

static void recall_error(kli_naive_error *m, kli_evaluation *c) {
    kl_str text;
    if (!c->opts->compile.no_cache && kli_recall(&text, c->arena, error_file(m, c), m->key))
        (void)kli_reference_read(m, text);
}

static kli_naive_error *remembered_error(kli_evaluation *c, const kl_workload *w, double scale) {
    kl_gate *g = c->gate;
    const kl_device *d = c->device;
    const kl_str key = kl_arena_printf(
        c->arena, "%s/%s/%.*s/%d/%g/%.*s/%.*s/%.*s/%.*s", c->task->hash, c->naive_kernel->name.ptr,
        KL_STR_ARG(w->uuid), (int)c->backend->id, scale, KL_STR_ARG(d->platform),
        KL_STR_ARG(d->name), KL_STR_ARG(d->driver), KL_STR_ARG(d->toolchain));
    for (int i = 0; i < g->n_errors; i++)
        if (kl_str_eq(g->errors[i].key, key)) return &g->errors[i];
    const int at = g->n_errors < (int)KL_COUNT(g->errors) ? g->n_errors++ : 0;
    KL_ASSERT(at < g->n_errors && g->n_errors <= (int)KL_COUNT(g->errors));
    g->errors[at] = (kli_naive_error){.key = kl_arena_copy(g->arena, key)};
    for (uint32_t i = 0; i < KL_MAX_TENSORS; i++) g->errors[at].rms[i] = -1;
    recall_error(&g->errors[at], c);
    return &g->errors[at];
}

bool kli_reference_is_known(kli_evaluation *c) {
    return remembered_error(c, c->workload, 1)->draws > 0;
}

kl_err kli_problem_compare(kl_check_result *r, kli_problem *s, kli_evaluation *c, uint32_t i,
                           uint32_t set, uint32_t slot, const kl_check *how, kl_error *e) {
    bool sure = false;
    if (s->answers_stay && !s->expected[set][i]) {
        const kl_err err = kli_answers_compare(&sure, r, s, c, i, set, slot, how, e);
        if (err || sure) return err;
    }
    KL_ASSERT(s->expected[set][i]); /* nothing is right that the oracle did not answer */
    const kl_err err = kli_output_bring(s, slot, e);
    if (err) return err;
    kli_gate_compare(r, kli_type_of(&s->plan, i), kli_memory_output(&s->memory, &s->plan, i, slot),
                     kli_type_of(&s->oracle_plan, i), s->expected[set][i],
                     kli_elements_of(&s->plan, i), how);
    return KL_OK;
}

/* The reference's own error is what the budget multiplies, the largest of what was measured; it
 * runs in slot 0, which is poisoned again before any candidate. */
static kl_err measure_reference(kli_problem *s, kli_evaluation *c, uint32_t set, double *rms,
                                kl_error *e) {
    kl_fault fault = {0};
    s->paired[set] = true;
    kl_err err = kli_executable_enter(c->naive_kernel, s, c, set, 1, &fault, e);
    kli_problem_ready_slot(s, set, 0, KL_POISON_NAN);
    int64_t wall = 0;
    const kli_run run = {set, 0, KL_POISON_NAN, TRUSTED_NS};
    if (!err && !fault.kind) err = kli_output_run(s, c->naive_kernel, &run, &fault, &wall, e);
    if (err) kli_executable_stop(c->naive_kernel);
    if (err) return err;
    if (fault.kind) return kli_trusted_fault(c->naive_kernel, &fault, e);
    c->run_ns += wall;
    for (uint32_t i = 0; i < KL_MAX_TENSORS; i++) rms[i] = -1;
    for (uint32_t i = 0; i < s->plan.n_tensors; i++) {
        if (!kli_is_output(&s->plan, i) || !kl_dtype_is_float(kli_type_of(&s->plan, i))) continue;
        kl_check_result r = {.budget = 1e30};
        const kl_check any = {.kind = KL_CHECK_BUDGET, .rtol = 1e30, .atol = 1e30, .matched = 1};
        err = kli_problem_compare(&r, s, c, i, set, 0, &any, e);
        if (err) return err;
        rms[i] = r.rms_error;
    }
    if (s->pages_seen) kli_memory_poison(&s->memory, &s->plan, 0, KL_POISON_NAN);
    return KL_OK;
}

void kli_reference_remember(kli_naive_error *m, const double *rms) {
    for (uint32_t i = 0; i < KL_MAX_TENSORS; i++)
        if (m->draws == 0 || !isfinite(m->rms[i]) || (isfinite(rms[i]) && rms[i] > m->rms[i]))
            m->rms[i] = rms[i];
    m->draws++;
}

kl_str kli_reference_text(kl_arena *a, const kli_naive_error *m) {
    kl_buf text = {0};
    kl_buf_printf(&text, "%d", m->draws);
    for (int i = 0; i < KL_MAX_TENSORS; i++) kl_buf_printf(&text, " %a", m->rms[i]);
    const kl_str s = kl_arena_copy(a, kl_buf_str(&text));
    kl_buf_fini(&text);
    return s;
}

bool kli_reference_read(kli_naive_error *m, kl_str text) {
    double rms[KL_MAX_TENSORS];
    char *at = NULL;
    const long draws = strtol(text.ptr, &at, 10);
    for (int i = 0; i < KL_MAX_TENSORS; i++) {
        const char *from = at;
        rms[i] = strtod(from, &at);
        if (at == from) return false;
    }
    if (draws < 1 || draws > SMALL_DRAWS || *at) return false;
    m->draws = (int)draws;
    memcpy(m->rms, rms, sizeof rms);
    return true;
}

static bool is_small(const kli_problem *s) {
    return s->memory.layout.set_bytes + s->memory.layout.slot_bytes <= SMALL_BYTES;
}

/* With few rows the error depends on the draw: on one input set in ten a naive layernorm errs five
 * times as much as on another.  So the first verdicts for a small shape measure it again; a large
 * one is its own average. */
static kl_err run_reference(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    double rms[KL_MAX_TENSORS];
    if (!c->naive_kernel) return KL_OK;
    kli_naive_error *m = remembered_error(c, s->workload, s->scale);
    const int wanted = is_small(s) ? SMALL_DRAWS : 1;
    if (m->draws < wanted) {
        const kl_err err = measure_reference(s, c, set, rms, e);
        if (err) return err;
        kli_reference_remember(m, rms);
        if (m->draws == wanted && !c->opts->compile.no_cache)
            kli_remember(error_file(m, c), m->key, kli_reference_text(c->arena, m));
    }
    memcpy(s->reference_error, m->rms, sizeof s->reference_error);
    memcpy(s->naive_error[set], m->rms, sizeof s->naive_error[set]);
    return KL_OK;
}

void kli_problem_take_error(kli_problem *s, uint32_t set) {
    KL_ASSERT(set < s->n_sets);
    if (!s->paired[set])
        memcpy(s->naive_error[set], s->reference_error, sizeof s->naive_error[set]);
}

/* For this set alone: what failures draw must not widen the budget of others. */
static void widen(kli_problem *s, uint32_t set, const double *rms) {
    for (uint32_t i = 0; i < KL_MAX_TENSORS; i++)
        if (isfinite(rms[i]) && rms[i] > s->naive_error[set][i]) s->naive_error[set][i] = rms[i];
}

/* The reference's error on other inputs, drawn in the place of this set's, which kli_problem_pair
 * brings back. */
static kl_err measure_elsewhere(kli_problem *s, kli_evaluation *c, uint32_t set, uint32_t draw,
                                kl_error *e) {
    double rms[KL_MAX_TENSORS];
    void *answers[KL_MAX_TENSORS];
    const uint64_t seed = s->seeds[set];
    memcpy(answers, s->expected[set], sizeof answers);
    memset(s->expected[set], 0, sizeof s->expected[set]);
    s->seeds[set] = kli_seed_derive(seed, "reference", draw);
    kl_err err = kli_inputs_begin(s, c, set, e);
    if (!err) err = answer(s, c, set, e);
    if (!err) err = measure_reference(s, c, set, rms, e);
    if (!err) widen(s, set, rms);
    kli_problem_forget(s, set);
    memcpy(s->expected[set], answers, sizeof answers);
    s->seeds[set] = seed;
    return err;
}

/* Measure on this set and, where the shape is small, on others: two honest sums over the same three
 * rows are two walks, and one of them may end near zero. */
static kl_err measure_again(kli_problem *s, kli_evaluation *c, uint32_t set, bool *wider,
                            kl_error *e) {
    double rms[KL_MAX_TENSORS];
    kl_err err = measure_reference(s, c, set, rms, e);
    if (err) return err;
    widen(s, set, rms);
    *wider = true;
    for (uint32_t draw = 0; !err && is_small(s) && draw < MORE_DRAWS; draw++)
        err = measure_elsewhere(s, c, set, draw, e);
    return err;
}

/* This set's own inputs, here and in the naive kernel's process, where it may be timed as a
 * baseline on them. */
static kl_err restore_inputs(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    kl_fault fault = {0};
    kl_err err = kli_inputs_begin(s, c, set, e);
    if (!err) err = kli_inputs_fill(s, c, set, e);
    if (!err) err = kli_executable_enter(c->naive_kernel, s, c, set, 1, &fault, e);
    return !err && fault.kind ? kli_trusted_fault(c->naive_kernel, &fault, e) : err;
}

/* Some kernels' errors are walks that differ ten times from draw to draw (a running sum): what
 * looks too inexact is judged by what the reference makes of the very same inputs, so that the
 * reference itself never fails, and of others like them. */
kl_err kli_problem_pair(kli_problem *s, kli_evaluation *c, uint32_t set, bool *wider, kl_error *e) {
    const size_t bytes = s->memory.layout.slot_bytes;
    *wider = false;
    if (!c->naive_kernel || s->paired[set]) return KL_OK;
    char *kept = heap(bytes); /* slot 0 with its guards: what the candidate left there may not have
                                 been looked at yet */
    memcpy(kept, s->memory.outputs, bytes);
    kl_error own = {0};
    const kli_output output = s->outputs[0];
    const kl_err err = measure_again(s, c, set, wider, &own);
    s->outputs[0] = output;
    memcpy(s->memory.outputs, kept, bytes);
    free(kept);
    if (err == KL_EINTR) {
        *e = own;
        return err;
    }
    if (err) /* no room beside the candidate, say: the finding stands as it was */
        kli_evaluation_degrade(c, "the reference was not run on %s: %s",
                               *wider ? "as many inputs as it should" : "the inputs that failed",
                               s->workload->hidden ? "no room beside the candidate" : own.message);
    return *wider && is_small(s) ? restore_inputs(s, c, set, e) : KL_OK;
}

static bool is_answered(const kli_problem *s, uint32_t set) {
    KL_ASSERT(set < s->n_sets);
    for (uint32_t i = 0; i < s->plan.n_tensors; i++)
        if (s->expected[set][i]) return true;
    return s->answers_stay && kli_answer_is_held(s, set);
}

void kli_problem_forget(kli_problem *s, uint32_t set) {
    if (kli_answer_is_held(s, set)) s->answer_of[kli_answer_slot(s, set)] = 0;
    for (uint32_t i = 0; i < KL_MAX_TENSORS; i++) {
        free(s->expected[set][i]);
        s->expected[set][i] = NULL;
    }
}

kl_err kli_problem_expect(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    if (!c->oracle || is_answered(s, set)) return KL_OK;
    const kl_err err = answer(s, c, set, e);
    return err ? err : run_reference(s, c, set, e);
}

/* The oracle alone, for a set whose outputs lie in a slot now: the reference would run in one.  Its
 * error is known since set 0 was asked for, when the problem was opened.  An answer that stays is
 * given when it is compared with. */
kl_err kli_problem_answer(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    if (!c->oracle || is_answered(s, set)) return KL_OK;
    kli_problem_take_error(s, set);
    return s->answers_stay ? KL_OK : answer(s, c, set, e);
}

void kli_problem_close(kli_problem *s) {
    for (uint32_t set = 0; set < KL_MAX_SETS; set++)
        for (uint32_t i = 0; i < KL_MAX_TENSORS; i++) {
            free(s->expected[set][i]);
            free(s->pristine[set][i]);
            s->expected[set][i] = s->pristine[set][i] = NULL;
        }
    if (s->oracle_memory.inputs_fd >= 0) kli_memory_close(&s->oracle_memory);
    if (s->generated.inputs_fd > 0) kli_memory_close(&s->generated);
    if (s->memory.inputs_fd >= 0) kli_memory_close(&s->memory);
    s->memory.inputs_fd = s->oracle_memory.inputs_fd = -1;
}
