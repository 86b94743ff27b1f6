/* section.c - the "klineage" section of a definition: how inputs are drawn, how outputs are judged,
 * what to compare with.
 *
 * The section is ours alone, so unknown keys are refused: a misspelt "rtol" that is passed over
 * would weaken a check. Which keys a distribution has is one table; a key that its distribution
 * would ignore is refused for the same reason. Deliberately not here: whether a distribution fits
 * the sizes of a workload (shape.c); drawing (inputs.c). SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "task_impl.h"

/* ---- defaults ---------------------------------------------------------------------------- */

/* The ranges that FlashInfer-Trace's own runner draws from when a workload says "random". */
kl_dist kli_dist_default(kl_dtype dtype) {
    kl_dist dist = {.kind = KL_DIST_NORMAL, .scale = 1, .active = 1};
    if (kl_dtype_is_float(dtype)) return dist;
    dist.kind = dtype == KL_BOOL ? KL_DIST_BOOL : KL_DIST_UNIFORM_INT;
    if (dtype == KL_BOOL) return dist;
    dist.low = dtype == KL_U8 ? 0 : dtype == KL_I8 ? -128 : -1024;
    dist.high = dtype == KL_U8 ? 256 : dtype == KL_I8 ? 128 : 1024;
    return dist;
}

kl_check kli_check_default(kl_dtype dtype) {
    return (kl_check){.kind = kl_dtype_is_float(dtype) ? KL_CHECK_BUDGET : KL_CHECK_EXACT,
                      .matched = 1,
                      .budget = 4};
}

/* Two to ten units in the last place for narrow types; for wide ones room for the order of a long
 * sum. */
double kli_check_tolerance(kl_dtype dtype) {
    switch (dtype) {
    case KL_F64:
        return 1e-9;
    case KL_F32:
        return 1e-4;
    case KL_F16:
        return 1e-2;
    case KL_BF16:
        return 2e-2;
    case KL_F8E4M3:
        return 0.25;
    case KL_F8E5M2:
        return 0.5;
    default:
        return 0;
    }
}

/* ---- distributions ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    kl_dist_kind kind;
    const char *keys;
} dists[] = {
    {"normal", KL_DIST_NORMAL, "dist scale active l2norm"},
    {"uniform", KL_DIST_UNIFORM, "dist scale active l2norm low high"},
    {"uniform_int", KL_DIST_UNIFORM_INT, "dist low high"},
    {"offsets", KL_DIST_OFFSETS, "dist total even"},
    {"constant", KL_DIST_CONSTANT, "dist value"},
    {"logsigmoid", KL_DIST_LOGSIGMOID, "dist scale active"},
    {"sigmoid", KL_DIST_SIGMOID, "dist scale active l2norm"},
    {"bool", KL_DIST_BOOL, "dist"},
    {"distinct", KL_DIST_DISTINCT, "dist"},
    {"ties", KL_DIST_TIES, "dist scale"},
    {"custom", KL_DIST_CUSTOM, "dist"},
};

/* An expression over axes inside the section: read once here, so that its caret is at hand. */
static void check_expr(const kl_task *t, const kli_node *p, kl_str expr) {
    kli_axes names = {t, NULL, t->n_axes};
    kli_fault fault;
    int64_t ignored;
    if (kli_expr_run(&ignored, expr, true, kli_axes_lookup, &names, &fault))
        kli_doc_fault(p, &fault);
}

/* A bound is a number or an axis expression. */
static void parse_bound(double *number, kl_str *expr, const kli_node *up, const char *key,
                        const kl_task *t) {
    const kli_node here = kli_doc_member(up, key);
    if (!json_is_string(here.value)) return kli_doc_real(number, up, key);
    kli_doc_text(expr, up, key);
    if (!expr->len) return kli_doc_fail(&here, KL_EPARSE, "\"%s\" is empty", key);
    check_expr(t, &here, *expr);
}

static void parse_total(kl_dist *dist, const kli_node *p, const kl_task *t) {
    const kli_node total = kli_doc_member(p, "total");
    double none;
    if (json_is_integer(total.value))
        dist->total =
            kl_arena_printf(p->doc->arena, "%lld", (long long)json_integer_value(total.value));
    else if (!total.value)
        kli_doc_fail(p, KL_EPARSE, "offsets need a \"total\"");
    else if (!json_is_string(total.value))
        kli_doc_fail(&total, KL_EPARSE,
                     "\"total\" must be an integer or an expression over the axes");
    else
        parse_bound(&none, &dist->total, p, "total", t);
}

/* Bounds of whole numbers are kept as doubles, which are exact up to 2^53; beyond it an expression
 * says the same. */
static void check_int_bound(const kli_node *up, const char *key, kl_str expr, double number) {
    const kli_node here = kli_doc_member(up, key);
    if (!expr.len && (number != floor(number) || fabs(number) > 0x1p53))
        kli_doc_fail(&here, KL_EINVAL,
                     "\"%s\" must be an integer up to 2^53 or an expression over the axes", key);
}

static void section_check_dist(const kl_task *t, const kl_dist *dist, const kli_node *p) {
    const kli_node active = kli_doc_member(p, "active");
    const bool whole = dist->kind == KL_DIST_UNIFORM_INT,
               bounds = whole || dist->kind == KL_DIST_UNIFORM;
    if (dist->scale == 0) kli_doc_fail(p, KL_EINVAL, "a scale of 0 gives inputs that are all zero");
    if (!(dist->active > 0 && dist->active <= 1))
        kli_doc_fail(&active, KL_EINVAL, "\"active\" is a share: above 0, at most 1");
    if (whole && !json_object_get(p->value, "high"))
        kli_doc_fail(p, KL_EPARSE, "uniform_int needs a \"high\"");
    if (whole) {
        check_int_bound(p, "low", dist->low_expr, dist->low);
        check_int_bound(p, "high", dist->high_expr, dist->high);
    }
    if (bounds && !dist->low_expr.len && !dist->high_expr.len && !(dist->low < dist->high))
        kli_doc_fail(p, KL_EINVAL, "\"low\" must be below \"high\"");
    if (dist->kind == KL_DIST_CUSTOM && !t->custom_inputs.len)
        kli_doc_fail(p, KL_EINVAL, "the definition has no \"custom_inputs_entrypoint\"");
    if (dist->kind == KL_DIST_CONSTANT && !json_object_get(p->value, "value"))
        kli_doc_fail(p, KL_EPARSE, "constant needs a \"value\"");
}

void kli_dist_parse(kl_dist *out, const kli_node *p, const kl_task *t) {
    const kli_node place = kli_doc_member(p, "dist");
    kl_str name = KL_S("normal");
    size_t which = 0;
    if (!json_is_object(p->value))
        return kli_doc_fail(p, KL_EPARSE, "a distribution is an object: {\"dist\": \"normal\"}");
    kli_doc_text(&name, p, "dist");
    while (which < KL_COUNT(dists) && !kl_str_eq(name, kl_str_of(dists[which].name))) which++;
    if (which == KL_COUNT(dists))
        return kli_doc_fail(&place, KL_EPARSE,
                            "unknown distribution; there are normal uniform uniform_int offsets "
                            "constant logsigmoid sigmoid bool distinct ties");
    kli_doc_known(p, dists[which].keys);
    *out = (kl_dist){.kind = dists[which].kind, .scale = 1, .active = 1, .high = 1};
    kli_doc_real(&out->scale, p, "scale");
    kli_doc_real(&out->value, p, "value");
    kli_doc_real(&out->active, p, "active");
    kli_doc_bool(&out->l2norm, p, "l2norm");
    kli_doc_bool(&out->even, p, "even");
    parse_bound(&out->low, &out->low_expr, p, "low", t);
    parse_bound(&out->high, &out->high_expr, p, "high", t);
    if (out->kind == KL_DIST_OFFSETS) parse_total(out, p, t);
    section_check_dist(t, out, p);
}

static void parse_input_dists(kl_task *t, const kli_node *up) {
    const kli_node inputs = kli_doc_object(up, "inputs", false);
    for (kli_node at = kli_doc_first(&inputs); at.value; at = kli_doc_next(&at)) {
        const int index = kli_tensor_at(t, KLI_INPUT, &at);
        if (index >= 0) kli_dist_parse(&t->tensors[index].dist, &at, t);
    }
}

/* ---- checks ------------------------------------------------------------------------------ */

static void parse_check_kind(kl_check *check, const kli_node *p) {
    static const char *const names[] = {
        [KL_CHECK_BUDGET] = "budget", [KL_CHECK_EXACT] = "exact", [KL_CHECK_TOPK] = "topk"};
    const kli_node here = kli_doc_member(p, "kind");
    kl_str kind = {0};
    kli_doc_text(&kind, p, "kind");
    if (!kind.ptr) return;
    for (size_t i = 0; i < KL_COUNT(names); i++)
        if (kl_str_eq(kind, kl_str_of(names[i]))) return (void)(check->kind = (kl_check_kind)i);
    kli_doc_fail(&here, KL_EPARSE, "the kind of a check is \"budget\", \"exact\" or \"topk\"");
}

/* A negative rtol or atol stands for "not given": the dtype's then, unless both are missing (see
 * kl_check). */
static void parse_check_numbers(kl_check *check, const kli_node *p) {
    static const char *const keys[] = {"rtol", "atol", "matched", "budget", "max_error"};
    double *const numbers[] = {&check->rtol, &check->atol, &check->matched, &check->budget,
                               &check->max_error};
    _Static_assert(KL_COUNT(keys) == KL_COUNT(numbers), "a key for every number");
    for (size_t i = 0; i < KL_COUNT(keys); i++) {
        const kli_node here = kli_doc_member(p, keys[i]);
        const bool must_exceed_zero = numbers[i] == &check->matched || numbers[i] == &check->budget;
        kli_doc_real(numbers[i], p, keys[i]);
        if (!json_is_number(here.value)) continue;
        if (*numbers[i] < 0 || (must_exceed_zero && *numbers[i] <= 0))
            kli_doc_fail(&here, KL_EINVAL, "\"%s\" must be %s", keys[i],
                         must_exceed_zero ? "above 0" : "0 or more");
        if (numbers[i] == &check->matched && *numbers[i] > 1)
            kli_doc_fail(&here, KL_EINVAL, "\"matched\" is a share: at most 1");
    }
}

static void check_topk(const kl_check *check, const kl_task *t, const kli_node *p) {
    const int values = kl_task_tensor(t, check->values), input = kl_task_tensor(t, check->input);
    if (check->kind != KL_CHECK_TOPK) {
        if (check->values.len > 0 || check->input.len > 0)
            kli_doc_fail(p, KL_EINVAL,
                         "\"values\" and \"input\" belong to a check of kind \"topk\"");
        return;
    }
    if (input < 0 || t->tensors[input].is_output)
        kli_doc_fail(p, KL_EINVAL, "a topk check needs \"input\": the input that is ranked");
    if (check->values.len > 0 && (values < 0 || !t->tensors[values].is_output))
        kli_doc_fail(p, KL_EINVAL, "\"values\" of a topk check is not an output");
}

static void parse_check(kl_tensor *tensor, const kl_task *t, const kli_node *p) {
    kl_check check = tensor->check;
    if (!json_is_object(p->value))
        return kli_doc_fail(p, KL_EPARSE, "a check is an object: {\"rtol\": 0.01, \"atol\": 0.01}");
    check.rtol = check.atol = -1;
    kli_doc_known(p, "kind rtol atol matched budget max_error values input");
    parse_check_kind(&check, p);
    parse_check_numbers(&check, p);
    kli_doc_text(&check.values, p, "values");
    kli_doc_text(&check.input, p, "input");
    check_topk(&check, t, p);
    if (check.kind == KL_CHECK_BUDGET && !kl_dtype_is_float(tensor->dtype))
        kli_doc_fail(p, KL_EINVAL, "an error budget is for float outputs; '%.*s' is %s",
                     KL_STR_ARG(tensor->name), kl_dtype_name(tensor->dtype));
    if (check.rtol == 0 && check.atol == 0)
        kli_doc_fail(p, KL_EINVAL, "a bound of zero is {\"kind\": \"exact\"}");
    const bool neither = check.rtol < 0 && check.atol < 0;
    const double missing = neither ? 0 : kli_check_tolerance(tensor->dtype);
    check.rtol = check.rtol < 0 ? missing : check.rtol;
    check.atol = check.atol < 0 ? missing : check.atol;
    tensor->check = check;
}

static void parse_checks(kl_task *t, const kli_node *up) {
    const kli_node checks = kli_doc_object(up, "check", false);
    for (kli_node at = kli_doc_first(&checks); at.value; at = kli_doc_next(&at)) {
        const int index = kli_tensor_at(t, KLI_OUTPUT, &at);
        if (index >= 0) parse_check(&t->tensors[index], t, &at);
    }
}

/* ---- the rest ---------------------------------------------------------------------------- */

static void parse_mutable(kl_task *t, const kli_node *up) {
    const kli_node names = kli_doc_array(up, "mutable", KL_MAX_TENSORS, "mutable inputs");
    for (kli_node at = kli_doc_first(&names); at.value; at = kli_doc_next(&at)) {
        const int index = kl_task_tensor(t, kl_str_of(json_string_value(at.value)));
        if (index < 0 || t->tensors[index].is_output || t->tensors[index].is_scalar)
            kli_doc_fail(&at, KL_EINVAL, "only a tensor among the inputs can be mutable");
        else
            t->tensors[index].is_mutable = true;
    }
}

static void parse_stress(kl_task *t, const kli_node *up) {
    const kli_node scales = kli_doc_array(up, "stress", KL_COUNT(t->stress), "stress scales");
    for (kli_node at = kli_doc_first(&scales); at.value; at = kli_doc_next(&at)) {
        const double scale = json_number_value(at.value);
        if (!(scale > 0)) kli_doc_fail(&at, KL_EINVAL, "a stress scale is a number above 0");
        KL_ASSERT((size_t)t->n_stress < KL_COUNT(t->stress));
        t->stress[t->n_stress++] = scale;
    }
}

static void parse_baseline(kl_baseline *out, const kli_node *p) {
    const kli_node file = kli_doc_member(p, "file");
    if (!json_is_object(p->value))
        kli_doc_fail(p, KL_EPARSE, "a baseline is an object with \"name\", \"on\" and \"file\"");
    kli_doc_known(p, "name on file");
    kli_doc_text(&out->name, p, "name");
    kli_doc_host(&out->on, p);
    kli_doc_text(&out->file, p, "file");
    if (!kli_is_printable(out->name, KL_MAX_NAME - 1) || !out->file.len)
        kli_doc_fail(p, KL_EPARSE, "a baseline needs a \"name\" and a \"file\"");
    else if (!kli_is_inside(out->file))
        kli_doc_fail(&file, KL_EINVAL, "the file of a baseline is a path inside the task folder");
}

static void parse_baselines(kl_task *t, const kli_node *up) {
    const kli_node list = kli_doc_array(up, "baselines", KL_COUNT(t->baselines), "baselines");
    for (kli_node at = kli_doc_first(&list); at.value; at = kli_doc_next(&at)) {
        KL_ASSERT((size_t)t->n_baselines < KL_COUNT(t->baselines));
        parse_baseline(&t->baselines[t->n_baselines++], &at);
    }
}

static void parse_precision(kl_task *t, const kli_node *up) {
    const kli_node here = kli_doc_member(up, "precision");
    if (!here.value || json_is_null(here.value)) return;
    if (kli_dtype_at(&t->precision, &here) && !kl_dtype_is_float(t->precision))
        kli_doc_fail(&here, KL_EINVAL, "\"precision\" is a float dtype");
}

static void parse_oracle(kl_task *t, const kli_node *up) {
    const kli_node here = kli_doc_member(up, "oracle");
    kl_str precision = {0};
    kli_doc_text(&precision, up, "oracle");
    t->wide_reference = kl_str_eq(precision, KL_S("float64"));
    if (precision.ptr && !t->wide_reference)
        kli_doc_fail(&here, KL_EINVAL, "\"oracle\" is \"float64\" or is left out");
    else if (t->wide_reference && !t->python_reference.len)
        kli_doc_fail(&here, KL_EINVAL, "there is no \"reference\" that could run in float64");
}

void kli_section_parse(kl_task *t, const kli_node *p) {
    const kli_node flops = kli_doc_member(p, "flops");
    kli_doc_known(p, "case flops inputs mutable check precision stress baselines oracle");
    kli_doc_text(&t->case_name, p, "case");
    kli_doc_text(&t->flops, p, "flops");
    parse_input_dists(t, p);
    parse_mutable(t, p);
    parse_checks(t, p);
    parse_precision(t, p);
    parse_stress(t, p);
    parse_baselines(t, p);
    parse_oracle(t, p);
    if (t->flops.len > 0) check_expr(t, &flops, t->flops);
}
