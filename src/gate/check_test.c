/* check_test.c - what a kernel may be off by, and what is said of one that is.
 *
 * Problems and runners are made up, the linker puts them in the place of the real ones: the right
 * answer is the scale, everywhere.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "gate_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

__typeof__(kli_problem_open) __wrap_kli_problem_open;
__typeof__(kli_problem_close) __wrap_kli_problem_close;
__typeof__(kli_problem_expect) __wrap_kli_problem_expect;
__typeof__(kli_problem_ready_slot) __wrap_kli_problem_ready_slot;
__typeof__(kli_problem_pair) __wrap_kli_problem_pair;
__typeof__(kli_executable_enter) __wrap_kli_executable_enter;
__typeof__(kli_runner_run) __wrap_kli_runner_run;
__typeof__(kli_runner_slack) __wrap_kli_runner_slack;

enum { ELEMENTS = 32 };
static const int64_t SECOND = 1000000000;

struct kl_runner {
    double wrong_above; /* scales above this are answered with zeros */
    int64_t said_ns;    /* how long its runner says that a run took */
};

/* One input x[4,8], one output y[4,8]. */
typedef struct {
    kl_task task;
    kl_workload workload, tiny;
    kli_problem problem;
    kl_gate gate;
    kl_gate_opts opts;
    kl_verdict verdict;
    kl_device device;
    kl_backend backend;
    kl_runner candidate, naive_kernel;
    kli_executable oracle, naive;
    kli_evaluation c;
    kli_check_outcome checked;
} world;

static void open_pages(kli_problem *s, uint32_t n_sets) {
    kl_layout layout;
    kl_error e = {0};
    s->n_sets = s->n_slots = n_sets;
    assert_ok(kli_layout_make(&layout, &s->plan, n_sets, n_sets, &e));
    assert_ok(kli_memory_open(&s->memory, &layout, &e));
}

static void expect(kli_problem *s, uint32_t set) {
    const size_t bytes = ELEMENTS * sizeof(double);
    double *answers = s->expected[set][1] = realloc(s->expected[set][1], bytes);
    assert_non_null(answers);
    for (int i = 0; i < ELEMENTS; i++) answers[i] = s->scale;
}

static void *output(const kli_problem *s, uint32_t slot) {
    return kli_memory_output(&s->memory, &s->plan, 1, slot);
}

static void answer(const kli_problem *s, uint32_t slot, double value) {
    for (size_t i = 0; i < ELEMENTS; i++)
        kl_dtype_store((kl_dtype)s->plan.tensors[1].dtype, output(s, slot), i, value);
}

/* The problem holds a right answer in slot 0. */
static void world_open(world *w, kl_dtype input, kl_dtype output_type) {
    kl_kernel *k;
    kl_error e = {0};
    *w = (world){.task = {.n_axes = 2, .n_tensors = 2, .n_inputs = 1},
                 .workload = {.label = KL_S("cpu"),
                              .axes = {4, 8},
                              .dtypes = {input, output_type},
                              .checks[1] = {.kind = KL_CHECK_BUDGET, .budget = 4}},
                 .backend = {.on = KL_ON_CPU, .shared_memory = true},
                 .checked = {.ok = true}};
    w->task.axes[0].name = KL_S("M"), w->task.axes[1].name = KL_S("N");
    for (int i = 0; i < 2; i++)
        w->task.tensors[i] = (kl_tensor){.name = i ? KL_S("y") : KL_S("x"),
                                         .is_output = i,
                                         .ndim = 2,
                                         .dims = {KL_S("M"), KL_S("N")}};
    w->c = (kli_evaluation){.gate = &w->gate,
                            .arena = kl_arena_new(),
                            .opts = &w->opts,
                            .verdict = &w->verdict,
                            .task = &w->task,
                            .device = &w->device,
                            .backend = &w->backend,
                            .workload = &w->workload,
                            .oracle = &w->oracle};
    assert_ok(kl_kernel_parse(&k, w->c.arena, KL_S("//! launch f args(x, y)\n"), KL_S("f.c"), NULL,
                              NULL, &e));
    w->c.kernel = k;
    w->problem = (kli_problem){.task = &w->task, .workload = &w->workload, .scale = 1};
    assert_ok(kli_kernel_plan(&w->problem.plan, k, &w->task, &w->workload, NULL, &e));
    w->problem.oracle_plan = w->problem.plan;
    w->problem.oracle_plan.tensors[1].dtype = KL_F64;
    w->problem.naive_error[0][1] = -1;
    open_pages(&w->problem, 1);
    expect(&w->problem, 0);
    kli_memory_poison(&w->problem.memory, &w->problem.plan, 0, KL_POISON_NAN);
    answer(&w->problem, 0, 1);
}

static void close_pages(kli_problem *s) {
    for (uint32_t set = 0; set < s->n_sets; set++) free(s->expected[set][1]);
    kli_memory_close(&s->memory);
}

static void world_close(world *w) {
    close_pages(&w->problem);
    kl_arena_free(w->c.arena);
}

/* ---- made-up runs ------------------------------------------------------------------------ */

static struct {
    double scales[8]; /* of the problems that were opened, in order */
    const kl_workload *shapes[8];
    int n;
    int64_t oracle_ns, timeout_ns;
    uint32_t last_set; /* of the candidate's runs at scale 1 */
    int runs;
    bool pages_seen;
    uint32_t left; /* right answers in the real shape's pages, when the profile begins */
    const world *of;
} asked;
static const kli_problem *entered;

kl_err __wrap_kli_problem_open(kli_problem *s, kli_evaluation *c, const kl_workload *w,
                               uint32_t n_sets, uint32_t n_slots, double scale, kl_error *e) {
    (void)c, (void)n_slots, (void)e;
    asked.shapes[asked.n] = w;
    asked.scales[asked.n++] = scale;
    *s = (kli_problem){.task = &asked.of->task,
                       .workload = w,
                       .scale = scale,
                       .pages_seen = asked.pages_seen,
                       .plan = asked.of->problem.plan,
                       .oracle_plan = asked.of->problem.oracle_plan};
    open_pages(s, n_sets);
    return KL_OK;
}

void __wrap_kli_problem_close(kli_problem *s) { close_pages(s); }

kl_err __wrap_kli_problem_expect(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    (void)c, (void)e;
    s->oracle_ns = asked.oracle_ns;
    expect(s, set);
    return KL_OK;
}

kl_err __wrap_kli_executable_enter(kli_executable *a, kli_problem *s, kli_evaluation *c,
                                   uint32_t first, uint32_t n, kl_fault *fault, kl_error *e) {
    (void)a, (void)c, (void)first, (void)n, (void)fault, (void)e;
    entered = s;
    return KL_OK;
}

kl_err __wrap_kli_runner_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot,
                             uint8_t poison, int64_t timeout_ns, int64_t *wall_ns, kl_error *e) {
    (void)fault, (void)poison, (void)e;
    if (wall_ns) *wall_ns = r->said_ns;
    if (set > asked.last_set) asked.last_set = set;
    asked.timeout_ns = timeout_ns;
    asked.runs++;
    answer(entered, slot, entered->scale > r->wrong_above ? 0 : entered->scale);
    return KL_OK;
}

void __wrap_kli_problem_ready_slot(kli_problem *s, uint32_t set, uint32_t slot, uint8_t poison) {
    (void)set;
    kli_memory_poison(&s->memory, &s->plan, slot, poison);
}

kl_err __wrap_kli_problem_pair(kli_problem *s, kli_evaluation *c, uint32_t set, bool *wider,
                               kl_error *e) {
    (void)s, (void)c, (void)set, (void)e;
    *wider = false;
    return KL_OK;
}

void __wrap_kli_runner_slack(kl_runner *r, uint8_t byte) { (void)r, (void)byte; }

/* ---- one slot ---------------------------------------------------------------------------- */

static const kl_check_result *check_slot(world *w) {
    kl_error e = {0};
    w->checked = (kli_check_outcome){.ok = true};
    assert_ok(kli_check_slot(&w->c, &w->problem, 0, 0, KL_POISON_NAN, true, &w->checked, &e));
    return &w->verdict.checks[w->verdict.n_checks - 1];
}

/* What a right answer may be off by. */
static double budget(world *w) {
    const double allowed = check_slot(w)->budget;
    assert_true(w->checked.ok);
    return allowed;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void test_gate_check__rounding_to_the_output_is_always_permitted(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_F32, KL_BF16);
    assert_true(near(budget(&w), 4 * kl_dtype_epsilon(KL_BF16)));
    world_close(&w);
}

static void test_gate_check__stated_precision_is_permitted_inside(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_BF16, KL_F32);
    assert_true(near(budget(&w), 4 * kl_dtype_epsilon(KL_F32))); /* nothing stated: nothing given */
    w.task.precision = KL_BF16;
    assert_true(near(budget(&w), 4 * kl_dtype_epsilon(KL_BF16)));
    w.problem.plan.tensors[0].dtype =
        KL_F32; /* a float32 workload of a bfloat16 task is computed in float32 */
    assert_true(near(budget(&w), 8 * kl_dtype_epsilon(KL_F32)));
    world_close(&w);
}

static void test_gate_check__budget_is_a_multiple_of_the_reference(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_F32, KL_F32);
    assert_true(near(budget(&w), 4 * kl_dtype_epsilon(KL_F32)));
    w.problem.naive_error[0][1] = 1e-5;
    assert_true(near(budget(&w), 4e-5));
    w.workload.checks[1].budget = 2;
    assert_true(near(budget(&w), 2e-5));
    world_close(&w);
}

static void test_gate_check__a_wrong_reference_does_not_open_the_gate(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_F32, KL_F32);
    w.problem.naive_error[0][1] = INFINITY;
    assert_true(budget(&w) < 1e-5);
    w.problem.naive_error[0][1] = NAN;
    assert_true(budget(&w) < 1e-5);
    w.problem.naive_error[0][1] = 1; /* as zeros have */
    assert_true(budget(&w) <= 0.5);
    world_close(&w);
}

static void test_gate_check__says_where_and_what(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_F32, KL_F32);
    float *got = output(&w.problem, 0);
    got[11] = got[12] = 2;
    check_slot(&w);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_WRONG);
    assert_contains(w.checked.why.ptr, "y[1,3] is 2, expected 1 (2 elements wrong)");
    memset(&got[11], KL_POISON_NAN, sizeof got[11]);
    check_slot(&w);
    assert_contains(w.checked.why.ptr, "y[1,3] was not written (2 elements wrong)");
    world_close(&w);
}

static void test_gate_check__a_hidden_shape_keeps_its_sizes(void **state) {
    (void)state;
    world w;
    world_open(&w, KL_F32, KL_F32);
    w.workload.hidden = true;
    w.workload.label = KL_S("odd");
    float *got = output(&w.problem, 0);
    for (int i = 11; i < ELEMENTS; i++) got[i] = 2.5f;
    const kl_check_result *said = check_slot(&w);
    assert_null(strpbrk(w.checked.why.ptr, "0123456789"));
    assert_null(strstr(w.checked.why.ptr, "odd"));
    assert_str(said->workload, "hidden");
    assert_int_equal(said->bad, 1);
    assert_int_equal(said->first_bad, -1);
    assert_true(said->got == 0 && said->expected == 0);
    assert_true(said->rms_error > 1);
    world_close(&w);
}

static void test_gate_check__records_grow_and_own_their_text(void **state) {
    (void)state;
    world w;
    char label[16];
    world_open(&w, KL_F32, KL_F32);
    for (int i = 0; i < 100; i++) {
        snprintf(label, sizeof label, "w%d", i);
        w.workload.label = kl_str_of(label);
        check_slot(&w);
    }
    assert_int_equal(w.verdict.n_checks, 100);
    assert_str(w.verdict.checks[0].workload, "w0");
    assert_str(w.verdict.checks[99].workload, "w99");
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

/* ---- the stages -------------------------------------------------------------------------- */

static void stages_open(world *w, double candidate_wrong_above, double naive_wrong_above,
                        int64_t oracle_ns) {
    world_open(w, KL_F32, KL_F32);
    w->candidate.wrong_above = candidate_wrong_above;
    w->naive_kernel.wrong_above = naive_wrong_above;
    w->workload.checks[1].rtol = 1e-3;
    w->task.n_stress = 2;
    w->task.stress[0] = 0.001, w->task.stress[1] = 64;
    w->c.candidate.runner = &w->candidate;
    w->naive.runner = &w->naive_kernel;
    w->c.naive_kernel = &w->naive;
    memset(&asked, 0, sizeof asked);
    asked.of = w;
    asked.oracle_ns = oracle_ns;
}

static uint32_t answers_in(const kli_problem *s) {
    uint32_t n = 0;
    for (uint32_t slot = 0; slot < s->n_sets; slot++)
        n += kl_dtype_load((kl_dtype)s->plan.tensors[1].dtype, output(s, slot), 0) == 1;
    return n;
}

/* `timed_ns`: what the profile found; 0: there was none. */
static void run_timed_stages(world *w, int64_t timed_ns) {
    static kli_problem real;
    kl_error e = {0};
    real = (kli_problem){0};
    assert_ok(kli_check_stages(&w->c, &real, &w->checked, &e));
    asked.left = answers_in(&real);
    w->verdict.median_ns = timed_ns;
    if (timed_ns) assert_ok(kli_check_rest(&w->c, &real, &w->checked, &e));
    if (real.n_sets) close_pages(&real);
}

static void run_stages(world *w) { run_timed_stages(w, 0); }

static bool was_degraded(const world *w, const char *text) {
    for (int i = 0; i < w->verdict.n_degradations; i++)
        if (strstr(w->verdict.degradations[i].ptr, text)) return true;
    return false;
}

static void test_gate_check__patience_follows_the_oracle(void **state) {
    (void)state;
    const struct {
        int64_t oracle_ns, timeout_ns;
    } rows[] = {{1000, 10 * SECOND}, {SECOND, 50 * SECOND}, {100 * SECOND, 120 * SECOND}};
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        world w;
        stages_open(&w, 1e9, 1e9, rows[i].oracle_ns);
        run_stages(&w);
        assert_int_equal(asked.timeout_ns, rows[i].timeout_ns);
        world_close(&w);
    }
}

static void test_gate_check__shapes_of_other_types_are_another_kernels(void **state) {
    (void)state;
    for (int other = 0; other < 2; other++) {
        world w;
        stages_open(&w, 1e9, 1e9, 0);
        w.tiny = w.workload;
        w.tiny.label = KL_S("tiny");
        if (other) w.tiny.dtypes[1] = KL_BF16;
        w.task.workloads = &w.tiny;
        w.task.n_workloads = 1;
        run_stages(&w);
        assert_true(w.checked.ok);
        assert_ptr_equal(asked.shapes[0], other ? &w.workload : &w.tiny);
        world_close(&w);
    }
}

static void test_gate_check__stress_scales_are_checked_at_the_real_shape(void **state) {
    (void)state;
    world w;
    stages_open(&w, 1e9, 1e9, SECOND);
    run_stages(&w);
    assert_true(w.checked.ok && asked.n == 3);
    assert_true(asked.scales[0] == 1 && asked.scales[1] == 0.001 && asked.scales[2] == 64);
    assert_false(was_degraded(&w, "stress"));
    world_close(&w);
    stages_open(&w, 1, 1e9, SECOND); /* right for small inputs alone */
    run_stages(&w);
    assert_false(w.checked.ok);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_WRONG);
    assert_contains(w.checked.why.ptr, "at cpu: y[0,0] is 0, expected 64");
    assert_false(w.verdict.checks[w.verdict.n_checks - 1].ok);
    world_close(&w);
}

static void
test_gate_check__a_scale_that_the_naive_kernel_does_not_stand_blames_nobody(void **state) {
    (void)state;
    world w;
    stages_open(&w, 1, 1, SECOND);
    run_stages(&w);
    assert_true(w.checked.ok);
    assert_true(was_degraded(&w, "the task's naive kernel is wrong there"));
    for (int i = 0; i < w.verdict.n_checks; i++) assert_true(w.verdict.checks[i].ok);
    world_close(&w);
}

static void test_gate_check__a_slow_oracle_is_not_asked_at_every_scale(void **state) {
    (void)state;
    world w;
    stages_open(&w, 1, 1e9, 3 * SECOND);
    run_stages(&w);
    assert_true(w.checked.ok && asked.n == 1);
    assert_true(was_degraded(&w, "the oracle takes 3.0 s a call there"));
    world_close(&w);
}

static void test_gate_check__quick_takes_the_largest_scale(void **state) {
    (void)state;
    world w;
    stages_open(&w, 1e9, 1e9, SECOND);
    w.opts.quick = true;
    run_stages(&w);
    assert_true(asked.n == 2 && asked.scales[1] == 64);
    world_close(&w);
}

/* The profile compares the sets that are left.  What a runner of native code says is no reason. */
static void test_gate_check__a_slow_kernel_is_checked_on_one_set(void **state) {
    (void)state;
    const struct {
        int64_t said_ns;
        bool device, quick, check_only;
        uint32_t last_set;
        int runs; /* the first set over both poisons, unless timed runs follow */
    } rows[] = {{16 * SECOND / 10, true, false, false, 0, 1},
                {3 * SECOND / 10, true, false, false, 2, 4},
                {16 * SECOND / 10, false, false, false, 2, 4},
                {16 * SECOND / 10, true, true, false, 0, 1},
                {16 * SECOND / 10, true, false, true, 2, 4}}; /* no timed run would follow */
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        world w;
        stages_open(&w, 1e9, 1e9, SECOND);
        w.task.n_stress = 0;
        w.candidate.said_ns = rows[i].said_ns;
        w.opts.quick = rows[i].quick;
        w.opts.check_only = rows[i].check_only;
        if (rows[i].device) w.backend = (kl_backend){.on = KL_ON_GPU};
        run_stages(&w);
        assert_true(w.checked.ok);
        assert_int_equal(asked.last_set, rows[i].last_set);
        assert_int_equal(asked.runs, rows[i].runs);
        assert_int_equal(was_degraded(&w, "cpu was checked on one input set before it was timed: "
                                          "one run takes 1.6 s"),
                         rows[i].last_set == 0 && !rows[i].quick);
        if (rows[i].device) assert_int_equal(w.c.checked_ns, rows[i].said_ns);
        world_close(&w);
    }
}

/* Or a call that is timed could copy what it computed when it was checked. */
static void test_gate_check__no_output_stays_where_a_device_can_read_it(void **state) {
    (void)state;
    const struct {
        bool device, pages_seen;
        uint32_t left;
    } rows[] = {{true, false, 3}, {true, true, 0}, {false, true, 3}};
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        world w;
        stages_open(&w, 1e9, 1e9, SECOND);
        asked.pages_seen = rows[i].pages_seen;
        if (rows[i].device) w.backend = (kl_backend){.on = KL_ON_GPU};
        w.task.n_stress = 0;
        run_stages(&w);
        assert_true(w.checked.ok);
        assert_int_equal(asked.left, rows[i].left);
        world_close(&w);
    }
}

/* Native code and a device know which of their runs are timed. */
static void test_gate_check__who_is_slow_in_checked_runs_alone_is_spared_nothing(void **state) {
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        world w;
        stages_open(&w, 1, 1e9, SECOND); /* right for small inputs alone */
        w.candidate.said_ns = 16 * SECOND / 10;
        w.backend = (kl_backend){.on = KL_ON_GPU};
        run_timed_stages(&w, slow ? SECOND : SECOND / 1000);
        assert_int_equal(asked.n, slow ? 1 : 3);
        assert_int_equal(asked.last_set, slow ? 0 : 2);
        assert_int_equal(w.checked.ok, slow);
        assert_int_equal(was_degraded(&w, "not checked at cpu: the kernel takes 1.6 s"), slow);
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_check__who_is_slow_in_checked_runs_alone_is_spared_nothing),
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
        cmocka_unit_test(test_gate_check__a_slow_kernel_is_checked_on_one_set),
        cmocka_unit_test(test_gate_check__no_output_stays_where_a_device_can_read_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
