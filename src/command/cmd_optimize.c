/* cmd_optimize.c - `klineage optimize TASK...`: spend a budget on making a kernel faster.
 *
 * An experiment whose rows are the arguments: one track for each task, policy and trial, each with
 * its own budget and its own conversation. Its identity is of an older form than that of a file,
 * and stays, so that runs resume.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "command/searched.h"
#include "base/fs.h"
#include <stdlib.h>
#include <string.h>

#define MAX_POLICIES 64 /* in one --policy */

typedef struct {
    kli_context *context;
    const kli_args *args;
    kl_experiment x;
    kl_experiment_policy plain; /* what every policy begins with */
    double goal;
    kl_experiment_track *tracks;
    int n;
    kl_str identity[2 * KL_MAX_WORDS + MAX_POLICIES * KL_MAX_PARAMS + 8];
    int n_identity;
} optimize_ctx;

static void identify(optimize_ctx *o, kl_str part) {
    KL_ASSERT((size_t)o->n_identity < KL_COUNT(o->identity));
    o->identity[o->n_identity++] = part;
}

/* ---- policies ---------------------------------------------------------------------------- */

static kl_err no_policy(kl_str name, kl_error *e) {
    kl_buf known = {0};
    kli_suggestion s;
    kli_suggest_start(&s, name);
    for (int i = 0; kl_policy_each(i); i++) {
        kl_buf_printf(&known, "%s%s", i ? ", " : "", kl_policy_each(i)->name);
        kli_suggest_offer(&s, kl_str_of(kl_policy_each(i)->name));
    }
    kl_fail(e, KL_EINVAL, NULL, "no policy named %.*s: there are %s", KL_STR_ARG(name), known.ptr);
    kl_buf_fini(&known);
    if (s.best.ptr) return kl_hint(e, "did you mean %.*s?", KL_STR_ARG(s.best));
    return kl_hint(e, "klineage help policies");
}

static kl_err add_policies(optimize_ctx *o, kl_str names, kl_error *e) {
    kl_experiment *x = &o->x;
    x->policies = KL_ARRAY(o->context->arena, kl_experiment_policy, MAX_POLICIES);
    while (names.len) {
        const char *comma = memchr(names.ptr, ',', names.len);
        kl_str one = {names.ptr, comma ? (size_t)(comma - names.ptr) : names.len};
        names =
            comma ? (kl_str){comma + 1, (size_t)(names.ptr + names.len - comma) - 1} : (kl_str){0};
        const kl_policy *policy = kl_policy_find(one);
        if (!policy) return no_policy(one, e);
        if (x->n_policies == MAX_POLICIES)
            return kl_fail(e, KL_ELIMIT, NULL, "more than %d policies", MAX_POLICIES);
        kl_experiment_policy *p = &x->policies[x->n_policies++];
        *p = o->plain;
        p->policy = policy;
        p->name = kl_str_of(policy->name);
    }
    return KL_OK;
}

/* --set NAME=VALUE: for every policy that has the parameter, and at least one has. */
static kl_err set_param(optimize_ctx *o, const char *text, kl_error *e) {
    const char *equals = strchr(text, '=');
    KL_ASSERT(equals); /* the option is a REPEAT */
    kl_str name = {text, (size_t)(equals - text)};
    bool taken = false;
    for (int i = 0; i < o->x.n_policies; i++) {
        kl_experiment_policy *p = &o->x.policies[i];
        if (!kli_policy_param_find(p->policy, name)) continue;
        kl_err err = kli_experiment_set(p, o->context->arena, name, kl_str_of(equals + 1), e);
        if (err) return err;
        taken = true;
    }
    if (taken) return KL_OK;
    return kli_experiment_set(&o->x.policies[0], o->context->arena, name, kl_str_of(equals + 1),
                              e); /* says what there is */
}

static kl_err cmd_optimize_read_policies(optimize_ctx *o, kl_error *e) {
    const char *names = o->args->values[KL_OPTION_POLICY];
    kl_err err = add_policies(o, kl_str_of(names ? names : "klineage"), e);
    for (int i = 0; !err && i < o->args->n_params; i++) err = set_param(o, o->args->params[i], e);
    return err;
}

/* ---- workloads --------------------------------------------------------------------------- */

static kl_err load_start(optimize_ctx *o, kl_kernel **out, const kl_task *task, kl_error *e) {
    const char *named = o->args->values[KL_OPTION_KERNEL],
               *surface = o->args->values[KL_OPTION_SURFACE];
    kl_arena *a = o->context->arena;
    const kl_surface *s =
        surface ? kl_surface_by_name(kl_str_of(surface)) : kl_surface_of_host(KL_ON_CPU);
    KL_ASSERT(s); /* the option is a choice */
    if (!named && !s->naive)
        return kl_fail(e, KL_EINVAL, NULL, "a task has no naive kernel of surface %s", s->name);
    const kl_str path = named ? kl_str_of(named) : kli_fs_join(a, task->dir.ptr, s->naive);
    return kli_request_sound_kernel(out, a, path.ptr, NULL, e);
}

static kl_err add_task(optimize_ctx *o, const char *name, kl_error *e) {
    kl_arena *a = o->context->arena;
    kl_experiment_workload w = {.goal = o->goal};
    kl_err err = kli_request_task(&w.task, a, name, e);
    if (!err) err = load_start(o, &w.start, w.task, e);
    if (!err)
        err = kli_request_workload(&w.workload, a, w.task, w.start->surface->on,
                                   o->args->values[KL_OPTION_WORKLOAD], e);
    if (err) return err;
    w.name = w.task->name;
    identify(o, kl_str_of(w.task->hash));
    identify(o, kl_arena_printf(a, "%s %.*s", w.start->hash, KL_STR_ARG(w.workload->label)));
    KL_ASSERT(o->x.n_workloads < KL_MAX_WORDS);
    o->x.workloads[o->x.n_workloads++] = w;
    return KL_OK;
}

static void identify_settings(optimize_ctx *o) {
    for (int i = 0; i < o->x.n_policies; i++) {
        const kl_experiment_policy *p = &o->x.policies[i];
        for (int j = 0; j < p->n_settings; j++)
            identify(o, kl_arena_printf(o->context->arena, "%s %.*s %.17g", p->policy->name,
                                        KL_STR_ARG(p->settings[j].name), p->settings[j].value));
    }
}

static kl_err read_experiment(optimize_ctx *o, const kl_run_opts *opts, kl_error *e) {
    kl_arena *a = o->context->arena;
    const char *library = o->args->values[KL_OPTION_LIBRARY];
    o->x.library = kl_str_of(library);
    o->x.workloads = KL_ARRAY(a, kl_experiment_workload, KL_MAX_WORDS);
    kl_err err = cmd_optimize_read_policies(o, e);
    if (!err) err = kl_experiment_cards(&o->x, a, e);
    if (!err && o->x.cards) identify(o, kl_experiment_cards_id(&o->x, a));
    for (int i = 0; !err && i < o->args->n_words; i++) err = add_task(o, o->args->words[i], e);
    if (err) return err;
    identify(o, kl_arena_printf(a, "steps %d patience %d goal %g%s", o->plain.max_steps,
                                o->plain.patience, o->goal, opts->gate.quick ? " quick" : ""));
    identify_settings(o);
    return kl_experiment_tracks(&o->tracks, &o->n, a, &o->x, e);
}

/* ---- what came out ----------------------------------------------------------------------- */

static kl_err cmd_optimize_show(kli_command_result *out, const optimize_ctx *o, kl_run *run,
                                kl_error *e) {
    kli_searched s;
    kl_err err = kli_searched_show(&s, &out->text, o->context->arena, run, o->tracks, o->n, e);
    if (err) return err;
    kli_effort_spent(&out->text, run, s.spent_microusd, s.estimated);
    const bool replays =
        kli_effort_replays(o->args->values[KL_OPTION_MODEL]); /* its end is an end in order */
    if (replays)
        kl_buf_printf(&out->text,
                      "replay finished: recorded proposals, measured on this machine\n");
    kl_buf_printf(&out->text, "report: klineage report %.12s --out report.html\n", kl_run_id(run));
    out->json = json_pack("{ss si ss so sI sb}", "schema", "klineage/optimized", "version", 1,
                          "run", kl_run_id(run), "tracks", s.rows, "spent_microusd",
                          (json_int_t)s.spent_microusd, "estimated", s.estimated);
    out->exit_code = s.improved || replays ? 0 : 1;
    return KL_OK;
}

static const char *what_is(const kl_search_result *r) {
    return r->call == KL_DECISION_FASTER ? "best kernel"
           : r->call == KL_DECISION_UNDECIDED
               ? "best candidate, not measurably faster than the start"
               : "nothing was measurably faster; the start";
}

/* One track: --out is the file.  Several: it is a folder with one file each. */
static kl_err cmd_optimize_write_best(const optimize_ctx *o, kli_command_result *out, kl_error *e) {
    const char *where = o->args->values[KL_OPTION_OUT];
    kl_arena *a = o->context->arena;
    kl_err err = where && o->n > 1 ? kli_fs_mkdirs(where, e) : KL_OK;
    for (int i = 0; where && !err && i < o->n; i++) {
        const kl_experiment_track *t = &o->tracks[i];
        if (t->error.code || !t->result.best) continue;
        const char *path =
            o->n > 1 ? kli_fs_join(a, where, kli_searched_file(a, t).ptr).ptr : where;
        err = kli_fs_write(path, t->result.best->source, e);
        if (!err) kl_buf_printf(&out->text, "%s: %s\n", what_is(&t->result), path);
    }
    return err;
}

/* What one track found stands, whatever became of another. */
static bool cmd_optimize_any_ended(const optimize_ctx *o) {
    for (int i = 0; i < o->n; i++)
        if (o->tracks[i].error.code == KL_OK) return true;
    return false;
}

static kl_err cmd_optimize_run_all(optimize_ctx *o, kl_run_opts *opts, kli_command_result *out,
                                   kl_error *e) {
    kl_run *run = NULL;
    kl_track_opts how = kli_effort_tracks(o->args);
    kl_error failed = {0};
    kl_err err = kl_run_open(&run, opts, e);
    if (err) return err;
    err = kli_effort_quiet(o->args, run, e);
    if (err) return kl_run_close(run), err;
    err = kl_experiment_run(run, &o->x, o->tracks, o->n, &how, false, &failed);
    if (err && (err == KL_EINTR || err == KL_PENDING || !cmd_optimize_any_ended(o))) {
        kl_run_close(run);
        return *e = failed, err;
    }
    out->trouble = failed;
    err = cmd_optimize_show(out, o, run, e);
    kl_error *trouble =
        out->trouble.code ? &failed : &out->trouble; /* the first thing that went wrong is told */
    if (!err)
        (void)!cmd_optimize_write_best(o, out,
                                       trouble); /* what was found stands, whatever the disk says */
    kl_run_close(run);
    return err;
}

kl_err kli_cmd_optimize(kli_context *c, const kli_args *args, kli_command_result *out,
                        kl_error *e) {
    optimize_ctx *o = KL_NEW(c->arena, optimize_ctx);
    kl_run_opts opts;
    o->context = c;
    o->args = args;
    kl_err err =
        kli_effort_count(&o->plain.max_steps, args, KL_OPTION_MAX_STEPS, 0, KL_MAX_PROPOSALS, e);
    if (!err)
        err =
            kli_effort_count(&o->plain.patience, args, KL_OPTION_PATIENCE, 0, KL_MAX_PROPOSALS, e);
    if (!err) err = kli_effort_count(&o->plain.trials, args, KL_OPTION_TRIALS, 1, KL_MAX_TRACKS, e);
    if (err) return err;
    if (args->n_words > 1 && kli_args_has(args, KL_OPTION_KERNEL))
        return kl_fail(
            e, KL_EINVAL, NULL,
            "--kernel needs exactly one task; without it every task starts from its naive kernel");
    err = kli_effort_run(&opts, c->arena, args, "optimize", e);
    if (!err) err = kli_effort_real(&o->goal, args, KL_OPTION_GOAL, 0, e);
    if (!err) err = read_experiment(o, &opts, e);
    if (err) return err;
    opts.identity = o->identity;
    opts.n_identity = o->n_identity;
    o->x.budget_microusd = opts.budget_microusd;
    o->x.total_microusd = opts.total_microusd;
    return cmd_optimize_run_all(o, &opts, out, e);
}
