/* rounds_test.c - what the medians of several processes say together, beside numbers of a table,
 * and when others are asked.  SPDX-License-Identifier: Apache-2.0 */
#include "profile_fixture.h"

static const kl_interval POINT = {1, 1, 1};

static void assert_close(double a, double b) {
    if (!(fabs(a - b) < 1e-4)) fail_msg("%.6f is not %.6f", a, b);
}

/* Of 1 to 6: mean 3.5, standard deviation 1.8708, t(5) = 2.5706: 3.5 +- 1.9633. */
static void test_gate_rounds__the_interval_is_students(void **state) {
    (void)state;
    double x[6];
    for (int i = 0; i < 6; i++) x[i] = exp(0.01 * (i + 1));
    const kl_interval six = kli_rounds_interval(x, 6, POINT, false),
                      four = kli_rounds_interval(x, 4, POINT, false),
                      three = kli_rounds_interval(x, 3, POINT, false);
    assert_close(100 * log(six.median), 3.5);
    assert_close(100 * log(six.low), 3.5 - 1.96329);
    assert_close(100 * log(six.high), 3.5 + 1.96329);
    assert_close(100 * log(four.high), 2.5 + 2.05423); /* 3.1824 x 1.29099 / 2 */
    assert_close(100 * log(three.high), 2 + 2.48416);  /* 4.3027 / sqrt(3) */
}

static void test_gate_rounds__one_that_stays_may_lie_as_far_off_as_any(void **state) {
    (void)state;
    double x[6];
    for (int i = 0; i < 6; i++) x[i] = exp(0.01 * (i + 1));
    const kl_interval both = kli_rounds_interval(x, 6, POINT, false),
                      one = kli_rounds_interval(x, 6, POINT, true);
    assert_close(log(one.high / one.low), sqrt(7) * log(both.high / both.low));
}

static void test_gate_rounds__it_is_as_wide_as_the_first_at_least(void **state) {
    (void)state;
    const double same[] = {1.02, 1.02, 1.02, 1.02};
    const kl_interval first = {1.02, 1.015, 1.03}, all = kli_rounds_interval(same, 4, first, false);
    assert_close(all.high / all.low, 1.03 / 1.015);
    assert_close(all.median, 1.02);
}

/* Two that agree by chance say nothing, nor does one. */
static void test_gate_rounds__few_processes_decide_nothing(void **state) {
    (void)state;
    const double same[] = {1.04, 1.04, 1.04};
    for (int n = 1; n <= FEW_PROCESSES; n++) {
        const kl_interval ci = kli_rounds_interval(same, n, POINT, false);
        const kl_decision call = kl_decide(ci.low, ci.high, 0.001, n >= FEW_PROCESSES);
        assert_int_equal(call, n < FEW_PROCESSES ? KL_DECISION_UNDECIDED : KL_DECISION_FASTER);
    }
}

/* ---- a close call, in other processes ------------------------------------------------------ */

static void repeat(world *w, double candidate_ns, const double *lives) {
    static kl_gate gate;
    kl_error e = {0};
    kli_benchmark r;
    w->c.gate = &gate;
    w->fast.true_ns = candidate_ns;
    w->fast.lives = lives;
    assert_ok(run_benchmark(w, &r, &e));
    assert_ok(kli_rounds_repeat(&r, &w->result, &w->checked, &e));
    assert_true(w->result.processes == 1 + w->fast.restarted);
    assert_true(w->result.low <= w->result.ratio && w->result.ratio <= w->result.high);
}

static void test_gate_rounds__a_close_call_holds_where_processes_agree(void **state) {
    (void)state;
    static world w;
    static const double AGREE[] = {1, 1.002, .999, 1.001, .998};
    for (int quick = 0; quick < 2; quick++) {
        world_open(&w, 2e6, 2.06e6, 0.001);
        w.opts.quick = quick;
        repeat(&w, 2e6, AGREE);
        assert_int_equal(w.result.call, KL_DECISION_FASTER);
        assert_int_equal(w.fast.restarted, quick ? ROUNDS_QUICK : ROUNDS);
        assert_int_equal(w.slow.restarted, w.fast.restarted);
        assert_true(w.stable && fabs(w.result.ratio - 1.03) < 0.004);
        world_close(&w);
    }
}

static void test_gate_rounds__a_close_call_falls_where_processes_disagree(void **state) {
    (void)state;
    static world w;
    static const double DISAGREE[] = {1.02, 1.05, 1.01, 1.03, 1.04};
    for (int slower = 0; slower < 2; slower++) {
        const double ns = slower ? 2.06e6 : 1.95e6;
        const double other[] = {.96, .98, .99, .95, .97};
        world_open(&w, ns, 2e6, 0.001);
        repeat(&w, ns, slower ? other : DISAGREE);
        assert_int_equal(w.result.call, KL_DECISION_SAME);
        assert_true(w.result.stable && w.result.high / w.result.low > 1.02);
        world_close(&w);
    }
}

static void test_gate_rounds__what_is_not_close_is_not_asked_again(void **state) {
    (void)state;
    static world w;
    static const double OTHERS[] = {2e6, 1.8e6}; /* the same, and faster by a tenth */
    for (size_t i = 0; i < KL_COUNT(OTHERS); i++) {
        world_open(&w, OTHERS[i], 2e6, 0.001);
        repeat(&w, OTHERS[i], NULL);
        assert_true(w.fast.restarted == 0 && w.slow.restarted == 0);
        world_close(&w);
    }
}

static void test_gate_rounds__a_script_stays_in_its_process(void **state) {
    (void)state;
    static world w;
    static const double LIVES[] = {1.004, .996, 1.004, .996, 1};
    double width[2];
    for (int script = 0; script < 2; script++) {
        world_open(&w, 2e6, 2.07e6, 0.0001);
        w.baseline.artefact.kind = script ? KL_ARTEFACT_SCRIPT : KL_ARTEFACT_CUBIN;
        repeat(&w, 2e6, LIVES);
        assert_int_equal(w.fast.restarted, ROUNDS);
        assert_int_equal(w.slow.restarted, script ? 0 : ROUNDS);
        width[script] = log(w.result.high / w.result.low);
        world_close(&w);
    }
    assert_true(width[1] > 2.5 * width[0]); /* sqrt(1 + 6) */
}

static void test_gate_rounds__without_time_a_close_call_is_none(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    static kl_gate gate;
    kli_benchmark r;
    world_open(&w, 2e6, 2.06e6, 0.001);
    w.c.gate = &gate;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_int_equal(w.result.call, KL_DECISION_FASTER);
    r.start_ns = 0;
    assert_ok(kli_rounds_repeat(&r, &w.result, &w.checked, &e));
    assert_true(w.fast.restarted == 0 && w.result.processes == 1 && !w.result.stable);
    assert_int_equal(w.result.call, KL_DECISION_UNDECIDED);
    kli_profile_unsettled(&w.c, &w.result, &w.checked);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_UNSTABLE);
    assert_non_null(strstr(w.checked.why.ptr, "other processes"));
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_rounds__the_interval_is_students),
        cmocka_unit_test(test_gate_rounds__one_that_stays_may_lie_as_far_off_as_any),
        cmocka_unit_test(test_gate_rounds__it_is_as_wide_as_the_first_at_least),
        cmocka_unit_test(test_gate_rounds__few_processes_decide_nothing),
        cmocka_unit_test(test_gate_rounds__a_close_call_holds_where_processes_agree),
        cmocka_unit_test(test_gate_rounds__a_close_call_falls_where_processes_disagree),
        cmocka_unit_test(test_gate_rounds__what_is_not_close_is_not_asked_again),
        cmocka_unit_test(test_gate_rounds__a_script_stays_in_its_process),
        cmocka_unit_test(test_gate_rounds__without_time_a_close_call_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
