/* tune.c - search over a kernel's params: coordinate search with racing, not a grid.
 *
 * Start at the defaults.  Visit the params in random order; for each, try the neighbouring values
 * of the best point so far, and go on in a direction that pays.  A round without gain ends the
 * search; what is left of the trials goes to random unseen points (a plateau's other side).  Every
 * trial takes the quick gate and is raced: interleaved with the same primary baseline, and
 * abandoned as soon as its interval lies below the best ratio so far; a race that stays noisy
 * counts for the lower end of its interval.  The winner then takes the full gate with fresh seeds.
 * Deliberately not here: a model of the landscape; with some dozens of points a race costs less
 * than the model would. SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TRIALS = 64 };

static const double TRIAL_SECONDS =
    3; /* cap of one race: a variant that is too noisy for that is not a clear winner either */

typedef struct {
    int at[KL_MAX_PARAMS];
} point; /* index into each param's values */

typedef struct {
    kl_tuning *out;
    kl_gate *gate;
    kl_arena *arena;
    const kl_task *task;
    const char *path;
    const kl_kernel *base;
    const kl_gate_opts *opts;
    point *seen;
    point best;
    double best_ratio, default_ratio;
    int max_trials;
    kl_stream stream;
} tuner;

static point default_point(const kl_kernel *k) {
    point p = {0};
    for (int i = 0; i < k->n_params; i++)
        for (int j = 0; j < k->params[i].n_values; j++)
            if (k->params[i].values[j] == k->params[i].value) p.at[i] = j;
    return p;
}

static bool was_seen(const tuner *t, const point *p) {
    for (int i = 0; i < t->out->n_trials; i++)
        if (memcmp(&t->seen[i], p, sizeof *p) == 0) return true;
    return false;
}

/* "BM=64" strings for kl_kernel_opts, and one text of all for people. */
static const char **overrides(const tuner *t, const point *p, kl_str *all) {
    const char **list = KL_ARRAY(t->arena, const char *, t->base->n_params + 1);
    kl_buf b = {0};
    for (int i = 0; i < t->base->n_params; i++) {
        const kl_param *q = &t->base->params[i];
        KL_ASSERT(p->at[i] >= 0 && p->at[i] < q->n_values);
        list[i] = kl_arena_printf(t->arena, "%.*s=%lld", KL_STR_ARG(q->name),
                                  (long long)q->values[p->at[i]])
                      .ptr;
        kl_buf_printf(&b, "%s%s", i ? " " : "", list[i]);
    }
    *all = kl_arena_copy(t->arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return list;
}

static kl_err gate_point(const tuner *t, const point *p, const kl_gate_opts *o, kl_verdict *v,
                         kl_str *params, kl_error *e) {
    const kl_kernel_opts with = {.params = overrides(t, p, params)};
    kl_kernel *k;
    kl_err err = kl_kernel_load(&k, t->arena, t->path, &with, e);
    return err ? err : kl_gate_run(v, t->gate, t->arena, t->task, k, o, e);
}

/* What a trial counts for: a race that did not settle, only what it surely reached. */
static double tune_score_of(const kl_verdict *v) {
    if (!v->n_comparisons) return 0;
    return v->outcome == KL_OUTCOME_PASS       ? v->comparisons[0].ratio
           : v->outcome == KL_OUTCOME_UNSTABLE ? v->comparisons[0].low
                                               : 0;
}

/* One raced trial.  `*better` when it is the new best. */
static kl_err try_point(tuner *t, const point *p, bool *better, kl_error *e) {
    *better = false;
    if (t->out->n_trials == t->max_trials || was_seen(t, p)) return KL_OK;
    if (kli_interrupted()) return kl_fail(e, KL_EINTR, t->path, "interrupted");
    kl_gate_opts quick = *t->opts;
    quick.quick = quick.more_to_come = true;
    quick.abandon_below = t->best_ratio;
    if (!(quick.max_seconds > 0)) quick.max_seconds = TRIAL_SECONDS;
    kl_verdict *v = KL_NEW(t->arena, kl_verdict);
    kl_str params;
    const int64_t start = kli_now_ns();
    const kl_err err = gate_point(t, p, &quick, v, &params, e);
    if (err) return err;
    KL_ASSERT(t->out->n_trials < t->max_trials);
    t->seen[t->out->n_trials] = *p;
    kl_variant *row = &t->out->trials[t->out->n_trials++];
    const kl_comparison *m = v->n_comparisons ? &v->comparisons[0] : NULL;
    *row = (kl_variant){.params = params,
                        .outcome = v->outcome,
                        .why = v->why,
                        .ratio = m ? m->ratio : 0,
                        .abandoned = m && t->best_ratio > 0 && m->high < t->best_ratio,
                        .seconds = (double)(kli_now_ns() - start) * 1e-9};
    const double score = tune_score_of(v);
    if (t->out->n_trials == 1) t->default_ratio = score;
    *better = score > t->best_ratio;
    if (*better) {
        t->best = *p;
        t->best_ratio = score;
    }
    const int64_t most = t->out->grid < t->max_trials ? t->out->grid : t->max_trials;
    if (t->opts->tried) t->opts->tried(t->opts->progress_ctx, row, t->out->n_trials, (int)most);
    return KL_OK;
}

/* Walk from the best point along one param while it pays. */
static kl_err climb(tuner *t, int param, int step, bool *gained, kl_error *e) {
    for (;;) {
        point p = t->best;
        bool better;
        p.at[param] += step;
        if (p.at[param] < 0 || p.at[param] >= t->base->params[param].n_values) return KL_OK;
        const kl_err err = try_point(t, &p, &better, e);
        if (err || !better) return err;
        *gained = true;
    }
}

static kl_err search(tuner *t, kl_error *e) {
    uint32_t order[KL_MAX_PARAMS];
    bool better, gained = true;
    kl_err err = try_point(t, &t->best, &better, e);
    for (uint64_t round = 0; !err && gained && t->out->n_trials < t->max_trials; round++) {
        gained = false;
        for (int i = 0; i < t->base->n_params; i++) order[i] = (uint32_t)i;
        kli_stream_shuffle((kl_stream){kli_stream_u64(t->stream, round)}, order,
                           (uint32_t)t->base->n_params);
        for (int i = 0; !err && i < t->base->n_params; i++) {
            err = climb(t, (int)order[i], 1, &gained, e);
            if (!err) err = climb(t, (int)order[i], -1, &gained, e);
        }
    }
    return err;
}

/* Random unseen points, then a climb from any that wins. */
static kl_err explore(tuner *t, kl_error *e) {
    kl_err err = KL_OK;
    for (uint64_t draw = 0;
         !err && draw < 64 && t->out->n_trials < t->max_trials && t->out->n_trials < t->out->grid;
         draw++) {
        point p = {0};
        bool better;
        for (int i = 0; i < t->base->n_params; i++)
            p.at[i] = (int)kli_stream_below(t->stream, 1000 + draw * KL_MAX_PARAMS + (uint64_t)i,
                                            (uint64_t)t->base->params[i].n_values);
        err = try_point(t, &p, &better, e);
        if (!err && better) err = search(t, e);
    }
    return err;
}

static int tune_by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A kernel lists the default first; neighbours are neighbours in size. */
static void sort_values(kl_kernel *k) {
    for (int i = 0; i < k->n_params; i++)
        qsort(k->params[i].values, (size_t)k->params[i].n_values, sizeof k->params[i].values[0],
              tune_by_value);
}

/* A pinned param has one value: the one that was given. */
static void pin(kl_kernel *k, const char *const *pinned) {
    for (; pinned && *pinned; pinned++)
        for (int i = 0; i < k->n_params; i++) {
            kl_param *q = &k->params[i];
            if (!kl_str_starts(kl_str_of(*pinned), q->name) || (*pinned)[q->name.len] != '=')
                continue;
            q->values[0] = q->value;
            q->n_values = 1;
        }
}

static kl_err tuner_open(tuner *t, const char *const *pinned, int max_trials, kl_error *e) {
    kl_kernel *k;
    const kl_kernel_opts with = {.params = pinned};
    kl_err err = kl_kernel_load(&k, t->arena, t->path, &with, e);
    if (err) return err;
    sort_values(k);
    pin(k, pinned);
    if (!k->n_params) {
        kl_fail(e, KL_EINVAL, t->path, "nothing to tune: the kernel has no params");
        return kl_hint(e, "declare one: //! param BM = 64 {32, 64, 128}");
    }
    t->base = k;
    t->best = default_point(k);
    t->max_trials = max_trials > 0 ? max_trials : DEFAULT_TRIALS;
    t->seen = KL_ARRAY(t->arena, point, t->max_trials);
    t->out->trials = KL_ARRAY(t->arena, kl_variant, t->max_trials);
    t->out->grid = 1;
    for (int i = 0; i < k->n_params; i++)
        if (__builtin_mul_overflow(t->out->grid, k->params[i].n_values, &t->out->grid))
            t->out->grid = INT64_MAX;
    KL_ASSERT(t->out->grid >= 1);
    t->stream = kli_stream_of(t->opts->seed ? t->opts->seed : kli_seed_fresh(), "tune");
    return KL_OK;
}

kl_err kl_gate_tune(kl_tuning *out, kl_gate *g, kl_arena *a, const kl_task *task,
                    const char *kernel_path, const char *const *pinned, const kl_gate_opts *o,
                    int max_trials, kl_error *e) {
    const int64_t start = kli_now_ns();
    kl_gate_opts opts = o ? *o : (kl_gate_opts){0};
    tuner t = {.out = out, .gate = g, .arena = a, .task = task, .path = kernel_path, .opts = &opts};
    const kl_monitor *before = kl_monitor_use(opts.monitor);
    *out = (kl_tuning){0};
    kl_err err = tuner_open(&t, pinned, max_trials, e);
    if (!err) err = search(&t, e);
    if (!err) err = explore(&t, e);
    if (!err) err = gate_point(&t, &t.best, &opts, &out->verdict, &out->best, e);
    out->over_default = t.default_ratio > 0 ? t.best_ratio / t.default_ratio : 0;
    out->seconds = (double)(kli_now_ns() - start) * 1e-9;
    kl_monitor_use(before);
    return err;
}
