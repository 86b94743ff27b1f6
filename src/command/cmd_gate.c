/* cmd_gate.c - `klineage gate`: journal, then gate or spool, then journal.
 *
 * The verdict is written down before it is shown.  When writing fails the verdict is still shown, because it was paid
 * for, and the exit status is that of the failure, so that no program takes it for a journaled one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/journal.h"
#include "command/request.h"
#include "base/log.h"
#include <string.h>
#include <time.h>

typedef struct {
    kl_context *context;
    const kl_args *args;
    kl_task *task;
    kl_kernel *kernel;
    kl_gate_opts opts;
    kl_gate *gate;
    kl_store *journal; /* NULL with --no-journal */
    char key[65];
    kl_verdict verdict;
    bool from_journal;
} gating;

/* ---- spool ---------------------------------------------------------------------------------------------------- */

#define POLL_NS 300000000 /* a person does not notice, and a shared file system does not suffer */

static kl_err fetch(gating *g, const char *dir, const char *id, kl_error *e) {
    kl_err err = kl_spool_get(&g->verdict, g->context->arena, dir, id, e);
    while (err == KL_PENDING && kl_args_has(g->args, KL_OPTION_WAIT)) {
        if (kl_interrupted()) return kl_fail(e, KL_EINTR, dir, "interrupted; the job stays in the spool");
        kl_progress("waiting for %.12s in %s", id, dir);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
        err = kl_spool_get(&g->verdict, g->context->arena, dir, id, e);
    }
    if (err != KL_PENDING) return err;
    kl_fail(e, KL_PENDING, dir, "job %.12s is in the spool, without a verdict yet", id);
    return kl_hint(e, "on the host with the device: klineage-worker --spool %s; then re-run the same command, or add --wait", dir);
}

static kl_err spool(gating *g, const char *dir, kl_error *e) {
    char id[65];
    kl_err err = kl_spool_put(id, dir, g->gate, g->context->arena, g->task, g->kernel, &g->opts, e);
    if (err) return err;
    memcpy(g->key, id, sizeof g->key);
    err = fetch(g, dir, id, e);
    kl_verdict kept;
    return err || !g->journal ? err
                              : kl_verdicts_find(&kept, &g->from_journal, g->journal, g->context->arena, g->key, e);
}

/* ---- gate ------------------------------------------------------------------------------------------------------- */

static kl_err look_up(gating *g, kl_error *e) {
    kl_verdict kept = {0};
    bool found = false;
    kl_err err = kl_gate_key(g->key, g->gate, g->context->arena, g->task, g->kernel, &g->opts, e);
    if (!err && g->journal) err = kl_verdicts_find(&kept, &found, g->journal, g->context->arena, g->key, e);
    g->from_journal = !err && found && kl_verdicts_answer(&kept, g->task, &g->opts);
    if (g->from_journal) g->verdict = kept;
    return err;
}

static kl_err judge(gating *g, kl_error *e) {
    const char *dir = g->args->values[KL_OPTION_SPOOL];
    if (dir) return spool(g, dir, e);
    kl_err err = look_up(g, e);
    if (err || g->from_journal) return err;
    return kl_gate_run(&g->verdict, g->gate, g->context->arena, g->task, g->kernel, &g->opts, e);
}

static void write_down(gating *g, kl_result *out) {
    if (!g->journal || g->from_journal) return;
    g->verdict.journaled = false; /* fresh, even when it came through a spool */
    if (kl_verdicts_keep(g->key, g->journal, g->context->arena, &g->verdict, &out->trouble))
        kl_hint(&out->trouble,
                "the verdict above could not be stored; use another --store PATH, or --no-journal");
}

static void show(const gating *g, kl_result *out) {
    kl_request_show(out, &g->verdict, g->context->colour);
    bool kept = g->journal && !out->trouble.code;
    if (kept)
        kl_buf_printf(&out->text, "  journal: klineage verdict show %.12s%s\n", g->key,
                      g->from_journal ? "  (judged before)" : "");
}

static kl_err with_gate(gating *g, kl_result *out, kl_error *e) {
    kl_err err = KL_OK;
    if (!kl_args_has(g->args, KL_OPTION_NO_JOURNAL)) err = kl_journal_open(&g->journal, g->context->arena, g->args, e);
    if (!err) err = kl_gate_open(&g->gate, e);
    if (!err) err = judge(g, e);
    if (!err) write_down(g, out);
    if (!err) show(g, out);
    if (err == KL_EINTR) kl_hint(e, "nothing incomplete was stored; re-run the same command");
    kl_gate_close(g->gate);
    kl_store_close(g->journal);
    return err;
}

static kl_err refuse(gating *g, const char *path, const kl_error *why, kl_result *out) {
    kl_verdict_refused(&g->verdict, g->context->arena, g->task, path, why);
    kl_request_show(out, &g->verdict, g->context->colour);
    return KL_OK;
}

static const char *conflict(const kl_args *args) {
    bool carried = kl_args_has(args, KL_OPTION_WAIT) || kl_args_has(args, KL_OPTION_ARCH);
    bool against = kl_args_has(args, KL_OPTION_AGAINST);
    bool baseline = kl_args_has(args, KL_OPTION_BASELINE) || kl_args_has(args, KL_OPTION_BASELINES);
    if (carried && !kl_args_has(args, KL_OPTION_SPOOL)) return "--wait and --arch need --spool DIR";
    if (against && baseline) return "use either --against or --baseline";
    return NULL;
}

static kl_err load_rival(gating *g, kl_error *e) {
    const char *path = g->args->values[KL_OPTION_AGAINST];
    kl_kernel *rival = NULL;
    kl_error refusal = {0};
    if (!path) return KL_OK;
    kl_err err = kl_request_kernel(&rival, &refusal, g->context->arena, path, NULL, e);
    if (err) return err;
    if (!rival) return *e = refusal, refusal.code;
    if (g->kernel && rival->surface != g->kernel->surface)
        return kl_fail(e, KL_EINVAL, path, "the --against kernel has surface %s, not %s", rival->surface->name,
                       g->kernel->surface->name);
    g->opts.against = rival;
    return KL_OK;
}

kl_err kl_cmd_gate(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    gating g = {.context = c, .args = args};
    kl_error refusal = {0};
    const char *path = args->words[1];
    const char *wrong = conflict(args);
    if (wrong) return kl_fail(e, KL_EINVAL, NULL, "%s", wrong);
    kl_err err = kl_request_task(&g.task, c->arena, args->words[0], e);
    if (!err) err = kl_request_kernel(&g.kernel, &refusal, c->arena, path, args->params, e);
    if (err) return err;
    const kl_surface *s = g.kernel ? g.kernel->surface : kl_surface_of_path(kl_str_of(path), 0);
    const kl_host_kind on = s ? s->on : KL_ON_CPU;
    err = kl_request_options(&g.opts, c->arena, args, g.task, on, e);
    if (!err) err = load_rival(&g, e);
    if (!err) err = kl_effort_wait_quiet(args, e);
    if (err) return err;
    return g.kernel ? with_gate(&g, out, e) : refuse(&g, path, &refusal, out);
}
