/* next.c - what is got ready for the verdict after this one, while this one is made.
 *
 * Its process is started as soon as one is missing; on a large device there are those of a few more
 * verdicts.  They come up, side by side, in whatever time nothing is timed: one that is not up yet
 * stands still while a sample is taken, and nobody waits for it unless it is needed and no other is
 * up.
 *
 * Its task's processes, those of oracle and baseline, likewise, and those of every task that is
 * known to come.
 *
 * Its code is compiled for a device on a thread of its own (aside.c), into the compile cache.
 *
 * Nothing else runs on a device while this verdict is timed there: every process that was started,
 * for it or for another, is up by then and waits for a request, or is held; a context without work
 * takes no turn.  No compiler runs on a
 * core that is timed: the thread holds its cores like every gate that compiles, and a kernel of the
 * CPU is timed by who has all of them alone (machine_lock.c); a device's runner has a core of its
 * own, which the thread leaves.  What it leads to is an entry of the cache and nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/log.h"

enum { MOST_TRUSTED = 3 }; /* processes of a task: oracle, reference, baseline */
static const int64_t PROCESS_OF_BYTES = 2ll << 30;  /* likewise, for tasks that come later */
static const int64_t SPARE_OF_BYTES = 32ll << 30;   /* one for so much of a device's memory */
static const int64_t NEXT_PATIENCE_NS = 1000000000; /* behind a gate that times on these cores */

/* ---- its process ------------------------------------------------------------------------- */

/* A context takes less than 1 GiB; all of them together no part of a device that a kernel would
 * miss. */
static int most_spares(const kli_evaluation *c) {
    const int64_t fit = c->device->limits.memory / SPARE_OF_BYTES;
    return c->backend->shared_memory || fit < 1 ? 1
           : fit < KL_MAX_SPARES                ? (int)fit
                                                : KL_MAX_SPARES;
}

/* As many as this gate has had candidates, so that one verdict more is no reason for four
 * processes. What is wrong is said by the verdict that needs one; this one stands. */
static void start_next(kli_evaluation *c) {
    kl_gate *g = c->gate;
    const kl_backend_id id = c->backend->id;
    const int most = most_spares(c), n = g->n_candidates[id] < most ? g->n_candidates[id] : most;
    if (!c->opts->more_to_come) return;
    while (g->n_spares[id] < n && !kli_gate_start_ahead(g, id, kl_ignored())) {
    }
}

/* Every process that is warm has a context on the device, and a kernel needs what is left of it. */
static bool device_has_room(const kli_evaluation *later) {
    const kl_gate *g = later->gate;
    const int64_t fit = later->backend->shared_memory
                            ? (int64_t)KL_COUNT(g->executables)
                            : later->device->limits.memory / PROCESS_OF_BYTES;
    int64_t n = MOST_TRUSTED;
    for (int i = 0; i < g->n_executables; i++) n += g->executables[i]->runner != NULL;
    return n <= fit;
}

/* Those of a task that comes later, beside this one's: an interpreter and its packages take seconds
 * to come up, one after the other or all at once. */
static void start_trusted(const kli_evaluation *c, const kl_gate_job *j) {
    kl_gate *g = c->gate;
    kl_gate_opts opts = j->opts;
    kl_verdict *unread = KL_NEW(c->arena, kl_verdict);
    kli_evaluation later = {.gate = g,
                            .arena = c->arena,
                            .task = j->task,
                            .kernel = j->kernel,
                            .opts = &opts,
                            .verdict = unread};
    *unread = (kl_verdict){0};
    if (g->n_executables + MOST_TRUSTED > (int)KL_COUNT(g->executables) ||
        kli_evaluation_place(&later, &opts, kl_ignored()) || !device_has_room(&later))
        return; /* one that this verdict uses would have to go, or there is no room beside it */
    (void)!kli_evaluation_start_trusted(&later, kl_ignored());
}

/* Those that `wanted` says are awaited; one that failed goes. */
static void await_spares(kl_gate *g, size_t id, bool (*wanted)(kl_runner *r)) {
    kl_runner **spares = g->spares[id];
    int n = 0;
    for (int i = 0; i < g->n_spares[id]; i++)
        if (wanted(spares[i]) && kli_runner_await(spares[i], kl_ignored()))
            kli_runner_stop(spares[i]);
        else
            spares[n++] = spares[i];
    g->n_spares[id] = n;
}

void kli_next_settle(kl_gate *g, size_t id) { await_spares(g, id, kli_runner_is_up); }

static bool whichever(kl_runner *r) { return (void)r, true; }

/* A process of the CPU is up in less time than it takes to stop it. */
static bool is_soon_up(size_t id) {
    const kl_backend *b = kli_backend_get((kl_backend_id)id);
    return b && b->shared_memory;
}

void kli_next_await(kli_evaluation *c) {
    kl_gate *g = c->gate;
    for (size_t id = 0; id < KL_COUNT(g->spares); id++)
        await_spares(g, id, is_soon_up(id) ? whichever : kli_runner_is_up);
    for (int i = 0; i < g->n_executables; i++)
        if (g->executables[i]->runner && kli_runner_await(g->executables[i]->runner, kl_ignored()))
            kli_executable_stop(g->executables[i]);
}

static bool cannot_be_held(kl_runner *r) { return !kli_runner_hold(r); }

void kli_next_hold(kli_evaluation *c) {
    for (size_t id = 0; id < KL_COUNT(c->gate->spares); id++)
        await_spares(c->gate, id, cannot_be_held);
}

void kli_next_go_on(kli_evaluation *c) {
    for (size_t id = 0; id < KL_COUNT(c->gate->spares); id++)
        for (int i = 0; i < c->gate->n_spares[id]; i++) kli_runner_go_on(c->gate->spares[id][i]);
}

/* ---- its code ---------------------------------------------------------------------------- */

static void compile_next(kli_aside *s) {
    const kli_next *n = (kli_next *)s;
    const kl_gate_job *j = &n->job;
    kl_artefact artefact;
    kl_error e = {0};
    if (kli_compile(&artefact, n->arena, n->device, j->kernel, j->task, n->workload,
                    &j->opts.compile, &e))
        kli_debug("%.*s was not compiled ahead: %s", KL_STR_ARG(j->kernel->path), e.message);
}

/* Code for a CPU is compiled in less time than it takes to wait for a core. */
static bool place_next(kli_next *n, kli_evaluation *c, const kl_gate_job *j) {
    kli_evaluation next = {.gate = c->gate,
                           .arena = n->arena,
                           .task = j->task,
                           .kernel = j->kernel,
                           .opts = &n->job.opts};
    if (kli_evaluation_place(&next, &n->job.opts, kl_ignored())) return false;
    n->device = next.device;
    n->workload = next.workload;
    return next.backend->on == KL_ON_GPU && !next.backend->shared_memory;
}

void kli_next_begin(kli_evaluation *c) {
    const kl_gate_job *j = c->opts->next;
    kli_next *n = &c->next;
    start_next(c);
    for (const kl_gate_job *later = j; later; later = later->opts.next) start_trusted(c, later);
    if (!j || j->opts.compile.no_cache) return;
    KL_ASSERT(!n->arena);
    *n = (kli_next){.aside = {.work = compile_next,
                              .what = "compile ahead",
                              .patience_ns = NEXT_PATIENCE_NS,
                              .core = c->gate->core},
                    .arena = kl_arena_new(),
                    .job = *j};
    if (place_next(n, c, j)) (void)kli_aside_begin(&n->aside);
}

void kli_next_end(kli_evaluation *c, bool wanted) {
    kli_next *n = &c->next;
    kli_aside_end(&n->aside, wanted);
    kl_arena_free(n->arena);
    n->arena = NULL;
    if (wanted) start_next(c);
}
