/* carrier.c - keeps a spool here and one on a host behind ssh alike: jobs there, verdicts back.
 *
 *   here todo --rsync--> there todo       and here todo -> taken/ID@HOST@PID, a mark: it was sent
 *   there done --rsync--> here done       and the mark goes
 *
 * One process a host carries for every track, under a lock that ends with it; whoever waits starts
 * the next one.  The worker there lives as long as its ssh session: a shell beside it reads what we
 * never write, and when we are gone, however, that ends and the worker is stopped and puts its job
 * back.  A job is carried into a folder of its own there and appears in todo by one rename, so no
 * worker sees half of it.
 *
 * ssh is $KLINEAGE_SSH or ssh, with the user's own configuration; connections are shared.
 * Not here: what a job is (spool.c), who waits for it (ssh.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "carrier.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/proc.h"
#include "spool_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUND_NS INT64_C(300000000)
#define IDLE_NS INT64_C(60000000000)
#define CALL_NS INT64_C(600000000000) /* a task may bring gigabytes */
enum { MOST_WORDS = 24, MOST_AT_ONCE = 256, PATIENCE = 20 /* rounds without the host */ };

typedef struct {
    kl_arena *arena;
    const char *spool, *host, *remote;
    char sockets[64]; /* of shared connections; a folder of its own */
    const char *ssh[MOST_WORDS];
    int n_ssh;
    kl_str shell; /* the same as one text, for rsync */
    pid_t worker; /* 0: none */
    int feed;     /* its session's standard input */
    int failures;
    bool reached;
} carrier_state;

/* ---- ssh --------------------------------------------------------------------------------- */

static void carrier_find_ssh(carrier_state *c) {
    const char *named = getenv("KLINEAGE_SSH");
    char *words = (char *)(uintptr_t)kl_arena_copy(c->arena, kl_str_of(named ? named : "ssh")).ptr,
         *save;
    for (char *w = strtok_r(words, " ", &save); w && c->n_ssh < 12; w = strtok_r(NULL, " ", &save))
        c->ssh[c->n_ssh++] = w;
    const char *const fixed[] = {
        "-o", "BatchMode=yes",
        "-o", "ConnectTimeout=10",
        "-o", "ServerAliveInterval=15",
        "-o", "ControlMaster=auto",
        "-o", "ControlPersist=60",
        "-o", kl_arena_printf(c->arena, "ControlPath=%s/%%C", c->sockets).ptr};
    kl_buf text = {0};
    for (size_t i = 0; i < KL_COUNT(fixed); i++) c->ssh[c->n_ssh++] = fixed[i];
    for (int i = 0; i < c->n_ssh; i++) kl_buf_printf(&text, "%s%s", i ? " " : "", c->ssh[i]);
    c->shell = kl_buf_take(&text, c->arena);
}

static kl_err carrier_call(kli_proc_result *r, kl_arena *a, const carrier_state *c,
                           const char *const *argv, kl_error *e) {
    const kl_err err = kli_proc_run(r, a, &(kli_proc_spec){.argv = argv, .timeout_ns = CALL_NS}, e);
    if (err == KL_ENOENT) return kl_hint(e, "on Debian: apt install openssh-client rsync");
    if (err || r->exit_code == 0) return err;
    const kl_str said = kl_str_trim(r->err);
    kl_fail(e, KL_EIO, c->host, "%s: %.*s", argv[0], KL_STR_ARG(said));
    return kl_hint(e,
                   "does `ssh %s klineage-worker --version` answer, without a password? rsync is "
                   "needed there too",
                   c->host);
}

static kl_err on_host(kli_proc_result *r, kl_arena *a, const carrier_state *c, const char *command,
                      kl_error *e) {
    const char *argv[MOST_WORDS + 4];
    int n = 0;
    for (int i = 0; i < c->n_ssh; i++) argv[n++] = c->ssh[i];
    argv[n++] = "--";
    argv[n++] = c->host;
    argv[n++] = command;
    argv[n] = NULL;
    return carrier_call(r, a, c, argv, e);
}

static const char *worker_there(void) {
    const char *named = getenv("KLINEAGE_SSH_WORKER");
    return named && *named ? named : "klineage-worker";
}

/* A worker that reads jobs in another way is not asked. */
static kl_err check_version(const carrier_state *c, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kli_proc_result r;
    kl_err err = on_host(
        &r, a, c,
        kl_arena_printf(a, "mkdir -p '%s' && '%s' --version", c->remote, worker_there()).ptr, e);
    const kl_str said = err ? (kl_str){0} : kl_str_trim(r.out);
    if (!err && !kl_str_eq(said, KL_S("klineage-worker " KL_VERSION))) {
        kl_fail(e, KL_EINVAL, c->host, "its worker says '%.*s'; this is %s", KL_STR_ARG(said),
                KL_VERSION);
        err =
            kl_hint(e, "copy build/bin to the host, or name its worker: KLINEAGE_SSH_WORKER=PATH");
    }
    kl_arena_free(a);
    return err;
}

/* ---- the worker there -------------------------------------------------------------------- */

static kl_str session_script(kl_arena *a, const carrier_state *c) {
    return kl_arena_printf(a,
                           "exec 3<&0; '%s' --spool '%s' --stay 3600 & w=$!; "
                           "(cat <&3 >/dev/null; kill $w 2>/dev/null) & r=$!; "
                           "wait $w; s=$?; kill $r 2>/dev/null; exit $s",
                           worker_there(), c->remote);
}

static void start_worker(carrier_state *c) {
    int ends[2];
    const char *argv[MOST_WORDS + 4];
    int n = 0;
    if (c->worker || pipe2(ends, O_CLOEXEC)) return;
    for (int i = 0; i < c->n_ssh; i++) argv[n++] = c->ssh[i];
    argv[n++] = "--";
    argv[n++] = c->host;
    argv[n++] = session_script(c->arena, c).ptr;
    argv[n] = NULL;
    c->worker = fork();
    if (c->worker == 0) {
        const int log = open(kli_fs_join(c->arena, c->spool, "worker.log").ptr,
                             O_WRONLY | O_CREAT | O_APPEND, 0600);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(ends[0], STDIN_FILENO);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[0]);
    c->feed = ends[1];
}

static void reap_worker(carrier_state *c, int options) {
    if (!c->worker || waitpid(c->worker, NULL, options) != c->worker) return;
    close(c->feed);
    c->worker = 0;
}

static void stop_worker(carrier_state *c) {
    if (!c->worker) return;
    close(c->feed); /* the shell there sees the end, and stops it */
    c->feed = -1;
    reap_worker(c, 0);
}

/* ---- rounds ------------------------------------------------------------------------------ */

typedef struct {
    kl_str *names;
    size_t n;
} carrier_names;

/* Jobs in a folder, by their ids; what is no job is left out. */
static carrier_names ids_in(kl_arena *a, const carrier_state *c, const char *folder) {
    kl_str *all;
    carrier_names out = {0};
    size_t n;
    if (kli_fs_list(&all, &n, a, kli_fs_join(a, c->spool, folder).ptr, kl_ignored())) return out;
    for (size_t i = 0; i < n && out.n < MOST_AT_ONCE; i++) {
        const kl_str id = {all[i].ptr, strcspn(all[i].ptr, "@")};
        if (kli_spool_is_id(id)) *KL_PUSH(a, out.names, out.n) = all[i];
    }
    return out;
}

static const char *id_of(kl_arena *a, kl_str name) {
    return kl_arena_copy(a, (kl_str){name.ptr, strcspn(name.ptr, "@")}).ptr;
}

static kl_err carrier_rsync(kl_arena *a, const carrier_state *c, const char *const *paths, size_t n,
                            const char *to, kl_error *e) {
    const char **argv = KL_ARRAY(a, const char *, n + 10);
    size_t k = 0;
    kli_proc_result r;
    argv[k++] = "rsync";
    argv[k++] = "-as"; /* names are not for a shell */
    argv[k++] = "--relative";
    argv[k++] = "--ignore-missing-args";
    argv[k++] = "-e";
    argv[k++] = c->shell.ptr;
    for (size_t i = 0; i < n; i++) argv[k++] = paths[i];
    argv[k++] = to;
    argv[k] = NULL;
    return carrier_call(&r, a, c, argv, e);
}

/* What jobs need, and the jobs under tmp/, from where one rename each makes them visible. */
static kl_err send_jobs(kl_arena *a, const carrier_state *c, const carrier_names *jobs,
                        kl_error *e) {
    const char **paths = KL_ARRAY(a, const char *, jobs->n + 2);
    const char *to = kl_arena_printf(a, "%s:%s/", c->host, c->remote).ptr;
    size_t n = 0;
    kl_buf moves = {0};
    kli_proc_result r;
    paths[n++] = kl_arena_printf(a, "%s/./tasks", c->spool).ptr;
    paths[n++] = kl_arena_printf(a, "%s/./cache", c->spool).ptr;
    kl_err err = carrier_rsync(a, c, paths, n, to, e);
    kl_buf_printf(&moves, "cd '%s' && mkdir -p todo && cd sent/todo &&", c->remote);
    for (size_t i = n = 0; i < jobs->n; i++) {
        const char *id = id_of(a, jobs->names[i]);
        paths[n++] = kl_arena_printf(a, "%s/./todo/%s", c->spool, id).ptr;
        kl_buf_printf(&moves, " { mv -T %s ../../todo/%s || rm -r %s; } 2>/dev/null;", id, id, id);
    }
    if (!err) err = carrier_rsync(a, c, paths, n, kl_arena_printf(a, "%ssent/", to).ptr, e);
    kl_buf_printf(&moves, " true");
    if (!err) err = on_host(&r, a, c, moves.ptr, e);
    kl_buf_fini(&moves);
    return err;
}

static void mark_sent(kl_arena *a, const carrier_state *c, const carrier_names *jobs) {
    kl_str host = kl_arena_copy(a, kl_str_of(c->host));
    for (char *p = (char *)(uintptr_t)host.ptr; *p; p++)
        if (*p == '@' || *p == '/') *p = '-';
    for (size_t i = 0; i < jobs->n; i++) {
        const char *id = id_of(a, jobs->names[i]);
        (void)rename(
            kl_arena_printf(a, "%s/todo/%s", c->spool, id).ptr,
            kl_arena_printf(a, "%s/taken/%s@%s@%d", c->spool, id, host.ptr, (int)getpid()).ptr);
    }
}

static bool carrier_is_answered(kl_arena *a, const carrier_state *c, const char *id) {
    return kli_fs_exists(kl_arena_printf(a, "%s/done/%s/verdict.json", c->spool, id).ptr) ||
           kli_fs_exists(kl_arena_printf(a, "%s/done/%s/error.json", c->spool, id).ptr);
}

static kl_err fetch_answers(kl_arena *a, const carrier_state *c, const carrier_names *sent,
                            kl_error *e) {
    const char **paths = KL_ARRAY(a, const char *, sent->n + 1);
    for (size_t i = 0; i < sent->n; i++)
        paths[i] =
            kl_arena_printf(a, "%s%s/./done/%s", i ? ":" : kl_arena_printf(a, "%s:", c->host).ptr,
                            c->remote, id_of(a, sent->names[i]))
                .ptr;
    const kl_err err =
        carrier_rsync(a, c, paths, sent->n, kl_arena_printf(a, "%s/", c->spool).ptr, e);
    for (size_t i = 0; !err && i < sent->n; i++)
        if (carrier_is_answered(a, c, id_of(a, sent->names[i])))
            kli_fs_remove_tree(kl_arena_printf(a, "%s/taken/%s", c->spool, sent->names[i].ptr).ptr);
    return err;
}

/* `*any`: something waits or is awaited. */
static kl_err carry_round(carrier_state *c, kl_arena *a, bool *any, kl_error *e) {
    const carrier_names jobs = ids_in(a, c, "todo");
    kl_err err = jobs.n ? send_jobs(a, c, &jobs, e) : KL_OK;
    if (!err) mark_sent(a, c, &jobs);
    const carrier_names sent = ids_in(a, c, "taken");
    *any = jobs.n || sent.n;
    reap_worker(c, WNOHANG);
    if (!err && sent.n) start_worker(c);
    return err || !sent.n ? err : fetch_answers(a, c, &sent, e);
}

/* A host that was there is looked for again; one that never was is a mistake. */
static kl_err carrier_bear(carrier_state *c, kl_err err, kl_error *e) {
    if (!err) c->reached = true;
    c->failures = err ? c->failures + 1 : 0;
    if (err == KL_EIO && c->reached && c->failures < PATIENCE) {
        kli_debug("%s: %s", c->host, e->message);
        *e = (kl_error){0};
        return KL_OK;
    }
    return err;
}

static kl_err carry_on(carrier_state *c, pid_t starter, kl_error *e) {
    int64_t idle_since = kli_now_ns();
    kl_err err = check_version(c, e);
    while (!err && getppid() == starter && kli_now_ns() - idle_since < IDLE_NS) {
        kl_arena *a = kl_arena_new();
        bool any = false;
        err = carrier_bear(c, carry_round(c, a, &any, e), e);
        kl_arena_free(a);
        if (any) idle_since = kli_now_ns();
        if (!err && kli_interrupted()) err = kl_fail(e, KL_EINTR, c->host, "interrupted");
        nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
    }
    return err;
}

static void say_why(const carrier_state *c, kl_err err, const kl_error *e) {
    const char *path = kli_fs_join(c->arena, c->spool, KLI_CARRIER_ERROR).ptr;
    if (!err || err == KL_EINTR) return;
    (void)!kli_fs_write(path, kl_arena_printf(c->arena, "%s\n%s\n", e->message, e->hint),
                        kl_ignored());
}

kl_err kli_carry(const char *spool, const char *host, const char *remote, kl_error *e) {
    carrier_state c = {
        .arena = kl_arena_new(), .spool = spool, .host = host, .remote = remote, .feed = -1};
    const pid_t starter = getppid();
    const int lock =
        open(kli_fs_join(c.arena, spool, KLI_CARRIER_LOCK).ptr, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    kl_err err = KL_OK;
    snprintf(c.sockets, sizeof c.sockets, "/tmp/klineage-ssh-XXXXXX");
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB)) {
        err =
            lock < 0 ? kl_fail(e, KL_EIO, spool, "cannot be written: %s", strerror(errno)) : KL_OK;
    } else if (!mkdtemp(c.sockets)) {
        err = kl_fail(e, KL_EIO, c.sockets, "cannot be made: %s", strerror(errno));
    } else {
        carrier_find_ssh(&c);
        err = carry_on(&c, starter, e);
        stop_worker(&c);
        say_why(&c, err, e);
        kli_fs_remove_tree(c.sockets);
    }
    if (lock >= 0) close(lock);
    kl_arena_free(c.arena);
    return err;
}
