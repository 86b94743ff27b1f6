/* cmd_report.c - `klineage report RUN...`: runs as one HTML page, or as what they come to: JSON,
 * Markdown tables, figures. SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/fs.h"
#include <klineage/report.h>

/* A report needs no library; one that was named must be there. */
static const char *library_of(kl_arena *a, const kli_args *args) {
    kl_str dir = {0};
    if (kli_args_has(args, KL_OPTION_LIBRARY)) return args->values[KL_OPTION_LIBRARY];
    return kl_library_find(&dir, a, NULL, kl_ignored()) ? NULL : dir.ptr;
}

static bool wants_numbers(const kli_args *args) {
    return kli_args_has(args, KL_OPTION_JSON) || kli_args_has(args, KL_OPTION_JSON_PRETTY) ||
           kli_args_has(args, KL_OPTION_MARKDOWN) || kli_args_has(args, KL_OPTION_FIGURES);
}

static kl_err cmd_report_write_page(kl_store *store, const kl_report_opts *o, const char *path,
                                    kl_error *e) {
    kl_buf html = {0};
    kl_err err = kl_report_write(&html, store, o, e);
    if (!err) err = kli_fs_write(path, kl_buf_str(&html), e);
    kl_buf_fini(&html);
    return err;
}

/* Who asks for numbers has no use for a page unless it is named too. */
kl_err kli_cmd_report(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_store *store = NULL;
    kl_buf pictures = {0};
    const char *path = args->values[KL_OPTION_OUT], *figures = args->values[KL_OPTION_FIGURES];
    kl_report_opts o = {
        .runs = args->words, .n_runs = args->n_words, .library = library_of(c->arena, args)};
    if (!path && !wants_numbers(args)) path = "report.html";
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_report_results(&out->json, store, &o, e);
    if (!err && path) err = cmd_report_write_page(store, &o, path, e);
    if (!err && figures) err = kl_report_pictures(&pictures, figures, figures, store, &o, e);
    kl_store_close(store);
    if (!err && kli_args_has(args, KL_OPTION_MARKDOWN)) {
        kl_report_results_markdown(&out->text, out->json);
        kl_buf_add(&out->text, kl_buf_str(&pictures));
    } else if (!err && (path || figures)) {
        kl_buf_printf(&out->text, "%s\n", path ? path : figures);
    }
    kl_buf_fini(&pictures);
    return err;
}
