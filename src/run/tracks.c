/* tracks.c - several lines at a time, each in a process of its own.
 *
 *   parent                                        child (one per track, own process group)
 *   fork ---------------------------------------> open store, lease track, run the line with its
 * own model and gate wait; pass on ^C                              write the report: how it ended,
 * which effects failed and how reap <--------------------------------------- exit run each line
 * once more out of the journal: its ctx now holds what the child's held
 *
 * The journal is the only way back: whatever a line leaves in its ctx follows from answers that are
 * on disk.  What is not an answer, an effect that failed, comes in the report, so that a line that
 * stopped at its cap stops at the same place again. A fork, not a thread: a crash is the crash of
 * one track, and neither the store nor a provider's library has to bear sharing. Not here: what a
 * line does, how an effect is paid.  SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "base/log.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACKS_LOOK_NS 20000000 /* how often the parent looks for children that ended */

typedef struct {
    const kl_track_spec *spec;
    pid_t pid;  /* 0: not running */
    int report; /* descriptor of a file in memory; -1: none */
    bool started, told;
    kl_err err;
    kl_error error;
    kli_failure *failures;
    size_t n_failures;
} child;

typedef struct {
    kl_err err;
    size_t n_failures;
    kl_error error;
} report_head;

/* What the caller is told of one track. */
static void tell(const kl_track_spec *spec, kl_err err, const kl_error *e) {
    if (!spec->result) return;
    *spec->result = err ? *e : (kl_error){0};
    spec->result->code = err;
}

/* ---- one line, here ---------------------------------------------------------------------- */

static kl_err run_leased(kli_track *t, bool once, kl_error *e) {
    kl_err err = kli_track_lease(t, e);
    if (err) return err;
    err = kli_track_run(t, once, e);
    if (err && !t->live) return err; /* it did not come further than what is written down */
    kl_error own = {0};
    const kl_err cut = kli_steps_end(t, &own);
    if (!err && cut && e) *e = own;
    return err ? err : cut;
}

static kl_err tracks_run_here(kl_run *r, const kl_track_spec *spec, bool once, kl_error *e) {
    kli_track t;
    kl_error local = {0};
    kli_track_init(&t, r, spec);
    kl_err err = run_leased(&t, once, &local);
    kli_base_progress("%s", "");
    kli_track_fini(&t);
    tell(spec, err, &local);
    if (err && e) *e = local;
    return err;
}

/* Once more, asking nobody.  The executor is lent: it only says what the questions are called, and
 * a gate probes devices for a while. */
static kl_err run_again(kl_run *r, const child *c, kl_executor **lent, kl_error *e) {
    kli_track t;
    kli_track_init(&t, r, c->spec);
    t.journal_only = true;
    t.executor = *lent;
    t.failures = c->failures;
    t.n_failures = c->n_failures;
    kl_err err = kli_track_run(&t, true, e);
    *lent = t.executor;
    t.executor = NULL;
    kli_track_fini(&t);
    return err;
}

/* ---- the child --------------------------------------------------------------------------- */

static bool tracks_put(int fd, const void *data, size_t bytes) {
    for (const char *at = data; bytes;) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* _exit: what the parent has in its buffers is the parent's to write. */
static KL_NORETURN void be_child(kl_run *r, const child *c, const kl_track_opts *o, pid_t parent) {
    kli_track t;
    report_head head = {0};
    (void)setpgid(0, 0); /* ^C on the terminal goes to the parent, which passes it on once: the
                            second one kills */
    signal(SIGTTOU, SIG_IGN);
    prctl(PR_SET_PDEATHSIG,
          SIGKILL); /* winding down could outlast the next command's wait for the lease */
    if (getppid() != parent) _exit(1);
    kl_monitor hushed = *kl_monitor_use(NULL);
    hushed.log = NULL;
    hushed.progress = NULL;
    if (o->quiet) kl_monitor_use(&hushed);
    kli_track_init(&t, r, c->spec);
    t.many = true;
    head.err = run_leased(&t, o->once, &head.error);
    head.n_failures = t.n_failures;
    bool told = tracks_put(c->report, &head, sizeof head) &&
                tracks_put(c->report, t.failures, t.n_failures * sizeof *t.failures);
    kli_track_fini(&t); /* closes the executor: the runners of a gate end */
    kl_store_close(r->store);
    _exit(told ? 0 : 1);
}

/* ---- the parent -------------------------------------------------------------------------- */

static bool tracks_take(int fd, void *out, size_t bytes, off_t at) {
    return pread(fd, out, bytes, at) == (ssize_t)bytes;
}

static void tracks_read_report(child *c, kl_arena *a) {
    report_head head;
    c->told = tracks_take(c->report, &head, sizeof head, 0) && head.n_failures <= KLI_MAX_FAILURES;
    if (!c->told) return;
    c->err = head.err;
    c->error = head.error;
    c->failures = KL_ARRAY(a, kli_failure, head.n_failures + 1);
    c->n_failures =
        tracks_take(c->report, c->failures, head.n_failures * sizeof *c->failures, sizeof head)
            ? head.n_failures
            : 0;
}

static void ended(child *c, int status, kl_arena *a) {
    KL_ASSERT(c->started && c->report >= 0);
    c->pid = 0;
    tracks_read_report(c, a);
    close(c->report);
    c->report = -1;
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        const char *name = sigabbrev_np(number);
        c->err = kl_fail(&c->error, KL_EIO, c->spec->name,
                         "the track's process was killed by SIG%s (%s)", name ? name : "?",
                         strsignal(number));
        kl_hint(&c->error, "re-run the same command to resume; completed calls are not repeated");
    } else if (!c->told) {
        c->err = kl_fail(&c->error, KL_EIO, c->spec->name,
                         "the track's process exited with status %d without a result",
                         WEXITSTATUS(status));
    }
}

static void tracks_start(kl_run *r, child *c, const kl_track_opts *o) {
    pid_t parent = getpid();
    c->started = true;
    c->report = memfd_create("report", MFD_CLOEXEC);
    c->pid = c->report < 0 ? -1 : kl_store_fork(r->store);
    if (c->pid == 0) be_child(r, c, o, parent);
    if (c->pid > 0) {
        (void)setpgid(c->pid, c->pid); /* whoever of the two is first */
        return;
    }
    c->err = kl_fail(&c->error, KL_ESPAWN, c->spec->name,
                     "cannot start a process for the track: %s", strerror(errno));
    if (c->report >= 0) close(c->report);
    c->pid = 0;
}

static int tracks_reap(child *children, int n, kl_arena *a) {
    int running = 0;
    for (int i = 0; i < n; i++) {
        int status;
        if (!children[i].pid) continue;
        pid_t got = waitpid(children[i].pid, &status, WNOHANG);
        if (got == children[i].pid)
            ended(&children[i], status, a);
        else
            running++;
    }
    return running;
}

static void tracks_tick(const child *children, int n, kl_track_state *states,
                        const kl_track_opts *o) {
    if (!o->tick) return;
    for (int i = 0; i < n; i++)
        states[i] = children[i].pid       ? KL_TRACK_RUNS
                    : children[i].started ? KL_TRACK_ENDED
                                          : KL_TRACK_WAITS;
    o->tick(o->tick_ctx, states, n);
}

static void tracks_run_all(kl_run *r, child *children, int n, const kl_track_opts *o) {
    bool passed_on = false;
    int next = 0, running = 0, jobs = o->jobs > 1 ? o->jobs : 1;
    kl_track_state *states = KL_ARRAY(r->arena, kl_track_state, n);
    do {
        for (; next < n && running < jobs && !kli_interrupted(); next++, running++)
            tracks_start(r, &children[next], o);
        tracks_tick(children, n, states, o);
        nanosleep(&(struct timespec){.tv_nsec = TRACKS_LOOK_NS}, NULL);
        if (kli_interrupted() && !passed_on) {
            for (int i = 0; i < n; i++)
                if (children[i].pid) kill(children[i].pid, SIGINT);
            passed_on = true;
        }
        running = tracks_reap(children, n, r->arena);
    } while (running || (next < n && !kli_interrupted()));
}

/* ---- all of them ------------------------------------------------------------------------- */

static kl_err tracks_interrupted(const kl_run *r, kl_error *e) {
    kl_fail(e, KL_EINTR, NULL, "interrupted; run %.12s is kept", r->id);
    return kl_hint(e, "re-run the same command to resume; completed calls are not repeated");
}

/* The worst of how they ended: an error before an answer that is still missing. */
static kl_err tracks_verdict_of(const child *children, int n, kl_error *e) {
    const child *first = NULL;
    for (int i = 0; i < n; i++) {
        const child *c = &children[i];
        if (c->err && (!first || (first->err == KL_PENDING && c->err != KL_PENDING))) first = c;
    }
    if (!first) return KL_OK;
    *e = first->error;
    if (e && !strstr(e->where, first->spec->name)) {
        char where[sizeof e->where];
        snprintf(where, sizeof where, "%s%s%.100s", first->spec->name, e->where[0] ? ": " : "",
                 e->where);
        memcpy(e->where, where, sizeof where);
    }
    return first->err;
}

static kl_err tracks_collect(kl_run *r, child *children, int n, kl_error *e) {
    bool stopped = kli_interrupted();
    kl_executor *lent = NULL;
    for (int i = 0; i < n; i++) {
        child *c = &children[i];
        if (c->err == KL_EINTR) stopped = true;
        if (c->started && !c->err) c->err = run_again(r, c, &lent, &c->error);
        if (!c->started) c->err = kl_fail(&c->error, KL_EINTR, c->spec->name, "not begun");
        tell(c->spec, c->err, &c->error);
    }
    kl_executor_close(lent);
    return stopped ? tracks_interrupted(r, e) : tracks_verdict_of(children, n, e);
}

static kl_err run_apart(kl_run *r, const kl_track_spec *tracks, int n, const kl_track_opts *o,
                        kl_error *e) {
    child *children = KL_ARRAY(r->arena, child, n);
    for (int i = 0; i < n; i++) children[i] = (child){.spec = &tracks[i], .report = -1};
    kli_base_progress("%s", "");
    signal(
        SIGCHLD,
        SIG_DFL); /* who started this program may have ignored it, and children would end unseen */
    tracks_run_all(r, children, n, o);
    return tracks_collect(r, children, n, e);
}

kl_err kl_run_tracks(kl_run *r, const kl_track_spec *tracks, int n, const kl_track_opts *o,
                     kl_error *e) {
    KL_ASSERT(n >= 0);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            KL_ASSERT(strcmp(tracks[i].name, tracks[j].name) != 0); /* part of every key */
    const kl_track_opts plain = {0};
    if (!o) o = &plain;
    if (n == 0) return KL_OK;
    return n == 1 ? tracks_run_here(r, tracks, o->once, e) : run_apart(r, tracks, n, o, e);
}
