/* cmd_verdict.c - `klineage verdict list|show`: what the journal holds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "command/request.h"
#include "base/json.h"

/* ---- list -------------------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    kl_buf *text;
    json_t *rows;
} list_ctx;

static kl_err cmd_verdict_add_row(void *ctx, const kl_store_verdict *row) {
    list_ctx *l = ctx;
    kl_verdict v;
    json_t *o = json_object();
    bool read = kl_verdict_parse(&v, l->arena, row->json, row->key, kl_ignored()) == KL_OK;
    bool timed = read && v.n_comparisons > 0;
    kl_buf_printf(l->text, "%.12s  %.*s  %-10.*s %-14.*s", row->key.ptr, KL_STR_ARG(row->created),
                  KL_STR_ARG(row->outcome), KL_STR_ARG(row->task));
    if (timed)
        kl_buf_printf(l->text, " %8.3fx %s", v.comparisons[0].ratio,
                      kl_decision_name(v.comparisons[0].call));
    if (read)
        kl_buf_printf(l->text, "  %.*s at %.*s", KL_STR_ARG(v.kernel_path), KL_STR_ARG(v.workload));
    kl_buf_printf(l->text, "\n");
    json_object_set_new(o, "key", kli_json_str(row->key));
    json_object_set_new(o, "created", kli_json_str(row->created));
    json_object_set_new(o, "outcome", kli_json_str(row->outcome));
    json_object_set_new(o, "task", kli_json_str(row->task));
    json_object_set_new(o, "kernel", kli_json_str(row->kernel));
    json_object_set_new(o, "platform", kli_json_str(row->platform));
    if (read) json_object_set_new(o, "workload", kli_json_str(v.workload));
    if (read) json_object_set_new(o, "path", kli_json_str(v.kernel_path));
    if (timed) json_object_set_new(o, "ratio", kli_json_real(v.comparisons[0].ratio));
    json_array_append_new(l->rows, o);
    return KL_OK;
}

kl_err kli_cmd_verdict_list(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    kl_store *store = NULL;
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (err) return err;
    kl_store_verdict_query query = {
        .task = args->values[KL_OPTION_TASK],
        .outcome = args->values[KL_OPTION_OUTCOME],
        .limit = (int64_t)(kli_args_number(args, KL_OPTION_LIMIT, 50) & INT64_MAX)};
    list_ctx l = {.arena = c->arena, .text = &out->text, .rows = json_array()};
    err = kl_store_verdict_each(store, &query, cmd_verdict_add_row, &l, e);
    kl_store_close(store);
    if (!err && json_array_size(l.rows) == 0)
        kl_buf_printf(&out->text, "no verdicts; create one with klineage gate TASK KERNEL\n");
    out->json = json_pack("{s:s, s:i, s:o}", "schema", "klineage/verdicts", "version", 1,
                          "verdicts", l.rows);
    return err;
}

/* ---- show -------------------------------------------------------------------------------- */

static const char *cmd_verdict_tick(bool ok) { return ok ? "ok " : "BAD"; }

static void checks_text(kl_buf *out, const kl_verdict *v) {
    if (v->n_checks) kl_buf_printf(out, "\nchecks: relative RMS error and its limit\n");
    for (int i = 0; i < v->n_checks; i++) {
        const kl_check_result *r = &v->checks[i];
        kl_buf_printf(out, "  %s %-10.*s %-12.*s %.3g of %.3g", cmd_verdict_tick(r->ok),
                      KL_STR_ARG(r->workload), KL_STR_ARG(r->output), r->rms_error, r->budget);
        if (r->scale < 1 || r->scale > 1) kl_buf_printf(out, ", inputs x %g", r->scale);
        if (r->first_bad >= 0)
            kl_buf_printf(out, "; %lld bad, first at %lld: %g instead of %g", (long long)r->bad,
                          (long long)r->first_bad, r->got, r->expected);
        kl_buf_printf(out, "\n");
    }
}

static void identity_text(kl_buf *out, const kl_verdict *v) {
    kl_buf_printf(out,
                  "\nidentity\n  task      %.*s\n  kernel    %.*s\n  artefact  %.*s\n  receipt "
                  "  %s\n  created   %.*s\n  seed      %llu\n",
                  KL_STR_ARG(v->task_hash), KL_STR_ARG(v->kernel_hash),
                  KL_STR_ARG(v->artefact_hash), v->receipt, KL_STR_ARG(v->created),
                  (unsigned long long)v->seed);
    kl_buf_printf(out, "  toolchain %.*s\n  driver    %.*s\n  isolation %.*s\n",
                  KL_STR_ARG(v->toolchain), KL_STR_ARG(v->driver), KL_STR_ARG(v->isolation));
    if (v->n_features) kl_buf_printf(out, "\nfeatures of the compiled code\n ");
    for (int i = 0; i < v->n_features; i++)
        kl_buf_printf(out, " %.*s=%g", KL_STR_ARG(v->features[i].name), v->features[i].value);
    kl_buf_printf(out, v->n_stages ? "\n\ntime per stage\n " : "\n");
    for (int i = 0; i < v->n_stages; i++)
        kl_buf_printf(out, " %.*s %.0f ms", KL_STR_ARG(v->stages[i].name),
                      (double)v->stages[i].ns * 1e-6);
    if (v->n_stages) kl_buf_printf(out, "\n");
}

kl_err kli_cmd_verdict_show(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    kl_store *store = NULL;
    kl_verdict v;
    char key[65];
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_store_verdict_find(key, store, args->words[0], e);
    if (!err) err = kli_verdicts_get(&v, store, c->arena, key, e);
    kl_store_close(store);
    if (err == KL_ENOENT) kl_hint(e, "klineage verdict list shows the keys");
    if (err) return err;
    kli_request_show(out, &v, c->colour);
    checks_text(&out->text, &v);
    identity_text(&out->text, &v);
    out->exit_code = 0; /* showing worked, whatever the verdict says */
    return KL_OK;
}
