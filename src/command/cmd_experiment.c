/* cmd_experiment.c - `klineage experiment FILE`: a comparison at equal cost, out of a file.
 *
 *   file + what the command line overrides -> checked -> tracks -> run -> results.json, results.md,
 * index.html, best/
 *
 * Everything is checked before the first call.  What ended is written, whatever became of the rest;
 * the same command goes on. SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/searched.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include <fnmatch.h>
#include <klineage/report.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    kli_context *context;
    const kli_args *args;
    const char *file;
    kl_experiment *x;
    bool free; /* calls cost nothing */
    kl_experiment_track *tracks;
    int n;
} experiment_ctx;

/* ---- the plan ---------------------------------------------------------------------------- */

static kl_err override(experiment_ctx *x, kl_error *e) {
    const kli_args *args = x->args;
    kl_experiment *p = x->x;
    if (args->values[KL_OPTION_MODEL]) p->model = kl_str_of(args->values[KL_OPTION_MODEL]);
    if (args->values[KL_OPTION_PRICED_AS])
        p->priced_as = kl_str_of(args->values[KL_OPTION_PRICED_AS]);
    if (args->values[KL_OPTION_LIBRARY]) p->library = kl_str_of(args->values[KL_OPTION_LIBRARY]);
    if (args->values[KL_OPTION_BUDGET]) p->budget_where = KL_S("--budget");
    kl_err err = kli_effort_jobs(args, e);
    if (!err)
        err =
            kli_effort_dollars(&p->budget_microusd, args, KL_OPTION_BUDGET, p->budget_microusd, e);
    if (!err)
        err = kli_effort_dollars(&p->total_microusd, args, KL_OPTION_BUDGET_TOTAL,
                                 p->total_microusd, e);
    if (!err && kli_args_has(args, KL_OPTION_BUDGET_TOTAL) && p->total_microusd <= 0)
        err = kl_fail(e, KL_EINVAL, NULL,
                      "--budget-total must be above 0; without it each track has its own budget");
    return err;
}

/* --only: some of the tracks now, the others another time; it stays the same run. */
static kl_err cmd_experiment_choose(experiment_ctx *x, kl_error *e) {
    const char *glob = x->args->values[KL_OPTION_ONLY];
    int kept = 0;
    if (!glob) return KL_OK;
    for (int i = 0; i < x->n; i++)
        if (fnmatch(glob, x->tracks[i].name, 0) == 0) x->tracks[kept++] = x->tracks[i];
    x->n = kept;
    if (kept) return KL_OK;
    kl_fail(e, KL_EINVAL, NULL, "no track matches --only '%s'", glob);
    return kl_hint(e, "klineage experiment %s --dry-run lists them; a * matches slashes too",
                   x->file);
}

static kl_err read_plan(experiment_ctx *x, kl_error *e) {
    kl_arena *a = x->context->arena;
    kl_err err = kl_experiment_load(&x->x, a, x->file, e);
    if (!err) err = override(x, e);
    if (!err) err = kl_experiment_priced(&x->free, x->x, a, e);
    if (!err) err = kl_experiment_cards(x->x, a, e);
    if (!err) err = kl_experiment_tracks(&x->tracks, &x->n, a, x->x, e);
    if (!err) err = cmd_experiment_choose(x, e);
    if (x->free)
        x->x->budget_microusd = x->x->total_microusd =
            0; /* a policy that looks at its budget is told so */
    return err;
}

/* ---- --dry-run --------------------------------------------------------------------------- */

static json_t *planned_json(const kl_experiment_track *t) {
    return json_pack(
        "{ss so so ss ss so si si}", "track", t->name, "task", kli_json_str(t->opts.task->name),
        "workload", kli_json_str(t->opts.workload->label), "policy", t->policy->policy->name,
        "surface", t->opts.start->surface->name, "start", kli_json_str(t->opts.start->path),
        "trial", t->trial, "max_steps", t->opts.max_steps);
}

static void show_plan(const experiment_ctx *x, kli_command_result *out) {
    json_t *rows = json_array();
    int64_t most = kl_experiment_most(x->x, x->n);
    if (x->x->title.len) kl_buf_printf(&out->text, "%s\n", x->x->title.ptr);
    kl_buf_printf(&out->text, "%-36s %-14s %-16s %-8s %s\n", "track", "task", "workload", "surface",
                  "start");
    for (int i = 0; i < x->n; i++) {
        const kl_experiment_track *t = &x->tracks[i];
        kl_buf_printf(&out->text, "%-36s %-14.*s %-16.*s %-8s %.*s\n", t->name,
                      KL_STR_ARG(t->opts.task->name), KL_STR_ARG(t->opts.workload->label),
                      t->opts.start->surface->name, KL_STR_ARG(t->opts.start->path));
        json_array_append_new(rows, planned_json(t));
    }
    kl_buf_printf(&out->text, "%d tracks with %s, ", x->n, x->x->model.ptr);
    if (x->free)
        kl_buf_printf(&out->text, "free of charge\n");
    else
        kl_buf_printf(&out->text, "at most $%.4f in total, $%.4f per track\n", (double)most / 1e6,
                      (double)x->x->budget_microusd / 1e6);
    out->json = json_pack("{ss si so so so sI sI}", "schema", "klineage/experiment-plan", "version",
                          1, "title", kli_json_str(x->x->title), "model", kli_json_str(x->x->model),
                          "tracks", rows, "budget_microusd", (json_int_t)x->x->budget_microusd,
                          "most_microusd", (json_int_t)most);
}

/* ---- what is written --------------------------------------------------------------------- */

/* From the start to the best as git has it, so that `git apply` and people can read it; without
 * diff, for people alone. */
static kl_err diff_of(kl_str *out, const experiment_ctx *x, const kl_experiment_track *t,
                      const char *best, kl_error *e) {
    kl_arena *a = x->context->arena;
    kli_proc_result r;
    kl_str file = kli_searched_file(a, t);
    const char *from = kl_arena_printf(a, "a/%s", file.ptr).ptr,
               *to = kl_arena_printf(a, "b/%s", file.ptr).ptr;
    const char *const argv[] = {"diff", "-u", "--label", from, "--label", to, "-", best, NULL};
    const kli_proc_spec spec = {
        .argv = argv, .input = t->opts.start->source, .max_output = 4u * KL_MAX_SOURCE_BYTES};
    kl_err err = kli_proc_run(&r, a, &spec, e);
    if (err && err != KL_ENOENT) return err;
    if (err || r.exit_code < 0 || r.exit_code > 1)
        *out = kl_kernel_diff(a, t->opts.start, t->result.best);
    else
        *out = r.out.len ? kl_arena_printf(a, "diff --git %s %s\n%.*s", from, to, KL_STR_ARG(r.out))
                         : r.out;
    return KL_OK;
}

static kl_err cmd_experiment_write_best(const experiment_ctx *x, const char *out, kl_error *e) {
    kl_arena *a = x->context->arena;
    const char *dir = kli_fs_join(a, out, "best").ptr;
    kl_err err = kli_fs_mkdirs(dir, e);
    for (int i = 0; !err && i < x->n; i++) {
        const kl_experiment_track *t = &x->tracks[i];
        if (t->error.code || !t->result.best) continue;
        kl_str file = kli_searched_file(a, t);
        KL_ASSERT(kl_str_ends(file, kl_str_of(t->opts.start->surface->suffix)));
        size_t stem = file.len - strlen(t->opts.start->surface->suffix);
        const char *best = kli_fs_join(a, dir, file.ptr).ptr;
        kl_str diff = {0};
        err = kli_fs_write(best, t->result.best->source, e);
        if (!err) err = diff_of(&diff, x, t, best, e);
        if (!err)
            err = kli_fs_write(
                kli_fs_join(a, dir, kl_arena_printf(a, "%.*s.diff", (int)stem, file.ptr).ptr).ptr,
                diff, e);
    }
    return err;
}

static kl_err cmd_experiment_write_page(const experiment_ctx *x, const char *out, kl_store *s,
                                        const kl_report_opts *o, kl_error *e) {
    kl_buf html = {0};
    kl_err err = kl_report_write(&html, s, o, e);
    if (!err)
        err = kli_fs_write(kli_fs_join(x->context->arena, out, "index.html").ptr, kl_buf_str(&html),
                           e);
    kl_buf_fini(&html);
    return err;
}

/* Files, and the text that shows them.  Without gnuplot the text says what is missing. */
static kl_err write_figures(kl_buf *text, const char *dir, kl_store *s, const kl_report_opts *o,
                            kl_error *e) {
    kl_buf pictures = {0};
    kl_error missing = {0};
    kl_err err = kl_report_pictures(&pictures, dir, "figures", s, o, &missing);
    if (err == KL_ENOENT)
        kl_buf_printf(text, "Figures were not drawn: %s.\n", missing.message);
    else
        kl_buf_add(text, kl_buf_str(&pictures));
    kl_buf_fini(&pictures);
    if (!err || err == KL_ENOENT) return KL_OK;
    *e = missing;
    return err;
}

static kl_err write_results(const experiment_ctx *x, const char *out, kl_store *s,
                            const kl_report_opts *o, kl_error *e) {
    kl_arena *a = x->context->arena;
    json_t *results = NULL;
    kl_buf text = {0};
    kl_err err = kl_report_results(&results, s, o, e);
    if (err) return err;
    kl_report_results_markdown(&text, results);
    err = write_figures(&text, kli_fs_join(a, out, "figures").ptr, s, o, e);
    if (!err)
        err = kli_fs_write(kli_fs_join(a, out, "results.json").ptr, kli_json_dump(a, results, true),
                           e);
    if (!err) err = kli_fs_write(kli_fs_join(a, out, "results.md").ptr, kl_buf_str(&text), e);
    kl_buf_fini(&text);
    json_decref(results);
    return err;
}

static kl_err cmd_experiment_write_out(const experiment_ctx *x, kl_run *run,
                                       kli_command_result *out, kl_error *e) {
    const char *dir = x->args->values[KL_OPTION_OUT], *id = kl_run_id(run);
    if (!dir) return KL_OK;
    const kl_report_opts o = {.runs = &id,
                              .n_runs = 1,
                              .library = x->x->cards ? x->x->cards->dir.ptr : NULL,
                              .title = x->x->title.len ? x->x->title.ptr : NULL};
    kl_err err = kli_fs_mkdirs(dir, e);
    if (!err)
        err = cmd_experiment_write_best(x, dir,
                                        e); /* first: what was paid for does not wait for a page */
    if (!err) err = write_results(x, dir, kl_run_store(run), &o, e);
    if (!err) err = cmd_experiment_write_page(x, dir, kl_run_store(run), &o, e);
    if (!err)
        kl_buf_printf(&out->text,
                      "results: %s/index.html, results.md, results.json, figures/, best/\n", dir);
    return err;
}

/* ---- the run ----------------------------------------------------------------------------- */

/* Tracks that ended before their first question, because it might have cost more than they had. */
static int starved(const experiment_ctx *x) {
    int n = 0;
    for (int i = 0; i < x->n; i++) {
        const kl_search_result *r = &x->tracks[i].result;
        n += !x->tracks[i].error.code && r->proposals == 0 && kl_str_eq(r->stopped, KL_S("budget"));
    }
    return n;
}

static kl_err cmd_experiment_show(const experiment_ctx *x, kl_run *run, kli_command_result *out,
                                  kl_error *e) {
    kli_searched s;
    kl_err err = kli_searched_show(&s, &out->text, x->context->arena, run, x->tracks, x->n, e);
    if (err) return err;
    kl_buf_printf(&out->text, "%d of %d tracks finished, %d failed, %d waiting\n", s.ended, x->n,
                  s.failed, s.waiting);
    const int poor = starved(x);
    KL_ASSERT(poor <= s.ended);
    if (poor)
        kl_buf_printf(&out->text,
                      "%d could not afford a first call; re-run with a larger --budget\n", poor);
    kli_effort_spent(&out->text, run, s.spent_microusd, s.estimated);
    out->json =
        json_pack("{ss si ss so so si si si si sI sb}", "schema", "klineage/experimented",
                  "version", 1, "run", kl_run_id(run), "title", kli_json_str(x->x->title), "tracks",
                  s.rows, "ended", s.ended, "failed", s.failed, "waiting", s.waiting, "starved",
                  poor, "spent_microusd", (json_int_t)s.spent_microusd, "estimated", s.estimated);
    return KL_OK;
}

/* A key or a program that is not there is told before the first gate.  A run that has begun is not
 * asked: its answers are in the journal. */
static kl_err cmd_experiment_check_model(const experiment_ctx *x, kl_run *run, kl_error *e) {
    kl_store_step *steps;
    size_t n;
    kl_model *m = NULL;
    kl_err err =
        kl_store_step_list(&steps, &n, kl_run_store(run), x->context->arena, kl_run_id(run), e);
    if (!err && !n) err = kl_model_open(&m, x->x->model.ptr, e);
    kl_model_close(m);
    return err;
}

static bool watched(const kli_args *args) {
    return isatty(STDERR_FILENO) && !kli_args_has(args, KL_OPTION_QUIET) &&
           !kli_args_has(args, KL_OPTION_VERBOSE);
}

static kl_err cmd_experiment_run_tracks(experiment_ctx *x, kl_run *run, kli_command_result *out,
                                        kl_error *e) {
    kl_track_opts how = kli_effort_tracks(x->args);
    kl_error failed = {0};
    kl_err err = cmd_experiment_check_model(x, run, e);
    if (err) return err;
    kli_say("experiment %s is run %.12s: %d tracks", x->file, kl_run_id(run), x->n);
    err = kl_experiment_run(run, x->x, x->tracks, x->n, &how, watched(x->args), &failed);
    if (err == KL_EINTR) return *e = failed, err;
    out->trouble = failed;
    err = cmd_experiment_show(x, run, out, e);
    kl_error *trouble =
        out->trouble.code ? &failed : &out->trouble; /* the first thing that went wrong is told */
    if (!err) (void)!cmd_experiment_write_out(x, run, out, trouble);
    return err;
}

static kl_err cmd_experiment_run_all(experiment_ctx *x, kli_command_result *out, kl_error *e) {
    kl_run *run = NULL;
    kl_str *identity;
    int n_identity;
    kl_experiment_identity(&identity, &n_identity, x->context->arena, x->x);
    const kl_run_opts o = {.command = "experiment",
                           .store = x->args->values[KL_OPTION_STORE],
                           .model = x->x->model.ptr,
                           .priced_as = x->x->priced_as.len ? x->x->priced_as.ptr : NULL,
                           .budget_microusd = x->x->budget_microusd,
                           .total_microusd = x->x->total_microusd,
                           .trial = 1,
                           .identity = identity,
                           .n_identity = n_identity,
                           .gate = {.quick = x->x->quick},
                           .executor = kli_effort_executor(x->context->arena, x->args)};
    kl_err err = kli_effort_one_executor(x->args, e);
    if (!err) err = kl_run_open(&run, &o, e);
    if (!err) err = kli_effort_quiet(x->args, run, e);
    if (!err) err = cmd_experiment_run_tracks(x, run, out, e);
    kl_run_close(run);
    return err;
}

kl_err kli_cmd_experiment(kli_context *c, const kli_args *args, kli_command_result *out,
                          kl_error *e) {
    experiment_ctx *x = KL_NEW(c->arena, experiment_ctx);
    x->context = c;
    x->args = args;
    x->file = args->words[0];
    kl_err err = read_plan(x, e);
    if (err) return err;
    const char *dir = args->values[KL_OPTION_OUT];
    if (!kli_args_has(args, KL_OPTION_DRY_RUN)) {
        if (dir) err = kli_fs_mkdirs(dir, e); /* before the first call is paid */
        return err ? err : cmd_experiment_run_all(x, out, e);
    }
    show_plan(x, out);
    return KL_OK;
}
