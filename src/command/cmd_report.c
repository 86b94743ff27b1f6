/* cmd_report.c - `klineage report RUN...`: runs as one HTML page.  SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/fs.h"
#include "base/json.h"
#include <klineage/report.h>

kl_err kl_cmd_report(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    kl_store *store = NULL;
    kl_buf html = {0};
    kl_str dir = {0};
    kl_error unused = {0};
    const char *path = args->values[KL_OPTION_OUT] ? args->values[KL_OPTION_OUT] : "report.html";
    bool wished = kl_args_has(args, KL_OPTION_LIBRARY);
    if (wished)
        dir = kl_str_of(args->values[KL_OPTION_LIBRARY]);
    else if (kl_library_find(&dir, c->arena, NULL, &unused))
        dir = (kl_str){0}; /* a report needs none */
    kl_report_opts o = {.runs = args->words, .n_runs = args->n_words, .library = dir.ptr};
    kl_err err = kl_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_report_write(&html, store, &o, e);
    if (!err) err = kl_fs_write(path, kl_buf_str(&html), e);
    kl_store_close(store);
    kl_buf_fini(&html);
    if (err) return err;
    kl_buf_printf(&out->text, "%s\n", path);
    out->json = json_pack("{ss si ss}", "schema", "klineage/report", "version", 1, "path", path);
    return KL_OK;
}
