/* cmd_lineage.c - `klineage lineage list|show|export|import`: the lineages that walks left in the
 * store. SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/fs.h"
#include "base/json.h"
#include <klineage/lineage.h>

/* ---- list -------------------------------------------------------------------------------- */

/* A look at the document without checking it: one that is broken is listed too, and `show` says
 * what is wrong with it. */
static void cmd_lineage_list_row(kli_command_result *out, json_t *rows,
                                 const kl_store_record *row) {
    json_t *document = NULL;
    if (kli_json_parse(&document, row->json, row->id, kl_ignored())) document = json_object();
    const size_t steps = json_array_size(json_object_get(document, "edges"));
    const kl_str how = kli_json_text_or(json_object_get(document, "termination"), "how", KL_S("?"));
    const kl_str surface = kli_json_text_or(document, "surface", KL_S("?")),
                 model = kli_json_text_or(document, "model", KL_S("?"));
    kl_buf_printf(&out->text, "%.12s  %.*s  %-28.*s %-12.*s %-8.*s %2zu steps  %-15.*s by %.*s\n",
                  row->id.ptr, KL_STR_ARG(row->created), KL_STR_ARG(row->name),
                  KL_STR_ARG(row->task), KL_STR_ARG(surface), steps, KL_STR_ARG(how),
                  KL_STR_ARG(model));
    json_array_append_new(
        rows, json_pack("{so so so so so so so so}", "id", kli_json_str(row->id), "name",
                        kli_json_str(row->name), "task", kli_json_str(row->task), "surface",
                        kli_json_str(surface), "model", kli_json_str(model), "steps",
                        json_integer((json_int_t)steps), "termination", kli_json_str(how),
                        "created", kli_json_str(row->created)));
    json_decref(document);
}

kl_err kli_cmd_lineage_list(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    kl_store *store = NULL;
    kl_store_record *rows = NULL;
    size_t n = 0;
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_store_record_list(&rows, &n, store, c->arena, "lineage", e);
    kl_store_close(store);
    if (err) return err;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) cmd_lineage_list_row(out, list, &rows[i]);
    if (n == 0)
        kl_buf_printf(&out->text, "no lineages; create one with klineage walk TASK KERNEL\n");
    out->json =
        json_pack("{s:s, s:i, s:o}", "schema", "klineage/lineages", "version", 1, "lineages", list);
    return KL_OK;
}

/* ---- show, export, import ---------------------------------------------------------------- */

static kl_err cmd_lineage_load(kl_lineage *out, kli_context *c, const kli_args *args, kl_error *e) {
    kl_store *store = NULL;
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kli_journal_lineage(out, c->arena, store, args->words[0], e);
    kl_store_close(store);
    return err;
}

kl_err kli_cmd_lineage_show(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    kl_lineage l;
    const kl_err err = cmd_lineage_load(&l, c, args, e);
    if (err) return err;
    kl_lineage_render(&l, &out->text, c->colour);
    out->json = kl_lineage_json(&l);
    return KL_OK;
}

kl_err kli_cmd_lineage_export(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    const char *dir = args->values[KL_OPTION_GIT], *file = args->values[KL_OPTION_OUT];
    kl_lineage l;
    if (!dir == !file)
        return kl_fail(e, KL_EINVAL, NULL, "name a destination: --git DIR or --out FILE");
    kl_err err = cmd_lineage_load(&l, c, args, e);
    if (!err)
        err = dir ? kl_lineage_export_git(&l, dir, e)
                  : kli_journal_write_lineage(&l, c->arena, file, e);
    if (err) return err;
    if (dir)
        kl_buf_printf(&out->text, "%d commits in %s\n  git -C %s log -p --reverse\n", l.n_states,
                      dir, dir);
    else
        kl_buf_printf(&out->text, "lineage %.12s in %s\n", l.id.ptr, file);
    out->json =
        json_pack("{s:s, s:i, s:s, s:o}", "schema", "klineage/export", "version", 1, "lineage",
                  l.id.ptr, dir ? "git" : "file", kli_json_str(kl_str_of(dir ? dir : file)));
    return KL_OK;
}

kl_err kli_cmd_lineage_import(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    const char *file = args->words[0];
    kl_store *store = NULL;
    kl_lineage l;
    kl_str text;
    kl_err err = kli_fs_read(&text, c->arena, file, KL_MAX_JSON_BYTES, e);
    if (!err) err = kl_lineage_parse(&l, c->arena, text, kl_str_of(file), e);
    if (!err) err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_lineage_keep(&l, store, e);
    kl_store_close(store);
    if (err) return err;
    kl_buf_printf(&out->text,
                  "imported lineage %.12s; its verdicts are not part of the file\n  klineage "
                  "lineage show %.12s\n",
                  l.id.ptr, l.id.ptr);
    out->json = json_pack("{s:s, s:i, s:s}", "schema", "klineage/import", "version", 1, "lineage",
                          l.id.ptr);
    return KL_OK;
}
