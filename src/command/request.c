/* request.c - see request.h.
 *
 * Names are checked here, before anything is compiled, so that a slip of the fingers costs nothing
 * and is answered with the nearest known name. SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "command/journal.h"
#include "base/fs.h"
#include "base/log.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tasks ------------------------------------------------------------------------------- */

#define MAX_TASKS 4096 /* listed by name; a folder of data sets may be large */

typedef struct {
    kl_str *paths;
    size_t n;
} task_list;

static bool request_is_listed(const task_list *l, kl_str name) {
    for (size_t i = 0; i < l->n; i++)
        if (kl_str_eq(kli_fs_basename(l->paths[i].ptr), name)) return true;
    return false;
}

static kl_err list_folder(task_list *l, kl_arena *a, const char *dir, kl_error *e) {
    kl_str *names;
    size_t n;
    if (!kli_fs_is_dir(dir)) return KL_OK;
    kl_err err = kli_fs_list(&names, &n, a, dir, e);
    for (size_t i = 0; !err && i < n && l->n < MAX_TASKS; i++) {
        kl_str path = kli_fs_join(a, dir, names[i].ptr);
        bool task = kli_fs_exists(kli_fs_join(a, path.ptr, "definition.json").ptr);
        if (task && !request_is_listed(l, names[i])) l->paths[l->n++] = path;
    }
    return err;
}

kl_err kli_request_tasks(kl_str **paths, size_t *n, kl_arena *a, kl_error *e) {
    task_list l = {.paths = KL_ARRAY(a, kl_str, MAX_TASKS)};
    const char *named = getenv("KLINEAGE_TASKS");
    const bool told = named && *named;
    kl_err err = told ? list_folder(&l, a, named, e) : KL_OK;
    kl_str above = kli_fs_self_dir(a);
    while (!err && !told && above.len > 1) {
        err = list_folder(&l, a, kli_fs_join(a, above.ptr, "tasks").ptr, e);
        if (!err)
            err = list_folder(&l, a, kli_fs_join(a, above.ptr, "share/klineage/tasks").ptr, e);
        above = kli_fs_dirname(a, above.ptr);
    }
    if (!err && !told) err = list_folder(&l, a, "tasks", e);
    KL_ASSERT(l.n <= MAX_TASKS);
    *paths = l.paths;
    *n = l.n;
    return err;
}

static kl_err suggest_task(kl_arena *a, const char *name, kl_error *e) {
    kl_str *paths;
    size_t n;
    if (kli_request_tasks(&paths, &n, a, kl_ignored())) return e->code;
    kli_suggestion s;
    kli_suggest_start(&s, kli_fs_basename(name));
    for (size_t i = 0; i < n; i++) kli_suggest_offer(&s, kli_fs_basename(paths[i].ptr));
    if (s.best.ptr)
        return kl_hint(e, "did you mean %.*s? klineage task list shows all", KL_STR_ARG(s.best));
    return kl_hint(e, "klineage task list shows the available tasks");
}

kl_err kli_request_task(kl_task **out, kl_arena *a, const char *name_or_path, kl_error *e) {
    kl_str path;
    if (!name_or_path) {
        kl_fail(e, KL_EINVAL, NULL, "--task TASK is needed");
        return kl_hint(e, "klineage task list shows the tasks");
    }
    kl_err err = kl_task_find(&path, a, name_or_path, e);
    if (err == KL_ENOENT) return suggest_task(a, name_or_path, e), err;
    return err ? err : kl_task_load(out, a, path.ptr, e);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static kl_err check_path(kl_arena *a, const char *path, kl_error *e) {
    if (kli_fs_is_dir(path))
        return kl_fail(e, KL_EINVAL, path, "a kernel is one file, but this is a folder");
    kl_str file = kl_kernel_file(a, path);
    if (!file.len) {
        kl_fail(e, KL_ENOENT, path, "no such file");
        const kl_surface *s = kl_surface_of_host(KL_ON_CPU);
        return kl_hint(e,
                       "a kernel is one source file; every task has a naive one to start from: "
                       "cp tasks/gemm/%s mine%s",
                       s->naive, s->suffix);
    }
    if (access(file.ptr, R_OK) != 0) {
        kl_fail(e, KL_EIO, file.ptr, "cannot be read");
        return kl_hint(e, "chmod +r %s", file.ptr);
    }
    if (kl_surface_of_path(kl_str_of(path), 0) || kl_str_ends(file, KL_S(".diff"))) return KL_OK;
    kl_fail(e, KL_EINVAL, path, "unknown file extension for a kernel");
    return kl_hint(e, "known extensions: %s; klineage help kernels", kl_surface_endings(a).ptr);
}

kl_err kli_request_kernel(kl_kernel **out, kl_error *refusal, kl_arena *a, const char *path,
                          const char *const *params, kl_error *e) {
    *out = NULL;
    kl_err err = check_path(a, path, e);
    if (err) return err;
    kl_kernel_opts with = {.params = params}, without = {0};
    err = kl_kernel_load(out, a, path, &with, refusal);
    if (!err || err == KL_ENOENT || err == KL_EIO) return *e = *refusal, err;
    kl_kernel *plain;
    bool sound =
        params && params[0] && kl_kernel_load(&plain, a, path, &without, kl_ignored()) == KL_OK;
    if (sound) return *e = *refusal, err; /* the file is fine; what was asked of it is not */
    *out = NULL;
    return KL_OK;
}

kl_err kli_request_sound_kernel(kl_kernel **out, kl_arena *a, const char *path,
                                const char *const *params, kl_error *e) {
    kl_error refusal = {0};
    const kl_err err = kli_request_kernel(out, &refusal, a, path, params, e);
    if (err || *out) return err;
    KL_ASSERT(refusal.code != KL_OK);
    return *e = refusal, refusal.code;
}

kl_err kli_request_opponent(kl_kernel **out, kl_arena *a, const char *path, kl_error *e) {
    const kl_kernel_opts opts = {.may_be_code = true};
    const kl_err err = check_path(a, path, e);
    return err ? err : kl_kernel_load(out, a, path, &opts, e);
}

/* ---- shapes and options ------------------------------------------------------------------ */

static const char *host_name(kl_host_kind on) { return on == KL_ON_GPU ? "gpu" : "cpu"; }

static kl_err unknown_workload(const kl_task *t, kl_host_kind on, const char *requested,
                               kl_error *e) {
    kli_suggestion s;
    kl_buf known = {0};
    kli_suggest_start(&s, kl_str_of(requested));
    bool elsewhere = false;
    for (int i = 0; i < t->n_workloads; i++) {
        const kl_workload *w = &t->workloads[i];
        bool named =
            kl_str_eq(w->label, kl_str_of(requested)) || kl_str_eq(w->uuid, kl_str_of(requested));
        elsewhere |= named;
        if (!kl_workload_fits(w, on)) continue;
        kli_suggest_offer(&s, w->label);
        if (known.len < 300)
            kl_buf_printf(&known, "%s%.*s", known.len ? " " : "", KL_STR_ARG(w->label));
    }
    if (elsewhere)
        kl_fail(e, KL_EINVAL, NULL, "workload '%s' of %.*s is not for a %s", requested,
                KL_STR_ARG(t->name), host_name(on));
    else
        kl_fail(e, KL_EINVAL, NULL, "task %.*s has no workload '%s'", KL_STR_ARG(t->name),
                requested);
    if (s.best.ptr && !elsewhere)
        kl_hint(e, "did you mean %.*s? on a %s there are: %s", KL_STR_ARG(s.best), host_name(on),
                known.ptr);
    else
        kl_hint(e, "on a %s there are: %s; or give sizes, as in --workload M=64,N=64",
                host_name(on), known.len ? known.ptr : "none");
    kl_buf_fini(&known);
    return e->code;
}

kl_err kli_request_workload(const kl_workload **out, kl_arena *a, const kl_task *t, kl_host_kind on,
                            const char *requested, kl_error *e) {
    bool sizes = requested && strchr(requested, '=');
    *out = kl_task_workload(t, sizes ? (kl_str){0} : kl_str_of(requested), on);
    if (!*out && requested && !sizes) return unknown_workload(t, on, requested, e);
    if (!*out) {
        kl_fail(e, KL_EINVAL, NULL, "task %.*s has no real shape for a %s", KL_STR_ARG(t->name),
                host_name(on));
        return kl_hint(e, "klineage task show %.*s lists its workloads", KL_STR_ARG(t->name));
    }
    if (!sizes) return KL_OK;
    kl_workload *made = NULL;
    kl_err err = kl_workload_with_axes(&made, a, t, *out, kl_str_of(requested), e);
    for (int i = 0; !err && i < t->n_tensors; i++) {
        kl_shape shape;
        err = kl_task_shape(&shape, t, made, i, e);
    }
    double flops, bytes;
    if (!err) err = kl_task_work(&flops, &bytes, t, made, e);
    if (err && made)
        kl_hint(e, "--workload %s is too large; klineage task show %.*s lists sizes that fit",
                requested, KL_STR_ARG(t->name));
    *out = made;
    return err;
}

kl_err kli_request_library(kl_library **out, kl_arena *a, const kli_args *args, kl_error *e) {
    kl_str dir;
    const kl_err err = kl_library_find(&dir, a, args->values[KL_OPTION_LIBRARY], e);
    return err ? err : kl_library_load(out, a, dir.ptr, e);
}

kl_err kli_request_lineage(kl_lineage *out, kl_task **task, const kl_workload **w, kl_arena *a,
                           const kli_args *args, kl_error *e) {
    kl_store *store = NULL;
    kl_err err = kli_journal_open(&store, a, args, e);
    if (!err) err = kli_journal_lineage(out, a, store, args->words[0], e);
    kl_store_close(store);
    if (!err) err = kli_request_task(task, a, out->task.ptr, e);
    if (err) return err;
    const kl_surface *surface = kl_surface_by_name(out->surface);
    KL_ASSERT(surface); /* a lineage of another surface was not read */
    if (!kl_str_eq(out->task_hash, kl_str_of((*task)->hash)))
        return kl_fail(e, KL_EINVAL, args->words[0],
                       "the lineage belongs to another version of the task %.*s",
                       KL_STR_ARG(out->task));
    return kli_request_workload(w, a, *task, surface->on, out->workload.ptr, e);
}

static kl_err check_baseline(const kl_task *t, const char *requested, kl_error *e) {
    if (!requested || strcmp(requested, "all") == 0 || strcmp(requested, "none") == 0) return KL_OK;
    kli_suggestion s;
    kli_suggest_start(&s, kl_str_of(requested));
    kli_suggest_offer(&s, KL_S("none"));
    kl_buf known = {0};
    bool found = false;
    for (int i = 0; i < t->n_baselines; i++) {
        found |= kl_str_eq(t->baselines[i].name, kl_str_of(requested));
        kli_suggest_offer(&s, t->baselines[i].name);
        kl_buf_printf(&known, " %.*s", KL_STR_ARG(t->baselines[i].name));
    }
    if (!found) {
        kl_fail(e, KL_EINVAL, NULL, "task %.*s has no baseline '%s'", KL_STR_ARG(t->name),
                requested);
        if (s.best.ptr)
            kl_hint(e, "did you mean %.*s?", KL_STR_ARG(s.best));
        else
            kl_hint(e, "there are:%s all none", known.len ? known.ptr : "");
    }
    kl_buf_fini(&known);
    return found ? KL_OK : e->code;
}

static void request_show_progress(void *ctx, kl_stage stage, const char *text) {
    (void)ctx;
    kli_base_progress("%s: %s", kl_stage_name(stage), text);
    kli_debug("%s: %s", kl_stage_name(stage), text);
}

kl_err kli_request_options(kl_gate_opts *out, kl_arena *a, const kli_args *args, const kl_task *t,
                           kl_host_kind on, kl_error *e) {
    const char *assurance = args->values[KL_OPTION_REQUIRE_ASSURANCE];
    *out = (kl_gate_opts){
        .workload = args->values[KL_OPTION_WORKLOAD],
        .baseline =
            kli_args_has(args, KL_OPTION_BASELINES) ? "all" : args->values[KL_OPTION_BASELINE],
        .require_assurance = assurance ? assurance[0] : 0,
        .check_only = kli_args_has(args, KL_OPTION_CHECK_ONLY),
        .quick = kli_args_has(args, KL_OPTION_QUICK),
        .seed = kli_args_number(args, KL_OPTION_SEED, 0),
        .arch = args->values[KL_OPTION_ARCH],
        .progress = request_show_progress,
    };
    out->compile.require_assurance = out->require_assurance;
    if (kli_args_has(args, KL_OPTION_SEED) && out->seed == 0)
        return kl_fail(e, KL_EINVAL, NULL, "--seed must be above 0; omit it for a fresh one");
    const kl_workload *ignored;
    kl_err err = kli_request_workload(&ignored, a, t, on, out->workload, e);
    return err ? err : check_baseline(t, out->baseline, e);
}

void kli_request_show(kli_command_result *out, const kl_verdict *v, bool colour) {
    kl_verdict_render(v, &out->text, colour);
    out->json = kl_verdict_json(v);
    out->exit_code = kl_verdict_exit_code(v);
}

bool kli_request_is_taken(kl_arena *a, const char *path) {
    kl_str *names;
    size_t n = 1;
    if (!kli_fs_exists(path)) return false;
    return !kli_fs_is_dir(path) || kli_fs_list(&names, &n, a, path, kl_ignored()) || n > 0;
}
