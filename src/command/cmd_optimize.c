/* cmd_optimize.c - `klineage optimize TASK...`: spend a budget on making a kernel faster.
 *
 * One track for each task, policy and trial, each with its own budget and its own conversation.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include <klineage/search.h>
#include <string.h>

#define MAX_TRACKS 256

typedef struct {
    const kl_policy *policy;
    kl_search_opts opts;
    kl_search_result result;
    const char *name;
    int trial;
} search_job;

typedef struct {
    kl_context *context;
    const kl_args *args;
    kl_search_opts base;
    kl_library library;
    bool has_library;
    search_job *jobs;
    int n, trials; /* tracks; repetitions of each policy */
    kl_str identity[2 * MAX_TRACKS + 8];
    int n_identity;
} optimizing;

static kl_err line(kl_track *t, void *ctx, kl_error *e) {
    search_job *job = ctx;
    return job->policy->run(&job->result, t, &job->opts, e);
}

/* ---- what is asked for -------------------------------------------------------------------------------------------------------- */

static kl_err load_start(optimizing *o, kl_kernel **out, const kl_task *task, kl_error *e) {
    const char *named = o->args->values[KL_OPTION_KERNEL], *surface = o->args->values[KL_OPTION_SURFACE];
    kl_arena *a = o->context->arena;
    kl_error refusal = {0};
    const kl_surface *s = kl_surface_by_name(kl_str_of(surface ? surface : "c"));
    KL_ASSERT(s); /* the option is a choice */
    kl_str path = named ? kl_str_of(named) : kl_fs_join(a, task->dir.ptr, kl_arena_printf(a, "naive%s", s->suffix).ptr);
    kl_err err = kl_request_kernel(out, &refusal, a, path.ptr, NULL, e);
    if (!err && !*out) return *e = refusal, refusal.code;
    return err;
}

/* A track's name is part of every key, so no two may share one. */
static kl_err check_new(const optimizing *o, const char *name, kl_error *e) {
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->jobs[i].name, name) == 0)
            return kl_fail(e, KL_EINVAL, NULL,
                           "the track %s would be there twice: every task and every policy is named once", name);
    return KL_OK;
}

static kl_err add_tracks(optimizing *o, kl_task *task, kl_kernel *start, const kl_workload *w, kl_str policies,
                         kl_error *e) {
    while (policies.len) {
        const char *comma = memchr(policies.ptr, ',', policies.len);
        kl_str one = {policies.ptr, comma ? (size_t)(comma - policies.ptr) : policies.len};
        policies = comma ? (kl_str){comma + 1, (size_t)(policies.ptr + policies.len - comma) - 1} : (kl_str){0};
        const kl_policy *policy = kl_policy_find(one);
        if (!policy)
            return kl_fail(e, KL_EINVAL, NULL, "no policy named %.*s: klineage, generate or bestofn", KL_STR_ARG(one));
        for (int trial = 1; trial <= o->trials; trial++) {
            if (o->n == MAX_TRACKS) return kl_fail(e, KL_ELIMIT, NULL, "more than %d tracks in one run", MAX_TRACKS);
            const char *name =
                kl_arena_printf(o->context->arena, "%.*s/%s/%d", KL_STR_ARG(task->name), policy->name, trial).ptr;
            kl_err err = check_new(o, name, e);
            if (err) return err;
            search_job *job = &o->jobs[o->n++];
            *job = (search_job){.policy = policy, .opts = o->base, .trial = trial};
            job->opts.task = task;
            job->opts.workload = w;
            job->opts.start = start;
            job->opts.library = policy->uses_library && o->has_library ? &o->library : NULL;
            job->name = name;
        }
    }
    return KL_OK;
}

static kl_err add_task(optimizing *o, const char *name, kl_error *e) {
    kl_task *task = NULL;
    kl_kernel *start = NULL;
    const kl_workload *w = NULL;
    const char *policies = o->args->values[KL_OPTION_POLICY];
    kl_err err = kl_request_task(&task, o->context->arena, name, e);
    if (!err) err = load_start(o, &start, task, e);
    if (!err)
        err = kl_request_workload(&w, o->context->arena, task, start->surface->on, o->args->values[KL_OPTION_WORKLOAD],
                                  e);
    if (!err && !w) w = kl_task_workload(task, KL_S(""), start->surface->on);
    if (!err && !w) return kl_fail(e, KL_EINVAL, name, "the task has no shape for this surface");
    if (err) return err;
    o->identity[o->n_identity++] = kl_arena_copy(o->context->arena, kl_str_of(task->hash));
    o->identity[o->n_identity++] = kl_arena_printf(o->context->arena, "%s %.*s", start->hash, KL_STR_ARG(w->label));
    return add_tracks(o, task, start, w, kl_str_of(policies ? policies : "klineage"), e);
}

/* Admitted cards as they are now: another library is another run. */
static kl_str library_identity(const optimizing *o) {
    kl_hasher h;
    kl_hasher_init(&h);
    for (int i = 0; i < o->library.n_cards; i++) {
        const kl_card *c = &o->library.cards[i];
        if (c->status == KL_CARD_ADMITTED && !c->edited) kl_hasher_add(&h, kl_str_of(c->body_hash));
    }
    kl_hash hash = kl_hasher_end(&h);
    return kl_arena_copy(o->context->arena, kl_str_of(hash.hex));
}

static kl_err load_library(optimizing *o, kl_error *e) {
    kl_str dir;
    const char *policies = o->args->values[KL_OPTION_POLICY];
    bool needed = !policies || strstr(policies, "klineage");
    if (!needed) return KL_OK;
    kl_err err = kl_library_find(&dir, o->context->arena, o->args->values[KL_OPTION_LIBRARY], e);
    if (!err) err = kl_library_load(&o->library, o->context->arena, dir.ptr, e);
    o->has_library = !err;
    if (!err) o->identity[o->n_identity++] = library_identity(o);
    return err;
}

/* ---- what came out ----------------------------------------------------------------------------------------------------------- */

static double ratio_of(const kl_verdict *v) { return v->n_comparisons ? v->comparisons[0].ratio : 0; }
static kl_str rival_of(const kl_verdict *v) { return v->n_comparisons ? v->comparisons[0].baseline : KL_S(""); }

static json_t *job_json(const search_job *j) {
    const kl_search_result *r = &j->result;
    return json_pack("{ss so ss si sf so sf sf s[ff] so si si si si sI so so}", "track", j->name, "task",
                     kl_json_str(j->opts.task->name), "policy", j->policy->name, "trial", j->trial, "start_ratio",
                     ratio_of(&r->start_verdict), "baseline", kl_json_str(rival_of(&r->verdict)), "ratio",
                     ratio_of(&r->verdict), "gain", r->gain, "gain_ci", r->gain_low, r->gain_high, "stopped",
                     kl_json_str(r->stopped), "proposals", r->proposals, "gated", r->gated, "passed", r->passed,
                     "improved", r->improved, "spent_microusd", (json_int_t)r->spent_microusd, "cards",
                     kl_json_str(r->cards), "kernel", kl_json_str(kl_str_of(r->best ? r->best->hash : "")));
}

static void show(kl_result *out, const optimizing *o, const kl_run *run, bool estimated) {
    json_t *rows = json_array();
    int64_t spent = 0;
    bool improved = false;
    kl_buf_printf(&out->text, "%-30s %9s %9s %18s %9s %9s  %s\n", "track", "start", "best", "over the start",
                  "proposals", "spent", "stopped");
    for (int i = 0; i < o->n; i++) {
        const kl_search_result *r = &o->jobs[i].result;
        kl_buf_printf(&out->text, "%-30s %8.4gx %8.4gx %7.3gx [%.3g, %.3g] %9d %9.4f  %.*s\n", o->jobs[i].name,
                      ratio_of(&r->start_verdict), ratio_of(&r->verdict), r->gain, r->gain_low, r->gain_high,
                      r->proposals, (double)r->spent_microusd / 1e6, KL_STR_ARG(r->stopped));
        if (r->cards.len) kl_buf_printf(&out->text, "    cards: %.*s\n", KL_STR_ARG(r->cards));
        spent += r->spent_microusd;
        improved |= r->gain_low > 1;
        json_array_append_new(rows, job_json(&o->jobs[i]));
    }
    kl_effort_spent(&out->text, run, spent, estimated);
    kl_buf_printf(&out->text, "report: klineage report %.12s --out report.html\n", kl_run_id(run));
    out->json = json_pack("{ss si ss so sI sb}", "schema", "klineage/optimized", "version", 1, "run", kl_run_id(run),
                          "tracks", rows, "spent_microusd", (json_int_t)spent, "estimated", estimated);
    out->exit_code = improved ? 0 : 1;
}

/* One track: --out is the file.  Several: it is a folder with one file each. */
static kl_err write_best(const optimizing *o, kl_result *out, kl_error *e) {
    const char *where = o->args->values[KL_OPTION_OUT];
    kl_arena *a = o->context->arena;
    kl_err err = where && o->n > 1 ? kl_fs_mkdirs(where, e) : KL_OK;
    for (int i = 0; where && !err && i < o->n; i++) {
        const search_job *j = &o->jobs[i];
        if (!j->result.best) continue;
        kl_str name = kl_arena_printf(a, "%.*s-%s-%d%s", KL_STR_ARG(j->opts.task->name), j->policy->name, j->trial,
                                      j->opts.start->surface->suffix);
        const char *path = o->n > 1 ? kl_fs_join(a, where, name.ptr).ptr : where;
        err = kl_fs_write(path, j->result.best->source, e);
        if (!err) kl_buf_printf(&out->text, "best kernel: %s\n", path);
    }
    return err;
}

static kl_err run_all(optimizing *o, kl_run_opts *opts, kl_result *out, kl_error *e) {
    kl_run *run = NULL;
    bool estimated = false;
    kl_track_opts how = kl_effort_tracks(o->args);
    kl_track_spec *tracks = KL_ARRAY(o->context->arena, kl_track_spec, o->n + 1);
    for (int i = 0; i < o->n; i++)
        tracks[i] = (kl_track_spec){.name = o->jobs[i].name,
                                    .workload = o->jobs[i].opts.task->name.ptr,
                                    .policy = o->jobs[i].policy->name,
                                    .line = line,
                                    .ctx = &o->jobs[i]};
    kl_err err = kl_run_open(&run, opts, e);
    if (!err) err = kl_run_tracks(run, tracks, o->n, &how, e);
    if (!err) err = kl_effort_estimated(&estimated, run, o->context->arena, e);
    if (!err) show(out, o, run, estimated);
    if (!err) (void)!write_best(o, out, &out->trouble); /* what was found stands, whatever the disk says */
    kl_run_close(run);
    return err;
}

kl_err kl_cmd_optimize(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    optimizing *o = KL_NEW(c->arena, optimizing);
    kl_run_opts opts;
    o->context = c;
    o->args = args;
    o->jobs = KL_ARRAY(c->arena, search_job, MAX_TRACKS);
    kl_err err = kl_effort_count(&o->base.max_steps, args, KL_OPTION_MAX_STEPS, 0, KL_MAX_PROPOSALS, e);
    if (!err) err = kl_effort_count(&o->base.patience, args, KL_OPTION_PATIENCE, 0, KL_MAX_PROPOSALS, e);
    if (!err) err = kl_effort_count(&o->trials, args, KL_OPTION_TRIALS, 1, MAX_TRACKS, e);
    if (err) return err;
    if (args->n_words > 1 && kl_args_has(args, KL_OPTION_KERNEL))
        return kl_fail(e, KL_EINVAL, NULL,
                       "--kernel goes with one task; without it every task starts from its naive kernel");
    err = kl_effort_run(&opts, args, "optimize", e);
    if (!err) err = kl_effort_real(&o->base.goal, args, KL_OPTION_GOAL, 0, e);
    if (!err) err = load_library(o, e);
    for (int i = 0; !err && i < args->n_words; i++) err = add_task(o, args->words[i], e);
    if (err) return err;
    o->identity[o->n_identity++] = kl_arena_printf(c->arena, "steps %d patience %d goal %g%s", o->base.max_steps,
                                                   o->base.patience, o->base.goal, opts.gate.quick ? " quick" : "");
    opts.identity = o->identity;
    opts.n_identity = o->n_identity;
    return run_all(o, &opts, out, e);
}
