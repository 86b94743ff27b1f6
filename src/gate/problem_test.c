/* problem_test.c - what is remembered of a reference's error.  SPDX-License-Identifier: Apache-2.0
 */
#include "gate_impl.h"
#include "base/test.h"
#include <math.h>

static void errors_of(double *rms, double first) {
    for (int i = 0; i < KL_MAX_TENSORS; i++) rms[i] = -1;
    rms[0] = first;
}

static void remember_one(kli_naive_error *m, double error) {
    double rms[KL_MAX_TENSORS];
    errors_of(rms, error);
    kli_reference_remember(m, rms);
}

/* A lucky draw of few rows must not make the budget of every later kernel. */
static void test_gate_scene__the_largest_error_of_several_draws_counts(void **state) {
    (void)state;
    kli_naive_error m = {0};
    remember_one(&m, 2e-7);
    assert_true(m.rms[0] == 2e-7 && m.rms[1] == -1);
    remember_one(&m, 9e-7);
    remember_one(&m, 3e-7);
    assert_true(m.rms[0] == 9e-7 && m.draws == 3);
}

static void test_gate_scene__an_error_that_overflowed_gives_way_to_one_that_did_not(void **state) {
    (void)state;
    kli_naive_error m = {0};
    remember_one(&m, INFINITY);
    assert_true(isinf(m.rms[0]));
    remember_one(&m, 1e-6);
    assert_true(m.rms[0] == 1e-6);
    remember_one(&m, NAN);
    remember_one(&m, INFINITY);
    assert_true(m.rms[0] == 1e-6);
}

static void test_gate_scene__an_error_is_read_as_it_was_written(void **state) {
    static const char *const NONE[] = {"", "1", "x", "1 0x1p-20", "one draw"};
    kl_arena *a = kl_arena_new();
    kli_naive_error m = {0}, again = {0};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(NONE); i++)
        assert_false(kli_reference_read(&again, kl_str_of(NONE[i])));
    assert_int_equal(again.draws, 0);
    remember_one(&m, 1.0 / 3e6);
    remember_one(&m, INFINITY);
    m.rms[5] = INFINITY;
    const kl_str text = kli_reference_text(a, &m);
    assert_true(kli_reference_read(&again, text));
    assert_int_equal(again.draws, 2);
    assert_memory_equal(again.rms, m.rms, sizeof m.rms);
    again = (kli_naive_error){0};
    assert_false(kli_reference_read(&again, (kl_str){"9 0", 3}));
    assert_false(kli_reference_read(&again, kl_arena_printf(a, "%s 1", text.ptr)));
    assert_false(kli_reference_read(&again, kl_arena_printf(a, "7%s", text.ptr)));
    kl_arena_free(a);
}

/* Who knows every input knows the root at most: not when it is looked at.  A given seed gives both
 * again. */
static void test_gate_scene__the_schedule_is_not_in_the_inputs(void **state) {
    (void)state;
    kl_verdict v[4] = {0};
    kli_evaluation c[4] = {0};
    for (int i = 0; i < 4; i++) {
        c[i].verdict = &v[i];
        kli_evaluation_seed(&c[i], i < 2 ? 99 : 0);
    }
    assert_true(c[0].root == 99 && c[0].root == c[1].root &&
                c[0].schedule.key == c[1].schedule.key);
    assert_true(c[2].root != c[3].root && v[2].seed == c[2].root);
    c[3].verdict->seed = c[2].root;
    assert_true(c[2].schedule.key !=
                kli_seed_derive(c[2].root, "schedule", c[2].root)); /* there is a secret in it */
    kli_evaluation_seed(&c[3], c[2].root);
    assert_true(c[3].root == c[2].root && c[3].schedule.key != c[2].schedule.key);
}

/* ---- where answers lie ------------------------------------------------------------------- */

enum { ROWS = 1100, COLUMNS = 1000 }; /* no small shape */

static kli_problem *answered; /* by an oracle that writes the number of the set */
static uint32_t slot_asked;

__typeof__(kli_executable_enter) __wrap_kli_executable_enter;
kl_err __wrap_kli_executable_enter(kli_executable *a, kli_problem *s, kli_evaluation *c,
                                   uint32_t first, uint32_t n, kl_fault *fault, kl_error *e) {
    (void)a, (void)c, (void)first, (void)n, (void)fault, (void)e;
    answered = s;
    return KL_OK;
}

__typeof__(kl_runner_run) __wrap_kl_runner_run;
kl_err __wrap_kl_runner_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot,
                            uint8_t poison, int64_t timeout_ns, int64_t *wall_ns, kl_error *e) {
    (void)r, (void)fault, (void)poison, (void)timeout_ns, (void)wall_ns, (void)e;
    float *y = kl_memory_output(&answered->oracle_memory, &answered->oracle_plan, 1, slot);
    y[ROWS * COLUMNS - 1] = (float)(set + 1);
    slot_asked = slot;
    return KL_OK;
}

typedef struct {
    kl_gate gate;
    kl_task task;
    kl_workload workload;
    kl_gate_opts opts;
    kl_device device;
    kli_executable oracle;
    kli_evaluation c;
    kli_problem s;
} world;

static void world_open(world *w, kl_backend_id backend, uint32_t n_sets) {
    kl_error e = {0};
    kl_kernel *k;
    *w = (world){.task = {.n_axes = 2, .n_tensors = 2, .n_inputs = 1},
                 .workload = {.axes = {ROWS, COLUMNS}, .dtypes = {KL_F32, KL_F32}},
                 .opts = {.threads = 1}};
    w->task.axes[0].name = KL_S("M"), w->task.axes[1].name = KL_S("N");
    for (int i = 0; i < 2; i++)
        w->task.tensors[i] = (kl_tensor){.name = i ? KL_S("y") : KL_S("x"),
                                         .is_output = i,
                                         .ndim = 2,
                                         .dims = {KL_S("M"), KL_S("N")}};
    w->workload.dists[0] = (kl_dist){.kind = KL_DIST_CONSTANT, .scale = 1, .active = 1};
    w->c = (kli_evaluation){.gate = &w->gate,
                            .arena = kl_arena_new(),
                            .opts = &w->opts,
                            .task = &w->task,
                            .device = &w->device,
                            .backend = kl_backend_get(backend),
                            .workload = &w->workload,
                            .oracle = &w->oracle};
    assert_ok(kl_kernel_parse(&k, w->c.arena, KL_S("//! launch f args(x, y)\n"), KL_S("f.c"), NULL,
                              NULL, &e));
    w->c.kernel = k;
    assert_ok(kli_problem_open(&w->s, &w->c, &w->workload, n_sets, n_sets, 1, &e));
    for (uint32_t set = 0; set < n_sets; set++)
        assert_ok(kli_problem_answer(&w->s, &w->c, set, &e));
}

static void world_close(world *w) {
    kli_problem_close(&w->s);
    kl_arena_free(w->c.arena);
}

static bool is_in_pages(const kli_problem *s, const void *answer) {
    const char *from = s->oracle_memory.outputs, *at = answer;
    return at >= from && at < from + s->oracle_memory.outputs_bytes;
}

/* The few large ones of a device's real shape stay where the oracle wrote them; all are right. */
static void test_gate_scene__answers_outlive_the_next(void **state) {
    (void)state;
    const struct {
        kl_backend_id backend;
        uint32_t n_sets;
        bool stay;
    } rows[] = {
        {KL_BACKEND_CUDA, 3, true}, {KL_BACKEND_CUDA, 4, false}, {KL_BACKEND_CPU, 3, false}};
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        static world w;
        world_open(&w, rows[i].backend, rows[i].n_sets);
        assert_int_equal(slot_asked, rows[i].stay ? rows[i].n_sets - 1 : 0);
        for (uint32_t set = 0; set < rows[i].n_sets; set++) {
            const float *y = w.s.expected[set][1];
            assert_int_equal(is_in_pages(&w.s, y), rows[i].stay);
            assert_true(y[ROWS * COLUMNS - 1] == (float)(set + 1));
        }
        kli_problem_forget(&w.s, 1);
        assert_int_equal(kli_problem_answered(&w.s, 1), rows[i].stay);
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_scene__the_largest_error_of_several_draws_counts),
        cmocka_unit_test(test_gate_scene__an_error_that_overflowed_gives_way_to_one_that_did_not),
        cmocka_unit_test(test_gate_scene__an_error_is_read_as_it_was_written),
        cmocka_unit_test(test_gate_scene__the_schedule_is_not_in_the_inputs),
        cmocka_unit_test(test_gate_scene__answers_outlive_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
