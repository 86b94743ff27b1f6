/* cmd_spool.c - `klineage spool`: the queue of a folder that carries jobs, and the worker of one.
 *
 * The layout of the folder belongs to src/executor/spool.c; here only names of jobs are counted and
 * shown. SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include "base/fs.h"
#include "base/json.h"
#include <klineage/executor.h>
#include <string.h>

static const char *const states[] = {"todo", "taken", "done"};

/* What a job says of itself; empty when its folder was moved on meanwhile. */
static json_t *cmd_spool_job_of(kl_arena *a, const char *folder) {
    kl_str text;
    json_t *job = NULL;
    if (kli_fs_read(&text, a, kli_fs_join(a, folder, "job.json").ptr, KL_MAX_JSON_BYTES,
                    kl_ignored()))
        return NULL;
    return kli_json_parse(&job, text, KL_S("job.json"), kl_ignored()) ? NULL : job;
}

/* "pass", "wrong", or "error" when the host could not judge it; empty while there is no answer. */
static kl_str cmd_spool_outcome_of(kl_arena *a, const char *folder) {
    kl_str text;
    kl_verdict v;
    if (kli_fs_exists(kli_fs_join(a, folder, "error.json").ptr)) return KL_S("error");
    if (kli_fs_read(&text, a, kli_fs_join(a, folder, "verdict.json").ptr, KL_MAX_JSON_BYTES,
                    kl_ignored()))
        return (kl_str){0};
    if (kl_verdict_parse(&v, a, text, KL_S("verdict.json"), kl_ignored())) return (kl_str){0};
    return kl_str_of(kl_outcome_name(v.outcome));
}

static json_t *job_row(kl_buf *text, kl_arena *a, const char *dir, const char *state, kl_str name) {
    kl_str folder = kl_arena_printf(a, "%s/%s/%.*s", dir, state, KL_STR_ARG(name));
    json_t *job = cmd_spool_job_of(a, folder.ptr), *o = json_object();
    kl_str path = kli_json_text_or(job, "path", KL_S("?")),
           outcome = cmd_spool_outcome_of(a, folder.ptr);
    kl_str id = {name.ptr, strcspn(name.ptr, "@")};
    kl_buf_printf(text, "  %-6s %.12s  %.*s  %.*s%.*s\n", state, name.ptr, KL_STR_ARG(path),
                  KL_STR_ARG(outcome), (int)(name.len - id.len), name.ptr + id.len);
    json_object_set_new(o, "id", kli_json_str(id));
    json_object_set_new(o, "state", json_string(state));
    json_object_set_new(o, "worker", kli_json_str((kl_str){name.ptr + id.len, name.len - id.len}));
    json_object_set_new(o, "kernel", kli_json_str(path));
    json_object_set_new(o, "outcome", kli_json_str(outcome));
    json_decref(job);
    return o;
}

static kl_err show_queue(kl_arena *a, const char *dir, kli_command_result *out, kl_error *e) {
    if (!kli_fs_is_dir(dir)) {
        kl_fail(e, KL_ENOENT, dir, "no such folder");
        return kl_hint(e, "create it with a job: klineage gate TASK KERNEL --spool %s", dir);
    }
    json_t *jobs = json_array(), *counts = json_object();
    kl_err err = KL_OK;
    for (size_t i = 0; !err && i < KL_COUNT(states); i++) {
        kl_str *names;
        size_t n = 0;
        err = kli_fs_list(&names, &n, a, kli_fs_join(a, dir, states[i]).ptr, e);
        for (size_t j = 0; !err && j < n; j++)
            json_array_append_new(jobs, job_row(&out->text, a, dir, states[i], names[j]));
        json_object_set_new(counts, states[i], json_integer((json_int_t)n));
    }
    kl_buf_printf(&out->text, "%lld waiting, %lld running, %lld done\n",
                  (long long)kli_json_int_or(counts, "todo", 0),
                  (long long)kli_json_int_or(counts, "taken", 0),
                  (long long)kli_json_int_or(counts, "done", 0));
    out->json = json_pack("{s:s, s:i, s:o, s:o}", "schema", "klineage/spool", "version", 1,
                          "counts", counts, "jobs", jobs);
    return err;
}

static kl_err work(const char *dir, kli_command_result *out, kl_error *e) {
    int done = 0, failed = 0;
    kl_executor *here;
    kl_err err = kl_executor_open(&here, "local", e);
    if (err) return err;
    err = kl_spool_work(dir, here, &done, &failed, e);
    kl_executor_close(here);
    if (err) return err;
    KL_ASSERT(done >= 0 && failed >= 0);
    kl_buf_printf(&out->text, "%d judged, %d could not be judged on this host\n", done, failed);
    out->json = json_pack("{s:s, s:i, s:i, s:i}", "schema", "klineage/spool-work", "version", 1,
                          "judged", done, "failed", failed);
    out->exit_code = failed ? 1 : 0;
    return KL_OK;
}

kl_err kli_cmd_spool(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    const char *dir = args->words[0];
    return kli_args_has(args, KL_OPTION_WORK) ? work(dir, out, e)
                                              : show_queue(c->arena, dir, out, e);
}
