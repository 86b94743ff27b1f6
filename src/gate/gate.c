/* gate.c - one verdict from beginning to end: parse -> compile -> inspect -> check -> profile,
 * stopping at the first no.
 *
 * Policy only: what is compared is in check.c and compare.c, what is timed in benchmark.c, who runs
 * it in executable.c. The root seed is drawn after the compile, so no source can know an input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

kl_err kl_gate_open(kl_gate **out, kl_error *e) {
    (void)e;
    kl_gate *g = calloc(1, sizeof *g);
    if (!g) kl_oom(sizeof *g);
    g->arena = kl_arena_new();
    g->core = kli_last_core();
    kli_isolation_probe(&g->isolation);
    *out = g;
    return KL_OK;
}

void kl_gate_close(kl_gate *g) {
    if (!g) return;
    for (int i = 0; i < g->n_executables; i++) kli_runner_leave(g->executables[i]->runner);
    for (size_t id = 0; id < KL_COUNT(g->spares); id++)
        while (g->n_spares[id]) kli_runner_leave(g->spares[id][--g->n_spares[id]]);
    while (g->n_ending) kli_runner_leave(g->ending[--g->n_ending]);
    kl_arena_free(g->arena);
    free(g);
}

/* ---- the record of a verdict in the making ----------------------------------------------- */

void kli_evaluation_degrade(kli_evaluation *c, const char *fmt, ...) {
    char text[512];
    va_list ap;
    kl_verdict *v = c->verdict;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (int i = 0; i < v->n_degradations; i++)
        if (kl_str_eq(v->degradations[i], kl_str_of(text))) return;
    if (v->n_degradations < (int)KL_COUNT(v->degradations))
        v->degradations[v->n_degradations++] = kl_arena_copy(c->arena, kl_str_of(text));
}

void kli_evaluation_stage(kli_evaluation *c, kl_stage stage, const char *text) {
    KL_ASSERT(stage >= c->verdict->stage); /* law 1: nothing is timed before it was checked */
    c->verdict->stage = stage;
    if (c->opts->progress) c->opts->progress(c->opts->progress_ctx, stage, text);
}

void kli_evaluation_stage_end(kli_evaluation *c, const char *name) {
    kl_verdict *v = c->verdict;
    const int64_t now = kli_now_ns();
    if (v->n_stages < (int)KL_COUNT(v->stages)) {
        v->stages[v->n_stages].name = kl_str_of(name);
        v->stages[v->n_stages++].ns = now - c->clock;
    }
    c->clock = now;
}

static void reject_candidate(kli_evaluation *c, kl_outcome outcome, kl_str why, kl_str detail) {
    char *line = KL_ARRAY(
        c->arena, char,
        why.len + 1); /* it may quote a source: no control character may reach a terminal */
    for (size_t i = 0; i < why.len; i++)
        line[i] = (unsigned char)why.ptr[i] < 0x20 || why.ptr[i] == 0x7f ? ' ' : why.ptr[i];
    KL_ASSERT(outcome != KL_OUTCOME_PASS && c->verdict->stage != KL_STAGE_DONE);
    c->verdict->outcome = outcome;
    c->verdict->why = (kl_str){line, why.len};
    c->verdict->detail = detail;
}

/* ---- before anything runs ---------------------------------------------------------------- */

/* Device code that reaches host memory reaches its runner's, which is not confined: less than
 * native code in a sandbox. */
char kli_assurance_of(const kl_kernel *k, const kl_backend *b, const kl_device *d,
                      const kl_isolation *i) {
    if (k->surface->assurance == 'A' && !b->shared_memory)
        return d->pageable_access ? 'C' : 'A'; /* OpenCL on a CPU is native code */
    return i->seccomp && i->landlock && i->rlimits ? 'B' : 'C';
}

static kl_err require_assurance(const kli_evaluation *c, kl_error *e) {
    const char want = c->opts->require_assurance, have = c->verdict->assurance;
    KL_ASSERT(have >= 'A' && have <= 'C');
    if (!want || have <= want) return KL_OK;
    kl_fail(e, KL_EISOLATION, c->kernel->path.ptr,
            "assurance %c is required, this machine gives %c for surface %s", want, have,
            c->kernel->surface->name);
    return kl_hint(e, "klineage doctor shows what is missing");
}

static void gate_describe(kli_evaluation *c) {
    kl_verdict *v = c->verdict;
    char isolation[128];
    v->task = kl_arena_copy(
        c->arena, c->task->name); /* copies: the verdict may outlive task, kernel and gate */
    v->task_hash = kl_arena_copy(c->arena, kl_str_of(c->task->hash));
    v->kernel_path = kl_arena_copy(c->arena, c->kernel->path);
    v->kernel_hash = kl_arena_copy(c->arena, kl_str_of(c->kernel->hash));
    v->surface = kl_str_of(c->kernel->surface->name);
    v->workload = kl_arena_copy(c->arena, c->workload->label);
    v->platform = kl_arena_copy(c->arena, c->device->platform);
    v->device = kl_arena_copy(c->arena, c->device->name);
    v->toolchain = kl_arena_copy(c->arena, c->device->toolchain);
    v->driver = kl_arena_copy(c->arena, c->device->driver);
    v->isolation = kl_arena_copy(
        c->arena, kl_str_of(kli_isolation_text(&c->gate->isolation, isolation, sizeof isolation)));
    v->assurance = kli_assurance_of(c->kernel, c->backend, c->device, &c->gate->isolation);
    v->created = kli_utc_now(c->arena);
    if (!c->gate->isolation.seccomp) kli_evaluation_degrade(c, "no seccomp on this machine");
    if (!c->gate->isolation.landlock) kli_evaluation_degrade(c, "no landlock on this machine");
    if (!c->gate->isolation.namespaces && c->backend->shared_memory)
        kli_evaluation_degrade(c, "no namespaces on this machine: system call filters alone keep "
                                  "native code from its network");
    if (c->device->pageable_access)
        kli_evaluation_degrade(
            c, "device code can reach host memory here, and its runner's with it (of a driver's "
               "making: nvidia_uvm with uvm_disable_hmm=1 ends it)");
    if (c->opts->quick) kli_evaluation_degrade(c, "quick: one seed and a short profile");
    if (c->opts->seed) kli_evaluation_degrade(c, "the seed was given, not fresh");
}

/* ---- stages ------------------------------------------------------------------------------ */

static kl_err stage_fit(kli_evaluation *c, const kl_plan *plan, bool *go, kl_error *e) {
    kl_str refused;
    const kl_err err = kli_evaluation_fit(c, plan, &refused, e);
    *go = !err && !refused.len;
    if (!err && refused.len) reject_candidate(c, KL_OUTCOME_REFUSED, refused, (kl_str){0});
    return err;
}

/* A plan that the kernel's own domain or the device forbids is a refusal, said before a compiler is
 * asked. */
static kl_err stage_parse(kli_evaluation *c, bool *go, kl_error *e) {
    kl_plan *plan = KL_NEW(c->arena, kl_plan);
    kl_error local = {0};
    kli_evaluation_stage(c, KL_STAGE_PARSE, "directives");
    const kl_err err =
        kli_kernel_plan(plan, c->kernel, c->task, c->workload, &c->device->limits, &local);
    kli_evaluation_stage_end(c, "parse");
    *go = err == KL_OK;
    if (!err) return stage_fit(c, plan, go, e);
    if (err != KL_EINVAL && err != KL_ELIMIT && err != KL_EPARSE) {
        *e = local;
        return err;
    }
    kl_buf b = {0};
    kl_error_render(&local, &b);
    reject_candidate(c, KL_OUTCOME_REFUSED, kl_arena_copy(c->arena, kl_str_of(local.message)),
                     kl_arena_copy(c->arena, kl_buf_str(&b)));
    kl_buf_fini(&b);
    return KL_OK;
}

kl_str kl_first_error(kl_arena *a, kl_str log) {
    const char *hit = log.len ? strstr(log.ptr, "error") : NULL;
    if (!hit) return KL_S("the compiler refused it");
    const char *start = hit;
    while (start > log.ptr && start[-1] != '\n') start--;
    return kl_arena_printf(a, "%.*s", (int)strcspn(start, "\n"), start);
}

static kl_err stage_compile(kli_evaluation *c, bool *go, kl_error *e) {
    kl_artefact *artefact = &c->candidate.artefact;
    kli_evaluation_stage(c, KL_STAGE_COMPILE, "compile");
    const kl_err err = kli_compile_code(artefact, c->arena, c->device, c->kernel, c->task,
                                        c->workload, &c->opts->compile, e);
    kli_evaluation_stage_end(c, artefact->cached ? "compile_cached" : "compile");
    *go = !err && artefact->ok;
    if (err) return err;
    c->verdict->toolchain = artefact->toolchain;
    if (artefact->degraded.len) kli_evaluation_degrade(c, "%s", artefact->degraded.ptr);
    if (!artefact->ok)
        reject_candidate(c, KL_OUTCOME_NO_COMPILE, kl_first_error(c->arena, artefact->log),
                         artefact->log);
    return KL_OK;
}

static void take_features(kli_evaluation *c, const kl_artefact *of) {
    kl_feature *features = KL_ARRAY(c->arena, kl_feature, of->n_features + 1);
    for (int i = 0; i < of->n_features; i++)
        features[i] =
            (kl_feature){kl_arena_copy(c->arena, of->features[i].name), of->features[i].value};
    c->verdict->features = features;
    c->verdict->n_features = of->n_features;
}

static void describe(kli_aside *s) {
    kli_description *d = (kli_description *)s;
    kli_compile_describe(&d->artefact, d->arena, d->kernel);
}

/* Nothing that is judged rests on a description, so the checks do not wait for it. */
static void begin_description(kli_evaluation *c) {
    kli_description *d = &c->description;
    KL_ASSERT(!d->arena);
    if (kli_compile_is_described(&c->candidate.artefact, c->kernel)) return;
    *d =
        (kli_description){.aside = {.work = describe, .what = "disassemble", .core = c->gate->core},
                          .arena = kl_arena_new(),
                          .kernel = c->kernel,
                          .artefact = c->candidate.artefact};
    if (!kli_aside_begin(&d->aside)) describe(&d->aside);
}

/* Who wants to have all cores alone may be waited for here, so nothing may be locked. */
static void end_description(kli_evaluation *c, bool wanted) {
    kli_description *d = &c->description;
    if (!d->arena) return;
    kli_aside_end(&d->aside, wanted);
    take_features(c, &d->artefact);
    kl_arena_free(d->arena);
    d->arena = NULL;
    kli_evaluation_stage_end(c, "describe");
}

static void stage_inspect(kli_evaluation *c, bool *go) {
    const kl_artefact *artefact = &c->candidate.artefact;
    kli_evaluation_stage(c, KL_STAGE_INSPECT, "binary");
    take_features(c, artefact);
    begin_description(c);
    c->verdict->artefact_hash = kl_arena_copy(c->arena, kl_str_of(artefact->hash));
    *go = artefact->suspicious.len == 0 && artefact->refused.len == 0;
    if (artefact->suspicious.len)
        reject_candidate(c, KL_OUTCOME_CHEAT, artefact->suspicious, (kl_str){0});
    else if (artefact->refused.len)
        reject_candidate(c, KL_OUTCOME_REFUSED, artefact->refused, (kl_str){0});
}

/* The first of the surface's back ends that has a device here; without one, why the preferred has
 * none. */
static kl_err choose_backend(kli_evaluation *c, kl_error *e) {
    const kl_surface *s = c->kernel->surface;
    kl_err first = KL_OK;
    for (int i = 0; (c->backend = kli_backend_of_surface(s, i)) != NULL; i++) {
        const kl_err err =
            kli_gate_device(&c->device, c->gate, c->backend->id, first ? kl_ignored() : e);
        if (!err) return KL_OK;
        if (!first) first = err;
    }
    if (first) return first;
    kl_fail(e, KL_ENODEV, c->kernel->path.ptr, "no backend runs surface %s", s->name);
    return kl_hint(e, "surfaces that run: %s", kl_surface_names(c->arena, true).ptr);
}

kl_err kli_evaluation_place(kli_evaluation *c, kl_gate_opts *opts, kl_error *e) {
    if (opts->threads <= 0) opts->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const kl_err err = choose_backend(c, e);
    if (err) return err;
    return kl_workload_wanted(&c->workload, c->arena, c->task, opts->workload, c->backend->on, e);
}

/* ---- the task's own kernels -------------------------------------------------------------- */

/* A definition without a native oracle brings Python: its text becomes a script beside the compile
 * cache. */
kl_str kli_evaluation_python_script(kli_evaluation *c, kl_str ending, kl_error *e) {
    if (!c->task->python_reference.len) return (kl_str){0};
    const kl_str text = kl_arena_printf(c->arena, "%.*s%.*s", KL_STR_ARG(c->task->python_reference),
                                        KL_STR_ARG(ending));
    const kl_hash h = kli_hash_of(text);
    const kl_str dir = kl_fs_cache_dir(c->arena);
    const kl_str path = kl_arena_printf(c->gate->arena, "%s/reference-%.16s.py", dir.ptr, h.hex);
    if (kli_fs_exists(path.ptr)) return path;
    if (kli_fs_mkdirs(dir.ptr, e) || kli_fs_write(path.ptr, text, e)) return (kl_str){0};
    return path;
}

static bool has_file(const kli_evaluation *c, const char *name) {
    return name && kli_fs_exists(kli_fs_join(c->arena, c->task->dir.ptr, name).ptr);
}

kl_err kli_oracle_missing(const kli_evaluation *c, kl_str why, kl_error *e) {
    const kl_str reason = kl_arena_copy(c->arena, why); /* it may lie in `e` */
    kl_fail(e, KL_ENODEV, c->task->dir.ptr, "the task's oracle cannot run here: %.*s",
            KL_STR_ARG(reason));
    return kl_hint(e,
                   "a task without %s needs Python with torch: python3 -m pip install torch, or "
                   "name another in "
                   "KLINEAGE_PYTHON",
                   kl_surface_of_host(KL_ON_CPU)->oracle);
}

/* In the candidate's own surface, in that of its host, in that of every host, or in the
 * definition's Python. */
static kl_str oracle_file(kli_evaluation *c, kl_error *e) {
    const char *const files[] = {c->kernel->surface->oracle,
                                 kl_surface_of_host(c->backend->on)->oracle,
                                 kl_surface_of_host(KL_ON_CPU)->oracle};
    for (size_t i = 0; i < KL_COUNT(files); i++)
        if (has_file(c, files[i])) return kl_str_of(files[i]);
    return kli_evaluation_python_script(
        c, c->task->wide_reference ? KL_S("\n\nrun = widened(run)\n") : (kl_str){0}, e);
}

static kl_err find_oracle(kli_evaluation *c, kl_error *e) {
    kl_str why_not = {0};
    const kl_str file = oracle_file(c, e);
    if (!file.len) {
        kl_fail(e, KL_EINVAL, c->task->dir.ptr,
                "the task has no oracle: neither %s nor a Python reference",
                kl_surface_of_host(c->backend->on)->oracle);
        return kl_hint(e, "write one: docs/how-to/add-a-task.md");
    }
    kl_err err =
        kli_executable_trusted(&c->oracle, &why_not, c, KL_S("oracle"), file, c->workload, e);
    if (err || c->oracle) {
        if (!err && kl_str_ends(file, KL_S(".py")) && !c->task->wide_reference)
            kli_evaluation_degrade(
                c, "the oracle is the definition's Python reference, in its own precision");
        return err;
    }
    return kli_oracle_missing(c, why_not, e);
}

static kl_err find_reference(kli_evaluation *c, kl_error *e) {
    kl_str why_not = {0};
    const kl_str file = kl_str_of(kl_surface_of_host(c->backend->on)->naive);
    if (!has_file(c, file.ptr)) {
        kli_evaluation_degrade(
            c, "no naive kernel: the error budget rests on rounding to the output's type alone");
        return KL_OK;
    }
    const kl_str name = KL_S("naive");
    kl_err err = kli_executable_find(&c->naive_kernel, &why_not, c, name, file, c->workload, e);
    /* What is known of it needs no process, whose context comes up beside the candidate's. */
    if (!err && c->naive_kernel && !kli_reference_is_known(c))
        err = kli_executable_trusted(&c->naive_kernel, &why_not, c, name, file, c->workload, e);
    if (!err && !c->naive_kernel)
        kli_evaluation_degrade(c, "the naive kernel cannot run here: %.*s", KL_STR_ARG(why_not));
    return err;
}

/* Inputs and schedule have keys of their own: a kernel reads its inputs, from which their
 * generator's state can be computed back, and what it reads must not tell when it is looked at.  A
 * given seed gives both again; without one the schedule rests on a secret that is written nowhere.
 */
void kli_evaluation_seed(kli_evaluation *c, uint64_t given) {
    const uint64_t secret = given ? kli_seed_derive(given, "secret", 0) : kli_seed_fresh();
    c->root = c->verdict->seed = given ? given : kli_seed_fresh();
    c->schedule = (kl_stream){kli_seed_derive(secret, "schedule", c->root)};
}

/* A case without a candidate, for questions about the task itself: `k` lends its surface. */
kl_err kli_evaluation_prepare(kli_evaluation *c, kl_gate_opts *opts, kl_error *e) {
    kl_err err = kli_evaluation_place(c, opts, e);
    if (err) return err;
    kli_evaluation_seed(c, opts->seed);
    err = find_oracle(c, e);
    return err ? err : find_reference(c, e);
}

/* ---- the verdict ------------------------------------------------------------------------- */

kl_err kli_evaluation_start_trusted(kli_evaluation *c, kl_error *e) {
    kl_err err = find_oracle(c, e);
    if (!err) err = find_reference(c, e);
    if (!err) kli_profile_prepare(c);
    return err;
}

/* Every process that will be needed; their device contexts come up while the compiler works. */
static kl_err start_actors(kli_evaluation *c, kl_error *e) {
    kl_err err = kli_executable_restart(&c->candidate, c, e);
    if (!err) err = kli_evaluation_start_trusted(c, e);
    if (!err) err = kli_through_start(c, e);
    if (!err) kli_next_begin(c);
    kli_evaluation_stage_end(c, "prepare");
    return err;
}

static void take_shared_turn(kli_evaluation *c) {
    if (kli_machine_lock_shared(&c->machine_lock) == KL_MACHINE_LOCK_TOO_LONG)
        kli_evaluation_degrade(c, "no turn: checked beside %s", c->machine_lock.holder);
}

/* Of a kernel whose time did not settle it is still said that it is correct. */
static kl_err check_rest(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e) {
    kli_check_outcome rest = {.ok = true};
    if (!f->ok && f->outcome != KL_OUTCOME_UNSTABLE) return KL_OK;
    if (kli_check_has_rest(c)) take_shared_turn(c);
    const kl_err err = kli_check_rest(c, real, &rest, e);
    if (!rest.ok) *f = rest;
    return err;
}

static kl_err gate_judge(kli_evaluation *c, kl_error *e) {
    bool go = false;
    kl_err err = stage_parse(c, &go, e);
    if (err || !go) return err;
    err = start_actors(c, e);
    if (!err) kli_shapes_begin(c);
    if (!err) err = stage_compile(c, &go, e);
    if (err || !go) return err;
    stage_inspect(c, &go);
    if (!go) return KL_OK;
    kli_evaluation_seed(c, c->opts->seed);
    kli_check_outcome f = {.ok = true};
    kli_problem *real = KL_NEW(c->arena, kli_problem);
    real->memory.inputs_fd = real->oracle_memory.inputs_fd = -1;
    if (!err) err = kli_check_stages(c, real, &f, e);
    kli_shapes_end(c, !err && f.ok); /* no compiler beside what is timed */
    if (!err && f.ok && !c->opts->check_only) {
        kli_evaluation_stage(c, KL_STAGE_PROFILE, "profile");
        err = kli_profile(c, real, &f, e);
        if (!err) err = check_rest(c, real, &f, e);
        kli_evaluation_stage_end(c, "profile");
    }
    kli_problem_close(real);
    if (err) return err;
    if (!f.ok)
        reject_candidate(c, f.outcome, f.why, (kl_str){0});
    else {
        KL_ASSERT(c->opts->check_only || c->verdict->stage == KL_STAGE_PROFILE);
        c->verdict->outcome = KL_OUTCOME_PASS;
        c->verdict->stage = KL_STAGE_DONE;
    }
    return KL_OK;
}

/* Time that is not this gate's doing: the compiler's, and waiting for other gates. */
static int64_t foreign_ns(const kl_verdict *v) {
    int64_t sum = 0;
    for (int i = 0; i < v->n_stages; i++)
        if (kl_str_starts(v->stages[i].name, KL_S("compile")) ||
            kl_str_eq(v->stages[i].name, KL_S("wait")) ||
            kl_str_eq(v->stages[i].name, KL_S("queue")))
            sum += v->stages[i].ns;
    return sum;
}

static void gate_finish(kli_evaluation *c, int64_t start_ns) {
    kl_verdict *v = c->verdict;
    KL_ASSERT(c->candidate.plan.n_launches <= KL_COUNT(v->resources));
    v->n_resources = (int)c->candidate.plan.n_launches;
    memcpy(v->resources, c->candidate.resources, sizeof v->resources);
    v->total_ns = kli_now_ns() - start_ns;
    v->overhead_ns = v->total_ns - foreign_ns(v) - c->run_ns;
}

/* Without a lock the profile says so. */
static void queue_up(kli_evaluation *c) {
    kli_machine_lock_open(&c->machine_lock,
                          kl_arena_printf(c->arena, "gate %.*s", KL_STR_ARG(c->task->name)).ptr,
                          c->backend->on == KL_ON_GPU);
    c->machine_lock.progress = c->opts->progress;
    c->machine_lock.progress_ctx = c->opts->progress_ctx;
    take_shared_turn(c);
}

static kl_err run_watched(kl_verdict *out, kl_gate *g, kl_arena *a, const kl_task *t,
                          const kl_kernel *k, const kl_gate_opts *o, kl_error *e) {
    const int64_t start = kli_now_ns();
    kl_gate_opts opts = o ? *o : (kl_gate_opts){0};
    kli_evaluation *c = KL_NEW(a, kli_evaluation);
    *out = (kl_verdict){0};
    *c = (kli_evaluation){.gate = g,
                          .arena = a,
                          .task = t,
                          .kernel = k,
                          .opts = &opts,
                          .verdict = out,
                          .clock = start};
    c->candidate.name = KL_S("candidate");
    c->candidate.kernel = k;
    kl_err err = kli_evaluation_place(c, &opts, e);
    if (err) return err;
    gate_describe(c);
    queue_up(c);
    kli_evaluation_stage_end(c, "queue");
    err = require_assurance(c, e);
    if (!err) err = gate_judge(c, e);
    kli_shapes_end(c, false);
    kli_machine_lock_close(&c->machine_lock);
    kli_executable_leave(&c->candidate, g);
    end_description(c, !err);
    gate_finish(c, start);
    kli_next_end(c, !err);
    return err;
}

kl_err kl_gate_run(kl_verdict *out, kl_gate *g, kl_arena *a, const kl_task *t, const kl_kernel *k,
                   const kl_gate_opts *o, kl_error *e) {
    const kl_monitor *before = kl_monitor_use(o ? o->monitor : NULL);
    const kl_err err = run_watched(out, g, a, t, k, o, e);
    kl_monitor_use(before);
    return err;
}

kl_err kl_gate_key(char key[65], kl_gate *g, kl_arena *a, const kl_task *t, const kl_kernel *k,
                   const kl_gate_opts *o, kl_error *e) {
    kl_gate_opts opts = o ? *o : (kl_gate_opts){0};
    kli_evaluation c = {.gate = g, .arena = a, .task = t, .kernel = k, .opts = &opts};
    const kl_err err = kli_evaluation_place(&c, &opts, e);
    if (err) return err;
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, kl_str_of("klineage/verdict/1"));
    kli_hasher_add(&h, kl_str_of(t->hash));
    kli_hasher_add(&h, kl_str_of(k->hash));
    kli_hasher_add(&h, c.workload->uuid);
    for (int i = 0; i < t->n_axes; i++)
        kli_hasher_add(&h, kl_arena_printf(a, "%lld", (long long)c.workload->axes[i]));
    kli_hasher_add(&h, kl_str_of(opts.baseline ? opts.baseline : ""));
    kli_hasher_add(&h, kl_str_of(opts.against ? opts.against->hash : ""));
    kli_hasher_add(&h, c.device->platform);
    kli_hasher_add(&h, c.device->toolchain);
    kli_hasher_add(&h, c.device->name);
    kli_hasher_add(&h, kl_arena_printf(a, "%d %d %llu", opts.check_only, opts.quick,
                                       (unsigned long long)opts.seed));
    kli_hasher_add(&h, kl_arena_printf(a, "%g %g %g %g %g", opts.min_pairs, opts.min_seconds,
                                       opts.max_seconds, opts.half_width, opts.abandon_below));
    const kl_hash hash = kli_hasher_end(&h);
    memcpy(key, hash.hex, 65);
    return KL_OK;
}
