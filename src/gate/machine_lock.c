/* machine_lock.c - gates on one machine take turns on what they share: their cores, or a GPU.
 *
 *   core-N       one file for each core that a gate may run on (taskset, cpuset): shared while it
 * compiles and checks, since a compiler and an oracle use all of them; exclusive while it times on
 * the CPU, where the kernel needs one and the clock another gpu-N        shared while it checks,
 * exclusive while it times there; the cores are then free for others
 *   *.turnstile  of the first core, of the GPU: everybody passes it one at a time, and who waits
 * stands in it, so that nobody is starved
 *
 * Gates without a place in common never wait for each other.  A file says who has it and since
 * when, so that waiting can be shown.  Nobody waits for one holder longer than
 * KL_MACHINE_LOCK_SECONDS: then the gate goes on, says so, and its A/A noise tells what that did.
 * The locks end with their process.  Files lie where every gate of the user finds them, whatever
 * its cache is. Not here: other programs; the scheduler's word on every sample shows those
 * (benchmark.c).  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef KL_MACHINE_LOCK_DIR
#define KL_MACHINE_LOCK_DIR "/tmp" /* not $TMPDIR, which differs from shell to shell */
#endif

static const int64_t MACHINE_LOCK_SECOND = 1000000000;
static const int64_t MACHINE_LOCK_POLL_NS = 20000000;
static const int64_t SAY_NS =
    10000000000; /* to a file: a line after so long, and another after every minute */

/* ---- places ------------------------------------------------------------------------------ */

/* A file of somebody else, or a link, is not ours to lock. */
static int machine_lock_open_own(const char *what) {
    char path[160];
    struct stat s;
    snprintf(path, sizeof path, KL_MACHINE_LOCK_DIR "/klineage-%u.%s", (unsigned)getuid(), what);
    const int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && (fstat(fd, &s) || s.st_uid != getuid() || !S_ISREG(s.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The first device that CUDA would see, as far as a file's name can say it. */
static void gpu_name(char *out, size_t room) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    size_t n = (size_t)snprintf(out, room, "gpu-");
    for (const char *p = visible && *visible ? visible : "0"; *p && *p != ',' && n + 1 < room; p++)
        if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
            *p == '-')
            out[n++] = *p;
    out[n] = '\0';
}

static void add_place(kli_machine_lock_set *r, const char *name) {
    char beside[80];
    snprintf(beside, sizeof beside, "%s.turnstile", name);
    if (r->n == 0) r->turnstile = machine_lock_open_own(beside);
    KL_ASSERT(r->n < KL_MACHINE_LOCK_CORES);
    r->places[r->n++] = machine_lock_open_own(name);
}

void kli_machine_lock_open(kli_machine_lock *t, const char *what, bool on_gpu) {
    char name[64];
    cpu_set_t set;
    bool wanted[KL_MACHINE_LOCK_CORES] = {0};
    *t = (kli_machine_lock){.limit_ns = KL_MACHINE_LOCK_SECONDS * MACHINE_LOCK_SECOND};
    snprintf(t->what, sizeof t->what, "%s", what);
    if (sched_getaffinity(0, sizeof set, &set)) CPU_ZERO(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &set))
            wanted[cpu % KL_MACHINE_LOCK_CORES] =
                true; /* above that, cores share a file: rather wait than disturb */
    for (int i = 0; i < KL_MACHINE_LOCK_CORES; i++) {
        snprintf(name, sizeof name, "core-%d", i);
        if (wanted[i]) add_place(&t->cores, name);
    }
    gpu_name(name, sizeof name);
    if (on_gpu) add_place(&t->gpu, name);
}

/* ---- who has it -------------------------------------------------------------------------- */

static void sign(int fd, const char *what) {
    char text[96];
    const int n =
        snprintf(text, sizeof text, "%ld %lld %s\n", (long)getpid(), (long long)time(NULL), what);
    if (pwrite(fd, text, (size_t)n, 0) == n) (void)!ftruncate(fd, n);
}

/* "PID 12 (gate gemm), since 3 s"; false when whoever signed is gone. */
static bool read_holder(int fd, kli_machine_lock *t, pid_t *pid) {
    char text[96], what[64] = "";
    long who;
    long long since;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    *pid = 0;
    snprintf(t->holder, sizeof t->holder, "another gate");
    if (sscanf(text, "%ld %lld %63[^\n]", &who, &since, what) != 3 || who == (long)getpid())
        return false;
    if (kill((pid_t)who, 0) && errno == ESRCH) return false;
    for (char *p = what; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = ' ';
    *pid = (pid_t)who;
    snprintf(t->holder, sizeof t->holder, "PID %ld (%s), since %lld s", who, what,
             (long long)time(NULL) - since);
    return true;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static void machine_lock_show_waiting(kli_machine_lock *t, int64_t waited_ns) {
    char text[200];
    if (waited_ns < t->shown_ns + (t->shown_ns ? MACHINE_LOCK_SECOND : MACHINE_LOCK_SECOND / 2))
        return;
    t->shown_ns = waited_ns;
    snprintf(text, sizeof text, "waiting for %s", t->holder);
    if (t->progress) t->progress(t->progress_ctx, KL_STAGE_PROFILE, text);
    if (isatty(STDERR_FILENO) || waited_ns < t->said_ns + (t->said_ns ? 6 * SAY_NS : SAY_NS))
        return;
    t->said_ns = waited_ns;
    kli_say("klineage: %s", text);
}

/* Take one lock, however long its holders change; false when one of them kept it too long, or the
 * user wants to stop. */
static bool lock(kli_machine_lock *t, int fd, int how) {
    const int64_t begin = kli_now_ns();
    int64_t since = begin;
    pid_t last = 0, holder;
    KL_ASSERT(fd >= 0 && t->limit_ns > 0);
    t->shown_ns = t->said_ns = 0;
    while (flock(fd, how | LOCK_NB)) {
        const int64_t now = kli_now_ns();
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        (void)read_holder(fd, t, &holder);
        if (holder != last) since = now;
        last = holder;
        if (now - since > t->limit_ns || now - begin > KL_MACHINE_LOCK_LONGEST * t->limit_ns ||
            kli_interrupted())
            return false;
        machine_lock_show_waiting(t, now - begin);
        nanosleep(&(struct timespec){.tv_nsec = MACHINE_LOCK_POLL_NS}, NULL);
    }
    sign(fd, t->what);
    return true;
}

static void machine_lock_release(kli_machine_lock_set *r) {
    for (int i = 0; i < r->n; i++) (void)flock(r->places[i], LOCK_UN);
}

static bool machine_lock_usable(const kli_machine_lock_set *r) {
    bool ok = r->n > 0 && r->turnstile >= 0;
    for (int i = 0; i < r->n; i++) ok = ok && r->places[i] >= 0;
    return ok;
}

/* Pass the turnstile, take the places in order, so that two who want some of them never wait for
 * each other. */
static kl_machine_lock_state machine_lock_take(kli_machine_lock *t, kli_machine_lock_set *r,
                                               int how) {
    if (!machine_lock_usable(r)) return KL_MACHINE_LOCK_NO_LOCK;
    bool taken = lock(t, r->turnstile, LOCK_EX);
    for (int i = 0; taken && i < r->n; i++) taken = lock(t, r->places[i], how);
    (void)flock(r->turnstile, LOCK_UN);
    if (taken) return KL_MACHINE_LOCK_TAKEN;
    machine_lock_release(r);
    return KL_MACHINE_LOCK_TOO_LONG;
}

void kli_machine_lock_release(kli_machine_lock *t) {
    machine_lock_release(&t->cores);
    machine_lock_release(&t->gpu);
}

/* What is held is given up first, so nobody waits for himself. */
kl_machine_lock_state kli_machine_lock_shared(kli_machine_lock *t) {
    kli_machine_lock_release(t);
    const kl_machine_lock_state state = machine_lock_take(t, &t->cores, LOCK_SH);
    return state || t->gpu.n == 0 ? state : machine_lock_take(t, &t->gpu, LOCK_SH);
}

kl_machine_lock_state kli_machine_lock_exclusive(kli_machine_lock *t) {
    kli_machine_lock_release(t);
    return machine_lock_take(t, t->gpu.n ? &t->gpu : &t->cores, LOCK_EX);
}

static void close_room(kli_machine_lock_set *r) {
    for (int i = 0; i < r->n; i++)
        if (r->places[i] >= 0) close(r->places[i]);
    if (r->n && r->turnstile >= 0) close(r->turnstile);
}

void kli_machine_lock_close(kli_machine_lock *t) {
    close_room(&t->cores);
    close_room(&t->gpu);
    *t = (kli_machine_lock){0};
}
