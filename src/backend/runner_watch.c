/* runner_watch.c - was the core of a sample its own? the scheduler's word, never the sample's
 * value.
 *
 *   armed ............. go ==== calls ==== done ............ exit
 *     schedstat before   |    interval       |  schedstat after       of the process that runs the
 * calls, and of this thread
 *
 * The second number of schedstat is the time that a thread was ready and had no core: it grows only
 * when somebody else had it.  A forked child that is pinned has one thread, and its number says it
 * all.  In a runner that is pinned and runs the calls itself, a library's threads share the core:
 * what all of them did not use of the interval was somebody else's.  Asked from outside, the clock
 * of a process may stand still between two ticks, so a trusted runner's own word goes before it
 * (kli_watch_lost).  Several threads on several
 * cores wait for each other: they sleep, and a woken one is ready for some microseconds before it
 * runs, so that much is its own for each time that it got a core. A hypervisor that takes the core
 * away shows as steal in /proc/stat, in ticks of 10 ms.  All are the kernel's counts, outside the
 * reach of the code that is timed.  After "done" the process still has to end and to be reaped, so
 * the second reading finds it; where it does not, this thread came late, which is as much of a
 * reason. Not here: what becomes of such a sample (gate/benchmark.c).  SPDX-License-Identifier:
 * Apache-2.0 */
#include "runner_watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CHILDREN = 64 };

static const double RUNNER_WATCH_SHARE =
    0.005; /* of an interval: what is shorter does not show in half a percent */
static const int64_t SHORTEST_NS = 2000; /* a fault of this thread's own cache costs as much */
static const int64_t WAKE_NS = 100000; /* from woken to running on a core that is free, at most; who
                                          loses a core waits for milliseconds */

/* ---- reading ----------------------------------------------------------------------------- */

static size_t runner_watch_read_text(int fd, char *text, size_t room) {
    ssize_t n = fd < 0 ? -1 : pread(fd, text, room - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static size_t runner_watch_read_file(const char *path, char *text, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = runner_watch_read_text(fd, text, room);
    if (fd >= 0) close(fd);
    return n;
}

/* "cpu_ns delay_ns slices"; the delay is -1 when it cannot be read. */
static kli_schedule schedule_of(int fd) {
    char text[96];
    long long cpu, delay, slices;
    if (!runner_watch_read_text(fd, text, sizeof text) ||
        sscanf(text, "%lld %lld %lld", &cpu, &delay, &slices) != 3)
        return (kli_schedule){-1, 0};
    return (kli_schedule){delay, slices};
}

/* Ticks of one core that a hypervisor gave to others: the eighth number of its line.  0 for a batch
 * on no core of its own, where the ticks of all cores would say nothing about it. */
static int64_t steal_ticks(int cpu) {
    static _Thread_local char text[32 << 10];
    char name[24];
    long long t[8];
    snprintf(name, sizeof name, "\ncpu%d ", cpu);
    if (cpu < 0 || !runner_watch_read_file("/proc/stat", text, sizeof text)) return 0;
    const char *line = strstr(text, name);
    int n = line ? sscanf(line + strlen(name), "%lld %lld %lld %lld %lld %lld %lld %lld", &t[0],
                          &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
                 : 0;
    return n == 8 ? t[7] : 0;
}

/* Of all threads of a process, at the last tick or switch of each at least; -1: it is gone. */
static int64_t cpu_ns_of(pid_t process) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &t)) return -1;
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int children_of(pid_t runner, pid_t *out) {
    char path[64], text[MAX_CHILDREN * 8];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", runner, runner);
    if (!runner_watch_read_file(path, text, sizeof text)) return 0;
    for (char *at = text, *end; n < MAX_CHILDREN; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at) break;
        out[n++] = (pid_t)pid;
    }
    return n;
}

static int open_schedstat(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* ---- one sample -------------------------------------------------------------------------- */

void kli_watch_begin(kli_watch *w, pid_t runner, int cpu) {
    pid_t child[MAX_CHILDREN];
    int n = children_of(runner, child);
    *w = (kli_watch){.process = n ? child[n - 1] : runner,
                     .forked = n > 0,
                     .cpu = cpu,
                     .own = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
    w->timed = open_schedstat(w->process);
    w->steal_ticks = steal_ticks(cpu);
    w->own_before = schedule_of(w->own);
    w->timed_before = schedule_of(w->timed);
    w->cpu_before_ns = cpu_ns_of(w->process);
}

void kli_watch_close(kli_watch *w) {
    if (w->timed >= 0) close(w->timed);
    if (w->own >= 0) close(w->own);
    w->timed = w->own = -1;
}

/* Whoever sleeps by itself, for another thread or for the end, waits a little each time it is
 * woken. */
static bool waited_longer(kli_schedule before, kli_schedule after, int64_t allowed_ns, bool wakes) {
    if (wakes) allowed_ns += WAKE_NS * (after.slices - before.slices + 1);
    return before.delay_ns >= 0 && after.delay_ns >= 0 &&
           after.delay_ns - before.delay_ns > allowed_ns;
}

/* Of one core, what the threads of a process that is pinned to it did not use was somebody else's.
 */
static bool lost_its_core(const kli_watch *w, int64_t interval_ns, int64_t allowed_ns) {
    const int64_t after_ns = cpu_ns_of(w->process);
    return w->cpu_before_ns >= 0 && after_ns >= 0 &&
           interval_ns - (after_ns - w->cpu_before_ns) > allowed_ns;
}

static int64_t allowed_of(int64_t interval_ns) {
    return SHORTEST_NS + (int64_t)(RUNNER_WATCH_SHARE * (double)interval_ns);
}

bool kli_watch_lost(int64_t interval_ns, int64_t lost_ns) {
    return lost_ns > allowed_of(interval_ns);
}

/* A thread that spins and lost its core in the middle has done no harm; one that slept adds its own
 * wait to the interval. */
void kli_watch_end(kli_watch *w, kl_sample *s, int64_t interval_ns, bool spin, int64_t late_ns) {
    const int64_t allowed = allowed_of(interval_ns);
    const bool shared = spin && !w->forked, lost = shared && lost_its_core(w, interval_ns, allowed);
    const kli_schedule timed = schedule_of(w->timed), own = schedule_of(w->own);
    s->preempted = shared ? lost : waited_longer(w->timed_before, timed, allowed, !spin);
    s->late = spin ? late_ns > allowed : waited_longer(w->own_before, own, allowed, true);
    s->late |= w->timed_before.delay_ns >= 0 &&
               timed.delay_ns <
                   0; /* the process is gone already: this thread lost its core behind "done" */
    s->stolen = steal_ticks(w->cpu) > w->steal_ticks;
    kli_watch_close(w);
}

/* ---- progress ---------------------------------------------------------------------------- */

/* Fields 3 (state), 14 to 17 (user and system time of itself and of the children it reaped), behind
 * a name that may hold anything. */
static bool add_stat(kli_progress *p, pid_t pid) {
    char path[64], text[1024], state;
    long long t[4];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!runner_watch_read_file(path, text, sizeof text)) return false;
    const char *behind = strrchr(text, ')');
    if (!behind ||
        sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld",
               &state, &t[0], &t[1], &t[2], &t[3]) != 5)
        return false;
    const int64_t tick_ns = 1000000000ll / sysconf(_SC_CLK_TCK);
    p->cpu_ns += (t[0] + t[1] + t[2] + t[3]) * tick_ns;
    p->asleep &= state != 'R' && state != 'D';
    int fd = open_schedstat(pid);
    const int64_t delay = schedule_of(fd).delay_ns;
    if (fd >= 0) close(fd);
    p->delay_ns += delay > 0 ? delay : 0;
    return true;
}

kli_progress kli_watch_progress(pid_t runner) {
    pid_t child[MAX_CHILDREN];
    kli_progress p = {.asleep = true};
    const int n = children_of(runner, child);
    p.known = add_stat(&p, runner);
    for (int i = 0; i < n; i++) (void)add_stat(&p, child[i]);
    return p;
}
