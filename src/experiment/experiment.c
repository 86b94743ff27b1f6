/* experiment.c - from a plan to its tracks, and through them.
 *
 * A track is a workload, a policy and the number of a trial; its name is all three, and part of
 * every key.  Each has its own budget, its own conversation and its own end, and one that fails is
 * the failure of one.  Not here: the file (plan.c), what a policy does (search/), what came out
 * (report/). SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "base/fs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a policy's numbers ------------------------------------------------------------------ */

static kl_err unknown_param(const kl_experiment_policy *p, kl_str name, kl_error *e) {
    kl_buf known = {0};
    for (const kl_policy_param *q = p->policy->params; q && q->name; q++)
        kl_buf_printf(&known, "%s%s", known.len ? ", " : "", q->name);
    kl_fail(e, KL_EINVAL, NULL, "the policy %s has no parameter '%.*s'", p->policy->name,
            (int)(name.len < 60 ? name.len : 60), name.ptr);
    kl_err err = known.len ? kl_hint(e, "it has %s", known.ptr) : kl_hint(e, "it has none");
    kl_buf_fini(&known);
    return err;
}

static void keep_setting(kl_experiment_policy *p, kl_arena *a, kl_str name, double value) {
    for (int i = 0; i < p->n_settings; i++)
        if (kl_str_eq(p->settings[i].name, name)) return (void)(p->settings[i].value = value);
    kl_setting *longer = KL_ARRAY(a, kl_setting, p->n_settings + 1);
    if (p->n_settings) memcpy(longer, p->settings, (size_t)p->n_settings * sizeof *longer);
    longer[p->n_settings++] = (kl_setting){kl_arena_copy(a, name), value};
    p->settings = longer;
}

kl_err kli_experiment_set(kl_experiment_policy *p, kl_arena *a, kl_str name, kl_str value,
                          kl_error *e) {
    char *end;
    const kl_policy_param *param = kli_policy_param_find(p->policy, name);
    if (!param) return unknown_param(p, name, e);
    const char *text = kl_arena_copy(a, value).ptr;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number))
        return kl_fail(e, KL_EINVAL, NULL, "%s is a number, not '%.60s'", param->name, text);
    if (number < param->least || number > param->most) {
        kl_fail(e, KL_EINVAL, NULL, "%s must be from %g to %g, not %g", param->name, param->least,
                param->most, number);
        return kl_hint(e, "%s: %s; default %g", param->name, param->doc, param->otherwise);
    }
    keep_setting(p, a, name, number);
    return KL_OK;
}

/* ---- cards ------------------------------------------------------------------------------- */

kl_err kl_experiment_cards(kl_experiment *x, kl_arena *a, kl_error *e) {
    kl_str dir;
    bool used = false, arms = false;
    for (int i = 0; i < x->n_policies; i++) {
        used |= x->policies[i].policy->uses_library;
        arms |= x->policies[i].arm != KLI_ARM_NONE;
    }
    if (!used) return KL_OK;
    kl_library *cards;
    kl_err err = kl_library_find(&dir, a, x->library.len ? x->library.ptr : NULL, e);
    if (!err) err = kl_library_open(&cards, a, dir.ptr, e);
    if (!err) kl_library_keep(cards);
    if (!err) x->cards = cards;
    return err || !arms ? err : kl_library_load(&x->whole, a, dir.ptr, e);
}

kl_str kl_experiment_cards_id(const kl_experiment *x, kl_arena *a) {
    return x->cards ? kl_library_id(x->cards, a) : KL_S("");
}

/* ---- money ------------------------------------------------------------------------------- */

static kl_err experiment_model_name(kl_str *out, const kl_experiment *x, kl_arena *a, kl_error *e) {
    kl_model *m = NULL;
    const char *stated = kl_model_stated(x->model.ptr);
    if (stated) return *out = kl_str_of(stated), KL_OK;
    kl_err err = kl_model_open(&m, x->model.ptr, e);
    if (!err) *out = kl_arena_copy(a, kl_str_of(kl_model_name(m)));
    kl_model_close(m);
    return err;
}

kl_err kl_experiment_priced(bool *free, const kl_experiment *x, kl_arena *a, kl_error *e) {
    kl_str name;
    kl_price price;
    if (!x->model.len) {
        kl_fail(e, KL_EINVAL, NULL, "no model given");
        return kl_hint(e, "model: anthropic:NAME in the file, or --model; klineage help models");
    }
    kl_err err = experiment_model_name(&name, x, a, e);
    if (!err) err = kl_price_of(&price, x->priced_as.len ? x->priced_as.ptr : name.ptr, 0, e);
    if (err) return err;
    *free = !price.input && !price.output && !price.cache_read && !price.cache_write_5m &&
            !price.cache_write_1h;
    if (*free || x->budget_microusd > 0) return KL_OK;
    kl_fail(e, KL_EINVAL, x->budget_where.len ? x->budget_where.ptr : NULL,
            "%s charges for calls, but the tracks have no budget",
            x->priced_as.len ? x->priced_as.ptr : name.ptr);
    return kl_hint(e, "set budget: 1.00 in the file, or --budget 1.00 (dollars per track)");
}

int64_t kl_experiment_most(const kl_experiment *x, int n) {
    KL_ASSERT(n >= 0 && x->budget_microusd >= 0);
    int64_t most = x->budget_microusd * n;
    return x->total_microusd > 0 && x->total_microusd < most ? x->total_microusd : most;
}

/* ---- identity ---------------------------------------------------------------------------- */

static kl_str workload_id(const kl_experiment_workload *w, kl_arena *a) {
    kl_buf b = {0};
    kl_buf_printf(&b, "workload %.*s %s %.*s [", KL_STR_ARG(w->name), w->task->hash,
                  KL_STR_ARG(w->workload->label));
    for (int i = 0; i < w->task->n_axes; i++)
        kl_buf_printf(&b, "%s%lld", i ? " " : "", (long long)w->workload->axes[i]);
    kl_buf_printf(&b, "] start %s", w->start->hash);
    if (w->target_kernel)
        kl_buf_printf(&b, " reference %s recover %.17g", w->target_kernel->hash, w->recover);
    if (w->goal > 0) kl_buf_printf(&b, " goal %.17g", w->goal);
    kl_str text = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

static double experiment_value_of(const kl_experiment_policy *p, const kl_policy_param *param) {
    for (int i = 0; i < p->n_settings; i++)
        if (kl_str_eq(p->settings[i].name, kl_str_of(param->name))) return p->settings[i].value;
    return param->otherwise;
}

/* Defaults are written out: saying one is no other experiment, and another default is. */
static kl_str policy_id(const kl_experiment_policy *p, kl_arena *a) {
    kl_buf b = {0};
    kl_buf_printf(&b, "policy %.*s %s trials %d steps %d patience %d", KL_STR_ARG(p->name),
                  p->policy->name, p->trials, p->max_steps, p->patience);
    for (const kl_policy_param *q = p->policy->params; q && q->name; q++)
        kl_buf_printf(&b, " %s %.17g", q->name, experiment_value_of(p, q));
    if (p->arm != KLI_ARM_NONE)
        kl_buf_printf(&b, " cards %s mask %.17g", kli_arm_name(p->arm), p->mask);
    kl_str text = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const kl_str *)a)->ptr, ((const kl_str *)b)->ptr);
}

/* Sorted: tracks know nothing of each other, so the order of rows means nothing. */
void kl_experiment_identity(kl_str **parts, int *n, kl_arena *a, const kl_experiment *x) {
    kl_str *out = KL_ARRAY(a, kl_str, x->n_workloads + x->n_policies + 2);
    int count = 0;
    for (int i = 0; i < x->n_workloads; i++) out[count++] = workload_id(&x->workloads[i], a);
    for (int i = 0; i < x->n_policies; i++) out[count++] = policy_id(&x->policies[i], a);
    if (x->cards) out[count++] = kl_arena_printf(a, "library %s", kl_experiment_cards_id(x, a).ptr);
    out[count++] = x->quick ? KL_S("gate quick") : KL_S("gate full");
    KL_ASSERT(count <= x->n_workloads + x->n_policies + 2);
    qsort(out, (size_t)count, sizeof *out, by_text);
    *parts = out;
    *n = count;
}

/* ---- tracks ------------------------------------------------------------------------------ */

static kl_experiment_track experiment_track_of(const kl_experiment *x,
                                               const kl_experiment_workload *w,
                                               const kl_experiment_policy *p, int trial,
                                               kl_arena *a) {
    kl_experiment_track track = {
        .name =
            kl_arena_printf(a, "%.*s/%.*s/%d", KL_STR_ARG(w->name), KL_STR_ARG(p->name), trial).ptr,
        .workload = w,
        .policy = p,
        .trial = trial,
        .opts = {.task = w->task,
                 .workload = w->workload,
                 .start = w->start,
                 .library = p->policy->uses_library ? x->cards : NULL,
                 .settings = p->settings,
                 .n_settings = p->n_settings,
                 .max_steps = p->max_steps,
                 .patience = p->patience,
                 .goal = w->goal,
                 .target_kernel = w->target_kernel,
                 .recover = w->recover}};
    if (p->arm != KLI_ARM_NONE && x->whole)
        kli_arm_apply(&track.opts, a, x->whole, p, w->name, trial);
    return track;
}

/* A track's name is part of every key, so no two may share one. */
static kl_err experiment_check_new(const kl_experiment_track *tracks, int n, const char *name,
                                   kl_error *e) {
    for (int i = 0; i < n; i++)
        if (strcmp(tracks[i].name, name) == 0)
            return kl_fail(e, KL_EINVAL, NULL,
                           "duplicate track %s: name every task and every policy once", name);
    return KL_OK;
}

kl_err kl_experiment_tracks(kl_experiment_track **out, int *n, kl_arena *a, const kl_experiment *x,
                            kl_error *e) {
    int64_t trials = 0;
    kl_err err = KL_OK;
    for (int i = 0; i < x->n_policies; i++) trials += x->policies[i].trials;
    *n = 0;
    if (trials * x->n_workloads > KL_MAX_TRACKS) {
        kl_fail(e, KL_ELIMIT, NULL, "%lld tracks; one run has at most %d",
                (long long)trials * x->n_workloads, KL_MAX_TRACKS);
        return kl_hint(e, "split it into two experiments");
    }
    *out = KL_ARRAY(a, kl_experiment_track, trials * x->n_workloads + 1);
    for (int w = 0; w < x->n_workloads; w++)
        for (int p = 0; p < x->n_policies; p++)
            for (int trial = 1; !err && trial <= x->policies[p].trials; trial++) {
                kl_experiment_track one =
                    experiment_track_of(x, &x->workloads[w], &x->policies[p], trial, a);
                err = experiment_check_new(*out, *n, one.name, e);
                KL_ASSERT(*n < trials * x->n_workloads);
                if (!err) (*out)[(*n)++] = one;
            }
    return err;
}

/* ---- the run ----------------------------------------------------------------------------- */

static kl_err experiment_body(kl_track *t, void *ctx, kl_error *e) {
    kl_experiment_track *track = ctx;
    return kl_policy_run(track->policy->policy, &track->result, t, &track->opts, e);
}

kl_err kl_experiment_run(kl_run *r, const kl_experiment *x, kl_experiment_track *tracks, int n,
                         const kl_track_opts *o, bool table, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_track_opts how = *o;
    kl_track_spec *specs = KL_ARRAY(a, kl_track_spec, n + 1);
    kli_experiment_table shown = {.run = r,
                                  .rows = KL_ARRAY(a, kli_standing, n + 1),
                                  .n = n,
                                  .most_microusd = kl_experiment_most(x, n),
                                  .start_ns = kli_now_ns()};
    for (int i = 0; i < n; i++) {
        specs[i] = (kl_track_spec){.name = tracks[i].name,
                                   .workload = tracks[i].workload->name.ptr,
                                   .policy = tracks[i].policy->name.ptr,
                                   .body = experiment_body,
                                   .ctx = &tracks[i],
                                   .result = &tracks[i].error};
        shown.rows[i].name = tracks[i].name;
    }
    if (table) {
        how.quiet = true;
        how.tick = kli_table_tick;
        how.tick_ctx = &shown;
    }
    kl_err err = kl_run_tracks(r, specs, n, &how, e);
    kli_table_clear(&shown);
    kl_arena_free(a);
    return err;
}
