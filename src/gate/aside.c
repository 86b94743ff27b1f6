/* aside.c - work on a thread of its own beside a verdict: a compiler, a disassembler.
 *
 * It holds its cores like every gate that compiles, so nothing is timed on them meanwhile, and
 * leaves the core of a device's runner.  Its programs end when the verdict does not want it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/log.h"

#include <errno.h>
#include <time.h>

enum { LOOK_SECONDS = 1 }; /* between two looks whether the user wants to stop */

static bool is_unwanted(void *ctx) { return atomic_load(&((kli_aside *)ctx)->unwanted); }

static void *aside_thread(void *ctx) {
    kli_aside *s = ctx;
    const kl_monitor watch = {.cancelled = is_unwanted, .ctx = s};
    kli_machine_lock lock;
    cpu_set_t all;
    (void)kl_monitor_use(&watch);
    kli_leave_core(s->core, &all);
    kli_machine_lock_open(&lock, s->what, false);
    if (s->patience_ns) lock.limit_ns = s->patience_ns;
    if (kli_machine_lock_shared(&lock) == KL_MACHINE_LOCK_TAKEN || !s->patience_ns) s->work(s);
    kli_machine_lock_close(&lock);
    return NULL;
}

bool kli_aside_begin(kli_aside *s) {
    KL_ASSERT(s->work && s->what && !s->running && !atomic_load(&s->unwanted));
    s->running = s->core >= 0 && pthread_create(&s->thread, NULL, aside_thread, s) == 0;
    return s->running;
}

/* The thread has a watch of its own, so this one looks whether the user wants to stop. */
void kli_aside_end(kli_aside *s, bool wanted) {
    struct timespec until;
    atomic_store(&s->unwanted, !wanted);
    while (s->running) {
        if (kli_interrupted()) atomic_store(&s->unwanted, true);
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOOK_SECONDS;
        s->running = pthread_clockjoin_np(s->thread, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT;
    }
}
