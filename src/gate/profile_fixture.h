/* profile_fixture.h - a comparison without a device: a clock that is made up, so that order,
 * pairing and the stop rule can be seen.  For profile_test.c and rounds_test.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_GATE_PROFILE_FIXTURE_H
#define KL_GATE_PROFILE_FIXTURE_H
#include "base/test.h"

#include "base/fs.h"
#include "benchmark_impl.h"

#include <math.h>
#include <stdlib.h>

/* ---- a made-up runner: the linker puts it in the place of the real one ------------------- */

__typeof__(kli_runner_audit) __wrap_kli_runner_audit;
__typeof__(kli_runner_fetch) __wrap_kli_runner_fetch;
__typeof__(kli_runner_time) __wrap_kli_runner_time;
__typeof__(kli_runner_describe) __wrap_kli_runner_describe;
__typeof__(kli_runner_digests) __wrap_kli_runner_digests;
__typeof__(kli_runner_blank_digest) __wrap_kli_runner_blank_digest;
__typeof__(kli_runner_sample) __wrap_kli_runner_sample;
__typeof__(kli_runner_handshake_ns) __wrap_kli_runner_handshake_ns;
__typeof__(kli_executable_stop) __wrap_kli_executable_stop;
__typeof__(kli_executable_restart) __wrap_kli_executable_restart;
__typeof__(kli_executable_enter) __wrap_kli_executable_enter;

enum { MAX_SAMPLES = 40000 };

struct kl_runner {
    double true_ns;              /* of one call */
    double noise;                /* relative, uniform */
    kl_fault_kind fault, damage; /* of a sample; found when its batch is over */
    int stopped, restarted;
    const double *lives;   /* times as slow, in each of its processes after the first; NULL: 1 */
    int disturbed_in;      /* of eight samples */
    double when_disturbed; /* times as slow */
    double handshake_share;
    double gains; /* of its time, as the second of a pair */
    kl_sample sample;
    bool digests; /* it is a device that gives them */
    bool ahead;   /* in batches that end early it fills a slot of no call */
};

typedef struct {
    const kl_runner *runner;
    kl_time_request request;
    uint32_t audited, fetched; /* calls and slots, when it was over */
} sample_seen;

static sample_seen seen[MAX_SAMPLES];
static int n_seen;
static sample_seen shorts[64]; /* batches that ended early */
static int shorts_after[64];   /* samples seen before each */
static int n_shorts;
static sample_seen *last_seen;
static kli_problem *pages_of; /* shared pages that the made-up kernel works in; NULL: a device */
static double drift;          /* per sample, relative: a machine that warms up */

static void fill_slot(uint32_t slot, uint8_t value) {
    memset(kli_memory_output(&pages_of->memory, &pages_of->plan, 0, slot % pages_of->n_slots),
           value, 64);
}

static void work_in_pages(const kl_runner *r, const kl_time_request *q) {
    if (!pages_of) return;
    for (uint32_t j = 0; j < q->calls; j++) fill_slot(q->first + j, 7);
    if (r->ahead && q->alone) fill_slot(q->first + q->calls, 7);
}

kl_err __wrap_kli_runner_time(kl_runner *r, kl_fault *fault, double *ns, const kl_time_request *q,
                              int64_t timeout_ns, kl_error *e) {
    (void)timeout_ns, (void)e;
    *fault = (kl_fault){.kind = r->fault};
    if (r->fault) return KL_OK;
    work_in_pages(r, q);
    if (q->alone) {
        assert_true(n_shorts < 64);
        shorts_after[n_shorts] = n_seen;
        last_seen = &shorts[n_shorts++];
        *last_seen = (sample_seen){.runner = r, .request = *q};
        ns[0] = 1e9; /* were it a sample, it would show */
        return KL_OK;
    }
    assert_true(n_seen < MAX_SAMPLES);
    const double luck = kli_stream_uniform(kli_stream_of(1, "luck"), (uint64_t)n_seen) - 0.5;
    last_seen = &seen[n_seen];
    *last_seen = (sample_seen){.runner = r, .request = *q};
    r->sample =
        (kl_sample){.preempted = (int)kli_stream_below(kli_stream_of(2, "switch"), (uint64_t)n_seen,
                                                       8) < r->disturbed_in,
                    .handshake_share = r->handshake_share};
    const double life = r->lives && r->restarted ? r->lives[r->restarted - 1] : 1;
    ns[0] = life * r->true_ns * (1 + r->noise * luck) * (1 + drift * n_seen);
    if (n_seen % 2) ns[0] *= 1 - r->gains;
    if (r->sample.preempted) ns[0] *= r->when_disturbed;
    for (uint32_t i = 1; q->method == KL_TIME_EVENTS && i < q->calls; i++) ns[i] = ns[0];
    n_seen++;
    return KL_OK;
}

kl_err __wrap_kli_runner_audit(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t calls,
                               uint8_t poison, kl_error *e) {
    (void)e;
    assert_ptr_equal(r, last_seen->runner);
    assert_int_equal(first, last_seen->request.first);
    assert_int_equal(calls, last_seen->request.calls);
    assert_int_equal(poison, last_seen->request.poison);
    *fault = (kl_fault){.kind = r->damage};
    last_seen->audited = calls;
    return KL_OK;
}

kl_err __wrap_kli_runner_fetch(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                               uint8_t poison, kl_error *e) {
    (void)slots, (void)poison, (void)e;
    assert_ptr_equal(r, last_seen->runner);
    *fault = (kl_fault){0};
    last_seen->fetched += n;
    return KL_OK;
}

kl_sample __wrap_kli_runner_sample(const kl_runner *r) { return r->sample; }

double __wrap_kli_runner_handshake_ns(const kl_runner *r) { return (void)r, 300; }

const char *__wrap_kli_runner_describe(const kl_runner *r) { return (void)r, "made up"; }

uint64_t __wrap_kli_runner_blank_digest(const kl_runner *r) { return (void)r, 0; }
const uint64_t *__wrap_kli_runner_digests(const kl_runner *r, uint32_t calls) {
    static const uint64_t SAME[64];
    assert_true(calls <= KL_COUNT(SAME));
    return r->digests ? SAME : NULL;
}

void __wrap_kli_executable_stop(kli_executable *a) {
    if (a->runner) a->runner->stopped++;
    a->runner = NULL;
}

kl_err __wrap_kli_executable_restart(kli_executable *a, kli_evaluation *c, kl_error *e) {
    (void)c, (void)e;
    a->runner->restarted++;
    return KL_OK;
}

kl_err __wrap_kli_executable_enter(kli_executable *a, kli_problem *s, kli_evaluation *c,
                                   uint32_t first, uint32_t n, kl_fault *fault, kl_error *e) {
    (void)a, (void)s, (void)c, (void)first, (void)n, (void)e;
    *fault = (kl_fault){0};
    return KL_OK;
}

/* A device backend without an oracle: checking a batch and renewing pages have nothing to do. */
static const kl_backend DEVICE = {.on = KL_ON_GPU};

typedef struct {
    kli_evaluation c;
    kli_problem problem;
    kl_gate_opts opts;
    kl_verdict verdict;
    kl_runner fast, slow;
    kli_executable baseline;
    kli_check_outcome checked;
    kl_comparison result;
    bool stable;
} world;

static void world_open(world *w, double candidate_ns, double baseline_ns, double noise) {
    *w = (world){.fast = {.true_ns = candidate_ns, .noise = noise},
                 .slow = {.true_ns = baseline_ns, .noise = noise},
                 .checked = {.ok = true}};
    w->c = (kli_evaluation){.arena = kl_arena_new(),
                            .opts = &w->opts,
                            .verdict = &w->verdict,
                            .backend = &DEVICE,
                            .schedule = kli_stream_of(3, "gate")};
    w->c.candidate = (kli_executable){.name = KL_S("candidate"), .runner = &w->fast};
    w->baseline = (kli_executable){.name = KL_S("base"), .runner = &w->slow, .trusted = true};
    w->problem =
        (kli_problem){.n_sets = 3, .n_slots = 5, .pages_seen = true, .plan = {.n_tensors = 0}};
    n_seen = n_shorts = 0;
    pages_of = NULL;
    drift = 0;
}

static kl_err run_benchmark(world *w, kli_benchmark *r, kl_error *e) {
    *r = kli_benchmark_new(&w->c, &w->problem, &w->baseline, KL_TIME_GRAPH);
    r->candidate.calls = r->baseline.calls = 4;
    r->candidate.estimate_ns = w->fast.true_ns;
    r->baseline.estimate_ns = w->slow.true_ns;
    kl_err err = kli_benchmark_run(r, &w->stable, &w->checked, e);
    if (!err && w->checked.ok) kli_benchmark_conclude(r, &w->result, w->stable);
    return err;
}

static void world_close(world *w) { kl_arena_free(w->c.arena); }

#endif
