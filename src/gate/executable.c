/* executable.c - one kernel, plugin or script in one runner process, moved from shape to shape.
 *
 * Trusted executables (oracle, baselines) stay warm in the gate: the second verdict for a task
 * starts none of them.  A candidate's executable lives for one verdict; its runner may have been
 * started ahead, before anything of the candidate existed. SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"

#include <sched.h>
#include <string.h>

kl_err kli_gate_device(const kl_device **out, kl_gate *g, kl_backend_id id, kl_error *e) {
    KL_ASSERT(id > 0 && (size_t)id < KL_COUNT(g->devices));
    if (!g->probed[id]) {
        const kl_err err = kl_device_probe(&g->devices[id], g->arena, id, e);
        if (err) return err;
        g->probed[id] = true;
    }
    *out = &g->devices[id];
    return KL_OK;
}

/* The gate itself stays on the others and keeps the clock.  Asked when a gate is opened and never
 * while it times: it leaves that core then, and the two sides of a pair would lie on different
 * cores. */
int kli_last_core(void) {
    cpu_set_t set;
    int last = -1;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) >= 2)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, &set)) last = cpu;
    return last;
}

/* Events of the device time its kernels, and gates that check on it at the same time would share
 * that core. */
int kli_runner_core(const kl_gate *g, const kl_backend *b, const kl_plan *plan) {
    return plan->threads > 1 || !b->parent_clock ? -1 : g->core;
}

static bool is_script(kl_str file) { return kl_str_ends(file, KL_S(".py")); }

/* ---- trusted executables ----------------------------------------------------------------- */

/* Data types change what is compiled, so an executable serves one combination of them.  The name
 * belongs to it: the naive kernel may be the reference and, under its own name, a baseline. */
static kl_str actor_key(kli_evaluation *c, kl_str name, kl_str file, const kl_workload *w) {
    kl_buf types = {0};
    for (int i = 0; i < c->task->n_tensors; i++) kl_buf_printf(&types, ".%d", (int)w->dtypes[i]);
    const kl_str key =
        kl_arena_printf(c->arena, "%s/%.*s=%.*s/%d%s", c->task->hash, KL_STR_ARG(name),
                        KL_STR_ARG(file), (int)c->backend->id, types.ptr ? types.ptr : "");
    kl_buf_fini(&types);
    return key;
}

/* Beside the candidate where that can be, else where its surface prefers to run: an oracle in C for
 * a GPU. */
static const kl_backend *home_backend(const kl_kernel *k, const kli_evaluation *c) {
    for (int i = 0; kli_backend_of_surface(k->surface, i); i++)
        if (kli_backend_of_surface(k->surface, i) == c->backend) return c->backend;
    return kli_backend_of_surface(k->surface, 0);
}

static bool mentions_plugin(kl_str source) {
    return memmem(source.ptr, source.len, "klineage/plugin.h", 17) != NULL;
}

static kl_err compile_kernel(kli_executable *a, kli_evaluation *c, const kl_workload *w,
                             kl_error *e) {
    const kl_backend *home = home_backend(a->kernel, c);
    const kl_device *device = c->device;
    kl_err err = KL_OK;
    if (home && home != c->backend) err = kli_gate_device(&device, c->gate, home->id, e);
    return err ? err
               : kli_compile_code(&a->artefact, c->gate->arena, device, a->kernel, c->task, w,
                                  &c->opts->compile, e);
}

/* Compile a trusted file into `a`.  KL_OK with why_not set when this host lacks what it needs. */
static kl_err compile_trusted(kli_executable *a, kl_str *why_not, kli_evaluation *c, kl_str path,
                              const kl_workload *w, kl_error *e) {
    kl_arena *arena = c->gate->arena;
    kl_str source;
    kl_err err = kli_fs_read(&source, arena, path.ptr, KL_MAX_SOURCE_BYTES, e);
    if (err) return err;
    a->plugin = is_script(path) || mentions_plugin(source);
    if (a->plugin) {
        err = kli_compile_plugin(&a->artefact, arena, c->device, path.ptr, &c->opts->compile, e);
    } else {
        kl_kernel *k;
        const kl_kernel_opts trusted = {.trusted = true,
                                        .oracle = kl_str_eq(a->name, KL_S("oracle"))};
        err = kl_kernel_load(&k, arena, path.ptr, &trusted, e);
        if (err) return err;
        a->kernel = k;
        err = compile_kernel(a, c, w, e);
    }
    if (!err && !a->artefact.ok)
        *why_not = kl_arena_printf(arena, "it does not compile here: %.200s", a->artefact.log.ptr);
    return err;
}

static kl_backend_id home_of(const kli_executable *a, const kli_evaluation *c) {
    if (a->kernel) return home_backend(a->kernel, c)->id;
    /* A plugin runs where its data is: host pages for anything on the CPU, device memory on a GPU.
     */
    return c->backend->on == KL_ON_CPU ? KL_BACKEND_CPU : c->backend->id;
}

static kl_err start_runner(kli_executable *a, kli_evaluation *c, kl_error *e) {
    KL_ASSERT(a->trusted && !a->runner);
    const kl_runner_opts o = {.backend = home_of(a, c),
                              .trusted = a->trusted,
                              .script = a->artefact.kind == KL_ARTEFACT_SCRIPT,
                              .cpu = -1,
                              .threads = 1};
    return kli_runner_start(&a->runner, &o, e);
}

/* Make room: the oldest goes, but none that this case holds. */
static void forget_oldest(kl_gate *g, const kli_evaluation *c) {
    int i = 0;
    while (g->executables[i] == c->oracle || g->executables[i] == c->naive_kernel) i++;
    KL_ASSERT(i < g->n_executables);
    kli_executable_stop(g->executables[i]);
    g->n_executables--;
    memmove(&g->executables[i], &g->executables[i + 1],
            (size_t)(g->n_executables - i) * sizeof g->executables[0]);
    memmove(&g->executable_keys[i], &g->executable_keys[i + 1],
            (size_t)(g->n_executables - i) * sizeof g->executable_keys[0]);
}

/* The caller goes on without it, and says so. */
static kl_err not_installed(kl_str *why_not, kli_evaluation *c, const kl_error *e) {
    *why_not = kl_arena_printf(c->gate->arena, "%s", e->message);
    return KL_OK;
}

kl_err kli_executable_find(kli_executable **out, kl_str *why_not, kli_evaluation *c, kl_str name,
                           kl_str file, const kl_workload *w, kl_error *e) {
    kl_gate *g = c->gate;
    *out = NULL;
    *why_not = (kl_str){0};
    const kl_str key = actor_key(c, name, file, w);
    for (int i = 0; i < g->n_executables; i++)
        if (kl_str_eq(g->executable_keys[i], key)) {
            *out = g->executables[i];
            return KL_OK;
        }
    const kl_str path = kli_fs_join(c->arena, c->task->dir.ptr, file.ptr);
    if (!kli_fs_exists(path.ptr)) {
        *why_not = kl_arena_printf(c->arena, "%.*s does not exist", KL_STR_ARG(file));
        return KL_OK;
    }
    kli_executable *a = KL_NEW(g->arena, kli_executable);
    a->name = kl_arena_copy(g->arena, name);
    a->trusted = true;
    kl_err err = compile_trusted(a, why_not, c, path, w, e);
    if (err == KL_ENODEV) return not_installed(why_not, c, e);
    if (err || why_not->len) return err;
    if (g->n_executables == (int)KL_COUNT(g->executables)) forget_oldest(g, c);
    KL_ASSERT(a->trusted && g->n_executables < (int)KL_COUNT(g->executables));
    g->executables[g->n_executables] = a;
    g->executable_keys[g->n_executables++] = kl_arena_copy(g->arena, key);
    *out = a;
    return KL_OK;
}

kl_err kli_executable_trusted(kli_executable **out, kl_str *why_not, kli_evaluation *c, kl_str name,
                              kl_str file, const kl_workload *w, kl_error *e) {
    kl_err err = kli_executable_find(out, why_not, c, name, file, w, e);
    if (err || !*out || (*out)->runner) return err;
    err = start_runner(*out, c, e);
    if (err) *out = NULL;
    return err == KL_ENODEV ? not_installed(why_not, c, e) : err;
}

/* A library of a device, opened while the candidate is compiled and checked. */
void kli_executable_load_ahead(kli_executable *a, const kli_evaluation *c) {
    kl_plan *plan = KL_NEW(c->arena, kl_plan);
    if (!a->plugin || a->problem || c->backend->shared_memory ||
        kli_kernel_plan(plan, c->kernel, c->task, c->workload, &c->device->limits, kl_ignored()))
        return;
    plan->n_buffers = plan->n_tensormaps = plan->n_launches = 0;
    kli_runner_load_ahead(a->runner, &a->artefact, plan);
}

/* ---- any executable ---------------------------------------------------------------------- */

/* The limits of the device that the executable runs on; an oracle in C knows none of a GPU's. */
static const kl_device_limits *limits_of(const kli_executable *a, const kli_evaluation *c) {
    static const kl_device_limits NONE = {0};
    return a->kernel && home_backend(a->kernel, c) == c->backend ? &c->device->limits : &NONE;
}

/* The code of a trusted executable for this shape, and its launches as that code wants them. */
kl_err kli_executable_plan(kl_plan *out, kli_executable *a, kli_evaluation *c, const kl_workload *w,
                           kl_error *e) {
    const kl_device_limits *limits = limits_of(a, c);
    kl_err err = kli_compile_depends_on_shape(a->kernel) ? compile_kernel(a, c, w, e) : KL_OK;
    if (!err && !a->artefact.ok)
        err = kl_fail(e, KL_EINVAL, a->name.ptr, "it does not compile for this shape: %.200s",
                      a->artefact.log.ptr);
    if (!err) err = kli_kernel_plan(out, a->kernel, c->task, w, limits, e);
    return err ? err
               : kli_plan_complete(out, a->artefact.completion, a->kernel, c->task, w, limits, e);
}

static kl_err plan_for(kli_executable *a, const kli_problem *s, kli_evaluation *c, kl_error *e) {
    if (a == c->oracle) {
        a->plan = s->oracle_plan;
        return KL_OK;
    }
    if (a->kernel && a != &c->candidate) {
        return kli_executable_plan(&a->plan, a, c, s->workload, e);
    }
    a->plan = s->plan;
    if (a->plugin) {
        a->plan.n_buffers = a->plan.n_tensormaps = a->plan.n_launches = 0;
        a->plan.threads = s->plan.threads; /* a library may use as many threads as the candidate */
    }
    return KL_OK;
}

/* Load and bind for this problem unless that was done already.  A fault is a finding about the
 * executable's kernel; a trusted executable that failed starts afresh the next time, so that one
 * bad moment does not spoil every later verdict. */
static kl_err load_and_bind(kli_executable *a, kli_problem *s, kli_evaluation *c, kl_fault *fault,
                            kl_error *e) {
    KL_ASSERT(s->id > 0 && (a != &c->candidate || !a->trusted));
    if (a->problem == s->id) return KL_OK;
    a->problem = 0;
    kl_err err = plan_for(a, s, c, e);
    if (!err && !a->runner) err = kli_executable_restart(a, c, e);
    const kl_plan *load =
        a == c->oracle ? &a->plan
                       : &s->plan; /* the oracle is never timed: it may use all its threads */
    if (!err)
        err = kli_runner_place(a->runner, kli_runner_core(c->gate, c->backend, load),
                               (int)a->plan.threads, e);
    if (!err) err = kli_runner_load(a->runner, fault, a->resources, &a->artefact, &a->plan, e);
    KL_ASSERT(a != c->oracle || a->trusted); /* law 2: no candidate maps the oracle's pages */
    if (a == c->oracle) {                    /* its memory is new */
        memset(s->answer_of, 0, sizeof s->answer_of);
        s->is_given = false;
    }
    if (!err && !fault->kind)
        err = kli_runner_bind(a->runner, fault, a == c->oracle ? &s->oracle_memory : &s->memory, e);
    if (!err && !fault->kind)
        a->problem = s->id;
    else if (a->trusted)
        kli_executable_stop(a);
    return err;
}

kl_err kli_executable_enter(kli_executable *a, kli_problem *s, kli_evaluation *c, uint32_t first,
                            uint32_t n, kl_fault *fault, kl_error *e) {
    KL_ASSERT(n >= 1 && first + n <= s->n_sets);
    fault->kind = KL_FAULT_NONE;
    const kl_err err = load_and_bind(a, s, c, fault, e);
    return err || fault->kind ? err : kli_inputs_send(s, c, a, first, n, fault, e);
}

kl_err kli_gate_start_ahead(kl_gate *g, kl_backend_id id, kl_error *e) {
    int *n = &g->n_spares[id];
    KL_ASSERT((size_t)id < KL_COUNT(g->spares) && *n < KL_MAX_SPARES);
    const kl_runner_opts o = {.backend = id, .cpu = -1, .threads = 1};
    const kl_err err = kli_runner_start(&g->spares[id][*n], &o, e);
    *n += !err;
    return err;
}

/* One that is up, else the one that was started first; none whose process failed. */
static kl_runner *take_spare(kl_gate *g, kl_backend_id id) {
    kl_runner **spares = g->spares[id], *taken;
    kli_next_settle(g, id);
    const int n = g->n_spares[id];
    int at = 0;
    if (!n) return NULL;
    while (at < n && !kli_runner_is_up(spares[at])) at++;
    if (at == n) at = 0;
    taken = spares[at];
    memmove(&spares[at], &spares[at + 1], (size_t)(n - at - 1) * sizeof *spares);
    g->n_spares[id]--;
    return taken;
}

/* A fresh process for the same artefact: after a fault, or for a candidate at its beginning (taking
 * a spare one if there is). */
kl_err kli_executable_restart(kli_executable *a, kli_evaluation *c, kl_error *e) {
    kl_gate *g = c->gate;
    const kl_backend_id id = c->backend->id;
    kli_executable_stop(a);
    if (a->trusted) return start_runner(a, c, e);
    a->runner = take_spare(g, id);
    if (!a->runner) {
        const kl_err err = kli_gate_start_ahead(g, id, e);
        if (err) return err;
        a->runner = g->spares[id][--g->n_spares[id]];
    }
    g->n_candidates[id]++;
    return KL_OK;
}

void kli_gate_reap(kl_gate *g) {
    while (g->n_ending) kli_runner_stop(g->ending[--g->n_ending]);
}

void kli_executable_leave(kli_executable *a, kl_gate *g) {
    if (g->n_ending == (int)KL_COUNT(g->ending)) kli_gate_reap(g);
    kli_runner_dismiss(a->runner);
    if (a->runner) g->ending[g->n_ending++] = a->runner;
    a->runner = NULL;
    a->problem = 0;
}

void kli_executable_stop(kli_executable *a) {
    kli_runner_stop(a->runner);
    a->runner = NULL;
    a->problem = 0;
}
