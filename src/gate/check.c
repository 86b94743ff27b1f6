/* check.c - does the kernel compute the right thing, wherever a user could ask for it?
 *
 *   tiny shape      1 seed, then the stress scales       cheap shapes first: most wrong kernels end
 * here hidden shapes   1 seed each, odd sizes with tails    never shown to whoever wrote the kernel
 *   real shape      3 seeds, then the stress scales      its pages and inputs stay for the profile
 *
 * Every checked input is run twice, over two poisons (a NaN pattern and 0xA5): what was not written
 * stays poison in one of them, and two runs that differ in a bit are a race or a read of something
 * nobody wrote.  The seeds are substreams of a root drawn after the compile. Deliberately not here:
 * arithmetic on outputs (compare.c), processes (executable.c).  SPDX-License-Identifier: Apache-2.0
 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/hash.h"

#include <math.h>
#include <string.h>

static const int64_t CHECK_SECOND = 1000000000;
static const double MOST_BUDGET = 0.5;
static const int64_t LONG_RUN_NS =
    500000000; /* at the real shape: above it one input set is checked before the profile, which
                  compares the others, and the stress scales are left to tiny */
static const int64_t LONG_ORACLE_NS =
    2000000000; /* a call at the real shape: above it the stress scales are left to tiny */

static void check_reject(kli_check_outcome *f, kli_evaluation *c, kl_outcome outcome,
                         const char *fmt, ...) KL_PRINTF(4, 5);
static void check_reject(kli_check_outcome *f, kli_evaluation *c, kl_outcome outcome,
                         const char *fmt, ...) {
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    *f = (kli_check_outcome){
        .ok = false, .outcome = outcome, .why = kl_arena_copy(c->arena, kl_str_of(text))};
}

void kli_check_outcome_of_fault(kli_check_outcome *f, kli_evaluation *c, const kl_fault *fault,
                                const char *when) {
    switch (fault->kind) {
    case KL_FAULT_NONE:
        return;
    case KL_FAULT_HANG:
        check_reject(f, c, KL_OUTCOME_HANG, "%s: %s", when, fault->text);
        return;
    case KL_FAULT_REFUSED:
        check_reject(f, c, KL_OUTCOME_REFUSED, "%s: %s", when, fault->text);
        return;
    case KL_FAULT_INPUT:
        check_reject(f, c, KL_OUTCOME_CHEAT, "%s: it changed an input: %s", when, fault->text);
        return;
    case KL_FAULT_GUARD:
        check_reject(f, c, KL_OUTCOME_WRONG, "%s: it wrote outside a buffer: %s", when,
                     fault->text);
        return;
    case KL_FAULT_PROTOCOL: /* native code that leaves its process, answers for it or works on
                               behind "done"; device code cannot */
        check_reject(f, c, c->verdict->assurance == 'A' ? KL_OUTCOME_CRASH : KL_OUTCOME_CHEAT,
                     "%s: %s", when, fault->text);
        return;
    case KL_FAULT_CRASH:
    case KL_FAULT_DEVICE:
        check_reject(f, c, KL_OUTCOME_CRASH, "%s: %s", when, fault->text);
        return;
    }
}

/* ---- judging one slot -------------------------------------------------------------------- */

/* Of a hidden shape the record keeps whether and how far, never where or how many: those tell its
 * sizes. */
static kl_check_result without_sizes(const kl_check_result *r) {
    kl_check_result said = *r;
    said.workload = KL_S("hidden");
    said.bad = r->bad > 0;
    said.first_bad = -1;
    said.got = said.expected = 0;
    return said;
}

static void record_check(kli_evaluation *c, const kl_check_result *r) {
    kl_verdict *v = c->verdict;
    KL_ASSERT((r->first_bad >= 0) <= (r->bad > 0));
    kl_check_result *row = KL_PUSH(c->arena, v->checks, v->n_checks);
    *row = *r;
    row->workload = kl_arena_copy(c->arena, r->workload); /* a verdict outlives its task */
    row->output = kl_arena_copy(c->arena, r->output);
}

/* Rounding that the task permits: to the output's type, and inside to its stated precision, though
 * never coarser than the coarsest input (a float32 workload of a bfloat16 task is computed in
 * float32). */
static double permitted_rounding(const kli_problem *s, uint32_t i) {
    double coarsest = 0;
    for (uint32_t j = 0; j < s->plan.n_tensors; j++) {
        const bool read = kli_is_input(&s->plan, j) || kli_is_mutable(&s->plan, j);
        if (read) coarsest = fmax(coarsest, kl_dtype_epsilon(kli_type_of(&s->plan, j)));
    }
    const double stated = s->task->precision ? kl_dtype_epsilon(s->task->precision) : 0;
    const double inside = stated < coarsest ? stated : coarsest,
                 outside = kl_dtype_epsilon(kli_type_of(&s->plan, i));
    return inside > outside ? inside
           : inside < outside
               ? outside
               : 2 * outside; /* computed and stored in one type: it rounds more than once */
}

/* k x the baseline's own error, and never below what permitted rounding alone costs.  A reference
 * that overflows or is simply wrong must not open the gate for everybody: zeros have a relative
 * error of 1, so its part of the budget ends at half of that. */
static double budget_of(const kli_problem *s, uint32_t set, uint32_t i, const kl_check *how) {
    const double k = how->budget > 0 ? how->budget : 4, own = s->naive_error[set][i];
    const double by_rounding = k * permitted_rounding(s, i),
                 by_reference = isfinite(own) && own > 0 ? fmin(k * own, MOST_BUDGET) : 0;
    KL_ASSERT(by_rounding >= 0 && by_reference <= MOST_BUDGET);
    return fmax(by_rounding, by_reference);
}

static bool still_poison(const kl_plan *p, uint32_t i, const void *data, int64_t index,
                         uint8_t poison) {
    const size_t size = kl_dtype_bytes(kli_type_of(p, i));
    KL_ASSERT(index >= 0 && index < kli_elements_of(p, i));
    const unsigned char *at = (const unsigned char *)data + (size_t)index * size;
    for (size_t b = 0; b < size; b++)
        if (at[b] != poison) return false;
    return true;
}

static kl_str position(kli_evaluation *c, const kl_plan *p, uint32_t i, int64_t flat) {
    kl_buf b = {0};
    int64_t index[KL_MAX_DIMS] = {0};
    for (int d = p->tensors[i].ndim - 1; d >= 0; d--) {
        index[d] = flat % p->tensors[i].dims[d];
        flat /= p->tensors[i].dims[d];
    }
    KL_ASSERT(flat == 0);
    kl_buf_printf(&b, "%s[", p->tensors[i].name);
    for (int d = 0; d < p->tensors[i].ndim; d++)
        kl_buf_printf(&b, "%s%lld", d ? "," : "", (long long)index[d]);
    kl_buf_printf(&b, "]");
    const kl_str s = kl_arena_copy(c->arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return s;
}

static void explain(kli_check_outcome *f, kli_evaluation *c, kli_problem *s, uint32_t i,
                    const kl_check_result *r, const void *got, uint8_t poison) {
    const char *where = s->workload->hidden ? "a hidden shape" : s->workload->label.ptr;
    if (r->first_bad >= 0 && s->workload->hidden) {
        const bool poisoned = still_poison(&s->plan, i, got, r->first_bad, poison);
        check_reject(f, c, KL_OUTCOME_WRONG, "at %s: elements of %s %s", where,
                     s->plan.tensors[i].name, poisoned ? "were not written" : "are wrong");
        return;
    }
    if (r->first_bad >= 0) {
        const kl_str at = position(c, &s->plan, i, r->first_bad);
        if (still_poison(&s->plan, i, got, r->first_bad, poison))
            check_reject(f, c, KL_OUTCOME_WRONG, "at %s: %s was not written (%lld elements wrong)",
                         where, at.ptr, (long long)r->bad);
        else
            check_reject(f, c, KL_OUTCOME_WRONG,
                         "at %s: %s is %.9g, expected %.9g (%lld elements wrong)", where, at.ptr,
                         r->got, r->expected, (long long)r->bad);
        return;
    }
    check_reject(f, c, KL_OUTCOME_WRONG,
                 "at %s%s: %s has relative RMS error %.3g, the budget is %.3g", where,
                 s->scale == 1 ? "" : " under a stress scale", s->plan.tensors[i].name,
                 r->rms_error, r->budget);
}

/* Is this output the `values` half of a top-k pair?  Then its order is free and the pair is judged
 * with the indices. */
static bool belongs_to_topk(const kli_problem *s, uint32_t i) {
    for (int j = 0; j < s->task->n_tensors; j++)
        if (s->workload->checks[j].kind == KL_CHECK_TOPK && s->task->tensors[j].is_output &&
            kl_task_tensor(s->task, s->workload->checks[j].values) == (int)i)
            return true;
    return false;
}

static kl_err judge_output(kl_check_result *r, kli_evaluation *c, kli_problem *s, uint32_t i,
                           uint32_t set, const void *got, uint32_t slot, kl_error *e) {
    const kl_check *how = &s->workload->checks[i];
    if (how->kind != KL_CHECK_TOPK) return kli_problem_compare(r, s, c, i, set, slot, how, e);
    const int values = kl_task_tensor(s->task, how->values),
              ranked = kl_task_tensor(s->task, how->input);
    KL_ASSERT(values >= 0 && ranked >= 0 && s->expected[set][values]);
    kl_arena *scratch = kl_arena_new();
    kli_compare_topk(r, scratch, &s->plan, values, (int)i, ranked,
                     kli_memory_output(&s->memory, &s->plan, (uint32_t)values, slot), got,
                     kli_type_of(&s->oracle_plan, (uint32_t)values), s->expected[set][values],
                     kli_memory_input(&s->memory, &s->plan, (uint32_t)ranked, set));
    kl_arena_free(scratch);
    return KL_OK;
}

/* Elements as they may be and only their sum over the budget: the budget may rest on a lucky draw.
 */
static kl_err judge_fairly(kl_check_result *r, kli_evaluation *c, kli_problem *s, uint32_t i,
                           uint32_t set, const void *got, uint32_t slot, kl_error *e) {
    const kl_check *how = &s->workload->checks[i];
    bool wider = false;
    r->budget = budget_of(s, set, i, how);
    kl_err err = judge_output(r, c, s, i, set, got, slot, e);
    if (err) return err;
    const double permitted =
        how->matched > 0 ? (1 - how->matched) * (double)kli_elements_of(&s->plan, i) : 0;
    if ((double)r->bad > permitted || r->rms_error <= r->budget) return KL_OK;
    err = kli_problem_pair(s, c, set, &wider, e);
    if (err || !wider) return err;
    r->budget = budget_of(s, set, i, how);
    return judge_output(r, c, s, i, set, got, slot, e);
}

kl_err kli_check_slot(kli_evaluation *c, kli_problem *s, uint32_t set, uint32_t slot,
                      uint8_t poison, bool record, kli_check_outcome *f, kl_error *e) {
    KL_ASSERT(set < s->n_sets && slot < s->n_slots);
    for (uint32_t i = 0; i < s->plan.n_tensors && f->ok; i++) {
        if (!kli_is_output(&s->plan, i) || belongs_to_topk(s, i) || !c->oracle) continue;
        const void *got = kli_memory_output(&s->memory, &s->plan, i, slot);
        kl_check_result r = {.workload = s->workload->label,
                             .scale = s->scale,
                             .output = s->task->tensors[i].name,
                             .seed = s->seeds[set]};
        const kl_err err = judge_fairly(&r, c, s, i, set, got, slot, e);
        if (err) return err;
        const kl_check_result said = s->workload->hidden ? without_sizes(&r) : r;
        if (record || !r.ok) record_check(c, &said);
        if (!r.ok) explain(f, c, s, i, &r, got, poison);
    }
    if (!f->ok || !c->backend->shared_memory) return KL_OK;
    const int damaged = kli_memory_guard_damage(&s->memory, &s->plan, slot, poison);
    if (damaged >= 0)
        check_reject(f, c, KL_OUTCOME_WRONG,
                     "it wrote outside a buffer: the guard beside `%s` changed",
                     s->plan.tensors[damaged].name);
    return KL_OK;
}

/* ---- running a problem ------------------------------------------------------------------- */

static int64_t patience(const kli_problem *s, int64_t least) {
    const int64_t t = 50 * s->oracle_ns;
    return t < least ? least : t > 120 * CHECK_SECOND ? 120 * CHECK_SECOND : t;
}

uint64_t kli_slot_print(const kli_problem *s, uint32_t slot) {
    uint64_t h = 0;
    KL_ASSERT(slot < KL_COUNT(s->outputs));
    if (s->outputs[slot].has_print) return s->outputs[slot].print;
    for (uint32_t i = 0; i < s->plan.n_tensors; i++)
        if (kli_is_output(&s->plan, i))
            h = h * 0x9E3779B97F4A7C15ull +
                kli_hash_bulk(kli_memory_output(&s->memory, &s->plan, i, slot),
                              s->plan.tensors[i].bytes);
    return h;
}

/* Runs of the candidate on one input set, in one slot. */
typedef struct {
    kli_evaluation *c;
    kli_problem *s;
    uint32_t set, slot;
    int64_t timeout_ns;
    kl_error *e;
} trial;

/* Bytes beside the data of input `only`, or of all. */
static void put_beside(const trial *t, int only, uint8_t byte) {
    kli_memory_slack(&t->s->memory, &t->s->plan, t->set, only, byte);
    kli_runner_slack(t->c->candidate.runner, byte);
}

/* Native code could write what its runner says: there the time is no longer than this process saw.
 */
static void note_run(kli_evaluation *c, const kli_problem *s, int64_t said_ns, int64_t seen_ns) {
    const int64_t ns = c->backend->shared_memory && seen_ns < said_ns ? seen_ns : said_ns;
    if (s->workload == c->workload && ns > 0 && (c->checked_ns == 0 || ns < c->checked_ns))
        c->checked_ns = ns;
}

/* One poisoned run and its judgement. */
static kl_err run_poisoned(const trial *t, uint8_t poison, bool record, kl_fault *fault,
                           kli_check_outcome *f) {
    kli_evaluation *c = t->c;
    kli_problem *s = t->s;
    int64_t wall = 0;
    KL_ASSERT(f->ok && t->timeout_ns > 0);
    kli_problem_ready_slot(s, t->set, t->slot, poison);
    const int64_t begin = kli_now_ns();
    const kl_err err = kli_output_run(
        s, &c->candidate, &(kli_run){t->set, t->slot, poison, t->timeout_ns}, fault, &wall, t->e);
    c->run_ns += wall;
    if (err) return err;
    note_run(c, s, wall, kli_now_ns() - begin);
    kli_check_outcome_of_fault(f, c, fault,
                               s->workload->hidden ? "at a hidden shape" : s->workload->label.ptr);
    return f->ok ? kli_check_slot(c, s, t->set, t->slot, poison, record, f, t->e) : KL_OK;
}

/* ---- reads beside an input --------------------------------------------------------------- */

/* Is the answer wrong with `byte` beside input `only` (-1: any), and zeros beside the others? */
static kl_err is_wrong_with(bool *wrong, const trial *t, int only, uint8_t byte) {
    kli_check_outcome own = {.ok = true};
    kl_fault fault = {0};
    put_beside(t, -1, 0);
    put_beside(t, only, byte);
    const kl_err err = run_poisoned(t, KL_POISON_NAN, false, &fault, &own);
    *wrong = !own.ok && !fault.kind;
    return err;
}

/* A wrong answer that is right with zeros beside the inputs, and wrong again with NaNs there, comes
 * from a read outside of one.  Which one is found where the gate fills the pages itself. */
static kl_err blame_slack(const trial *t, kli_check_outcome *f) {
    const kl_plan *plan = &t->s->plan;
    const char *name = NULL;
    bool zeros = true, nans = false;
    const int checks = t->c->verdict->n_checks;
    kl_err err = is_wrong_with(&zeros, t, -1, 0);
    if (!err && !zeros) err = is_wrong_with(&nans, t, -1, KL_POISON_NAN);
    for (uint32_t i = 0;
         !err && nans && !name && t->c->backend->shared_memory && i < plan->n_tensors; i++) {
        bool this_one = false;
        if (!kli_is_input(plan, i)) continue;
        err = is_wrong_with(&this_one, t, (int)i, KL_POISON_NAN);
        if (this_one) name = plan->tensors[i].name;
    }
    t->c->verdict->n_checks = checks; /* what was tried to understand it is no check */
    if (err || !nans) return err;
    check_reject(f, t->c, KL_OUTCOME_WRONG,
                 "at %s: over-read: the result depends on the bytes beside %s%s%s",
                 t->s->workload->hidden ? "a hidden shape" : t->s->workload->label.ptr,
                 name ? "input `" : "an input", name ? name : "", name ? "`" : "");
    return KL_OK;
}

/* Beside the inputs lies what lies in the poisoned outputs: NaNs in one run, a tiny number in the
 * other. */
static kl_err run_once(const trial *t, uint8_t poison, bool record, kli_check_outcome *f) {
    kl_fault fault = {0};
    put_beside(t, -1, poison);
    const kl_err err = run_poisoned(t, poison, record, &fault, f);
    return err || f->ok || fault.kind ? err : blame_slack(t, f);
}

/* Two right answers that differ: from the bytes beside an input, if the first comes again with the
 * first's bytes there. */
static kl_err explain_difference(const trial *t, uint64_t first_print, uint8_t first,
                                 uint8_t second, kli_check_outcome *f) {
    kli_check_outcome own = {.ok = true};
    kl_fault fault = {0};
    put_beside(t, -1, first);
    const kl_err err = run_poisoned(t, second, false, &fault, &own);
    if (err) return err;
    if (own.ok && kli_slot_print(t->s, t->slot) == first_print)
        check_reject(
            f, t->c, KL_OUTCOME_WRONG,
            "over-read: two runs on the same input differ with the bytes that lie beside an input");
    else
        check_reject(
            f, t->c, KL_OUTCOME_WRONG,
            "two runs on the same input differ: a race, or a read of memory that nothing wrote");
    return KL_OK;
}

/* Every call of it that is timed is compared, over one poison or the other: what a second run would
 * show, they show. */
static bool is_timed_slowly(const kli_evaluation *c) {
    return c->checked_ns > LONG_RUN_NS && !c->opts->check_only;
}

/* The profile meets these bits again. */
static void note_right(kli_problem *s, uint32_t set, uint32_t slot) {
    s->is_right[set] = s->outputs[slot].has_print;
    s->right_print[set] = s->outputs[slot].print;
}

/* Once, or `twice`: over one poison and over the other. */
static kl_err run_set(kli_evaluation *c, kli_problem *s, uint32_t set, int64_t least, bool twice,
                      kli_check_outcome *f, kl_error *e) {
    const uint8_t first = set % 2 ? KL_POISON_BITS : KL_POISON_NAN,
                  second = set % 2 ? KL_POISON_NAN : KL_POISON_BITS;
    trial t = {.c = c, .s = s, .set = set, .slot = set % s->n_slots, .e = e};
    kl_fault fault = {0};
    KL_ASSERT(f->ok && set < s->n_sets);
    kl_err err = kli_problem_expect(s, c, set, e);
    if (!err) err = kli_executable_enter(&c->candidate, s, c, set, 1, &fault, e);
    kli_check_outcome_of_fault(f, c, &fault, "on loading");
    if (err || !f->ok) return err;
    t.timeout_ns = patience(s, least);
    err = run_once(&t, first, true, f);
    if (!err && f->ok) note_right(s, set, t.slot);
    if (err || !f->ok || !twice || is_timed_slowly(c)) return err;
    const uint64_t print = kli_slot_print(s, t.slot);
    err = run_once(&t, second, false, f);
    if (err || !f->ok) return err;
    if (print == kli_slot_print(s, t.slot) || c->kernel->nondeterministic) return KL_OK;
    return explain_difference(&t, print, first, second, f);
}

static kl_err check_set(kli_evaluation *c, kli_problem *s, uint32_t set, int64_t least, bool twice,
                        kli_check_outcome *f, kl_error *e) {
    kl_err err = run_set(c, s, set, least, twice, f, e);
    if (!err && f->ok) err = kli_through_check(c, s, set, f, e);
    kli_problem_hide_slot(s, c, set, set % s->n_slots);
    return err;
}

/* Where the compiler looks at shapes, each has code of its own, and all of it is inspected. */
static kl_err check_specialize(kli_evaluation *c, const kl_workload *w, kli_check_outcome *f,
                               kl_error *e) {
    kl_artefact *made = &c->candidate.artefact;
    if (!kli_compile_depends_on_shape(c->kernel)) return KL_OK;
    if (w != c->workload) kli_shapes_end(c, true);
    const kl_err err =
        kli_compile_code(made, c->arena, c->device, c->kernel, c->task, w, &c->opts->compile, e);
    if (err) return err;
    if (made->degraded.len) kli_evaluation_degrade(c, "%s", made->degraded.ptr);
    if (!made->ok)
        check_reject(f, c, KL_OUTCOME_NO_COMPILE, "%s", kl_first_error(c->arena, made->log).ptr);
    else if (made->suspicious.len)
        check_reject(f, c, KL_OUTCOME_CHEAT, "%s", made->suspicious.ptr);
    else if (made->refused.len)
        check_reject(f, c, KL_OUTCOME_REFUSED, "%s", made->refused.ptr);
    return KL_OK;
}

/* A shape whose copies no memory can hold is the candidate's (or the user's) wish, not a failure of
 * this machine. */
static kl_err open_or_refuse(kli_problem *s, kli_evaluation *c, const kl_workload *w, uint32_t n,
                             double scale, kli_check_outcome *f, kl_error *e) {
    kl_error own = {0};
    kl_err err = check_specialize(c, w, f, &own);
    if (!err && f->ok) err = kli_problem_open(s, c, w, n, n, scale, &own);
    if (err == KL_ELIMIT || err == KL_EINVAL) {
        check_reject(f, c, KL_OUTCOME_REFUSED, "%s", own.message);
        return KL_OK;
    }
    if (err && e) *e = own;
    return err;
}

static kl_err check_check_shape(kli_evaluation *c, const kl_workload *w, double scale,
                                kli_check_outcome *f, kl_error *e) {
    kli_problem *s = KL_NEW(c->arena, kli_problem);
    kl_err err = open_or_refuse(s, c, w, 1, scale, f, e);
    if (err || !f->ok) return err;
    err = check_set(c, s, 0, 5 * CHECK_SECOND, true, f, e);
    kli_problem_close(s);
    return err;
}

/* The candidate was compiled for the real shape's data types; a shape in others is another kernel's
 * business. */
static bool same_types(const kli_evaluation *c, const kl_workload *w) {
    return memcmp(w->dtypes, c->workload->dtypes,
                  (size_t)c->task->n_tensors * sizeof w->dtypes[0]) == 0;
}

/* A shape outside the kernel's declared domain, or beyond the device, is skipped and said. */
static kl_err check_or_skip(kli_evaluation *c, const kl_workload *w, double scale, int *checked,
                            kli_check_outcome *f, kl_error *e) {
    kl_plan *plan = KL_NEW(c->arena, kl_plan);
    if (!same_types(c, w)) return KL_OK;
    const kl_err planned = kli_kernel_plan(plan, c->kernel, c->task, w, &c->device->limits, e);
    if (planned == KL_EINVAL ||
        planned == KL_ELIMIT) { /* of a hidden shape the reason would tell the sizes */
        if (w->hidden)
            kli_evaluation_degrade(
                c, "a hidden shape was not checked: it lies outside the kernel's declared domain");
        else
            kli_evaluation_degrade(c, "%s was not checked: %s", w->label.ptr, e->message);
        return KL_OK;
    }
    if (planned) return planned;
    (*checked)++;
    return check_check_shape(c, w, scale, f, e);
}

/* `*stressed`: the stress scales were checked at the real shape already. */
static kl_err check_tiny(kli_evaluation *c, bool *stressed, kli_check_outcome *f, kl_error *e) {
    const kl_workload *w = kl_task_workload(c->task, KL_S("tiny"), c->backend->on);
    int checked = 0;
    kl_err err = KL_OK;
    if (!w) {
        kli_evaluation_degrade(c, "the task has no tiny shape");
        return KL_OK;
    }
    err = check_or_skip(c, w, 1, &checked, f, e);
    *stressed = !checked || w == c->workload;
    /* A declared domain may leave the tiny shape out, but not the scales. */
    for (int i = 0; !err && f->ok && i < c->task->n_stress; i++)
        err = check_check_shape(c, checked ? w : c->workload, c->task->stress[i], f, e);
    return err;
}

static bool draws_otherwise(const kli_evaluation *c, const kl_workload *w) {
    for (int i = 0; i < c->task->n_inputs; i++) {
        const kl_dist *a = &c->workload->dists[i], *b = &w->dists[i];
        if (b->kind == KL_DIST_FILE || a->kind == KL_DIST_FILE)
            return false; /* a file has one size */
        if (a->kind != b->kind || a->scale != b->scale || a->low != b->low || a->high != b->high ||
            a->value != b->value || a->active != b->active || a->l2norm != b->l2norm ||
            a->even != b->even)
            return true;
    }
    return false;
}

/* A hidden shape outside the declared domain lends its distributions to the real shape. */
static kl_err check_lent(kli_evaluation *c, const kl_workload *w, kli_check_outcome *f,
                         kl_error *e) {
    kl_workload *lent = KL_NEW(c->arena, kl_workload);
    if (!draws_otherwise(c, w)) return KL_OK;
    *lent = *c->workload;
    lent->hidden = true;
    lent->uuid =
        kl_arena_printf(c->arena, "%.*s+%.*s", KL_STR_ARG(lent->uuid), KL_STR_ARG(w->uuid));
    memcpy(lent->dists, w->dists, sizeof lent->dists);
    return check_check_shape(c, lent, 1, f, e);
}

static kl_err check_hidden(kli_evaluation *c, kli_check_outcome *f, kl_error *e) {
    int checked = 0, present = 0;
    kl_err err = KL_OK;
    for (int i = 0; !err && f->ok && i < c->task->n_workloads; i++) {
        const kl_workload *w = &c->task->workloads[i];
        if (!w->hidden || !kl_workload_fits(w, c->backend->on)) continue;
        const int before = checked;
        present++;
        err = check_or_skip(c, w, 1, &checked, f, e);
        if (!err && f->ok && checked == before) err = check_lent(c, w, f, e);
    }
    if (!err && f->ok && !checked)
        kli_evaluation_degrade(c, present ? "no hidden shape lies in the kernel's declared domain"
                                          : "the task has no hidden shapes");
    return err;
}

/* Does the task's own naive kernel pass the very check that the candidate failed? */
static kl_err reference_holds(bool *holds, kli_evaluation *c, kli_problem *s, kl_error *e) {
    kli_check_outcome own = {.ok = true};
    kl_fault fault = {0};
    int64_t wall = 0;
    kl_err err = kli_executable_enter(c->naive_kernel, s, c, 0, 1, &fault, e);
    if (err || fault.kind) return err;
    kli_problem_ready_slot(s, 0, 0, KL_POISON_NAN);
    err = kli_output_run(s, c->naive_kernel, &(kli_run){0, 0, KL_POISON_NAN, 120 * CHECK_SECOND},
                         &fault, &wall, e);
    if (!err && !fault.kind) err = kli_check_slot(c, s, 0, 0, KL_POISON_NAN, false, &own, e);
    *holds = own.ok && !fault.kind;
    return err;
}

/* A scale that suits a small shape may leave no right digit at a large one (a long recurrence):
 * there the naive kernel is wrong too, and nobody is blamed. */
static kl_err stress_real(kli_evaluation *c, double scale, kli_check_outcome *f, kl_error *e) {
    kli_problem *s = KL_NEW(c->arena, kli_problem);
    const int checks = c->verdict->n_checks;
    bool holds = true;
    kl_err err = open_or_refuse(s, c, c->workload, 1, scale, f, e);
    if (err || !f->ok) return err;
    err = check_set(c, s, 0, 10 * CHECK_SECOND, false, f,
                    e); /* once: both poisons were seen at this shape */
    if (!err && !f->ok && f->outcome == KL_OUTCOME_WRONG && c->naive_kernel) {
        const int failed = c->verdict->n_checks;
        err = reference_holds(&holds, c, s, e);
        c->verdict->n_checks = holds ? failed : checks;
    }
    if (!err && !holds) {
        kli_evaluation_degrade(
            c, "stress scale %g was not checked at %s: the task's naive kernel is wrong there",
            scale, c->workload->label.ptr);
        *f = (kli_check_outcome){.ok = true};
    }
    kli_problem_close(s);
    return err;
}

static void no_stress_at_real(kli_evaluation *c, const char *who, int64_t ns) {
    kli_evaluation_degrade(
        c, "the stress scales were not checked at %s: the %s takes %.1f s a call there",
        c->workload->label.ptr, who, (double)ns * 1e-9);
}

/* What is left out for long rows shows at the tiny shape as little as with inputs of one scale. */
static kl_err check_stress_at_real(kli_evaluation *c, const kli_problem *real, kli_check_outcome *f,
                                   kl_error *e) {
    const kl_task *t = c->task;
    double largest = 0;
    kl_err err = KL_OK;
    if (t->n_stress && real->oracle_ns > LONG_ORACLE_NS) {
        no_stress_at_real(c, "oracle", real->oracle_ns);
        return KL_OK;
    }
    c->stress_is_left = t->n_stress && is_timed_slowly(c);
    if (c->stress_is_left) return KL_OK;
    for (int i = 0; i < t->n_stress; i++) largest = fmax(largest, t->stress[i]);
    for (int i = 0; !err && f->ok && i < t->n_stress; i++)
        if (!c->opts->quick || t->stress[i] == largest) err = stress_real(c, t->stress[i], f, e);
    return err;
}

static kl_err check_real_shape(kli_evaluation *c, kli_problem *real, kli_check_outcome *f,
                               kl_error *e) {
    const uint32_t seeds = c->opts->quick ? 1 : 3;
    kl_err err = open_or_refuse(real, c, c->workload, seeds, 1, f, e);
    for (uint32_t set = 0; !err && f->ok && set < seeds; set++) {
        if (set > 0 && is_timed_slowly(c)) {
            kli_evaluation_degrade(
                c, "%s was checked on one input set before it was timed: one run takes %.1f s",
                c->workload->label.ptr, (double)c->checked_ns * 1e-9);
            break;
        }
        err = check_set(c, real, set, 10 * CHECK_SECOND, set == 0, f, e);
    }
    return err;
}

/* Tiny, hidden, real.  `real` is opened here and stays open on success for the profile. */
kl_err kli_check_stages(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e) {
    kli_evaluation_stage(c, KL_STAGE_TINY, "tiny shape");
    bool stressed = false;
    kl_err err = check_tiny(c, &stressed, f, e);
    kli_evaluation_stage_end(c, "tiny");
    if (err || !f->ok) return err;
    kli_evaluation_stage(c, KL_STAGE_HIDDEN, "hidden shapes");
    err = check_hidden(c, f, e);
    kli_evaluation_stage_end(c, "hidden");
    if (err || !f->ok) return err;
    kli_gate_reap(c->gate); /* what is left may fill a device, and what follows is timed there */
    kli_evaluation_stage(c, KL_STAGE_REAL, c->workload->label.ptr);
    err = check_real_shape(c, real, f, e);
    if (!err && f->ok && !stressed) err = check_stress_at_real(c, real, f, e);
    kli_evaluation_stage_end(c, "real");
    return err;
}

bool kli_check_has_rest(const kli_evaluation *c) {
    KL_ASSERT(c->verdict->median_ns > 0); /* it was timed */
    return is_timed_slowly(c) && c->verdict->median_ns <= LONG_RUN_NS;
}

kl_err kli_check_rest(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e) {
    kl_err err = KL_OK;
    KL_ASSERT(f->ok);
    if (!kli_check_has_rest(c)) {
        if (c->stress_is_left) no_stress_at_real(c, "kernel", c->checked_ns);
        return KL_OK;
    }
    c->checked_ns = c->verdict->median_ns; /* the shortest run, from here on */
    for (uint32_t set = 0; !err && f->ok && set < real->n_sets; set++)
        err = check_set(c, real, set, 10 * CHECK_SECOND, set == 0, f, e);
    if (!err && f->ok && c->stress_is_left) err = check_stress_at_real(c, real, f, e);
    return err;
}
