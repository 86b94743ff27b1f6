/* cuda_runner_test.c - the CUDA runner through its whole protocol, on the fake of fake_cuda.c.
 * Nothing here says anything about a GPU: see README.md.  SPDX-License-Identifier: Apache-2.0 */
#include "cuda_scene.h"

/* ---- running --------------------------------------------------------------------------------- */

static void test_cuda_runner__runs_and_says_that_it_is_fake(void **unused) {
    scene s = {0};
    (void)unused;
    open_scene(&s, "scale", "");
    assert_non_null(strstr(kli_runner_describe(s.runner), "fake"));
    assert_int_equal(s.resources[0].registers, 32);
    for (uint32_t i = 0; i < 4; i++) {
        run(&s, i % SETS, i % SLOTS, i % 2 ? 0xA5 : 0xFF);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, i % SETS, i % SLOTS);
        assert_int_equal(
            kli_memory_guard_damage(&s.memory, &s.plan, i % SLOTS, i % 2 ? 0xA5 : 0xFF), -1);
    }
    close_scene(&s);
}

static void test_cuda_runner__leaves_poison_where_nothing_was_written(void **unused) {
    scene s = {0};
    (void)unused;
    open_scene(&s, "scale_half", "");
    run(&s, 0, 0, 0xA5);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    const unsigned char *y = kli_memory_output(&s.memory, &s.plan, 2, 0);
    assert_int_equal(y[N * 4 - 1], 0xA5);
    assert_int_equal(y[N * 2], 0xA5);
    close_scene(&s);
}

static void expect_run_fault(const char *entry, const char *faults, kl_fault_kind kind,
                             const char *text) {
    scene s = {0};
    open_scene(&s, entry, faults);
    run(&s, 1, 2, 0xFF);
    assert_fault(&s, kind, text);
    close_scene(&s);
}

static void test_cuda_runner__sees_writes_outside_tensors(void **unused) {
    (void)unused;
    expect_run_fault("scale_past_end", "", KL_FAULT_GUARD, "past the end of `y`");
    expect_run_fault("scale_before", "", KL_FAULT_GUARD, "before the beginning of `y`");
    expect_run_fault("past_input", "", KL_FAULT_GUARD, "past the end of input `x`");
}

static void test_cuda_runner__sees_writes_to_inputs(void **unused) {
    (void)unused;
    expect_run_fault("scale_input", "", KL_FAULT_INPUT, "wrote to input `x`");
    expect_run_fault("scale_input", "no_ptx", KL_FAULT_INPUT, "wrote to input `x`");
    expect_run_fault("past_input", "no_ptx", KL_FAULT_GUARD, "past the end of input `x`");
}

static void test_cuda_runner__guards_buffers(void **unused) {
    const char *const entries[] = {"through_buffer", "past_buffer"};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        scene s = {0};
        plan_with_buffer(&s.plan, entries[i]);
        start(&s, "");
        load(&s);
        bind(&s);
        run(&s, 2, 4, 0xA5);
        if (i == 0)
            assert_output(&s, 2, 4);
        else
            assert_fault(&s, KL_FAULT_GUARD, "past the end of `tmp`");
        close_scene(&s);
    }
}

static void test_cuda_runner__a_warm_call_finds_its_buffer_as_declared(void **unused) {
    const kl_time_method methods[] = {KL_TIME_GRAPH, KL_TIME_EVENTS};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        scene s = {0};
        kl_error e = {0};
        double ns[SLOTS];
        plan_with_buffer(&s.plan, "wants_zeros_in_buffer");
        s.plan.buffers[0].zero = true;
        start(&s, "");
        load(&s);
        bind(&s);
        const kl_time_request q = {.method = methods[i], .calls = 2, .warm = 1, .poison = 0xFF};
        assert_ok(kli_runner_time(s.runner, &s.fault, ns, &q, 20 * SECOND, &e));
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        close_scene(&s);
    }
}

/* A mutable input comes from the shared pages before every run, and its guards are looked at. */
static void test_cuda_runner__restores_mutable_inputs(void **unused) {
    scene s = {0};
    (void)unused;
    plan_for(&s.plan, "scale_input"); /* adds 1 to x[3] behind its work */
    s.plan.tensors[0].role = 2;
    start(&s, "");
    load(&s);
    bind_outputs_only(&s);
    for (uint32_t slot = 0; slot < 3; slot++) {
        float *x = kli_memory_output(&s.memory, &s.plan, 0, slot % 2);
        for (int i = 0; i < N; i++) x[i] = input(0, i);
        run(&s, 0, slot % 2, 0xA5);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, 0, slot % 2);
        assert_true(x[3] == input(0, 3) + 1 && x[4] == input(0, 4)); /* and came back changed */
    }
    close_scene(&s);
    plan_for(&s.plan, "past_input");
    s.plan.tensors[0].role = 2;
    start(&s, "");
    load(&s);
    bind_outputs_only(&s);
    run(&s, 0, 1, 0xA5);
    assert_fault(&s, KL_FAULT_GUARD, "past the end of `x`");
    close_scene(&s);
}

static void test_cuda_runner__forgets_variables_between_runs(void **unused) {
    const char *const faults[] = {"", "hidden_variables"};
    (void)unused;
    for (int k = 0; k < 2; k++) {
        scene s = {0};
        open_scene(&s, "counting", faults[k]);
        for (uint32_t i = 0; i < 3; i++) {
            run(&s, i, i, 0xFF);
            assert_int_equal(s.fault.kind, KL_FAULT_NONE);
            assert_output(&s, i, i);
        }
        close_scene(&s);
    }
}

static void test_cuda_runner__clears_local_memory_between_runs_and_batches(void **unused) {
    scene s = {0};
    double ns[SLOTS];
    (void)unused;
    open_scene(&s, "note_in_local", "");
    assert_int_equal(s.resources[0].local_bytes, 64);
    for (uint32_t i = 0; i < 3; i++) {
        run(&s, i, i, 0xFF);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, i, i);
    }
    for (uint32_t i = 0; i < 2;
         i++) { /* the first call of a graph finds nothing; the second finds the first's note */
        const kl_time_request q = {
            .method = KL_TIME_GRAPH, .first = 0, .calls = 2, .warm = 1, .poison = 0xFF};
        kl_error e = {0};
        assert_ok(kli_runner_time(s.runner, &s.fault, ns, &q, 20 * SECOND, &e));
        bring_back(&s, 0, 2);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, 0, 0);
        assert_int_equal(*(unsigned char *)kli_memory_output(&s.memory, &s.plan, 2, 1), 0xFF);
    }
    const kl_time_request q = {
        .method = KL_TIME_EVENTS, .first = 0, .calls = SLOTS, .warm = 1, .poison = 0xFF};
    kl_error e = {0};
    assert_ok(kli_runner_time(s.runner, &s.fault, ns, &q, 20 * SECOND, &e));
    bring_back(&s, 0, SLOTS);
    for (uint32_t j = 0; j < SLOTS; j++) assert_output(&s, j % SETS, j);
    close_scene(&s);
}

static void test_cuda_runner__clears_what_lies_behind_the_inputs(void **unused) {
    scene s = {0};
    (void)unused;
    open_scene(&s, "note_in_tail", "distance@1000000"); /* behind the last set, within the page */
    for (uint32_t i = 0; i < 3; i++) {
        run(&s, 0, i, 0xFF);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, 0, i);
    }
    close_scene(&s);
}

/* In the memory of a set that no later run reads, on the device that keeps small allocations. */
static void test_cuda_runner__keeps_nothing_from_binding_to_binding(void **unused) {
    scene s = {0};
    char distance[64];
    kl_error e = {0};
    kl_layout layout;
    (void)unused;
    plan_for(&s.plan, "note_in_tail");
    assert_ok(kli_layout_make(&layout, &s.plan, SETS, SLOTS, &e));
    (void)snprintf(distance, sizeof distance, "distance@%d", (int)layout.set_bytes);
    open_scene(&s, "note_in_tail", distance);
    for (uint32_t i = 0; i < 3; i++) {
        run(&s, 0, i, 0xFF);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, 0, i);
        assert_ok(kli_runner_bind(s.runner, &s.fault, &s.memory, &e));
        assert_ok(kli_runner_upload(s.runner, &s.fault, 0, 1, &e));
    }
    close_scene(&s);
}

static void test_cuda_runner__encodes_a_tensormap_for_each_set(void **unused) {
    scene s = {0};
    (void)unused;
    plan_for(&s.plan, "through_map");
    s.plan.n_tensormaps = 1;
    s.plan.tensormaps[0] =
        (kl_plan_tensormap){.index = 0, .dtype = KL_F32, .rank = 1, .dims = {N}, .box = {64}};
    s.plan.args[0] = (kl_value){.kind = KL_VALUE_TENSORMAP, .index = 0};
    start(&s, "");
    load(&s);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    bind(&s);
    for (uint32_t set = 0; set < SETS; set++) {
        run(&s, set, 0, 0xFF);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, set, 0);
    }
    close_scene(&s);
}

static void test_cuda_runner__moves_to_another_kernel_and_binding(void **unused) {
    scene s = {0};
    (void)unused;
    open_scene(&s, "scale_half", "");
    run(&s, 0, 0, 0xFF);
    kli_memory_close(&s.memory);
    plan_for(&s.plan, "scale");
    load(&s);
    bind(&s);
    run(&s, 2, 1, 0xFF);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    assert_output(&s, 2, 1);
    close_scene(&s);
}

/* ---- faults and refusals
 * ---------------------------------------------------------------------------------------------- */

static void test_cuda_runner__names_the_driver_error(void **unused) {
    (void)unused;
    expect_run_fault("scale", "illegal_address@1", KL_FAULT_DEVICE,
                     "launch `scale` (1 of 1): CUDA_ERROR_ILLEGAL_ADDRESS");
}

static void test_cuda_runner__kills_a_kernel_that_hangs(void **unused) {
    scene s = {0};
    kl_error e = {0};
    int64_t wall = 0;
    (void)unused;
    open_scene(&s, "scale", "hang@1");
    assert_ok(kli_runner_run(s.runner, &s.fault, 0, 0, 0xFF, SECOND / 2, &wall, &e));
    assert_int_equal(s.fault.kind, KL_FAULT_HANG);
    close_scene(&s);
}

static void test_cuda_runner__refuses_what_does_not_fit_memory(void **unused) {
    scene s = {0};
    (void)unused;
    plan_for(&s.plan, "scale");
    start(&s, "no_memory@40000"); /* less than a page of device memory */
    load(&s);
    bind(&s);
    assert_fault(&s, KL_FAULT_REFUSED, "out of device memory: input sets");
    close_scene(&s);
}

static void expect_load_fault(kl_plan plan, const char *text) {
    scene s = {.plan = plan};
    start(&s, "");
    load(&s);
    assert_fault(&s, KL_FAULT_REFUSED, text);
    kli_runner_stop(s.runner);
}

static void test_cuda_runner__refuses_impossible_launches(void **unused) {
    kl_plan p;
    (void)unused;
    plan_for(&p, "many_registers"), p.launches[0].block[0] = 512;
    expect_load_fault(
        p, "a block of 512 threads, but with 168 registers a thread the kernel allows 384");
    plan_for(&p, "much_static"), p.launches[0].smem = 200000;
    expect_load_fault(p, "240000 bytes of shared memory (200000 dynamic + 40000 static), but the "
                         "device allows 232448");
    plan_for(&p, "scale"), p.launches[0].grid[1] = 70000;
    expect_load_fault(p, "grid dimension 2 is 70000");
    plan_for(&p, "scale"), p.launches[0].n_args = 3;
    expect_load_fault(p, "the directive passes 3 arguments, the kernel takes 4");
    plan_for(&p, "scale"), p.args[3].kind = KL_VALUE_I64;
    expect_load_fault(p, "argument 4 has 8 bytes in the directive and 4 in the kernel");
    plan_for(&p, "nothing_of_this_name");
    expect_load_fault(p, "extern \"C\" __global__");
}

static void test_cuda_runner__a_block_is_the_one_that_the_code_was_compiled_for(void **unused) {
    scene s = {.compiled_for = 256};
    (void)unused;
    plan_for(&s.plan, "scale");
    start(&s, "");
    load(&s);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    kli_runner_stop(s.runner);
    s.plan.launches[0].block[0] = 128;
    start(&s, "");
    load(&s);
    assert_fault(&s, KL_FAULT_REFUSED,
                 "a block of 128,1,1, but the kernel was compiled for 256,1,1");
    kli_runner_stop(s.runner);
}

/* ---- timing ---------------------------------------------------------------------------------- */

static void time_calls(scene *s, kl_time_method method, uint32_t first, uint32_t calls,
                       double *ns) {
    kl_error e = {0};
    const kl_time_request q = {
        .method = method, .first = first, .calls = calls, .warm = 2, .poison = 0xFF, .flush = true};
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        kli_memory_poison(&s->memory, &s->plan, slot, 0xFF);
    assert_ok(kli_runner_time(s->runner, &s->fault, ns, &q, 20 * SECOND, &e));
    bring_back(s, first, calls);
}

/* A batch has the inputs of the last one, so its digests tell what right outputs have. */
static void test_cuda_runner__no_call_finds_the_digests_of_others(void **unused) {
    const kl_time_method methods[] = {KL_TIME_GRAPH, KL_TIME_EVENTS};
    double ns[SLOTS];
    scene s = {0};
    (void)unused;
    open_scene(&s, "finds_digests", "");
    for (int m = 0; m < 4; m++) {
        time_calls(&s, methods[m / 2], 0, SLOTS, ns);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        for (uint32_t j = 0; j < SLOTS; j++) assert_output(&s, j % SETS, j);
    }
    close_scene(&s);
}

/* Not while it is checked, and not while it is timed, after warm calls and between two calls. */
static void find_no_key(uint64_t output_bytes) {
    const kl_time_method methods[] = {KL_TIME_GRAPH, KL_TIME_EVENTS};
    scene s = {0};
    kl_error e = {0};
    plan_for(&s.plan, "finds_key");
    s.plan.tensors[2].bytes = output_bytes;
    s.plan.tensors[2].dims[0] = (int64_t)output_bytes / 4;
    start(&s, "");
    load(&s);
    bind(&s);
    run(&s, 1, 1, 0xFF);
    for (int m = 0; m < 4; m++) {
        double ns[SLOTS];
        const uint32_t calls = m % 2 ? SLOTS - 3 : SLOTS; /* the others are digested before */
        const kl_time_request q = {
            .method = methods[m / 2], .calls = calls, .warm = 2, .poison = 0xFF, .alone = m % 2};
        assert_ok(kli_runner_time(s.runner, &s.fault, ns, &q, 20 * SECOND, &e));
        bring_back(&s, 0, calls);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        for (uint32_t j = 0; j < calls; j++) {
            const uint8_t *y = kli_memory_output(&s.memory, &s.plan, 2, j);
            for (int i = 0; i < N * 4; i++) assert_int_equal(y[i], 0xFF);
        }
    }
    close_scene(&s);
}

/* Of slots so large that many blocks read it, too. */
static void test_cuda_runner__no_call_finds_the_key_of_digests(void **unused) {
    (void)unused;
    find_no_key(N * 4);
    find_no_key(1 << 20);
}

static void test_cuda_runner__times_each_call_on_its_own_slot(void **unused) {
    const kl_time_method methods[] = {KL_TIME_EVENTS, KL_TIME_GRAPH};
    (void)unused;
    for (int m = 0; m < 2; m++) {
        scene s = {0};
        open_scene(&s, "scale", "");
        for (uint32_t first = 0; first < 20;
             first += 4) { /* more places in the rotation than graphs are kept */
            double ns[SLOTS] = {0};
            time_calls(&s, methods[m], first, SLOTS, ns);
            assert_int_equal(s.fault.kind, KL_FAULT_NONE);
            for (uint32_t j = 0; j < (methods[m] == KL_TIME_EVENTS ? SLOTS : 1); j++)
                assert_true(ns[j] > 0 && isfinite(ns[j]));
            for (uint32_t j = 0; j < SLOTS; j++)
                assert_output(&s, (first + j) % SETS, (first + j) % SLOTS);
        }
        close_scene(&s);
    }
}

/* In a graph the variable is restored once, so calls after the first find it changed: the poison in
 * their slots shows it. */
static void test_cuda_runner__shows_state_inside_a_batch(void **unused) {
    scene s = {0};
    double ns[SLOTS];
    (void)unused;
    open_scene(&s, "counting", "");
    time_calls(&s, KL_TIME_EVENTS, 0, SLOTS, ns);
    for (uint32_t j = 0; j < SLOTS; j++) assert_output(&s, j % SETS, j);
    time_calls(&s, KL_TIME_GRAPH, 0, SLOTS, ns);
    assert_output(&s, 0, 0);
    assert_int_equal(*(unsigned char *)kli_memory_output(&s.memory, &s.plan, 2, 1), 0xFF);
    close_scene(&s);
}

/* One digest a call: the same for the same inputs, another where a call did other work. */
static void test_cuda_runner__digests_every_timed_call(void **unused) {
    const kl_time_method methods[] = {KL_TIME_EVENTS, KL_TIME_GRAPH};
    (void)unused;
    for (int m = 0; m < 2; m++) {
        scene s = {0};
        double ns[SLOTS];
        uint64_t before[SLOTS];
        open_scene(&s, "scale", "");
        time_calls(&s, methods[m], 2, SLOTS, ns);
        const uint64_t *digests = kli_runner_digests(s.runner, SLOTS);
        assert_non_null(digests);
        assert_null(kli_runner_digests(s.runner, SLOTS + 1));
        for (uint32_t j = SETS; j < SLOTS; j++) assert_true(digests[j] == digests[j - SETS]);
        assert_true(digests[0] != digests[1] && digests[1] != digests[2]);
        memcpy(before, digests, sizeof before);
        time_calls(&s, methods[m], 2, SLOTS, ns);
        assert_memory_equal(before, kli_runner_digests(s.runner, SLOTS), sizeof before);
        close_scene(&s);
    }
    scene s = {0};
    double ns[SLOTS];
    open_scene(&s, "counting", ""); /* in a graph the first call alone does its work */
    time_calls(&s, KL_TIME_GRAPH, 0, SLOTS, ns);
    const uint64_t *digests = kli_runner_digests(s.runner, SLOTS);
    assert_true(digests && digests[0] != digests[1] && digests[1] == digests[2]);
    assert_true(digests[1] == kli_runner_blank_digest(s.runner)); /* and it wrote nothing */
    close_scene(&s);
}

/* ---- each call its own slot, while it is made ---- */

static void open_with_distance(scene *s, const kl_plan *plan, bool of_scratch) {
    char faults[64];
    kl_layout layout;
    kl_error e = {0};
    s->plan = *plan;
    assert_ok(kli_layout_make(&layout, &s->plan, SETS, SLOTS, &e));
    (void)snprintf(faults, sizeof faults, "distance@%llu",
                   (unsigned long long)(of_scratch ? layout.scratch_bytes : layout.slot_bytes));
    start(s, faults);
    load(s);
    bind(s);
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
}

static void time_alone(scene *s, kl_time_method method, uint32_t first, uint32_t calls,
                       bool alone) {
    kl_error e = {0};
    double ns[SLOTS];
    const kl_time_request q = {
        .method = method, .first = first, .calls = calls, .poison = 0xFF, .alone = alone};
    assert_ok(kli_runner_time(s->runner, &s->fault, ns, &q, 20 * SECOND, &e));
}

static void test_cuda_runner__sees_work_ahead_where_the_batch_ends_early(void **unused) {
    kl_plan p;
    (void)unused;
    for (int of_scratch = 0; of_scratch < 2; of_scratch++)
        for (uint32_t alone = 0; alone < 2; alone++) {
            scene s = {0};
            if (of_scratch)
                plan_with_buffer(&p, "scratch_ahead");
            else
                plan_for(&p, "scale_ahead");
            open_with_distance(&s, &p, of_scratch);
            time_alone(&s, KL_TIME_GRAPH, 0, 3, alone);
            if (alone)
                assert_fault(&s, KL_FAULT_GUARD, "wrote to the slot of a call that was not made");
            else
                assert_int_equal(s.fault.kind, KL_FAULT_NONE);
            close_scene(&s);
        }
}

static void test_cuda_runner__honest_calls_leave_idle_slots_alone(void **unused) {
    kl_plan p;
    (void)unused;
    for (uint32_t first = 0; first < SLOTS; first++)
        for (uint32_t calls = 1; calls <= SLOTS; calls++) {
            scene s = {0};
            plan_with_buffer(&p, "through_buffer");
            open_with_distance(&s, &p, false);
            time_alone(&s, KL_TIME_GRAPH, first, calls, true);
            assert_int_equal(s.fault.kind, KL_FAULT_NONE);
            assert_non_null(kli_runner_digests(s.runner, calls));
            close_scene(&s);
            if (calls == 1) calls = SLOTS - 2;
        }
}

static void test_cuda_runner__sees_work_done_after_its_call(void **unused) {
    kl_plan p;
    scene s = {0};
    (void)unused;
    plan_for(&p, "scale_behind");
    open_with_distance(&s, &p, false);
    time_alone(&s, KL_TIME_EVENTS, 1, 3, false);
    assert_fault(&s, KL_FAULT_GUARD, "wrote to the output of an earlier call");
    close_scene(&s);
}

static bool holds_zeros(scene *s, uint32_t slot) {
    const float *y = kli_memory_output(&s->memory, &s->plan, 2, slot);
    return y[0] == 0 && memcmp(y, y + 1, (N - 1) * sizeof *y) == 0;
}

/* Nothing comes back that was not asked for, and no batch is told what will be. */
static void test_cuda_runner__brings_back_the_slots_asked_for(void **unused) {
    const char *const faults[] = {"", "blind_guards", "no_ptx"};
    const uint32_t wanted[] = {3, 1};
    (void)unused;
    for (int k = 0; k < 3; k++) {
        scene s = {0};
        kl_error e = {0};
        double ns[SLOTS];
        const kl_time_request q = {.method = KL_TIME_GRAPH, .calls = SLOTS, .poison = 0xFF};
        open_scene(&s, "scale", faults[k]);
        memset(s.memory.outputs, 0, s.memory.outputs_bytes);
        assert_ok(kli_runner_time(s.runner, &s.fault, ns, &q, 20 * SECOND, &e));
        assert_ok(kli_runner_audit(s.runner, &s.fault, 0, SLOTS, 0xFF, &e));
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        for (uint32_t slot = 0; slot < SLOTS; slot++) assert_true(holds_zeros(&s, slot));
        assert_ok(kli_runner_fetch(s.runner, &s.fault, wanted, 2, 0xFF, &e));
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        for (uint32_t slot = 0; slot < SLOTS; slot += 2) assert_true(holds_zeros(&s, slot));
        for (int i = 0; i < 2; i++) assert_output(&s, wanted[i] % SETS, wanted[i]);
        assert_ok(kli_runner_fetch(s.runner, &s.fault, wanted, 2, 0xA5, &e));
        assert_fault(&s, KL_FAULT_GUARD, "past the end of `y`"); /* guards of another poison */
        close_scene(&s);
    }
}

static unsigned waits(void) {
    unsigned n = 0;
    FILE *f = fopen("waits", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    assert_int_equal(fclose(f), 0);
    return n;
}

/* However many sets and slots it is about.  A run waits before its launch, for it and after it. */
static void test_cuda_runner__waits_once_for_an_upload_an_audit_a_fetch(void **unused) {
    const uint32_t slots[] = {0, 2, 4};
    scene s = {0};
    kl_error e = {0};
    (void)unused;
    assert_int_equal(setenv("KLINEAGE_FAKE_WAITS", "waits", 1), 0);
    open_scene(&s, "scale", "");
    unsigned before = waits();
    assert_ok(kli_runner_upload(s.runner, &s.fault, 0, SETS, &e));
    assert_int_equal(waits(), before + 1);
    time_alone(&s, KL_TIME_GRAPH, 0, SLOTS, false);
    before = waits();
    assert_ok(kli_runner_audit(s.runner, &s.fault, 0, SLOTS, 0xFF, &e));
    assert_int_equal(waits(), before + 1);
    assert_ok(kli_runner_fetch(s.runner, &s.fault, slots, 3, 0xFF, &e));
    assert_int_equal(waits(), before + 2);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    for (int i = 0; i < 3; i++) assert_output(&s, slots[i] % SETS, slots[i]);
    before = waits();
    kli_runner_slack(s.runner, 0xA5);
    run(&s, 1, 1, 0xA5);
    assert_int_equal(waits(), before + 3);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    assert_output(&s, 1, 1);
    assert_int_equal(unsetenv("KLINEAGE_FAKE_WAITS"), 0);
    close_scene(&s);
}

/* A part of the sets leaves the others alone. */
static void test_cuda_runner__uploads_any_run_of_sets(void **unused) {
    scene s = {0};
    kl_error e = {0};
    (void)unused;
    open_scene(&s, "scale", "");
    for (uint32_t set = 0; set < SETS; set++)
        ((float *)kli_memory_input(&s.memory, &s.plan, 0, set))[0] = 7;
    assert_ok(kli_runner_upload(s.runner, &s.fault, 1, SETS - 1, &e));
    assert_ok(kli_runner_upload(s.runner, &s.fault, 0, 0, &e));
    for (uint32_t set = 0; set < SETS; set++) {
        run(&s, set, set, 0xFF);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        const float *y = kli_memory_output(&s.memory, &s.plan, 2, set);
        assert_true(y[0] == 2.5f * (set ? 7 : input(0, 0)));
        assert_true(y[N - 1] == 2.5f * input(set, N - 1));
    }
    close_scene(&s);
}

/* Damage in any call of a batch, with our device code and without. */
static void test_cuda_runner__audits_guards_and_inputs_of_a_batch(void **unused) {
    const struct {
        const char *entry, *text;
        kl_fault_kind kind;
    } rows[] = {{"scale_past_end", "past the end of `y`", KL_FAULT_GUARD},
                {"scale_before", "before the beginning of `y`", KL_FAULT_GUARD},
                {"scale_input", "wrote to input `x`", KL_FAULT_INPUT},
                {"past_input", "past the end of input `x`", KL_FAULT_GUARD},
                {"past_buffer", "past the end of `tmp`", KL_FAULT_GUARD}};
    const char *const faults[] = {"", "blind_guards", "no_ptx"};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int k = 0; k < 3; k++) {
            scene s = {0};
            kl_error e = {0};
            double ns[SLOTS];
            const kl_time_request q = {
                .method = KL_TIME_GRAPH, .first = 4, .calls = 3, .poison = 0xA5};
            strstr(rows[i].entry, "buffer") ? plan_with_buffer(&s.plan, rows[i].entry)
                                            : plan_for(&s.plan, rows[i].entry);
            start(&s, faults[k]);
            load(&s);
            bind(&s);
            assert_ok(kli_runner_time(s.runner, &s.fault, ns, &q, 20 * SECOND, &e));
            assert_int_equal(s.fault.kind, KL_FAULT_NONE);
            assert_ok(kli_runner_audit(s.runner, &s.fault, 4, 3, 0xA5, &e));
            assert_fault(&s, rows[i].kind, rows[i].text);
            close_scene(&s);
        }
}

/* Other bytes beside an input are no change of it, and a write there is seen whatever they are. */
static void test_cuda_runner__puts_bytes_beside_the_inputs(void **unused) {
    scene s = {0};
    (void)unused;
    open_scene(&s, "scale", "");
    for (int i = 0; i < 3; i++) {
        kli_runner_slack(s.runner, i == 1 ? 0xA5 : 0xFF);
        run(&s, 0, 0, 0xA5);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        assert_output(&s, 0, 0);
    }
    close_scene(&s);
    open_scene(&s, "past_input", "");
    kli_runner_slack(s.runner, 0xFF);
    run(&s, 0, 0, 0xA5);
    assert_fault(&s, KL_FAULT_GUARD, "past the end of input `x`");
    close_scene(&s);
}

static void test_cuda_runner__reports_faults_in_timed_calls(void **unused) {
    const kl_time_method methods[] = {KL_TIME_EVENTS, KL_TIME_GRAPH};
    (void)unused;
    for (int m = 0; m < 2; m++) {
        scene s = {0};
        double ns[SLOTS];
        open_scene(&s, "scale", "illegal_address@4");
        time_calls(&s, methods[m], 0, SLOTS, ns);
        assert_fault(&s, KL_FAULT_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS");
        close_scene(&s);
        scene t = {0};
        open_scene(&t, "scale_past_end", "");
        time_calls(&t, methods[m], 0, SLOTS, ns);
        assert_fault(&t, KL_FAULT_GUARD, "past the end of `y`");
        close_scene(&t);
    }
}

/* ---- plugins --------------------------------------------------------------------------------- */

/* `host`: 1 works there, 2 cannot be opened at all. */
static void start_plugin(scene *s, int host) {
    static char path[4096];
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str source;
    const kl_device device = {.backend = KL_BACKEND_CUDA};
    const kl_compile_opts how = {.cache_dir = "cache"};
    const kl_runner_opts trusted = {
        .backend = KL_BACKEND_CUDA, .cpu = -1, .threads = 1, .trusted = true};
    FILE *f = fopen("plugin.c", "w");
    assert_non_null(f);
    assert_ok(kli_fs_read(&source, a, KL_TEST_ROOT "/tests/device/copy_plugin.c", 1 << 16, &e));
    assert_true(fprintf(f, "#define HOST %d\n%s", host, source.ptr) > 0 && fclose(f) == 0);
    plan_for(&s->plan, "");
    s->plan.n_launches = 0;
    s->plan.tensors[1].value = 2.5;
    assert_ok(kli_compile_plugin(&s->artefact, a, &device, "plugin.c", &how, &e));
    if (!s->artefact.ok) fail_msg("%.*s", KL_STR_ARG(s->artefact.log));
    (void)snprintf(path, sizeof path, "%s", s->artefact.path.ptr);
    s->artefact.path = kl_str_of(path);
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", "", 1), 0);
    assert_ok(kli_runner_start(&s->runner, &trusted, &e));
    kl_arena_free(a);
}

static void load_plugin(scene *s) {
    kl_error e = {0};
    assert_ok(kli_runner_load(s->runner, &s->fault, s->resources, &s->artefact, &s->plan, &e));
}

static void open_plugin(scene *s, bool on_host) {
    start_plugin(s, on_host);
    load_plugin(s);
    if (!s->fault.kind) bind(s);
    if (s->fault.kind) fail_msg("%s", s->fault.text);
}

static void assert_copied(scene *s, uint32_t set, uint32_t slot) {
    assert_memory_equal(kli_memory_output(&s->memory, &s->plan, 2, slot),
                        kli_memory_input(&s->memory, &s->plan, 0, set), N * 4);
}

static void test_cuda_runner__calls_plugins_on_its_stream(void **unused) {
    const kl_time_method methods[] = {KL_TIME_EVENTS, KL_TIME_GRAPH};
    scene s = {0};
    (void)unused;
    open_plugin(&s, false);
    assert_non_null(strstr(kli_runner_describe(s.runner), "copies 1.0"));
    run(&s, 1, 3, 0xA5);
    assert_copied(&s, 1, 3);
    for (int m = 0; m < 2; m++) {
        double ns[SLOTS];
        time_calls(&s, methods[m], 0, SLOTS, ns);
        if (s.fault.kind) fail_msg("%s", s.fault.text);
        for (uint32_t j = 0; j < SLOTS; j++) assert_copied(&s, j % SETS, j);
    }
    close_scene(&s);
}

/* Opening a vendor's library takes longer than a batch: once for all shapes. */
static void test_cuda_runner__opens_a_plugin_once(void **unused) {
    scene s = {0};
    (void)unused;
    open_plugin(&s, false);
    assert_non_null(strstr(kli_runner_describe(s.runner), "prepared 1"));
    load_plugin(&s);
    kli_memory_close(&s.memory);
    bind(&s);
    assert_non_null(strstr(kli_runner_describe(s.runner), "prepared 2"));
    run(&s, 1, 3, 0xA5);
    assert_copied(&s, 1, 3);
    close_scene(&s);
}

/* It is open by the time that it is asked for; what failed then fails again. */
static void test_cuda_runner__opens_a_plugin_ahead(void **unused) {
    scene s = {0};
    kl_error e = {0};
    (void)unused;
    for (int host = 0; host <= 2; host += 2) {
        start_plugin(&s, host);
        kli_runner_load_ahead(s.runner, &s.artefact, &s.plan);
        assert_ok(kli_runner_await(s.runner, &e));
        kli_runner_load_ahead(s.runner, &s.artefact, &s.plan);
        assert_int_equal(s.runner->ahead, host == 0); /* once is enough to know that it ends */
        load_plugin(&s);
        if (host == 2) break;
        bind(&s);
        run(&s, 1, 3, 0xA5);
        assert_copied(&s, 1, 3);
        close_scene(&s);
    }
    assert_fault(&s, KL_FAULT_CRASH, "SIGABRT");
    kli_runner_stop(s.runner);
}

static void test_cuda_runner__refuses_work_outside_the_graph(void **unused) {
    scene s = {0};
    double ns[SLOTS];
    (void)unused;
    open_plugin(&s, true);
    time_calls(&s, KL_TIME_GRAPH, 0, SLOTS, ns);
    assert_fault(&s, KL_FAULT_REFUSED, "5 calls make a graph of 0 nodes");
    close_scene(&s);
}

/* ---- the fake itself ------------------------------------------------------------------------- */

static void test_cuda_runner__fake_device_names_itself(void **unused) {
    kl_arena *a = kl_arena_new();
    kl_device d;
    kl_error e = {0};
    (void)unused;
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    kl_err code = kl_device_probe(&d, a, KL_BACKEND_CUDA, &e);
    if (code == KL_OK) {
        assert_true(kl_str_starts(d.platform, KL_S("fake-sm90a/")));
        assert_true(kl_str_starts(d.name, KL_S("fake device")));
        assert_true(kl_str_eq(d.arch, KL_S("sm_90a")));
        assert_int_equal(d.limits.smem_max, 232448);
        assert_false(d.pageable_access);
        assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", "reads_host", 1), 0);
        assert_ok(kl_device_measure(&d, KL_BACKEND_CUDA, &e));
        assert_true(d.pageable_access);
    } else {
        assert_non_null(strstr(
            e.message, "no CUDA compiler")); /* the only other answer: a host without the toolkit */
    }
    kl_arena_free(a);
}

static void test_cuda_runner__has_no_device_without_a_driver(void **unused) {
    scene s = {0};
    kl_error e = {0};
    const kl_runner_opts how = {.backend = KL_BACKEND_CUDA, .cpu = -1, .threads = 1};
    (void)unused;
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", "/nonexistent/libcuda.so.1", 1), 0);
    assert_ok(kli_runner_start(&s.runner, &how, &e));
    plan_for(&s.plan, "scale");
    make_artefact(&s);
    assert_int_equal(kli_runner_load(s.runner, &s.fault, s.resources, &s.artefact, &s.plan, &e),
                     KL_ENODEV);
    assert_non_null(strstr(e.message, "no CUDA driver"));
    kli_runner_stop(s.runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_runner__runs_and_says_that_it_is_fake),
        cmocka_unit_test(test_cuda_runner__leaves_poison_where_nothing_was_written),
        cmocka_unit_test(test_cuda_runner__sees_writes_outside_tensors),
        cmocka_unit_test(test_cuda_runner__sees_writes_to_inputs),
        cmocka_unit_test(test_cuda_runner__guards_buffers),
        cmocka_unit_test(test_cuda_runner__restores_mutable_inputs),
        cmocka_unit_test(test_cuda_runner__forgets_variables_between_runs),
        cmocka_unit_test(test_cuda_runner__clears_local_memory_between_runs_and_batches),
        cmocka_unit_test(test_cuda_runner__clears_what_lies_behind_the_inputs),
        cmocka_unit_test(test_cuda_runner__no_call_finds_the_digests_of_others),
        cmocka_unit_test(test_cuda_runner__keeps_nothing_from_binding_to_binding),
        cmocka_unit_test(test_cuda_runner__encodes_a_tensormap_for_each_set),
        cmocka_unit_test(test_cuda_runner__moves_to_another_kernel_and_binding),
        cmocka_unit_test(test_cuda_runner__names_the_driver_error),
        cmocka_unit_test(test_cuda_runner__kills_a_kernel_that_hangs),
        cmocka_unit_test(test_cuda_runner__refuses_what_does_not_fit_memory),
        cmocka_unit_test(test_cuda_runner__refuses_impossible_launches),
        cmocka_unit_test(test_cuda_runner__no_call_finds_the_key_of_digests),
        cmocka_unit_test(test_cuda_runner__a_block_is_the_one_that_the_code_was_compiled_for),
        cmocka_unit_test(test_cuda_runner__times_each_call_on_its_own_slot),
        cmocka_unit_test(test_cuda_runner__shows_state_inside_a_batch),
        cmocka_unit_test(test_cuda_runner__digests_every_timed_call),
        cmocka_unit_test(test_cuda_runner__brings_back_the_slots_asked_for),
        cmocka_unit_test(test_cuda_runner__audits_guards_and_inputs_of_a_batch),
        cmocka_unit_test(test_cuda_runner__waits_once_for_an_upload_an_audit_a_fetch),
        cmocka_unit_test(test_cuda_runner__uploads_any_run_of_sets),
        cmocka_unit_test(test_cuda_runner__sees_work_ahead_where_the_batch_ends_early),
        cmocka_unit_test(test_cuda_runner__honest_calls_leave_idle_slots_alone),
        cmocka_unit_test(test_cuda_runner__sees_work_done_after_its_call),
        cmocka_unit_test(test_cuda_runner__puts_bytes_beside_the_inputs),
        cmocka_unit_test(test_cuda_runner__reports_faults_in_timed_calls),
        cmocka_unit_test(test_cuda_runner__calls_plugins_on_its_stream),
        cmocka_unit_test(test_cuda_runner__a_warm_call_finds_its_buffer_as_declared),
        cmocka_unit_test(test_cuda_runner__opens_a_plugin_once),
        cmocka_unit_test(test_cuda_runner__opens_a_plugin_ahead),
        cmocka_unit_test(test_cuda_runner__refuses_work_outside_the_graph),
        cmocka_unit_test(test_cuda_runner__fake_device_names_itself),
        cmocka_unit_test(test_cuda_runner__has_no_device_without_a_driver),
    };
    return cmocka_run_group_tests_name("cuda_runner", tests, NULL, NULL);
}
