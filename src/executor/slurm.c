/* slurm.c - executor slurm: jobs of a shared spool, done by workers that Slurm starts.
 *
 *   submit   into DIR/cpu or DIR/gpu, a spool each, so that no worker takes what its node cannot do
 *   poll     what was submitted since the last time becomes one array job, an element a job: each
 *            element is a klineage-worker that does what it finds until nothing is left
 *   cancel   out of the spool; ^C takes the arrays out of Slurm as well, and a worker that is
 *            stopped puts its job back
 *
 * An element is no job of ours: who comes first takes what waits, so a slow node holds up one job
 * and an element that finds nothing ends at once.  Slurm requeues elements of a node that failed;
 * what a worker had taken there is put back here, as soon as Slurm says that it is gone, and asked
 * again.  Partition, account, time limit: sbatch's own variables, SBATCH_PARTITION and so on.  A
 * GPU's kernels ask for --gres=gpu:1 unless SBATCH_GRES says otherwise.
 *
 * Elements see only the variables that are named here: a key in the environment of whoever submits
 * stays with them (law 2).
 * Not here: what a job says and how one is taken (spool.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "executors.h"
#include "spool_impl.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS INT64_C(2000000000) /* between two questions to Slurm: it serves others too */
#define SLURM_SECONDS INT64_C(60)   /* a controller that restarts answers by then */
#define CARRIED "PATH,HOME,TMPDIR,LD_LIBRARY_PATH,CUDA_HOME,KLINEAGE_CACHE,KLINEAGE_PYTHON"
enum { MOST_ELEMENTS = 1000 /* MaxArraySize of a plain Slurm is 1001 */, MOST_FRUITLESS = 3 };

typedef enum { ON_CPU_NODES, ON_GPU_NODES, KINDS } node_kind;
static const char *const KIND_FOLDERS[KINDS] = {"cpu", "gpu"};

typedef struct {
    char id[65]; /* empty: a free place */
    node_kind kind;
    bool fresh; /* no array was submitted for it yet */
} slurm_job;

typedef struct {
    kl_arena *arena;
    const char *dir, *places[KINDS];
    const char *name; /* of every job over this folder, whoever submitted it */
    slurm_job *jobs;
    size_t n;
    char (*arrays)[24]; /* Slurm's numbers */
    size_t n_arrays;
    int64_t looked_ns;
    size_t missing; /* jobs without an answer, when arrays were last submitted for them */
    int fruitless;  /* arrays that ended since without an answer to any */
} slurm;

/* ---- asking Slurm ------------------------------------------------------------------------ */

static kl_err slurm_run(kli_proc_result *out, kl_arena *a, const char *const *argv, kl_str input,
                        kl_error *e) {
    const kl_err err = kli_proc_run(
        out, a,
        &(kli_proc_spec){.argv = argv, .input = input, .timeout_ns = SLURM_SECONDS * 1000000000},
        e);
    return err == KL_ENOENT
               ? kl_hint(e, "on Debian: apt install slurm-client; this host must be one of the "
                            "cluster's")
               : err;
}

static kl_err slurm_refused(const char *program, const kli_proc_result *r, kl_error *e) {
    const kl_str said = kl_str_trim(r->err);
    kl_fail(e, KL_EIO, program, "%.*s", (int)(said.len ? strcspn(said.ptr, "\n") : 0),
            said.len ? said.ptr : "");
    return kl_hint(e, "jobs stay in the spool: run the same command again once Slurm takes them");
}

/* The states of the elements of an array that are not over; empty: it is. */
static kl_err slurm_elements_of(kl_str *out, kl_arena *a, const char *array, kl_error *e) {
    const char *const argv[] = {"squeue", "-h", "-r", "-j", array, "-o", "%T", NULL};
    kli_proc_result r;
    const kl_err err = slurm_run(&r, a, argv, (kl_str){0}, e);
    if (err) return err;
    const bool unknown = r.exit_code && strstr(r.err.ptr, "Invalid job id");
    if (r.exit_code && !unknown) return slurm_refused("squeue", &r, e);
    *out = unknown ? (kl_str){0} : kl_str_trim(r.out);
    return KL_OK;
}

/* Errors are not the caller's: what is left in Slurm ends at once when its turn comes.  ^C, for
 * which this is done, does not end it. */
static void slurm_cancel_elements(const char *filter, const char *which) {
    kl_arena *a = kl_arena_new();
    const kl_monitor *before = kl_monitor_use(NULL);
    kl_monitor patient = *before;
    patient.cancelled = NULL;
    (void)kl_monitor_use(&patient);
    const char *const argv[] = {"scancel", "--quiet", filter, which, NULL};
    kli_proc_result r;
    kl_error e = {0};
    if (slurm_run(&r, a, argv, (kl_str){0}, &e)) kli_debug("scancel: %s", e.message);
    (void)kl_monitor_use(before);
    kl_arena_free(a);
}

/* ---- arrays ------------------------------------------------------------------------------ */

/* A path between quotes of sh. */
static kl_str slurm_quoted(kl_arena *a, const char *path) {
    kl_buf b = {0};
    kl_buf_printf(&b, "'");
    for (const char *p = path; *p; p++) kl_buf_printf(&b, *p == '\'' ? "'\\''" : "%c", *p);
    kl_buf_printf(&b, "'");
    return kl_buf_take(&b, a);
}

static kl_str worker_script(kl_arena *a, const char *place) {
    return kl_arena_printf(a, "#!/bin/sh\nexec %s --spool %s\n",
                           slurm_quoted(a, kli_fs_find_part(a, "klineage-worker").ptr).ptr,
                           slurm_quoted(a, place).ptr);
}

static kl_err submit_array(slurm *s, kl_arena *a, node_kind kind, size_t elements, kl_error *e) {
    const bool gpu = kind == ON_GPU_NODES && !getenv("SBATCH_GRES");
    const char *argv[16];
    int n = 0;
    kli_proc_result r;
    argv[n++] = "sbatch";
    argv[n++] = "--parsable";
    argv[n++] = "--requeue";
    argv[n++] = kl_arena_printf(a, "--job-name=%s", s->name).ptr;
    argv[n++] = "--open-mode=append";
    argv[n++] = "--export=" CARRIED;
    argv[n++] = kl_arena_printf(a, "--chdir=%s", s->dir).ptr;
    argv[n++] = kl_arena_printf(a, "--output=%s/slurm/%%A_%%a.log", s->dir).ptr;
    argv[n++] = kl_arena_printf(a, "--array=0-%zu", elements - 1).ptr;
    if (gpu) argv[n++] = "--gres=gpu:1";
    argv[n] = NULL;
    const kl_err err = slurm_run(&r, a, argv, worker_script(a, s->places[kind]), e);
    if (err) return err;
    if (r.exit_code) return slurm_refused("sbatch", &r, e);
    char(*array)[24] = KL_PUSH(s->arena, s->arrays, s->n_arrays);
    snprintf(*array, sizeof *array, "%.*s", (int)strcspn(r.out.ptr, ";\n"), r.out.ptr);
    kli_debug("slurm: array %s of %zu for %s", *array, elements, s->places[kind]);
    return KL_OK;
}

static bool slurm_waits(kl_arena *a, const slurm *s, const slurm_job *j) {
    return kli_fs_is_dir(kl_arena_printf(a, "%s/todo/%s", s->places[j->kind], j->id).ptr);
}

/* One array for the jobs of a kind that wait: the fresh ones, or all of them. */
static kl_err submit_waiting(slurm *s, kl_arena *a, bool all, kl_error *e) {
    kl_err err = KL_OK;
    for (node_kind kind = 0; !err && kind < KINDS; kind++) {
        size_t elements = 0;
        for (size_t i = 0; i < s->n; i++) {
            slurm_job *j = &s->jobs[i];
            if (!j->id[0] || j->kind != kind || !(all || j->fresh)) continue;
            elements += slurm_waits(a, s, j);
        }
        if (elements)
            err = submit_array(s, a, kind, elements < MOST_ELEMENTS ? elements : MOST_ELEMENTS, e);
        for (size_t i = 0; !err && i < s->n; i++)
            if (s->jobs[i].kind == kind) s->jobs[i].fresh = false;
    }
    return err;
}

/* ---- workers that are gone --------------------------------------------------------------- */

/* Slurm's number of the worker that has it: "ID@HOST@PID@slurm-N"; empty where there is none. */
static kl_str worker_of(kl_arena *a, const slurm *s, const slurm_job *j, kl_str *folder) {
    static const kl_str mark = {"@slurm-", 7};
    kl_str *names;
    size_t n;
    const kl_str taken = kli_fs_join(a, s->places[j->kind], "taken");
    if (kli_fs_list(&names, &n, a, taken.ptr, kl_ignored())) return (kl_str){0};
    for (size_t i = 0; i < n; i++) {
        if (!kl_str_starts(names[i], kl_str_of(j->id))) continue;
        *folder = kli_fs_join(a, taken.ptr, names[i].ptr);
        const char *at = strstr(names[i].ptr, mark.ptr);
        return at ? kl_str_of(at + mark.len) : (kl_str){0};
    }
    return (kl_str){0};
}

/* Back to where it waits, if its worker is none of Slurm's any more. */
static kl_err put_back(slurm *s, kl_arena *a, const slurm_job *j, kl_error *e) {
    kl_str folder = {0}, states;
    const kl_str worker = worker_of(a, s, j, &folder);
    if (!worker.len) return KL_OK;
    const kl_err err = slurm_elements_of(&states, a, worker.ptr, e);
    if (err || states.len) return err;
    const kl_str todo = kl_arena_printf(a, "%s/todo/%s", s->places[j->kind], j->id);
    if (rename(folder.ptr, todo.ptr) == 0)
        kli_warn("job %.16s is asked again: its worker, Slurm's %s, is gone", j->id, worker.ptr);
    return KL_OK;
}

static kl_err any_active(bool *active, const slurm *s, kl_arena *a, kl_error *e) {
    kl_str states = {0};
    kl_err err = KL_OK;
    for (size_t i = s->n_arrays; !err && !states.len && i-- > 0;)
        err = slurm_elements_of(&states, a, s->arrays[i], e);
    *active = states.len > 0;
    return err;
}

static kl_err nobody_did_it(const slurm *s, kl_error *e) {
    kl_fail(e, KL_EIO, s->dir, "Slurm ended %d arrays, and no job was done", MOST_FRUITLESS);
    return kl_hint(e,
                   "their output says why: %s/slurm/*.log; klineage-worker must have the same "
                   "path on the nodes, as must the spool",
                   s->dir);
}

/* `judged`: of those that are missing, how many a worker of Slurm's has, whoever submitted it. */
static size_t count_missing(size_t *judged, const slurm *s, kl_arena *a) {
    size_t missing = 0;
    *judged = 0;
    for (size_t i = 0; i < s->n; i++) {
        kl_str folder;
        if (!s->jobs[i].id[0]) continue;
        missing++;
        *judged += worker_of(a, s, &s->jobs[i], &folder).len > 0;
    }
    return missing;
}

/* What is owed and waits for nobody is asked again. */
static kl_err ask_again(slurm *s, kl_arena *a, kl_error *e) {
    size_t missing, judged;
    bool active;
    kl_err err = any_active(&active, s, a, e);
    for (size_t i = 0; !err && i < s->n; i++)
        if (s->jobs[i].id[0]) err = put_back(s, a, &s->jobs[i], e);
    if (err || active) return err;
    missing = count_missing(&judged, s, a);
    if (missing == judged) return KL_OK; /* another's array is at it: one of ours finds nothing */
    s->fruitless = missing < s->missing ? 0 : s->fruitless + 1;
    s->missing = missing;
    s->n_arrays = 0;
    return s->fruitless > MOST_FRUITLESS ? nobody_did_it(s, e) : submit_waiting(s, a, true, e);
}

/* A controller that does not answer is no answer about the job: it goes on without, and its jobs
 * too. */
static kl_err look_after(slurm *s, kl_arena *a, kl_error *e) {
    kl_error why = {0};
    if (kli_now_ns() - s->looked_ns < LOOK_NS) return KL_OK;
    const kl_err err = ask_again(s, a, &why);
    s->looked_ns = kli_now_ns();
    if (err == KL_EIO && s->fruitless <= MOST_FRUITLESS) {
        kli_debug("slurm: %s", why.message);
        return KL_OK;
    }
    if (err) *e = why;
    return err;
}

/* ---- the row of the table ---------------------------------------------------------------- */

static kl_err slurm_open(void **self, kl_arena *a, const char *dir, kl_error *e) {
    char full[PATH_MAX];
    if (!*dir) return kl_fail(e, KL_EINVAL, NULL, "executor slurm needs a folder: slurm:DIR");
    kl_err err = kli_fs_mkdirs(kl_arena_printf(a, "%s/slurm", dir).ptr, e);
    if (err) return err;
    if (!realpath(dir, full)) return kl_fail(e, KL_EIO, dir, "cannot be resolved");
    slurm *s = KL_NEW(a, slurm);
    *s = (slurm){.arena = a, .dir = kl_arena_copy(a, kl_str_of(full)).ptr};
    s->name = kl_arena_printf(a, "klineage-%.8s", kli_hash_of(kl_str_of(full)).hex).ptr;
    for (node_kind kind = 0; kind < KINDS; kind++)
        s->places[kind] = kli_fs_join(a, s->dir, KIND_FOLDERS[kind]).ptr;
    *self = s;
    return KL_OK;
}

static bool nothing_waits(const slurm *s) {
    kl_arena *a = kl_arena_new();
    size_t waiting = 0;
    for (node_kind kind = 0; kind < KINDS; kind++) {
        kl_str *names;
        size_t n;
        const char *todo = kli_fs_join(a, s->places[kind], "todo").ptr;
        if (!kli_fs_list(&names, &n, a, todo, kl_ignored())) waiting += n;
    }
    kl_arena_free(a);
    return !waiting;
}

/* ^C: our arrays.  Else what would find nothing, also of a command that was killed: who submits at
 * this moment sees that nobody comes, and submits again. */
static void slurm_close(void *self) {
    const slurm *s = self;
    if (kli_interrupted())
        for (size_t i = 0; i < s->n_arrays; i++) slurm_cancel_elements("--", s->arrays[i]);
    else if (s->n && nothing_waits(s))
        slurm_cancel_elements("--state=PENDING",
                              kl_arena_printf(s->arena, "--name=%s", s->name).ptr);
}

static slurm_job *slurm_job_named(const slurm *s, const char *id) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->jobs[i].id, id) == 0) return &s->jobs[i];
    return NULL;
}

static kl_err slurm_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j,
                           kl_error *e) {
    slurm *s = self;
    const kl_backend *b = kli_backend_of_surface(j->kernel->surface, 0);
    const node_kind kind = b && b->on == KL_ON_GPU ? ON_GPU_NODES : ON_CPU_NODES;
    const kl_err err = kl_spool_put(id, s->places[kind], a, j, e);
    if (err || slurm_job_named(s, id)) return err;
    slurm_job *job = slurm_job_named(s, "");
    if (!job) job = KL_PUSH(s->arena, s->jobs, s->n);
    *job = (slurm_job){.kind = kind, .fresh = true};
    memcpy(job->id, id, sizeof job->id);
    s->missing++;
    return KL_OK;
}

/* In whichever of the two it lies: another process may have submitted it. */
static kl_err slurm_get(kl_verdict *out, const slurm *s, kl_arena *a, const char *id, kl_error *e) {
    kl_err err = KL_PENDING;
    for (node_kind kind = 0; err == KL_PENDING && kind < KINDS; kind++)
        err = kl_spool_get(out, a, s->places[kind], id, e);
    if (err == KL_PENDING) kl_hint(e, "Slurm has it: squeue --me; then ask again");
    return err;
}

static kl_err slurm_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    slurm *s = self;
    slurm_job *j = slurm_job_named(s, id);
    const kl_err err = slurm_get(out, s, a, id, e);
    if (err != KL_PENDING) {
        if (j) j->id[0] = '\0';
        return err;
    }
    kl_error why = {0};
    kl_err asked = submit_waiting(s, a, false, &why);
    if (!asked) asked = look_after(s, a, &why);
    if (asked) *e = why;
    return asked ? asked : err;
}

static kl_err slurm_cancel(void *self, kl_arena *a, const char *id, kl_error *e) {
    slurm *s = self;
    slurm_job *j = slurm_job_named(s, id);
    kl_err err = KL_OK;
    for (node_kind kind = 0; !err && kind < KINDS; kind++)
        err = kli_executor_spool.cancel((void *)(uintptr_t)s->places[kind], a, id, e);
    if (!err && j) j->id[0] = '\0';
    return err;
}

static kl_err slurm_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    return kli_executor_spool.key(key, self, a, j, e);
}

static int slurm_capacity(void *self) { return kli_executor_spool.capacity(self); }

static kl_str slurm_describe(void *self, kl_arena *a) {
    const slurm *s = self;
    return kl_arena_printf(
        a, "slurm: %.*s; %.*s",
        KL_STR_ARG(kli_executor_spool.describe((void *)(uintptr_t)s->places[ON_CPU_NODES], a)),
        KL_STR_ARG(kli_executor_spool.describe((void *)(uintptr_t)s->places[ON_GPU_NODES], a)));
}

const kl_executor_ops kli_executor_slurm = {
    .name = "slurm",
    .spec = "slurm:DIR",
    .doc = "workers that Slurm starts as array jobs, over a folder that all nodes see",
    .keeps = true,
    .open = slurm_open,
    .close = slurm_close,
    .key = slurm_key,
    .submit = slurm_submit,
    .poll = slurm_poll,
    .cancel = slurm_cancel,
    .capacity = slurm_capacity,
    .describe = slurm_describe,
};
