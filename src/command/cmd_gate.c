/* cmd_gate.c - `klineage gate`: journal, then whoever judges, then journal.
 *
 * The verdict is written down before it is shown.  When writing fails the verdict is still shown,
 * because it was paid for, and the exit status is that of the failure, so that no program takes it
 * for a journaled one. SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/journal.h"
#include "command/request.h"
#include <string.h>

typedef struct {
    kli_context *context;
    const kli_args *args;
    kl_task *task;
    kl_kernel *kernel;
    kl_gate_opts opts;
    kl_executor *executor;
    kl_store *journal; /* NULL with --no-journal */
    char key[65];
    kl_noise_record noise;
    kl_verdict verdict;
    bool from_journal;
} gate_ctx;

/* ---- judging ----------------------------------------------------------------------------- */

static kl_err fetch(gate_ctx *g, const char *id, kl_error *e) {
    kl_arena *a = g->context->arena;
    if (kli_args_has(g->args, KL_OPTION_WAIT))
        return kl_executor_wait(&g->verdict, g->executor, a, id, e);
    const kl_err err = kl_executor_poll(&g->verdict, g->executor, a, id, e);
    return err == KL_PENDING
               ? kl_hint(e, "%s", kl_arena_printf(a, "%s, or add --wait", e->hint).ptr)
               : err;
}

/* A kept verdict answers where the question names the device; else it is the verdict that the job
 * has given before. */
static kl_err cmd_gate_judge(gate_ctx *g, kl_error *e) {
    kl_arena *a = g->context->arena;
    const kl_gate_job job = {g->task, g->kernel, g->opts};
    const bool keeps = kl_executor_ops_of(g->executor)->keeps;
    char id[65];
    kl_verdict kept = {0};
    bool found = false;
    kl_err err = kl_executor_submit(id, g->executor, a, &job, e);
    if (err) return err;
    memcpy(g->key, id, sizeof g->key);
    if (g->journal) err = kli_verdicts_find(&kept, &found, g->journal, a, g->key, e);
    if (err) return err;
    g->from_journal = found && (keeps || kli_verdicts_answer(&kept, g->task, &g->opts));
    if (!g->from_journal || keeps) return fetch(g, id, e);
    g->verdict = kept;
    return kl_executor_cancel(g->executor, a, id, e);
}

static void cmd_gate_write_down(gate_ctx *g, kli_command_result *out) {
    KL_ASSERT(!g->from_journal || g->journal);
    if (!g->journal || g->from_journal) return;
    g->verdict.journaled = false; /* fresh, even when it came from another host */
    if (kli_verdicts_keep(g->key, g->journal, g->context->arena, &g->verdict, &out->trouble))
        kl_hint(&out->trouble,
                "the verdict above could not be stored; use another --store PATH, or --no-journal");
}

static void cmd_gate_show(const gate_ctx *g, kli_command_result *out) {
    kli_request_show(out, &g->verdict, g->context->colour);
    bool kept = g->journal && !out->trouble.code;
    if (kept)
        kl_buf_printf(&out->text, "  journal: klineage verdict show %.12s%s\n", g->key,
                      g->from_journal ? "  (judged before)" : "");
}

static kl_err with_gate(gate_ctx *g, kli_command_result *out, kl_error *e) {
    kl_err err = KL_OK;
    if (!kli_args_has(g->args, KL_OPTION_NO_JOURNAL))
        err = kli_journal_open(&g->journal, g->context->arena, g->args, e);
    if (!err) err = kli_effort_host(&g->noise, g->context->arena, g->args, g->journal, e);
    g->opts.noise = &g->noise;
    if (!err)
        err = kl_executor_open(&g->executor, kli_effort_executor(g->context->arena, g->args), e);
    if (!err) err = cmd_gate_judge(g, e);
    if (!err) cmd_gate_write_down(g, out);
    if (!err) cmd_gate_show(g, out);
    if (err == KL_EINTR) kl_hint(e, "nothing incomplete was stored; re-run the same command");
    kl_executor_close(g->executor);
    kl_store_close(g->journal);
    return err;
}

static kl_err cmd_gate_refuse(gate_ctx *g, const char *path, const kl_error *why,
                              kli_command_result *out) {
    kl_verdict_refused(&g->verdict, g->context->arena, g->task, path, why);
    kli_request_show(out, &g->verdict, g->context->colour);
    return KL_OK;
}

static const char *conflict(const kli_args *args) {
    bool carried = kli_args_has(args, KL_OPTION_WAIT) || kli_args_has(args, KL_OPTION_ARCH);
    bool against = kli_args_has(args, KL_OPTION_AGAINST);
    bool baseline =
        kli_args_has(args, KL_OPTION_BASELINE) || kli_args_has(args, KL_OPTION_BASELINES);
    if (carried && !kli_effort_elsewhere(args))
        return "--wait and --arch need --spool DIR or --executor";
    if (against && baseline) return "use either --against or --baseline";
    return NULL;
}

static kl_err load_rival(gate_ctx *g, kl_error *e) {
    const char *path = g->args->values[KL_OPTION_AGAINST];
    kl_kernel *opponent = NULL;
    if (!path) return KL_OK;
    kl_err err = kli_request_opponent(&opponent, g->context->arena, path, e);
    if (err) return err;
    if (g->kernel && opponent->surface != g->kernel->surface)
        return kl_fail(e, KL_EINVAL, path, "the --against kernel has surface %s, not %s",
                       opponent->surface->name, g->kernel->surface->name);
    g->opts.against = opponent;
    return KL_OK;
}

kl_err kli_cmd_gate(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    gate_ctx g = {.context = c, .args = args};
    kl_error refusal = {0};
    const char *path = args->words[1];
    const char *wrong = conflict(args);
    if (wrong) return kl_fail(e, KL_EINVAL, NULL, "%s", wrong);
    kl_err err = kli_effort_one_executor(args, e);
    if (!err) err = kli_request_task(&g.task, c->arena, args->words[0], e);
    if (!err) err = kli_request_kernel(&g.kernel, &refusal, c->arena, path, args->params, e);
    if (err) return err;
    const kl_surface *s = g.kernel ? g.kernel->surface : kl_surface_of_path(kl_str_of(path), 0);
    const kl_host_kind on = s ? s->on : KL_ON_CPU;
    err = kli_request_options(&g.opts, c->arena, args, g.task, on, e);
    if (!err) err = load_rival(&g, e);
    if (err) return err;
    return g.kernel ? with_gate(&g, out, e) : cmd_gate_refuse(&g, path, &refusal, out);
}
