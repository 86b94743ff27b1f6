/* check_test.c - what a kernel may be off by, and what is said of one that is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#define kli_problem_open fake_open /* before the headers: declarations and calls alike */
#define kli_problem_close fake_close
#define kli_problem_expect fake_expect
#define kli_problem_ready_slot fake_ready
#define kli_problem_pair fake_pair
#define kli_executable_enter fake_enter
#define kl_runner_upload fake_upload
#define kl_runner_run fake_run
#define kl_runner_slack fake_slack
#include "check.c"

#include <stdio.h>
#include <stdlib.h>

/* One float16 input x[4,8], one output y[4,8]. */
typedef struct {
    kl_task task;
    kl_workload workload;
    kli_problem problem;
    kl_gate_opts opts;
    kl_verdict verdict;
    kl_kernel kernel;
    kli_evaluation c;
} world;

static void world_open(world *w, kl_dtype input, kl_dtype output) {
    *w = (world){.task = {.n_tensors = 2, .n_inputs = 1}, .workload = {.label = KL_S("cpu")}};
    w->task.tensors[1].name = KL_S("y");
    w->workload.checks[1] = (kl_check){.kind = KL_CHECK_BUDGET, .budget = 4};
    w->problem = (kli_problem){
        .task = &w->task, .workload = &w->workload, .scale = 1, .plan = {.n_tensors = 2}};
    w->problem.plan.tensors[0] =
        (kl_plan_tensor){.dtype = input, .role = 0, .ndim = 2, .dims = {4, 8}, .name = "x"};
    w->problem.plan.tensors[1] = (kl_plan_tensor){.dtype = output,
                                                  .role = 1,
                                                  .ndim = 2,
                                                  .dims = {4, 8},
                                                  .bytes = 32 * kl_dtype_bytes(output),
                                                  .name = "y"};
    w->problem.naive_error[0][1] = -1;
    w->kernel.surface = kl_surface_of_host(KL_ON_CPU);
    w->c = (kli_evaluation){.arena = kl_arena_new(),
                            .opts = &w->opts,
                            .verdict = &w->verdict,
                            .task = &w->task,
                            .kernel = &w->kernel,
                            .workload = &w->workload};
}

static void world_close(world *w) { kl_arena_free(w->c.arena); }

/* ---- made-up runs: the right answer is the scale, everywhere ----------------------------- */

struct kl_runner {
    double wrong_above; /* scales above this are answered with zeros */
};

static struct {
    double scales[8]; /* that the candidate was asked for, in order */
    int n;
    const world *of;
} asked;

static void scene_with_pages(world *w, kli_problem *s, double scale) {
    kl_layout layout;
    kl_error e = {0};
    *s = w->problem;
    s->oracle_plan = s->plan;
    s->n_sets = s->n_slots = 1;
    s->scale = scale;
    assert_ok(kl_layout_make(&layout, &s->plan, 1, 1, &e));
    assert_ok(kl_memory_open(&s->memory, &layout, &e));
}

kl_err fake_open(kli_problem *s, kli_evaluation *c, const kl_workload *w, uint32_t n_sets,
                 uint32_t n_slots, double scale, kl_error *e) {
    (void)c, (void)n_sets, (void)n_slots, (void)e;
    assert_ptr_equal(w, &asked.of->workload);
    asked.scales[asked.n++] = scale;
    scene_with_pages((world *)(uintptr_t)asked.of, s, scale);
    return KL_OK;
}

void fake_close(kli_problem *s) {
    free(s->expected[0][1]);
    kl_memory_close(&s->memory);
}

static void fill_with(float *y, double value) {
    for (int i = 0; i < 32; i++) y[i] = (float)value;
}

kl_err fake_expect(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    (void)c, (void)e;
    s->expected[set][1] = malloc(32 * sizeof(float));
    assert_non_null(s->expected[set][1]);
    fill_with(s->expected[set][1], s->scale);
    return KL_OK;
}

static const kli_problem *entered;

kl_err fake_enter(kli_executable *a, kli_problem *s, kli_evaluation *c, kl_fault *fault,
                  kl_error *e) {
    (void)a, (void)c, (void)fault, (void)e;
    entered = s;
    return KL_OK;
}

kl_err fake_upload(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t n, kl_error *e) {
    (void)r, (void)fault, (void)first, (void)n, (void)e;
    return KL_OK;
}

kl_err fake_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot, uint8_t poison,
                int64_t timeout_ns, int64_t *wall_ns, kl_error *e) {
    (void)fault, (void)set, (void)poison, (void)timeout_ns, (void)wall_ns, (void)e;
    fill_with((float *)kl_memory_output(&entered->memory, &entered->plan, 1, slot),
              entered->scale > r->wrong_above ? 0 : entered->scale);
    return KL_OK;
}

void fake_ready(kli_problem *s, uint32_t set, uint32_t slot, uint8_t poison) {
    (void)set;
    kl_memory_poison(&s->memory, &s->plan, slot, poison);
}

kl_err fake_pair(kli_problem *s, kli_evaluation *c, uint32_t set, bool *wider, kl_error *e) {
    (void)s, (void)c, (void)set, (void)e;
    *wider = false;
    return KL_OK;
}

void fake_slack(kl_runner *r, uint8_t byte) { (void)r, (void)byte; }

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void test_gate_check__rounding_to_the_output_is_always_permitted(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_F32, KL_BF16);
    assert_true(near(permitted_rounding(&w.problem, 1), kl_dtype_epsilon(KL_BF16)));
    world_close(&w);
}

static void test_gate_check__stated_precision_is_permitted_inside(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_BF16, KL_F32);
    assert_true(near(permitted_rounding(&w.problem, 1),
                     kl_dtype_epsilon(KL_F32))); /* nothing stated: nothing given */
    w.task.precision = KL_BF16;
    assert_true(near(permitted_rounding(&w.problem, 1), kl_dtype_epsilon(KL_BF16)));
    w.problem.plan.tensors[0].dtype =
        KL_F32; /* a float32 workload of a bfloat16 task is computed in float32 */
    assert_true(near(permitted_rounding(&w.problem, 1), 2 * kl_dtype_epsilon(KL_F32)));
    world_close(&w);
}

static void test_gate_check__budget_is_a_multiple_of_the_reference(void **state) {
    (void)state;
    world w;
    const kl_check *how = &w.workload.checks[1];
    world_open(&w, KL_F32, KL_F32);
    assert_true(near(budget_of(&w.problem, 0, 1, how), 4 * kl_dtype_epsilon(KL_F32)));
    w.problem.naive_error[0][1] = 1e-5;
    assert_true(near(budget_of(&w.problem, 0, 1, how), 4e-5));
    w.workload.checks[1].budget = 2;
    assert_true(near(budget_of(&w.problem, 0, 1, how), 2e-5));
    world_close(&w);
}

static void test_gate_check__a_wrong_reference_does_not_open_the_gate(void **state) {
    (void)state;
    world w;
    const kl_check *how = &w.workload.checks[1];
    world_open(&w, KL_F32, KL_F32);
    w.problem.naive_error[0][1] = INFINITY;
    assert_true(budget_of(&w.problem, 0, 1, how) < 1e-5);
    w.problem.naive_error[0][1] = NAN;
    assert_true(budget_of(&w.problem, 0, 1, how) < 1e-5);
    w.problem.naive_error[0][1] = 1; /* as zeros have */
    assert_true(budget_of(&w.problem, 0, 1, how) <= 0.5);
    world_close(&w);
}

static void test_gate_check__says_where_and_what(void **state) {
    (void)state;
    world w;
    kli_check_outcome f = {.ok = true};
    float got[32] = {0};
    const kl_check_result r = {.bad = 3, .first_bad = 11, .got = 2, .expected = 1};
    world_open(&w, KL_F32, KL_F32);
    explain(&f, &w.c, &w.problem, 1, &r, got, KL_POISON_NAN);
    assert_int_equal(f.outcome, KL_OUTCOME_WRONG);
    assert_contains(f.why.ptr, "y[1,3] is 2, expected 1");
    memset(&got[11], KL_POISON_NAN, sizeof got[11]);
    explain(&f, &w.c, &w.problem, 1, &r, got, KL_POISON_NAN);
    assert_contains(f.why.ptr, "y[1,3] was not written");
    world_close(&w);
}

static void test_gate_check__a_hidden_shape_keeps_its_sizes(void **state) {
    (void)state;
    world w;
    kli_check_outcome f = {.ok = true};
    float got[32] = {0};
    const kl_check_result r = {.workload = KL_S("odd"),
                               .bad = 137,
                               .first_bad = 11,
                               .got = 2.5,
                               .expected = 1.5,
                               .rms_error = 0.25};
    world_open(&w, KL_F32, KL_F32);
    w.workload.hidden = true;
    w.workload.label = KL_S("odd");
    explain(&f, &w.c, &w.problem, 1, &r, got, KL_POISON_NAN);
    assert_null(strpbrk(f.why.ptr, "0123456789"));
    assert_null(strstr(f.why.ptr, "odd"));
    const kl_check_result said = without_sizes(&r);
    assert_str(said.workload, "hidden");
    assert_int_equal(said.bad, 1);
    assert_int_equal(said.first_bad, -1);
    assert_true(said.rms_error == 0.25);
    world_close(&w);
}

static void test_gate_check__records_grow_and_own_their_text(void **state) {
    (void)state;
    world w;
    char label[16];
    world_open(&w, KL_F32, KL_F32);
    for (int i = 0; i < 100; i++) {
        snprintf(label, sizeof label, "w%d", i);
        record_check(&w.c, &(kl_check_result){.workload = kl_str_of(label), .bad = i});
    }
    assert_int_equal(w.verdict.n_checks, 100);
    assert_str(w.verdict.checks[0].workload, "w0");
    assert_int_equal(w.verdict.checks[99].bad, 99);
    world_close(&w);
}

static void test_gate_check__faults_have_their_outcome(void **state) {
    (void)state;
    const struct {
        kl_fault_kind kind;
        kl_outcome outcome;
    } rows[] = {{KL_FAULT_HANG, KL_OUTCOME_HANG},     {KL_FAULT_CRASH, KL_OUTCOME_CRASH},
                {KL_FAULT_DEVICE, KL_OUTCOME_CRASH},  {KL_FAULT_REFUSED, KL_OUTCOME_REFUSED},
                {KL_FAULT_GUARD, KL_OUTCOME_WRONG},   {KL_FAULT_INPUT, KL_OUTCOME_CHEAT},
                {KL_FAULT_PROTOCOL, KL_OUTCOME_CHEAT}};
    world w;
    world_open(&w, KL_F32, KL_F32);
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        kli_check_outcome f = {.ok = true};
        const kl_fault fault = {.kind = rows[i].kind, .text = "said"};
        kli_check_outcome_of_fault(&f, &w.c, &fault, "here");
        assert_false(f.ok);
        assert_int_equal(f.outcome, rows[i].outcome);
        assert_contains(f.why.ptr, "said");
    }
    kli_check_outcome f = {.ok = true};
    kli_check_outcome_of_fault(&f, &w.c, &(kl_fault){.kind = KL_FAULT_NONE}, "here");
    assert_true(f.ok);
    w.verdict.assurance =
        'A'; /* device code cannot end or imitate a process: the fault lies elsewhere */
    kli_check_outcome_of_fault(&f, &w.c, &(kl_fault){.kind = KL_FAULT_PROTOCOL}, "here");
    assert_int_equal(f.outcome, KL_OUTCOME_CRASH);
    world_close(&w);
}

static void test_gate_check__patience_follows_the_oracle(void **state) {
    (void)state;
    assert_int_equal(patience(&(kli_problem){.oracle_ns = 1000}, 5 * CHECK_SECOND),
                     5 * CHECK_SECOND);
    assert_int_equal(patience(&(kli_problem){.oracle_ns = CHECK_SECOND}, 5 * CHECK_SECOND),
                     50 * CHECK_SECOND);
    assert_int_equal(patience(&(kli_problem){.oracle_ns = 100 * CHECK_SECOND}, 5 * CHECK_SECOND),
                     120 * CHECK_SECOND);
}

static void test_gate_check__shapes_of_other_types_are_another_kernels(void **state) {
    (void)state;
    world w;
    kl_workload other = {.hidden = true};
    world_open(&w, KL_F32, KL_F32);
    w.workload.dtypes[0] = w.workload.dtypes[1] = KL_F32;
    other.dtypes[0] = other.dtypes[1] = KL_F32;
    assert_true(same_types(&w.c, &other));
    other.dtypes[1] = KL_BF16;
    assert_false(same_types(&w.c, &other));
    world_close(&w);
}

/* ---- stress scales at the real shape ----------------------------------------------------- */

typedef struct {
    kl_runner candidate, naive_kernel;
    kli_executable oracle, naive;
    kl_backend backend;
    kli_check_outcome checked;
} stress;

static void stress_at_real(world *w, stress *t, double candidate_wrong_above,
                           double reference_wrong_above, int64_t oracle_ns) {
    kl_error e = {0};
    world_open(w, KL_F32, KL_F32);
    *t = (stress){.candidate = {candidate_wrong_above},
                  .naive_kernel = {reference_wrong_above},
                  .checked = {.ok = true}};
    t->backend = (kl_backend){.shared_memory = true};
    t->naive.runner = &t->naive_kernel;
    w->workload.checks[1] = (kl_check){.kind = KL_CHECK_BUDGET, .rtol = 1e-3, .budget = 4};
    w->task.n_stress = 2;
    w->task.stress[0] = 0.001, w->task.stress[1] = 64;
    w->c.backend = &t->backend;
    w->c.candidate.runner = &t->candidate;
    w->c.oracle = &t->oracle;
    w->c.naive_kernel = &t->naive;
    asked.n = 0;
    asked.of = w;
    assert_ok(check_stress_at_real(&w->c, &(kli_problem){.oracle_ns = oracle_ns}, &t->checked, &e));
}

static void test_gate_check__stress_scales_are_checked_at_the_real_shape(void **state) {
    (void)state;
    world w;
    stress t;
    stress_at_real(&w, &t, 1e9, 1e9, CHECK_SECOND);
    assert_true(t.checked.ok && asked.n == 2 && asked.scales[0] == 0.001 && asked.scales[1] == 64);
    assert_int_equal(w.verdict.n_degradations, 0);
    world_close(&w);
    stress_at_real(&w, &t, 1, 1e9, CHECK_SECOND); /* right for small inputs alone */
    assert_false(t.checked.ok);
    assert_int_equal(t.checked.outcome, KL_OUTCOME_WRONG);
    assert_contains(t.checked.why.ptr, "at cpu: y[0,0] is 0, expected 64");
    assert_false(w.verdict.checks[w.verdict.n_checks - 1].ok);
    world_close(&w);
}

static void
test_gate_check__a_scale_that_the_naive_kernel_does_not_stand_blames_nobody(void **state) {
    (void)state;
    world w;
    stress t;
    stress_at_real(&w, &t, 1, 1, CHECK_SECOND);
    assert_true(t.checked.ok);
    assert_int_equal(w.verdict.n_degradations, 1);
    for (int i = 0; i < w.verdict.n_checks; i++) assert_true(w.verdict.checks[i].ok);
    world_close(&w);
}

static void test_gate_check__a_slow_oracle_is_not_asked_at_every_scale(void **state) {
    (void)state;
    world w;
    stress t;
    stress_at_real(&w, &t, 1, 1e9, 3 * CHECK_SECOND);
    assert_true(t.checked.ok && asked.n == 0);
    assert_int_equal(w.verdict.n_degradations, 1);
    world_close(&w);
}

static void test_gate_check__quick_takes_the_largest_scale(void **state) {
    (void)state;
    world w;
    stress t;
    stress_at_real(&w, &t, 1e9, 1e9, CHECK_SECOND);
    kl_error e = {0};
    asked.n = 0;
    w.opts.quick = true;
    assert_ok(
        check_stress_at_real(&w.c, &(kli_problem){.oracle_ns = CHECK_SECOND}, &t.checked, &e));
    assert_true(asked.n == 1 && asked.scales[0] == 64);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_check__rounding_to_the_output_is_always_permitted),
        cmocka_unit_test(test_gate_check__stated_precision_is_permitted_inside),
        cmocka_unit_test(test_gate_check__budget_is_a_multiple_of_the_reference),
        cmocka_unit_test(test_gate_check__a_wrong_reference_does_not_open_the_gate),
        cmocka_unit_test(test_gate_check__says_where_and_what),
        cmocka_unit_test(test_gate_check__a_hidden_shape_keeps_its_sizes),
        cmocka_unit_test(test_gate_check__records_grow_and_own_their_text),
        cmocka_unit_test(test_gate_check__faults_have_their_outcome),
        cmocka_unit_test(test_gate_check__patience_follows_the_oracle),
        cmocka_unit_test(test_gate_check__shapes_of_other_types_are_another_kernels),
        cmocka_unit_test(test_gate_check__stress_scales_are_checked_at_the_real_shape),
        cmocka_unit_test(
            test_gate_check__a_scale_that_the_naive_kernel_does_not_stand_blames_nobody),
        cmocka_unit_test(test_gate_check__a_slow_oracle_is_not_asked_at_every_scale),
        cmocka_unit_test(test_gate_check__quick_takes_the_largest_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
