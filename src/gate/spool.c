/* spool.c - a folder that carries jobs to a host without a network, or serves several workers on one disk.
 *
 *   DIR/tasks/HASH/                 the task folder, copied once
 *   DIR/cache/                      compiled artefacts: the sender compiles for the target, the worker finds them by content
 *   DIR/todo/ID/                    job.json + the kernel's source
 *   DIR/taken/ID@HOST@PID/          todo -> taken is one rename: whoever's rename succeeds has the job
 *   DIR/done/ID/                    + verdict.json, or error.json when the host could not judge it
 *
 * Edges of a job, each one rename:      todo -> taken   take()          taken -> done   finish()
 *                                       taken -> todo   take_back()     when its worker is dead or silent for SILENT_SECONDS
 * A job done twice (a worker that was only slow) loses the second rename: done/ID exists.  Nothing is ever half-written: folders are filled
 * under tmp/ and renamed into place.  Everything read from a spool is data: names are checked, JSON is parsed, paths are never followed out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ID_CHARS = 64, SILENT_SECONDS = 900 };

static bool is_id(kl_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))) return false;
    return s.len == ID_CHARS;
}

static kl_str in(kl_arena *a, const char *dir, const char *folder, const char *name)
{
    return kl_arena_printf(a, "%s/%s/%s", dir, folder, name);
}

static kl_err make_folders(const char *dir, kl_error *e)
{
    static const char *const FOLDERS[] = {"tasks", "cache", "todo", "taken", "done", "tmp"};
    for (size_t i = 0; i < KL_COUNT(FOLDERS); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", dir, FOLDERS[i]);
        const kl_err err = kl_fs_mkdirs(path, e);
        if (err) return err;
    }
    return KL_OK;
}

/* ---- copying a task ------------------------------------------------------------------------------------------------ */

static kl_err copy_folder(kl_arena *a, const char *from, const char *to, int depth, kl_error *e)
{
    kl_str *names;
    size_t  n;
    kl_err  err = kl_fs_mkdirs(to, e);
    if (!err) err = kl_fs_list(&names, &n, a, from, e);
    for (size_t i = 0; !err && i < n; i++) {
        const kl_str source = kl_fs_join(a, from, names[i].ptr), target = kl_fs_join(a, to, names[i].ptr);
        kl_str       data;
        if (kl_fs_is_dir(source.ptr)) {
            if (depth < 2) err = copy_folder(a, source.ptr, target.ptr, depth + 1, e);
        } else {
            err = kl_fs_read(&data, a, source.ptr, KL_MAX_JSON_BYTES, e);
            if (!err) err = kl_fs_write(target.ptr, data, e);
        }
    }
    return err;
}

/* Fill under tmp/, then one rename; somebody else having put the same content first is success. */
static kl_err move_into_place(const char *from, const char *to, kl_error *e)
{
    if (rename(from, to) == 0) return KL_OK;
    const int why = errno;
    kl_fs_remove_tree(from);
    if (why == EEXIST || why == ENOTEMPTY) return KL_OK;
    return kl_fail(e, KL_EIO, to, "cannot move a finished folder into the spool: %s", strerror(why));
}

static kl_err put_task(kl_arena *a, const char *dir, const kl_task *t, kl_error *e)
{
    const kl_str to = in(a, dir, "tasks", t->hash);
    if (kl_fs_is_dir(to.ptr)) return KL_OK;
    const kl_str tmp = kl_arena_printf(a, "%s/tmp/task-%.16s-%ld", dir, t->hash, (long)getpid());
    const kl_err err = copy_folder(a, t->dir.ptr, tmp.ptr, 0, e);
    return err ? err : move_into_place(tmp.ptr, to.ptr, e);
}

/* ---- job.json -------------------------------------------------------------------------------------------------------- */

static void put_opt(json_t *o, const char *key, const char *value)
{
    if (value) json_object_set_new(o, key, kl_json_str(kl_str_of(value)));
}

static json_t *job_json(const kl_task *t, const kl_kernel *k, const kl_gate_opts *o)
{
    json_t *job = json_object(), *params = json_array();
    json_object_set_new(job, "schema", json_string("klineage/job"));
    json_object_set_new(job, "version", json_integer(1));
    json_object_set_new(job, "task", json_string(t->hash));
    json_object_set_new(job, "kernel", json_string(k->hash));
    json_object_set_new(job, "surface", json_string(k->surface->name));
    json_object_set_new(job, "path", kl_json_str(k->path));
    for (int i = 0; i < k->n_params; i++) {
        char text[KL_MAX_NAME + 32];
        snprintf(text, sizeof text, "%.*s=%lld", KL_STR_ARG(k->params[i].name), (long long)k->params[i].value);
        json_array_append_new(params, json_string(text));
    }
    json_object_set_new(job, "params", params);
    put_opt(job, "workload", o->workload);
    put_opt(job, "baseline", o->baseline);
    if (o->require_assurance) put_opt(job, "require_assurance", (const char[2]){o->require_assurance, 0});
    json_object_set_new(job, "check_only", json_boolean(o->check_only));
    json_object_set_new(job, "quick", json_boolean(o->quick));
    json_object_set_new(job, "max_seconds", json_real(o->max_seconds));
    return job;
}

static void job_id(char id[65], kl_arena *a, const json_t *job)
{
    json_t *named = json_deep_copy(job);
    json_object_del(named, "path"); /* where the file lay does not make another job */
    const kl_hash h = kl_hash_of(kl_json_dump(a, named, false));
    json_decref(named);
    memcpy(id, h.hex, 65);
}

/* Compile everything of the job that this host can compile; what it cannot, the worker compiles itself. */
static void precompile(kl_gate *g, kl_arena *a, const char *dir, const kl_task *t, const kl_kernel *k, const kl_gate_opts *o)
{
    const kl_backend *b = kl_backend_of_surface(k->surface->id);
    kl_device         device;
    kl_error          e = {0};
    if (!b || kl_device_target(&device, a, b->id, o->arch, &e)) return;
    const kl_str       cache = kl_fs_join(a, dir, "cache");
    kl_compile_opts    compile = o->compile;
    const kl_workload *w = kl_task_workload(t, kl_str_of(o->workload), b->on);
    kl_artefact        artefact;
    compile.cache_dir = cache.ptr;
    compile.carried = true;
    if (!w) w = kl_task_workload(t, (kl_str){0}, b->on);
    if (w && kl_compile(&artefact, a, &device, k, t, w, &compile, &e)) kl_debug("not compiled here: %s", e.message);
    static const char *const OWN[] = {"oracle.cu", "naive.cu"};
    for (size_t i = 0; w && b->on == KL_ON_GPU && i < KL_COUNT(OWN); i++) {
        const kl_kernel_opts trusted = {.trusted = true, .oracle = i == 0};
        const kl_str         path = kl_fs_join(a, t->dir.ptr, OWN[i]);
        kl_kernel           *own;
        if (kl_fs_exists(path.ptr) && !kl_kernel_load(&own, a, path.ptr, &trusted, &e) &&
            kl_compile(&artefact, a, &device, own, t, w, &compile, &e))
            kl_debug("%s was not compiled here: %s", OWN[i], e.message);
    }
    for (int i = 0; i < t->n_baselines; i++)
        if (t->baselines[i].on == b->on && kl_str_ends(t->baselines[i].file, KL_S(".c")) &&
            kl_compile_plugin(&artefact, a, &device, kl_fs_join(a, t->dir.ptr, t->baselines[i].file.ptr).ptr, &compile, &e))
            kl_debug("a baseline was not compiled here: %s", e.message);
    (void)g;
}

kl_err kl_spool_put(char id[65], const char *dir, kl_gate *g, kl_arena *a, const kl_task *t, const kl_kernel *k, const kl_gate_opts *o,
                    kl_error *e)
{
    const kl_gate_opts opts = o ? *o : (kl_gate_opts){0};
    json_t            *job = job_json(t, k, &opts);
    job_id(id, a, job);
    kl_err err = make_folders(dir, e);
    const kl_str todo = in(a, dir, "todo", id), done = in(a, dir, "done", id);
    if (!err && !kl_fs_is_dir(todo.ptr) && !kl_fs_is_dir(done.ptr)) {
        const kl_str tmp = kl_arena_printf(a, "%s/tmp/job-%.16s-%ld", dir, id, (long)getpid());
        const kl_str kernel = kl_arena_printf(a, "%s/kernel%s", tmp.ptr, k->surface->suffix);
        err = put_task(a, dir, t, e);
        if (!err) precompile(g, a, dir, t, k, &opts);
        if (!err) err = kl_fs_mkdirs(tmp.ptr, e);
        if (!err) err = kl_fs_write(kernel.ptr, k->source, e);
        if (!err) err = kl_fs_write(kl_fs_join(a, tmp.ptr, "job.json").ptr, kl_json_dump(a, job, true), e);
        if (!err) err = move_into_place(tmp.ptr, todo.ptr, e);
    }
    json_decref(job);
    return err;
}

/* ---- reading a verdict --------------------------------------------------------------------------------------------------- */

static kl_err carried_error(kl_arena *a, const char *path, kl_error *e)
{
    kl_str  text;
    json_t *o;
    kl_err  err = kl_fs_read(&text, a, path, KL_MAX_JSON_BYTES, e);
    if (!err) err = kl_json_parse(&o, text, kl_str_of(path), e);
    if (err) return err;
    const int64_t code = kl_json_int_or(o, "code", KL_EIO);
    kl_fail(e, code < 0 && code > KL_PENDING ? (kl_err)code : KL_EIO, path, "on the worker's host: %.*s",
            KL_STR_ARG(kl_json_text_or(o, "message", KL_S("unknown"))));
    kl_hint(e, "%.*s", KL_STR_ARG(kl_json_text_or(o, "hint", (kl_str){0})));
    json_decref(o);
    return e ? e->code : KL_EIO;
}

kl_err kl_spool_get(kl_verdict *out, kl_arena *a, const char *dir, const char *id, kl_error *e)
{
    if (!is_id(kl_str_of(id))) return kl_fail(e, KL_EINVAL, dir, "'%.80s' is not a job id", id);
    const kl_str done = in(a, dir, "done", id);
    const kl_str verdict = kl_fs_join(a, done.ptr, "verdict.json"), failed = kl_fs_join(a, done.ptr, "error.json");
    if (kl_fs_exists(failed.ptr)) return carried_error(a, failed.ptr, e);
    if (!kl_fs_exists(verdict.ptr)) {
        kl_fail(e, KL_PENDING, dir, "job %.16s is not done yet", id);
        return kl_hint(e, "on the other host: klineage-worker --spool %s", dir);
    }
    kl_str       text;
    const kl_err err = kl_fs_read(&text, a, verdict.ptr, KL_MAX_JSON_BYTES, e);
    return err ? err : kl_verdict_parse(out, a, text, verdict, e);
}

/* ---- working ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *dir;
    char        who[160]; /* @HOST@PID */
    char        mine[4096];
    int        *done, *failed;
} worker;

/* Touch the job's folder: a sign of life for other hosts. */
static void heartbeat(void *ctx, kl_stage stage, const char *text)
{
    const worker *w = ctx;
    (void)utimensat(AT_FDCWD, w->mine, NULL, 0);
    kl_progress("%s %s", kl_stage_name(stage), text ? text : "");
}

static void load_opts(kl_gate_opts *o, kl_arena *a, const json_t *job, worker *w)
{
    const kl_str workload = kl_json_text_or(job, "workload", (kl_str){0}), baseline = kl_json_text_or(job, "baseline", (kl_str){0});
    const kl_str assurance = kl_json_text_or(job, "require_assurance", (kl_str){0});
    *o = (kl_gate_opts){.check_only = kl_json_bool_or(job, "check_only", false), .quick = kl_json_bool_or(job, "quick", false),
                        .max_seconds = kl_json_real_or(job, "max_seconds", 0), .progress = heartbeat, .progress_ctx = w};
    if (workload.len) o->workload = kl_arena_copy(a, workload).ptr;
    if (baseline.len) o->baseline = kl_arena_copy(a, baseline).ptr;
    if (assurance.len) o->require_assurance = assurance.ptr[0];
    o->compile.cache_dir = kl_fs_join(a, w->dir, "cache").ptr;
    o->compile.carried = true;
}

static const char **params_of(kl_arena *a, const json_t *job)
{
    const json_t *list = json_object_get(job, "params");
    const char  **out = KL_ARRAY(a, const char *, json_array_size(list) + 1);
    size_t        n = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i))) out[n++] = kl_arena_copy(a, kl_str_of(json_string_value(json_array_get(list, i)))).ptr;
    return out;
}

static kl_err load_kernel(kl_kernel **k, kl_arena *a, const worker *w, const json_t *job, kl_error *e)
{
    const kl_surface *surface = kl_surface_by_name(kl_json_text_or(job, "surface", (kl_str){0}));
    if (!surface) return kl_fail(e, KL_EPARSE, w->mine, "job.json names no known surface");
    const kl_kernel_opts with = {.params = params_of(a, job)};
    const kl_err err = kl_kernel_load(k, a, kl_arena_printf(a, "%s/kernel%s", w->mine, surface->suffix).ptr, &with, e);
    if (!err) (*k)->path = kl_arena_copy(a, kl_json_text_or(job, "path", KL_S("kernel"))); /* as the sender knew it; only shown */
    return err;
}

static kl_err judge_job(kl_verdict *v, worker *w, kl_gate *g, kl_arena *a, kl_error *e)
{
    kl_str  text;
    json_t *job;
    kl_err  err = kl_fs_read(&text, a, kl_fs_join(a, w->mine, "job.json").ptr, KL_MAX_JSON_BYTES, e);
    if (!err) err = kl_json_parse(&job, text, KL_S("job.json"), e);
    if (err) return err;
    const kl_str hash = kl_json_text_or(job, "task", (kl_str){0});
    kl_task     *t;
    kl_kernel   *k;
    kl_gate_opts opts;
    if (!is_id(hash) || kl_json_int_or(job, "version", 0) != 1) err = kl_fail(e, KL_EPARSE, "job.json", "not a job of version 1");
    load_opts(&opts, a, job, w);
    if (!err) err = kl_task_load(&t, a, in(a, w->dir, "tasks", kl_arena_copy(a, hash).ptr).ptr, e);
    if (!err) {
        err = load_kernel(&k, a, w, job, e);
        if (err == KL_EPARSE || err == KL_ELIMIT) {
            kl_verdict_refused(v, a, t, kl_arena_copy(a, kl_json_text_or(job, "path", KL_S("kernel"))).ptr, e);
            err = KL_OK;
        } else if (!err) {
            err = kl_gate_run(v, g, a, t, k, &opts, e);
        }
    }
    json_decref(job);
    return err;
}

static kl_err write_answer(const worker *w, kl_arena *a, kl_err judged, const kl_verdict *v, const kl_error *why, kl_error *e)
{
    json_t     *o = judged ? json_object() : kl_verdict_json(v);
    const char *name = judged ? "error.json" : "verdict.json";
    if (judged) {
        json_object_set_new(o, "code", json_integer(judged));
        json_object_set_new(o, "message", kl_json_str(kl_str_of(why->message)));
        json_object_set_new(o, "hint", kl_json_str(kl_str_of(why->hint)));
    }
    const kl_err err = kl_fs_write(kl_fs_join(a, w->mine, name).ptr, kl_json_dump(a, o, true), e);
    json_decref(o);
    return err;
}

/* Judge the job that was taken and move it to done/.  An interrupted job goes back to todo/. */
static kl_err do_job(worker *w, kl_gate *g, const char *id, kl_error *e)
{
    kl_arena   *a = kl_arena_new();
    kl_verdict *v = KL_NEW(a, kl_verdict);
    kl_error    why = {0};
    const kl_err judged = judge_job(v, w, g, a, &why);
    kl_err       err = KL_OK;
    if (judged == KL_EINTR) {
        (void)rename(w->mine, in(a, w->dir, "todo", id).ptr);
        err = kl_fail(e, KL_EINTR, w->dir, "interrupted; the job went back to todo");
    } else {
        err = write_answer(w, a, judged, v, &why, e);
        if (!err) err = move_into_place(w->mine, in(a, w->dir, "done", id).ptr, e);
        if (!err) ++*(judged ? w->failed : w->done);
        fprintf(stderr, "%.16s %s %s\n", id, judged ? "error" : kl_outcome_name(v->outcome), judged ? why.message : v->why.len ? v->why.ptr : "");
    }
    kl_arena_free(a);
    return err;
}

static bool take(worker *w, kl_arena *a, const char *id)
{
    snprintf(w->mine, sizeof w->mine, "%s/taken/%s%s", w->dir, id, w->who);
    const bool mine = rename(in(a, w->dir, "todo", id).ptr, w->mine) == 0;
    if (mine) (void)utimensat(AT_FDCWD, w->mine, NULL, 0);
    return mine;
}

static bool is_dead(const worker *w, kl_arena *a, kl_str name, const char *host)
{
    const char *at = memchr(name.ptr, '@', name.len), *pid_at = at ? strchr(at + 1, '@') : NULL;
    struct stat st;
    if (!pid_at || stat(in(a, w->dir, "taken", name.ptr).ptr, &st)) return false;
    const bool here = (size_t)(pid_at - at - 1) == strlen(host) && memcmp(at + 1, host, strlen(host)) == 0;
    if (here && kill((pid_t)atol(pid_at + 1), 0) && errno == ESRCH) return true;
    return time(NULL) - st.st_mtime > SILENT_SECONDS;
}

static void take_back(const worker *w, kl_arena *a, const char *host)
{
    kl_str *names;
    size_t  n;
    if (kl_fs_list(&names, &n, a, kl_fs_join(a, w->dir, "taken").ptr, NULL)) return;
    for (size_t i = 0; i < n; i++) {
        const kl_str id = {names[i].ptr, names[i].len < ID_CHARS ? names[i].len : ID_CHARS};
        if (!is_id(id) || !is_dead(w, a, names[i], host)) continue;
        const kl_str id_text = kl_arena_copy(a, id);
        if (rename(in(a, w->dir, "taken", names[i].ptr).ptr, in(a, w->dir, "todo", id_text.ptr).ptr) == 0)
            kl_warn("took back job %.16s from a worker that is gone", id.ptr);
    }
}

/* One pass over todo/; `*any` when a job was done. */
static kl_err work_once(worker *w, kl_gate *g, const char *host, bool *any, kl_error *e)
{
    kl_arena *a = kl_arena_new();
    kl_str   *names;
    size_t    n;
    *any = false;
    take_back(w, a, host);
    kl_err err = kl_fs_list(&names, &n, a, kl_fs_join(a, w->dir, "todo").ptr, e);
    for (size_t i = 0; !err && i < n; i++) {
        if (!is_id(names[i]) || !take(w, a, names[i].ptr)) continue;
        *any = true;
        err = do_job(w, g, names[i].ptr, e);
        if (!err && kl_interrupted()) err = kl_fail(e, KL_EINTR, w->dir, "interrupted");
    }
    kl_arena_free(a);
    return err;
}

kl_err kl_spool_work(const char *dir, int *done, int *failed, kl_error *e)
{
    char     host[64] = "host";
    worker   w = {.dir = dir, .done = done, .failed = failed};
    kl_gate *g;
    bool     any = true;
    *done = *failed = 0;
    if (!kl_fs_is_dir(dir)) {
        kl_fail(e, KL_ENOENT, dir, "no such spool folder");
        return kl_hint(e, "fill one first: klineage gate TASK KERNEL --spool %s", dir);
    }
    (void)gethostname(host, sizeof host - 1);
    for (char *p = host; *p; p++)
        if (*p == '@' || *p == '/') *p = '-';
    snprintf(w.who, sizeof w.who, "@%s@%ld", host, (long)getpid());
    kl_err err = make_folders(dir, e);
    if (!err) err = kl_gate_open(&g, e);
    if (err) return err;
    while (!err && any) err = work_once(&w, g, host, &any, e);
    kl_gate_close(g);
    return err;
}
