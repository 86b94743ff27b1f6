/* verdict_test.c - a verdict survives its JSON, and what is no verdict is said to be none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/json.h"
#include "base/test.h"
#include "gate_impl.h"

#include <math.h>
#include <stdlib.h>

static kl_check_result CHECKS[] = {
    {.workload = KL_S("tiny"),
     .output = KL_S("y"),
     .seed = UINT64_MAX,
     .scale = 64,
     .ok = true,
     .rms_error = 1.25e-7,
     .budget = 2.4e-7,
     .max_abs_error = 0.0625,
     .bad = 0,
     .first_bad = -1},
    {.workload = KL_S("cpu"),
     .output = KL_S("y"),
     .seed = 7,
     .scale = 1,
     .rms_error = INFINITY,
     .budget = 0.5,
     .max_abs_error = INFINITY,
     .bad = 3,
     .first_bad = 12,
     .got = NAN,
     .expected = -1.5},
};
static kl_feature FEATURES[] = {
    {KL_S("fma"), 12}, {KL_S("vector_bits"), 256}, {KL_S("share"), 0.1}};

/* Every field that JSON carries holds something of its own. */
static kl_verdict full(void) {
    kl_verdict v = {.outcome = KL_OUTCOME_WRONG,
                    .stage = KL_STAGE_REAL,
                    .why = KL_S("y[0,12] is nan"),
                    .detail = KL_S("line 1\nline 2"),
                    .assurance = 'B',
                    .task = KL_S("gemm"),
                    .task_hash = KL_S("aa"),
                    .kernel_path = KL_S("k.c"),
                    .kernel_hash = KL_S("bb"),
                    .workload = KL_S("M=64"),
                    .surface = KL_S("c"),
                    .platform = KL_S("x86-64-v4/gcc-12"),
                    .device = KL_S("cpu"),
                    .toolchain = KL_S("gcc 12.2.0"),
                    .driver = KL_S("none"),
                    .isolation = KL_S("seccomp"),
                    .seed = 0x8000000000000001u,
                    .checks = CHECKS,
                    .n_checks = 2,
                    .median_ns = 123456,
                    .roofline_ns = 99,
                    .method = KL_S("batches"),
                    .cache_cold = true,
                    .n_sets = 3,
                    .n_slots = 4,
                    .calls = 5,
                    .features = FEATURES,
                    .n_features = 3,
                    .artefact_hash = KL_S("cc"),
                    .overhead_ns = 11,
                    .total_ns = 22,
                    .created = KL_S("2026-01-31T12:00:00Z")};
    v.comparisons[v.n_comparisons++] = (kl_comparison){.baseline = KL_S("blas"),
                                                       .described = KL_S("a library 1.2"),
                                                       .baseline_ns = 10.5,
                                                       .candidate_ns = 10,
                                                       .ratio = 1.05,
                                                       .low = 1.04,
                                                       .high = 1.06,
                                                       .noise = 0.001,
                                                       .aa_low = 0.999,
                                                       .aa_high = 1.001,
                                                       .pairs = 30,
                                                       .controls = 15,
                                                       .left_out = 4,
                                                       .handshake = 0.0005,
                                                       .call = KL_DECISION_FASTER,
                                                       .stable = true,
                                                       .bimodal = true};
    v.resources[v.n_resources++] = (kl_resources){
        .registers = 255, .static_smem = 1, .local_bytes = 2, .max_threads = UINT32_MAX};
    v.degradations[v.n_degradations++] = KL_S("no landlock on this machine");
    v.stages[v.n_stages].name = KL_S("compile");
    v.stages[v.n_stages++].ns = 42;
    return v;
}

static kl_str dumped(kl_arena *a, const kl_verdict *v) {
    json_t *o = kl_verdict_json(v);
    const kl_str text = kli_json_dump(a, o, false);
    json_decref(o);
    return text;
}

static kl_str receipt(kl_arena *a, const kl_verdict *v) {
    json_t *o = kl_verdict_json(v);
    const kl_str text = kl_arena_copy(a, kli_json_text_or(o, "receipt", (kl_str){0}));
    json_decref(o);
    return text;
}

static void test_gate_verdict__survives_its_json(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    const kl_verdict v = full();
    kl_verdict back;
    const kl_str first = dumped(a, &v);
    assert_ok(kl_verdict_parse(&back, a, first, KL_S("v.json"), &e));
    assert_true(back.journaled);
    assert_int_equal(back.seed, v.seed);
    assert_int_equal(back.checks[0].seed, UINT64_MAX);
    assert_true(isnan(back.checks[1].got) && isinf(back.checks[1].rms_error));
    assert_int_equal(back.resources[0].max_threads, UINT32_MAX);
    assert_int_equal(back.comparisons[0].call, KL_DECISION_FASTER);
    back.journaled = false; /* the one thing that reading changes */
    assert_str(dumped(a, &back), first.ptr);
    kl_arena_free(a);
}

/* What no shipped verdict has: fields that are younger than it, and what `tools/evidence` took away
 * or wrote anew. */
static bool is_younger(const char *key) {
    return !strcmp(key, "left_out") || !strcmp(key, "handshake") || !strcmp(key, "path") ||
           !strcmp(key, "checks");
}

/* Every value of `was` is in `is`, written the same; `is` has nothing else. */
static void assert_written(kl_arena *a, const json_t *was, const json_t *is) {
    const char *key;
    json_t *value;
    size_t i;
    assert_int_equal(json_typeof(is), json_typeof(was));
    json_array_foreach((json_t *)was, i, value) assert_written(a, value, json_array_get(is, i));
    json_object_foreach((json_t *)was, key, value) {
        if (!is_younger(key) && strcmp(key, "checks_passed") != 0)
            assert_written(a, value, json_object_get(is, key));
    }
    json_object_foreach((json_t *)is, key, value)
        assert_true(is_younger(key) || json_object_get(was, key));
    if (!json_is_object(was) && !json_is_array(was))
        assert_str(kli_json_dump(a, is, false), kli_json_dump(a, was, false).ptr);
}

/* Verdicts that the library rests on, by several versions of the gate. */
static void test_gate_verdict__shipped_ones_are_written_as_they_lie_there(void **state) {
    static const char *const FILES[] = {"conv2d-c",  "fmha-c", "gdn-c",    "gemm-c",
                                        "gemm-cuda", "topk-c", "topk-cuda"};
    int verdicts = 0;
    (void)state;
    for (size_t i = 0; i < KL_COUNT(FILES); i++) {
        kl_arena *a = kl_arena_new();
        kl_error e = {0};
        kl_str text;
        const kl_str path =
            kl_arena_printf(a, KL_TEST_ROOT "/library/lineages/%s.evidence.jsonl", FILES[i]);
        assert_ok(kli_fs_read(&text, a, path.ptr, KL_MAX_JSON_BYTES, &e));
        for (char *line = strtok((char *)text.ptr, "\n"); line;
             line = strtok(NULL, "\n"), verdicts++) {
            kl_verdict v;
            json_t *row = json_loads(line, 0, NULL), *was = json_object_get(row, "verdict");
            assert_ok(kl_verdict_parse(&v, a, kli_json_dump(a, was, false), KL_S("evidence"), &e));
            json_t *is = kl_verdict_json(&v);
            assert_written(a, was, is);
            json_decref(is);
            json_decref(row);
        }
        kl_arena_free(a);
    }
    assert_true(verdicts > 200);
}

/* Verdicts are older than some of their fields. */
static void test_gate_verdict__one_without_younger_fields_is_read(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_verdict v = full(), back;
    json_t *o = kl_verdict_json(&v),
           *vs = json_array_get(json_object_get(json_object_get(o, "time"), "vs"), 0);
    assert_int_equal(json_object_del(vs, "left_out"), 0);
    assert_int_equal(json_object_del(vs, "handshake"), 0);
    assert_ok(kl_verdict_parse(&back, a, kli_json_dump(a, o, false), KL_S("old.json"), &e));
    assert_int_equal(back.comparisons[0].left_out, 0);
    assert_int_equal(back.comparisons[0].pairs, 30);
    json_decref(o);
    kl_arena_free(a);
}

static kl_str shown(kl_arena *a, const kl_verdict *v) {
    kl_buf b = {0};
    kl_verdict_render(v, &b, false);
    const kl_str text = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

static void test_gate_verdict__an_unstable_one_says_what_to_type(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_verdict v = full();
    v.outcome = KL_OUTCOME_UNSTABLE;
    v.comparisons[0].noise = 0.216;
    assert_contains(shown(a, &v).ptr,
                    "1.05x [1.04, 1.06] faster  (30 pairs, 4 left out, A/A noise 21.60 %)");
    assert_contains(shown(a, &v).ptr, "next: klineage gate gemm k.c --workload M=64 --wait-quiet");
    v.comparisons[0].noise = 0.004; /* the machine is quiet: waiting would change nothing */
    assert_contains(shown(a, &v).ptr, "next: klineage gate gemm k.c --workload M=64 --check-only");
    v.outcome = KL_OUTCOME_PASS;
    assert_null(strstr(shown(a, &v).ptr, "next:"));
    kl_arena_free(a);
}

static void test_gate_verdict__one_that_was_not_timed_has_no_time(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_verdict v = full(), back;
    v.median_ns = 0;
    assert_contains(dumped(a, &v).ptr, "\"time\":null");
    assert_ok(kl_verdict_parse(&back, a, dumped(a, &v), KL_S("v.json"), &e));
    assert_int_equal(back.n_comparisons, 0);
    kl_arena_free(a);
}

static void test_gate_verdict__receipt_covers_the_findings(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_verdict v = full();
    const kl_str before = receipt(a, &v);
    assert_int_equal(before.len, 64);
    assert_str(receipt(a, &v), before.ptr);
    v.comparisons[0].ratio = 1.0500001;
    assert_false(kl_str_eq(receipt(a, &v), before));
    v = full();
    v.outcome = KL_OUTCOME_PASS;
    assert_false(kl_str_eq(receipt(a, &v), before));
    v = full();
    v.seed++;
    assert_false(kl_str_eq(receipt(a, &v), before));
    v = full();
    v.degradations[0] = KL_S("");
    assert_false(kl_str_eq(receipt(a, &v), before));
    kl_arena_free(a);
}

static void test_gate_verdict__receipt_stays_with_a_journaled_one(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    const kl_verdict v = full();
    kl_verdict back;
    assert_ok(kl_verdict_parse(&back, a, dumped(a, &v), KL_S("v.json"), &e));
    assert_str(receipt(a, &back), receipt(a, &v).ptr);
    kl_arena_free(a);
}

static void test_gate_verdict__exit_codes_tell_outcomes_apart(void **state) {
    (void)state;
    const struct {
        kl_outcome outcome;
        int code;
    } rows[] = {{KL_OUTCOME_PASS, 0},      {KL_OUTCOME_NO_COMPILE, 3}, {KL_OUTCOME_WRONG, 4},
                {KL_OUTCOME_CHEAT, 6},     {KL_OUTCOME_HANG, 5},       {KL_OUTCOME_CRASH, 9},
                {KL_OUTCOME_UNSTABLE, 14}, {KL_OUTCOME_REFUSED, 10}};
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        assert_int_equal(kl_verdict_exit_code(&(kl_verdict){.outcome = rows[i].outcome}),
                         rows[i].code);
}

static void test_gate_verdict__refusal_shows_the_place(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_buf text = {0};
    kl_verdict v;
    kl_fail_at(&e, KL_EPARSE, KL_S("k.c"), KL_S("//! launch f gird(1)"), 13,
               "unknown clause 'gird'");
    kl_verdict_refused(&v, a, NULL, "k.c", &e);
    kl_verdict_render(&v, &text, false);
    assert_int_equal(v.outcome, KL_OUTCOME_REFUSED);
    assert_contains(text.ptr, "refused  k.c");
    assert_contains(text.ptr, "parse: unknown clause 'gird'");
    assert_contains(text.ptr, "^");
    assert_null(strchr(text.ptr, '\033'));
    kl_buf_fini(&text);
    kl_arena_free(a);
}

static void test_gate_verdict__no_control_character_reaches_a_terminal(void **state) {
    (void)state;
    kl_buf text = {0};
    kl_verdict v = full();
    v.kernel_path = KL_S("\033[2Jk.c");
    v.why = KL_S("error: \033]0;title\007");
    v.detail = KL_S("k.c:1: \r\033[1A hidden");
    kl_verdict_render(&v, &text, false);
    for (size_t i = 0; i < text.len; i++)
        assert_true(text.ptr[i] == '\n' || (unsigned char)text.ptr[i] >= 0x20);
    kl_buf_fini(&text);
    kl_verdict_render(&v, &text, true); /* our own colour stays */
    assert_contains(text.ptr, "\033[1;31mwrong\033[0m");
    kl_buf_fini(&text);
}

static void test_gate_verdict__an_exact_output_is_not_the_tightest(void **state) {
    (void)state;
    kl_buf text = {0};
    kl_verdict v = full();
    kl_check_result checks[] = {
        {.output = KL_S("index"), .ok = true},
        {.output = KL_S("value"), .ok = true, .rms_error = 1e-7, .budget = 1e-6}};
    v.checks = checks;
    kl_verdict_render(&v, &text, false);
    assert_contains(text.ptr, "value)");
    kl_buf_fini(&text);
}

static void test_gate_verdict__garbage_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "1",
        "null",
        "{}",
        "{\"outcome\":\"pass\"}",
        "{\"outcome\":1,\"stage\":\"done\",\"version\":1}",
        "{\"outcome\":\"pass\",\"stage\":\"done\",\"version\":2}",
        "{\"outcome\":\"great\",\"stage\":\"done\",\"version\":1}",
        "{\"outcome\":\"pass\",\"stage\":\"nowhere\",\"version\":1}",
        "{\"outcome\":\"pass\",\"outcome\":\"pass\",\"stage\":\"done\",\"version\":1}"};
    kl_arena *a = kl_arena_new();
    kl_verdict v;
    for (size_t i = 0; i < KL_COUNT(bad); i++) {
        kl_error e = {0};
        assert_err(KL_EPARSE, kl_verdict_parse(&v, a, kl_str_of(bad[i]), KL_S("v.json"), &e));
        assert_true(e.message[0] != '\0');
    }
    kl_arena_free(a);
}

static void test_gate_verdict__wrong_types_inside_are_harmless(void **state) {
    (void)state;
    static const char *const odd[] = {"1",           "\"x\"", "[]",
                                      "[1, [], {}]", "{}",    "{\"vs\": [0, {}], \"a\": \"NaN\"}",
                                      "null",        "true"};
    static const char *const keys[] = {
        "checks", "time",     "features", "resources", "degradations", "stages_ns", "task",
        "kernel", "platform", "seed",     "receipt",   "assurance",    "why",       "total_ns"};
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(odd); i++)
        for (size_t k = 0; k < KL_COUNT(keys); k++) {
            kl_error e = {0};
            kl_verdict v;
            kl_buf text = {0};
            const kl_str json = kl_arena_printf(
                a, "{\"outcome\":\"pass\",\"stage\":\"done\",\"version\":1,\"%s\":%s}", keys[k],
                odd[i]);
            assert_ok(kl_verdict_parse(&v, a, json, KL_S("v.json"), &e));
            kl_verdict_render(&v, &text, false);
            assert_int_equal(v.assurance, 'C');
            kl_buf_fini(&text);
        }
    kl_arena_free(a);
}

static void test_gate_verdict__every_cut_is_noticed(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_verdict v = full();
    const kl_str whole = dumped(a, &v);
    for (size_t n = 0; n < whole.len; n++) {
        kl_error e = {0};
        kl_verdict back;
        assert_err(KL_EPARSE,
                   kl_verdict_parse(&back, a, (kl_str){whole.ptr, n}, KL_S("v.json"), &e));
    }
    kl_arena_free(a);
}

static void test_gate_verdict__more_checks_than_a_gate_writes_are_refused(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_buf text = {0};
    kl_verdict v;
    kl_buf_printf(&text, "{\"outcome\":\"pass\",\"stage\":\"done\",\"version\":1,\"checks\":[0");
    for (int i = 0; i < 70000; i++) kl_buf_add(&text, KL_S(",0"));
    kl_buf_add(&text, KL_S("]}"));
    assert_err(KL_EPARSE, kl_verdict_parse(&v, a, kl_buf_str(&text), KL_S("v.json"), &e));
    kl_buf_fini(&text);
    kl_arena_free(a);
}

static void test_gate_verdict__a_device_that_reaches_its_host_promises_least(void **state) {
    (void)state;
    const kl_surface surface = {.assurance = 'A'};
    const kl_kernel k = {.surface = &surface};
    const kl_backend *cuda = kli_backend_get(KL_BACKEND_CUDA),
                     *opencl = kli_backend_get(KL_BACKEND_OPENCL);
    const kl_isolation whole = {.seccomp = true, .landlock = true, .rlimits = true}, none = {0};
    kl_device d = {0};
    assert_int_equal(kli_assurance_of(&k, cuda, &d, &none), 'A');
    assert_int_equal(kli_assurance_of(&k, opencl, &d, &whole), 'B');
    assert_int_equal(kli_assurance_of(&k, opencl, &d, &none), 'C');
    d.pageable_access = true;
    assert_int_equal(kli_assurance_of(&k, cuda, &d, &whole), 'C');
    assert_int_equal(kli_assurance_of(&k, opencl, &d, &whole), 'B');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_verdict__survives_its_json),
        cmocka_unit_test(test_gate_verdict__shipped_ones_are_written_as_they_lie_there),
        cmocka_unit_test(test_gate_verdict__one_without_younger_fields_is_read),
        cmocka_unit_test(test_gate_verdict__an_unstable_one_says_what_to_type),
        cmocka_unit_test(test_gate_verdict__one_that_was_not_timed_has_no_time),
        cmocka_unit_test(test_gate_verdict__receipt_covers_the_findings),
        cmocka_unit_test(test_gate_verdict__receipt_stays_with_a_journaled_one),
        cmocka_unit_test(test_gate_verdict__exit_codes_tell_outcomes_apart),
        cmocka_unit_test(test_gate_verdict__refusal_shows_the_place),
        cmocka_unit_test(test_gate_verdict__no_control_character_reaches_a_terminal),
        cmocka_unit_test(test_gate_verdict__an_exact_output_is_not_the_tightest),
        cmocka_unit_test(test_gate_verdict__a_device_that_reaches_its_host_promises_least),
        cmocka_unit_test(test_gate_verdict__garbage_is_refused),
        cmocka_unit_test(test_gate_verdict__wrong_types_inside_are_harmless),
        cmocka_unit_test(test_gate_verdict__every_cut_is_noticed),
        cmocka_unit_test(test_gate_verdict__more_checks_than_a_gate_writes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
