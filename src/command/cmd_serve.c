/* cmd_serve.c - `klineage serve`: the commands for coding agents, rewards for trainers.
 *
 * --mcp: the protocol is the business of its own Python package (mcp) and of ours
 * (python/klineage), which takes this process's place and runs this program once for every call.
 * --reward: src/reward, in this process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "base/fs.h"
#include "reward/reward.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PORT = 65535 };

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

/* What only rewards have would be left out without a word. */
static kl_err check_mcp_options(const kli_args *args, kl_error *e) {
    static const kli_option_id OF_REWARD[] = {
        KL_OPTION_LISTEN, KL_OPTION_TOKENS, KL_OPTION_AUDIT, KL_OPTION_JUDGES,
        KL_OPTION_JUDGE,  KL_OPTION_STORE,  KL_OPTION_SPOOL, KL_OPTION_REQUIRE_ASSURANCE};
    for (size_t i = 0; i < KL_COUNT(OF_REWARD); i++) {
        const kli_option_id id = OF_REWARD[i];
        if (!kli_args_has(args, id)) continue;
        kl_fail(e, KL_EINVAL, "serve", "--mcp has no --%s", kli_options[id].name);
        return kl_hint(e, id == KL_OPTION_LISTEN
                              ? "--port N is 127.0.0.1:N; --mcp listens on this machine alone"
                              : "it is an option of --reward, and of the calls themselves");
    }
    return KL_OK;
}

static kl_err serve_mcp(kl_arena *a, const kli_args *args, kl_error *e) {
    kl_str python;
    int checked;
    const char *port = args->values[KL_OPTION_PORT];
    kl_err err = check_mcp_options(args, e);
    if (!err) err = kli_effort_count(&checked, args, KL_OPTION_PORT, 0, MOST_PORT, e);
    if (!err) err = find_python(&python, a, e);
    if (err) return err;
    const char *argv[] = {python.ptr, "-B", "-m", "klineage.serve", port, NULL};
    (void)setenv("KLINEAGE_PROGRAM", kli_fs_join(a, kli_fs_self_dir(a).ptr, "klineage").ptr, true);
    show_package(a, kli_fs_find_part(a, "python"));
    (void)execv(python.ptr, (char *const *)(uintptr_t)argv);
    return kl_fail(e, KL_EIO, python.ptr, "cannot be started: %s", strerror(errno));
}

/* ---- rewards ----------------------------------------------------------------------------- */

static void show_served(kli_command_result *out, const kli_reward_served *s) {
    kl_buf_printf(&out->text, "%lld batches, %lld kernels answered, %lld of them judged now\n",
                  (long long)s->requests, (long long)s->answered, (long long)s->judged);
    if (s->left)
        kl_buf_printf(&out->text, "%lld are left for the next start\n", (long long)s->left);
    out->json = json_pack("{ss si sI sI sI sI}", "schema", "klineage/served", "version", 1,
                          "batches", (json_int_t)s->requests, "answered", (json_int_t)s->answered,
                          "judged", (json_int_t)s->judged, "left", (json_int_t)s->left);
}

static kl_err serve_rewards(kl_arena *a, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    const char *store = args->values[KL_OPTION_STORE];
    const char *assurance = args->values[KL_OPTION_REQUIRE_ASSURANCE];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    kli_reward_opts o = {.listen = args->values[KL_OPTION_LISTEN],
                         .tenants = args->values[KL_OPTION_TOKENS],
                         .audit = args->values[KL_OPTION_AUDIT],
                         .store = store ? store : kl_store_default_path(a).ptr,
                         .executor = kli_effort_executor(a, args),
                         .require_assurance = assurance ? assurance[0] : 0};
    kli_reward_served served;
    kl_str *tasks;
    if (kli_args_has(args, KL_OPTION_PORT)) {
        kl_fail(e, KL_EINVAL, "serve", "--reward has no --port");
        return kl_hint(e, "--listen 127.0.0.1:%.16s", args->values[KL_OPTION_PORT]);
    }
    if (kli_args_has(args, KL_OPTION_JUDGE)) return kli_reward_judge(&o, e);
    kl_err err = kli_effort_count(&o.judges, args, KL_OPTION_JUDGES,
                                  cores > 3 ? (cores < 128 ? (int)cores / 2 : 64) : 1, 64, e);
    if (!err) err = kli_request_tasks(&tasks, &o.n_tasks, a, e);
    if (err) return err;
    o.tasks = tasks;
    err = kli_reward_serve(&served, &o, e);
    if (!err) show_served(out, &served);
    return err;
}

kl_err kli_cmd_serve(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    const bool mcp = kli_args_has(args, KL_OPTION_MCP),
               reward = kli_args_has(args, KL_OPTION_REWARD);
    if (mcp && !reward) return serve_mcp(c->arena, args, e);
    if (reward && !mcp) return serve_rewards(c->arena, args, out, e);
    kl_fail(e, KL_EINVAL, "serve", mcp ? "by one protocol at a time" : "by which protocol?");
    return kl_hint(e, "klineage serve --mcp, or klineage serve --reward");
}
