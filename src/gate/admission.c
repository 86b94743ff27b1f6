/* admission.c - is the task's own check strong enough to be trusted?
 *
 * For every small shape: the oracle's answer rounded to the output types must pass; with one output
 * replaced by zeros, ones, a copy of an input, its own mean, or itself moved by one element, it
 * must fail.  Then every naive kernel must pass the whole gate.  Without one the first half is told
 * alone, and that it is the first half.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"

#include <string.h>

enum { ADMISSION_MAX_ROWS = 512 };

typedef struct {
    kli_evaluation *c;
    kli_problem *s;
    kl_admission_row *rows;
    int n;
} admission;

static size_t admission_elements_of(const kli_problem *s, uint32_t i) {
    return (size_t)kli_elements_of(&s->plan, i);
}

static void admission_write_answer(kli_problem *s) {
    for (uint32_t i = 0; i < s->plan.n_tensors; i++) {
        if (!kli_is_output(&s->plan, i)) continue;
        void *out = kli_memory_output(&s->memory, &s->plan, i, 0);
        for (size_t j = 0; j < admission_elements_of(s, i); j++)
            kl_dtype_store(kli_type_of(&s->plan, i), out, j,
                           kl_dtype_load(kli_type_of(&s->oracle_plan, i), s->expected[0][i], j));
    }
}

/* ---- degenerate answers: each overwrites output `i` -------------------------------------- */

static void fill_with(kli_problem *s, uint32_t i, double value) {
    void *out = kli_memory_output(&s->memory, &s->plan, i, 0);
    for (size_t j = 0; j < admission_elements_of(s, i); j++)
        kl_dtype_store(kli_type_of(&s->plan, i), out, j, value);
}

static void make_zeros(kli_problem *s, uint32_t i) { fill_with(s, i, 0); }
static void make_ones(kli_problem *s, uint32_t i) { fill_with(s, i, 1); }

static void make_mean(kli_problem *s, uint32_t i) {
    double sum = 0;
    const size_t n = admission_elements_of(s, i);
    KL_ASSERT(n > 0);
    for (size_t j = 0; j < n; j++)
        sum += kl_dtype_load(kli_type_of(&s->oracle_plan, i), s->expected[0][i], j);
    fill_with(s, i, sum / (double)n);
}

static void admission_make_input(kli_problem *s, uint32_t i) {
    void *out = kli_memory_output(&s->memory, &s->plan, i, 0);
    for (uint32_t in = 0; in < s->plan.n_tensors; in++) {
        if (!kli_is_input(&s->plan, in)) continue;
        const void *data = kli_memory_input(&s->memory, &s->plan, in, 0);
        for (size_t j = 0; j < admission_elements_of(s, i); j++)
            kl_dtype_store(
                kli_type_of(&s->plan, i), out, j,
                kl_dtype_load(kli_type_of(&s->plan, in), data, j % admission_elements_of(s, in)));
        return;
    }
}

static void make_moved(kli_problem *s, uint32_t i) {
    void *out = kli_memory_output(&s->memory, &s->plan, i, 0);
    const size_t n = admission_elements_of(s, i);
    for (size_t j = 0; j < n; j++)
        kl_dtype_store(
            kli_type_of(&s->plan, i), out, j,
            kl_dtype_load(kli_type_of(&s->oracle_plan, i), s->expected[0][i], (j + 1) % n));
}

static const struct {
    const char *name;
    void (*make)(kli_problem *s, uint32_t i);
} DEGENERATE[] = {{"zeros", make_zeros},
                  {"ones", make_ones},
                  {"a copy of an input", admission_make_input},
                  {"the mean", make_mean},
                  {"a moved answer", make_moved}};

/* ---- rows -------------------------------------------------------------------------------- */

static void admission_add_row(admission *m, kl_str name, bool expected_pass, bool passed,
                              kl_str why) {
    if (m->n < ADMISSION_MAX_ROWS)
        m->rows[m->n++] = (kl_admission_row){name, expected_pass, passed, why};
}

static kl_err judge_row(admission *m, kl_str name, bool expected_pass, kl_error *e) {
    kli_check_outcome f = {.ok = true};
    const kl_err err = kli_check_slot(m->c, m->s, 0, 0, KL_POISON_NAN, false, &f, e);
    if (!err) admission_add_row(m, name, expected_pass, f.ok, f.why);
    return err;
}

/* One element has no wrong order, and a one-element mean is the answer: such outputs prove nothing
 * here, nor does a copy of no input. */
static bool tells(const kli_problem *s, uint32_t i, void (*make)(kli_problem *s, uint32_t i)) {
    bool has_input = false;
    for (uint32_t in = 0; in < s->plan.n_tensors; in++) has_input |= kli_is_input(&s->plan, in);
    if (make == admission_make_input && !has_input) return false;
    return admission_elements_of(s, i) >= 4 || make == make_zeros;
}

static kl_err try_shape(admission *m, const kl_workload *w, kl_error *e) {
    kli_problem *s = KL_NEW(m->c->arena, kli_problem);
    kl_err err = kli_problem_open(s, m->c, w, 1, 1, 1, e);
    if (err) return err;
    m->s = s;
    err = kli_problem_expect(s, m->c, 0, e);
    kli_memory_poison(&s->memory, &s->plan, 0, KL_POISON_NAN);
    if (!err) admission_write_answer(s);
    if (!err)
        err = judge_row(m, kl_arena_printf(m->c->arena, "%s: the oracle's answer", w->label.ptr),
                        true, e);
    for (uint32_t i = 0; !err && i < s->plan.n_tensors; i++)
        for (size_t d = 0; !err && kli_is_output(&s->plan, i) && d < KL_COUNT(DEGENERATE); d++) {
            if (!tells(s, i, DEGENERATE[d].make)) continue;
            admission_write_answer(s);
            DEGENERATE[d].make(s, i);
            err = judge_row(m,
                            kl_arena_printf(m->c->arena, "%s: %s in %s", w->label.ptr,
                                            DEGENERATE[d].name, s->plan.tensors[i].name),
                            false, e);
        }
    kli_problem_close(s);
    return err;
}

static kl_err try_naive(admission *m, kl_gate *g, const kl_task *t, kl_str file, kl_error *e) {
    kl_arena *a = m->c->arena;
    kl_kernel *k;
    kl_verdict *v = KL_NEW(a, kl_verdict);
    const kl_gate_opts check = {.check_only = true};
    kl_err err = kl_kernel_load(&k, a, kli_fs_join(a, t->dir.ptr, file.ptr).ptr, NULL, e);
    if (!err) err = kl_gate_run(v, g, a, t, k, &check, e);
    if (err == KL_ENODEV) {
        admission_add_row(m, kl_arena_printf(a, "%s (skipped: no device)", file.ptr), true, true,
                          (kl_str){0});
        return KL_OK;
    }
    if (!err) admission_add_row(m, file, true, v->outcome == KL_OUTCOME_PASS, v->why);
    return err;
}

/* Whose surface the questions about a task are asked in: the naive kernel, or one that does nothing
 * where there is none. */
static kl_err lender(kl_kernel **k, bool *has_naive, kl_arena *a, const kl_task *t,
                     const kl_surface *host, kl_error *e) {
    const kl_str path = kli_fs_join(a, t->dir.ptr, host->naive);
    *has_naive = kli_fs_exists(path.ptr);
    return *has_naive
               ? kl_kernel_load(k, a, path.ptr, NULL, e)
               : kl_kernel_parse(k, a, KL_S("//! launch nothing args()\n"), path, host, NULL, e);
}

kl_err kl_gate_admit_task(kl_admission_row **rows, int *n, kl_gate *g, kl_arena *a,
                          const kl_task *t, kl_host_kind on, kl_error *e) {
    kl_gate_opts opts = {0};
    kl_kernel *k;
    kl_verdict *v = KL_NEW(a, kl_verdict);
    const kl_surface *host = kl_surface_of_host(on), *s;
    bool has_naive;
    kl_err err = lender(&k, &has_naive, a, t, host, e);
    if (err) return err;
    kli_evaluation *c = KL_NEW(a, kli_evaluation);
    *c = (kli_evaluation){.answers_here = true,
                          .gate = g,
                          .arena = a,
                          .task = t,
                          .kernel = k,
                          .opts = &opts,
                          .verdict = v};
    c->candidate.kernel = k;
    admission m = {.c = c, .rows = KL_ARRAY(a, kl_admission_row, ADMISSION_MAX_ROWS)};
    err = kli_evaluation_prepare(c, &opts, e);
    for (int i = 0; !err && i < t->n_workloads; i++) {
        const kl_workload *w = &t->workloads[i];
        if (kl_workload_fits(w, on) && (w->hidden || kl_str_eq(w->label, KL_S("tiny"))))
            err = try_shape(&m, w, e);
    }
    if (!err && has_naive) err = try_naive(&m, g, t, kl_str_of(host->naive), e);
    for (int i = 0; !err && (s = kl_surface_each(i)) != NULL; i++)
        if (s != host && s->on == on && s->naive &&
            kli_fs_exists(kli_fs_join(a, t->dir.ptr, s->naive).ptr))
            err = try_naive(&m, g, t, kl_str_of(s->naive), e);
    *rows = m.rows;
    *n = m.n;
    return err;
}
