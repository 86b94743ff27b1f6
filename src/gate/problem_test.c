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

/* What is measured again because set 0 failed is set 0's alone. */
static void test_gate_scene__a_wider_budget_stays_with_its_set(void **state) {
    static kli_problem s;
    (void)state;
    s = (kli_problem){.n_sets = 3, .reference_error = {2e-7}, .naive_error = {{9e-7}, {0}, {5e-7}}};
    s.paired[0] = s.paired[2] = true;
    for (uint32_t set = 0; set < 3; set++) kli_problem_take_error(&s, set);
    assert_true(s.naive_error[0][0] == 9e-7 && s.naive_error[2][0] == 5e-7);
    assert_true(s.naive_error[1][0] == 2e-7);
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

/* Measured by this process or another, at the real shape: it needs no process of its own. */
static void test_gate_scene__a_reference_whose_error_is_known_is_not_started(void **state) {
    static kl_gate g;
    const kl_task task = {.hash = "softmax"};
    const kl_workload w = {.uuid = KL_S("cpu")}, other = {.uuid = KL_S("tiny")};
    const kl_device device = {.platform = KL_S("here")};
    const kl_gate_opts opts = {.compile.no_cache = true};
    kli_executable naive = {.name = KL_S("naive")};
    kli_evaluation c = {.gate = &g,
                        .task = &task,
                        .workload = &w,
                        .device = &device,
                        .opts = &opts,
                        .backend = kli_backend_get(KL_BACKEND_CPU),
                        .naive_kernel = &naive};
    (void)state;
    g.arena = c.arena = kl_arena_new();
    assert_false(kli_reference_is_known(&c));
    remember_one(&g.errors[0], 0.5);
    assert_true(kli_reference_is_known(&c));
    c.workload = &other;
    assert_false(kli_reference_is_known(&c));
    kl_arena_free(g.arena);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_scene__the_largest_error_of_several_draws_counts),
        cmocka_unit_test(test_gate_scene__an_error_that_overflowed_gives_way_to_one_that_did_not),
        cmocka_unit_test(test_gate_scene__a_wider_budget_stays_with_its_set),
        cmocka_unit_test(test_gate_scene__an_error_is_read_as_it_was_written),
        cmocka_unit_test(test_gate_scene__a_reference_whose_error_is_known_is_not_started),
        cmocka_unit_test(test_gate_scene__the_schedule_is_not_in_the_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
