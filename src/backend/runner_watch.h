/* runner_watch.h - what the scheduler did to a runner's processes, read from /proc by the gate.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_RUNNER_WATCH_H
#define KL_BACKEND_RUNNER_WATCH_H
#include "backend/backend.h"
#include <sys/types.h>

/* What schedstat says of one thread: for how long it was ready without a core, how often it got
 * one. */
typedef struct {
    int64_t delay_ns, slices;
} kli_schedule;

/* The process that runs the batch of an armed runner, and this thread, before the interval. */
typedef struct {
    int timed, own; /* /proc/.../schedstat, -1: not to be had */
    int cpu;        /* that the batch is pinned to, -1: none */
    pid_t process;
    bool forked;
    int64_t steal_ticks, cpu_before_ns;
    kli_schedule timed_before, own_before;
} kli_watch;

void kli_watch_begin(kli_watch *w, pid_t runner, int cpu);
/* What it means for a sample of `interval_ns`: `spin` when this thread was running all the time and
 * saw the end `late_ns` after it had looked last. */
void kli_watch_end(kli_watch *w, kl_sample *s, int64_t interval_ns, bool spin, int64_t late_ns);
void kli_watch_close(kli_watch *w); /* after begin without end; harmless otherwise */

/* Did a trusted runner that is pinned and runs the calls itself lose too much of the interval, by
 * its own word? */
bool kli_watch_lost(int64_t interval_ns, int64_t lost_ns);

/* What the runner and its children have had so far, for telling a kernel that runs from one that
 * waits. */
typedef struct {
    int64_t cpu_ns;   /* user and system time */
    int64_t delay_ns; /* ready to run, and not running */
    bool asleep;      /* all of them wait for something else than a core or a disk */
    bool known;       /* false: /proc does not say */
} kli_progress;

kli_progress kli_watch_progress(pid_t runner);

#endif
