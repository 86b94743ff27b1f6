/* find.c - what the journal says of a kernel: the verdict that it passed with, the shapes that this
 * stands for, and the run that made it.  Nothing is measured.  SPDX-License-Identifier: Apache-2.0
 */
#include "export_impl.h"

#include "base/json.h"
#include "base/record.h"
#include <klineage/run.h>
#include <string.h>

/* ---- verdict ----------------------------------------------------------------------------- */

/* What was timed against its own export says nothing of what a user would run instead. */
static bool is_of_an_export(const kl_verdict *v) {
    return v->n_comparisons && kl_str_eq(v->comparisons[0].baseline, KL_S("its export"));
}

static bool is_wanted(const kl_verdict *v, const char *task, const char *workload) {
    return !is_of_an_export(v) && v->outcome == KL_OUTCOME_PASS &&
           (!task || kl_str_eq(v->task_hash, kl_str_of(task))) &&
           (!workload || kl_str_eq(v->workload, kl_str_of(workload)));
}

/* The newest; one that was timed before one that was only checked. */
static kl_err find_verdict(kli_export *x, kl_store *s, const char *task, const char *workload,
                           kl_error *e) {
    const kl_store_verdict_query query = {.kernel = x->kernel->hash, .outcome = "pass"};
    kl_store_verdict *rows;
    size_t n;
    bool found = false;
    kl_err err = kl_store_verdict_list(&rows, &n, s, x->arena, &query, e);
    for (size_t i = 0; !err && i < n; i++) {
        kl_verdict v;
        err = kl_verdict_parse(&v, x->arena, rows[i].json, rows[i].key, e);
        if (err || !is_wanted(&v, task, workload)) continue;
        if (found && (x->verdict.n_comparisons || !v.n_comparisons)) continue;
        found = true;
        x->verdict = v;
        memcpy(x->verdict_key, rows[i].key.ptr, sizeof x->verdict_key - 1);
    }
    if (err || found) return err;
    return kl_fail(e, KL_ENOENT, x->kernel->path.ptr,
                   "the journal has no verdict with which this kernel passed%s%s",
                   workload ? " at " : "", workload ? workload : "");
}

/* ---- origin ------------------------------------------------------------------------------ */

/* The proposal that made a kernel; a preparation counts, though it was not the best. */
static const kl_step *step_of(const kl_step *steps, const kl_str *tracks, size_t n, kl_str track,
                              kl_str kernel) {
    for (size_t i = 0; i < n; i++)
        if (kl_str_eq(tracks[i], track) && kl_str_eq(steps[i].kernel, kernel) &&
            steps[i].parent.len)
            return &steps[i];
    return NULL;
}

/* From the kernel back to the start: what each step was called, the first one first. */
static json_t *actions_of(const kl_step *steps, const kl_str *tracks, size_t n, kl_str track,
                          const kl_step *last) {
    json_t *list = json_array();
    const kl_step *at = last;
    for (size_t i = 0; at && i < n; i++) {
        if (at->action.len) json_array_insert_new(list, 0, kli_json_str(at->action));
        at = step_of(steps, tracks, n, track, at->parent);
    }
    return list;
}

static kl_err read_steps(kl_step **steps, kl_str **tracks, size_t *n, kl_arena *a, kl_store *s,
                         const char *run, kl_error *e) {
    kl_store_step *rows;
    kl_err err = kl_store_step_list(&rows, n, s, a, run, e);
    if (err) return err;
    *steps = KL_ARRAY(a, kl_step, *n + 1);
    *tracks = KL_ARRAY(a, kl_str, *n + 1);
    for (size_t i = 0; !err && i < *n; i++) {
        json_t *o = NULL;
        (*tracks)[i] = rows[i].track;
        err = kli_json_parse(&o, rows[i].json, KL_S("journal: step"), e);
        if (!err) err = kli_record_read(&(*steps)[i], &KL_STEP, a, o, KL_S("journal: step"), e);
        json_decref(o);
    }
    return err;
}

static kl_err origin_in(json_t **out, kl_arena *a, kl_store *s, const kl_store_run *run,
                        const char *kernel, kl_error *e) {
    kl_step *steps;
    kl_str *tracks;
    size_t n;
    kl_err err = read_steps(&steps, &tracks, &n, a, s, run->id.ptr, e);
    for (size_t i = 0; !err && !*out && i < n; i++) {
        const kl_step *t = &steps[i];
        if (!kl_str_eq(t->kernel, kl_str_of(kernel)) || !t->parent.len) continue;
        *out = json_pack("{so so so so so sI}", "run", kli_json_str(run->id), "command",
                         kli_json_str(run->command), "track", kli_json_str(tracks[i]), "policy",
                         kli_json_str(t->policy), "actions",
                         actions_of(steps, tracks, n, tracks[i], t), "spent_microusd",
                         (json_int_t)t->spent_microusd);
    }
    return err;
}

static kl_err find_origin(kli_export *x, kl_store *s, kl_error *e) {
    kl_store_run *runs;
    size_t n;
    kl_err err = kl_store_run_list(&runs, &n, s, x->arena, e);
    for (size_t i = 0; !err && !x->origin && i < n; i++)
        err = origin_in(&x->origin, x->arena, s, &runs[i], x->kernel->hash, e);
    return err;
}

kl_err kli_export_find(kli_export *x, kl_store *s, const char *task, const char *workload,
                       kl_error *e) {
    const kl_err err = find_verdict(x, s, task, workload, e);
    return err ? err : find_origin(x, s, e);
}

/* ---- domain ------------------------------------------------------------------------------ */

static bool is_checked(const kl_workload *shape, const kl_workload *w, const kl_task *t) {
    const bool tried = shape->hidden || kl_str_eq(shape->label, KL_S("tiny"));
    return tried &&
           memcmp(shape->dtypes, w->dtypes, (size_t)t->n_tensors * sizeof w->dtypes[0]) == 0;
}

static void widen(kli_domain *d, const kl_task *t, const kl_workload *w) {
    for (int i = 0; i < t->n_axes; i++) {
        if (!d->shapes || w->axes[i] < d->least[i]) d->least[i] = w->axes[i];
        if (!d->shapes || w->axes[i] > d->most[i]) d->most[i] = w->axes[i];
    }
    d->shapes++;
}

/* As src/gate/check.c has it: the real shape, and of the tiny and the hidden ones those with its
 * data types for which the kernel has a plan. */
int kli_export_shapes(const kl_workload **out, const kl_task *t, const kl_kernel *k,
                      const kl_workload *w, const kl_device_limits *limits) {
    int n = 0;
    kl_arena *scratch = kl_arena_new();
    kl_plan *plan = KL_NEW(scratch, kl_plan);
    out[n++] = w;
    for (int i = 0; i < t->n_workloads && n < KL_MAX_WORKLOADS; i++) {
        const kl_workload *shape = &t->workloads[i];
        if (shape == w || !kl_workload_fits(shape, k->surface->on) || !is_checked(shape, w, t))
            continue;
        if (kli_kernel_plan(plan, k, t, shape, limits, kl_ignored()) == KL_OK) out[n++] = shape;
    }
    kl_arena_free(scratch);
    return n;
}

kli_domain kli_export_domain(const kl_task *t, const kl_kernel *k, const kl_workload *w,
                             const kl_device_limits *limits) {
    const kl_workload *shapes[KL_MAX_WORKLOADS];
    const int n = kli_export_shapes(shapes, t, k, w, limits);
    kli_domain d = {0};
    for (int i = 0; i < n; i++) widen(&d, t, shapes[i]);
    return d;
}
