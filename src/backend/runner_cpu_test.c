/* runner_cpu_test.c - C kernels in their runners: results, clocks, and every way to misbehave.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "base/fs.h"
#include <signal.h>

#define LAUNCH "//! launch scale args(x, s, y, N)\n"
#define HEAD LAUNCH "#include <stdlib.h>\nvoid scale(const float *x, float s, float *y, int n) "
#define SCALE_BODY "{ for (int i = 0; i < n; i++) y[i] = s * x[i]; }\n"

static void test_runner_cpu__computes(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    for (uint32_t set = 0; set < N_SETS; set++) {
        fixture_run(&f, set, set + 1);
        assert_int_equal(f.fault.kind, KL_FAULT_NONE);
        fixture_expect_scaled(&f, set, set + 1);
        assert_int_equal(kli_memory_guard_damage(&f.memory, &f.plan, set + 1, 0xA5), -1);
    }
    fixture_close(&f);
}

static void test_runner_cpu__times_batches(void **state) {
    fixture f;
    kl_error e = {0};
    double ns;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    const kl_time_request q = {
        .method = KL_TIME_BATCH, .calls = 4, .warm = 2, .poison = 0xA5, .freeze = true};
    for (int round = 0; round < 5; round++) {
        for (uint32_t slot = 0; slot < 4; slot++) kli_memory_poison(&f.memory, &f.plan, slot, 0xA5);
        assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
        if (f.fault.kind) fail_msg("%s", f.fault.text);
        for (uint32_t slot = 0; slot < 4; slot++) fixture_expect_scaled(&f, slot, slot);
        assert_true(ns > 0);
    }
    assert_true(kli_runner_handshake_ns(f.runner) > 0);
    fixture_close(&f);
}

/* What starting and ending a batch takes is measured once for a process on its core, and what was
 * loaded is not loaded again; a binding to other pages changes neither, and results are right. */
static void test_runner_cpu__another_binding_costs_a_binding(void **state) {
    fixture f;
    kl_error e = {0};
    double ns;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    const kl_time_request q = {.method = KL_TIME_BATCH, .calls = 4, .poison = 0xA5};
    for (uint32_t slot = 0; slot < 4; slot++) kli_memory_poison(&f.memory, &f.plan, slot, 0xA5);
    assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
    const double before = kli_runner_handshake_ns(f.runner);
    fixture_load(&f);
    assert_true(before > 0 && kli_runner_handshake_ns(f.runner) == before);
    kli_memory_poison(&f.memory, &f.plan, 9, 0xA5);
    fixture_run(&f, 2, 9);
    fixture_expect_scaled(&f, 2, 9);
    assert_ok(kli_runner_place(f.runner, 0, 1, &e));
    assert_true(kli_runner_handshake_ns(f.runner) == 0); /* of another core nothing is known */
    fixture_close(&f);
}

/* A batch that ends early leaves the slots of the calls that were not made, warm calls or not. */
static void test_runner_cpu__a_short_batch_leaves_idle_slots_alone(void **state) {
    fixture f;
    kl_error e = {0};
    double ns;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    for (uint32_t calls = 1; calls < 4; calls++) {
        const kl_time_request q = {.method = KL_TIME_BATCH,
                                   .calls = calls,
                                   .warm = 1,
                                   .poison = 0xA5,
                                   .alone = true,
                                   .freeze = true};
        for (uint32_t slot = 0; slot < 4; slot++) kli_memory_poison(&f.memory, &f.plan, slot, 0xA5);
        assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
        if (f.fault.kind) fail_msg("%s", f.fault.text);
        for (uint32_t slot = 0; slot < calls; slot++) fixture_expect_scaled(&f, slot, slot);
        for (uint32_t slot = calls; slot < 4; slot++) {
            const unsigned char *y = (const unsigned char *)fixture_y(&f, slot);
            for (size_t i = 0; i < N_FLOATS * sizeof(float); i++) assert_int_equal(y[i], 0xA5);
        }
    }
    fixture_close(&f);
}

static void test_runner_cpu__says_what_confines_it(void **state) {
    fixture f;
    kl_isolation here;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    kli_isolation_probe(&here);
    const kl_isolation *runner = kli_runner_isolation(f.runner);
    assert_int_equal(runner->seccomp, here.seccomp);
    assert_int_equal(runner->landlock_abi, here.landlock_abi);
    assert_int_equal(runner->namespaces, here.namespaces);
    assert_int_equal(runner->user_switch, here.user_switch);
    assert_int_equal(runner->rlimits, here.rlimits);
    fixture_close(&f);
}

static void test_runner_cpu__serves_another_shape(void **state) {
    fixture f;
    kl_error e = {0};
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    f.workload.axes[0] = 17;
    kli_memory_close(&f.memory);
    kl_layout layout;
    assert_ok(kli_kernel_plan(&f.plan, f.kernel, &f.task, &f.workload, &f.device.limits, &e));
    assert_ok(kli_layout_make(&layout, &f.plan, 1, 1, &e));
    assert_ok(kli_memory_open(&f.memory, &layout, &e));
    float *x = kli_memory_input(&f.memory, &f.plan, 0, 0);
    for (int i = 0; i < 17; i++) x[i] = 2;
    fixture_load(&f);
    fixture_run(&f, 0, 0);
    assert_int_equal(f.fault.kind, KL_FAULT_NONE);
    for (int i = 0; i < 17; i++) assert_true(fixture_y(&f, 0)[i] == 5.0f);
    fixture_close(&f);
}

/* ---- state that a kernel tries to keep --------------------------------------------------- */

static void test_runner_cpu__keeps_no_static_state(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(
        &f,
        LAUNCH
        "static int calls; void scale(const float *x, float s, float *y, int n) { (void)x; (void)s;"
        " calls++; for (int i = 0; i < n; i++) y[i] = (float)calls; }\n",
        false);
    for (uint32_t k = 0; k < 3; k++) {
        fixture_run(&f, 0, k);
        assert_true(fixture_y(&f, k)[0] == 1.0f);
    }
    fixture_close(&f);
}

/* Every trace that warm calls could leave: static memory, the slots of the batch, scratch. */
static void test_runner_cpu__warm_calls_leave_no_trace(void **state) {
    fixture f;
    kl_error e = {0};
    double ns;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f,
                  "//! buffer t: f32[16]\n//! launch scale args(x, s, y, N, t)\n"
                  "static int calls; void scale(const float *x, float s, float *y, int n, float "
                  "*t) { (void)x; (void)s; (void)n;"
                  " y[0] = (float)calls++; y[1] = y[2]; y[2] = 7; y[3] = t[0] == 7; t[0] = 7; }\n",
                  false);
    const kl_time_request q = {.method = KL_TIME_BATCH, .calls = 2, .warm = 5, .poison = 0};
    kli_memory_poison(&f.memory, &f.plan, 0, 0);
    kli_memory_poison(&f.memory, &f.plan, 1, 0);
    assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
    if (f.fault.kind) fail_msg("%s", f.fault.text);
    for (uint32_t slot = 0; slot < 2; slot++) {
        assert_true(fixture_y(&f, slot)[0] == (float)slot);
        assert_true(fixture_y(&f, slot)[1] == 0.0f);
        assert_true(fixture_y(&f, slot)[3] == 0.0f);
    }
    fixture_close(&f);
}

/* ---- faults ------------------------------------------------------------------------------ */

static const struct {
    const char *body;
    kl_fault_kind kind;
    int signal;
    const char *text;
} FAULTS[] = {
    {"{ (void)s; (void)n; y[0] = x[n + 256]; }", KL_FAULT_GUARD, SIGSEGV,
     "read past the end of `x`"},
    {"{ (void)s; (void)x; y[n + 64] = 1; }", KL_FAULT_GUARD, SIGSEGV, "wrote past the end of `y`"},
    {"{ (void)s; (void)x; y[-512] = 1; (void)n; }", KL_FAULT_GUARD, SIGSEGV,
     "wrote before the beginning of `y`"},
    {"{ (void)s; (void)y; (void)n; ((float *)x)[3] = 1; }", KL_FAULT_INPUT, SIGSEGV,
     "wrote to input `x`"},
    {"{ (void)s; (void)x; (void)n; (void)y; *(volatile int *)8 = 1; }", KL_FAULT_CRASH, SIGSEGV,
     "null pointer"},
    {"{ (void)s; (void)x; y[0] = 1.0f / (float)n; volatile int z = 0; y[1] = (float)(n / z); }",
     KL_FAULT_CRASH, SIGFPE, "SIGFPE"},
    {"{ (void)s; (void)x; (void)y; (void)n; __builtin_trap(); }", KL_FAULT_CRASH, SIGILL, "SIGILL"},
    {"{ (void)s; (void)x; volatile char big[1 << 14]; big[0] = (char)n; y[0] = big[0]; scale(x, s, "
     "y, n + 1); big[1] = y[0]; }",
     KL_FAULT_CRASH, SIGSEGV, "SIGSEGV"},
};

static void test_runner_cpu__names_each_fault_and_survives_it(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(FAULTS); i++) {
        fixture f;
        char source[1024];
        (void)snprintf(source, sizeof source, "//! flags -O0\n%s%s\n", HEAD, FAULTS[i].body);
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_ready(&f, source, false);
        for (int round = 0; round < 2; round++) {
            fixture_run(&f, 0, 1);
            fixture_expect_fault(&f, FAULTS[i].kind, FAULTS[i].signal, FAULTS[i].text);
        }
        fixture_close(&f);
    }
}

/* Guards of a large input are huge pages, whether its data lie in huge ones here or in small. */
static void test_runner_cpu__guards_a_large_input(void **state) {
    static const struct {
        const char *body;
        kl_fault_kind kind;
        const char *text;
    } rows[] = {
        {"{ (void)s; y[0] = x[n - 1] + x[0]; }", KL_FAULT_NONE, ""},
        {"{ (void)s; y[0] = x[n]; }", KL_FAULT_GUARD, "read past the end of `x`"},
        {"{ (void)s; y[0] = x[n + 500000]; }", KL_FAULT_GUARD, "read past the end of `x`"},
        {"{ (void)s; (void)n; y[0] = x[-1]; }", KL_FAULT_GUARD, "read before the beginning of `x`"},
        {"{ (void)s; (void)y; ((float *)x)[n - 1] = 1; }", KL_FAULT_INPUT, "wrote to input `x`"}};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        fixture f;
        char source[1024];
        (void)snprintf(source, sizeof source, "//! flags -O0\n%s%s\n", HEAD, rows[i].body);
        fixture_open(&f, KL_BACKEND_CPU);
        f.workload.axes[0] = 4 << 20; /* 16 MiB */
        fixture_ready(&f, source, false);
        assert_int_equal(f.memory.layout.set_page_bytes, 2 << 20);
        float *x = kli_memory_input(&f.memory, &f.plan, 0, 1);
        x[(4 << 20) - 1] = 7;
        fixture_run(&f, 1, 1);
        fixture_expect_fault(&f, rows[i].kind, rows[i].kind ? SIGSEGV : 0, rows[i].text);
        if (!rows[i].kind) assert_true(fixture_y(&f, 1)[0] == 1007);
        fixture_close(&f);
    }
}

/* Raw system calls: inspection sees the instruction, and the filter stops it even where inspection
 * would not have. */
static const struct {
    int number;
    const char *name;
} CALLS[] = {{57, "fork"},    {41, "socket"},          {2, "open"},
             {257, "openat"}, {59, "execve"},          {62, "kill"},
             {101, "ptrace"}, {10, "mprotect"},        {1, "write"},
             {46, "sendmsg"}, {425, "io_uring_setup"}, {13, "rt_sigaction"},
             {56, "clone"},   {109, "setpgid"},        {35, "nanosleep"}};

static void syscall_kernel(char *source, size_t n, int number, int argument) {
    (void)snprintf(source, n,
                   "%s{ long r; (void)x; (void)s; (void)n; __asm__ volatile(\"syscall\" : "
                   "\"=a\"(r) : \"a\"(%dl), \"D\"(%dl), "
                   "\"S\"(0l), \"d\"(0l) : \"rcx\", \"r11\", \"memory\"); y[0] = (float)r; }\n",
                   HEAD, number, argument);
}

static void test_runner_cpu__forbids_system_calls(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(CALLS); i++) {
        fixture f;
        char source[1024], wanted[64];
        syscall_kernel(source, sizeof source, CALLS[i].number, 0);
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_ready(&f, source, false);
        assert_contains(f.artefact.suspicious.ptr, "syscall");
        fixture_run(&f, 0, 1);
        (void)snprintf(wanted, sizeof wanted, "forbidden system call %s", CALLS[i].name);
        fixture_expect_fault(&f, KL_FAULT_CRASH, SIGSYS, wanted);
        fixture_close(&f);
    }
}

/* Honest kernels that ask for more than arithmetic. */
static const char *const HONEST[] = {
    LAUNCH
    "#include <string.h>\nvoid scale(const float *x, float s, float *y, int n) {\n" /* four
                                                                                       megabytes of
                                                                                       stack */
    "    int m = (1 << 20) + n; float t[m]; memset(t, 0, sizeof t); t[m - 1] = s; for (int i = 0; "
    "i < n; i++) y[i] = t[m - 1] * x[i]; }\n",
    LAUNCH
    "#include <string.h>\nvoid scale(const float *x, float s, float *y, int n) {\n" /* forty */
    "    volatile char t[40 << 20]; for (size_t i = 0; i < sizeof t; i += 4096) t[i] = 1; for (int "
    "i = 0; i < n; i++) y[i] = s * x[i] * t[4096]; }\n",
    LAUNCH "#include <stdlib.h>\nstatic int less(const void *a, const void *b) { return (*(float "
           "*)a > *(float *)b) - (*(float *)a < *(float *)b); }\n"
           "void scale(const float *x, float s, float *y, int n) { for (int i = 0; i < n; i++) "
           "y[i] = s * x[n - 1 - i]; qsort(y, n, sizeof *y, less); }\n",
    LAUNCH "static _Thread_local float kept = 1; static _Thread_local float zero[4];\nvoid "
           "scale(const float *x, float s, float *y, int n) {\n"
           "    kept *= s; for (int i = 0; i < n; i++) y[i] = (kept + zero[i % 4]) * x[i]; }\n",
    "//! threads 2\n" LAUNCH "void scale(const float *x, float s, float *y, int n) {\n#pragma omp "
    "parallel for num_threads(8)\n"
    "    for (int i = 0; i < n; i++) y[i] = s * x[i]; }\n",
    LAUNCH "#include <stdlib.h>\n#include <string.h>\nvoid scale(const float *x, float s, float "
           "*y, int n) {\n" /* realloc of a mapped block */
           "    float *t = malloc(1 << 20); memcpy(t, x, sizeof *t * n); t = realloc(t, 8 << 20); "
           "for (int i = 0; i < n; i++) y[i] = s * t[i]; free(t); }\n",
    LAUNCH "#include <math.h>\nstatic double (*const TABLE[])(double) = {fabs, fabs};\nstatic "
           "const char *const WORDS[] = {\"a\", \"b\"};\n"
           "void scale(const float *x, float s, float *y, int n) { for (int i = 0; i < n; i++) "
           "y[i] = s * (float)TABLE[i % 2](x[i]) * (WORDS[i % 2][1] + 1); }\n",
    LAUNCH "static float big[1 << 22] __attribute__((aligned(65536))); void scale(const float *x, "
           "float s, float *y, int n) {\n"
           "    big[(unsigned long)big % 65536 + (1 << 21)] = s; for (int i = 0; i < n; i++) y[i] "
           "= big[1 << 21] * x[i] + big[i]; }\n",
};

static void test_runner_cpu__runs_unusual_honest_kernels(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(HONEST); i++) {
        fixture f;
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_ready(&f, HONEST[i], false);
        if (f.artefact.suspicious.len || f.artefact.refused.len)
            fail_msg("%s\n%s%s", HONEST[i], f.artefact.suspicious.ptr, f.artefact.refused.ptr);
        for (uint32_t round = 0; round < 2; round++) {
            fixture_run(&f, 0, round);
            if (f.fault.kind) fail_msg("%s\n%s", HONEST[i], f.fault.text);
            fixture_expect_scaled(&f, 0, round);
        }
        fixture_close(&f);
    }
}

static void test_runner_cpu__an_early_exit_is_no_result(void **state) {
    fixture f;
    char source[1024];
    kl_error e = {0};
    double ns;
    (void)state;
    syscall_kernel(source, sizeof source, 231, 0); /* exit_group(0) */
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, source, false);
    fixture_run(&f, 0, 1);
    fixture_expect_fault(&f, KL_FAULT_PROTOCOL, 0, "instead of returning");
    const kl_time_request q = {.method = KL_TIME_BATCH, .calls = 2};
    assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
    fixture_expect_fault(&f, KL_FAULT_PROTOCOL, 0, "instead of returning");
    fixture_close(&f);
}

static void note_control(void *to, uintptr_t from, uintptr_t end, const char *permissions,
                         const char *name) {
    (void)end, (void)permissions;
    if (strstr(name, "memfd:control")) memcpy(to, &from, sizeof from);
}

/* It knows where the control page is mapped, says "done" at once and does the work afterwards. */
#define FORGER                                                                                     \
    LAUNCH "#include <stdint.h>\nvoid scale(const float *x, float s, float *y, int "               \
           "n) {\n"                                                                                \
           "    uint32_t *control = (uint32_t *)0x%lxul;\n"                                        \
           "    if (control[0] && control[0] < 10000) *(volatile uint32_t *)(control + 64) = "     \
           "control[0];\n"                                                                         \
           "    for (volatile int i = 0; i < 20000000; i++) { }\n"                                 \
           "    for (int i = 0; i < n; i++) y[i] = s * x[i]; }\n"

static void test_runner_cpu__work_after_done_is_seen(void **state) {
    fixture f;
    kl_error e = {0};
    double ns = 0;
    char source[1024];
    uintptr_t control = 0;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, HEAD SCALE_BODY, false);
    if (!fixture_each_mapping(note_control, &control) || !control)
        skip(); /* somebody else's maps may be hidden from us */
    (void)snprintf(source, sizeof source, FORGER, (unsigned long)control);
    fixture_compile_for(&f, source, false);
    fixture_load(&f);
    kl_time_request q = {.method = KL_TIME_BATCH, .calls = 1, .poison = 0xA5};
    kli_memory_poison(&f.memory, &f.plan, 0, 0xA5);
    assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
    assert_int_equal(f.fault.kind, KL_FAULT_NONE); /* the clock alone cannot know ... */
    q.freeze = true;
    for (int round = 0; round < 10 && !f.fault.kind;
         round++) { /* a busy machine may freeze only after the work */
        kli_memory_poison(&f.memory, &f.plan, 0, 0xA5);
        assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
    }
    fixture_expect_fault(&f, KL_FAULT_PROTOCOL, 0,
                         "after the kernel had said"); /* ... freezing does */
    fixture_close(&f);
}

static void test_runner_cpu__ends_an_endless_loop(void **state) {
    fixture f;
    kl_error e = {0};
    int64_t wall;
    double ns;
    (void)state;
    for (int timed = 0; timed < 2; timed++) {
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_ready(
            &f, HEAD "{ (void)x; (void)s; (void)n; for (volatile float *p = y;;) p[0] += 1; }\n",
            false);
        const kl_time_request q = {.method = KL_TIME_BATCH, .calls = 2};
        if (timed)
            assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, SECOND / 5, &e));
        else
            assert_ok(kli_runner_run(f.runner, &f.fault, 0, 0, 0xA5, SECOND / 5, &wall, &e));
        fixture_expect_fault(&f, KL_FAULT_HANG, 0, "time allowed");
        assert_err(KL_ESPAWN, kli_runner_run(f.runner, &f.fault, 0, 0, 0xA5, SECOND, &wall, &e));
        fixture_close(&f);
    }
}

static void test_runner_cpu__refuses_what_it_cannot_load(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(
        &f, "//! launch missing args(x, s, y, N)\nvoid scale(const float *x) { (void)x; }\n",
        false);
    fixture_start(&f, false);
    fixture_load(&f);
    fixture_expect_fault(&f, KL_FAULT_REFUSED, 0, "no function `missing`");
    fixture_close(&f);
}

static void test_runner_cpu__threads_are_the_declared_ones(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(
        &f,
        "//! threads 2\n" LAUNCH
        "int omp_get_thread_num(void);\nvoid scale(const float *x, float s, float *y, int n) {\n"
        "#pragma omp parallel for num_threads(2)\n"
        "for (int i = 0; i < n; i++) y[i] = omp_get_thread_num() + 0 * s * x[i]; }\n",
        false);
    assert_int_equal(f.artefact.suspicious.len, 0);
    fixture_run(&f, 0, 1);
    if (f.fault.kind) fail_msg("%s", f.fault.text);
    assert_true(fixture_y(&f, 1)[0] == 0.0f && fixture_y(&f, 1)[N_FLOATS - 1] == 1.0f);
    fixture_close(&f);
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f,
                  "//! threads 2\n" LAUNCH
                  "void scale(const float *x, float s, float *y, int n) {\n"
                  "#pragma omp parallel for num_threads(4)\n for (int i = 0; i < n; i++) y[i] = s "
                  "* x[i]; }\n",
                  false);
    fixture_run(&f, 0, 1);
    assert_int_equal(f.fault.kind, KL_FAULT_NONE); /* it gets the two */
    fixture_expect_scaled(&f, 0, 1);
    fixture_close(&f);
}

static void test_runner_cpu__trusted_kernels_keep_their_process(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f,
                  LAUNCH "static int calls; void scale(const float *x, float s, float *y, int n) { "
                         "(void)x; (void)s; (void)n;"
                         " y[0] = (float)++calls; }\n",
                  true);
    fixture_run(&f, 0, 0);
    fixture_run(&f, 0, 0);
    assert_true(fixture_y(&f, 0)[0] == 2.0f);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runner_cpu__a_short_batch_leaves_idle_slots_alone),
        cmocka_unit_test(test_runner_cpu__computes),
        cmocka_unit_test(test_runner_cpu__times_batches),
        cmocka_unit_test(test_runner_cpu__another_binding_costs_a_binding),
        cmocka_unit_test(test_runner_cpu__says_what_confines_it),
        cmocka_unit_test(test_runner_cpu__serves_another_shape),
        cmocka_unit_test(test_runner_cpu__keeps_no_static_state),
        cmocka_unit_test(test_runner_cpu__warm_calls_leave_no_trace),
        cmocka_unit_test(test_runner_cpu__names_each_fault_and_survives_it),
        cmocka_unit_test(test_runner_cpu__guards_a_large_input),
        cmocka_unit_test(test_runner_cpu__forbids_system_calls),
        cmocka_unit_test(test_runner_cpu__runs_unusual_honest_kernels),
        cmocka_unit_test(test_runner_cpu__an_early_exit_is_no_result),
        cmocka_unit_test(test_runner_cpu__work_after_done_is_seen),
        cmocka_unit_test(test_runner_cpu__ends_an_endless_loop),
        cmocka_unit_test(test_runner_cpu__refuses_what_it_cannot_load),
        cmocka_unit_test(test_runner_cpu__threads_are_the_declared_ones),
        cmocka_unit_test(test_runner_cpu__trusted_kernels_keep_their_process),
    };
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
