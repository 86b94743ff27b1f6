/* spool.c - executor spool: a folder that carries jobs to a host without a network, or serves
 * several workers on one disk.
 *
 *   DIR/tasks/HASH/                 the task folder, copied once
 *   DIR/cache/                      compiled artefacts: the sender compiles for the target, the
 * worker finds them by content DIR/todo/ID/                    job.json + the kernel's source, and
 * that of the kernel to compare with, if any DIR/taken/ID@HOST@PID/          todo -> taken is one
 * rename: whoever's rename succeeds has the job DIR/done/ID/                    + verdict.json, or
 * error.json when the host could not judge it
 *
 * Edges of a job, each one rename:      todo -> taken   take()          taken -> done   finish()
 *                                       taken -> todo   spool_take_back()     when its worker is
 * dead or silent for KLI_SPOOL_SILENT_SECONDS A job done twice (a worker that was only slow) loses
 * the second rename: done/ID exists.  Nothing is ever half-written: folders are filled under tmp/
 * and renamed into place.  Everything read from a spool is data: names and hashes are checked, JSON
 * is parsed, links are not followed and pipes not waited for.  One trust is left: a task brings its
 * oracle and baselines, which run unconfined, so a spool is as trusted as the tasks of those who
 * may write to it. SPDX-License-Identifier: Apache-2.0 */
#include "executors.h"
#include "spool_impl.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/record.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Versions of job.json. */
enum { SPOOL_PLAIN = 1, WITH_OPPONENT = 2 };
enum {
    ID_CHARS = 64,
    PEEKED = 64,          /* jobs that wait, at most */
    SIGNALS_NS = 50000000 /* between signals to processes that are ended together */
};

bool kli_spool_is_id(kl_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
            return false;
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
static kl_err read_plain(kl_str *out, kl_arena *a, const char *path, size_t max_bytes,
                         kl_error *e) {
    struct stat st;
    char self[64];
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ELOOP)
        return kl_fail(e, errno == ENOENT ? KL_ENOENT : KL_EIO, path, "cannot open: %s",
                       strerror(errno));
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        if (fd >= 0) close(fd);
        return kl_fail(e, KL_EINVAL, path, "not a plain file");
    }
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    const kl_err err = kli_fs_read(out, a, self, max_bytes, e);
    close(fd);
    return err;
}

static kl_err make_folders(const char *dir, kl_error *e) {
    static const char *const FOLDERS[] = {"tasks", "cache", "todo", "taken", "done", "tmp"};
    for (size_t i = 0; i < KL_COUNT(FOLDERS); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", dir, FOLDERS[i]);
        const kl_err err = kli_fs_mkdirs(path, e);
        if (err) return err;
    }
    return KL_OK;
}

/* ---- copying a task ---------------------------------------------------------------------- */

static kl_err copy_folder(kl_arena *a, const char *from, const char *to, int depth, kl_error *e) {
    kl_str *names;
    size_t n;
    kl_err err = kli_fs_mkdirs(to, e);
    if (!err) err = kli_fs_list(&names, &n, a, from, e);
    for (size_t i = 0; !err && i < n; i++) {
        const kl_str source = kli_fs_join(a, from, names[i].ptr),
                     target = kli_fs_join(a, to, names[i].ptr);
        kl_str data;
        if (kli_fs_is_dir(source.ptr)) {
            if (depth < 2) err = copy_folder(a, source.ptr, target.ptr, depth + 1, e);
        } else {
            err = kli_fs_read(&data, a, source.ptr, KL_MAX_JSON_BYTES, e);
            if (!err) err = kli_fs_write(target.ptr, data, e);
        }
    }
    return err;
}

/* Fill under tmp/, then one rename; somebody else having put the same content first is success. */
static kl_err move_into_place(const char *from, const char *to, kl_error *e) {
    if (rename(from, to) == 0) return KL_OK;
    const int why = errno;
    kli_fs_remove_tree(from);
    if (why == EEXIST || why == ENOTEMPTY) return KL_OK;
    return kl_fail(e, KL_EIO, to, "cannot move a finished folder into the spool: %s",
                   strerror(why));
}

static kl_err put_task(kl_arena *a, const char *dir, const kl_task *t, kl_error *e) {
    const kl_str to = in(a, dir, "tasks", t->hash);
    if (kli_fs_is_dir(to.ptr)) return KL_OK;
    if (!kli_fs_exists(kli_fs_join(a, t->dir.ptr, "definition.json").ptr))
        return kl_fail(e, KL_EINVAL, t->dir.ptr,
                       "only a task folder can be carried, not a definition out of a data set");
    const kl_str tmp = kl_arena_printf(a, "%s/tmp/task-%.16s-%ld", dir, t->hash, (long)getpid());
    const kl_err err = copy_folder(a, t->dir.ptr, tmp.ptr, 0, e);
    if (err) kli_fs_remove_tree(tmp.ptr);
    return err ? err : move_into_place(tmp.ptr, to.ptr, e);
}

/* ---- job.json ---------------------------------------------------------------------------- */

#define KL_RECORD kl_opponent
static const kl_record OPPONENT_RECORD = {KL_RECORD_HEAD("opponent", "A kernel to compare with."),
                                          .defaults = &(const kl_opponent){.path = {"kernel", 6}},
                                          KL_ROWS{
#define KL_DEF_OPPONENT KL_ROW
#include <klineage/executor.def>
                                              KL_ROWS_END}};
#undef KL_RECORD
#define KL_RECORD kl_job
const kl_record KL_JOB = {
    KL_RECORD_HEAD("job", "A question to the gate of another host: job.json of a spool."),
    .defaults = &(const kl_job){.path = {"kernel", 6}},
    KL_ROWS{
#define KL_DEF_JOB KL_ROW
#include <klineage/executor.def>
        KL_ROWS_END}};
#undef KL_RECORD

static kl_opponent opponent_of(kl_arena *a, const kl_kernel *k) {
    kl_opponent r = {
        .kernel = kl_str_of(k->hash), .surface = kl_str_of(k->surface->name), .path = k->path};
    for (int i = 0; i < k->n_params; i++)
        *KL_PUSH(a, r.params, r.n_params) = kl_arena_printf(
            a, "%.*s=%lld", KL_STR_ARG(k->params[i].name), (long long)k->params[i].value);
    return r;
}

/* A worker that knows nothing of opponents must not time against a baseline instead: the version
 * makes it refuse. */
static json_t *job_json(kl_arena *a, const kl_task *t, const kl_kernel *k, const kl_gate_opts *o) {
    const char assurance[2] = {o->require_assurance, 0};
    const kl_opponent own = opponent_of(a, k);
    kl_job job = {.schema = KL_S("klineage/job"),
                  .version = o->against ? WITH_OPPONENT : SPOOL_PLAIN,
                  .task = kl_str_of(t->hash),
                  .kernel = own.kernel,
                  .surface = own.surface,
                  .path = own.path,
                  .params = own.params,
                  .n_params = own.n_params,
                  .workload = kl_str_of(o->workload),
                  .baseline = kl_str_of(o->baseline),
                  .arch = kl_str_of(o->arch),
                  .require_assurance = kl_str_of(assurance),
                  .check_only = o->check_only,
                  .quick = o->quick,
                  .min_pairs = o->min_pairs,
                  .min_seconds = o->min_seconds,
                  .max_seconds = o->max_seconds,
                  .half_width = o->half_width,
                  .abandon_below = o->abandon_below,
                  .seed = o->seed};
    if (o->against) job.against = opponent_of(a, o->against);
    return kli_record_json(&KL_JOB, &job);
}

static void job_id(char id[65], kl_arena *a, const json_t *job) {
    KL_ASSERT(json_is_object(job));
    json_t *named = json_deep_copy(job);
    json_object_del(named, "path"); /* where the file lay does not make another job */
    json_object_del(json_object_get(named, "against"), "path");
    const kl_hash h = kli_hash_of(kli_json_dump(a, named, false));
    json_decref(named);
    memcpy(id, h.hex, 65);
}

typedef struct {
    kl_arena *arena;
    const kl_task *task;
    const kl_workload *workload;
    kl_device device;
    kl_compile_opts compile;
} ahead;

/* False when the compiler was there and said no. */
static bool compile_ahead(kl_artefact *out, const ahead *p, const kl_kernel *k) {
    kl_error e = {0};
    if (!kli_compile(out, p->arena, &p->device, k, p->task, p->workload, &p->compile, &e))
        return out->ok;
    kli_debug("%.*s was not compiled here: %s", KL_STR_ARG(k->path), e.message);
    return true;
}

/* Where the compiler looks at shapes: those that a verdict checks beside the real one. */
static void compile_shapes(const ahead *p, const kl_kernel *k, kl_host_kind on) {
    const kl_task *t = p->task;
    if (!kli_compile_depends_on_shape(k)) return;
    for (int i = 0; i < t->n_workloads; i++) {
        const kl_workload *w = &t->workloads[i];
        ahead shape = *p;
        kl_artefact artefact;
        shape.workload = w;
        if (kl_workload_fits(w, on) && (w->hidden || kl_str_eq(w->label, KL_S("tiny"))))
            (void)compile_ahead(&artefact, &shape, k);
    }
}

static bool has_plan(const ahead *p, const kl_kernel *k, kl_str completion,
                     const kl_device_limits *limits, kl_error *e) {
    kl_plan *plan = KL_NEW(p->arena, kl_plan);
    return !kli_kernel_plan(plan, k, p->task, p->workload, limits, e) &&
           !kli_plan_complete(plan, completion, k, p->task, p->workload, limits, e);
}

/* Does a launch want more than its architecture has?  `why` says what.  What the device alone
 * knows, such as `sms`, is left to it. */
static bool exceeds_architecture(kl_error *why, const ahead *p, const kl_kernel *k,
                                 kl_str completion) {
    const kl_device_limits none = {0};
    return !has_plan(p, k, completion, &p->device.limits, why) &&
           has_plan(p, k, completion, &none, kl_ignored());
}

/* The verdict on device code that does not compile, or that no device of its architecture can
 * launch, needs no visit to the other host: what would run there is compiled here. */
static void refused_here(kl_verdict *v, const ahead *p, const kl_kernel *k,
                         const kl_artefact *artefact, kl_outcome outcome, kl_str why) {
    const kl_device *d = &p->device;
    KL_ASSERT(outcome == KL_OUTCOME_NO_COMPILE || outcome == KL_OUTCOME_REFUSED);
    *v = (kl_verdict){.outcome = outcome,
                      .stage = KL_STAGE_COMPILE,
                      .assurance = 'A',
                      .why = why,
                      .detail = artefact->log,
                      .task = p->task->name,
                      .task_hash = kl_str_of(p->task->hash),
                      .kernel_path = k->path,
                      .kernel_hash = kl_str_of(k->hash),
                      .workload = p->workload->label,
                      .surface = kl_str_of(k->surface->name),
                      .platform = d->platform,
                      .device = d->name,
                      .toolchain = artefact->toolchain,
                      .created = kli_utc_now(p->arena),
                      .n_degradations = 1};
    v->degradations[0] =
        outcome == KL_OUTCOME_NO_COMPILE
            ? KL_S("compiled for another host, which was not asked: the compiler refused it here")
            : KL_S("compiled for another host, which was not asked: its architecture cannot launch "
                   "it");
}

/* The task's own device code. */
static void compile_own(const ahead *p, kl_host_kind on) {
    const kl_surface *s = kl_surface_of_host(on);
    const char *const files[] = {s->oracle, s->naive};
    for (size_t i = 0; i < KL_COUNT(files); i++) {
        if (!files[i]) continue;
        const kl_kernel_opts trusted = {.trusted = true, .oracle = i == 0};
        const kl_str path = kli_fs_join(p->arena, p->task->dir.ptr, files[i]);
        kl_artefact artefact;
        kl_kernel *own;
        if (kli_fs_exists(path.ptr) &&
            !kl_kernel_load(&own, p->arena, path.ptr, &trusted, kl_ignored()))
            (void)compile_ahead(&artefact, p, own);
    }
}

static void compile_baselines(const ahead *p, kl_host_kind on) {
    const kl_task *t = p->task;
    kl_artefact artefact;
    kl_error e = {0};
    for (int i = 0; i < t->n_baselines; i++)
        if (t->baselines[i].on == on && kl_str_ends(t->baselines[i].file, KL_S(".c")) &&
            kli_compile_plugin(&artefact, p->arena, &p->device,
                               kli_fs_join(p->arena, t->dir.ptr, t->baselines[i].file.ptr).ptr,
                               &p->compile, &e))
            kli_debug("a baseline was not compiled here: %s", e.message);
}

/* Compile everything of the job that this host can compile; what it cannot, the worker compiles
 * itself.  True when that settles it: `v` says no. */
static bool precompile(kl_verdict *v, kl_arena *a, const char *dir, const kl_task *t,
                       const kl_kernel *k, const kl_gate_opts *o) {
    const kl_backend *b = kli_backend_of_surface(k->surface, 0);
    ahead p = {.arena = a, .task = t, .compile = o->compile};
    kl_artefact artefact = {0};
    kl_error why = {0};
    if (!b || kl_device_target(&p.device, a, b->id, o->arch, kl_ignored())) return false;
    p.compile.cache_dir = kli_fs_join(a, dir, "cache").ptr;
    p.compile.carried = true;
    /* No such shape: the worker's verdict says so. */
    if (kl_workload_wanted(&p.workload, a, t, o->workload, b->on, kl_ignored())) p.workload = NULL;
    /* A no counts where the other host's device was named, and where it is the compiler's word: not
     * for code for a CPU, which is compiled for this one, and not when time ran out. */
    const bool settles = b->on == KL_ON_GPU && o->arch;
    if (p.workload && !compile_ahead(&artefact, &p, k) && settles &&
        memmem(artefact.log.ptr, artefact.log.len, "error", 5))
        return refused_here(v, &p, k, &artefact, KL_OUTCOME_NO_COMPILE,
                            kl_first_error(a, artefact.log)),
               true;
    if (p.workload && settles && exceeds_architecture(&why, &p, k, artefact.completion))
        return refused_here(v, &p, k, &artefact, KL_OUTCOME_REFUSED,
                            kl_arena_copy(a, kl_str_of(why.message))),
               true;
    if (p.workload) compile_shapes(&p, k, b->on);
    if (p.workload && o->against) compile_shapes(&p, o->against, b->on);
    if (p.workload && o->against) (void)compile_ahead(&artefact, &p, o->against);
    if (p.workload && b->on == KL_ON_GPU) compile_own(&p, b->on);
    compile_baselines(&p, b->on);
    return false;
}

static bool spool_is_taken(kl_arena *a, const char *dir, const char *id) {
    kl_str *names;
    size_t n;
    if (kli_fs_list(&names, &n, a, kli_fs_join(a, dir, "taken").ptr, kl_ignored())) return false;
    for (size_t i = 0; i < n; i++)
        if (kl_str_starts(names[i], kl_str_of(id))) return true;
    return false;
}

/* Takes the document. */
static kl_err write_json(kl_arena *a, const char *folder, const char *name, json_t *o,
                         kl_error *e) {
    const kl_err err = kli_fs_write(kli_fs_join(a, folder, name).ptr, kli_json_dump(a, o, true), e);
    json_decref(o);
    return err;
}

static kl_err put_source(kl_arena *a, const char *folder, const char *name, const kl_kernel *k,
                         kl_error *e) {
    return kli_fs_write(kl_arena_printf(a, "%s/%s%s", folder, name, k->surface->suffix).ptr,
                        k->source, e);
}

static kl_err put_job(kl_arena *a, const char *folder, json_t *job, const kl_kernel *k,
                      const kl_kernel *opponent, kl_error *e) {
    kl_err err = kli_fs_mkdirs(folder, e);
    if (!err) err = put_source(a, folder, "kernel", k, e);
    if (!err && opponent) err = put_source(a, folder, "against", opponent, e);
    return err ? err : write_json(a, folder, "job.json", json_incref(job), e);
}

kl_err kl_spool_put(char id[65], const char *dir, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    const kl_task *t = j->task;
    const kl_kernel *k = j->kernel;
    const kl_gate_opts opts = j->opts;
    kl_verdict v;
    if (opts.against && opts.against->surface != k->surface)
        return kl_fail(e, KL_EINVAL, dir, "the kernel to compare with is of surface %s, not %s",
                       opts.against->surface->name, k->surface->name);
    json_t *job = job_json(a, t, k, &opts);
    job_id(id, a, job);
    kl_err err = make_folders(dir, e);
    const kl_str todo = in(a, dir, "todo", id), done = in(a, dir, "done", id);
    if (!err && !kli_fs_is_dir(todo.ptr) && !kli_fs_is_dir(done.ptr) &&
        !spool_is_taken(a, dir, id)) {
        const kl_str tmp = kl_arena_printf(a, "%s/tmp/job-%.16s-%ld", dir, id, (long)getpid());
        err = put_task(a, dir, t, e);
        const bool settled = !err && precompile(&v, a, dir, t, k, &opts);
        if (!err) err = put_job(a, tmp.ptr, job, k, opts.against, e);
        if (!err && settled) err = write_json(a, tmp.ptr, "verdict.json", kl_verdict_json(&v), e);
        if (!err) err = move_into_place(tmp.ptr, settled ? done.ptr : todo.ptr, e);
        if (err) kli_fs_remove_tree(tmp.ptr);
    }
    json_decref(job);
    return err;
}

/* ---- reading a verdict ------------------------------------------------------------------- */

static kl_err carried_error(kl_arena *a, const char *path, kl_error *e) {
    kl_str text;
    json_t *o;
    kl_err err = read_plain(&text, a, path, KLI_SPOOL_JOB_BYTES, e);
    if (!err) err = kli_json_parse(&o, text, kl_str_of(path), e);
    if (err) return err;
    const int64_t code = kli_json_int_or(o, "code", KL_EIO);
    const bool known = code < 0 && code >= KL_EBASELINE && code != KL_PENDING;
    kl_fail(e, known ? (kl_err)code : KL_EIO, path, "on the worker's host: %.*s",
            KL_STR_ARG(kli_json_text_or(o, "message", KL_S("unknown"))));
    const kl_str hint = kli_json_text_or(o, "hint", (kl_str){0});
    if (hint.len)
        kl_hint(e, "%.*s", KL_STR_ARG(hint));
    else
        kl_hint(e, "once that is mended, remove the folder of this file and put the job again");
    json_decref(o);
    return e->code;
}

kl_err kl_spool_get(kl_verdict *out, kl_arena *a, const char *dir, const char *id, kl_error *e) {
    if (!kli_spool_is_id(kl_str_of(id)))
        return kl_fail(e, KL_EINVAL, dir, "'%.80s' is not a job id", id);
    const kl_str done = in(a, dir, "done", id);
    const kl_str verdict = kli_fs_join(a, done.ptr, "verdict.json"),
                 failed = kli_fs_join(a, done.ptr, "error.json");
    if (is_folder(done.ptr) && kli_fs_exists(failed.ptr)) return carried_error(a, failed.ptr, e);
    if (!is_folder(done.ptr) || !kli_fs_exists(verdict.ptr)) {
        kl_fail(e, KL_PENDING, dir, "job %.12s has no verdict yet", id);
        return kl_hint(e, "on the host with the device: klineage-worker --spool %s; then ask again",
                       dir);
    }
    kl_str text;
    const kl_err err = read_plain(&text, a, verdict.ptr, KL_MAX_JSON_BYTES, e);
    return err ? err : kl_verdict_parse(out, a, text, verdict, e);
}

/* ---- working ----------------------------------------------------------------------------- */

typedef struct {
    const char *dir;
    kl_executor *executor; /* judges */
    char who[160];         /* @HOST@PID, and @slurm-N where Slurm started it */
    char slurm[32];        /* @slurm-N, or empty */
    char mine[4096];
    int *done, *failed;
    char known[64][ID_CHARS + 1]; /* hashes of tasks that it met */
    int n_known;
} spool_worker;

/* Touch the job's folder: a sign of life for other hosts. */
static void heartbeat(void *ctx, kl_stage stage, const char *text) {
    const spool_worker *w = ctx;
    (void)utimensat(AT_FDCWD, w->mine, NULL, 0);
    kli_base_progress("%s %s", kl_stage_name(stage), text ? text : "");
}

/* NaN and nonsense are "not said". */
static double bounded(double v, double most) { return v > 0 ? v < most ? v : most : 0; }

static const char *text_or_null(kl_str s) { return s.len ? s.ptr : NULL; }

static carried_kernel spool_kernel_of(kl_arena *a, const kl_opponent *r) {
    const char **params = KL_ARRAY(a, const char *, r->n_params + 1);
    for (int i = 0; i < r->n_params; i++) params[i] = r->params[i].ptr;
    return (carried_kernel){r->kernel, r->path, kl_surface_by_name(r->surface), params};
}

static kl_gate_opts spool_options_of(const kl_job *j) {
    return (kl_gate_opts){.workload = text_or_null(j->workload),
                          .baseline = text_or_null(j->baseline),
                          .require_assurance =
                              j->require_assurance.len ? *j->require_assurance.ptr : '\0',
                          .check_only = j->check_only,
                          .quick = j->quick,
                          .min_pairs = bounded(j->min_pairs, 1e6),
                          .min_seconds = bounded(j->min_seconds, KLI_SPOOL_JOB_SECONDS),
                          .max_seconds = bounded(j->max_seconds, KLI_SPOOL_JOB_SECONDS),
                          .half_width = bounded(j->half_width, 1),
                          .abandon_below = bounded(j->abandon_below, 1e6),
                          .seed = j->seed};
}

/* One version for each shape of a job, so that nothing that is said is left out in silence. */
static kl_err check_opponent(const carried_job *j, int version, bool opponent, kl_error *e) {
    if (version != (opponent ? WITH_OPPONENT : SPOOL_PLAIN))
        return kl_fail(e, KL_EPARSE, "job.json",
                       "not a job of version %d, nor of version %d with a kernel to compare with",
                       SPOOL_PLAIN, WITH_OPPONENT);
    if (opponent &&
        (!kli_spool_is_id(j->opponent.hash) || j->opponent.surface != j->kernel.surface))
        return kl_fail(e, KL_EPARSE, "job.json",
                       "the kernel to compare with has no hash, or is of another surface");
    return KL_OK;
}

static kl_err check_job(const carried_job *j, const kl_job *said, kl_error *e) {
    const kl_str assurance = said->require_assurance;
    if (!kli_spool_is_id(j->task) || !kli_spool_is_id(j->kernel.hash))
        return kl_fail(e, KL_EPARSE, "job.json",
                       "not a job: it names no task and kernel by their hashes");
    if (!j->kernel.surface) return kl_fail(e, KL_EPARSE, "job.json", "no known surface");
    if (assurance.len && !kl_str_eq(assurance, KL_S("A")) && !kl_str_eq(assurance, KL_S("B")))
        return kl_fail(e, KL_EPARSE, "job.json", "the assurance that can be required is A or B");
    return KL_OK;
}

static kl_err read_job(carried_job *out, kl_arena *a, const json_t *json, kl_error *e) {
    kl_job j;
    kl_err err = kli_record_read(&j, &KL_JOB, a, json, KL_S("job.json"), e);
    if (err) return err;
    const kl_opponent own = {j.kernel, j.surface, j.path, j.params, j.n_params};
    *out = (carried_job){.task = j.task,
                         .kernel = spool_kernel_of(a, &own),
                         .opponent = spool_kernel_of(a, &j.against),
                         .opts = spool_options_of(&j)};
    err = check_job(out, &j, e);
    if (!err) err = check_opponent(out, j.version, json_object_get(json, "against") != NULL, e);
    if (!err) job_id(out->id, a, json);
    return err;
}

kl_err kli_spool_parse(carried_job *out, kl_arena *a, kl_str text, kl_error *e) {
    json_t *job;
    kl_err err = kli_json_parse(&job, text, KL_S("job.json"), e);
    if (err) return err;
    err = read_job(out, a, job, e);
    json_decref(job);
    return err;
}

/* A copy that was cut short, or changed on its way, is another task under this one's name. */
static kl_err spool_load_task(kl_task **t, kl_arena *a, const spool_worker *w, const carried_job *j,
                              kl_error *e) {
    const kl_str path = in(a, w->dir, "tasks", j->task.ptr);
    if (!is_folder(path.ptr))
        return kl_fail(e, KL_ENOENT, path.ptr, "the job's task is not in the spool");
    const kl_err err = kl_task_load(t, a, path.ptr, e);
    if (err || kl_str_eq(kl_str_of((*t)->hash), j->task)) return err;
    return kl_fail(e, KL_EINVAL, path.ptr, "the task's content is not what its name says");
}

/* `*unreadable`: the file is there, and its text is no kernel. */
static kl_err spool_load_kernel(kl_kernel **k, bool *unreadable, kl_arena *a, const char *folder,
                                const carried_kernel *c, const char *name, kl_error *e) {
    /* What may be code is who put the job here to say: a model's kernel was refused there. */
    const kl_kernel_opts with = {.params = c->params, .may_be_code = strcmp(name, "against") == 0};
    const kl_str path = kl_arena_printf(a, "%s/%s%s", folder, name, c->surface->suffix);
    kl_str source;
    *unreadable = false;
    kl_err err = read_plain(&source, a, path.ptr, KL_MAX_SOURCE_BYTES, e);
    if (err) return err;
    err = kl_kernel_parse(k, a, source, c->path, c->surface, &with, e);
    *unreadable = err == KL_EPARSE || err == KL_ELIMIT;
    if (err || kl_str_eq(kl_str_of((*k)->hash), c->hash)) return err;
    return kl_fail(e, KL_EINVAL, path.ptr, "the content of %s%s is not what job.json says", name,
                   c->surface->suffix);
}

static kl_err judge_once(kl_verdict *v, kl_executor *x, kl_arena *a, const kl_gate_job *j,
                         kl_error *e) {
    char id[65];
    const kl_err err = kl_executor_submit(id, x, a, j, e);
    return err ? err : kl_executor_wait(v, x, a, id, e);
}

/* A visit to the host costs more than a minute of it, and a busy minute is no property of a kernel.
 */
static kl_err judge_settled(kl_verdict *v, spool_worker *w, kl_arena *a, kl_gate_job *j,
                            kl_error *e) {
    KL_ASSERT(!j->opts.against || j->opts.against->surface == j->kernel->surface);
    j->opts.progress = heartbeat;
    j->opts.progress_ctx = w;
    kl_err err = judge_once(v, w->executor, a, j, e);
    if (err == KL_EBUSY || (!err && v->outcome == KL_OUTCOME_UNSTABLE))
        err = judge_once(v, w->executor, a, j, e);
    return err;
}

/* The job in `folder`.  `*unreadable`: its text is no kernel, and `e` says why. */
static kl_err load_job(kl_gate_job *out, kl_str *path, bool *unreadable, kl_arena *a,
                       const spool_worker *w, const char *folder, const char *id, kl_error *e) {
    kl_str text;
    carried_job j;
    kl_task *t;
    kl_kernel *k = NULL, *opponent = NULL;
    *unreadable = false;
    kl_err err =
        read_plain(&text, a, kli_fs_join(a, folder, "job.json").ptr, KLI_SPOOL_JOB_BYTES, e);
    if (!err) err = kli_spool_parse(&j, a, text, e);
    if (!err && strcmp(j.id, id) != 0)
        err = kl_fail(e, KL_EINVAL, "job.json", "its content is not what the job's name says");
    if (!err) err = spool_load_task(&t, a, w, &j, e);
    if (!err) err = spool_load_kernel(&k, unreadable, a, folder, &j.kernel, "kernel", e);
    bool odd = false;
    if (!err && j.opponent.hash.len)
        err = spool_load_kernel(&opponent, &odd, a, folder, &j.opponent, "against", e);
    if (err && !*unreadable) return err;
    j.opts.against = opponent;
    j.opts.compile.cache_dir = kli_fs_join(a, w->dir, "cache").ptr;
    j.opts.compile.carried = true;
    *path = j.kernel.path;
    *out = (kl_gate_job){t, k, j.opts};
    return err;
}

static bool is_known(const spool_worker *w, kl_str task) {
    for (int i = 0; i < w->n_known; i++)
        if (kl_str_eq(task, kl_str_of(w->known[i]))) return true;
    return false;
}

static void note_task(spool_worker *w, const kl_task *t) {
    if (is_known(w, kl_str_of(t->hash)) || w->n_known == (int)KL_COUNT(w->known)) return;
    memcpy(w->known[w->n_known++], t->hash, sizeof w->known[0]);
}

static bool is_of_known_task(const spool_worker *w, kl_arena *a, const char *folder) {
    kl_str text;
    carried_job j;
    return read_plain(&text, a, kli_fs_join(a, folder, "job.json").ptr, KLI_SPOOL_JOB_BYTES,
                      kl_ignored()) ||
           kli_spool_parse(&j, a, text, kl_ignored()) || is_known(w, j.task);
}

/* A job that waits; false: there is none of that name, or it is odd, which is said when it is
 * taken. */
static bool peek(kl_gate_job *out, kl_arena *a, const spool_worker *w, const char *id, bool any) {
    const char *folder = in(a, w->dir, "todo", id).ptr;
    kl_str path;
    bool unreadable;
    return kli_spool_is_id(kl_str_of(id)) && is_folder(folder) &&
           (any || !is_of_known_task(w, a, folder)) &&
           !load_job(out, &path, &unreadable, a, w, folder, id, kl_ignored());
}

/* What is likely taken after `id`: the next job, and behind it one of each task that this worker
 * has not met, so that what they need is ready by then.  They stay where they are, and whoever
 * takes them has them.  NULL: there is none. */
static const kl_gate_job *peek_next(kl_arena *a, spool_worker *w, const char *id) {
    kl_gate_job *jobs = NULL, job;
    kl_str *names;
    size_t n, at = 0, n_jobs = 0;
    if (kli_fs_list(&names, &n, a, kli_fs_join(a, w->dir, "todo").ptr, kl_ignored())) return NULL;
    while (at < n && strcmp(names[at].ptr, id) < 0) at++;
    for (size_t k = 0; k < n && k < PEEKED; k++) {
        if (!peek(&job, a, w, names[(at + k) % n].ptr, k == 0)) continue;
        note_task(w, job.task);
        *KL_PUSH(a, jobs, n_jobs) = job;
    }
    for (size_t k = 1; k < n_jobs; k++) jobs[k - 1].opts.next = &jobs[k];
    return jobs;
}

static kl_err judge_job(kl_verdict *v, spool_worker *w, kl_arena *a, const char *id, kl_error *e) {
    kl_gate_job job;
    kl_str path;
    bool unreadable;
    const kl_err err = load_job(&job, &path, &unreadable, a, w, w->mine, id, e);
    if (unreadable) return kl_verdict_refused(v, a, job.task, path.ptr, e), KL_OK;
    if (err) return err;
    note_task(w, job.task);
    job.opts.next = peek_next(a, w, id);
    job.opts.more_to_come = job.opts.next != NULL;
    return judge_settled(v, w, a, &job, e);
}

static kl_err spool_write_answer(const spool_worker *w, kl_arena *a, kl_err judged,
                                 const kl_verdict *v, const kl_error *why, kl_error *e) {
    /* Of a worker that died between answer and rename. */
    kli_fs_remove_tree(kli_fs_join(a, w->mine, "verdict.json").ptr);
    kli_fs_remove_tree(kli_fs_join(a, w->mine, "error.json").ptr);
    if (!judged) return write_json(a, w->mine, "verdict.json", kl_verdict_json(v), e);
    json_t *o =
        json_pack("{si so so}", "code", judged, "message", kli_json_str(kl_str_of(why->message)),
                  "hint", kli_json_str(kl_str_of(why->hint)));
    return write_json(a, w->mine, "error.json", o, e);
}

/* Who ends this worker ends what it started as well, and perhaps first: a compiler or a kernel that
 * died a moment before is no answer. */
static bool was_stopped(kl_err judged, const kl_verdict *v) {
    const bool died =
        judged || v->outcome == KL_OUTCOME_NO_COMPILE || v->outcome == KL_OUTCOME_CRASH;
    if (died && judged != KL_EINTR)
        (void)nanosleep(&(struct timespec){.tv_nsec = SIGNALS_NS}, NULL); /* a signal ends it */
    return judged == KL_EINTR || (died && kli_interrupted());
}

/* Judge the job that was taken and move it to done/.  An interrupted job goes back to todo/. */
static kl_err do_job(spool_worker *w, const char *id, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_verdict *v = KL_NEW(a, kl_verdict);
    kl_error why = {0};
    const kl_err judged = judge_job(v, w, a, id, &why);
    kl_err err = KL_OK;
    if (was_stopped(judged, v)) {
        (void)rename(w->mine, in(a, w->dir, "todo", id).ptr);
        err = kl_fail(e, KL_EINTR, w->dir, "interrupted; the job went back to todo");
    } else if (!is_folder(w->mine)) {
        kli_warn("job %.16s was taken over while it was judged here",
                 id); /* whoever has it now will answer */
    } else {
        err = spool_write_answer(w, a, judged, v, &why, e);
        KL_ASSERT(judged != KL_PENDING); /* a job is done with an answer, or not at all */
        if (!err) err = move_into_place(w->mine, in(a, w->dir, "done", id).ptr, e);
        if (!err) ++*(judged ? w->failed : w->done);
        kli_say("%.16s %s %.*s", id, judged ? "error" : kl_outcome_name(v->outcome),
                judged ? (int)strlen(why.message) : (int)v->why.len,
                judged ? why.message : v->why.ptr);
    }
    kl_arena_free(a);
    return err;
}

/* The sign of life comes first: a rename keeps the folder's old time, and a job that waited long
 * must not look abandoned at once. */
static bool spool_take(spool_worker *w, kl_arena *a, const char *id) {
    const kl_str todo = in(a, w->dir, "todo", id);
    snprintf(w->mine, sizeof w->mine, "%s/taken/%s%s", w->dir, id, w->who);
    (void)utimensat(AT_FDCWD, todo.ptr, NULL, AT_SYMLINK_NOFOLLOW);
    if (rename(todo.ptr, w->mine)) return false;
    if (is_folder(w->mine) && !is_folder(in(a, w->dir, "done", id).ptr)) return true;
    kli_fs_remove_tree(w->mine); /* not a job, or one that was put again after its answer */
    return false;
}

static bool is_dead(const spool_worker *w, kl_arena *a, kl_str name, const char *host) {
    const char *at = memchr(name.ptr, '@', name.len), *pid_at = at ? strchr(at + 1, '@') : NULL;
    struct stat st;
    if (!pid_at || stat(in(a, w->dir, "taken", name.ptr).ptr, &st)) return false;
    /* A node failed, and Slurm gives the same number to the worker that takes its place. */
    if (w->slurm[0] && kl_str_ends(name, kl_str_of(w->slurm)) &&
        !kl_str_ends(name, kl_str_of(w->who)))
        return true;
    const bool here =
        (size_t)(pid_at - at - 1) == strlen(host) && memcmp(at + 1, host, strlen(host)) == 0;
    if (here && kill((pid_t)atol(pid_at + 1), 0) && errno == ESRCH) return true;
    return time(NULL) - st.st_mtime > KLI_SPOOL_SILENT_SECONDS;
}

static void spool_take_back(const spool_worker *w, kl_arena *a, const char *host) {
    kl_str *names;
    size_t n;
    if (kli_fs_list(&names, &n, a, kli_fs_join(a, w->dir, "taken").ptr, kl_ignored())) return;
    for (size_t i = 0; i < n; i++) {
        const kl_str id = {names[i].ptr, names[i].len < ID_CHARS ? names[i].len : ID_CHARS};
        if (!kli_spool_is_id(id) || !is_dead(w, a, names[i], host)) continue;
        const kl_str id_text = kl_arena_copy(a, id);
        if (rename(in(a, w->dir, "taken", names[i].ptr).ptr,
                   in(a, w->dir, "todo", id_text.ptr).ptr) == 0)
            kli_warn("took back job %.16s from a worker that is gone", id.ptr);
    }
}

/* One pass over todo/; `*any` when a job was done. */
static kl_err work_once(spool_worker *w, const char *host, bool *any, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_str *names;
    size_t n;
    *any = false;
    spool_take_back(w, a, host);
    kl_err err = kli_fs_list(&names, &n, a, kli_fs_join(a, w->dir, "todo").ptr, e);
    for (size_t i = 0; !err && i < n; i++) {
        if (!kli_spool_is_id(names[i]) || !spool_take(w, a, names[i].ptr)) continue;
        *any = true;
        err = do_job(w, names[i].ptr, e);
        if (!err && kli_interrupted()) err = kl_fail(e, KL_EINTR, w->dir, "interrupted");
    }
    kl_arena_free(a);
    return err;
}

/* So that whoever submitted it can ask Slurm whether this worker is still there. */
static void note_slurm(spool_worker *w) {
    const char *number = getenv("SLURM_JOB_ID");
    if (!number || !*number || number[strspn(number, "0123456789")] || strlen(number) > 20) return;
    snprintf(w->slurm, sizeof w->slurm, "@slurm-%s", number);
    const size_t used = strlen(w->who);
    snprintf(w->who + used, sizeof w->who - used, "%s", w->slurm);
}

kl_err kl_spool_work(const char *dir, kl_executor *x, int *done, int *failed, kl_error *e) {
    char host[64] = "host";
    spool_worker w = {.dir = dir, .executor = x, .done = done, .failed = failed};
    bool any = true;
    *done = *failed = 0;
    if (!kli_fs_is_dir(dir)) {
        kl_fail(e, KL_ENOENT, dir, "no such spool folder");
        return kl_hint(e, "fill one first: klineage gate TASK KERNEL --spool %s", dir);
    }
    (void)gethostname(host, sizeof host - 1);
    for (char *p = host; *p; p++)
        if (*p == '@' || *p == '/') *p = '-';
    snprintf(w.who, sizeof w.who, "@%s@%ld", host, (long)getpid());
    note_slurm(&w);
    kl_err err = make_folders(dir, e);
    while (!err && any) err = work_once(&w, host, &any, e);
    return err;
}

/* ---- the row of the table ---------------------------------------------------------------- */

static kl_err spool_open(void **self, kl_arena *a, const char *dir, kl_error *e) {
    if (!*dir) return kl_fail(e, KL_EINVAL, NULL, "executor spool needs a folder: spool:DIR");
    *self = (void *)(uintptr_t)kl_arena_copy(a, kl_str_of(dir)).ptr;
    return KL_OK;
}

/* The device is somebody else's, so only what is sent can be the question. */
static kl_err spool_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    const kl_gate_opts *o = &j->opts;
    const kl_str parts[] = {
        KL_S("klineage/run/spool/1"),
        kl_str_of(j->task->hash),
        kl_str_of(j->kernel->hash),
        kl_str_of(o->workload),
        kl_str_of(o->baseline),
        kl_str_of(o->arch),
        kl_arena_printf(a, "%d %d %llu", o->check_only, o->quick, (unsigned long long)o->seed),
        kl_arena_printf(a, "%g %g %g %g %g", o->min_pairs, o->min_seconds, o->max_seconds,
                        o->half_width, o->abandon_below),
        kl_str_of(o->against ? o->against->hash : NULL)};
    (void)self, (void)e;
    memcpy(key, kli_hash_parts(parts, KL_COUNT(parts) - !o->against).hex, 65);
    return KL_OK;
}

static kl_err spool_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j,
                           kl_error *e) {
    return kl_spool_put(id, self, a, j, e);
}

static kl_err spool_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    return kl_spool_get(out, a, self, id, e);
}

/* Out of todo/ by one rename: a worker that takes it meanwhile has it. */
static kl_err spool_cancel(void *self, kl_arena *a, const char *id, kl_error *e) {
    if (!kli_spool_is_id(kl_str_of(id)))
        return kl_fail(e, KL_EINVAL, self, "'%.80s' is not a job id", id);
    const kl_str away =
        kl_arena_printf(a, "%s/tmp/cancel-%.16s-%ld", (const char *)self, id, (long)getpid());
    if (rename(in(a, self, "todo", id).ptr, away.ptr) == 0) kli_fs_remove_tree(away.ptr);
    return KL_OK;
}

static int spool_capacity(void *self) {
    (void)self;
    return INT_MAX; /* who works on it, and how many, shows only in what is taken */
}

static size_t count_in(kl_arena *a, const char *dir, const char *folder) {
    kl_str *names;
    size_t n = 0;
    return kli_fs_list(&names, &n, a, kli_fs_join(a, dir, folder).ptr, kl_ignored()) ? 0 : n;
}

static kl_str spool_describe(void *self, kl_arena *a) {
    return kl_arena_printf(a, "spool %s: %zu wait, %zu taken, %zu done", (const char *)self,
                           count_in(a, self, "todo"), count_in(a, self, "taken"),
                           count_in(a, self, "done"));
}

const kl_executor_ops kli_executor_spool = {
    .name = "spool",
    .spec = "spool:DIR",
    .doc = "a folder whose jobs klineage-worker --spool DIR does, on this host or another",
    .keeps = true,
    .open = spool_open,
    .key = spool_key,
    .submit = spool_submit,
    .poll = spool_poll,
    .cancel = spool_cancel,
    .capacity = spool_capacity,
    .describe = spool_describe,
};
