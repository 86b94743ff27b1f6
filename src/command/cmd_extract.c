/* cmd_extract.c - `klineage kernel extract`: a Triton kernel of a library as one kernel file.
 *
 * The reading is Python's business (src/surface/triton/extract): it parses the package's text
 * and imports nothing of it, so it runs as the user who asked, unconfined, like any look at a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/init.h"
#include "command/request.h"
#include "base/fs.h"
#include "base/json.h"
#include <stdlib.h>
#include <string.h>

enum { EXIT_REFUSED = 10 };
#define EXTRACT_NS 60000000000ll /* parsing the largest packages takes a few seconds */

/* The definition of a task found by name: a file, or in a folder. */
static kl_err definition_of(kl_str *out, kl_arena *a, const char *task, kl_error *e) {
    kl_task *loaded;
    kl_err err = kli_request_task(&loaded, a, task, e); /* it must be sound, and "did you mean" */
    if (!err) err = kl_task_find(out, a, task, e);
    if (!err && kli_fs_is_dir(out->ptr)) *out = kli_fs_join(a, out->ptr, "definition.json");
    return err;
}

kl_err kli_extract_triton(kli_proc_result *r, kl_arena *a, const char *what, const char *arch,
                          kl_str definition, kl_error *e) {
    const char *chosen = getenv("KLINEAGE_PYTHON");
    const kl_str python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    if (!python.len) {
        kl_fail(e, KL_ENODEV, "kernel extract", "no Python to read the package with");
        return kl_hint(e, "install python3, or name one in KLINEAGE_PYTHON");
    }
    const char *argv[] = {python.ptr,
                          "-B",
                          kli_fs_find_part(a, "triton_extract").ptr,
                          what,
                          arch ? arch : "sm_90a",
                          definition.ptr,
                          NULL};
    const kli_proc_spec spec = {
        .argv = argv, .timeout_ns = EXTRACT_NS, .max_output = 2 * KL_MAX_SOURCE_BYTES};
    const kl_err err = kli_proc_run(r, a, &spec, e);
    if (!err && r->timed_out) return kl_fail(e, KL_ELIMIT, what, "not read within a minute");
    if (!err && r->exit_code != 0 && r->exit_code != 1)
        return kl_fail(e, KL_EIO, what, "the reader of packages failed: %.*s", KL_STR_ARG(r->err));
    return err;
}

static void show_extracted(kli_command_result *out, const kli_args *args,
                           const kli_proc_result *r) {
    const char *path = args->values[KL_OPTION_OUT];
    out->json = json_pack("{ss si sb ss so so}", "schema", "klineage/kernel-extract", "version", 1,
                          "ok", true, "kernel", args->words[0], "out",
                          path ? json_string(path) : json_null(), "source", kli_json_str(r->out));
    if (path)
        kl_buf_printf(&out->text, "%.*s%s is the kernel file\n", KL_STR_ARG(r->err), path);
    else
        kl_buf_add(&out->text, r->out);
}

kl_err kli_cmd_kernel_extract(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    const char *path = args->values[KL_OPTION_OUT];
    kli_proc_result r = {0};
    if (!strchr(args->words[0], ':')) {
        kl_fail(e, KL_EINVAL, args->words[0], "this names no function");
        return kl_hint(e, "MODULE:FUNCTION of an installed package, or FILE.py:FUNCTION");
    }
    const char *task = args->values[KL_OPTION_TASK];
    kl_str definition = {0};
    kl_err err = task ? definition_of(&definition, c->arena, task, e) : KL_OK;
    if (!err)
        err = kli_extract_triton(&r, c->arena, args->words[0], args->values[KL_OPTION_ARCH],
                                 definition, e);
    if (err) return err;
    if (r.exit_code == 0) {
        show_extracted(out, args, &r);
        return path ? kli_fs_write(path, r.out, e) : KL_OK;
    }
    KL_ASSERT(r.err.len); /* whoever says no says why */
    out->exit_code = EXIT_REFUSED;
    kl_buf_add(&out->text, r.err);
    out->json = json_pack("{ss si sb ss so}", "schema", "klineage/kernel-extract", "version", 1,
                          "ok", false, "kernel", args->words[0], "refused", kli_json_str(r.err));
    return KL_OK;
}
