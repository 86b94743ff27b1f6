/* profile_test.c - the comparison without a device: order, pairing and the stop rule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "profile_fixture.h"

/* ---- results ----------------------------------------------------------------------------- */

static void test_gate_profile__finds_a_two_percent_gain(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2.04e6, 0.01);
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(w.stable);
    assert_true(fabs(w.result.ratio - 1.02) < 0.003);
    assert_int_equal(w.result.call, KL_DECISION_FASTER);
    assert_true(w.result.low <= w.result.ratio && w.result.ratio <= w.result.high);
    world_close(&w);
}

static void test_gate_profile__calls_the_same_the_same_and_a_loss_slower(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    for (int loss = 0; loss < 2; loss++) {
        world_open(&w, loss ? 2.1e6 : 2e6, 2e6, 0.01);
        assert_ok(run_benchmark(&w, &r, &e));
        assert_int_equal(w.result.call, loss ? KL_DECISION_SLOWER : KL_DECISION_SAME);
        assert_true(w.result.noise < 0.01);
        world_close(&w);
    }
}

static void test_gate_profile__drift_of_the_machine_cancels(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.002);
    drift = 0.002; /* every sample 0.2 % slower than the one before: a third slower at the end */
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(fabs(w.result.ratio - 1) < 0.004);
    assert_true(w.result.call == KL_DECISION_SAME);
    world_close(&w);
}

static void test_gate_profile__noise_that_never_settles_is_unstable(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 1.5);
    w.opts.max_seconds = 0.05;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_false(w.stable);
    assert_int_equal(w.result.call, KL_DECISION_UNDECIDED);
    world_close(&w);
}

static void test_gate_profile__far_apart_ends_early(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 1e7, 1e8, 0.05);
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(w.stable && r.clear && r.pairs <= 8);
    assert_int_equal(w.result.call, KL_DECISION_FASTER);
    assert_true(w.result.low < 10 && w.result.high > 10 && w.result.low > 8);
    world_close(&w);
}

static void test_gate_profile__a_lost_race_is_abandoned(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2.2e6, 2e6, 0.01);
    w.opts.abandon_below = 1.0;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(r.clear && r.pairs <= 10);
    world_close(&w);
}

/* ---- order ------------------------------------------------------------------------------- */

static void test_gate_profile__every_two_pairs_are_balanced(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    int candidate_first = 0, first_of_two = 0;
    world_open(&w, 2e6, 2e6, 0.001);
    assert_ok(run_benchmark(&w, &r, &e));
    for (int i = 0; i + 6 <= n_seen; i += 6) { /* two pairs and a control */
        const bool one = seen[i].runner == &w.fast, two = seen[i + 2].runner == &w.fast;
        assert_ptr_not_equal(seen[i].runner, seen[i + 1].runner);
        assert_ptr_not_equal(seen[i + 2].runner, seen[i + 3].runner);
        assert_ptr_equal(seen[i + 4].runner, seen[i + 5].runner);
        assert_true(one != two);
        first_of_two += one;
        candidate_first += one + two;
    }
    assert_int_equal(candidate_first, n_seen / 6);
    assert_in_range(first_of_two, n_seen / 24,
                    n_seen / 8); /* which one begins is drawn, not fixed */
    world_close(&w);
}

/* Whoever comes second finds the caches filled: a tenth of the time, and no difference. */
static void test_gate_profile__what_the_second_half_gains_cancels(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.01);
    w.fast.gains = w.slow.gains = 0.1;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(w.stable && !w.result.bimodal);
    assert_int_equal(w.result.call, KL_DECISION_SAME);
    assert_true(fabs(w.result.ratio - 1) < 0.005 && w.result.noise < 0.01);
    world_close(&w);
}

static void test_gate_profile__both_halves_of_a_pair_work_on_the_same_sets(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.001);
    assert_ok(run_benchmark(&w, &r, &e));
    for (int i = 0; i + 6 <= n_seen; i += 2) {
        assert_int_equal(seen[i].request.first, seen[i + 1].request.first);
        assert_int_equal(seen[i].request.poison, seen[i + 1].request.poison);
        assert_in_range(seen[i].request.first, 0, 14);
    }
    world_close(&w);
}

/* Outputs come back as a whole only where the device gives no digests. */
static void test_gate_profile__the_last_timed_batch_is_audited(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    for (int digests = 0; digests < 2; digests++) {
        int audited = 0;
        world_open(&w, 2e6, 2e6, 0.001);
        w.fast.digests = digests;
        assert_ok(run_benchmark(&w, &r, &e));
        assert_true(r.checked_last);
        for (int i = 0; i < n_seen; i++) {
            audited += seen[i].audited > 0;
            assert_true(!seen[i].audited || seen[i].runner == &w.fast);
            assert_int_equal(seen[i].fetched, digests ? 0 : seen[i].audited);
        }
        assert_true(audited >= 1 && audited < r.pairs);
        world_close(&w);
    }
}

static void test_gate_profile__damage_that_an_audit_finds_ends_it(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.001);
    w.fast.damage = KL_FAULT_INPUT;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(!w.checked.ok && w.checked.outcome == KL_OUTCOME_CHEAT);
    assert_int_equal(last_seen->fetched, 0);
    world_close(&w);
}

/* ---- batches that end early -------------------------------------------------------------- */

static void test_gate_profile__some_batches_end_early_and_are_no_samples(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    for (int quick = 0; quick < 2; quick++) {
        world_open(&w, 2e6, 2.04e6, 0.01);
        w.opts.quick = quick;
        assert_ok(run_benchmark(&w, &r, &e));
        assert_int_equal(n_shorts, quick ? SHORT_BATCHES_QUICK : SHORT_BATCHES);
        for (int i = 0; i < n_shorts; i++) {
            const uint32_t calls = shorts[i].request.calls;
            assert_in_range(calls, 1, r.candidate.calls - 1);
            assert_int_equal(shorts[i].fetched, calls); /* this device gives no digests */
            if (i % 2) assert_int_equal(abs((int)calls - (int)shorts[i - 1].request.calls), 1);
        }
        assert_true(shorts_after[0] > 0 && shorts_after[0] < n_seen);
        assert_true(shorts_after[n_shorts - 1] >=
                    n_seen - 2); /* at the end; a pair that is fetched may follow */
        assert_true(fabs(w.result.ratio - 1.02) < 0.01 && w.result.candidate_ns < 3e6);
        world_close(&w);
    }
}

static void test_gate_profile__single_calls_cannot_end_early(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    world_open(&w, 2e6, 2e6, 0.001);
    kli_benchmark r = kli_benchmark_new(&w.c, &w.problem, &w.baseline, KL_TIME_GRAPH);
    r.candidate.calls = r.baseline.calls = 1;
    assert_ok(kli_benchmark_run(&r, &w.stable, &w.checked, &e));
    assert_int_equal(n_shorts, 0);
    world_close(&w);
}

/* One output of 64 bytes, right when its first byte is 7. */
static void open_pages(world *w, uint32_t n_sets, uint32_t n_slots) {
    static const kl_backend CPU = {.on = KL_ON_CPU, .shared_memory = true};
    kl_layout layout;
    kl_error e = {0};
    world_open(w, 2e6, 2e6, 0.001);
    w->problem.n_sets = n_sets;
    w->problem.n_slots = n_slots;
    w->problem.plan.n_tensors = 1;
    w->problem.plan.tensors[0] = (kl_plan_tensor){
        .dtype = KL_U8, .role = 1, .ndim = 1, .dims = {64}, .bytes = 64, .name = "y"};
    assert_ok(
        kli_layout_make(&layout, &w->problem.plan, w->problem.n_sets, w->problem.n_slots, &e));
    assert_ok(kli_memory_open(&w->problem.memory, &layout, &e));
    pages_of = &w->problem;
    w->c.backend = &CPU;
}

static kli_benchmark benchmark_of(world *w, uint32_t calls) {
    kli_benchmark r = kli_benchmark_new(&w->c, &w->problem, &w->baseline, KL_TIME_BATCH);
    r.candidate.calls = r.baseline.calls = calls;
    r.candidate.estimate_ns = r.baseline.estimate_ns = 2e6;
    return r;
}

static void race_in_pages(world *w, bool ahead) {
    kl_error e = {0};
    open_pages(w, 3, 5);
    w->fast.ahead = ahead;
    kli_benchmark r = benchmark_of(w, 4);
    for (r.shorts = 0; r.shorts < 8 && w->checked.ok;)
        assert_ok(kli_benchmark_short(&r, &w->checked, &e));
    kli_memory_close(&w->problem.memory);
}

static void test_gate_profile__one_batch_has_every_input_set(void **state) {
    (void)state;
    static const struct {
        uint32_t sets, slots, calls, expected;
    } CASES[] = {{20, 21, 4, 20}, {20, 21, 20, 0}, {3, 3, 2, 0}};
    static world w;
    kl_error e = {0};
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        open_pages(&w, CASES[i].sets, CASES[i].slots);
        kli_benchmark r = benchmark_of(&w, CASES[i].calls);
        assert_ok(kli_benchmark_long(&r, &w.checked, &e));
        assert_true(w.checked.ok);
        assert_int_equal(n_shorts, CASES[i].expected > 0);
        if (n_shorts) assert_int_equal(shorts[0].request.calls, CASES[i].expected);
        kli_memory_close(&w.problem.memory);
        world_close(&w);
    }
}

static void test_gate_profile__work_ahead_shows_where_a_batch_ends_early(void **state) {
    (void)state;
    static world w;
    race_in_pages(&w, false);
    assert_true(w.checked.ok);
    world_close(&w);
    race_in_pages(&w, true);
    assert_false(w.checked.ok);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_WRONG);
    assert_contains(w.checked.why.ptr, "a call that was not made");
    world_close(&w);
}

/* ---- faults ------------------------------------------------------------------------------ */

static void test_gate_profile__a_crash_while_timed_is_a_finding(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.001);
    w.fast.fault = KL_FAULT_CRASH;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_false(w.checked.ok);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_CRASH);
    world_close(&w);
}

static void test_gate_profile__a_crash_while_timed_against_itself_is_one_too(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    double ns = 0;
    world_open(&w, 2e6, 2e6, 0.001);
    w.fast.fault = KL_FAULT_CRASH;
    kli_benchmark r = kli_benchmark_new(&w.c, &w.problem, &w.c.candidate, KL_TIME_GRAPH);
    r.candidate.calls = r.baseline.calls = 1;
    assert_ok(kli_benchmark_half(&r, &r.baseline, 0, false, &ns, &w.checked, &e));
    assert_int_equal(w.checked.outcome, KL_OUTCOME_CRASH);
    world_close(&w);
}

static void test_gate_profile__a_baseline_that_failed_starts_afresh(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.001);
    w.slow.fault = KL_FAULT_CRASH;
    assert_err(KL_EBASELINE, run_benchmark(&w, &r, &e));
    assert_int_equal(w.slow.stopped, 1);
    assert_null(w.baseline.runner);
    world_close(&w);
}

/* ---- samples that were disturbed --------------------------------------------------------- */

static void test_gate_profile__preempted_pairs_are_left_out_and_counted(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.002);
    w.fast.disturbed_in = w.slow.disturbed_in = 2;
    w.fast.when_disturbed =
        3; /* and the other side not: were they counted, the ratio would be far off */
    w.slow.when_disturbed = 1;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(w.stable);
    assert_true(fabs(w.result.ratio - 1) < 0.002);
    assert_in_range(w.result.left_out, w.result.pairs / 4, 2 * w.result.pairs);
    assert_int_equal(r.pairs, w.result.pairs);
    world_close(&w);
}

/* What the scheduler says decides, never how long a sample took: outliers of an undisturbed kernel
 * are its own. */
static void test_gate_profile__slow_samples_count_when_nobody_disturbed_them(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 1.5);
    w.opts.max_seconds = 0.05;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_int_equal(w.result.left_out, 0);
    assert_false(w.stable);
    world_close(&w);
}

static void test_gate_profile__where_all_are_preempted_the_machine_is_busy(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 2e6, 2e6, 0.002);
    w.fast.disturbed_in = w.slow.disturbed_in = 8;
    w.fast.when_disturbed = w.slow.when_disturbed = 2;
    w.opts.max_seconds = 0.05;
    assert_ok(run_benchmark(&w, &r, &e));
    assert_false(w.stable);
    assert_true(w.result.left_out >= CAP_PAIRS);
    assert_true(w.result.pairs >= CAP_PAIRS && w.result.ratio > 0.9 &&
                w.result.ratio < 1.1); /* what is known is shown */
    kli_profile_unsettled(&w.c, &w.result, &w.checked);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_UNSTABLE);
    assert_contains(w.checked.why.ptr, "this machine is busy (");
    assert_contains(w.checked.why.ptr, "pairs left out");
    world_close(&w);
}

static void test_gate_profile__a_spread_of_its_own_is_told_from_a_busy_machine(void **state) {
    (void)state;
    static world w;
    kl_comparison m = {.ratio = 0.93,
                       .low = 0.92,
                       .high = 0.945,
                       .noise = 0.004,
                       .pairs = 200,
                       .controls = 100,
                       .bimodal = true};
    world_open(&w, 1, 1, 0);
    kli_profile_unsettled(&w.c, &m, &w.checked);
    assert_contains(
        w.checked.why.ptr,
        "the kernel's own times fall into two groups: identical code agrees within 0.4 % here");
    m.bimodal = false;
    kli_profile_unsettled(&w.c, &m, &w.checked);
    assert_contains(w.checked.why.ptr, "the kernel's own times spread");
    m.noise = 0.14;
    kli_profile_unsettled(&w.c, &m, &w.checked);
    assert_contains(w.checked.why.ptr, "this machine is busy");
    world_close(&w);
}

static void test_gate_profile__crowded_batches_become_shorter(void **state) {
    (void)state;
    static world w;
    world_open(&w, 1e4, 1e5, 0);
    kli_benchmark r = kli_benchmark_new(&w.c, &w.problem, &w.baseline, KL_TIME_BATCH);
    r.candidate = (kli_side){.executable = &w.c.candidate, .calls = 500, .estimate_ns = 1e4};
    r.baseline = (kli_side){.executable = &w.baseline, .calls = 50, .estimate_ns = 1e5};
    r.pairs = 3, r.left_out = 5; /* not crowded enough */
    kli_benchmark_make_way(&r);
    assert_int_equal(r.candidate.calls, 500);
    r.pairs = 1, r.left_out = 7;
    kli_benchmark_make_way(&r);
    assert_int_equal(r.candidate.calls, 125);
    assert_int_equal(r.baseline.calls, 12);
    assert_int_equal(r.pairs + r.left_out + r.n_controls, 0); /* it begins again */
    for (int i = 0; i < 5; i++) r.left_out = CROWDED_PAIRS, kli_benchmark_make_way(&r);
    assert_true(r.candidate.calls * 1e4 >= SHORTEST_BATCH_NS);
    r.candidate = (kli_side){.executable = &w.c.candidate, .calls = 5, .estimate_ns = 1e6};
    r.left_out = CROWDED_PAIRS, kli_benchmark_make_way(&r);
    assert_int_equal(r.candidate.calls, 2); /* one call still follows another */
    for (int i = 0; i < 5; i++) r.left_out = CROWDED_PAIRS, kli_benchmark_make_way(&r);
    assert_int_equal(r.candidate.calls, 2);
    assert_true(r.baseline.calls * 1e5 >= SHORTEST_BATCH_NS);
    world_close(&w);
}

/* ---- what a device cannot do ------------------------------------------------------------- */

static kl_outcome outcome_of(int64_t median_ns, const kl_comparison *m) {
    static world w;
    world_open(&w, 1, 1, 0);
    w.verdict.median_ns = median_ns;
    w.verdict.roofline_ns = 73728;
    w.verdict.comparisons[0] = *m;
    kli_profile_impossible(&w.c, &w.checked);
    const kl_outcome outcome = w.checked.outcome;
    assert_contains(w.checked.why.ptr, "less than this device can do (73728 ns)");
    world_close(&w);
    return outcome;
}

static void test_gate_profile__an_impossible_time_is_a_cheat_only_by_a_good_clock(void **state) {
    (void)state;
    const kl_comparison good = {.pairs = 30, .controls = 15, .noise = 0.004, .handshake = 0.001};
    assert_int_equal(outcome_of(1000, &good), KL_OUTCOME_CHEAT);
    assert_int_equal(outcome_of(73000, &good),
                     KL_OUTCOME_UNSTABLE); /* within the clock's own error */
    kl_comparison bad = good;
    bad.noise = 0.216;
    assert_int_equal(outcome_of(1, &bad), KL_OUTCOME_UNSTABLE);
    bad = good, bad.pairs = 3;
    assert_int_equal(outcome_of(1, &bad), KL_OUTCOME_UNSTABLE);
    bad = good, bad.controls = 0, bad.noise = 0;
    assert_int_equal(outcome_of(1, &bad), KL_OUTCOME_UNSTABLE);
    bad = good, bad.left_out = 20;
    assert_int_equal(outcome_of(1, &bad), KL_OUTCOME_UNSTABLE);
    bad = good, bad.handshake = 100; /* a batch of a nanosecond: all of it was exchange */
    assert_int_equal(outcome_of(1000, &bad), KL_OUTCOME_UNSTABLE);
}

/* ---- what is known of the host ----------------------------------------------------------- */

static void known_world(world *w, double baseline_ns, const kl_noise_record *known) {
    static const kl_device THIS = {.name = KL_S("this")};
    world_open(w, 1e7, baseline_ns, 0.01);
    w->c.device = &THIS;
    w->opts.noise = known;
}

static void test_gate_profile__a_record_widens_what_few_controls_say(void **state) {
    (void)state;
    static world w;
    kl_noise_record known = {.device = KL_S("this"), .n = 3, .fresh = 2, .noise = 0.025};
    kl_error e = {0};
    kli_benchmark r;
    for (int i = 0; i < 4; i++) {
        known_world(&w, 1e8, &known);
        known.fresh = i == 1 ? 0 : 2; /* too old */
        known.device = i == 2 ? KL_S("another") : KL_S("this");
        known.noise = i == 3 ? 1e-9 : 0.025; /* it never narrows */
        assert_ok(run_benchmark(&w, &r, &e));
        assert_true(r.clear && r.n_controls >= 2 && r.n_controls < 5);
        assert_true((w.result.noise >= 0.025) == (i == 0) && w.result.noise > 1e-4);
        assert_true((w.result.recorded >= 0.025) == (i == 0));
        assert_true(w.result.aa_spread > 0 && w.result.aa_cv > 0);
        world_close(&w);
    }
}

/* Many controls of one's own are not overruled; where the host is noisy there are more of them. */
static void test_gate_profile__a_noisy_host_has_its_controls_sooner(void **state) {
    (void)state;
    static world w;
    const kl_noise_record known = {.device = KL_S("this"), .n = 1, .fresh = 1, .noise = 0.2};
    kl_error e = {0};
    kli_benchmark r;
    known_world(&w, 1.03e7, &known);
    assert_ok(run_benchmark(&w, &r, &e));
    assert_true(r.n_controls + 1 >= r.pairs && w.result.noise < 0.01 && w.result.recorded <= 0);
    assert_int_equal(w.result.call, KL_DECISION_FASTER);
    world_close(&w);
}

/* ---- estimates --------------------------------------------------------------------------- */

static void estimate(world *w, kli_benchmark *r, kl_time_method method) {
    kl_error e = {0};
    *r = kli_benchmark_new(&w->c, &w->problem, &w->baseline, method);
    n_seen = 0;
    assert_ok(kli_benchmark_estimate(r, &r->candidate, &w->checked, &e));
}

static void test_gate_profile__a_checked_run_is_enough_of_a_slow_kernel(void **state) {
    (void)state;
    static world w;
    static const kl_backend CPU = {.id = KL_BACKEND_CPU, .on = KL_ON_CPU, .parent_clock = true};
    kl_error e = {0};
    kli_benchmark r;
    world_open(&w, 1.6e9, 5e7, 0.001);
    w.c.checked_ns = 1610000000;
    estimate(&w, &r, KL_TIME_EVENTS);
    assert_true(r.candidate.estimate_ns == 1.61e9);
    assert_int_equal(n_seen, 0);
    assert_ok(kli_benchmark_estimate(&r, &r.baseline, &w.checked, &e)); /* nothing is known of it */
    assert_int_equal(n_seen, 1);
    assert_int_equal(seen[0].request.calls, 1);
    assert_true(fabs(r.baseline.estimate_ns / 5e7 - 1) < 0.01);
    w.c.backend = &CPU; /* native code: by this process's own clock alone */
    estimate(&w, &r, KL_TIME_BATCH);
    assert_int_equal(n_seen, 1);
    world_close(&w);
    world_open(&w, 2e4, 2e4, 0.001);
    w.c.checked_ns = 60000; /* what is short is mostly launches and waits there */
    estimate(&w, &r, KL_TIME_EVENTS);
    assert_int_equal(n_seen, 3);
    assert_true(seen[0].request.calls == 1 && seen[2].request.calls == 3);
    assert_true(fabs(r.candidate.estimate_ns / 2e4 - 1) < 0.01);
    world_close(&w);
}

static void test_gate_profile__an_estimate_kept_its_core(void **state) {
    (void)state;
    static world w;
    static const kl_backend CPU = {.id = KL_BACKEND_CPU, .on = KL_ON_CPU, .parent_clock = true};
    kli_benchmark r;
    world_open(&w, 1e4, 1e4, 0.001);
    w.c.backend = &CPU;
    w.fast.disturbed_in = 6, w.fast.when_disturbed = 2000; /* 20 ms, and no slow kernel */
    estimate(&w, &r, KL_TIME_BATCH);
    assert_in_range(n_seen, 2, 9);
    assert_true(fabs(r.candidate.estimate_ns / 1e4 - 1) < 0.01);
    w.fast.disturbed_in = 8, w.c.checked_ns = 12000; /* none of them is whole */
    estimate(&w, &r, KL_TIME_BATCH);
    assert_int_equal(n_seen, 9);
    assert_true(r.candidate.estimate_ns == 12000);
    world_close(&w);
}

/* Of a single call of nanoseconds most is the exchange with its runner. */
static void test_gate_profile__an_estimate_is_not_the_exchange(void **state) {
    (void)state;
    static world w;
    static const kl_backend CPU = {.id = KL_BACKEND_CPU, .on = KL_ON_CPU, .parent_clock = true};
    kli_benchmark r;
    world_open(&w, 800, 800, 0);
    w.c.backend = &CPU;
    w.fast.handshake_share = 0.5;
    estimate(&w, &r, KL_TIME_BATCH);
    assert_true(fabs(r.candidate.estimate_ns / 400 - 1) < 0.01);
    w.fast.handshake_share = 1; /* nothing is left that could be known */
    estimate(&w, &r, KL_TIME_BATCH);
    assert_true(r.candidate.estimate_ns >= 200);
    world_close(&w);
}

static void test_gate_profile__slow_calls_are_not_warmed_up(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    double ns = 0;
    world_open(&w, 1.1e7, 1e6, 0.001);
    kli_benchmark r = kli_benchmark_new(&w.c, &w.problem, &w.baseline, KL_TIME_EVENTS);
    r.candidate.calls = 1, r.candidate.estimate_ns = w.fast.true_ns;
    r.baseline.calls = 5, r.baseline.estimate_ns = w.slow.true_ns;
    assert_ok(kli_benchmark_half(&r, &r.candidate, 0, false, &ns, &w.checked, &e));
    assert_ok(kli_benchmark_half(&r, &r.baseline, 0, false, &ns, &w.checked, &e));
    assert_true(seen[0].request.warm == 0 && seen[1].request.warm == 1);
    world_close(&w);
}

/* A kernel of 1.6 s beside one of 2 ms: four calls, each of them audited, and no other. */
static void test_gate_profile__a_slow_kernel_is_called_four_times(void **state) {
    (void)state;
    static world w;
    kl_error e = {0};
    kli_benchmark r;
    int calls = 0;
    world_open(&w, 1.6e9, 2e6, 0.01);
    w.c.checked_ns = 1600000000;
    estimate(&w, &r, KL_TIME_EVENTS);
    assert_ok(kli_benchmark_estimate(&r, &r.baseline, &w.checked, &e));
    r.candidate.calls = kli_calls_for(5e6, r.candidate.estimate_ns, 64);
    r.baseline.calls = kli_calls_for(5e6, r.baseline.estimate_ns, 64);
    assert_ok(kli_benchmark_run(&r, &w.stable, &w.checked, &e));
    for (int i = 0; i < n_seen; i++) {
        const kl_time_request *q = &seen[i].request;
        if (seen[i].runner != &w.fast) continue;
        calls += (int)(q->calls + q->warm);
        assert_int_equal(seen[i].audited, q->calls);
    }
    assert_true(w.stable && r.clear && r.pairs == 4);
    assert_int_equal(calls, 4);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_profile__some_batches_end_early_and_are_no_samples),
        cmocka_unit_test(test_gate_profile__single_calls_cannot_end_early),
        cmocka_unit_test(test_gate_profile__one_batch_has_every_input_set),
        cmocka_unit_test(test_gate_profile__work_ahead_shows_where_a_batch_ends_early),
        cmocka_unit_test(test_gate_profile__finds_a_two_percent_gain),
        cmocka_unit_test(test_gate_profile__calls_the_same_the_same_and_a_loss_slower),
        cmocka_unit_test(test_gate_profile__drift_of_the_machine_cancels),
        cmocka_unit_test(test_gate_profile__noise_that_never_settles_is_unstable),
        cmocka_unit_test(test_gate_profile__far_apart_ends_early),
        cmocka_unit_test(test_gate_profile__a_lost_race_is_abandoned),
        cmocka_unit_test(test_gate_profile__every_two_pairs_are_balanced),
        cmocka_unit_test(test_gate_profile__what_the_second_half_gains_cancels),
        cmocka_unit_test(test_gate_profile__both_halves_of_a_pair_work_on_the_same_sets),
        cmocka_unit_test(test_gate_profile__the_last_timed_batch_is_audited),
        cmocka_unit_test(test_gate_profile__damage_that_an_audit_finds_ends_it),
        cmocka_unit_test(test_gate_profile__a_crash_while_timed_is_a_finding),
        cmocka_unit_test(test_gate_profile__a_crash_while_timed_against_itself_is_one_too),
        cmocka_unit_test(test_gate_profile__a_checked_run_is_enough_of_a_slow_kernel),
        cmocka_unit_test(test_gate_profile__an_estimate_kept_its_core),
        cmocka_unit_test(test_gate_profile__an_estimate_is_not_the_exchange),
        cmocka_unit_test(test_gate_profile__slow_calls_are_not_warmed_up),
        cmocka_unit_test(test_gate_profile__a_slow_kernel_is_called_four_times),
        cmocka_unit_test(test_gate_profile__a_baseline_that_failed_starts_afresh),
        cmocka_unit_test(test_gate_profile__preempted_pairs_are_left_out_and_counted),
        cmocka_unit_test(test_gate_profile__slow_samples_count_when_nobody_disturbed_them),
        cmocka_unit_test(test_gate_profile__where_all_are_preempted_the_machine_is_busy),
        cmocka_unit_test(test_gate_profile__a_spread_of_its_own_is_told_from_a_busy_machine),
        cmocka_unit_test(test_gate_profile__crowded_batches_become_shorter),
        cmocka_unit_test(test_gate_profile__an_impossible_time_is_a_cheat_only_by_a_good_clock),
        cmocka_unit_test(test_gate_profile__a_record_widens_what_few_controls_say),
        cmocka_unit_test(test_gate_profile__a_noisy_host_has_its_controls_sooner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
