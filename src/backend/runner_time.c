/* runner_time.c - one timed sample, by the gate's own clock where that is possible.
 *
 *   gate                        runner
 *   TIME                   ->   warm calls, settle pages
 *                          <-   armed
 *   t0; go                 ->   calls
 *                          <-   done
 *   t1                          exit, reply
 *
 * What is subtracted is the same exchange around no call at all, measured once on each
 * core: the shortest of several, and at most a twentieth of the batch, so that one slow exchange
 * cannot make every batch look short.  Both sides spin when the runner is pinned: this thread then
 * keeps off that core for the exchange.  With several threads they sleep (futex). `freeze` stops
 * the process at t1 and compares the outputs then with the outputs after its end: work that goes on
 * behind "done" is seen.  Whether the batch had its core to itself is asked of the scheduler
 * (runner_watch.c).  Not here: how many samples, which statistic (the gate).
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LEAST_NS 1e-3 /* of a call, and most: the logarithms of ratios stay finite */
#define MOST_NS 1e15
#define HANDSHAKES 15
#define HANDSHAKE_NS 30000000000ll
#define HANDSHAKE_SHARE                                                                            \
    0.05 /* of a batch: batches of some microseconds are mostly exchange, and both sides of a pair \
            have it */
#define SPINS 16 /* between two looks at the clock: below a microsecond */
#define RUNNER_TIME_LOOK_NS                                                                        \
    1000000 /* how often a waiting gate looks whether the runner has ended */

typedef enum { WORD_SET, WORD_REPLY, WORD_LATE } waited;

static void runner_time_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void sleep_on(_Atomic uint32_t *word, uint32_t seen) {
    const struct timespec limit = {.tv_nsec = 2 * RUNNER_TIME_LOOK_NS};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

/* `*unseen_ns`: when the word was last seen not to be set. */
static waited await_word(kl_runner *r, _Atomic uint32_t *word, uint32_t wanted, bool spin,
                         kli_patience *p, int64_t *unseen_ns) {
    int64_t look = *unseen_ns = kli_now_ns();
    look += RUNNER_TIME_LOOK_NS;
    for (uint32_t turns = 1;; turns++) {
        uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen == wanted) return WORD_SET;
        if (spin)
            runner_time_relax();
        else
            sleep_on(word, seen);
        if (spin && turns % SPINS) continue;
        *unseen_ns = kli_now_ns();
        if (*unseen_ns < look) continue;
        look = *unseen_ns + RUNNER_TIME_LOOK_NS;
        if (kli_runner_has_reply(r)) return atomic_load(word) == wanted ? WORD_SET : WORD_REPLY;
        if (kli_patience_look(r, p) || kli_interrupted()) return WORD_LATE;
    }
}

/* This thread off the runner's core; false when it has no other. */
static bool step_aside(int cpu, cpu_set_t *before) {
    cpu_set_t others;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof *before, before) != 0)
        return false;
    others = *before;
    CPU_CLR((size_t)cpu, &others);
    return CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0;
}

static uint64_t hash_slots(const kl_runner *r, const kl_time_request *q) {
    uint64_t all = 0;
    uint32_t n = q->calls < r->layout.n_slots ? q->calls : r->layout.n_slots;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t slot = (q->first + j) % r->layout.n_slots;
        all = all * 0x9E3779B97F4A7C15u +
              kli_hash_bulk(r->memory.outputs + r->layout.slot_bytes * slot, r->layout.slot_bytes);
    }
    return all;
}

static void fault_of_protocol(kl_fault *fault, const char *text) {
    fault->kind = KL_FAULT_PROTOCOL;
    snprintf(fault->text, sizeof fault->text, "%s", text);
}

/* From "armed" to "done", with what the scheduler did meanwhile.  Each look at the clock that came
 * long after the one before it may have missed its moment by as much. */
static waited run_armed(kl_runner *r, int64_t *interval_ns, uint32_t sequence, bool spin,
                        kli_patience *p) {
    kl_control *c = r->control;
    kli_watch watch;
    int64_t unseen;
    kli_watch_begin(&watch, r->pid, r->opts.cpu);
    const int64_t start = kli_now_ns();
    atomic_store_explicit(&c->go, sequence, memory_order_release);
    if (!spin) (void)syscall(SYS_futex, &c->go, FUTEX_WAKE, 1, NULL, NULL, 0);
    const int64_t begun = kli_now_ns();
    const waited how = await_word(r, &c->done, sequence, spin, p, &unseen);
    const int64_t end = kli_now_ns();
    *interval_ns = end - start;
    kli_watch_end(&watch, &r->sample, *interval_ns, spin,
                  end - unseen > begun - start ? end - unseen : begun - start);
    return how;
}

static kl_msg_time message_of(const kl_time_request *q, uint32_t sequence) {
    return (kl_msg_time){.head = {KL_MSG_TIME, KL_WIRE_VERSION},
                         .method = q->method,
                         .first = q->first,
                         .calls = q->calls,
                         .warm = q->warm,
                         .poison = q->poison,
                         .flush = q->flush,
                         .sequence = sequence};
}

/* The exchange itself; the interval is meaningful when no fault was set. */
static kl_err exchange(kl_runner *r, kl_fault *fault, int64_t *interval_ns,
                       const kl_time_request *q, bool spin, int64_t limit_ns, kl_error *e) {
    uint32_t sequence = ++r->sequence;
    kl_control *c = r->control;
    kl_msg_time m = message_of(q, sequence);
    m.spin = spin;
    kli_patience p = kli_patience_for(limit_ns);
    int64_t unseen;
    atomic_store(&c->armed, 0);
    atomic_store(&c->done, 0);
    kl_err code = kli_runner_send(r, &m, sizeof m, NULL, 0, e);
    if (code) return code;
    waited how = await_word(r, &c->armed, sequence, spin, &p, &unseen);
    if (how == WORD_SET) how = run_armed(r, interval_ns, sequence, spin, &p);
    uint64_t frozen = 0;
    bool freeze = q->freeze && how == WORD_SET && r->backend->shared_memory;
    if (freeze) {
        kill(-r->pid, SIGSTOP);
        frozen = hash_slots(r, q);
        kill(-r->pid, SIGCONT);
    }
    code = kli_runner_receive(r, fault, KL_MSG_DONE, &p, e);
    if (code || fault->kind) return code;
    if (spin && r->opts.trusted && r->reply.lost_ns > 0)
        r->sample.preempted = kli_watch_lost(*interval_ns, r->reply.lost_ns);
    if (how != WORD_SET)
        fault_of_protocol(fault, "the batch ended without the handshake");
    else if (freeze && hash_slots(r, q) != frozen)
        fault_of_protocol(fault, "outputs changed after the kernel had said that it was done");
    return KL_OK;
}

/* The shortest: whatever disturbs an exchange makes it longer, and what is subtracted too much
 * makes every kernel too fast. */
static kl_err measure_handshake(kl_runner *r, kl_fault *fault, double *out, bool spin,
                                kl_error *e) {
    /* Of two cores and a cache line, and of no process: the next runner on this core has it too. */
    static _Thread_local struct {
        const kl_backend *backend;
        int cpu;
        double ns;
    } known;
    if (spin && known.backend == r->backend && known.cpu == r->opts.cpu) {
        *out = known.ns;
        return KL_OK;
    }
    const kl_time_request empty = {.method = KL_TIME_BATCH};
    for (int i = 0; i < HANDSHAKES; i++) {
        int64_t interval = 0;
        kl_err code = exchange(r, fault, &interval, &empty, spin, HANDSHAKE_NS, e);
        if (code || fault->kind) return code;
        if (*out < 0 || (double)interval < *out) *out = (double)interval;
    }
    if (spin) known.backend = r->backend, known.cpu = r->opts.cpu, known.ns = *out;
    return KL_OK;
}

/* Nothing is left of an interval that the clock did not see: such a sample is late, and no time at
 * all. */
double kli_runner_net(kl_sample *s, double interval_ns, double handshake_ns) {
    const double most = HANDSHAKE_SHARE * interval_ns;
    s->handshake_share = interval_ns > 0 ? handshake_ns / interval_ns : 1;
    s->late |= !(interval_ns > 0);
    return interval_ns > 0 ? interval_ns - (handshake_ns < most ? handshake_ns : most) : 0;
}

static kl_err runner_time_time_batch(kl_runner *r, kl_fault *fault, double *ns,
                                     const kl_time_request *q, int64_t timeout_ns, kl_error *e) {
    cpu_set_t before;
    bool spin = step_aside(r->opts.cpu, &before);
    double *overhead = spin ? &r->handshake_ns : &r->handshake_sleep_ns;
    int64_t interval = 0;
    kl_err code = *overhead < 0 ? measure_handshake(r, fault, overhead, spin, e) : KL_OK;
    if (!code && !fault->kind) code = exchange(r, fault, &interval, q, spin, timeout_ns, e);
    if (spin) (void)sched_setaffinity(0, sizeof before, &before);
    if (code || fault->kind) return code;
    *ns = kli_runner_net(&r->sample, (double)interval, *overhead) / q->calls;
    return KL_OK;
}

/* Device events: the runner's numbers, bounded and plausible. */
static kl_err runner_time_time_events(kl_runner *r, kl_fault *fault, double *ns,
                                      const kl_time_request *q, int64_t timeout_ns, kl_error *e) {
    kl_msg_time m = message_of(q, ++r->sequence);
    m.alone = q->alone;
    KL_ASSERT(r->control && q->calls <= KL_WIRE_MAX_SAMPLES);
    uint32_t wanted = q->method == KL_TIME_EVENTS ? q->calls : 1;
    const kli_request request = {&m, sizeof m, NULL, 0, KL_MSG_DONE, timeout_ns};
    kl_err code = kli_runner_ask(r, fault, &request, e);
    if (code || fault->kind) return code;
    if (r->reply.n_samples != wanted) {
        fault_of_protocol(fault,
                          "the runner returned another number of samples than it was asked for");
        return KL_OK;
    }
    r->n_digests = r->reply.n_digests;
    memcpy(ns, r->control->samples_ns, wanted * sizeof *ns);
    for (uint32_t i = 0; i < wanted; i++)
        if (!(ns[i] >= LEAST_NS && ns[i] <= MOST_NS))
            fault_of_protocol(fault, "the runner returned a time that cannot be");
    return KL_OK;
}

kl_err kli_runner_time(kl_runner *r, kl_fault *fault, double *ns, const kl_time_request *q,
                       int64_t timeout_ns, kl_error *e) {
    r->sample = (kl_sample){0};
    r->n_digests = 0;
    kl_err code = kli_runner_usable(r, fault, e);
    if (code) return code;
    KL_ASSERT(r->bound && q->calls >= 1);
    if (q->calls > KL_WIRE_MAX_SAMPLES || q->warm > KL_WIRE_MAX_SAMPLES)
        return kl_fail(e, KL_ELIMIT, r->backend->name, "a batch has at most %d calls",
                       KL_WIRE_MAX_SAMPLES);
    return q->method == KL_TIME_BATCH ? runner_time_time_batch(r, fault, ns, q, timeout_ns, e)
                                      : runner_time_time_events(r, fault, ns, q, timeout_ns, e);
}

double kli_runner_handshake_ns(const kl_runner *r) {
    double ns = r->handshake_ns >= 0 ? r->handshake_ns : r->handshake_sleep_ns;
    return ns < 0 ? 0 : ns;
}

kl_sample kli_runner_sample(const kl_runner *r) { return r->sample; }
