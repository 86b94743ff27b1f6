/* answers_test.c - answers that stay with the oracle: when they may, what is taken on the device's
 * word, and what is brought.  The runner is the test's own.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "backend/compare.h"
#include "base/test.h"

#include <math.h>
#include <string.h>

enum { X, Y, TENSORS, SETS = 20 };

static struct {
    kli_compare_found found; /* of each output; one more is unsure of the second */
    bool compares;
    kl_err fails;
    kli_compare_request asked;
    int requests, entered, asks, brought, filled, kept, looks;
    bool shares;
    kl_fault_kind fault; /* of a run */
    uint32_t fetched;
    uint8_t fetched_poison;
    kli_problem *s;
} world;

kl_err __wrap_kli_problem_ask_oracle(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e);
kl_err __wrap_kli_problem_ask_oracle(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    (void)e;
    world.asks++;
    c->oracle->problem = s->id;
    s->answer_of[kli_answer_slot(s, set)] = set + 1;
    return KL_OK;
}

__typeof__(kli_runner_compare) __wrap_kli_runner_compare;
kl_err __wrap_kli_runner_compare(kl_runner *r, kl_fault *fault, const kli_compare_request *q,
                                 kli_compare_found *out, int64_t *runs_ns, bool *compared,
                                 kl_error *e) {
    (void)r;
    world.asked = *q;
    world.requests++;
    *fault = (kl_fault){0};
    *compared = world.compares;
    *runs_ns = 5;
    for (uint32_t i = 0; i < q->n; i++) out[i] = world.found, out[i].unsure += i;
    return world.fails ? kl_fail(e, world.fails, "runner", "as told") : KL_OK;
}

kl_err __wrap_kli_runner_fetch(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                               uint8_t poison, kl_error *e);
kl_err __wrap_kli_runner_fetch(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                               uint8_t poison, kl_error *e) {
    (void)r, (void)fault, (void)e;
    assert_int_equal(n, 1);
    world.fetched = slots[0];
    world.fetched_poison = poison;
    world.brought++;
    return KL_OK;
}

kl_err __wrap_kli_inputs_fill(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e);
kl_err __wrap_kli_inputs_fill(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    (void)s, (void)c, (void)set, (void)e;
    world.filled++;
    return KL_OK;
}

void __wrap_kli_problem_keep_answer(kli_problem *s, uint32_t set);
void __wrap_kli_problem_keep_answer(kli_problem *s, uint32_t set) {
    assert_true(kli_answer_is_held(s, set));
}

__typeof__(kli_runner_run) __wrap_kli_runner_run;
kl_err __wrap_kli_runner_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot,
                             uint8_t poison, int64_t timeout_ns, int64_t *wall_ns, kl_error *e) {
    (void)r, (void)set, (void)slot, (void)poison, (void)timeout_ns, (void)wall_ns, (void)e;
    *fault = (kl_fault){.kind = world.fault};
    return KL_OK;
}

__typeof__(kli_executable_enter) __wrap_kli_executable_enter;
kl_err __wrap_kli_executable_enter(kli_executable *a, kli_problem *s, kli_evaluation *c,
                                   uint32_t first, uint32_t n, kl_fault *fault, kl_error *e) {
    (void)c, (void)e;
    assert_true(first == 0 && n == s->n_sets);
    a->problem = s->id;
    *fault = (kl_fault){0};
    world.entered++;
    return KL_OK;
}

__typeof__(kli_runner_look) __wrap_kli_runner_look;
kl_err __wrap_kli_runner_look(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                              uint8_t poison, kl_error *e) {
    (void)r, (void)fault, (void)slots, (void)n, (void)poison, (void)e;
    world.looks++;
    return KL_OK;
}

__typeof__(kli_runner_shares) __wrap_kli_runner_shares;
bool __wrap_kli_runner_shares(const kl_runner *r) { return (void)r, world.shares; }
__typeof__(kli_runner_print) __wrap_kli_runner_print;
uint64_t __wrap_kli_runner_print(const kl_runner *r, uint32_t i) { return (void)r, 100 + i; }
__typeof__(kli_runner_keep) __wrap_kli_runner_keep;
void __wrap_kli_runner_keep(kl_runner *r, bool stays) { (void)r, world.kept += stays; }

static kli_problem problem;
static kli_executable oracle;
static kl_workload workload;
static kli_evaluation evaluation;
static char outputs[1 << 16];

static void open_world(void) {
    static kl_kernel *const ANY = (kl_kernel *)(void *)outputs; /* that it is there counts */
    memset(&world, 0, sizeof world);
    workload = (kl_workload){0};
    problem = (kli_problem){.id = 7, .workload = &workload, .n_sets = SETS, .n_slots = 2};
    problem.n_answers = KL_FEW_ANSWERS;
    problem.plan.n_tensors = problem.oracle_plan.n_tensors = TENSORS;
    problem.plan.tensors[X] =
        (kl_plan_tensor){.role = KL_ROLE_INPUT, .dtype = KL_BF16, .bytes = 200, .ndim = 1};
    problem.plan.tensors[Y] =
        (kl_plan_tensor){.role = KL_ROLE_OUTPUT, .dtype = KL_BF16, .bytes = 200, .ndim = 1};
    problem.oracle_plan.tensors[X] = problem.plan.tensors[X];
    problem.oracle_plan.tensors[Y] =
        (kl_plan_tensor){.role = KL_ROLE_OUTPUT, .dtype = KL_F64, .bytes = 800, .ndim = 1};
    problem.memory.outputs = outputs;
    problem.memory.layout = (kl_layout){.n_sets = SETS, .n_slots = 2, .slot_bytes = 4096};
    oracle = (kli_executable){.kernel = ANY, .artefact = {.kind = KL_ARTEFACT_CUBIN}, .problem = 7};
    evaluation = (kli_evaluation){.oracle = &oracle, .backend = kli_backend_get(KL_BACKEND_CUDA)};
    world.compares = true;
    world.found = (kli_compare_found){.square = 100, .sum = 1e-4, .max_abs = 1e-2};
}

static void test_answers__they_stay_where_a_device_computes_and_compares_them(void **state) {
    (void)state;
    open_world();
    assert_true(kli_answers_can_stay(&problem, &evaluation));
    evaluation.answers_here = true;
    assert_false(kli_answers_can_stay(&problem, &evaluation));
    open_world();
    evaluation.backend = kli_backend_get(KL_BACKEND_OPENCL);
    assert_false(kli_answers_can_stay(&problem, &evaluation));
    open_world();
    oracle.artefact.kind = KL_ARTEFACT_SCRIPT;
    assert_false(kli_answers_can_stay(&problem, &evaluation));
}

static void test_answers__what_only_the_host_can_judge_does_not_stay(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        open_world();
        if (kind == 0) workload.checks[Y].kind = KL_CHECK_TOPK;
        if (kind == 1) workload.checks[Y].kind = KL_CHECK_EXACT;
        if (kind == 2) problem.plan.tensors[Y].dtype = KL_I32;
        if (kind == 3) problem.plan.tensors[Y].role = KL_ROLE_MUTABLE;
        assert_false(kli_answers_can_stay(&problem, &evaluation));
    }
}

static bool compare(kl_check_result *r, const kl_check *how) {
    kl_error e = {0};
    bool sure = false;
    assert_ok(kli_answers_compare(&sure, r, &problem, &evaluation, Y, 3, 1, how, &e));
    return sure;
}

static void test_answers__what_is_certainly_right_is_never_brought(void **state) {
    const kl_check how = {.atol = 0.5, .rtol = 0.25};
    kl_check_result r = {.budget = 0.01, .scale = 1};
    (void)state;
    open_world();
    assert_true(compare(&r, &how));
    assert_true(r.ok && r.bad == 0 && r.first_bad == -1 && r.max_abs_error == 1e-2);
    assert_true(fabs(r.rms_error - 1e-3) < 1e-12);
    assert_int_equal(world.brought, 0);
    assert_int_equal(world.asked.tensor, Y);
    assert_true(world.asked.n == 1 && world.asked.slots[0] == 3);
    assert_true(world.asked.sets[0] == KLI_NO_SET); /* it stayed */
    assert_int_equal(world.asked.got_type, KL_BF16);
    assert_int_equal(world.asked.offsets[0],
                     (char *)kli_memory_output(&problem.memory, &problem.plan, Y, 1) - outputs);
    assert_true(world.asked.atol == 0.5 && world.asked.rtol == 0.25 && !world.asked.grows);
    r.scale = problem.scale = 4;
    assert_true(compare(&r, &how) && world.asked.grows);
}

static void test_answers__what_is_not_certainly_right_is_brought_and_no_finding(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        kl_check how = {.atol = 0.5, .rtol = 0.25};
        kl_check_result r = {.budget = 0.01, .scale = 1};
        open_world();
        if (kind == 0) world.found.unsure = 1;
        if (kind == 1) r.budget = 1e-4;
        if (kind == 2) how.max_error = 1e-3;
        if (kind == 3) world.compares = false;
        assert_false(compare(&r, &how));
        assert_int_equal(world.brought, 1);
        assert_int_equal(world.fetched, 3 % KL_FEW_ANSWERS);
        assert_int_equal(world.fetched_poison, KL_POISON_NAN);
        assert_int_equal(world.filled, 1);
    }
}

static void test_answers__an_answer_that_lost_its_place_is_asked_for_again(void **state) {
    const kl_check how = {.atol = 0.5, .rtol = 0.25};
    kl_check_result r = {.budget = 0.01, .scale = 1};
    (void)state;
    open_world();
    assert_true(compare(&r, &how) && world.asks == 1);
    assert_true(compare(&r, &how) && world.asks == 1);
    problem.answer_of[3] = 3 + KL_FEW_ANSWERS + 1; /* another set's */
    assert_true(compare(&r, &how) && world.asks == 2);
    oracle.problem = 8; /* its process works on another shape */
    assert_true(compare(&r, &how) && world.asks == 3);
}

/* It may have ended: the next verdict begins with another. */
static void test_answers__kernels_without_fixed_bits_have_them_brought(void **state) {
    const kl_check how = {.atol = 0.5, .rtol = 0.25};
    kl_check_result r = {.budget = 0.01, .scale = 1};
    kl_kernel kernel = {.nondeterministic = true};
    (void)state;
    open_world();
    evaluation.kernel = &kernel;
    assert_false(compare(&r, &how));
    assert_true(world.brought == 1 && world.asks == 1);
    problem.n_answers = SETS; /* each has a place of its own */
    assert_true(compare(&r, &how) && world.brought == 1);
    problem.n_answers = KL_FEW_ANSWERS;
    kernel.nondeterministic = false;
    assert_true(compare(&r, &how) && world.brought == 1);
}

static void test_answers__a_runner_that_did_not_answer_is_not_asked_again(void **state) {
    const kl_check how = {.atol = 0.5};
    kl_check_result r = {.budget = 0.01, .scale = 1};
    kl_error e = {0};
    bool sure = true;
    (void)state;
    open_world();
    world.fails = KL_EBUSY;
    assert_int_equal(kli_answers_compare(&sure, &r, &problem, &evaluation, Y, 3, 1, &how, &e),
                     KL_EBUSY);
    assert_false(sure);
    assert_int_equal(oracle.problem, 0);
}

/* ---- outputs ----------------------------------------------------------------------------- */

static kli_executable candidate;

static void open_outputs(void) {
    static char runner; /* that it is there counts */
    open_world();
    world.shares = problem.answers_stay = true;
    problem.n_slots = 8;
    problem.memory.layout.slot_bytes = 1 << 20;
    problem.memory.layout.n_slots = 8;
    candidate = (kli_executable){.artefact = {.kind = KL_ARTEFACT_CUBIN},
                                 .runner = (kl_runner *)(void *)&runner};
}

static void run_candidate(uint8_t poison) {
    kl_fault fault = {0};
    kl_error e = {0};
    int64_t wall = 0;
    const kli_run q = {.set = 3, .slot = 1, .poison = poison, .timeout_ns = 1};
    assert_ok(kli_output_run(&problem, &candidate, &q, &fault, &wall, &e));
}

static void test_answers__outputs_stay_where_another_process_can_compare_them(void **state) {
    (void)state;
    open_outputs();
    assert_true(kli_outputs_can_stay(&problem, &candidate));
    for (int i = 0; i < 4; i++) {
        open_outputs();
        if (i == 0) problem.answers_stay = false;
        if (i == 1) problem.memory.layout.slot_bytes--; /* small: brought as soon */
        if (i == 2) candidate.artefact.kind = KL_ARTEFACT_SCRIPT;
        if (i == 3) world.shares = false;
        assert_false(kli_outputs_can_stay(&problem, &candidate));
        run_candidate(KL_POISON_NAN);
        assert_true(world.kept == 0 && !problem.outputs[1].made_by);
        assert_false(problem.outputs[1].has_print);
    }
}

static void test_answers__an_output_that_stays_is_compared_there_and_brought_once(void **state) {
    const kl_check how = {.atol = 0.5, .rtol = 0.25};
    kl_check_result r = {.budget = 0.01, .scale = 1};
    kl_error e = {0};
    (void)state;
    open_outputs();
    run_candidate(KL_POISON_BITS);
    assert_true(world.kept == 1 && kli_slot_print(&problem, 1) == 100);
    assert_true(compare(&r, &how));
    assert_ptr_equal(world.asked.made_by, candidate.runner);
    assert_int_equal(world.brought, 0);
    assert_ok(kli_output_bring(&problem, 1, &e));
    assert_ok(kli_output_bring(&problem, 1, &e));
    assert_int_equal(world.brought, 1);
    assert_true(world.fetched == 1 && world.fetched_poison == KL_POISON_BITS);
    assert_true(compare(&r, &how));
    assert_null(world.asked.made_by);                /* the pages hold it, */
    assert_true(kli_slot_print(&problem, 1) == 100); /* and its print is what it was */
}

static void test_answers__slots_of_a_batch_are_looked_at_where_they_are(void **state) {
    const uint32_t slots[] = {5, 1};
    kl_fault fault = {0};
    kl_error e = {0};
    (void)state;
    open_outputs();
    assert_ok(kli_output_fetch(&problem, &candidate, slots, 2, KL_POISON_NAN, &fault, &e));
    assert_true(world.looks == 1 && world.brought == 0);
    assert_true(kli_slot_print(&problem, 5) == 100 && kli_slot_print(&problem, 1) == 101);
    world.fault = KL_FAULT_GUARD; /* of a run that failed nothing is known */
    run_candidate(KL_POISON_NAN);
    assert_true(!problem.outputs[1].made_by && !problem.outputs[1].has_print);
}

/* ---- many at once ------------------------------------------------------------------------ */

static bool looks_right(uint32_t set, uint32_t slot) {
    kl_error e = {0};
    bool sure = false;
    kl_check_result r = {.budget = 0.01, .scale = 1};
    assert_ok(kli_answers_compare(&sure, &r, &problem, &evaluation, Y, set, slot,
                                  &workload.checks[Y], &e));
    return sure;
}

static void foresee(uint32_t n) {
    const uint32_t sets[] = {7, 3, 12}, slots[] = {5, 1, 2};
    kl_error e = {0};
    assert_ok(kli_answers_foresee(&problem, &evaluation, sets, slots, n, &e));
}

static void test_answers__what_was_foreseen_is_not_asked_for_again(void **state) {
    (void)state;
    open_outputs();
    problem.outputs[5] = problem.outputs[1] = problem.outputs[2] = (kli_output){0};
    foresee(3);
    assert_true(world.requests == 1 && world.entered == 1 && world.asks == 0);
    assert_true(world.asked.n == 3 && world.asked.sets[2] == 12 && evaluation.run_ns == 5);
    assert_true(world.asked.slots[0] == 0 && world.asked.slots[2] == 2);
    assert_true(looks_right(7, 5));
    assert_int_equal(world.requests, 1);
    assert_false(looks_right(3, 1)); /* found unsure: the host looks at it */
    assert_true(world.requests == 1 && world.brought == 1);
    assert_true(looks_right(8, 5)); /* another set's answer */
    assert_int_equal(world.requests, 2);
    foresee(3);
    assert_int_equal(world.entered, 1); /* its inputs are there */
    run_candidate(KL_POISON_NAN);       /* writes slot 1 again */
    assert_int_equal(problem.outputs[1].found_of, 0);
}

static void test_answers__more_than_there_are_places_are_asked_for_in_parts(void **state) {
    (void)state;
    open_outputs();
    problem.n_answers = 2;
    problem.answer_of[0] = problem.answer_of[1] = 1;
    foresee(3);
    assert_true(world.requests == 2 && world.asked.n == 1 && world.asked.sets[0] == 12);
    assert_true(problem.answer_of[0] == 0 && problem.answer_of[1] == 0);
}

static void test_answers__where_each_set_has_a_place_its_answer_is_given_once(void **state) {
    (void)state;
    open_outputs();
    problem.n_answers = SETS;
    foresee(3);
    assert_true(world.asked.sets[0] == 7 && world.asked.slots[0] == 7);
    foresee(3);
    assert_int_equal(world.requests, 2);
    for (int k = 0; k < 3; k++) assert_true(world.asked.sets[k] == KLI_NO_SET);
    assert_true(world.asked.slots[2] == 12 && kli_answer_is_held(&problem, 12));
    world.compares = false; /* nobody knows what lies there */
    foresee(3);
    assert_false(kli_answer_is_held(&problem, 12));
}

static void test_answers__nothing_is_foreseen_where_each_is_looked_at(void **state) {
    kl_kernel kernel = {.nondeterministic = true};
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        open_outputs();
        if (kind == 0) problem.answers_stay = false;
        if (kind == 1) evaluation.kernel = &kernel;
        if (kind == 2) problem.plan.tensors[X].role = KL_ROLE_OUTPUT;
        foresee(kind == 3 ? 1 : 3);
        assert_int_equal(world.requests, 0);
    }
}

static void test_answers__they_take_a_small_part_of_a_device(void **state) {
    const struct {
        int64_t memory;
        uint64_t slot, scratch;
        uint32_t sets, answers;
    } rows[] = {{139ll << 30, 1ull << 30, 0, 20, KL_FEW_ANSWERS},
                {139ll << 30, 1ull << 30, 0, 3, 3},
                {24ll << 30, 1ull << 30, 0, 20, 1},
                {24ll << 30, 256ull << 20, 0, 20, 6},
                {24ll << 30, 256ull << 20, 256ull << 20, 20, 3},
                {8ll << 30, 4ull << 30, 0, 20, 1},
                {8ll << 30, 4096, 0, 20, 20},
                {8ll << 30, 1 << 20, 0, 200, KL_MAX_ANSWERS},
                {8ll << 30, (1 << 20) + 4096, 0, 200, KL_FEW_ANSWERS},
                {0, 4096, 0, 20, 1}};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        const kl_layout l = {
            .n_sets = rows[i].sets, .slot_bytes = rows[i].slot, .scratch_bytes = rows[i].scratch};
        assert_int_equal(kli_answers_that_fit(&l, rows[i].memory), rows[i].answers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers__they_stay_where_a_device_computes_and_compares_them),
        cmocka_unit_test(test_answers__what_only_the_host_can_judge_does_not_stay),
        cmocka_unit_test(test_answers__what_is_certainly_right_is_never_brought),
        cmocka_unit_test(test_answers__what_is_not_certainly_right_is_brought_and_no_finding),
        cmocka_unit_test(test_answers__an_answer_that_lost_its_place_is_asked_for_again),
        cmocka_unit_test(test_answers__kernels_without_fixed_bits_have_them_brought),
        cmocka_unit_test(test_answers__a_runner_that_did_not_answer_is_not_asked_again),
        cmocka_unit_test(test_answers__outputs_stay_where_another_process_can_compare_them),
        cmocka_unit_test(test_answers__an_output_that_stays_is_compared_there_and_brought_once),
        cmocka_unit_test(test_answers__slots_of_a_batch_are_looked_at_where_they_are),
        cmocka_unit_test(test_answers__what_was_foreseen_is_not_asked_for_again),
        cmocka_unit_test(test_answers__more_than_there_are_places_are_asked_for_in_parts),
        cmocka_unit_test(test_answers__where_each_set_has_a_place_its_answer_is_given_once),
        cmocka_unit_test(test_answers__nothing_is_foreseen_where_each_is_looked_at),
        cmocka_unit_test(test_answers__they_take_a_small_part_of_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
