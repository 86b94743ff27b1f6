/* Tests of definition.c, section.c and document.c.  SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "fixtures.h"

static const char *plain(fixture *f) { return definition_with(f, AXES, INPUTS, OUTPUTS, ""); }

static const char *with_section(fixture *f, const char *section) {
    return definition_with(f, AXES, INPUTS, OUTPUTS,
                           kl_arena_printf(f->arena, ", \"klineage\": {%s}", section).ptr);
}

/* `text` is refused with `code`, and the caret stands at the first occurrence of `at`. */
static void expect_refused(fixture *f, const char *text, kl_err code, const char *at) {
    char where[64];
    const char *found = strstr(text, at);
    assert_err(code, parse_definition(f, text));
    assert_non_null(found);
    (void)snprintf(where, sizeof where, "definition.json:1:%d", (int)(found - text) + 1);
    if (strcmp(f->error.where, where) != 0)
        fail_msg("%s (%s), not %s", f->error.where, f->error.message, where);
}

static void test_task_definition__reads_axes_and_tensors_in_order(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(f, plain(f)));
    const kl_task *t = f->task;
    assert_str(t->name, "t");
    assert_int_equal(t->n_axes, 3);
    assert_int_equal(t->axes[2].kind, KL_AXIS_CONST);
    assert_int_equal(t->axes[2].value, 64);
    assert_int_equal(t->n_inputs, 2);
    assert_int_equal(t->n_tensors, 3);
    assert_str(t->tensors[0].dims[1], "K");
    assert_true(t->tensors[1].is_scalar);
    assert_true(t->tensors[2].is_output);
    assert_int_equal(t->tensors[2].dtype, KL_BF16);
    assert_int_equal(kl_task_tensor(t, KL_S("y")), 2);
    assert_int_equal(kl_task_tensor(t, KL_S("M")), -1);
    assert_int_equal(kl_task_axis(t, KL_S("N")), 1);
    assert_int_equal(t->tensors[0].dist.kind, KL_DIST_NORMAL);
    assert_int_equal(t->tensors[2].check.kind, KL_CHECK_BUDGET);
    assert_true(t->tensors[2].check.budget == 4 && t->tensors[2].check.matched == 1);
}

static void test_task_definition__reads_both_foreign_dialects(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(
        f,
        definition_with(
            f, AXES ", \"half\": {\"type\": \"expr\", \"expression\": \"(M + N) // 2\"}",
            "\"x\": {\"shape\": [\"half\", \"1\", 2], \"dtype\": \"int32\", \"description\": null}",
            "\"y\": {\"shape\": [], \"dtype\": \"bool\"}",
            ", \"op_type\": null, \"custom_inputs_entrypoint\": \"make\", \"tags\": [1], "
            "\"reference\": \"def run(x): pass\", \"unknown\": {}, \"constraints\": [\"M % 2 == "
            "0\"]")));
    const kl_task *t = f->task;
    assert_int_equal(t->axes[3].kind, KL_AXIS_EXPR);
    assert_str(t->axes[3].expr, "(M + N) // 2");
    assert_str(t->tensors[0].dims[1], "1");
    assert_str(t->tensors[0].dims[2], "2");
    assert_int_equal(t->tensors[0].dist.kind, KL_DIST_UNIFORM_INT);
    assert_int_equal(t->tensors[1].ndim, 0);
    assert_false(t->tensors[1].is_scalar);
    assert_int_equal(t->tensors[1].check.kind, KL_CHECK_EXACT);
    assert_str(t->custom_inputs, "make");
    assert_int_equal(t->n_constraints, 1);
}

static void test_task_definition__keeps_constraints_it_cannot_read(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(
        f,
        definition_with(f, AXES, INPUTS, OUTPUTS,
                        ", \"constraints\": [\"M == x[-1].item()\", \"0 < M < 9\", \"s > 0\"]")));
    assert_int_equal(f->task->n_constraints, 3);
    expect_refused(
        f, definition_with(f, AXES, INPUTS, OUTPUTS, ", \"constraints\": [\"M % BK == 0\"]"),
        KL_EINVAL, "BK");
}

static void test_task_definition__reads_the_section(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(
        f,
        with_section(
            f, "\"case\": \"c\", \"flops\": \"2*M*N*K\", \"mutable\": [\"x\"], \"precision\": "
               "\"float32\", "
               "\"stress\": [0.001, 64],"
               "\"inputs\": {\"x\": {\"dist\": \"uniform_int\", \"high\": \"M + 1\"}, \"s\": "
               "{\"dist\": "
               "\"constant\", \"value\": 1e-6}},"
               "\"check\": {\"y\": {\"rtol\": 0.02, \"budget\": 3, \"max_error\": 1}},"
               "\"baselines\": [{\"name\": \"a\", \"on\": \"gpu\", \"file\": \"baseline/a.c\"}]")));
    const kl_task *t = f->task;
    assert_str(t->case_name, "c");
    assert_true(t->tensors[0].is_mutable);
    assert_int_equal(t->precision, KL_F32);
    assert_int_equal(t->n_stress, 2);
    assert_str(t->tensors[0].dist.high_expr, "M + 1");
    assert_true(t->tensors[1].dist.value == 1e-6);
    assert_true(t->tensors[2].check.rtol == 0.02 && t->tensors[2].check.atol == 2e-2 &&
                t->tensors[2].check.budget == 3);
    assert_int_equal(t->baselines[0].on, KL_ON_GPU);
}

static void test_task_definition__reads_a_topk_check(void **state) {
    fixture *f = *state;
    const char *outputs = "\"v\": {\"shape\": [\"M\"], \"dtype\": \"float32\"}, \"i\": {\"shape\": "
                          "[\"M\"], \"dtype\": \"int64\"}";
    assert_ok(
        parse_definition(f, definition_with(f, AXES, INPUTS, outputs,
                                            ", \"klineage\": {\"check\": {\"i\": {\"kind\": "
                                            "\"topk\", \"values\": \"v\", \"input\": \"x\"}}}")));
    assert_int_equal(f->task->tensors[3].check.kind, KL_CHECK_TOPK);
    assert_str(f->task->tensors[3].check.values, "v");
    assert_err(
        KL_EINVAL,
        parse_definition(f, definition_with(f, AXES, INPUTS, outputs,
                                            ", \"klineage\": {\"check\": {\"i\": {\"kind\": "
                                            "\"topk\", \"values\": \"v\", \"input\": \"v\"}}}")));
    assert_err(
        KL_EINVAL,
        parse_definition(
            f, definition_with(f, AXES, INPUTS, outputs,
                               ", \"klineage\": {\"check\": {\"i\": {\"kind\": \"budget\"}}}")));
}

static void test_task_definition__refuses_bad_json_with_line_and_caret(void **state) {
    fixture *f = *state;
    assert_err(KL_EPARSE, parse_definition(f, ""));
    assert_err(KL_EPARSE, parse_definition(f, "[]"));
    assert_err(KL_EPARSE, parse_definition(f, "{\"name\": NaN}"));
    assert_err(KL_EPARSE, parse_definition(f, "{\"name\": \"\xff\xfe\"}"));
    assert_err(KL_EPARSE, parse_definition(f, "{\"name\": \"a\\u0000b\"}"));
    assert_err(KL_EPARSE,
               parse_definition(f, "{\"name\": \"a\",\n \"axes\": {},\n \"name\": \"b\"}"));
    assert_contains(f->error.where, "definition.json:3:");
    assert_err(KL_EPARSE, parse_definition(f, "{\"name\": \"a\"} trailing"));
    assert_err(KL_EPARSE, parse_definition(f, "{\"name\": \"a\", \"axes\": {\"M\": {\"type\": "
                                              "\"const\", \"value\": 9223372036854775808}}}"));
}

static void test_task_definition__survives_deep_nesting(void **state) {
    fixture *f = *state;
    const size_t depth = 1000000;
    char *text = malloc(depth + 64);
    const size_t head = (size_t)sprintf(text, "{\"name\": \"a\", \"axes\": ");
    memset(text + head, '[', depth);
    text[head + depth] = '\0';
    assert_err(KL_EPARSE, parse_definition(f, text));
    free(text);
    kl_buf shallow = {0};
    kl_buf_printf(&shallow, "{\"name\": \"a\", \"tags\": ");
    for (int i = 0; i < 3000; i++) kl_buf_add(&shallow, i < 1500 ? KL_S("[") : KL_S("]"));
    kl_buf_printf(&shallow, ", \"axes\": 5}");
    expect_refused(f, shallow.ptr, KL_EPARSE, "5}");
    kl_buf_fini(&shallow);
}

static void test_task_definition__refuses_impossible_axes(void **state) {
    fixture *f = *state;
    expect_refused(
        f, definition_with(f, "\"M\": {\"type\": \"const\", \"value\": 0}", INPUTS, OUTPUTS, ""),
        KL_EINVAL, "0}");
    expect_refused(
        f, definition_with(f, "\"M\": {\"type\": \"const\", \"value\": -5}", INPUTS, OUTPUTS, ""),
        KL_EINVAL, "-5}");
    expect_refused(
        f, definition_with(f, "\"M\": {\"type\": \"const\", \"value\": 1.5}", INPUTS, OUTPUTS, ""),
        KL_EPARSE, "1.5");
    expect_refused(f, definition_with(f, "\"M\": {\"type\": \"const\"}", INPUTS, OUTPUTS, ""),
                   KL_EPARSE, "{\"type");
    expect_refused(f, definition_with(f, "\"M\": {\"type\": \"free\"}", INPUTS, OUTPUTS, ""),
                   KL_EPARSE, "\"free");
    expect_refused(f, definition_with(f, "\"M\": 7", INPUTS, OUTPUTS, ""), KL_EPARSE, "7");
    expect_refused(f,
                   definition_with(f,
                                   AXES ", \"E\": {\"type\": \"expr\", \"expression\": \"M + Q\"}",
                                   INPUTS, OUTPUTS, ""),
                   KL_EINVAL, "Q\"");
    expect_refused(f,
                   definition_with(f,
                                   AXES ", \"E\": {\"type\": \"expr\", \"expression\": \"E + 1\"}",
                                   INPUTS, OUTPUTS, ""),
                   KL_EINVAL, "E + 1");
    expect_refused(f,
                   definition_with(f, AXES ", \"E\": {\"type\": \"expr\", \"expression\": \"M +\"}",
                                   INPUTS, OUTPUTS, ""),
                   KL_EPARSE, "\"}}, \"inputs");
}

static void test_task_definition__refuses_names_that_are_no_identifiers(void **state) {
    fixture *f = *state;
    static const char *const names[] = {
        "a-b",       "1a",
        "a b",       "",
        "a\\\"; rm", "\xc3\xa9",
        "a.b",       "a123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < KL_COUNT(names); i++) {
        const char *axis = kl_arena_printf(f->arena, "\"%s\": {\"type\": \"var\"}", names[i]).ptr;
        const char *tensor =
            kl_arena_printf(f->arena, "\"%s\": {\"shape\": [], \"dtype\": \"bool\"}", names[i]).ptr;
        assert_err(KL_EINVAL, parse_definition(f, definition_with(f, axis, INPUTS, OUTPUTS, "")));
        assert_err(KL_EINVAL, parse_definition(f, definition_with(f, AXES, tensor, OUTPUTS, "")));
        assert_err(KL_EINVAL, parse_definition(f, definition_with(f, AXES, INPUTS, tensor, "")));
    }
    const char *longest = "_12345678901234567890123456789012345678901234567890123456789012";
    assert_int_equal(strlen(longest), KL_MAX_NAME - 1);
    assert_ok(parse_definition(
        f,
        definition_with(
            f, AXES, INPUTS,
            kl_arena_printf(f->arena, "\"%s\": {\"shape\": [], \"dtype\": \"bool\"}", longest).ptr,
            "")));
    assert_err(KL_EINVAL, parse_definition(f, "{\"name\": \"a/b\"}"));
    assert_err(KL_EINVAL, parse_definition(f, "{\"name\": \"\"}"));
    assert_err(KL_EINVAL, parse_definition(f, "{\"name\": \"a\\nb\"}"));
}

static void test_task_definition__refuses_impossible_tensors(void **state) {
    fixture *f = *state;
    expect_refused(f,
                   definition_with(f, AXES,
                                   "\"x\": {\"shape\": [\"M\", \"Q\"], \"dtype\": \"float32\"}",
                                   OUTPUTS, ""),
                   KL_EINVAL, "\"Q\"");
    expect_refused(f,
                   definition_with(f, AXES,
                                   "\"x\": {\"shape\": [\"M\"], \"dtype\": \"float4_e2m1\"}",
                                   OUTPUTS, ""),
                   KL_EINVAL, "\"float4");
    expect_refused(f, definition_with(f, AXES, "\"x\": {\"shape\": [\"M\"]}", OUTPUTS, ""),
                   KL_EPARSE, "{\"shape\": [\"M\"]}");
    expect_refused(
        f, definition_with(f, AXES, "\"x\": {\"shape\": [0], \"dtype\": \"bool\"}", OUTPUTS, ""),
        KL_EINVAL, "0]");
    expect_refused(
        f,
        definition_with(f, AXES, "\"x\": {\"shape\": [\"0\"], \"dtype\": \"bool\"}", OUTPUTS, ""),
        KL_EINVAL, "\"0");
    expect_refused(f,
                   definition_with(f, AXES,
                                   "\"x\": {\"shape\": [1,1,1,1,1,1,1,1,1], \"dtype\": \"bool\"}",
                                   OUTPUTS, ""),
                   KL_ELIMIT, "[1,1");
    expect_refused(f,
                   definition_with(f, AXES, "\"y\": {\"shape\": [], \"dtype\": \"bool\"}",
                                   "\"z\": {\"shape\": [], \"dtype\": \"bool\"}, \"y\": "
                                   "{\"shape\": null, \"dtype\": \"bool\"}",
                                   ""),
                   KL_EINVAL, "\"y\": {\"shape\": null");
    assert_err(KL_EINVAL, parse_definition(f, definition_with(f, AXES, INPUTS, "", "")));
    assert_err(KL_EPARSE, parse_definition(f, "{\"name\": \"a\", \"axes\": {}, \"inputs\": {}}"));
}

static void test_task_definition__refuses_what_passes_a_limit(void **state) {
    fixture *f = *state;
    kl_buf axes = {0}, tensors = {0};
    for (int i = 0; i <= KL_MAX_AXES; i++)
        kl_buf_printf(&axes, "%s\"a%d\": {\"type\": \"var\"}", i > 0 ? "," : "", i);
    for (int i = 0; i < KL_MAX_TENSORS; i++)
        kl_buf_printf(&tensors, "%s\"t%d\": {\"shape\": [], \"dtype\": \"bool\"}", i > 0 ? "," : "",
                      i);
    assert_err(KL_ELIMIT, parse_definition(f, definition_with(f, axes.ptr, INPUTS, OUTPUTS, "")));
    assert_err(KL_ELIMIT, parse_definition(f, definition_with(f, AXES, tensors.ptr, OUTPUTS, "")));
    assert_err(KL_ELIMIT, parse_definition(f, with_section(f, "\"stress\": [1,2,3,4,5,6,7,8,9]")));
    kl_buf_fini(&axes);
    kl_buf_fini(&tensors);
}

static void test_task_definition__refuses_errors_in_the_section(void **state) {
    fixture *f = *state;
    static const struct {
        const char *section;
        kl_err code;
        const char *at;
    } rows[] = {
        {"\"flop\": \"M\"", KL_EPARSE, "\"flop\""},
        {"\"flops\": \"M*Q\"", KL_EINVAL, "Q\""},
        {"\"flops\": 7", KL_EPARSE, "7"},
        {"\"inputs\": {\"z\": {}}", KL_EINVAL, "\"z\""},
        {"\"inputs\": {\"y\": {}}", KL_EINVAL, "\"y\": {}"},
        {"\"inputs\": {\"x\": {\"dist\": \"gauss\"}}", KL_EPARSE, "\"gauss\""},
        {"\"inputs\": {\"x\": {\"dist\": \"normal\", \"low\": 1}}", KL_EPARSE, "\"low\""},
        {"\"inputs\": {\"x\": {\"scale\": \"1\"}}", KL_EPARSE, "\"1\""},
        {"\"inputs\": {\"x\": {\"scale\": 0}}", KL_EINVAL, "{\"scale\""},
        {"\"inputs\": {\"x\": {\"active\": 1.5}}", KL_EINVAL, "1.5"},
        {"\"inputs\": {\"x\": {\"dist\": \"uniform\", \"low\": 2, \"high\": 2}}", KL_EINVAL,
         "{\"dist\""},
        {"\"inputs\": {\"x\": {\"dist\": \"uniform_int\"}}", KL_EPARSE, "{\"dist\""},
        {"\"inputs\": {\"x\": {\"dist\": \"uniform_int\", \"high\": 2.5}}", KL_EINVAL, "2.5"},
        {"\"inputs\": {\"x\": {\"dist\": \"uniform_int\", \"high\": \"V\"}}", KL_EINVAL, "V\"}}"},
        {"\"inputs\": {\"x\": {\"dist\": \"offsets\"}}", KL_EPARSE, "{\"dist\""},
        {"\"inputs\": {\"x\": {\"dist\": \"offsets\", \"total\": 1.5}}", KL_EPARSE, "1.5"},
        {"\"inputs\": {\"s\": {\"dist\": \"constant\"}}", KL_EPARSE, "{\"dist\""},
        {"\"mutable\": [\"y\"]", KL_EINVAL, "\"y\"]"},
        {"\"mutable\": [7]", KL_EINVAL, "7"},
        {"\"check\": {\"x\": {}}", KL_EINVAL, "\"x\": {}"},
        {"\"check\": {\"y\": {\"rtol\": -1}}", KL_EINVAL, "-1"},
        {"\"check\": {\"y\": {\"rtol\": 0, \"atol\": 0}}", KL_EINVAL, "{\"rtol\""},
        {"\"check\": {\"y\": {\"matched\": 1.5}}", KL_EINVAL, "1.5"},
        {"\"check\": {\"y\": {\"kind\": \"near\"}}", KL_EPARSE, "\"near\""},
        {"\"check\": {\"y\": {\"input\": \"x\"}}", KL_EINVAL, "{\"input\""},
        {"\"precision\": \"int32\"", KL_EINVAL, "\"int32\""},
        {"\"stress\": [0]", KL_EINVAL, "0]"},
        {"\"baselines\": [{\"name\": \"a\", \"file\": \"/etc/passwd\"}]", KL_EINVAL, "\"/etc"},
        {"\"baselines\": [{\"name\": \"a\", \"file\": \"b/../../c\"}]", KL_EINVAL, "\"b/.."},
        {"\"baselines\": [{\"name\": \"a\"}]", KL_EPARSE, "{\"name\": \"a\"}"},
        {"\"baselines\": [{\"name\": \"a\", \"file\": \"b\", \"on\": \"tpu\"}]", KL_EPARSE,
         "\"tpu\""},
    };
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        expect_refused(f, with_section(f, rows[i].section), rows[i].code, rows[i].at);
}

static void test_task_definition__reads_what_python_does(void **state) {
    fixture *f = *state;
    static const char BOTH[] =
        ", \"reference\": \"def run(x): pass\", \"custom_inputs_entrypoint\": \"make\", "
        "\"klineage\": {\"oracle\": \"float64\", \"inputs\": {\"x\": {\"dist\": \"custom\"}}}";
    assert_ok(parse_definition(f, definition_with(f, AXES, INPUTS, OUTPUTS, BOTH)));
    assert_true(f->task->wide_reference);
    assert_int_equal(f->task->tensors[0].dist.kind, KL_DIST_CUSTOM);
    expect_refused(f, with_section(f, "\"inputs\": {\"x\": {\"dist\": \"custom\"}}"), KL_EINVAL,
                   "{\"dist\"");
    expect_refused(f, with_section(f, "\"oracle\": \"float64\""), KL_EINVAL, "\"float64\"");
    expect_refused(f, with_section(f, "\"oracle\": \"float16\""), KL_EINVAL, "\"float16\"");
}

static void test_task_definition__points_past_other_values(void **state) {
    fixture *f = *state;
    expect_refused(
        f,
        "{ \"tags\" : [ \"}]{[\", \"\\\"\", [1, {\"axes\": 3}], -1e5, true ] , \"name\":\"n\","
        " \"axes\" : {\t} , \"inputs\" : 9 }",
        KL_EPARSE, "9 }");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_task_definition__reads_axes_and_tensors_in_order),
        test_of(test_task_definition__reads_both_foreign_dialects),
        test_of(test_task_definition__keeps_constraints_it_cannot_read),
        test_of(test_task_definition__reads_the_section),
        test_of(test_task_definition__reads_a_topk_check),
        test_of(test_task_definition__refuses_bad_json_with_line_and_caret),
        test_of(test_task_definition__survives_deep_nesting),
        test_of(test_task_definition__refuses_impossible_axes),
        test_of(test_task_definition__refuses_names_that_are_no_identifiers),
        test_of(test_task_definition__refuses_impossible_tensors),
        test_of(test_task_definition__refuses_what_passes_a_limit),
        test_of(test_task_definition__refuses_errors_in_the_section),
        test_of(test_task_definition__reads_what_python_does),
        test_of(test_task_definition__points_past_other_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
