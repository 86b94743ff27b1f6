/* cuda_next_test.c - processes whose contexts come up while others are timed, on the fake of
 * fake_cuda.c: nobody waits for them, and they stand still meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/runner_impl.h"
#include "base/test.h"
#include "gate/gate_impl.h"
#include <stdlib.h>
#include <unistd.h>

static const char SLOW[] = "slow_context@300000", QUICK[] = "";

typedef struct {
    kl_gate gate;
    kl_device device;
    kl_gate_opts opts;
    kli_evaluation c;
} fixture;

static void contexts_are(const char *fault) {
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", fault, 1), 0);
}

static int setup(void **state) {
    static fixture f;
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    f = (fixture){.device.limits.memory = 139ll << 30, .opts.more_to_come = true};
    f.c = (kli_evaluation){.gate = &f.gate,
                           .opts = &f.opts,
                           .device = &f.device,
                           .backend = kli_backend_get(KL_BACKEND_CUDA)};
    f.gate.n_candidates[KL_BACKEND_CUDA] = KL_MAX_SPARES;
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    kl_gate *g = &((fixture *)*state)->gate;
    for (int *n = &g->n_spares[KL_BACKEND_CUDA]; *n;)
        kli_runner_stop(g->spares[KL_BACKEND_CUDA][--*n]);
    return 0;
}

static kl_runner *spare(const fixture *f, int i) { return f->gate.spares[KL_BACKEND_CUDA][i]; }

/* The third word of its stat: R, S, T, ... */
static char state_of(const kl_runner *r) {
    char path[64], state = '?';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)r->pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
    (void)fclose(file);
    return state;
}

static void await_up(kl_runner *r) {
    for (int i = 0; i < 20000 && !kli_runner_is_up(r); i++) (void)usleep(1000);
    assert_true(kli_runner_is_up(r));
}

/* Five minutes would be the time of each context. */
static void test_cuda_next__nobody_waits_for_contexts_of_later_verdicts(void **state) {
    fixture *f = *state;
    contexts_are(SLOW);
    kli_next_begin(&f->c);
    assert_int_equal(f->gate.n_spares[KL_BACKEND_CUDA], KL_MAX_SPARES);
    kli_next_await(&f->c);
    for (int i = 0; i < KL_MAX_SPARES; i++) assert_false(kli_runner_is_up(spare(f, i)));
    for (int again = 0; again < 2; again++) {
        kli_next_hold(&f->c);
        for (int i = 0; i < KL_MAX_SPARES; i++) assert_int_equal(state_of(spare(f, i)), 'T');
        kli_next_go_on(&f->c);
        for (int i = 0; i < KL_MAX_SPARES; i++) assert_int_not_equal(state_of(spare(f, i)), 'T');
    }
    kli_next_end(&f->c, true);
    assert_int_equal(f->gate.n_spares[KL_BACKEND_CUDA], KL_MAX_SPARES); /* and no more */
}

/* It stood still for longer than its context takes, and has not come up. */
static void test_cuda_next__what_is_held_makes_no_progress(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    f->gate.n_candidates[KL_BACKEND_CUDA] = 1;
    contexts_are("slow_context@400");
    kli_next_begin(&f->c);
    kl_runner *r = spare(f, 0);
    assert_true(kli_runner_hold(r));
    (void)usleep(700000);
    assert_true(!kli_runner_is_up(r) && state_of(r) == 'T');
    kli_runner_go_on(r);
    await_up(r);
    assert_true(kli_runner_hold(r)); /* one that is up needs no stop */
    assert_int_not_equal(state_of(r), 'T');
    assert_ok(kli_runner_await(r, &e));
    assert_non_null(strstr(kli_runner_describe(r), "fake"));
}

/* Whoever is asked for a held one lets it come up. */
static void test_cuda_next__what_is_held_can_be_awaited(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    f->gate.n_candidates[KL_BACKEND_CUDA] = 1;
    contexts_are("slow_context@50");
    kli_next_begin(&f->c);
    kli_next_hold(&f->c);
    assert_ok(kli_runner_await(spare(f, 0), &e));
}

static void test_cuda_next__a_candidate_takes_one_that_is_up(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    contexts_are(SLOW);
    f->gate.n_candidates[KL_BACKEND_CUDA] = 2;
    kli_next_begin(&f->c);
    contexts_are(QUICK);
    f->gate.n_candidates[KL_BACKEND_CUDA] = 3;
    kli_next_begin(&f->c);
    kl_runner *up = spare(f, 2), *first = spare(f, 0), *second = spare(f, 1);
    await_up(up);
    assert_ok(kli_executable_restart(&f->c.candidate, &f->c, &e));
    assert_ptr_equal(f->c.candidate.runner, up);
    assert_int_equal(f->gate.n_spares[KL_BACKEND_CUDA], 2);
    assert_true(spare(f, 0) == first && spare(f, 1) == second);
    kli_executable_stop(&f->c.candidate);
    contexts_are(SLOW);
    assert_ok(kli_executable_restart(&f->c.candidate, &f->c, &e)); /* the one that came first */
    assert_ptr_equal(f->c.candidate.runner, first);
    kli_executable_stop(&f->c.candidate);
}

/* What is wrong with one is no verdict's business while there is another. */
static void test_cuda_next__one_that_failed_is_not_taken(void **state) {
    fixture *f = *state;
    kl_error e = {0};
    f->gate.n_candidates[KL_BACKEND_CUDA] = 1;
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", "/nonexistent", 1), 0);
    kli_next_begin(&f->c);
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    f->gate.n_candidates[KL_BACKEND_CUDA] = 2;
    contexts_are(QUICK);
    kli_next_begin(&f->c);
    kl_runner *good = spare(f, 1);
    await_up(spare(f, 0)), await_up(good);
    assert_ok(kli_executable_restart(&f->c.candidate, &f->c, &e));
    assert_ptr_equal(f->c.candidate.runner, good);
    assert_int_equal(f->gate.n_spares[KL_BACKEND_CUDA], 0);
    kli_executable_stop(&f->c.candidate);
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_cuda_next__nobody_waits_for_contexts_of_later_verdicts),
        test_of(test_cuda_next__what_is_held_makes_no_progress),
        test_of(test_cuda_next__what_is_held_can_be_awaited),
        test_of(test_cuda_next__a_candidate_takes_one_that_is_up),
        test_of(test_cuda_next__one_that_failed_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
