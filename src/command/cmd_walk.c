/* cmd_walk.c - `klineage walk`: an expert kernel undone one optimization at a time, every step
 * proven.
 *
 * One run with one track.  The budget, the number of steps and the name do not make another run:
 * with more of them the same command goes on where it stopped.  The lineage is kept before it is
 * shown, also the part that was proven before something ended the walk: then that error is told
 * behind it, and gives the exit status.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "command/journal.h"
#include <klineage/lineage.h>

typedef struct {
    kli_context *context;
    const kli_args *args;
    kl_task *task;
    kl_kernel *kernel;
    const kl_workload *workload;
    kl_walk_opts opts;
    kl_run_opts run_opts;
    kl_run *run;
    kl_lineage lineage; /* in the arena of the track's last pass, which lives as long as the run */
} walk_ctx;

/* ---- what was asked for ------------------------------------------------------------------ */

static kl_err cmd_walk_read_limits(kl_walk_opts *o, const kli_args *args, kl_error *e) {
    const uint64_t steps = kli_args_number(args, KL_OPTION_MAX_STEPS, 0),
                   rejections = kli_args_number(args, KL_OPTION_MAX_REJECTIONS, 0);
    if (steps > KL_MAX_STEPS || rejections > KL_MAX_STEPS)
        return kl_fail(e, KL_EINVAL, NULL, "--max-steps and --max-rejections are at most %d",
                       KL_MAX_STEPS);
    o->max_steps = (int)steps;
    o->max_rejections = (int)rejections;
    o->name = args->values[KL_OPTION_NAME];
    o->backward_only = kli_args_has(args, KL_OPTION_BACKWARD_ONLY);
    const kl_err err = kli_effort_real(&o->recover, args, KL_OPTION_RECOVER, 0, e);
    if (!err && (o->recover > 1 || (args->values[KL_OPTION_RECOVER] && !(o->recover > 0))))
        return kl_fail(e, KL_EINVAL, NULL,
                       "--recover is a share above 0 and at most 1, such as 0.99");
    return err;
}

/* What makes it this walk and no other. */
static void cmd_walk_identify(walk_ctx *w) {
    kl_arena *a = w->context->arena;
    kl_str *parts = KL_ARRAY(a, kl_str, 5);
    kl_buf axes = {0};
    for (int i = 0; i < w->task->n_axes; i++)
        kl_buf_printf(&axes, " %lld", (long long)w->workload->axes[i]);
    parts[0] = kl_str_of(w->task->hash);
    parts[1] = kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(w->workload->uuid),
                               KL_STR_ARG(kl_buf_str(&axes)));
    parts[2] = kl_str_of(w->kernel->hash);
    parts[3] = kl_arena_printf(a, "rejections %d, recover %g%s", w->opts.max_rejections,
                               w->opts.recover, w->opts.backward_only ? ", backward only" : "");
    parts[4] = w->run_opts.gate.quick ? KL_S("quick") : KL_S("full");
    w->run_opts.identity = parts;
    w->run_opts.n_identity = 5;
    kl_buf_fini(&axes);
}

static kl_err read_run(walk_ctx *w, kl_error *e) {
    kl_gate_opts gate;
    kl_err err = kli_effort_run(&w->run_opts, w->context->arena, w->args, "walk", e);
    if (!err) err = cmd_walk_read_limits(&w->opts, w->args, e);
    if (!err)
        err = kli_request_options(&gate, w->context->arena, w->args, w->task,
                                  w->kernel->surface->on, e);
    if (err) return err;
    gate.progress = NULL; /* the track's own */
    w->run_opts.gate = gate;
    cmd_walk_identify(w);
    return KL_OK;
}

/* ---- the walk ---------------------------------------------------------------------------- */

static kl_err cmd_walk_body(kl_track *t, void *ctx, kl_error *e) {
    walk_ctx *w = ctx;
    return kl_lineage_walk(&w->lineage, t, w->task, w->workload, w->kernel, &w->opts, e);
}

/* How to go on from where it ended. */
static const char *next_command(const kl_lineage *l) {
    switch (l->termination) {
    case KL_WALK_COMPLETE:
        return NULL;
    case KL_WALK_STEP_LIMIT:
        return "re-run with a larger --max-steps to continue";
    case KL_WALK_REJECTION_LIMIT:
        return "re-run with another --trial to ask again; verdicts are reused";
    case KL_WALK_BUDGET:
        return "re-run with a larger --budget to continue; completed calls are not repeated";
    case KL_WALK_STOPPED:
        return kl_str_eq(l->model, KL_S("builtin"))
                   ? "a language model may find more: --model anthropic:NAME; klineage help models"
                   : "re-run the same command to continue when the model has further answers";
    case KL_WALK_UNSETTLED:
    case KL_WALK_INTERRUPTED:
        return "this is the lineage so far; re-run the same command to continue; completed calls "
               "are not repeated";
    }
    return NULL;
}

static void cmd_walk_show(const walk_ctx *w, kli_command_result *out) {
    const kl_lineage *l = &w->lineage;
    kl_lineage_render(l, &out->text, w->context->colour);
    if (next_command(l)) kl_buf_printf(&out->text, "  %s\n", next_command(l));
    if (w->opts.backward_only)
        kl_buf_printf(&out->text,
                      "  klineage lineage rederive %.12s --jobs 8   derive its edges forward\n",
                      l->id.ptr);
    kl_buf_printf(&out->text,
                  "  klineage lineage export %.12s --git DIR   read it with git log -p\n",
                  l->id.ptr);
    out->json = kl_lineage_json(l);
    out->exit_code = l->termination == KL_WALK_COMPLETE ? 0 : 1;
}

static kl_err walk(walk_ctx *w, kli_command_result *out, kl_error *e) {
    kl_err err = kl_run_open(&w->run, &w->run_opts, e);
    if (err) return err;
    w->opts.run = kl_run_id(w->run);
    const kl_track_spec track = {.name = "walk",
                                 .workload = w->workload->label.ptr,
                                 .policy = "walk",
                                 .body = cmd_walk_body,
                                 .ctx = w};
    const kl_track_opts how = kli_effort_tracks(w->args);
    err = kli_effort_quiet(w->args, w->run, e);
    if (!err) err = kl_run_tracks(w->run, &track, 1, &how, e);
    if (err && err != KL_PENDING &&
        w->lineage.id.len) { /* what was proven before stands, whatever ended the walk */
        out->trouble = *e;
        err = KL_OK;
    }
    KL_ASSERT(err || w->lineage.id.len); /* a walk that ended has signed what it proved */
    if (!err) err = kl_lineage_keep(&w->lineage, kl_run_store(w->run), e);
    if (!err)
        (void)!kli_journal_write_lineage(&w->lineage, w->context->arena,
                                         w->args->values[KL_OPTION_OUT],
                                         out->trouble.code ? kl_ignored() : &out->trouble);
    if (!err) cmd_walk_show(w, out);
    kl_run_close(w->run);
    return err;
}

kl_err kli_cmd_walk(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    walk_ctx w = {.context = c, .args = args};
    kl_err err = kli_request_task(&w.task, c->arena, args->words[0], e);
    if (!err) err = kli_request_sound_kernel(&w.kernel, c->arena, args->words[1], args->params, e);
    if (err) return err;
    err = kli_request_workload(&w.workload, c->arena, w.task, w.kernel->surface->on,
                               args->values[KL_OPTION_WORKLOAD], e);
    if (!err) err = read_run(&w, e);
    return err ? err : walk(&w, out, e);
}
