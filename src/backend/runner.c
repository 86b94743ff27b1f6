/* runner.c - the gate's side of a runner: one process, one kernel, one request in flight.
 *
 * A runner's word is data.  Replies are bounded and matched against the request; an end of the
 * process, a late reply and a reply that makes no sense are faults of the kernel in it, never
 * errors of ours.  A runner that ended stays ended: the caller starts another.  READY is awaited at
 * the first request, so that runners can be started long before they are needed. Not here: clocks
 * (runner_time.c), the process's beginning (spawn.c).  SPDX-License-Identifier: Apache-2.0 */
#include "runner_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "layout.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNNER_SECOND 1000000000ll
#define READY_NS (60 * RUNNER_SECOND) /* a device context on a busy machine */
#define LOAD_NS (120 * RUNNER_SECOND) /* OpenCL finishes its compilation here */
#define BIND_NS (120 * RUNNER_SECOND)
#define UPLOAD_NS (120 * RUNNER_SECOND)
#define STOP_NS (RUNNER_SECOND / 2) /* a driver's calls are shorter */

/* ---- protocol ---------------------------------------------------------------------------- */

kl_err kli_runner_usable(const kl_runner *r, kl_fault *fault, kl_error *e) {
    *fault = (kl_fault){0};
    if (r->pid > 0) return KL_OK;
    return kl_fail(e, KL_ESPAWN, r->backend->name,
                   "this runner has ended; its kernel needs another");
}

static void note_end(kl_runner *r) {
    r->pid = -1;
    r->ready = r->loaded = r->bound = r->ahead = r->held = false;
    r->handshake_ns = r->handshake_sleep_ns = -1;
}

void kli_runner_dismiss(kl_runner *r) {
    if (!r || r->pid <= 0) return;
    kill(-r->pid, SIGKILL);
    kill(r->pid, SIGKILL);
}

int kli_runner_kill(kl_runner *r) {
    int status = 0;
    if (r->pid <= 0) return 0;
    kli_runner_dismiss(r);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    return note_end(r), status;
}

static void set_fault(kl_fault *fault, kl_fault_kind kind, int sig, const char *text) {
    fault->kind = kind;
    fault->signal = sig;
    snprintf(fault->text, sizeof fault->text, "%s", text);
}

/* It hung up.  The end that it chose for itself tells more than a kill of ours, so give it a moment
 * to be reaped. */
static void fault_of_end(kl_runner *r, kl_fault *fault) {
    int status = 0;
    for (int i = 0; i < 5000 && waitpid(r->pid, &status, WNOHANG) == 0; i++) (void)usleep(1000);
    kill(-r->pid, SIGKILL);
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) status = kli_runner_kill(r);
    note_end(r);
    char text[128];
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof text, "SIG%s ended the runner", sigabbrev_np(WTERMSIG(status)));
        set_fault(fault, KL_FAULT_CRASH, WTERMSIG(status), text);
    } else {
        snprintf(text, sizeof text, "the runner ended by itself with status %d",
                 WEXITSTATUS(status));
        set_fault(fault, KL_FAULT_PROTOCOL, 0, text);
    }
}

kl_err kli_runner_send(kl_runner *r, const void *message, size_t bytes, const int *fds, int n_fds,
                       kl_error *e) {
    char control[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    KL_ASSERT(n_fds >= 0 && n_fds <= 4);
    KL_ASSERT(r->socket >= 0 && bytes >= sizeof(kl_msg_head));
    if (n_fds) {
        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
    }
    while (sendmsg(r->socket, &m, MSG_NOSIGNAL) < 0) {
        if (errno == EINTR) continue;
        if (errno == EPIPE || errno == ECONNRESET)
            return KL_OK; /* its end is what the receive that follows reports */
        return kl_fail(e, KL_EIO, r->backend->name, "cannot write to a runner: %s",
                       strerror(errno));
    }
    return KL_OK;
}

bool kli_runner_has_reply(kl_runner *r) {
    struct pollfd p = {.fd = r->socket, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* ---- patience ---------------------------------------------------------------------------- */

/* A kernel hangs when it had its time on a core, never because it waited for one:
 *
 *   wall >= limit         the limit's time on every core that it may use  -> hangs
 *   wall >= 4 x limit     the limit's time on one core                    -> hangs
 *                         asleep: it waits for itself                     -> hangs
 *   wall >= 20 x limit    ready to run or waiting for a disk              -> this machine is busy
 * (or 10 minutes beyond 4 x)
 *
 * Of a device's kernel only the wait of its host process can be seen: that alone extends its time.
 */
#define LONGER 4
#define RUNNER_LONGEST 20
#define LONGEST_NS (600 * RUNNER_SECOND)
#define LOOK_AGAIN_NS (RUNNER_SECOND / 10)
#define FIRST_LOOK_NS (RUNNER_SECOND / 20)

kli_patience kli_patience_for(int64_t limit_ns) {
    return (kli_patience){.start_ns = kli_now_ns(), .limit_ns = limit_ns};
}

static kli_verdict patience_of(const kl_runner *r, const kli_patience *p, int64_t wall_ns) {
    const kli_progress now = kli_watch_progress(r->pid);
    const int64_t cpu = now.cpu_ns - p->before.cpu_ns, delay = now.delay_ns - p->before.delay_ns;
    const int64_t beyond = wall_ns - LONGER * p->limit_ns;
    const bool waited = delay > wall_ns / 2,
               longest = beyond >= (RUNNER_LONGEST - LONGER) * p->limit_ns || beyond >= LONGEST_NS;
    if (!now.known || !p->before.known) return KLI_HANGS;
    if (!r->backend->parent_clock) return !waited ? KLI_HANGS : longest ? KLI_BUSY : KLI_WAIT;
    if (cpu >= p->limit_ns * r->opts.threads) return KLI_HANGS;
    if (beyond < 0) return KLI_WAIT;
    if (cpu >= p->limit_ns || (now.asleep && !waited)) return KLI_HANGS;
    return longest ? KLI_BUSY : KLI_WAIT;
}

/* Most requests are over before it begins: reading /proc for each would take longer than some. */
static kli_verdict begin_patience(const kl_runner *r, kli_patience *p, int64_t now) {
    p->has_begun = now - p->start_ns > FIRST_LOOK_NS;
    if (p->has_begun) {
        p->before = kli_watch_progress(r->pid);
        p->start_ns = now;
    }
    return KLI_WAIT;
}

kli_verdict kli_patience_look(const kl_runner *r, kli_patience *p) {
    const int64_t now = kli_now_ns(), wall = now - p->start_ns;
    if (!p->has_begun) return begin_patience(r, p, now);
    if (p->verdict || wall < p->limit_ns || now < p->look_ns) return p->verdict;
    p->look_ns = now + LOOK_AGAIN_NS;
    return p->verdict = patience_of(r, p, wall);
}

static kl_err too_busy(const kl_runner *r, const kli_patience *p, kl_error *e) {
    kl_fail(e, KL_EBUSY, r->backend->name,
            "the machine is overloaded: a kernel with a limit of %.3g s hardly ran in %.3g s",
            (double)p->limit_ns * 1e-9, (double)(kli_now_ns() - p->start_ns) * 1e-9);
    return kl_hint(e, "re-run when the machine is less loaded (uptime shows the load)");
}

/* 1: something to read; 0: patience ended; -1: the user wants to stop. */
static int wait_readable(kl_runner *r, kli_patience *p) {
    for (;;) {
        struct pollfd f = {.fd = r->socket, .events = POLLIN};
        int64_t left_ms = (p->limit_ns - (kli_now_ns() - p->start_ns)) / 1000000 + 1;
        if (kli_interrupted()) return -1;
        if (p->verdict) return 0;
        if (poll(&f, 1, (int)(left_ms < 1 || left_ms > 100 ? 100 : left_ms)) > 0) return 1;
        (void)kli_patience_look(r, p);
    }
}

/* ---- replies ----------------------------------------------------------------------------- */

/* Printable ASCII of a text that a kernel may have written. */
static void copy_text(char to[512], const char from[512]) {
    int n = 0;
    for (; n < 511 && from[n]; n++) to[n] = from[n] >= 32 && from[n] < 127 ? from[n] : '?';
    to[n] = '\0';
}

/* What a runner says of itself. */
static void runner_note_text(kl_runner *r) { copy_text(r->describe, r->reply.text); }
_Static_assert(sizeof((kl_runner *)0)->describe == 512 && sizeof((kl_fault *)0)->text == 512 &&
                   sizeof((kl_msg_reply *)0)->text == 512,
               "a reply's text fits wherever it is copied to");

static bool acceptable(const kl_msg_reply *m, ssize_t n, uint32_t kind) {
    return n == (ssize_t)sizeof *m && m->head.kind == kind && m->head.version == KL_WIRE_VERSION &&
           m->fault <= KL_FAULT_INPUT && m->n_samples <= KL_WIRE_MAX_SAMPLES &&
           m->n_resources <= KL_MAX_LAUNCHES && m->n_digests <= KL_WIRE_MAX_SAMPLES;
}

kl_err kli_runner_receive(kl_runner *r, kl_fault *fault, uint32_t kind, kli_patience *p,
                          kl_error *e) {
    int readable = wait_readable(r, p);
    *fault = (kl_fault){0};
    if (readable < 0) {
        kli_runner_kill(r);
        return kl_fail(e, KL_EINTR, r->backend->name, "interrupted");
    }
    if (readable == 0) {
        kli_runner_kill(r);
        if (p->verdict == KLI_BUSY) return too_busy(r, p, e);
        set_fault(fault, KL_FAULT_HANG, 0, "no end within the time allowed");
        return KL_OK;
    }
    ssize_t n;
    do n = recv(r->socket, &r->reply, sizeof r->reply, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) {
        fault_of_end(r, fault);
    } else if (!acceptable(&r->reply, n, kind)) {
        kli_runner_kill(r);
        set_fault(fault, KL_FAULT_PROTOCOL, 0, "the runner's reply makes no sense");
    } else if (r->reply.fault) {
        fault->kind = (kl_fault_kind)r->reply.fault;
        fault->signal = r->reply.signal;
        copy_text(fault->text, r->reply.text);
    }
    return KL_OK;
}

/* For who looks where a verdict's time goes. */
static void say_asked(const kl_runner *r, const void *message, int64_t ns) {
    static const char *const NAMES[] = {
        [KL_MSG_LOAD] = "load",   [KL_MSG_BIND] = "bind",   [KL_MSG_UPLOAD] = "upload",
        [KL_MSG_DRAW] = "draw",   [KL_MSG_RUN] = "run",     [KL_MSG_TIME] = "time",
        [KL_MSG_FETCH] = "fetch", [KL_MSG_AUDIT] = "audit", [KL_MSG_COMPARE] = "compare"};
    uint32_t kind;
    memcpy(&kind, message, sizeof kind); /* every message begins with it */
    KL_ASSERT(kind < KL_COUNT(NAMES) && NAMES[kind]);
    kli_debug("%s runner %d: %s took %.3f ms", r->backend->name, (int)r->pid, NAMES[kind],
              (double)ns * 1e-6);
}

kl_err kli_runner_ask(kl_runner *r, kl_fault *fault, const kli_request *q, kl_error *e) {
    const int64_t start = kli_now_ns(); /* patience begins again when it looks first */
    kli_patience p = kli_patience_for(q->limit_ns);
    kl_err code = kli_runner_send(r, q->message, q->bytes, q->fds, q->n_fds, e);
    if (!code) code = kli_runner_receive(r, fault, q->reply, &p, e);
    say_asked(r, q->message, kli_now_ns() - start);
    return code;
}

static kl_err runner_ask(kl_runner *r, kl_fault *fault, const void *message, size_t bytes,
                         int64_t limit_ns, kl_error *e) {
    const kli_request q = {message, bytes, NULL, 0, KL_MSG_DONE, limit_ns};
    return kli_runner_ask(r, fault, &q, e);
}

/* ---- start ------------------------------------------------------------------------------- */

/* OpenCL implementations write a cache; native runners of candidates may write nowhere else. */
static kl_err make_scratch_dir(kl_runner *r, kl_error *e) {
    kl_str dir = {0};
    r->scratch_dir = "";
    if (r->opts.backend != KL_BACKEND_OPENCL) return KL_OK;
    kl_err code = kli_fs_temp_dir(&dir, r->arena, e);
    if (code) return code;
    if (geteuid() == 0 && !r->opts.trusted && chown(dir.ptr, 65534, 65534) != 0)
        return kl_fail(e, KL_EIO, dir.ptr, "cannot give the folder to the runner: %s",
                       strerror(errno));
    r->scratch_dir = (char *)(uintptr_t)dir.ptr;
    return KL_OK;
}

kl_err kli_runner_start(kl_runner **out, const kl_runner_opts *o, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_runner *r = KL_NEW(a, kl_runner);
    *r = (kl_runner){.opts = *o,
                     .arena = a,
                     .pid = -1,
                     .socket = -1,
                     .artefact_fd = -1,
                     .control_fd = -1,
                     .slack = KL_WIRE_ANY_SLACK,
                     .handshake_ns = -1,
                     .handshake_sleep_ns = -1};
    *out = NULL;
    r->backend = kli_backend_get(o->backend);
    KL_ASSERT(r->backend);
    if (r->opts.threads < 1) r->opts.threads = 1;
    kl_err code = make_scratch_dir(r, e);
    if (!code) code = kli_runner_spawn(r, e);
    if (code) {
        kli_runner_stop(r);
        return code;
    }
    *out = r;
    return KL_OK;
}

static void note_isolation(kl_runner *r) {
    uint32_t bits = r->reply.isolation;
    r->isolation = (kl_isolation){.seccomp = bits & KLI_ISOLATED_SECCOMP,
                                  .landlock = bits & KLI_ISOLATED_LANDLOCK,
                                  .namespaces = r->namespaces,
                                  .user_switch = bits & KLI_ISOLATED_USER,
                                  .rlimits = bits & KLI_ISOLATED_LIMITS,
                                  .landlock_abi = (int)(bits >> 8 & 0xFF)};
}

static kl_err await_ready(kl_runner *r, kl_error *e) {
    kl_fault fault;
    kli_patience p = kli_patience_for(READY_NS);
    kl_err code = kli_runner_receive(r, &fault, KL_MSG_READY, &p, e);
    if (code) return code;
    if (fault.kind == KL_FAULT_DEVICE || fault.kind == KL_FAULT_REFUSED)
        return kl_fail(e, KL_ENODEV, r->backend->name, "%s", fault.text);
    if (fault.kind)
        return kl_fail(e, KL_ESPAWN, r->backend->name, "the runner did not start: %s", fault.text);
    runner_note_text(r);
    note_isolation(r);
    r->ready = true;
    return KL_OK;
}

/* What a load ahead said, the load that follows says again; a runner that it ended begins anew. */
static kl_err await_ahead(kl_runner *r, kl_error *e) {
    kl_fault fault;
    kli_patience p = kli_patience_for(LOAD_NS);
    r->ahead = false;
    kl_err code = kli_runner_receive(r, &fault, KL_MSG_LOADED, &p, e);
    if (code || r->pid > 0) return code;
    r->ended_ahead = true;
    close(r->socket);
    r->socket = -1;
    code = kli_runner_spawn(r, e);
    return code ? code : await_ready(r, e);
}

bool kli_runner_is_up(kl_runner *r) { return r->ready || (r->pid > 0 && kli_runner_has_reply(r)); }

/* Told by its stop alone: a call into a driver is gone through first.  A process that ended stands
 * still too. */
static bool stands_still(const kl_runner *r) {
    const int64_t until = kli_now_ns() + STOP_NS;
    do {
        siginfo_t now = {0};
        if (waitid(P_PID, (id_t)r->pid, &now, WSTOPPED | WEXITED | WNOWAIT | WNOHANG) || now.si_pid)
            return true;
        (void)usleep(100);
    } while (kli_now_ns() < until);
    return false;
}

bool kli_runner_hold(kl_runner *r) {
    if (r->pid <= 0 || kli_runner_is_up(r)) return true;
    const int64_t start = kli_now_ns();
    kill(-r->pid, SIGSTOP);
    r->held = true;
    if (stands_still(r)) {
        kli_debug("%s runner %d: held after %.3f ms", r->backend->name, (int)r->pid,
                  (double)(kli_now_ns() - start) * 1e-6);
        return true;
    }
    kli_runner_go_on(r);
    return false;
}

void kli_runner_go_on(kl_runner *r) {
    KL_ASSERT(!r->held || !r->ready);
    if (r->held && r->pid > 0) kill(-r->pid, SIGCONT);
    r->held = false;
}

kl_err kli_runner_await(kl_runner *r, kl_error *e) {
    kl_fault fault;
    kli_runner_go_on(r);
    kl_err code = kli_runner_usable(r, &fault, e);
    if (!code && !r->ready) code = await_ready(r, e);
    return code || !r->ahead ? code : await_ahead(r, e);
}

kl_err kli_runner_place(kl_runner *r, int cpu, int threads, kl_error *e) {
    if (threads < 1 || threads > 4096)
        return kl_fail(e, KL_EINVAL, r->backend->name, "%d threads are not possible", threads);
    if (cpu != r->opts.cpu) r->handshake_ns = r->handshake_sleep_ns = -1;
    r->opts.cpu = cpu;
    r->opts.threads = threads;
    return KL_OK;
}

/* ---- load, bind -------------------------------------------------------------------------- */

/* A sealed copy in memory: what runs is what was inspected, whatever happens to the cache in
 * between. */
static kl_err open_artefact(kl_runner *r, const kl_artefact *artefact, kl_error *e) {
    kl_str bytes;
    if (r->artefact_fd >= 0 && strcmp(r->artefact_hash, artefact->hash) == 0) return KL_OK;
    if (r->artefact_fd >= 0) close(r->artefact_fd);
    r->artefact_fd = -1;
    kl_arena *a = kl_arena_new();
    kl_err code = kli_fs_read(&bytes, a, artefact->path.ptr, (size_t)1 << 30, e);
    if (!code && strcmp(kli_hash_of(bytes).hex, artefact->hash) != 0)
        code = kl_fail(e, KL_EIO, artefact->path.ptr,
                       "the file in the compile cache is not what was compiled");
    int fd = code ? -1 : memfd_create("artefact", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    for (size_t done = 0; !code && done < bytes.len;) {
        ssize_t n = fd < 0 ? -1 : write(fd, bytes.ptr + done, bytes.len - done);
        if (n < 0) code = kl_fail(e, KL_EIO, "artefact", "no memory for it: %s", strerror(errno));
        if (n > 0) done += (size_t)n;
    }
    kl_arena_free(a);
    if (code) {
        if (fd >= 0) close(fd);
        return code;
    }
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    r->artefact_fd = fd;
    snprintf(r->artefact_hash, sizeof r->artefact_hash, "%s", artefact->hash);
    return KL_OK;
}

/* PoCL fixes its threads when it starts, and compiles for a shape before the filter closes: another
 * shape is another process.  Its cache stays, so that what was compiled once is not compiled again.
 */
static kl_err restart_for_shape(kl_runner *r, const kl_artefact *artefact, const kl_plan *plan,
                                kl_error *e) {
    if (r->opts.backend != KL_BACKEND_OPENCL || !r->loaded_threads) return KL_OK;
    if (r->loaded_threads == r->opts.threads && strcmp(r->artefact_hash, artefact->hash) == 0 &&
        memcmp(&r->plan, plan, sizeof *plan) == 0)
        return KL_OK;
    kli_runner_kill(r);
    close(r->socket);
    r->socket = -1;
    r->loaded_threads = 0;
    return kli_runner_spawn(r, e);
}

/* A shared object that lies in the runner as it was asked for need not be opened again: binding
 * other pages is enough. */
static bool is_loaded(const kl_runner *r, const kl_artefact *artefact, const kl_plan *plan) {
    return r->backend->id == KL_BACKEND_CPU && r->loaded && r->loaded_cpu == r->opts.cpu &&
           r->loaded_threads == r->opts.threads && strcmp(r->artefact_hash, artefact->hash) == 0 &&
           memcmp(&r->plan, plan, sizeof *plan) == 0;
}

static kl_msg_load *load_message(const kl_runner *r, const kl_artefact *artefact,
                                 const kl_plan *plan) {
    kl_msg_load *m = calloc(1, sizeof *m);
    if (!m) kl_oom(sizeof *m);
    *m = (kl_msg_load){.head = {KL_MSG_LOAD, KL_WIRE_VERSION},
                       .artefact_kind = artefact->kind,
                       .trusted = r->opts.trusted,
                       .cpu = r->opts.cpu,
                       .threads = r->opts.threads,
                       .plan = *plan};
    return m;
}

void kli_runner_load_ahead(kl_runner *r, const kl_artefact *artefact, const kl_plan *plan) {
    KL_ASSERT(r->opts.trusted && !r->backend->shared_memory);
    if (r->pid <= 0 || r->loaded || r->ahead || r->ended_ahead ||
        open_artefact(r, artefact, kl_ignored()))
        return;
    kl_msg_load *m = load_message(r, artefact, plan);
    r->ahead = !kli_runner_send(r, m, sizeof *m, &r->artefact_fd, 1, kl_ignored());
    free(m);
}

kl_err kli_runner_load(kl_runner *r, kl_fault *fault, kl_resources *resources,
                       const kl_artefact *artefact, const kl_plan *plan, kl_error *e) {
    kl_err code = kli_runner_usable(r, fault, e);
    if (!code && is_loaded(r, artefact, plan)) return KL_OK;
    if (!code) code = restart_for_shape(r, artefact, plan, e);
    if (!code) code = kli_runner_await(r, e);
    if (!code) code = open_artefact(r, artefact, e);
    if (code) return code;
    kl_msg_load *m = load_message(r, artefact, plan);
    code = kli_runner_ask(
        r, fault, &(kli_request){m, sizeof *m, &r->artefact_fd, 1, KL_MSG_LOADED, LOAD_NS}, e);
    free(m);
    r->loaded = !code && !fault->kind;
    r->bound = false;
    if (!r->loaded) return code;
    r->plan = *plan;
    r->loaded_threads = r->opts.threads;
    r->loaded_cpu = r->opts.cpu;
    for (uint32_t i = 0; i < plan->n_launches && resources; i++)
        resources[i] = i < r->reply.n_resources ? r->reply.resources[i] : (kl_resources){0};
    if (r->reply.text[0]) runner_note_text(r);
    return KL_OK;
}

static kl_err open_control(kl_runner *r, kl_error *e) {
    if (r->control) return KL_OK;
    r->control_fd = kli_memory_make("control", sizeof *r->control);
    void *p = r->control_fd < 0 ? MAP_FAILED
                                : mmap(NULL, sizeof *r->control, PROT_READ | PROT_WRITE, MAP_SHARED,
                                       r->control_fd, 0);
    if (p == MAP_FAILED)
        return kl_fail(e, KL_EIO, "shared memory", "no control page: %s", strerror(errno));
    r->control = p;
    return KL_OK;
}

/* Scratch is this plan's own; tensors must lie where the gate put them. */
static kl_err adopt_layout(kl_runner *r, const kl_memory *m, kl_error *e) {
    kl_err code = kli_layout_make(&r->layout, &r->plan, m->layout.n_sets, m->layout.n_slots, e);
    if (code) return code;
    if (r->layout.set_bytes != m->layout.set_bytes ||
        r->layout.slot_bytes != m->layout.slot_bytes ||
        memcmp(r->layout.tensor_offset, m->layout.tensor_offset, sizeof m->layout.tensor_offset) !=
            0)
        return kl_fail(e, KL_EINVAL, r->backend->name,
                       "the plan's tensors do not fit the shared pages");
    return KL_OK;
}

kl_err kli_runner_bind(kl_runner *r, kl_fault *fault, const kl_memory *m, kl_error *e) {
    kl_err code = kli_runner_usable(r, fault, e);
    KL_ASSERT(code || r->loaded);
    if (!code) code = adopt_layout(r, m, e);
    if (!code) code = open_control(r, e);
    if (code) return code;
    KL_ASSERT(r->control_fd >= 0 && r->artefact_fd >= 0);
    bool scratch_is_ours = r->backend->shared_memory;
    int scratch = kli_memory_make(
        "scratch", scratch_is_ours ? r->layout.scratch_bytes * r->layout.n_slots : 0);
    if (scratch < 0)
        return kl_fail(e, KL_EIO, "shared memory", "no room for scratch buffers: %s",
                       strerror(errno));
    const int fds[4] = {m->inputs_ro_fd, m->outputs_fd, scratch, r->control_fd};
    const kl_msg_bind message = {.head = {KL_MSG_BIND, KL_WIRE_VERSION}, .layout = r->layout};
    const kli_request q = {&message,           sizeof message, fds,
                           (int)KL_COUNT(fds), KL_MSG_BOUND,   BIND_NS};
    code = kli_runner_ask(r, fault, &q, e);
    close(scratch);
    r->bound = !code && !fault->kind;
    r->stays = r->shares = false;
    if (!r->bound) return code;
    r->memory = *m;
    r->shares = r->reply.has_handle;
    memcpy(r->handle, r->reply.handle, sizeof r->handle);
    if (r->reply.text[0]) runner_note_text(r);
    return KL_OK;
}

/* ---- upload, run, stop ------------------------------------------------------------------- */

kl_err kli_runner_upload(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t n, kl_error *e) {
    kl_err code = kli_runner_usable(r, fault, e);
    KL_ASSERT(code || (r->bound && first < r->layout.n_sets && n <= r->layout.n_sets - first));
    if (code || r->backend->shared_memory) return code;
    const kl_msg_upload m = {{KL_MSG_UPLOAD, KL_WIRE_VERSION}, first, n};
    return runner_ask(r, fault, &m, sizeof m, UPLOAD_NS, e);
}

void kli_runner_slack(kl_runner *r, uint8_t byte) { r->slack = byte; }

const uint64_t *kli_runner_digests(const kl_runner *r, uint32_t calls) {
    return !r->backend->shared_memory && r->control && calls && r->n_digests == calls
               ? r->control->digests
               : NULL;
}

uint64_t kli_runner_blank_digest(const kl_runner *r) {
    return r->backend->shared_memory || !r->control ? 0 : r->control->blank_digest;
}

kl_err kli_runner_audit(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t calls,
                        uint8_t poison, kl_error *e) {
    kl_err code = kli_runner_usable(r, fault, e);
    KL_ASSERT(code || (r->bound && calls <= KL_WIRE_MAX_SAMPLES));
    if (code || r->backend->shared_memory) return code;
    const kl_msg_audit m = {{KL_MSG_AUDIT, KL_WIRE_VERSION}, first, calls, poison};
    return runner_ask(r, fault, &m, sizeof m, UPLOAD_NS, e);
}

kl_err kli_runner_fetch(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                        uint8_t poison, kl_error *e) {
    kl_err code = kli_runner_usable(r, fault, e);
    KL_ASSERT(code || (r->bound && n <= KL_FETCH_SLOTS));
    if (code || r->backend->shared_memory) return code;
    kl_msg_fetch m = {{KL_MSG_FETCH, KL_WIRE_VERSION}, poison, n, false, {0}};
    memcpy(m.slots, slots, n * sizeof *slots);
    return runner_ask(r, fault, &m, sizeof m, UPLOAD_NS, e);
}

kl_err kli_runner_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot, uint8_t poison,
                      int64_t timeout_ns, int64_t *wall_ns, kl_error *e) {
    kl_err code = kli_runner_usable(r, fault, e);
    if (code) return code;
    KL_ASSERT(r->bound && set < r->layout.n_sets && slot < r->layout.n_slots);
    if (r->backend->shared_memory) kli_memory_poison(&r->memory, &r->plan, slot, poison);
    const kl_msg_run m = {{KL_MSG_RUN, KL_WIRE_VERSION}, set, slot, poison, r->slack, r->stays};
    code = runner_ask(r, fault, &m, sizeof m, timeout_ns, e);
    if (wall_ns) *wall_ns = !code && !fault->kind && r->reply.wall_ns > 0 ? r->reply.wall_ns : 0;
    return code;
}

const char *kli_runner_describe(const kl_runner *r) { return r->describe; }

const kl_isolation *kli_runner_isolation(const kl_runner *r) { return &r->isolation; }

static void *reap(void *pid) {
    while (waitpid((pid_t)(intptr_t)pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return NULL;
}

void kli_runner_leave(kl_runner *r) {
    pthread_t thread;
    kli_runner_dismiss(r);
    if (r && r->pid > 0 && !r->backend->shared_memory &&
        pthread_create(&thread, NULL, reap, (void *)(intptr_t)r->pid) == 0) {
        (void)pthread_detach(thread);
        r->pid = -1;
    }
    kli_runner_stop(r);
}

void kli_runner_stop(kl_runner *r) {
    if (!r) return;
    kli_runner_kill(r);
    if (r->socket >= 0) close(r->socket);
    if (r->artefact_fd >= 0) close(r->artefact_fd);
    if (r->control) munmap(r->control, sizeof *r->control);
    if (r->control_fd >= 0) close(r->control_fd);
    if (r->scratch_dir && r->scratch_dir[0]) kli_fs_remove_tree(r->scratch_dir);
    kl_arena_free(r->arena);
}
