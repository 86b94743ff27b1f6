/* profile.c - how fast, compared with what a user would run instead?
 *
 * Which baselines, under which lock and on which cores, and what is said of the result; one
 * comparison is benchmark.c.  SPDX-License-Identifier: Apache-2.0 */
#include "benchmark_impl.h"

#include "base/fs.h"

#include <math.h>
#include <sched.h>
#include <string.h>

enum {
    SURE_PAIRS =
        4, /* of a time that is called impossible, with as many controls as come with them */
    SURE_CONTROLS = 2
};
static const double SURE_NOISE =
    0.1; /* A/A; the bounds of devices are at least twice too generous */

static bool wanted(const kl_gate_opts *o, const kl_baseline *b, int taken) {
    if (!o->baseline) return taken == 0;
    if (strcmp(o->baseline, "none") == 0) return false;
    if (strcmp(o->baseline, "all") == 0) return true;
    return kl_str_eq(b->name, kl_str_of(o->baseline));
}

/* Processes take time to come up (a device context, a library's handle): the first baseline's does
 * so while the candidate is checked. What fails here fails again, with its reason, where it is
 * needed. */
void kli_profile_prepare(kli_evaluation *c) {
    kli_executable *executable = NULL;
    kl_str why_not;
    for (int i = 0; i < c->task->n_baselines && !executable && !c->opts->against &&
                    !c->opts->through && !c->opts->check_only;
         i++) {
        const kl_baseline *b = &c->task->baselines[i];
        if ((b->on != KL_ON_ANY && b->on != c->backend->on) || !wanted(c->opts, b, 0)) continue;
        if (kli_executable_trusted(&executable, &why_not, c, b->name, b->file, c->workload,
                                   kl_ignored()))
            return;
        if (executable) kli_executable_load_ahead(executable, c);
    }
}

/* Another candidate in the place of the baseline: compiled, confined and checked like one, in its
 * own runner. */
static kl_err compare_with_opponent(kli_evaluation *c, kli_problem *real, kli_check_outcome *f,
                                    kl_error *e) {
    kl_verdict *v = c->verdict;
    kli_executable opponent = {.name = c->opts->against->path, .kernel = c->opts->against};
    kl_fault fault = {0};
    kli_check_outcome own = {.ok = true};
    int64_t wall = 0;
    kl_err err = kli_compile_code(&opponent.artefact, c->arena, c->device, opponent.kernel, c->task,
                                  c->workload, &c->opts->compile, e);
    if (err) return err;
    if (!opponent.artefact.ok || opponent.artefact.suspicious.len)
        return kl_fail(e, KL_EBASELINE, opponent.name.ptr,
                       "the --against kernel fails to compile or fails inspection: %.300s",
                       opponent.artefact.ok ? opponent.artefact.suspicious.ptr
                                            : opponent.artefact.log.ptr);
    err = kli_executable_restart(&opponent, c, e);
    if (!err) err = kli_executable_enter(&opponent, real, c, 0, 1, &fault, e);
    kli_problem_ready_slot(real, 0, 0, KL_POISON_NAN);
    if (!err && !fault.kind)
        err = kli_output_run(real, &opponent, &(kli_run){0, 0, KL_POISON_NAN, PROFILE_PATIENCE_NS},
                             &fault, &wall, e);
    if (!err && !fault.kind) err = kli_check_slot(c, real, 0, 0, KL_POISON_NAN, false, &own, e);
    kli_problem_hide_slot(real, c, 0, 0);
    if (!err && (fault.kind || !own.ok))
        err = kl_fail(e, KL_EBASELINE, opponent.name.ptr, "the --against kernel fails the gate: %s",
                      fault.kind ? fault.text : own.why.ptr);
    if (!err)
        err = kli_benchmark_compare(c, real, &opponent, &v->comparisons[v->n_comparisons], f, e);
    if (!err && f->ok) v->n_comparisons++;
    kli_executable_stop(&opponent);
    return err;
}

/* A library or a Python package that is missing shows when the baseline is loaded: it is left out,
 * and the verdict says so. */
static kl_err enter_baseline(kli_executable **executable, kl_str *why_not, kli_evaluation *c,
                             kli_problem *real, kl_error *e) {
    kl_fault fault = {0};
    const kl_err err = kli_executable_enter(*executable, real, c, 0, 1, &fault, e);
    if (err ? err != KL_ENODEV : fault.kind != KL_FAULT_REFUSED) return err;
    *why_not = kl_arena_copy(c->arena, kl_str_of(err ? e->message : fault.text));
    kli_executable_stop(*executable);
    *executable = NULL;
    return KL_OK;
}

static kl_err one_baseline(kli_evaluation *c, kli_problem *real, kl_str name, kl_str file,
                           kli_check_outcome *f, kl_error *e) {
    kl_verdict *v = c->verdict;
    KL_ASSERT(v->n_comparisons < (int)KL_COUNT(v->comparisons));
    kli_executable *executable;
    kl_str why_not;
    kl_err err = kli_executable_trusted(&executable, &why_not, c, name, file, c->workload, e);
    if (!err && executable) err = enter_baseline(&executable, &why_not, c, real, e);
    if (!err && !executable)
        kli_evaluation_degrade(c, "baseline %.*s is not available: %.*s", KL_STR_ARG(name),
                               KL_STR_ARG(why_not));
    if (!err && executable)
        err = kli_benchmark_compare(c, real, executable, &v->comparisons[v->n_comparisons], f, e);
    if (!err && executable && f->ok) v->n_comparisons++;
    return err;
}

/* A data set's task names no baselines; its Python is what a user would run. */
static kl_err reference_baseline(kli_evaluation *c, kli_problem *real, kli_check_outcome *f,
                                 kl_error *e) {
    const char *requested = c->opts->baseline;
    if (c->task->n_baselines || (requested && strcmp(requested, "all") != 0)) return KL_OK;
    const kl_str script = kli_evaluation_python_script(c, (kl_str){0}, e);
    return script.len ? one_baseline(c, real, KL_S("reference"), script, f, e) : KL_OK;
}

/* The kernel against its own export. */
static kl_err compare_through(kli_evaluation *c, kli_problem *real, kli_check_outcome *f,
                              kl_error *e) {
    kl_verdict *v = c->verdict;
    const kl_err err =
        kli_benchmark_compare(c, real, c->through, &v->comparisons[v->n_comparisons], f, e);
    if (!err && f->ok) v->n_comparisons++;
    return err;
}

static kl_err each_baseline(kli_evaluation *c, kli_problem *real, kli_check_outcome *f,
                            kl_error *e) {
    for (int i = 0; i < c->task->n_baselines && f->ok; i++) {
        const kl_baseline *b = &c->task->baselines[i];
        if ((b->on != KL_ON_ANY && b->on != c->backend->on) ||
            !wanted(c->opts, b, c->verdict->n_comparisons))
            continue;
        const kl_err err = one_baseline(c, real, b->name, b->file, f, e);
        if (err) return err;
    }
    return reference_baseline(c, real, f, e);
}

/* The gate keeps the clock: it must not share a core with what it times. */
void kli_leave_core(int cpu, cpu_set_t *old) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof *old, old);
    set = *old;
    KL_ASSERT(cpu < CPU_SETSIZE);
    if (cpu < 0) return;
    CPU_CLR((size_t)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Nobody is accused on the word of a clock that was disturbed itself. */
static bool clock_was_good(const kl_comparison *m) {
    return m->pairs >= SURE_PAIRS && m->controls >= SURE_CONTROLS && m->noise <= SURE_NOISE &&
           2 * m->left_out <= m->pairs;
}

/* Below what the device can do, by more than the clock's own error: a cheat.  Otherwise that time
 * is not known. */
void kli_profile_impossible(kli_evaluation *c, kli_check_outcome *f) {
    const kl_verdict *v = c->verdict;
    const kl_comparison *m = &v->comparisons[0];
    KL_ASSERT(v->median_ns > 0 && v->median_ns < v->roofline_ns);
    const bool surely = (double)v->median_ns * (1 + kl_decide_margin(m->noise) + m->handshake) <
                        (double)v->roofline_ns;
    *f = (kli_check_outcome){.outcome = clock_was_good(m) && surely ? KL_OUTCOME_CHEAT
                                                                    : KL_OUTCOME_UNSTABLE};
    f->why = kl_arena_printf(c->arena, "%lld ns is less than this device can do (%lld ns)%s",
                             (long long)v->median_ns, (long long)v->roofline_ns,
                             f->outcome == KL_OUTCOME_CHEAT
                                 ? ""
                                 : ", but the clock was not good enough to rely on that");
}

static void roofline(kli_evaluation *c, kli_check_outcome *f) {
    kl_verdict *v = c->verdict;
    double flops = 0, bytes = 0, peak = 0;
    if (kl_task_work(&flops, &bytes, c->task, c->workload, kl_ignored())) return;
    for (int i = 0; i < c->task->n_inputs; i++) {
        const double p = c->device->peak_flops[c->workload->dtypes[i]];
        if (!c->task->tensors[i].is_scalar && p > peak) peak = p;
    }
    const double by_flops = peak > 0 ? flops / peak : 0,
                 by_bytes = c->device->peak_bytes > 0 ? bytes / c->device->peak_bytes : 0;
    v->roofline_ns = (int64_t)(fmax(by_flops, by_bytes) * 1e9);
    if (v->median_ns > 0 && v->median_ns < v->roofline_ns) kli_profile_impossible(c, f);
}

/* What is known, and whose doing it is that it is not more. */
void kli_profile_unsettled(kli_evaluation *c, const kl_comparison *m, kli_check_outcome *f) {
    char host[96];
    kl_buf why = {0};
    kl_buf_printf(&why, "no stable time within the cap: ratio %.4g, interval %.4g to %.4g; ",
                  m->ratio, m->low, m->high);
    if (c->unrepeated)
        kl_buf_printf(&why, "a call so close was to be repeated in other processes");
    else if (kl_comparison_busy(m))
        kl_buf_printf(&why, "this machine is busy (%s): %d pairs left out",
                      kl_host_load(host, sizeof host), m->left_out);
    else
        kl_buf_printf(&why, "the kernel's own times %s: identical code agrees within %.2g %% here",
                      m->bimodal ? "fall into two groups" : "spread", 100 * m->noise);
    if (kl_comparison_busy(m) && m->controls)
        kl_buf_printf(&why, ", A/A floor %.3g %%", 100 * m->noise);
    *f = (kli_check_outcome){.outcome = KL_OUTCOME_UNSTABLE,
                             .why = kl_arena_copy(c->arena, kl_buf_str(&why))};
    kl_buf_fini(&why);
}

static void await_turn(kli_evaluation *c) {
    const kl_machine_lock_state lock_state = kli_machine_lock_exclusive(&c->machine_lock);
    if (lock_state == KL_MACHINE_LOCK_NO_LOCK)
        kli_evaluation_degrade(c, "no turn: another gate may have worked while this one timed");
    if (lock_state == KL_MACHINE_LOCK_TOO_LONG)
        kli_evaluation_degrade(c, "no turn: timed beside %s", c->machine_lock.holder);
}

kl_err kli_profile(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e) {
    /* Law 1: the candidate was checked at this shape, on every set that may be timed first. */
    KL_ASSERT(f->ok && !c->opts->check_only && c->verdict->stage == KL_STAGE_PROFILE);
    KL_ASSERT(!c->oracle || c->verdict->n_checks > 0);
    kli_next_await(c);
    kli_evaluation_stage_end(c, "next"); /* this gate's own doing, unlike the wait for others */
    await_turn(c);
    kli_evaluation_stage_end(c, "wait");
    kl_verdict *v = c->verdict;
    cpu_set_t old;
    kli_leave_core(kli_runner_core(c->gate, c->backend, &real->plan), &old);
    kl_err err = c->through         ? compare_through(c, real, f, e)
                 : c->opts->against ? compare_with_opponent(c, real, f, e)
                                    : each_baseline(c, real, f, e);
    if (!err && f->ok &&
        v->n_comparisons ==
            0) { /* no baseline: a comparison with itself gives the time and the floor */
        kli_evaluation_degrade(c, "no baseline: the kernel was timed against itself");
        err = kli_benchmark_compare(c, real, &c->candidate, &v->comparisons[0], f, e);
        v->n_comparisons = !err && f->ok;
    }
    sched_setaffinity(0, sizeof old, &old);
    kli_machine_lock_release(&c->machine_lock);
    if (err || !f->ok) return err;
    v->median_ns = llround(fmax(v->comparisons[0].candidate_ns, 1)); /* 0 means "was not timed" */
    roofline(c, f);
    if (f->ok && !v->comparisons[0].stable) kli_profile_unsettled(c, &v->comparisons[0], f);
    return KL_OK;
}
