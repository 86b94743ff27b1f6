/* script_runner_test.c - runner_script.py speaks the same bytes as the gate; and, where PyTorch is
 * installed, runs scripts on the CPU. $KLINEAGE_PYTHON chooses the interpreter, as for klineage
 * itself.  SPDX-License-Identifier: Apache-2.0 */
#include "backend/wire.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/proc.h"
#include "base/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define N 1000
#define SECOND 1000000000ll

static const char *python(void) {
    const char *chosen = getenv("KLINEAGE_PYTHON");
    return chosen && *chosen ? chosen : "python3";
}

/* Exit code of python, or -1 where there is none. */
static int ask_python(kl_arena *a, const char *first, const char *second, kl_str *out) {
    const char *argv[] = {python(), first, second, NULL};
    kli_proc_spec spec = {.argv = argv, .timeout_ns = 60 * SECOND};
    kli_proc_result r;
    if (kli_proc_run(&r, a, &spec, kl_ignored()) != KL_OK) return -1;
    if (out) *out = r.out;
    return r.exit_code;
}

/* ---- the structs ----------------------------------------------------------------------------- */

/* The script checks its structs against the sizes that C has when it is imported, before it looks
 * at its words. */
static void test_script_runner__has_the_structs_of_wire_def(void **unused) {
    kl_arena *a = kl_arena_new();
    kl_str text;
    kl_error e = {0};
    (void)unused;
    const int status = ask_python(a, KL_RUNNER_SCRIPT, "--help", NULL);
    if (status < 0) skip();
    assert_int_equal(status, 2);
    assert_ok(kli_fs_read(&text, a, KL_RUNNER_SCRIPT, 1 << 20, &e));
    const char *size =
        kl_arena_printf(a, "assert C.sizeof(kl_msg_load) == %zu\n", sizeof(kl_msg_load)).ptr;
    assert_contains(text.ptr, size);
    kl_arena_free(a);
}

/* ---- runs
 * -------------------------------------------------------------------------------------------------------------
 */

typedef struct {
    kl_plan plan;
    kl_memory memory;
    kl_runner *runner;
    kl_fault fault;
    kl_artefact artefact;
    char path[64];
} scene;

static void add_tensor(kl_plan *p, const char *name, kl_dtype dtype, uint32_t role, int64_t n) {
    kl_plan_tensor *t = &p->tensors[p->n_tensors++];
    *t = (kl_plan_tensor){.dtype = dtype,
                          .role = role,
                          .ndim = n ? 1 : 0,
                          .dims = {n},
                          .bytes = kl_dtype_bytes(dtype) * (uint64_t)(n ? n : 1)};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
}

/* x[N] bfloat16, s = 2.5, t[] a float32 of no dimensions -> y[N] float32 */
static void make_plan(kl_plan *p) {
    memset(p, 0, sizeof *p);
    p->magic = KL_PLAN_MAGIC, p->version = KL_PLAN_VERSION, p->threads = 1;
    add_tensor(p, "x", KL_BF16, 0, N);
    add_tensor(p, "s", KL_F32, 3, 0);
    add_tensor(p, "t", KL_F32, 0, 0);
    add_tensor(p, "y", KL_F32, 1, N);
    p->tensors[1].value = 2.5;
}

static double input(uint32_t set, size_t i) { return (double)(i % 100) + 100.0 * set; }

static kl_err begin(scene *s, const char *source, kl_error *error) {
    kl_error e = {0};
    static int number;
    kl_layout layout;
    const kl_runner_opts how = {
        .backend = KL_BACKEND_CPU, .trusted = true, .script = true, .cpu = -1, .threads = 1};
    (void)snprintf(s->path, sizeof s->path, "script%d.py", number++);
    make_plan(&s->plan);
    assert_int_equal(kli_fs_write(s->path, kl_str_of(source), kl_ignored()), KL_OK);
    s->artefact = (kl_artefact){.ok = true, .kind = KL_ARTEFACT_SCRIPT, .path = kl_str_of(s->path)};
    memcpy(s->artefact.hash, kli_hash_of(kl_str_of(source)).hex, sizeof s->artefact.hash);
    assert_ok(kli_layout_make(&layout, &s->plan, 2, 4, &e));
    assert_ok(kli_memory_open(&s->memory, &layout, &e));
    for (uint32_t set = 0; set < 2; set++) {
        for (size_t i = 0; i < N; i++)
            kl_dtype_store(KL_BF16, kli_memory_input(&s->memory, &s->plan, 0, set), i,
                           input(set, i));
        *(float *)kli_memory_input(&s->memory, &s->plan, 2, set) = 1.0f;
    }
    kl_resources none[KL_MAX_LAUNCHES];
    kl_err code = kli_runner_start(&s->runner, &how, error);
    if (!code) code = kli_runner_load(s->runner, &s->fault, none, &s->artefact, &s->plan, error);
    if (!code && !s->fault.kind) code = kli_runner_bind(s->runner, &s->fault, &s->memory, error);
    if (!code && !s->fault.kind) code = kli_runner_upload(s->runner, &s->fault, 0, 2, error);
    return code;
}

static void end(scene *s) {
    kli_runner_stop(s->runner);
    kli_memory_close(&s->memory);
}

static bool have_torch(void) {
    kl_arena *a = kl_arena_new();
    bool found = ask_python(a, "-c", "import torch", NULL) == 0;
    kl_arena_free(a);
    return found;
}

static void assert_output(scene *s, uint32_t set, uint32_t slot) {
    const float *y = kli_memory_output(&s->memory, &s->plan, 3, slot);
    for (size_t i = 0; i < N; i++) {
        double x = kl_dtype_load(KL_BF16, kli_memory_input(&s->memory, &s->plan, 0, set), i);
        if ((double)y[i] != x * 2.5 + 1)
            fail_msg("slot %u, element %zu is %g, not %g", slot, i, (double)y[i], x * 2.5 + 1);
    }
}

static void test_script_runner__says_that_torch_is_missing(void **unused) {
    scene s = {0};
    kl_error e = {0};
    kl_arena *a = kl_arena_new();
    (void)unused;
    if (have_torch() || ask_python(a, "-c", "pass", NULL) != 0) {
        kl_arena_free(a);
        skip();
    }
    assert_int_equal(begin(&s, "def run(x, s, t): return x\n", &e), KL_ENODEV);
    assert_contains(e.message, "torch is not installed");
    end(&s);
    kl_arena_free(a);
}

/* A Python that writes down how much it may take; what it does then is the same. */
static void test_script_runner__may_not_take_all_memory(void **unused) {
    scene s = {0};
    kl_error e = {0};
    kl_arena *a = kl_arena_new();
    kl_str said;
    (void)unused;
    assert_ok(kli_fs_write("limited",
                           KL_S("#!/bin/sh\nulimit -d >limit.txt\nexec python3 \"$@\"\n"), &e));
    assert_int_equal(chmod("limited", 0755), 0);
    setenv("KLINEAGE_PYTHON", "./limited", 1);
    (void)!begin(&s, "def run(x, s, t): return x\n", &e); /* without torch it goes no further */
    unsetenv("KLINEAGE_PYTHON");
    end(&s);
    assert_ok(kli_fs_read(&said, a, "limit.txt", 64, &e));
    const long long kib = strtoll(said.ptr, NULL, 10);
    if (kib <= 0 || kib * 1024 > kli_memory_room_now().total)
        fail_msg("it may take %s KiB", said.ptr);
    kl_arena_free(a);
}

static const char *const STYLES[] = {
    "def run(**inputs):\n    return {'y': inputs['x'].float() * inputs['s'] + inputs['t']}\n",
    "def run(x, s, t):\n    return x.float() * s + t\n",
    "def run(a, b, c):\n    return (a.float() * b + c,)\n",
    "import torch\n@torch.no_grad()\ndef run(x, s, t, y):\n    y.copy_(x.float() * s + t)\n",
};

static void test_script_runner__calls_every_style(void **unused) {
    (void)unused;
    if (!have_torch()) skip();
    for (size_t i = 0; i < KL_COUNT(STYLES); i++) {
        scene s = {0};
        kl_error e = {0};
        int64_t wall = 0;
        assert_ok(begin(&s, STYLES[i], &e));
        if (s.fault.kind) fail_msg("style %zu: %s", i, s.fault.text);
        assert_contains(kli_runner_describe(s.runner), "torch ");
        for (uint32_t k = 0; k < 4; k++) {
            kli_memory_poison(&s.memory, &s.plan, k, 0xA5);
            assert_ok(kli_runner_run(s.runner, &s.fault, k % 2, k, 0xA5, 20 * SECOND, &wall, &e));
            if (s.fault.kind) fail_msg("style %zu: %s", i, s.fault.text);
            assert_output(&s, k % 2, k);
            assert_int_equal(kli_memory_guard_damage(&s.memory, &s.plan, k, 0xA5), -1);
        }
        end(&s);
    }
}

/* Nobody compares a baseline's outputs: none is brought to the shared pages. */
static void test_script_runner__times_batches_and_brings_no_outputs(void **unused) {
    scene s = {0};
    kl_error e = {0};
    double ns = 0;
    (void)unused;
    if (!have_torch()) skip();
    assert_ok(begin(&s, STYLES[1], &e));
    const kl_time_request q = {
        .method = KL_TIME_BATCH, .first = 1, .calls = 4, .warm = 2, .poison = 0xFF};
    for (uint32_t k = 0; k < 4; k++) kli_memory_poison(&s.memory, &s.plan, k, 0xFF);
    assert_ok(kli_runner_time(s.runner, &s.fault, &ns, &q, 20 * SECOND, &e));
    if (s.fault.kind) fail_msg("%s", s.fault.text);
    assert_true(ns > 0);
    for (uint32_t k = 0; k < 4; k++) {
        const uint8_t *y = kli_memory_output(&s.memory, &s.plan, 3, k);
        for (size_t i = 0; i < N * sizeof(float); i++) assert_int_equal(y[i], 0xFF);
    }
    end(&s);
}

static void expect_fault(const char *source, kl_fault_kind kind, const char *text) {
    scene s = {0};
    kl_error e = {0};
    int64_t wall = 0;
    assert_ok(begin(&s, source, &e));
    if (!s.fault.kind)
        assert_ok(kli_runner_run(s.runner, &s.fault, 0, 0, 0xFF, 20 * SECOND, &wall, &e));
    if (s.fault.kind != kind || !strstr(s.fault.text, text))
        fail_msg("expected fault %d with '%s', got %d: %s", kind, text, s.fault.kind, s.fault.text);
    end(&s);
}

static void test_script_runner__turns_exceptions_into_faults(void **unused) {
    (void)unused;
    if (!have_torch()) skip();
    expect_fault("import no_such_library\ndef run(x, s, t): return x\n", KL_FAULT_REFUSED,
                 "not installed: No module named 'no_such_library'");
    expect_fault("def other(): pass\n", KL_FAULT_REFUSED, "no function `run`");
    expect_fault("def run(x, s, t): raise ValueError('no such shape')\n", KL_FAULT_DEVICE,
                 "ValueError: no such shape");
    expect_fault("def run(x, s, t): return x[:5]\n", KL_FAULT_DEVICE,
                 "`y` has shape (5,), not (1000,)");
    expect_fault("def run(**inputs): return {}\n", KL_FAULT_DEVICE, "did not return `y`");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script_runner__has_the_structs_of_wire_def),
        cmocka_unit_test(test_script_runner__says_that_torch_is_missing),
        cmocka_unit_test(test_script_runner__calls_every_style),
        cmocka_unit_test(test_script_runner__times_batches_and_brings_no_outputs),
        cmocka_unit_test(test_script_runner__turns_exceptions_into_faults),
        cmocka_unit_test(test_script_runner__may_not_take_all_memory), /* last: another Python */
    };
    return cmocka_run_group_tests_name("script_runner", tests, NULL, NULL);
}
