/* next.c - what is got ready for the verdict after this one, while this one is made.
 *
 *   its process   started with this verdict's own, and up before anything is timed
 *   its code      compiled for a device on a thread of its own, into the compile cache
 *
 * Nothing else runs on a device while this verdict is timed there: every process that was started,
 * for it or for another, is up by then and waits for a request, and a context without work takes no
 * turn.  No compiler runs on a
 * core that is timed: the thread holds its cores like every gate that compiles, and a kernel of the
 * CPU is timed by who has all of them alone (machine_lock.c); a device's runner has a core of its
 * own, which the thread leaves.  What it leads to is an entry of the cache and nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/log.h"

static const int64_t NEXT_PATIENCE_NS = 1000000000; /* behind a gate that times on these cores */

/* ---- its process ------------------------------------------------------------------------- */

/* What is wrong is said by the verdict that needs it; this one stands. */
static void start_next(kli_evaluation *c) {
    kl_runner **spare = &c->gate->spare[c->backend->id];
    if (c->opts->more_to_come && !*spare &&
        kli_gate_start_ahead(c->gate, c->backend->id, kl_ignored()))
        *spare = NULL;
}

void kli_next_await(kli_evaluation *c) {
    kl_gate *g = c->gate;
    for (size_t i = 0; i < KL_COUNT(g->spare); i++) {
        if (!g->spare[i] || !kl_runner_await(g->spare[i], kl_ignored())) continue;
        kl_runner_stop(g->spare[i]);
        g->spare[i] = NULL;
    }
    for (int i = 0; i < g->n_executables; i++)
        if (g->executables[i]->runner && kl_runner_await(g->executables[i]->runner, kl_ignored()))
            kli_executable_stop(g->executables[i]);
}

/* ---- its code ---------------------------------------------------------------------------- */

static void compile_next(kli_next *n) {
    const kl_gate_job *j = &n->job;
    kl_artefact artefact;
    kl_error e = {0};
    if (kl_compile(&artefact, n->arena, n->device, j->kernel, j->task, n->workload,
                   &j->opts.compile, &e))
        kli_debug("%.*s was not compiled ahead: %s", KL_STR_ARG(j->kernel->path), e.message);
}

static bool is_unwanted(void *ctx) { return atomic_load(&((kli_next *)ctx)->unwanted); }

static void *next_thread(void *ctx) {
    kli_next *n = ctx;
    const kl_monitor watch = {.cancelled = is_unwanted, .ctx = n};
    kli_machine_lock lock;
    cpu_set_t all;
    (void)kl_monitor_use(&watch);
    kli_leave_core(n->core, &all);
    kli_machine_lock_open(&lock, "compile ahead", false);
    lock.limit_ns = NEXT_PATIENCE_NS;
    if (kli_machine_lock_shared(&lock) == KL_MACHINE_LOCK_TAKEN) compile_next(n);
    kli_machine_lock_close(&lock);
    return NULL;
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
    return next.backend->on == KL_ON_GPU && !next.backend->shared_memory && n->core >= 0;
}

void kli_next_begin(kli_evaluation *c) {
    const kl_gate_job *j = c->opts->next;
    kli_next *n = &c->next;
    start_next(c);
    if (!j || j->opts.compile.no_cache) return;
    KL_ASSERT(!n->running && !n->arena);
    *n = (kli_next){.arena = kl_arena_new(), .job = *j, .core = c->gate->core};
    n->running = place_next(n, c, j) && pthread_create(&n->thread, NULL, next_thread, n) == 0;
}

void kli_next_end(kli_evaluation *c, bool wanted) {
    kli_next *n = &c->next;
    atomic_store(&n->unwanted, !wanted);
    if (n->running) (void)pthread_join(n->thread, NULL);
    if (n->arena) kl_arena_free(n->arena);
    n->arena = NULL;
    n->running = false;
    if (wanted) start_next(c);
}
