/* compare_test.c - what the device is sure of is what gate/compare.c finds right: the kernel's own
 * text, compiled as C, beside kli_gate_compare; and through the CUDA runner on the fake of
 * fake_cuda.c: answers that stay, outputs of another process's pages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/compare.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/test.h"
#include "compare_text.h"
#include "fake_cubin.h"
#include "gate/gate_impl.h"
#include "backend/backend.h"
#include <math.h>
#include <unistd.h>

#define N 1001
#define SECOND 1000000000ll
enum { X, S, Y, TENSORS };

/* ---- the kernel's text ------------------------------------------------------------------- */

typedef struct {
    double want[N];
    _Alignas(16) char got[N * sizeof(double)];
    kl_dtype type;
    double atol, rtol;
} pairs;

static const kl_dtype TYPES[] = {KL_F32, KL_F16, KL_BF16, KL_F64};

/* Answers of all sizes that the type has, outputs `error` of its roundings away. */
static void make_pairs(pairs *p, kl_dtype type, double size, double error) {
    const kl_stream draws = {0x5eed0000u + (uint64_t)type};
    p->type = type, p->atol = 1e-3, p->rtol = 4 * kl_dtype_epsilon(type);
    for (int i = 0; i < N; i++) {
        p->want[i] = size * kli_stream_normal(draws, (uint64_t)i);
        const double off = kli_stream_normal(draws, (uint64_t)(N + i)) * error;
        kl_dtype_store(type, p->got, (size_t)i, p->want[i] * (1 + off * kl_dtype_epsilon(type)));
    }
}

/* As runner_cuda_compare.c launches it. */
static kli_compare_found found_by_text(const pairs *p, double atol) {
    static kli_compare_found of_threads[3 * 32];
    kli_compare_found all = {0};
    const kli_compare_job job = {.got = (uint64_t)(uintptr_t)p->got,
                                 .want = (uint64_t)(uintptr_t)p->want,
                                 .found = (uint64_t)(uintptr_t)of_threads,
                                 .n = N,
                                 .got_type = (int32_t)p->type,
                                 .want_type = KL_F64,
                                 .atol = atol,
                                 .rtol = p->rtol};
    compare_text_run(job, (const unsigned[]){3, 1, 1}, (const unsigned[]){32, 1, 1});
    for (size_t i = 0; i < KL_COUNT(of_threads); i++) {
        all.square += of_threads[i].square, all.sum += of_threads[i].sum;
        all.unsure += of_threads[i].unsure;
        all.max_abs = fmax(all.max_abs, of_threads[i].max_abs);
    }
    return all;
}

static kl_check_result by_host(const pairs *p) {
    const kl_check how = {.kind = KL_CHECK_BUDGET, .atol = p->atol, .rtol = p->rtol, .matched = 1};
    kl_check_result r = {.budget = 1, .scale = 1};
    kli_gate_compare(&r, p->type, p->got, KL_F64, p->want, N, &how);
    return r;
}

static void expect_agreement(const pairs *p) {
    const double rms = sqrt(found_by_text(p, 0).square / N);
    const kli_compare_found found = found_by_text(p, p->atol * fmin(rms, 1));
    const kl_check_result host = by_host(p);
    assert_int_equal((int64_t)found.unsure, host.bad);
    assert_true(fabs(sqrt(found.sum / N) / rms - host.rms_error) <= 1e-12 * host.rms_error);
    assert_true(found.max_abs == host.max_abs_error);
}

static void test_compare__the_kernels_text_finds_what_the_host_finds(void **state) {
    static pairs p;
    (void)state;
    for (size_t i = 0; i < KL_COUNT(TYPES); i++)
        for (double size = 1e-6; size < 1e5; size *= 1000)
            for (double error = 0.25; error < 100; error *= 8) {
                make_pairs(&p, TYPES[i], size, error);
                expect_agreement(&p);
            }
}

static void test_compare__every_narrow_float_is_read_as_the_host_reads_it(void **state) {
    (void)state;
    for (size_t t = 1; t <= 2; t++)
        for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
            const uint16_t words[4] = {(uint16_t)bits}; /* as many bytes as any type has */
            const double host = kl_dtype_load(TYPES[t], words, 0),
                         text = compare_load((int32_t)TYPES[t], (uint64_t)(uintptr_t)words, 0);
            if (isfinite(host) ? host != text : isfinite(text))
                fail_msg("%s 0x%04x: %g, and %g", kl_dtype_name(TYPES[t]), bits, host, text);
        }
}

static void test_compare__what_is_not_finite_is_never_sure(void **state) {
    static pairs p;
    (void)state;
    for (size_t t = 0; t < KL_COUNT(TYPES); t++) {
        make_pairs(&p, TYPES[t], 1, 0.25);
        kl_dtype_store(TYPES[t], p.got, 17, (double)NAN);
        p.want[17] = (double)NAN; /* right on the host */
        kl_dtype_store(TYPES[t], p.got, 500, (double)INFINITY);
        p.want[900] = -(double)INFINITY;
        assert_int_equal((int)found_by_text(&p, 1).unsure, 3);
    }
}

/* ---- through a runner -------------------------------------------------------------------- */

/* The oracle: y = 2.5 x on two slots; its answers are of type float here. */
typedef struct {
    kl_plan plan;
    kl_memory memory, other; /* the oracle's pages, and those of the candidate */
    kl_runner *runner;
    kl_fault fault;
} scene;

static void add_tensor(scene *s, int i, const char *name, uint32_t role) {
    kl_plan_tensor *t = &s->plan.tensors[i];
    *t = (kl_plan_tensor){.dtype = KL_F32, .role = role, .ndim = role == 3 ? 0 : 1, .bytes = 4};
    if (role != 3) t->bytes = N * 4, t->dims[0] = N;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
}

static void describe(scene *s) {
    s->plan = (kl_plan){.magic = KL_PLAN_MAGIC, .version = KL_PLAN_VERSION, .threads = 1};
    s->plan.n_tensors = TENSORS, s->plan.n_launches = 1;
    add_tensor(s, X, "x", KL_ROLE_INPUT);
    add_tensor(s, S, "s", KL_ROLE_SCALAR);
    add_tensor(s, Y, "y", KL_ROLE_OUTPUT);
    kl_plan_launch *l = &s->plan.launches[0];
    *l = (kl_plan_launch){
        .entry = "scale", .grid = {1, 1, 1}, .block = {256, 1, 1}, .cluster = {1, 1, 1}};
    kl_value *args = kli_take_args(&s->plan, l, 4);
    args[0] = (kl_value){.kind = KL_VALUE_TENSOR, .index = X};
    args[1] = (kl_value){.kind = KL_VALUE_SCALAR, .index = S, .f = 2.5};
    args[2] = (kl_value){.kind = KL_VALUE_TENSOR, .index = Y};
    args[3] = (kl_value){.kind = KL_VALUE_I32, .i = N};
}

static void start(scene *s, const char *faults, bool trusted) {
    kl_error e = {0};
    fake_cubin image;
    const kl_runner_opts how = {
        .backend = KL_BACKEND_CUDA, .trusted = trusted, .cpu = -1, .threads = 1};
    const char *kernels[] = {"scale", NULL};
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", faults, 1), 0);
    fake_cubin_make(&image, kernels, NULL);
    fake_cubin_write(&image, "fake.cubin");
    kl_artefact made = {.ok = true, .kind = KL_ARTEFACT_CUBIN, .path = KL_S("fake.cubin")};
    (void)snprintf(made.hash, sizeof made.hash, "%s",
                   kli_hash_of((kl_str){(const char *)&image, sizeof image}).hex);
    assert_ok(kli_runner_start(&s->runner, &how, &e));
    assert_ok(kli_runner_load(s->runner, &s->fault, NULL, &made, &s->plan, &e));
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
}

static void open_scene(scene *s, const char *faults) {
    kl_error e = {0};
    kl_layout layout;
    describe(s);
    start(s, faults, true);
    assert_ok(kli_layout_make(&layout, &s->plan, 2, 2, &e));
    assert_ok(kli_memory_open(&s->memory, &layout, &e));
    assert_ok(kli_memory_open(&s->other, &layout, &e));
    for (uint32_t set = 0; set < 2; set++) {
        float *x = kli_memory_input(&s->memory, &s->plan, X, set),
              *y = kli_memory_output(&s->other, &s->plan, Y, set);
        for (int i = 0; i < N; i++) x[i] = (float)(i + 1) * (float)(set + 1), y[i] = 2.5f * x[i];
    }
    assert_ok(kli_runner_bind(s->runner, &s->fault, &s->memory, &e));
    assert_ok(kli_runner_upload(s->runner, &s->fault, 0, 2, &e));
    kli_runner_keep(s->runner, true);
    for (uint32_t set = 0; set < 2; set++) {
        int64_t wall = 0;
        assert_ok(kli_runner_run(s->runner, &s->fault, set, set, 0xFF, 20 * SECOND, &wall, &e));
        assert_int_equal(s->fault.kind, KL_FAULT_NONE);
    }
}

static void close_scene(scene *s) {
    kli_runner_stop(s->runner);
    kli_memory_close(&s->memory);
    kli_memory_close(&s->other);
}

/* Output y of slot `got` with the answer in slot `want`. */
static bool compare(scene *s, uint32_t got, uint32_t want, kli_compare_found *out) {
    kl_error e = {0};
    bool compared = false;
    const char *at = kli_memory_output(&s->other, &s->plan, Y, got);
    int64_t runs_ns = 0;
    const kli_compare_request q = {.tensor = Y,
                                   .sets = {KLI_NO_SET},
                                   .slots = {want},
                                   .n = 1,
                                   .got_type = KL_F32,
                                   .pages_fd = s->other.outputs_fd,
                                   .offsets = {(uint64_t)(at - s->other.outputs)},
                                   .rtol = 1e-6};
    assert_ok(kli_runner_compare(s->runner, &s->fault, &q, out, &runs_ns, &compared, &e));
    return compared;
}

static void test_compare__answers_stay_and_outputs_come_to_them(void **state) {
    static scene s;
    kli_compare_found found;
    (void)state;
    open_scene(&s, "");
    const float *here = kli_memory_output(&s.memory, &s.plan, Y, 1);
    assert_true(here[0] == 0 && here[N - 1] == 0); /* nothing was brought */
    for (uint32_t slot = 0; slot < 2; slot++) {
        assert_true(compare(&s, slot, slot, &found));
        assert_true(found.unsure == 0 && found.sum == 0 && found.square > 0);
    }
    assert_true(compare(&s, 0, 1, &found)); /* the answer for the other set */
    assert_int_equal((int)found.unsure, N);
    ((float *)kli_memory_output(&s.other, &s.plan, Y, 1))[N - 1] += 1;
    assert_true(compare(&s, 1, 1, &found));
    assert_true(found.unsure == 1 && found.max_abs == 1);
    close_scene(&s);
}

/* In one request, of which each output has sums of its own; whoever asks gets no older answer. */
static void test_compare__many_answers_are_given_and_compared_at_once(void **state) {
    static scene s;
    kli_compare_found found[2];
    kl_error e = {0};
    bool compared = false;
    int64_t runs_ns = 0;
    (void)state;
    open_scene(&s, "");
    const char *first = kli_memory_output(&s.other, &s.plan, Y, 0),
               *second = kli_memory_output(&s.other, &s.plan, Y, 1);
    ((float *)kli_memory_output(&s.other, &s.plan, Y, 0))[7] += 3;
    kli_compare_request q = {
        .tensor = Y,
        .got_type = KL_F32,
        .pages_fd = s.other.outputs_fd,
        .rtol = 1e-6,
        .atol = 1e-3,
        .n = 2,
        .sets = {1, 0},
        .slots = {0, 1},
        .offsets = {(uint64_t)(second - s.other.outputs), (uint64_t)(first - s.other.outputs)}};
    assert_ok(kli_runner_compare(s.runner, &s.fault, &q, found, &runs_ns, &compared, &e));
    assert_true(compared && runs_ns > 0 && s.fault.kind == KL_FAULT_NONE);
    assert_true(found[0].unsure == 0 && found[0].sum == 0 && found[0].square > 0);
    assert_true(found[1].unsure == 1 && found[1].max_abs == 3);
    close_scene(&s);
}

static void test_compare__a_set_that_was_never_sent_has_no_answer(void **state) {
    static scene s;
    kli_compare_found found[2];
    kl_error e = {0};
    bool compared = false;
    int64_t runs_ns = 0;
    (void)state;
    open_scene(&s, "");
    assert_ok(kli_runner_bind(s.runner, &s.fault, &s.memory, &e)); /* new memory on the device */
    assert_ok(kli_runner_upload(s.runner, &s.fault, 0, 1, &e));
    const kli_compare_request q = {.tensor = Y,
                                   .got_type = KL_F32,
                                   .pages_fd = s.other.outputs_fd,
                                   .n = 2,
                                   .sets = {0, 1},
                                   .slots = {0, 1}};
    assert_ok(kli_runner_compare(s.runner, &s.fault, &q, found, &runs_ns, &compared, &e));
    assert_int_equal(s.fault.kind, KL_FAULT_PROTOCOL);
    assert_non_null(strstr(s.fault.text, "never uploaded"));
    close_scene(&s);
}

static void test_compare__an_answer_that_stayed_can_be_fetched(void **state) {
    static scene s;
    kl_error e = {0};
    const uint32_t slot = 1;
    (void)state;
    open_scene(&s, "");
    assert_ok(kli_runner_fetch(s.runner, &s.fault, &slot, 1, 0xFF, &e));
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    const float *here = kli_memory_output(&s.memory, &s.plan, Y, 1);
    for (int i = 0; i < N; i++) assert_true(here[i] == 5.0f * (float)(i + 1));
    close_scene(&s);
}

static void test_compare__without_ptx_the_runner_says_no(void **state) {
    static scene s;
    kli_compare_found found;
    (void)state;
    open_scene(&s, "no_ptx");
    assert_false(compare(&s, 0, 0, &found));
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    close_scene(&s);
}

/* ---- outputs that stay ------------------------------------------------------------------- */

/* A candidate beside the oracle, on the same device and with the same sets. */
static void open_candidate(scene *s, const scene *oracle, const char *faults) {
    kl_error e = {0};
    describe(s);
    start(s, faults, false);
    s->memory = oracle->memory;
    s->other = oracle->other;
    assert_ok(kli_runner_bind(s->runner, &s->fault, &s->other, &e));
    memcpy(s->other.inputs, s->memory.inputs, s->memory.inputs_bytes);
    assert_ok(kli_runner_upload(s->runner, &s->fault, 0, 2, &e));
    memset(s->other.outputs, 0, s->other.outputs_bytes);
}

static uint64_t run_and_stay(scene *s, uint32_t set, uint32_t slot, uint8_t poison) {
    kl_error e = {0};
    int64_t wall = 0;
    kli_runner_keep(s->runner, true);
    assert_ok(kli_runner_run(s->runner, &s->fault, set, slot, poison, 20 * SECOND, &wall, &e));
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
    return kli_runner_print(s->runner, 0);
}

static bool compare_there(scene *oracle, const scene *candidate, uint32_t got, uint32_t want,
                          kli_compare_found *out) {
    kl_error e = {0};
    bool compared = false;
    const char *at = kli_memory_output(&candidate->other, &candidate->plan, Y, got);
    int64_t runs_ns = 0;
    const kli_compare_request q = {.tensor = Y,
                                   .sets = {KLI_NO_SET},
                                   .slots = {want},
                                   .n = 1,
                                   .got_type = KL_F32,
                                   .made_by = candidate->runner,
                                   .pages_fd = -1,
                                   .offsets = {(uint64_t)(at - candidate->other.outputs)},
                                   .rtol = 1e-6};
    assert_ok(kli_runner_compare(oracle->runner, &oracle->fault, &q, out, &runs_ns, &compared, &e));
    return compared;
}

static void test_compare__outputs_that_stay_are_compared_where_they_lie(void **state) {
    static scene oracle, candidate;
    kli_compare_found found;
    kl_error e = {0};
    const uint32_t slot = 1;
    (void)state;
    open_scene(&oracle, "");
    open_candidate(&candidate, &oracle, "");
    assert_true(kli_runner_shares(candidate.runner));
    (void)run_and_stay(&candidate, 0, 0, 0xFF);
    (void)run_and_stay(&candidate, 1, 1, 0xA5);
    const float *here = kli_memory_output(&candidate.other, &candidate.plan, Y, 1);
    assert_true(here[0] == 0 && here[N - 1] == 0); /* nothing was brought */
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(compare_there(&oracle, &candidate, i, i, &found));
        assert_true(found.unsure == 0 && found.sum == 0 && found.square > 0);
    }
    assert_true(compare_there(&oracle, &candidate, 0, 1, &found));
    assert_int_equal((int)found.unsure, N);
    assert_ok(kli_runner_fetch(candidate.runner, &candidate.fault, &slot, 1, 0xA5, &e));
    for (int i = 0; i < N; i++) assert_true(here[i] == 5.0f * (float)(i + 1));
    kli_runner_stop(candidate.runner);
    close_scene(&oracle);
}

/* N floats are not a whole number of the words that a digest loads. */
static void test_compare__prints_tell_bits_and_not_guards(void **state) {
    static scene oracle, candidate;
    kl_error e = {0};
    const uint32_t slots[] = {1, 0};
    (void)state;
    open_scene(&oracle, "");
    open_candidate(&candidate, &oracle, "");
    const uint64_t first = run_and_stay(&candidate, 0, 0, 0xFF),
                   other = run_and_stay(&candidate, 1, 1, 0xFF);
    assert_true(first != other);
    assert_true(run_and_stay(&candidate, 0, 1, 0xA5) == first);
    assert_ok(kli_runner_look(candidate.runner, &candidate.fault, slots, 1, 0xA5, &e));
    assert_true(candidate.fault.kind == KL_FAULT_NONE);
    assert_true(kli_runner_print(candidate.runner, 0) == first);
    ((float *)kli_memory_input(&candidate.other, &candidate.plan, X, 0))[N - 1] += 1;
    assert_ok(kli_runner_upload(candidate.runner, &candidate.fault, 0, 2, &e));
    assert_true(run_and_stay(&candidate, 0, 0, 0xFF) != first); /* the last element */
    assert_ok(kli_runner_look(candidate.runner, &candidate.fault, slots, 2, 0xFF, &e));
    assert_int_equal(candidate.fault.kind, KL_FAULT_GUARD); /* slot 1's are of the other poison */
    kli_runner_stop(candidate.runner);
    close_scene(&oracle);
}

static void test_compare__nothing_stays_where_no_other_process_could_reach_it(void **state) {
    static scene oracle, candidate;
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_scene(&oracle, "");
        open_candidate(&candidate, &oracle, i ? "no_ptx" : "no_handles");
        assert_false(kli_runner_shares(candidate.runner));
        kli_runner_stop(candidate.runner);
        close_scene(&oracle);
    }
}

/* ---- the text that travels --------------------------------------------------------------- */

static kl_str source(kl_arena *a, const char *name) {
    kl_str text;
    kl_error e = {0};
    const char *path = kl_arena_printf(a, "%s/src/%s", KL_TEST_ROOT, name).ptr;
    assert_ok(kli_fs_read(&text, a, path, 1 << 20, &e));
    return text;
}

static void test_compare__the_ptx_is_of_these_sources(void **state) {
    static const char *const NAMES[] = {"base/draw.h", "backend/compare_job.h",
                                        "backend/compare.cu"};
    kl_arena *a = kl_arena_new();
    kl_buf all = {0};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(NAMES); i++) {
        const kl_str text = source(a, NAMES[i]);
        kl_buf_printf(&all, "%.*s", KL_STR_ARG(text));
    }
    const kl_str ptx = source(a, "backend/compare.ptx");
    if (!strstr(ptx.ptr, kli_hash_of(kl_buf_str(&all)).hex))
        fail_msg("src/backend/compare.ptx is of other sources: run tools/device-ptx");
    assert_null(strstr(ptx.ptr, "fma"));
    kl_buf_fini(&all);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare__the_kernels_text_finds_what_the_host_finds),
        cmocka_unit_test(test_compare__every_narrow_float_is_read_as_the_host_reads_it),
        cmocka_unit_test(test_compare__what_is_not_finite_is_never_sure),
        cmocka_unit_test(test_compare__answers_stay_and_outputs_come_to_them),
        cmocka_unit_test(test_compare__many_answers_are_given_and_compared_at_once),
        cmocka_unit_test(test_compare__a_set_that_was_never_sent_has_no_answer),
        cmocka_unit_test(test_compare__an_answer_that_stayed_can_be_fetched),
        cmocka_unit_test(test_compare__without_ptx_the_runner_says_no),
        cmocka_unit_test(test_compare__outputs_that_stay_are_compared_where_they_lie),
        cmocka_unit_test(test_compare__prints_tell_bits_and_not_guards),
        cmocka_unit_test(test_compare__nothing_stays_where_no_other_process_could_reach_it),
        cmocka_unit_test(test_compare__the_ptx_is_of_these_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
