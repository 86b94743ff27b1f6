/* cmd_serve.c - `klineage serve`: the commands for coding agents.
 *
 * The protocol is the business of its own Python package (mcp) and of ours (python/klineage), which
 * takes this process's place and runs this program once for every call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include "base/fs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static kl_err find_python(kl_str *out, kl_arena *a, kl_error *e) {
    const char *chosen = getenv("KLINEAGE_PYTHON");
    *out = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    if (out->len) return KL_OK;
    kl_fail(e, KL_ENODEV, "serve", "no Python to serve with");
    return kl_hint(e, "install python3, or name one in KLINEAGE_PYTHON"), KL_ENODEV;
}

/* Ours first: another package of that name may be installed. */
static void show_package(kl_arena *a, kl_str folder) {
    const char *path = getenv("PYTHONPATH");
    (void)setenv("PYTHONPATH",
                 path && *path ? kl_arena_printf(a, "%s:%s", folder.ptr, path).ptr : folder.ptr,
                 true);
}

kl_err kli_cmd_serve(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_arena *a = c->arena;
    kl_str python;
    (void)out;
    if (!kli_args_has(args, KL_OPTION_MCP)) {
        kl_fail(e, KL_EINVAL, "serve", "by which protocol?");
        return kl_hint(e, "klineage serve --mcp");
    }
    const kl_err err = find_python(&python, a, e);
    if (err) return err;
    const char *port = args->values[KL_OPTION_PORT];
    const char *argv[] = {python.ptr, "-B", "-m", "klineage.serve", port ? port : NULL, NULL};
    (void)setenv("KLINEAGE_PROGRAM", kli_fs_join(a, kli_fs_self_dir(a).ptr, "klineage").ptr, true);
    show_package(a, kli_fs_find_part(a, "python"));
    (void)execv(python.ptr, (char *const *)(uintptr_t)argv);
    return kl_fail(e, KL_EIO, python.ptr, "cannot be started: %s", strerror(errno));
}
