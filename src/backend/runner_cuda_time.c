/* runner_cuda_time.c - how long does one call take?  Device events, by one of two methods:
 *
 *   EVENTS  per call:  wait | reset, poison | flush 2 x L2, several times | event, launches, event
 *           The flushes run for a quarter of a millisecond, so that all launches of the call are
 *           queued before the first begins, and that the device is as busy before it as before a
 *           call of anybody else, however long its host took: neither is in the interval.
 *   GRAPH   once:      reset, poison every slot | a wait on the device | event, graph of all calls,
 *           event.  For kernels of a few microseconds, where two events around one launch would
 *           measure mostly themselves.
 *
 * Poison, restore and reset are on the stream before the first event, never between the two.  Each
 * call has its own output slot and the next input set, and what a batch left is looked at when it
 * is over (runner_cuda_audit.c), so that skipped work shows.  wall_ns is the host's clock around
 * what the events measured; events that claim more time than passed, or none, are a fault.
 *
 * A call writes its own slot, while it is made.  EVENTS: what lies in a slot right after its call
 * must lie there at the end.  GRAPH: where the gate asks for it (short batches), slots of no call
 * must not change.
 *
 * Not here: locking clocks, statistics, deciding how many calls make a sample (the gate does).
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_cuda.h"
#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUG_NS 40000u    /* longer than it takes to launch a graph ... */
#define PLUG_NODE_NS 300u /* ... of so many nodes */
#define PLUG_MOST_NS 2000000u
#define PLUG_FILLS 16          /* where no kernel of ours can wait: fills of about 2 us each ... */
#define PLUG_BYTES (64u << 10) /* ... too small to change the cache */
#define LAUNCHES_PER_FLUSH                                                                         \
    8 /* a flush takes about 35 us on an H200, a launch costs the host 2 to 4 us */

static uint32_t call_set(const kli_runner_ctx *c, uint32_t call) { return call % c->layout.n_sets; }
static uint32_t call_slot(const kli_runner_ctx *c, uint32_t call) {
    return call % c->layout.n_slots;
}

/* ---- events ------------------------------------------------------------------------------ */

static int want_events(kli_runner_ctx *c, uint32_t n) {
    kli_cuda *r = kli_cuda_of(c);
    if (n <= r->n_events) return 0;
    kl_cu_event *grown = realloc(r->events, n * sizeof *grown);
    if (!grown) kl_oom(n * sizeof *grown);
    r->events = grown;
    for (; r->n_events < n; r->n_events++) {
        kl_cu_result error = r->api->event_new(&r->events[r->n_events], 0);
        if (kli_cuda_check(c, error, "creating an event")) return 1;
    }
    return 0;
}

static int record_event(kli_runner_ctx *c, uint32_t event) {
    kli_cuda *r = kli_cuda_of(c);
    return kli_cuda_check(c, r->api->event_record(r->events[event], r->stream),
                          "recording an event");
}

static int elapsed(kli_runner_ctx *c, uint32_t first, double *ns) {
    kli_cuda *r = kli_cuda_of(c);
    float milliseconds = 0;
    kl_cu_result error =
        r->api->event_elapsed(&milliseconds, r->events[first], r->events[first + 1]);
    *ns = (double)milliseconds * 1e6;
    if (kli_cuda_check(c, error, "reading an event")) return 1;
    return *ns > 0 ? 0
                   : kli_fault(c, KL_FAULT_DEVICE, "two events around a call are %g ns apart", *ns);
}

static int await_batch(kli_runner_ctx *c, int64_t begin) {
    kl_cu_result error = kli_cuda_wait(kli_cuda_of(c));
    c->reply->wall_ns = kli_now_ns() - begin;
    return kli_cuda_check(c, error, "a timed batch");
}

/* Untimed calls on the slots after the batch's own, whose scratch must be as the kernel declared
 * it: a lock that nobody released would hang. */
static int enqueue_warm(kli_runner_ctx *c, const kl_msg_time *m) {
    const uint32_t first = m->first + m->calls;
    if (m->warm && kli_cuda_prepare_slots(c, call_slot(c, first), m->warm, (uint8_t)m->poison))
        return 1;
    for (uint32_t call = first; call < first + m->warm; call++)
        if (kli_cuda_enqueue(c, call_set(c, call), call_slot(c, call))) return 1;
    return 0;
}

/* Keeps the stream busy while the host enqueues what is timed, without touching the cache. */
static int plug(kli_runner_ctx *c, uint32_t calls) {
    kli_cuda *r = kli_cuda_of(c);
    const kli_cuda_pages *flush = &r->pages[KLI_CUDA_FLUSH];
    size_t bytes = flush->used < PLUG_BYTES ? flush->used : PLUG_BYTES;
    uint64_t ns =
        PLUG_NS + PLUG_NODE_NS * (uint64_t)calls * (c->plan.n_launches ? c->plan.n_launches : 1);
    void *arguments[] = {&ns};
    kli_cu_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = r->stream};
    kl_cu_result error = KL_CU_OK;
    if (ns > PLUG_MOST_NS) ns = PLUG_MOST_NS;
    if (r->wait) error = r->api->launch(&config, r->wait, arguments, NULL);
    for (int i = 0; !r->wait && !error && i < PLUG_FILLS; i++)
        error = r->api->fill(flush->base, r->flush_byte, bytes, r->stream);
    return kli_cuda_check(c, error, "filling the stream");
}

/* ---- digests ----------------------------------------------------------------------------- */

/* A candidate's outputs alone: what a baseline leaves is nobody's answer. */
static bool takes_digests(const kli_runner_ctx *c) {
    return !c->trusted && kli_cuda_of(c)->digest && c->layout.slot_bytes;
}

/* Read at once: the calls that follow are candidate code, which could look for the words and write
 * them. */
static int digest_call(kli_runner_ctx *c, const kl_msg_time *m, uint32_t j) {
    if (!takes_digests(c)) return 0;
    return kli_cuda_digest_slots(c, call_slot(c, m->first + j), 1, j) ||
           kli_cuda_read_digests(c, &c->control->digests[j], j, 1);
}

static int digest_all(kli_runner_ctx *c, const kl_msg_time *m) {
    if (!takes_digests(c)) return 0;
    if (kli_cuda_digest_slots(c, call_slot(c, m->first), m->calls, 0)) return 1;
    c->reply->n_digests = m->calls;
    return kli_cuda_read_digests(c, c->control->digests, 0, m->calls);
}

/* What a slot looks like that no call has written: so a call that did nothing is told apart from
 * one whose bits are new. */
static int digest_blank(kli_runner_ctx *c) {
    if (!takes_digests(c)) return 0;
    return kli_cuda_digest_slots(c, 0, 1, KL_WIRE_MAX_SAMPLES) ||
           kli_cuda_read_digests(c, &c->control->blank_digest, KL_WIRE_MAX_SAMPLES, 1);
}

/* Slots that were written once, by the last calls: another call must not have changed them later.
 */
static int check_unchanged(kli_runner_ctx *c, const kl_msg_time *m) {
    static uint64_t before[KL_WIRE_MAX_SAMPLES];
    if (!takes_digests(c)) return 0;
    const uint32_t n = m->calls < c->layout.n_slots ? m->calls : c->layout.n_slots,
                   from = m->calls - n;
    memcpy(before, c->control->digests + from, n * sizeof *before);
    if (kli_cuda_digest_slots(c, call_slot(c, m->first + from), n, from) ||
        kli_cuda_read_digests(c, c->control->digests + from, from, n))
        return 1;
    if (memcmp(before, c->control->digests + from, n * sizeof *before) == 0) return 0;
    return kli_fault(c, KL_FAULT_GUARD, "wrote to the output of an earlier call");
}

/* The slots behind those of the batch: a call that works ahead writes there. */
static uint32_t idle_slots(const kli_runner_ctx *c, const kl_msg_time *m) {
    const uint32_t n = m->calls < c->layout.n_slots ? c->layout.n_slots - m->calls : 0;
    return m->alone && takes_digests(c) && n <= KL_WIRE_MAX_SAMPLES ? n : 0;
}

/* Nonzero, with the fault said: a slot of no call is not as it was when `before` was taken. */
static int check_idle(kli_runner_ctx *c, const kl_msg_time *m, const uint64_t *before) {
    static uint64_t now[2 * KL_WIRE_MAX_SAMPLES];
    const uint32_t n = idle_slots(c, m);
    if (!n) return 0;
    if (kli_cuda_digest_idle(c, call_slot(c, m->first + m->calls), n, now)) return 1;
    if (memcmp(before, now, 2 * n * sizeof *now) == 0) return 0;
    return kli_fault(c, KL_FAULT_GUARD, "wrote to the slot of a call that was not made");
}

/* ---- EVENTS ------------------------------------------------------------------------------ */

static int flush_for(kli_runner_ctx *c) {
    for (uint32_t i = 0; i < KL_WIRE_FLUSHES + c->plan.n_launches / LAUNCHES_PER_FLUSH; i++)
        if (kli_cuda_flush(c)) return 1;
    return 0;
}

/* Outputs and scratch of every slot, so that nothing a warm call left anywhere is there when the
 * timed calls begin. */
static int prepare_every_slot(kli_runner_ctx *c, const kl_msg_time *m) {
    return kli_cuda_prepare_slots(c, 0, c->layout.n_slots, (uint8_t)m->poison) || digest_blank(c);
}

/* Begins on a device that is done: of one call's outputs a digest was taken and waited for, of
 * another's not. */
static int event_call(kli_runner_ctx *c, const kl_msg_time *m, uint32_t j) {
    uint32_t call = m->first + j;
    if (kli_cuda_check(c, kli_cuda_wait(kli_cuda_of(c)), "a timed call")) return 1;
    if (kli_cuda_reset(c) || kli_cuda_prepare_slots(c, call_slot(c, call), 1, (uint8_t)m->poison))
        return 1;
    if (m->flush ? flush_for(c) : plug(c, 1)) return 1;
    if (record_event(c, 2 * j) || kli_cuda_enqueue(c, call_set(c, call), call_slot(c, call)))
        return 1;
    return record_event(c, 2 * j + 1) || digest_call(c, m, j);
}

static int runner_cuda_time_events(kli_runner_ctx *c, const kl_msg_time *m) {
    double sum = 0;
    if (want_events(c, 2 * m->calls) || enqueue_warm(c, m) || prepare_every_slot(c, m)) return 1;
    int64_t begin = kli_now_ns();
    for (uint32_t j = 0; j < m->calls; j++)
        if (event_call(c, m, j)) return 1;
    if (await_batch(c, begin)) return 1;
    for (uint32_t j = 0; j < m->calls; j++) {
        double ns = 0;
        if (elapsed(c, 2 * j, &ns)) return 1;
        c->control->samples_ns[j] = ns;
        sum += ns;
    }
    c->reply->n_samples = m->calls;
    c->reply->n_digests = takes_digests(c) ? m->calls : 0;
    if (sum <= (double)c->reply->wall_ns) return check_unchanged(c, m);
    return kli_fault(c, KL_FAULT_DEVICE, "events claim %.0f ns, the host's clock saw %lld", sum,
                     (long long)c->reply->wall_ns);
}

/* ---- GRAPH ------------------------------------------------------------------------------- */

static int enqueue_all(kli_runner_ctx *c, const kl_msg_time *m) {
    for (uint32_t j = 0; j < m->calls; j++)
        if (kli_cuda_enqueue(c, call_set(c, m->first + j), call_slot(c, m->first + j))) return 1;
    return 0;
}

/* A call that is not in the graph would never run, and stale outputs could pass for its work: at
 * least one node per call. */
static int check_nodes(kli_runner_ctx *c, kl_cu_graph graph, uint32_t calls) {
    size_t n = 0;
    kl_cu_result error = kli_cuda_of(c)->api->graph_nodes(graph, NULL, &n);
    if (kli_cuda_check(c, error, "counting the nodes of a graph")) return 1;
    if (n >= calls) return 0;
    return kli_fault(c, KL_FAULT_REFUSED,
                     "%u calls make a graph of %zu nodes: some work is outside the stream", calls,
                     n);
}

static int capture(kli_runner_ctx *c, const kl_msg_time *m, kli_cuda_graph *out) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = r->api->capture_begin(r->stream, KL_CU_CAPTURE_RELAXED);
    if (kli_cuda_check(c, error, "beginning a graph")) return 1;
    int failed = enqueue_all(c, m);
    error = r->api->capture_end(
        r->stream, &out->graph); /* also after a failure: the stream must leave capture mode */
    if (failed) return 1;
    if (kli_cuda_check(c, error, "this cannot be captured in a graph")) return 1;
    if (check_nodes(c, out->graph, m->calls)) return 1;
    error = r->api->graph_instantiate(&out->exec, out->graph, 0);
    if (!error) error = r->api->graph_upload(out->exec, r->stream);
    return kli_cuda_check(c, error, "instantiating a graph of %u calls", m->calls);
}

/* Built once for a place in the rotation and a number of calls, then replayed. */
static int find_graph(kli_runner_ctx *c, const kl_msg_time *m, kl_cu_exec *out) {
    kli_cuda *r = kli_cuda_of(c);
    kli_cuda_graph wanted = {
        .set = call_set(c, m->first), .slot = call_slot(c, m->first), .calls = m->calls};
    for (int i = 0; i < KLI_CUDA_GRAPHS; i++) {
        const kli_cuda_graph *g = &r->graphs[i];
        if (!g->exec || g->set != wanted.set || g->slot != wanted.slot || g->calls != wanted.calls)
            continue;
        *out = g->exec;
        return 0;
    }
    kli_cuda_graph *place = &r->graphs[r->next_graph++ % KLI_CUDA_GRAPHS];
    if (place->exec) {
        (void)r->api->exec_free(place->exec);
        (void)r->api->graph_free(place->graph);
    }
    *place = (kli_cuda_graph){0};
    if (capture(c, m, &wanted)) return 1;
    *place = wanted;
    *out = wanted.exec;
    return 0;
}

static int prepare_all(kli_runner_ctx *c, const kl_msg_time *m) {
    if (kli_cuda_reset(c) || prepare_every_slot(c, m)) return 1;
    if (m->flush && kli_cuda_flush(c)) return 1;
    return plug(c, m->calls);
}

static int time_graph(kli_runner_ctx *c, const kl_msg_time *m) {
    static uint64_t idle[2 * KL_WIRE_MAX_SAMPLES];
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_exec exec = NULL;
    double ns = 0;
    if (want_events(c, 2) || enqueue_warm(c, m)) return 1;
    /* State first: restoring it may load the module again, and graphs hold the old module's
     * kernels. */
    if (r->reload && kli_cuda_reset(c)) return 1;
    bool reload = r->reload;
    r->reload = false;
    int failed = find_graph(c, m, &exec) || prepare_all(c, m);
    r->reload = reload;
    const uint32_t n_idle = idle_slots(c, m);
    if (failed ||
        (n_idle && kli_cuda_digest_idle(c, call_slot(c, m->first + m->calls), n_idle, idle)))
        return 1;
    int64_t begin = kli_now_ns();
    kl_cu_result error = KL_CU_OK;
    failed = record_event(c, 0);
    KL_ASSERT(!r->is_lent);
    r->has_candidate = true;
    if (!failed && (error = r->api->graph_launch(exec, r->stream)))
        failed = kli_cuda_check(c, error, "launching a graph");
    if (failed || record_event(c, 1) || await_batch(c, begin) || elapsed(c, 0, &ns)) return 1;
    c->control->samples_ns[0] = ns / m->calls;
    c->reply->n_samples = 1;
    if (ns <= (double)c->reply->wall_ns) return check_idle(c, m, idle) || digest_all(c, m);
    return kli_fault(c, KL_FAULT_DEVICE, "events claim %.0f ns, the host's clock saw %lld", ns,
                     (long long)c->reply->wall_ns);
}

/* ---- both -------------------------------------------------------------------------------- */

int kli_cuda_time(kli_runner_ctx *c, const kl_msg_time *m) {
    if (m->calls == 0 || m->calls > KL_WIRE_MAX_SAMPLES)
        return kli_fault(c, KL_FAULT_PROTOCOL, "%u timed calls", m->calls);
    for (uint32_t j = 0; j < m->calls + m->warm && j < c->layout.n_sets; j++)
        if (!kli_cuda_of(c)->uploaded[call_set(c, m->first + j)])
            return kli_fault(c, KL_FAULT_PROTOCOL, "input set %u was never uploaded",
                             call_set(c, m->first + j));
    /* Lines that a kernel marked to stay in L2 would survive any flush. */
    (void)kli_cuda_of(c)->api->context_reset_l2();
    return m->method == KL_TIME_EVENTS ? runner_cuda_time_events(c, m)
           : m->method == KL_TIME_GRAPH
               ? time_graph(c, m)
               : kli_fault(c, KL_FAULT_PROTOCOL,
                           "a GPU is timed by events or graphs, not by method %u", m->method);
}
