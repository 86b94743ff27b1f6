/* next_test.c - what is done for the next verdict, and when not.  The compiler, the runner and the
 * choice of a device are stand-ins; the thread and the machine's lock are real.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"
#include "base/log.h"
#include "base/test.h"
#include <stdlib.h>
#include <unistd.h>

static const int64_t NEXT_MOMENT_NS = 50000000;

static struct {
    kl_backend_id backend; /* of the next verdict */
    kl_device device;      /* likewise */
    atomic_int compiled;   /* times */
    atomic_bool waits;     /* the compiler goes on until it is ended */
    bool on_runner_core, alone;
    kl_err comes_up;
    bool up, restless; /* processes are; they cannot be held */
    int started, awaited, dismissed, stopped, tasks, held, went_on;
} seen;

static int a_runner; /* in the place of one */

kl_err __wrap_kli_compile(kl_artefact *out, kl_arena *a, const kl_device *d, const kl_kernel *k,
                          const kl_task *t, const kl_workload *w, const kl_compile_opts *o,
                          kl_error *e) {
    cpu_set_t set;
    kli_machine_lock rival;
    (void)out, (void)a, (void)d, (void)t, (void)w, (void)o;
    assert_string_equal(k->hash, "next");
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    seen.on_runner_core = CPU_ISSET((size_t)kli_last_core(), &set) && CPU_COUNT(&set) > 1;
    kli_machine_lock_open(&rival, "rival", false);
    rival.limit_ns = NEXT_MOMENT_NS;
    seen.alone = kli_machine_lock_exclusive(&rival) == KL_MACHINE_LOCK_TAKEN;
    kli_machine_lock_close(&rival);
    atomic_fetch_add(&seen.compiled, 1);
    while (atomic_load(&seen.waits) && !kli_interrupted()) usleep(1000);
    return kl_fail(e, KL_EINTR, "compile", "ended");
}

kl_err __wrap_kli_evaluation_place(kli_evaluation *c, kl_gate_opts *opts, kl_error *e) {
    (void)opts, (void)e;
    c->backend = kli_backend_get(seen.backend);
    c->device = &seen.device;
    return KL_OK;
}

kl_err __wrap_kli_evaluation_start_trusted(kli_evaluation *c, kl_error *e) {
    c->verdict->n_degradations++; /* what it may say is nobody's */
    seen.tasks++;
    return kl_fail(e, KL_ENODEV, "oracle", "as told");
}

kl_err __wrap_kli_gate_start_ahead(kl_gate *g, kl_backend_id id, kl_error *e) {
    (void)e;
    g->spares[id][g->n_spares[id]++] = (kl_runner *)(void *)&a_runner;
    seen.started++;
    return KL_OK;
}

kl_err __wrap_kli_runner_await(kl_runner *r, kl_error *e) {
    assert_ptr_equal(r, &a_runner);
    seen.awaited++;
    return seen.comes_up ? kl_fail(e, seen.comes_up, "runner", "as told") : KL_OK;
}

bool __wrap_kli_runner_is_up(kl_runner *r) {
    assert_ptr_equal(r, &a_runner);
    return seen.up;
}

bool __wrap_kli_runner_hold(kl_runner *r) {
    assert_ptr_equal(r, &a_runner);
    seen.held++;
    return !seen.restless;
}

void __wrap_kli_runner_go_on(kl_runner *r) {
    assert_ptr_equal(r, &a_runner);
    seen.went_on++;
}

void __wrap_kli_runner_dismiss(kl_runner *r) {
    assert_ptr_equal(r, &a_runner);
    seen.dismissed++;
}

void __wrap_kli_runner_stop(kl_runner *r) {
    assert_ptr_equal(r, &a_runner);
    seen.stopped++;
}

typedef struct {
    kl_gate gate;
    kl_kernel kernel;
    kl_device device;
    kl_gate_job next;
    kl_gate_opts opts;
    kli_evaluation c;
} fixture;

static int setup(void **state) {
    static fixture f;
    kl_arena_free(f.c.arena);
    memset(&seen, 0, sizeof seen);
    seen.backend = KL_BACKEND_CUDA;
    f = (fixture){.gate.core = kli_last_core(), .kernel.hash = "next"};
    f.next.kernel = &f.kernel;
    f.opts = (kl_gate_opts){.more_to_come = true, .next = &f.next};
    f.c = (kli_evaluation){.gate = &f.gate,
                           .arena = kl_arena_new(),
                           .opts = &f.opts,
                           .device = &f.device,
                           .backend = kli_backend_get(KL_BACKEND_CUDA)};
    f.gate.n_candidates[KL_BACKEND_CUDA] = 1; /* this verdict's */
    *state = &f;
    return 0;
}

static void await_compiler(void) {
    for (int i = 0; i < 5000 && !atomic_load(&seen.compiled); i++) usleep(1000);
    assert_int_equal(atomic_load(&seen.compiled), 1);
}

/* No gate can time on those cores meanwhile, and no runner's core is among them. */
static void test_gate_next__code_is_compiled_beside_the_runners_core(void **state) {
    fixture *f = *state;
    if (f->gate.core < 0) skip();
    kli_next_begin(&f->c);
    await_compiler();
    kli_next_end(&f->c, true);
    assert_false(seen.on_runner_core || seen.alone);
}

/* A kernel of the CPU is timed by who has the cores alone. */
static void test_gate_next__no_compiler_runs_while_the_cores_are_timed(void **state) {
    fixture *f = *state;
    kli_machine_lock turn;
    if (f->gate.core < 0) skip();
    kli_machine_lock_open(&turn, "gate gemm", false);
    assert_int_equal(kli_machine_lock_exclusive(&turn), KL_MACHINE_LOCK_TAKEN);
    kli_next_begin(&f->c);
    usleep(100000);
    assert_int_equal(atomic_load(&seen.compiled), 0);
    kli_machine_lock_close(&turn);
    await_compiler();
    kli_next_end(&f->c, true);
}

static void test_gate_next__without_an_answer_the_compiler_is_ended(void **state) {
    fixture *f = *state;
    if (f->gate.core < 0) skip();
    atomic_store(&seen.waits, true);
    kli_next_begin(&f->c);
    await_compiler();
    kli_next_end(&f->c, false); /* or this test never ends */
    assert_int_equal(seen.started, 1);
}

static bool is_stopped(void *ctx) {
    (void)ctx;
    return atomic_load(&seen.compiled) > 0;
}

/* Who watches this verdict ends what is compiled for the next one too. */
static void test_gate_next__a_user_who_wants_to_stop_waits_for_no_compiler(void **state) {
    fixture *f = *state;
    const kl_monitor user = {.cancelled = is_stopped};
    if (f->gate.core < 0) skip();
    atomic_store(&seen.waits, true);
    const kl_monitor *before = kl_monitor_use(&user);
    kli_next_begin(&f->c);
    kli_next_end(&f->c, true); /* or this test never ends */
    (void)kl_monitor_use(before);
    assert_int_equal(atomic_load(&seen.compiled), 1);
}

static void test_gate_next__code_for_a_cpu_is_not_compiled_ahead(void **state) {
    fixture *f = *state;
    seen.backend = KL_BACKEND_CPU;
    kli_next_begin(&f->c);
    kli_next_end(&f->c, true);
    assert_int_equal(atomic_load(&seen.compiled), 0);
}

static void test_gate_next__its_process_is_up_or_held_while_anything_is_timed(void **state) {
    fixture *f = *state;
    f->opts.next = NULL;
    kli_next_begin(&f->c);
    assert_int_equal(seen.started, 1);
    kli_next_await(&f->c);
    assert_int_equal(seen.awaited, 0); /* a context takes longer than a verdict */
    kli_next_hold(&f->c);
    kli_next_go_on(&f->c);
    assert_true(seen.held == 1 && seen.went_on == 1 && seen.awaited == 0);
    seen.restless = true;
    kli_next_hold(&f->c);
    assert_int_equal(seen.awaited, 1); /* then it has to come up first */
    kli_next_end(&f->c, true);
    assert_int_equal(seen.started, 1); /* it is there still */
    assert_int_equal(f->gate.n_spares[KL_BACKEND_CUDA], 1);
}

static void test_gate_next__a_process_of_the_cpu_is_awaited(void **state) {
    fixture *f = *state;
    f->opts.next = NULL;
    f->c.backend = kli_backend_get(KL_BACKEND_CPU);
    f->gate.n_candidates[KL_BACKEND_CPU] = 1;
    kli_next_begin(&f->c);
    kli_next_await(&f->c);
    assert_true(seen.awaited == 1 && f->gate.n_spares[KL_BACKEND_CPU] == 1);
}

/* One verdict more is no reason for four processes, and a small device has no room for them. */
static void test_gate_next__a_long_queue_has_several_processes_ready(void **state) {
    fixture *f = *state;
    const struct {
        int64_t gib;
        int candidates, spares;
    } rows[] = {{139, 1, 1}, {139, 3, 3}, {139, 50, 4}, {78, 50, 2}, {24, 50, 1}, {0, 50, 1}};
    f->opts.next = NULL;
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        f->device.limits.memory = rows[i].gib << 30;
        f->gate.n_candidates[KL_BACKEND_CUDA] = rows[i].candidates;
        f->gate.n_spares[KL_BACKEND_CUDA] = 0;
        seen.started = 0;
        kli_next_begin(&f->c);
        kli_next_end(&f->c, true); /* some are left: no more are started */
        assert_int_equal(seen.started, rows[i].spares);
    }
}

/* Side by side with this one's, unless a process that is in use would have to go for them. */
static void test_gate_next__processes_of_later_tasks_are_started(void **state) {
    fixture *f = *state;
    kl_gate_job later = {.kernel = &f->kernel};
    f->next.opts.next = &later;
    seen.backend = KL_BACKEND_CPU;
    kli_next_begin(&f->c);
    kli_next_end(&f->c, true);
    assert_int_equal(seen.tasks, 2);
    f->gate.n_executables = (int)KL_COUNT(f->gate.executables) - 2;
    kli_next_begin(&f->c);
    kli_next_end(&f->c, true);
    assert_int_equal(seen.tasks, 2);
}

/* A context takes memory that the kernel of this verdict may need. */
static void test_gate_next__a_small_device_is_left_to_this_verdict(void **state) {
    fixture *f = *state;
    kli_executable warm = {.runner = (kl_runner *)(void *)&a_runner}, cold = {0};
    const struct {
        int64_t gib;
        int warm, tasks;
    } rows[] = {{139, 33, 1}, {24, 3, 1}, {24, 9, 1}, {24, 10, 0}, {8, 1, 1}, {8, 3, 0}, {0, 0, 0}};
    f->opts.more_to_come = false;
    f->next.opts.compile.no_cache = true;
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        seen.device.limits.memory = rows[i].gib << 30;
        seen.tasks = 0;
        f->gate.n_executables = 40;
        for (int k = 0; k < 40; k++) f->gate.executables[k] = k < rows[i].warm ? &warm : &cold;
        kli_next_begin(&f->c);
        kli_next_end(&f->c, true);
        assert_int_equal(seen.tasks, rows[i].tasks);
    }
}

/* A library that is still being opened for another task would share the device. */
static void test_gate_next__whatever_was_started_is_up(void **state) {
    fixture *f = *state;
    kli_executable warm = {.runner = (kl_runner *)(void *)&a_runner}, cold = {0};
    f->gate.executables[0] = &warm, f->gate.executables[1] = &cold;
    f->gate.n_executables = 2;
    kli_next_await(&f->c);
    assert_int_equal(seen.awaited, 1);
    assert_non_null(warm.runner);
    seen.comes_up = KL_ENODEV;
    kli_next_await(&f->c);
    assert_true(seen.stopped == 1 && !warm.runner);
}

/* Nothing waits for the end of a process that was judged, until its memory may be missed. */
static void test_gate_next__what_was_judged_ends_by_itself(void **state) {
    fixture *f = *state;
    const int room = (int)KL_COUNT(f->gate.ending);
    for (int i = 0; i < room + 1; i++) {
        assert_int_equal(seen.stopped, 0);
        kli_executable candidate = {.runner = (kl_runner *)(void *)&a_runner, .problem = 7};
        kli_executable_leave(&candidate, &f->gate);
        assert_true(!candidate.runner && !candidate.problem && seen.dismissed == i + 1);
    }
    assert_true(seen.stopped == room && f->gate.n_ending == 1);
    kli_gate_reap(&f->gate);
    assert_true(seen.stopped == room + 1 && f->gate.n_ending == 0);
}

static void test_gate_next__a_process_that_does_not_come_up_goes(void **state) {
    fixture *f = *state;
    f->opts.next = NULL;
    seen.up = true;
    seen.comes_up = KL_ENODEV;
    kli_next_begin(&f->c);
    kli_next_await(&f->c);
    assert_int_equal(seen.stopped, 1);
    assert_int_equal(f->gate.n_spares[KL_BACKEND_CUDA], 0);
}

#define test_of(function) cmocka_unit_test_setup(function, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_gate_next__code_is_compiled_beside_the_runners_core),
        test_of(test_gate_next__no_compiler_runs_while_the_cores_are_timed),
        test_of(test_gate_next__without_an_answer_the_compiler_is_ended),
        test_of(test_gate_next__a_user_who_wants_to_stop_waits_for_no_compiler),
        test_of(test_gate_next__code_for_a_cpu_is_not_compiled_ahead),
        test_of(test_gate_next__its_process_is_up_or_held_while_anything_is_timed),
        test_of(test_gate_next__a_process_of_the_cpu_is_awaited),
        test_of(test_gate_next__a_long_queue_has_several_processes_ready),
        test_of(test_gate_next__processes_of_later_tasks_are_started),
        test_of(test_gate_next__a_small_device_is_left_to_this_verdict),
        test_of(test_gate_next__whatever_was_started_is_up),
        test_of(test_gate_next__what_was_judged_ends_by_itself),
        test_of(test_gate_next__a_process_that_does_not_come_up_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
