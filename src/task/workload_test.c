/* Tests of workload.c and shape.c.  SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "fixtures.h"

static void use_plain(fixture *f) {
    assert_ok(parse_definition(f, definition_with(f, AXES, INPUTS, OUTPUTS, "")));
}

static void expect_refused(fixture *f, const char *text, kl_err code, const char *where) {
    assert_err(code, parse_workloads(f, text));
    if (strncmp(f->error.where, where, strlen(where)) != 0)
        fail_msg("%s (%s), not %s", f->error.where, f->error.message, where);
}

/* A definition whose x has the given shape text, and one workload with M = `m`. */
static kl_err size_of(fixture *f, const char *shape, const char *dtype, const char *m) {
    const char *x =
        kl_arena_printf(f->arena, "\"x\": {\"shape\": %s, \"dtype\": \"%s\"}", shape, dtype).ptr;
    assert_ok(parse_definition(
        f, definition_with(f, AXES, x, "\"y\": {\"shape\": [], \"dtype\": \"bool\"}", "")));
    return parse_workloads(
        f, kl_arena_printf(f->arena, "{\"uuid\": \"u\", \"axes\": {\"M\": %s, \"N\": 1}}", m).ptr);
}

static void test_task_workload__reads_lines_and_skips_blank_ones(void **state) {
    fixture *f = *state;
    use_plain(f);
    assert_ok(parse_workloads(
        f, "\n  \r\n" WORKLOAD "\r\n\n{\"uuid\": \"u2\", \"axes\": {\"M\": 1, \"N\": 1, \"K\": 64},"
           "\"inputs\": {\"x\": {\"type\": \"random\"}, \"s\": {\"type\": \"scalar\", \"value\": "
           "0.5}},"
           "\"klineage\": {\"label\": \"tiny\", \"on\": \"cpu\", \"hidden\": true}}"));
    assert_int_equal(f->task->n_workloads, 2);
    const kl_workload *w = f->task->workloads;
    assert_str(w[0].label, "u1");
    assert_int_equal(w[0].axes[0], 3);
    assert_int_equal(w[0].axes[2], 64);
    assert_str(w[1].label, "tiny");
    assert_int_equal(w[1].on, KL_ON_CPU);
    assert_true(w[1].hidden);
    assert_true(w[1].scalars[1] == 0.5);
    assert_true(isfinite(w[0].scalars[1])); /* random, and the same every time */
    assert_ok(parse_workloads(f, ""));
    assert_int_equal(f->task->n_workloads, 0);
}

static void test_task_workload__reads_a_line_of_a_data_set(void **state) {
    fixture *f = *state;
    use_plain(f);
    assert_ok(parse_workloads(
        f,
        "{\"definition\": \"t\", \"solution\": null, \"evaluation\": null, \"workload\": " WORKLOAD
        "}"));
    assert_str(f->task->workloads[0].uuid, "u1");
    expect_refused(f, "{\"definition\": \"other\", \"workload\": " WORKLOAD "}", KL_EINVAL,
                   "workloads.jsonl:1:16");
}

static void test_task_workload__derives_axes_from_expressions(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(
        f, definition_with(f,
                           "\"E\": {\"type\": \"expr\", \"expression\": \"cdiv(M, 2) + N\"}, " AXES
                           ", \"F\": {\"type\": \"expr\", \"expression\": \"E * K\"}",
                           INPUTS, OUTPUTS, "")));
    assert_ok(parse_workloads(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5, \"E\": 7}}"));
    assert_int_equal(f->task->workloads[0].axes[0], 7);
    assert_int_equal(f->task->workloads[0].axes[4], 7 * 64);
    expect_refused(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5, \"E\": 8}}", KL_EINVAL,
                   "workloads.jsonl:1:45");
    assert_ok(parse_definition(
        f, definition_with(f, AXES ", \"E\": {\"type\": \"expr\", \"expression\": \"M - 3\"}",
                           INPUTS, OUTPUTS, "")));
    expect_refused(f, WORKLOAD, KL_EINVAL, "workloads.jsonl:1:24"); /* 0 */
    assert_ok(parse_definition(
        f, definition_with(f, AXES ", \"E\": {\"type\": \"expr\", \"expression\": \"M * M * M\"}",
                           INPUTS, OUTPUTS, "")));
    expect_refused(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 4611686018427387904, \"N\": 1}}",
                   KL_EINVAL, "workloads.jsonl:1:");
    assert_contains(f->error.message, "overflows 64 bits");
}

static void test_task_workload__applies_dtypes_and_distributions(void **state) {
    fixture *f = *state;
    use_plain(f);
    assert_ok(parse_workloads(
        f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"klineage\": {"
           "\"dtypes\": {\"x\": \"int8\", \"y\": \"float32\"}, \"inputs\": {\"s\": {\"dist\": "
           "\"constant\", \"value\": 2}}}}"));
    const kl_workload *w = f->task->workloads;
    assert_int_equal(w->dtypes[0], KL_I8);
    assert_int_equal(w->dists[0].kind, KL_DIST_UNIFORM_INT);
    assert_true(w->dists[0].low == -128);
    assert_true(w->scalars[1] == 2);
    assert_true(w->checks[2].rtol == 1e-4 && w->checks[2].atol == 1e-4);
    assert_ok(parse_workloads(f, WORKLOAD));
    assert_true(f->task->workloads[0].checks[2].rtol == 2e-2);
    assert_ok(parse_workloads(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"klineage\": "
                                 "{\"dtypes\": {\"y\": \"int32\"}}}"));
    assert_int_equal(f->task->workloads[0].checks[2].kind, KL_CHECK_EXACT);
}

static void test_task_workload__applies_the_sol_tolerance(void **state) {
    fixture *f = *state;
    use_plain(f);
    assert_ok(parse_workloads(
        f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"tolerance\": {\"max_atol\": 0.03, "
           "\"max_rtol\": 0.04, \"required_matched_ratio\": 0.9, \"max_error_cap\": null, "
           "\"allow_negative_inf\": false}}"));
    const kl_check *check = &f->task->workloads[0].checks[2];
    assert_true(check->atol == 0.03 && check->rtol == 0.04 && check->matched == 0.9 &&
                check->max_error == 0);
    expect_refused(f,
                   "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"tolerance\": "
                   "{\"required_matched_ratio\": 2}}",
                   KL_EINVAL, "workloads.jsonl:1:");
}

static void test_task_workload__accepts_custom_inputs_only_all_together(void **state) {
    fixture *f = *state;
    const char *both = "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"inputs\": {\"x\": "
                       "{\"type\": \"custom\"}, "
                       "\"s\": {\"type\": \"custom\"}}}";
    float data[3 * 64];
    assert_ok(parse_definition(
        f, definition_with(f, AXES, INPUTS, OUTPUTS, ", \"custom_inputs_entrypoint\": \"make\"")));
    assert_ok(parse_workloads(f, both));
    assert_int_equal(f->task->workloads[0].dists[0].kind, KL_DIST_CUSTOM);
    assert_err(KL_EINVAL, kl_task_fill(data, f->task, f->task->workloads, 0, 1, 1, 1, &f->error));
    expect_refused(f,
                   "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"inputs\": {\"x\": "
                   "{\"type\": \"custom\"}, "
                   "\"s\": {\"type\": \"random\"}}}",
                   KL_EINVAL, "workloads.jsonl:1:");
    use_plain(f);
    expect_refused(f, both, KL_EINVAL, "workloads.jsonl:1:");
}

static const struct {
    const char *line;
    kl_err code;
    const char *at; /* where the caret stands; NULL: in this line */
} refused_rows[] = {
    {"{", KL_EPARSE, NULL},
    {"[1]", KL_EPARSE, "[1]"},
    {"{\"uuid\": \"u\", \"uuid\": \"v\"}", KL_EPARSE, NULL},
    {"{\"uuid\": \"\xff\"}", KL_EPARSE, NULL},
    {"{\"axes\": {\"M\": NaN}}", KL_EPARSE, NULL},
    {"{\"axes\": {\"M\": 1, \"N\": 1}}", KL_EPARSE, "{\"axes\""},
    {"{\"uuid\": \"u1\", \"axes\": {\"M\": 1, \"N\": 1}}", KL_EINVAL, "{\"uuid\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 0, \"N\": 1}}", KL_EINVAL, "0, "},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": -1, \"N\": 1}}", KL_EINVAL, "-1"},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1.0, \"N\": 1}}", KL_EPARSE, "1.0"},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": \"1\", \"N\": 1}}", KL_EPARSE, "\"1\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 9223372036854775808, \"N\": 1}}", KL_EPARSE, NULL},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1}}", KL_EINVAL, "{\"M\""},
    {"{\"uuid\": \"u\"}", KL_EINVAL, "{\"uuid\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1, \"Q\": 1}}", KL_EINVAL, "\"Q\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1, \"K\": 65}}", KL_EINVAL, "65"},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"z\": {}}}", KL_EINVAL,
     "\"z\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"x\": {\"type\": \"ones\"}}}",
     KL_EPARSE, "\"ones\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"x\": {\"type\": \"scalar\", "
     "\"value\": 1}}}",
     KL_EINVAL, "{\"type\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"s\": {\"type\": "
     "\"scalar\"}}}",
     KL_EPARSE, "{\"type\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"s\": {\"type\": "
     "\"safetensors\", \"path\": "
     "\"a\", \"tensor_key\": \"k\"}}}",
     KL_EPARSE, "\"safet"},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"x\": {\"type\": "
     "\"safetensors\", \"path\": "
     "\"a\"}}}",
     KL_EPARSE, "{\"type\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"x\": {\"type\": "
     "\"safetensors\", \"path\": "
     "\"../a\", \"tensor_key\": \"k\"}}}",
     KL_EINVAL, "\"../a"},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"inputs\": {\"x\": {\"type\": "
     "\"safetensors\", \"path\": "
     "\"/a\", \"tensor_key\": \"k\"}}}",
     KL_EINVAL, "\"/a"},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"klineage\": {\"lable\": \"a\"}}",
     KL_EPARSE, "\"lable\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"klineage\": {\"on\": \"tpu\"}}",
     KL_EPARSE, "\"tpu\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"klineage\": {\"dtypes\": {\"x\": "
     "\"float7\"}}}",
     KL_EINVAL, "\"float7\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"klineage\": {\"dtypes\": {\"q\": "
     "\"float32\"}}}",
     KL_EINVAL, "\"q\""},
    {"{\"uuid\": \"u\", \"axes\": {\"M\": 1, \"N\": 1}, \"klineage\": {\"label\": \"a\\u0007\"}}",
     KL_EINVAL, "\"a\\u"},
};

static void test_task_workload__refuses_bad_lines_where_they_are(void **state) {
    fixture *f = *state;
    use_plain(f);
    for (size_t i = 0; i < KL_COUNT(refused_rows); i++) {
        const char *found =
            refused_rows[i].at == NULL ? NULL : strstr(refused_rows[i].line, refused_rows[i].at);
        const int column = found == NULL ? 0 : (int)(found - refused_rows[i].line) + 1;
        const char *where = found == NULL
                                ? "workloads.jsonl:2:"
                                : kl_arena_printf(f->arena, "workloads.jsonl:2:%d", column).ptr;
        assert_int_equal(found == NULL, refused_rows[i].at == NULL);
        expect_refused(f, kl_arena_printf(f->arena, "%s\n%s\n", WORKLOAD, refused_rows[i].line).ptr,
                       refused_rows[i].code, where);
    }
}

static void test_task_workload__evaluates_constraints(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(f, definition_with(f, AXES, INPUTS, OUTPUTS,
                                                  ", \"constraints\": [\"M % 4 == 0 or N == 5\", "
                                                  "\"x.is_contiguous()\", \"M / (N - 1) >= 0\"]")));
    assert_ok(parse_workloads(f, WORKLOAD));
    expect_refused(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 6}}", KL_EINVAL,
                   "workloads.jsonl:1:23");
    assert_contains(f->error.message, "M % 4 == 0 or N == 5");
    expect_refused(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 4, \"N\": 1}}", KL_EINVAL,
                   "workloads.jsonl:1:23");
    assert_contains(f->error.message, "division by zero");
}

static void test_task_workload__refuses_distributions_that_do_not_fit(void **state) {
    fixture *f = *state;
    static const char *const sections[] = {
        "{\"inputs\": {\"x\": {\"dist\": \"uniform_int\", \"high\": \"M - 3\"}}}",
        "{\"inputs\": {\"x\": {\"dist\": \"uniform_int\", \"high\": 129}}, \"dtypes\": {\"x\": "
        "\"int8\"}}",
        "{\"inputs\": {\"x\": {\"dist\": \"uniform_int\", \"high\": \"9223372036854775807 * M\"}}}",
        "{\"inputs\": {\"x\": {\"dist\": \"offsets\", \"total\": 1000}}, \"dtypes\": {\"x\": "
        "\"int32\"}}",
        "{\"inputs\": {\"x\": {\"l2norm\": true}}, \"dtypes\": {\"x\": \"int32\"}}",
        "{\"inputs\": {\"s\": {\"l2norm\": true}}}",
        "{\"inputs\": {\"s\": {\"dist\": \"constant\", \"value\": 1.5}}, \"dtypes\": {\"s\": "
        "\"int32\"}}",
        "{\"inputs\": {\"x\": {\"dist\": \"distinct\"}}, \"dtypes\": {\"x\": \"bool\"}}",
    };
    use_plain(f);
    for (size_t i = 0; i < KL_COUNT(sections); i++)
        expect_refused(
            f,
            kl_arena_printf(f->arena,
                            "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 6}, \"klineage\": %s}",
                            sections[i])
                .ptr,
            KL_EINVAL, "workloads.jsonl:1:23");
}

static void test_task_workload__bounds_sizes(void **state) {
    fixture *f = *state;
    kl_shape shape;
    assert_ok(size_of(f, "[\"M\"]", "float32", "2147483648"));
    assert_ok(kl_task_shape(&shape, f->task, f->task->workloads, 0, &f->error));
    assert_int_equal(shape.elems, (int64_t)1 << 31);
    assert_int_equal(shape.bytes, (int64_t)8 << 30);
    assert_ok(size_of(f, "[\"M\"]", "uint8", "68719476736"));
    assert_err(KL_EINVAL, size_of(f, "[\"M\"]", "uint8", "68719476737"));
    assert_err(KL_EINVAL, size_of(f, "[\"M\", \"M\"]", "uint8", "2147483648"));
    assert_err(KL_EINVAL, size_of(f, "[\"M\"]", "uint8", "4611686018427387904"));
    assert_err(KL_EINVAL, size_of(f, "[\"M\", \"M\", \"M\"]", "float64", "4611686018427387904"));
    assert_err(KL_EINVAL, size_of(f, "[\"9223372036854775807\"]", "bool", "1"));
    assert_err(KL_EINVAL, kl_task_shape(&shape, f->task, f->task->workloads, 99, &f->error));
}

static void test_task_workload__counts_work(void **state) {
    fixture *f = *state;
    double flops, bytes;
    assert_ok(parse_definition(
        f, definition_with(f, AXES, INPUTS, OUTPUTS, ", \"klineage\": {\"flops\": \"2*M*N*K\"}")));
    assert_ok(parse_workloads(f, WORKLOAD));
    assert_ok(kl_task_work(&flops, &bytes, f->task, f->task->workloads, &f->error));
    assert_true(flops == 2 * 3 * 5 * 64);
    assert_true(bytes == 3 * 64 * 4 + 4 + 3 * 5 * 2);
    expect_refused(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 100000000, \"N\": 4611686018427387904}}",
                   KL_EINVAL, "workloads.jsonl:1:23");
    use_plain(f);
    assert_ok(parse_workloads(f, WORKLOAD));
    assert_ok(kl_task_work(&flops, &bytes, f->task, f->task->workloads, &f->error));
    assert_true(flops == 0);
}

static void test_task_workload__is_chosen_by_label_host_and_order(void **state) {
    fixture *f = *state;
    static const char *const rows[] = {
        "\"label\": \"paper\", \"on\": \"gpu\"", "\"label\": \"tiny\", \"on\": \"cpu\"",
        "\"label\": \"tails\", \"hidden\": true", "\"label\": \"cpu\", \"on\": \"cpu\"",
        "\"label\": \"tiny\", \"on\": \"gpu\""};
    kl_buf text = {0};
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        kl_buf_printf(&text,
                      "{\"uuid\": \"u%zu\", \"axes\": {\"M\": 1, \"N\": 1}, \"klineage\": {%s}}\n",
                      i, rows[i]);
    use_plain(f);
    assert_ok(parse_workloads(f, text.ptr));
    kl_buf_fini(&text);
    assert_str(kl_task_workload(f->task, (kl_str){0}, KL_ON_CPU)->label, "cpu");
    assert_str(kl_task_workload(f->task, (kl_str){0}, KL_ON_GPU)->label, "paper");
    assert_str(kl_task_workload(f->task, KL_S("tiny"), KL_ON_GPU)->uuid, "u4");
    assert_str(kl_task_workload(f->task, KL_S("u2"), KL_ON_GPU)->label, "tails");
    assert_null(kl_task_workload(f->task, KL_S("paper"), KL_ON_CPU));
    assert_null(kl_task_workload(f->task, KL_S("no"), KL_ON_ANY));
}

static void expect_axes_refused(fixture *f, const char *text, const char *where) {
    kl_workload *w = NULL;
    assert_err(KL_EINVAL, kl_workload_with_axes(&w, f->arena, f->task, f->task->workloads,
                                                kl_str_of(text), &f->error));
    if (strncmp(f->error.where, where, strlen(where)) != 0)
        fail_msg("%s gave %s (%s)", text, f->error.where, f->error.message);
}

static void test_task_workload__is_made_from_assignments(void **state) {
    fixture *f = *state;
    kl_workload *w = NULL;
    assert_ok(parse_definition(
        f, definition_with(f, AXES ", \"E\": {\"type\": \"expr\", \"expression\": \"M + 1\"}",
                           INPUTS, OUTPUTS, ", \"constraints\": [\"M != 13\"]")));
    assert_ok(parse_workloads(f, WORKLOAD));
    assert_ok(kl_workload_with_axes(&w, f->arena, f->task, f->task->workloads,
                                    KL_S(" M = 65,N=2*3"), &f->error));
    assert_int_equal(w->axes[0], 65);
    assert_int_equal(w->axes[1], 6);
    assert_int_equal(w->axes[3], 66);
    assert_str(w->uuid, "u1[ M = 65,N=2*3]");
    assert_ok(
        kl_workload_with_axes(&w, f->arena, f->task, f->task->workloads, KL_S("M=7"), &f->error));
    assert_int_equal(w->axes[1], 5);
    expect_axes_refused(f, "", "axes");
    expect_axes_refused(f, "M", "axes:1:1");
    expect_axes_refused(f, "M=1,", "axes:1:5");
    expect_axes_refused(f, "M=1,Q=2", "axes:1:5");
    expect_axes_refused(f, "M=1,M=2", "axes:1:5");
    expect_axes_refused(f, "K=32", "axes:1:1");
    expect_axes_refused(f, "E=32", "axes:1:1");
    expect_axes_refused(f, "M=0", "axes:1:3");
    expect_axes_refused(f, "M=-4", "axes:1:3");
    expect_axes_refused(f, "M=1x", "axes:1:4");
    expect_axes_refused(f, "M=4611686018427387904", "shape");
    expect_axes_refused(f, "M=13", "constraint");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_task_workload__reads_lines_and_skips_blank_ones),
        test_of(test_task_workload__reads_a_line_of_a_data_set),
        test_of(test_task_workload__derives_axes_from_expressions),
        test_of(test_task_workload__applies_dtypes_and_distributions),
        test_of(test_task_workload__applies_the_sol_tolerance),
        test_of(test_task_workload__accepts_custom_inputs_only_all_together),
        test_of(test_task_workload__refuses_bad_lines_where_they_are),
        test_of(test_task_workload__evaluates_constraints),
        test_of(test_task_workload__refuses_distributions_that_do_not_fit),
        test_of(test_task_workload__bounds_sizes),
        test_of(test_task_workload__counts_work),
        test_of(test_task_workload__is_chosen_by_label_host_and_order),
        test_of(test_task_workload__is_made_from_assignments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
