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
 * under tmp/ and renamed into place.  Everything read from a spool is data: names and hashes are checked, JSON is parsed, links are not
 * followed and pipes not waited for.  One trust is left: a task brings its oracle and baselines, which run unconfined, so a spool is as
 * trusted as the tasks of those who may write to it.
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

enum { ID_CHARS = 64, SILENT_SECONDS = 900, MAX_JOB_BYTES = 1 << 20, MAX_JOB_SECONDS = 3600 };

static bool is_id(kl_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))) return false;
    return s.len == ID_CHARS;
}

static kl_str in(kl_arena *a, const char *dir, const char *folder, const char *name) {
    return kl_arena_printf(a, "%s/%s/%s", dir, folder, name);
}

static bool is_folder(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A plain file, whatever somebody may have put there instead. */
static kl_err read_plain(kl_str *out, kl_arena *a, const char *path, size_t max_bytes, kl_error *e) {
    struct stat st;
    char self[64];
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ELOOP)
        return kl_fail(e, errno == ENOENT ? KL_ENOENT : KL_EIO, path, "cannot open: %s", strerror(errno));
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        if (fd >= 0) close(fd);
        return kl_fail(e, KL_EINVAL, path, "not a plain file");
    }
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    const kl_err err = kl_fs_read(out, a, self, max_bytes, e);
    close(fd);
    return err;
}

static kl_err make_folders(const char *dir, kl_error *e) {
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

static kl_err copy_folder(kl_arena *a, const char *from, const char *to, int depth, kl_error *e) {
    kl_str *names;
    size_t n;
    kl_err err = kl_fs_mkdirs(to, e);
    if (!err) err = kl_fs_list(&names, &n, a, from, e);
    for (size_t i = 0; !err && i < n; i++) {
        const kl_str source = kl_fs_join(a, from, names[i].ptr), target = kl_fs_join(a, to, names[i].ptr);
        kl_str data;
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
static kl_err move_into_place(const char *from, const char *to, kl_error *e) {
    if (rename(from, to) == 0) return KL_OK;
    const int why = errno;
    kl_fs_remove_tree(from);
    if (why == EEXIST || why == ENOTEMPTY) return KL_OK;
    return kl_fail(e, KL_EIO, to, "cannot move a finished folder into the spool: %s", strerror(why));
}

static kl_err put_task(kl_arena *a, const char *dir, const kl_task *t, kl_error *e) {
    const kl_str to = in(a, dir, "tasks", t->hash);
    if (kl_fs_is_dir(to.ptr)) return KL_OK;
    if (!kl_fs_exists(kl_fs_join(a, t->dir.ptr, "definition.json").ptr))
        return kl_fail(e, KL_EINVAL, t->dir.ptr,
                       "only a task folder can be carried, not a definition out of a data set");
    const kl_str tmp = kl_arena_printf(a, "%s/tmp/task-%.16s-%ld", dir, t->hash, (long)getpid());
    const kl_err err = copy_folder(a, t->dir.ptr, tmp.ptr, 0, e);
    if (err) kl_fs_remove_tree(tmp.ptr);
    return err ? err : move_into_place(tmp.ptr, to.ptr, e);
}

/* ---- job.json -------------------------------------------------------------------------------------------------------- */

static void put_opt(json_t *o, const char *key, const char *value) {
    if (value) json_object_set_new(o, key, kl_json_str(kl_str_of(value)));
}

static void put_number(json_t *o, const char *key, double value) {
    if (value > 0) json_object_set_new(o, key, kl_json_real(value));
}

static json_t *job_json(const kl_task *t, const kl_kernel *k, const kl_gate_opts *o) {
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
    put_number(job, "min_pairs", o->min_pairs);
    put_number(job, "min_seconds", o->min_seconds);
    put_number(job, "max_seconds", o->max_seconds);
    put_number(job, "half_width", o->half_width);
    put_number(job, "abandon_below", o->abandon_below);
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    if (o->seed) put_opt(job, "seed", seed);
    return job;
}

static void job_id(char id[65], kl_arena *a, const json_t *job) {
    json_t *named = json_deep_copy(job);
    json_object_del(named, "path"); /* where the file lay does not make another job */
    const kl_hash h = kl_hash_of(kl_json_dump(a, named, false));
    json_decref(named);
    memcpy(id, h.hex, 65);
}

/* Compile everything of the job that this host can compile; what it cannot, the worker compiles itself. */
static void precompile(kl_gate *g, kl_arena *a, const char *dir, const kl_task *t, const kl_kernel *k,
                       const kl_gate_opts *o) {
    const kl_backend *b = kl_backend_of_surface(k->surface->id);
    kl_device device;
    kl_error e = {0};
    if (!b || kl_device_target(&device, a, b->id, o->arch, &e)) return;
    const kl_str cache = kl_fs_join(a, dir, "cache");
    kl_compile_opts compile = o->compile;
    const kl_workload *w = kl_task_workload(t, kl_str_of(o->workload), b->on);
    kl_artefact artefact;
    compile.cache_dir = cache.ptr;
    compile.carried = true;
    if (!w) w = kl_task_workload(t, (kl_str){0}, b->on);
    if (w && kl_compile(&artefact, a, &device, k, t, w, &compile, &e)) kl_debug("not compiled here: %s", e.message);
    static const char *const OWN[] = {"oracle.cu", "naive.cu"};
    for (size_t i = 0; w && b->on == KL_ON_GPU && i < KL_COUNT(OWN); i++) {
        const kl_kernel_opts trusted = {.trusted = true, .oracle = i == 0};
        const kl_str path = kl_fs_join(a, t->dir.ptr, OWN[i]);
        kl_kernel *own;
        if (kl_fs_exists(path.ptr) && !kl_kernel_load(&own, a, path.ptr, &trusted, &e) &&
            kl_compile(&artefact, a, &device, own, t, w, &compile, &e))
            kl_debug("%s was not compiled here: %s", OWN[i], e.message);
    }
    for (int i = 0; i < t->n_baselines; i++)
        if (t->baselines[i].on == b->on && kl_str_ends(t->baselines[i].file, KL_S(".c")) &&
            kl_compile_plugin(&artefact, a, &device, kl_fs_join(a, t->dir.ptr, t->baselines[i].file.ptr).ptr, &compile,
                              &e))
            kl_debug("a baseline was not compiled here: %s", e.message);
    (void)g;
}

static bool is_taken(kl_arena *a, const char *dir, const char *id) {
    kl_str *names;
    size_t n;
    if (kl_fs_list(&names, &n, a, kl_fs_join(a, dir, "taken").ptr, NULL)) return false;
    for (size_t i = 0; i < n; i++)
        if (kl_str_starts(names[i], kl_str_of(id))) return true;
    return false;
}

kl_err kl_spool_put(char id[65], const char *dir, kl_gate *g, kl_arena *a, const kl_task *t, const kl_kernel *k,
                    const kl_gate_opts *o, kl_error *e) {
    const kl_gate_opts opts = o ? *o : (kl_gate_opts){0};
    if (opts.against)
        return kl_fail(e, KL_EINVAL, dir, "a comparison with another kernel cannot be carried by a spool");
    json_t *job = job_json(t, k, &opts);
    job_id(id, a, job);
    kl_err err = make_folders(dir, e);
    const kl_str todo = in(a, dir, "todo", id), done = in(a, dir, "done", id);
    if (!err && !kl_fs_is_dir(todo.ptr) && !kl_fs_is_dir(done.ptr) && !is_taken(a, dir, id)) {
        const kl_str tmp = kl_arena_printf(a, "%s/tmp/job-%.16s-%ld", dir, id, (long)getpid());
        const kl_str kernel = kl_arena_printf(a, "%s/kernel%s", tmp.ptr, k->surface->suffix);
        err = put_task(a, dir, t, e);
        if (!err) precompile(g, a, dir, t, k, &opts);
        if (!err) err = kl_fs_mkdirs(tmp.ptr, e);
        if (!err) err = kl_fs_write(kernel.ptr, k->source, e);
        if (!err) err = kl_fs_write(kl_fs_join(a, tmp.ptr, "job.json").ptr, kl_json_dump(a, job, true), e);
        if (!err) err = move_into_place(tmp.ptr, todo.ptr, e);
        if (err) kl_fs_remove_tree(tmp.ptr);
    }
    json_decref(job);
    return err;
}

/* ---- reading a verdict --------------------------------------------------------------------------------------------------- */

static kl_err carried_error(kl_arena *a, const char *path, kl_error *e) {
    kl_str text;
    json_t *o;
    kl_err err = read_plain(&text, a, path, MAX_JOB_BYTES, e);
    if (!err) err = kl_json_parse(&o, text, kl_str_of(path), e);
    if (err) return err;
    const int64_t code = kl_json_int_or(o, "code", KL_EIO);
    kl_fail(e, code < 0 && code > KL_PENDING ? (kl_err)code : KL_EIO, path, "on the worker's host: %.*s",
            KL_STR_ARG(kl_json_text_or(o, "message", KL_S("unknown"))));
    const kl_str hint = kl_json_text_or(o, "hint", (kl_str){0});
    if (hint.len)
        kl_hint(e, "%.*s", KL_STR_ARG(hint));
    else
        kl_hint(e, "once that is mended, remove the folder of this file and put the job again");
    json_decref(o);
    return e ? e->code : KL_EIO;
}

kl_err kl_spool_get(kl_verdict *out, kl_arena *a, const char *dir, const char *id, kl_error *e) {
    if (!is_id(kl_str_of(id))) return kl_fail(e, KL_EINVAL, dir, "'%.80s' is not a job id", id);
    const kl_str done = in(a, dir, "done", id);
    const kl_str verdict = kl_fs_join(a, done.ptr, "verdict.json"), failed = kl_fs_join(a, done.ptr, "error.json");
    if (is_folder(done.ptr) && kl_fs_exists(failed.ptr)) return carried_error(a, failed.ptr, e);
    if (!is_folder(done.ptr) || !kl_fs_exists(verdict.ptr)) {
        kl_fail(e, KL_PENDING, dir, "job %.16s is not done yet", id);
        return kl_hint(e, "on the other host: klineage-worker --spool %s", dir);
    }
    kl_str text;
    const kl_err err = read_plain(&text, a, verdict.ptr, KL_MAX_JSON_BYTES, e);
    return err ? err : kl_verdict_parse(out, a, text, verdict, e);
}

/* ---- working ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *dir;
    char who[160]; /* @HOST@PID */
    char mine[4096];
    int *done, *failed;
} worker;

/* Touch the job's folder: a sign of life for other hosts. */
static void heartbeat(void *ctx, kl_stage stage, const char *text) {
    const worker *w = ctx;
    (void)utimensat(AT_FDCWD, w->mine, NULL, 0);
    kl_progress("%s %s", kl_stage_name(stage), text ? text : "");
}

/* What job.json says, checked: anybody may have written it. */
typedef struct {
    char id[65];
    kl_str task, kernel; /* hashes */
    kl_str path;         /* as the sender knew it; only shown */
    const kl_surface *surface;
    const char **params;
    kl_gate_opts opts;
} carried_job;

static double number_of(const json_t *job, const char *key, double most) {
    const double v = kl_json_real_or(job, key, 0);
    return v > 0 ? v < most ? v : most : 0; /* NaN and nonsense are "not said" */
}

static uint64_t seed_of(const json_t *job) {
    const kl_str s = kl_json_text_or(job, "seed", (kl_str){0});
    uint64_t v = 0;
    for (size_t i = 0; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++) v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    return v;
}

static const char *text_or_null(kl_arena *a, const json_t *job, const char *key) {
    const kl_str s = kl_json_text_or(job, key, (kl_str){0});
    return s.len ? kl_arena_copy(a, s).ptr : NULL;
}

static const char **params_of(kl_arena *a, const json_t *job) {
    const json_t *list = json_object_get(job, "params");
    const size_t n = json_array_size(list) < KL_MAX_PARAMS ? json_array_size(list) : KL_MAX_PARAMS;
    const char **out = KL_ARRAY(a, const char *, n + 1);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (json_is_string(json_array_get(list, i)))
            out[kept++] = kl_arena_copy(a, kl_str_of(json_string_value(json_array_get(list, i)))).ptr;
    return out;
}

static kl_err read_job(carried_job *out, kl_arena *a, const json_t *job, kl_error *e) {
    const kl_str assurance = kl_json_text_or(job, "require_assurance", (kl_str){0});
    *out = (carried_job){.task = kl_arena_copy(a, kl_json_text_or(job, "task", (kl_str){0})),
                         .kernel = kl_arena_copy(a, kl_json_text_or(job, "kernel", (kl_str){0})),
                         .path = kl_arena_copy(a, kl_json_text_or(job, "path", KL_S("kernel"))),
                         .surface = kl_surface_by_name(kl_json_text_or(job, "surface", (kl_str){0})),
                         .params = params_of(a, job)};
    out->opts = (kl_gate_opts){.workload = text_or_null(a, job, "workload"),
                               .baseline = text_or_null(a, job, "baseline"),
                               .check_only = kl_json_bool_or(job, "check_only", false),
                               .quick = kl_json_bool_or(job, "quick", false),
                               .min_pairs = number_of(job, "min_pairs", 1e6),
                               .min_seconds = number_of(job, "min_seconds", MAX_JOB_SECONDS),
                               .max_seconds = number_of(job, "max_seconds", MAX_JOB_SECONDS),
                               .half_width = number_of(job, "half_width", 1),
                               .abandon_below = number_of(job, "abandon_below", 1e6),
                               .seed = seed_of(job)};
    if (assurance.len) out->opts.require_assurance = assurance.ptr[0];
    if (!json_is_object(job) || kl_json_int_or(job, "version", 0) != 1 || !is_id(out->task) || !is_id(out->kernel))
        return kl_fail(e, KL_EPARSE, "job.json", "not a job of version 1");
    if (!out->surface) return kl_fail(e, KL_EPARSE, "job.json", "no known surface");
    if (assurance.len && !kl_str_eq(assurance, KL_S("A")) && !kl_str_eq(assurance, KL_S("B")))
        return kl_fail(e, KL_EPARSE, "job.json", "the assurance that can be required is A or B");
    job_id(out->id, a, job);
    return KL_OK;
}

static kl_err parse_job(carried_job *out, kl_arena *a, kl_str text, kl_error *e) {
    json_t *job;
    kl_err err = kl_json_parse(&job, text, KL_S("job.json"), e);
    if (err) return err;
    err = read_job(out, a, job, e);
    json_decref(job);
    return err;
}

/* A copy that was cut short, or changed on its way, is another task under this one's name. */
static kl_err load_task(kl_task **t, kl_arena *a, const worker *w, const carried_job *j, kl_error *e) {
    const kl_str path = in(a, w->dir, "tasks", j->task.ptr);
    if (!is_folder(path.ptr)) return kl_fail(e, KL_ENOENT, path.ptr, "the job's task is not in the spool");
    const kl_err err = kl_task_load(t, a, path.ptr, e);
    if (err || kl_str_eq(kl_str_of((*t)->hash), j->task)) return err;
    return kl_fail(e, KL_EINVAL, path.ptr, "the task's content is not what its name says");
}

/* KL_OK with a refusal in `v` and `*k` NULL when the kernel does not parse. */
static kl_err load_kernel(kl_kernel **k, kl_verdict *v, kl_arena *a, const worker *w, const carried_job *j,
                          const kl_task *t, kl_error *e) {
    const kl_kernel_opts with = {.params = j->params};
    const kl_str path = kl_arena_printf(a, "%s/kernel%s", w->mine, j->surface->suffix);
    kl_str source;
    kl_err err = read_plain(&source, a, path.ptr, KL_MAX_SOURCE_BYTES, e);
    if (err) return err;
    err = kl_kernel_parse(k, a, source, j->path, j->surface, &with, e);
    if (err == KL_EPARSE || err == KL_ELIMIT) {
        kl_verdict_refused(v, a, t, j->path.ptr, e);
        *k = NULL;
        return KL_OK;
    }
    if (err || kl_str_eq(kl_str_of((*k)->hash), j->kernel)) return err;
    return kl_fail(e, KL_EINVAL, path.ptr, "the kernel's content is not what job.json says");
}

static kl_err judge_job(kl_verdict *v, worker *w, kl_gate *g, kl_arena *a, const char *id, kl_error *e) {
    kl_str text;
    carried_job j;
    kl_task *t;
    kl_kernel *k = NULL;
    kl_err err = read_plain(&text, a, kl_fs_join(a, w->mine, "job.json").ptr, MAX_JOB_BYTES, e);
    if (!err) err = parse_job(&j, a, text, e);
    if (!err && strcmp(j.id, id) != 0)
        err = kl_fail(e, KL_EINVAL, "job.json", "its content is not what the job's name says");
    if (!err) err = load_task(&t, a, w, &j, e);
    if (!err) err = load_kernel(&k, v, a, w, &j, t, e);
    if (err || !k) return err;
    j.opts.progress = heartbeat;
    j.opts.progress_ctx = w;
    j.opts.compile.cache_dir = kl_fs_join(a, w->dir, "cache").ptr;
    j.opts.compile.carried = true;
    return kl_gate_run(v, g, a, t, k, &j.opts, e);
}

static kl_err write_answer(const worker *w, kl_arena *a, kl_err judged, const kl_verdict *v, const kl_error *why,
                           kl_error *e) {
    json_t *o = judged ? json_object() : kl_verdict_json(v);
    const char *name = judged ? "error.json" : "verdict.json";
    if (judged) {
        json_object_set_new(o, "code", json_integer(judged));
        json_object_set_new(o, "message", kl_json_str(kl_str_of(why->message)));
        json_object_set_new(o, "hint", kl_json_str(kl_str_of(why->hint)));
    }
    kl_fs_remove_tree(kl_fs_join(a, w->mine, "verdict.json").ptr); /* of a worker that died between answer and rename */
    kl_fs_remove_tree(kl_fs_join(a, w->mine, "error.json").ptr);
    const kl_err err = kl_fs_write(kl_fs_join(a, w->mine, name).ptr, kl_json_dump(a, o, true), e);
    json_decref(o);
    return err;
}

/* Judge the job that was taken and move it to done/.  An interrupted job goes back to todo/. */
static kl_err do_job(worker *w, kl_gate *g, const char *id, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_verdict *v = KL_NEW(a, kl_verdict);
    kl_error why = {0};
    const kl_err judged = judge_job(v, w, g, a, id, &why);
    kl_err err = KL_OK;
    if (judged == KL_EINTR) {
        (void)rename(w->mine, in(a, w->dir, "todo", id).ptr);
        err = kl_fail(e, KL_EINTR, w->dir, "interrupted; the job went back to todo");
    } else if (!is_folder(w->mine)) {
        kl_warn("job %.16s was taken over while it was judged here", id); /* whoever has it now will answer */
    } else {
        err = write_answer(w, a, judged, v, &why, e);
        if (!err) err = move_into_place(w->mine, in(a, w->dir, "done", id).ptr, e);
        if (!err) ++*(judged ? w->failed : w->done);
        fprintf(stderr, "%.16s %s %s\n", id, judged ? "error" : kl_outcome_name(v->outcome),
                judged       ? why.message
                : v->why.len ? v->why.ptr
                             : "");
    }
    kl_arena_free(a);
    return err;
}

/* The sign of life comes first: a rename keeps the folder's old time, and a job that waited long must not look abandoned at once. */
static bool take(worker *w, kl_arena *a, const char *id) {
    const kl_str todo = in(a, w->dir, "todo", id);
    snprintf(w->mine, sizeof w->mine, "%s/taken/%s%s", w->dir, id, w->who);
    (void)utimensat(AT_FDCWD, todo.ptr, NULL, AT_SYMLINK_NOFOLLOW);
    if (rename(todo.ptr, w->mine)) return false;
    if (is_folder(w->mine) && !is_folder(in(a, w->dir, "done", id).ptr)) return true;
    kl_fs_remove_tree(w->mine); /* not a job, or one that was put again after its answer */
    return false;
}

static bool is_dead(const worker *w, kl_arena *a, kl_str name, const char *host) {
    const char *at = memchr(name.ptr, '@', name.len), *pid_at = at ? strchr(at + 1, '@') : NULL;
    struct stat st;
    if (!pid_at || stat(in(a, w->dir, "taken", name.ptr).ptr, &st)) return false;
    const bool here = (size_t)(pid_at - at - 1) == strlen(host) && memcmp(at + 1, host, strlen(host)) == 0;
    if (here && kill((pid_t)atol(pid_at + 1), 0) && errno == ESRCH) return true;
    return time(NULL) - st.st_mtime > SILENT_SECONDS;
}

static void take_back(const worker *w, kl_arena *a, const char *host) {
    kl_str *names;
    size_t n;
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
static kl_err work_once(worker *w, kl_gate *g, const char *host, bool *any, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_str *names;
    size_t n;
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

kl_err kl_spool_work(const char *dir, int *done, int *failed, kl_error *e) {
    char host[64] = "host";
    worker w = {.dir = dir, .done = done, .failed = failed};
    kl_gate *g;
    bool any = true;
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
