/* cmd_judge.c - `klineage lineage judge LINEAGE`: the races of a lineage held once more, by today's
 * gate and rule.
 *
 * One run with one track that asks nobody.  The lineage that comes out has another id and the name
 * of the old one; it is kept before it is shown. SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "command/journal.h"
#include "base/json.h"
#include <klineage/lineage.h>

typedef struct {
    kl_task *task;
    const kl_workload *workload;
    kl_lineage before, after;
} cmd_judge_judge_ctx;

static kl_err cmd_judge_body(kl_track *t, void *ctx, kl_error *e) {
    cmd_judge_judge_ctx *j = ctx;
    return kl_lineage_judge(&j->after, t, j->task, j->workload, &j->before, e);
}

/* ---- shown ------------------------------------------------------------------------------- */

static void cmd_judge_edge_line(kl_buf *out, const kl_edge *was, const kl_edge *is) {
    kl_buf_printf(
        out, "K%-3d %-24.*s %7.3fx [%.3f, %.3f] %-4s -> %7.3fx [%.3f, %.3f]  floor %.2f %%  %s%s\n",
        is->to, KL_STR_ARG(is->action), was->gain, was->gain_low, was->gain_high,
        was->pays ? "pays" : "", is->gain, is->gain_low, is->gain_high, 100 * is->noise,
        kl_decision_name(is->call),
        was->pays && !is->pays   ? "  NO LONGER PROFITABLE"
        : !was->pays && is->pays ? "  now profitable"
                                 : "");
    if (is->recovered > 0)
        kl_buf_printf(out, "     %-24s %7.3f  [%.3f, %.3f]      -> %7.3f  [%.3f, %.3f]\n",
                      "  forward, of its speed", was->recovered, was->recovered_low,
                      was->recovered_high, is->recovered, is->recovered_low, is->recovered_high);
}

static json_t *cmd_judge_interval(double ratio, double low, double high) {
    return json_pack("{so so so}", "ratio", kli_json_real(ratio), "low", kli_json_real(low), "high",
                     kli_json_real(high));
}

static json_t *edge_json(const kl_edge *was, const kl_edge *is) {
    return json_pack(
        "{si so so so sb sb sf ss so so}", "to", is->to, "action", kli_json_str(is->action),
        "before", cmd_judge_interval(was->gain, was->gain_low, was->gain_high), "now",
        cmd_judge_interval(is->gain, is->gain_low, is->gain_high), "paid", was->pays, "pays",
        is->pays, "floor", is->noise, "call", kl_decision_name(is->call), "recovered_before",
        cmd_judge_interval(was->recovered, was->recovered_low, was->recovered_high), "recovered",
        cmd_judge_interval(is->recovered, is->recovered_low, is->recovered_high));
}

static void cmd_judge_show(const cmd_judge_judge_ctx *j, kli_command_result *out) {
    KL_ASSERT(j->before.n_edges == j->after.n_edges);
    int paid = 0, fell = 0, rose = 0;
    json_t *edges = json_array();
    kl_buf_printf(&out->text, "%.*s on %.*s, shape %.*s: then -> now\n", KL_STR_ARG(j->after.name),
                  KL_STR_ARG(j->after.platform), KL_STR_ARG(j->after.workload));
    for (int i = 0; i < j->after.n_edges; i++) {
        const kl_edge *was = &j->before.edges[i], *is = &j->after.edges[i];
        cmd_judge_edge_line(&out->text, was, is);
        json_array_append_new(edges, edge_json(was, is));
        paid += was->pays;
        fell += was->pays && !is->pays;
        rose += !was->pays && is->pays;
    }
    kl_buf_printf(
        &out->text,
        "%d of %d profitable edges no longer are, %d others now are; lineage %.12s -> %.12s\n",
        fell, paid, rose, j->before.id.ptr, j->after.id.ptr);
    out->json =
        json_pack("{ss si so so so so si si}", "schema", "klineage/judged", "version", 1, "name",
                  kli_json_str(j->after.name), "before", kli_json_str(j->before.id), "lineage",
                  kli_json_str(j->after.id), "edges", edges, "fell", fell, "rose", rose);
    out->exit_code = fell ? 1 : 0;
}

/* ---- the command ------------------------------------------------------------------------- */

kl_err kli_cmd_lineage_judge(kli_context *c, const kli_args *args, kli_command_result *out,
                             kl_error *e) {
    cmd_judge_judge_ctx *j = KL_NEW(c->arena, cmd_judge_judge_ctx);
    kl_run_opts o;
    kl_run *run = NULL;
    const kl_track_opts how = kli_effort_tracks(args);
    kl_err err = kli_effort_gates(&o, c->arena, args, "lineage judge", e);
    if (!err) err = kli_request_lineage(&j->before, &j->task, &j->workload, c->arena, args, e);
    if (err) return err;
    kl_str identity[] = {j->before.id, o.gate.quick ? KL_S("quick") : KL_S("full")};
    o.identity = identity;
    o.n_identity = (int)KL_COUNT(identity);
    const kl_track_spec track = {.name = "judge",
                                 .workload = j->task->name.ptr,
                                 .policy = "judge",
                                 .body = cmd_judge_body,
                                 .ctx = j};
    err = kl_run_open(&run, &o, e);
    if (!err) err = kl_run_tracks(run, &track, 1, &how, e);
    if (!err) err = kl_lineage_keep(&j->after, kl_run_store(run), e);
    if (!err)
        (void)!kli_journal_write_lineage(&j->after, c->arena, args->values[KL_OPTION_OUT],
                                         &out->trouble);
    if (!err) cmd_judge_show(j, out);
    kl_run_close(run);
    return err;
}
