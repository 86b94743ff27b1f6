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
};

/* An expression over axes inside the section: read once here, so that its caret is at hand. */
static kl_err check_expr(const kl_task *t, const kli_doc *d, const kli_doc_path *p, kl_str expr) {
    kli_axes names = {t, NULL, t->n_axes};
    kli_fault fault;
    int64_t ignored;
    if (kli_expr_run(&ignored, expr, true, kli_axes_lookup, &names, &fault) != KL_OK)
        return kli_doc_fail_inside(d, p, fault.offset, fault.code, "%s", fault.message);
    return KL_OK;
}

/* A bound is a number or an axis expression. */
static kl_err parse_bound(double *number, kl_str *expr, const kli_doc *d, const kli_doc_path *up,
                          const json_t *o, const char *key, const kl_task *t) {
    const kli_doc_path here = {.up = up, .key = kl_str_of(key)};
    const json_t *value = json_object_get(o, key);
    if (!json_is_string(value)) return kli_doc_real(number, d, up, o, key);
    const kl_err err = kli_doc_text(expr, d, up, o, key);
    if (err == KL_OK && expr->len == 0)
        return kli_doc_fail(d, &here, KL_EPARSE, "\"%s\" is empty", key);
    return err == KL_OK ? check_expr(t, d, &here, *expr) : err;
}

static kl_err parse_total(kl_dist *dist, const kli_doc *d, const kli_doc_path *p, const json_t *o,
                          const kl_task *t) {
    const json_t *total = json_object_get(o, "total");
    const kli_doc_path here = {.up = p, .key = KL_S("total")};
    if (json_is_integer(total)) {
        dist->total = kl_arena_printf(d->arena, "%lld", (long long)json_integer_value(total));
        return KL_OK;
    }
    double none;
    if (total == NULL) return kli_doc_fail(d, p, KL_EPARSE, "offsets need a \"total\"");
    if (!json_is_string(total))
        return kli_doc_fail(d, &here, KL_EPARSE,
                            "\"total\" must be an integer or an expression over the axes");
    return parse_bound(&none, &dist->total, d, p, o, "total", t);
}

/* Bounds of whole numbers are kept as doubles, which are exact up to 2^53; beyond it an expression
 * says the same. */
static kl_err check_int_bound(const kli_doc *d, const kli_doc_path *p, const char *key, kl_str expr,
                              double number) {
    const kli_doc_path here = {.up = p, .key = kl_str_of(key)};
    if (expr.len > 0 || (number == floor(number) && fabs(number) <= 0x1p53)) return KL_OK;
    return kli_doc_fail(d, &here, KL_EINVAL,
                        "\"%s\" must be an integer up to 2^53 or an expression over the axes", key);
}

static kl_err section_check_dist(const kl_dist *dist, const kli_doc *d, const kli_doc_path *p,
                                 const json_t *o) {
    const kli_doc_path active = {.up = p, .key = KL_S("active")};
    const bool bounds = dist->kind == KL_DIST_UNIFORM || dist->kind == KL_DIST_UNIFORM_INT;
    kl_err err;
    if (dist->scale == 0)
        return kli_doc_fail(d, p, KL_EINVAL, "a scale of 0 gives inputs that are all zero");
    if (!(dist->active > 0 && dist->active <= 1))
        return kli_doc_fail(d, &active, KL_EINVAL, "\"active\" is a share: above 0, at most 1");
    if (dist->kind == KL_DIST_UNIFORM_INT) {
        if (json_object_get(o, "high") == NULL)
            return kli_doc_fail(d, p, KL_EPARSE, "uniform_int needs a \"high\"");
        if ((err = check_int_bound(d, p, "low", dist->low_expr, dist->low)) != KL_OK ||
            (err = check_int_bound(d, p, "high", dist->high_expr, dist->high)) != KL_OK)
            return err;
    }
    if (bounds && dist->low_expr.len == 0 && dist->high_expr.len == 0 && !(dist->low < dist->high))
        return kli_doc_fail(d, p, KL_EINVAL, "\"low\" must be below \"high\"");
    if (dist->kind == KL_DIST_CONSTANT && json_object_get(o, "value") == NULL)
        return kli_doc_fail(d, p, KL_EPARSE, "constant needs a \"value\"");
    return KL_OK;
}

static kl_err parse_dist_keys(kl_dist *dist, const kli_doc *d, const kli_doc_path *p,
                              const json_t *o, const kl_task *t) {
    kl_err err;
    if ((err = kli_doc_real(&dist->scale, d, p, o, "scale")) != KL_OK ||
        (err = kli_doc_real(&dist->value, d, p, o, "value")) != KL_OK ||
        (err = kli_doc_real(&dist->active, d, p, o, "active")) != KL_OK ||
        (err = kli_doc_bool(&dist->l2norm, d, p, o, "l2norm")) != KL_OK ||
        (err = kli_doc_bool(&dist->even, d, p, o, "even")) != KL_OK ||
        (err = parse_bound(&dist->low, &dist->low_expr, d, p, o, "low", t)) != KL_OK ||
        (err = parse_bound(&dist->high, &dist->high_expr, d, p, o, "high", t)) != KL_OK)
        return err;
    return dist->kind == KL_DIST_OFFSETS ? parse_total(dist, d, p, o, t) : KL_OK;
}

kl_err kli_dist_parse(kl_dist *out, const kli_doc *d, const kli_doc_path *p, json_t *o,
                      const kl_task *t) {
    kl_str name = KL_S("normal");
    size_t which = 0;
    const kli_doc_path dist_place = {.up = p, .key = KL_S("dist")};
    kl_err err;
    if (!json_is_object(o))
        return kli_doc_fail(d, p, KL_EPARSE, "a distribution is an object: {\"dist\": \"normal\"}");
    if ((err = kli_doc_text(&name, d, p, o, "dist")) != KL_OK) return err;
    while (which < KL_COUNT(dists) && !kl_str_eq(name, kl_str_of(dists[which].name))) which++;
    if (which == KL_COUNT(dists))
        return kli_doc_fail(d, &dist_place, KL_EPARSE,
                            "unknown distribution; there are normal uniform uniform_int "
                            "offsets constant logsigmoid sigmoid bool distinct ties");
    if ((err = kli_doc_known(d, p, o, dists[which].keys)) != KL_OK) return err;
    *out = (kl_dist){.kind = dists[which].kind, .scale = 1, .active = 1, .high = 1};
    err = parse_dist_keys(out, d, p, o, t);
    return err == KL_OK ? section_check_dist(out, d, p, o) : err;
}

static kl_err parse_input_dists(kl_task *t, const kli_doc *d, const kli_doc_path *up,
                                const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("inputs")};
    json_t *inputs;
    kl_err err = kli_doc_object(&inputs, d, up, o, "inputs", false);
    if (err != KL_OK) return err;
    const char *key;
    json_t *value;
    json_object_foreach(inputs, key, value) {
        const kli_doc_path name = {.up = &here, .key = kl_str_of(key), .at_name = true};
        const kli_doc_path place = {.up = &here, .key = kl_str_of(key)};
        const int index = kl_task_tensor(t, name.key);
        if (index < 0 || t->tensors[index].is_output)
            return kli_doc_fail(d, &name, KL_EINVAL, "'%.64s' is not an input of this task", key);
        if ((err = kli_dist_parse(&t->tensors[index].dist, d, &place, value, t)) != KL_OK)
            return err;
    }
    return KL_OK;
}

/* ---- checks ------------------------------------------------------------------------------ */

static kl_err parse_check_kind(kl_check *check, const kli_doc *d, const kli_doc_path *p,
                               const json_t *o) {
    const kli_doc_path here = {.up = p, .key = KL_S("kind")};
    kl_str kind = {0};
    const kl_err err = kli_doc_text(&kind, d, p, o, "kind");
    if (err != KL_OK || kind.ptr == NULL) return err;
    if (kl_str_eq(kind, KL_S("budget")))
        check->kind = KL_CHECK_BUDGET;
    else if (kl_str_eq(kind, KL_S("exact")))
        check->kind = KL_CHECK_EXACT;
    else if (kl_str_eq(kind, KL_S("topk")))
        check->kind = KL_CHECK_TOPK;
    else
        return kli_doc_fail(d, &here, KL_EPARSE,
                            "the kind of a check is \"budget\", \"exact\" or \"topk\"");
    return KL_OK;
}

/* A negative rtol or atol stands for "not given": the dtype's then, unless both are missing (see
 * kl_check). */
static kl_err parse_check_numbers(kl_check *check, const kli_doc *d, const kli_doc_path *p,
                                  const json_t *o) {
    static const char *const keys[] = {"rtol", "atol", "matched", "budget", "max_error"};
    double *const numbers[] = {&check->rtol, &check->atol, &check->matched, &check->budget,
                               &check->max_error};
    for (size_t i = 0; i < KL_COUNT(keys); i++) {
        const kli_doc_path here = {.up = p, .key = kl_str_of(keys[i])};
        const kl_err err = kli_doc_real(numbers[i], d, p, o, keys[i]);
        if (err != KL_OK) return err;
        if (!json_is_number(json_object_get(o, keys[i]))) continue;
        const bool must_exceed_zero = numbers[i] == &check->matched || numbers[i] == &check->budget;
        if (*numbers[i] < 0 || (must_exceed_zero && *numbers[i] <= 0))
            return kli_doc_fail(d, &here, KL_EINVAL, "\"%s\" must be %s", keys[i],
                                must_exceed_zero ? "above 0" : "0 or more");
        if (numbers[i] == &check->matched && *numbers[i] > 1)
            return kli_doc_fail(d, &here, KL_EINVAL, "\"matched\" is a share: at most 1");
    }
    return KL_OK;
}

static kl_err check_topk(const kl_check *check, const kl_task *t, const kli_doc *d,
                         const kli_doc_path *p) {
    const int values = kl_task_tensor(t, check->values);
    const int input = kl_task_tensor(t, check->input);
    if (check->kind != KL_CHECK_TOPK) {
        if (check->values.len > 0 || check->input.len > 0)
            return kli_doc_fail(d, p, KL_EINVAL,
                                "\"values\" and \"input\" belong to a check of kind \"topk\"");
        return KL_OK;
    }
    if (input < 0 || t->tensors[input].is_output)
        return kli_doc_fail(d, p, KL_EINVAL,
                            "a topk check needs \"input\": the input that is ranked");
    if (check->values.len > 0 && (values < 0 || !t->tensors[values].is_output))
        return kli_doc_fail(d, p, KL_EINVAL, "\"values\" of a topk check is not an output");
    return KL_OK;
}

static kl_err parse_check(kl_tensor *tensor, const kl_task *t, const kli_doc *d,
                          const kli_doc_path *p, json_t *o) {
    kl_check check = tensor->check;
    kl_err err;
    if (!json_is_object(o))
        return kli_doc_fail(d, p, KL_EPARSE,
                            "a check is an object: {\"rtol\": 0.01, \"atol\": 0.01}");
    check.rtol = check.atol = -1;
    if ((err = kli_doc_known(d, p, o, "kind rtol atol matched budget max_error values input")) !=
            KL_OK ||
        (err = parse_check_kind(&check, d, p, o)) != KL_OK ||
        (err = parse_check_numbers(&check, d, p, o)) != KL_OK ||
        (err = kli_doc_text(&check.values, d, p, o, "values")) != KL_OK ||
        (err = kli_doc_text(&check.input, d, p, o, "input")) != KL_OK ||
        (err = check_topk(&check, t, d, p)) != KL_OK)
        return err;
    if (check.kind == KL_CHECK_BUDGET && !kl_dtype_is_float(tensor->dtype))
        return kli_doc_fail(d, p, KL_EINVAL, "an error budget is for float outputs; '%.*s' is %s",
                            KL_STR_ARG(tensor->name), kl_dtype_name(tensor->dtype));
    if (check.rtol == 0 && check.atol == 0)
        return kli_doc_fail(d, p, KL_EINVAL, "a bound of zero is {\"kind\": \"exact\"}");
    const bool neither = check.rtol < 0 && check.atol < 0;
    const double missing = neither ? 0 : kli_check_tolerance(tensor->dtype);
    check.rtol = check.rtol < 0 ? missing : check.rtol;
    check.atol = check.atol < 0 ? missing : check.atol;
    tensor->check = check;
    return KL_OK;
}

static kl_err parse_checks(kl_task *t, const kli_doc *d, const kli_doc_path *up, const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("check")};
    json_t *checks;
    kl_err err = kli_doc_object(&checks, d, up, o, "check", false);
    if (err != KL_OK) return err;
    const char *key;
    json_t *value;
    json_object_foreach(checks, key, value) {
        const kli_doc_path name = {.up = &here, .key = kl_str_of(key), .at_name = true};
        const kli_doc_path place = {.up = &here, .key = kl_str_of(key)};
        const int index = kl_task_tensor(t, name.key);
        if (index < 0 || !t->tensors[index].is_output)
            return kli_doc_fail(d, &name, KL_EINVAL, "'%.64s' is not an output of this task", key);
        if ((err = parse_check(&t->tensors[index], t, d, &place, value)) != KL_OK) return err;
    }
    return KL_OK;
}

/* ---- the rest ---------------------------------------------------------------------------- */

static kl_err parse_mutable(kl_task *t, const kli_doc *d, const kli_doc_path *up, const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("mutable")};
    json_t *names;
    const kl_err err = kli_doc_array(&names, d, up, o, "mutable");
    if (err != KL_OK) return err;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const kli_doc_path element = {.up = &here, .index = i};
        const int index = kl_task_tensor(t, kl_str_of(json_string_value(json_array_get(names, i))));
        if (index < 0 || t->tensors[index].is_output || t->tensors[index].is_scalar)
            return kli_doc_fail(d, &element, KL_EINVAL,
                                "only a tensor among the inputs can be mutable");
        t->tensors[index].is_mutable = true;
    }
    return KL_OK;
}

static kl_err parse_stress(kl_task *t, const kli_doc *d, const kli_doc_path *up, const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("stress")};
    json_t *scales;
    const kl_err err = kli_doc_array(&scales, d, up, o, "stress");
    if (err != KL_OK) return err;
    if (json_array_size(scales) > KL_COUNT(t->stress))
        return kli_doc_fail(d, &here, KL_ELIMIT, "more than %zu stress scales",
                            KL_COUNT(t->stress));
    for (size_t i = 0; i < json_array_size(scales); i++) {
        const kli_doc_path element = {.up = &here, .index = i};
        const json_t *value = json_array_get(scales, i);
        if (!json_is_number(value) || !(json_number_value(value) > 0))
            return kli_doc_fail(d, &element, KL_EINVAL, "a stress scale is a number above 0");
        t->stress[t->n_stress++] = json_number_value(value);
    }
    return KL_OK;
}

static kl_err parse_baseline(kl_baseline *out, const kli_doc *d, const kli_doc_path *p, json_t *o) {
    const kli_doc_path file = {.up = p, .key = KL_S("file")};
    kl_err err;
    if (!json_is_object(o))
        return kli_doc_fail(d, p, KL_EPARSE,
                            "a baseline is an object with \"name\", \"on\" and \"file\"");
    if ((err = kli_doc_known(d, p, o, "name on file")) != KL_OK ||
        (err = kli_doc_text(&out->name, d, p, o, "name")) != KL_OK ||
        (err = kli_doc_host(&out->on, d, p, o)) != KL_OK ||
        (err = kli_doc_text(&out->file, d, p, o, "file")) != KL_OK)
        return err;
    if (!kli_is_printable(out->name, KL_MAX_NAME - 1) || out->file.len == 0)
        return kli_doc_fail(d, p, KL_EPARSE, "a baseline needs a \"name\" and a \"file\"");
    if (!kli_is_inside(out->file))
        return kli_doc_fail(d, &file, KL_EINVAL,
                            "the file of a baseline is a path inside the task folder");
    return KL_OK;
}

static kl_err parse_baselines(kl_task *t, const kli_doc *d, const kli_doc_path *up,
                              const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("baselines")};
    json_t *list;
    kl_err err = kli_doc_array(&list, d, up, o, "baselines");
    if (err != KL_OK) return err;
    if (json_array_size(list) > KL_COUNT(t->baselines))
        return kli_doc_fail(d, &here, KL_ELIMIT, "more than %zu baselines", KL_COUNT(t->baselines));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const kli_doc_path element = {.up = &here, .index = i};
        if ((err = parse_baseline(&t->baselines[i], d, &element, json_array_get(list, i))) != KL_OK)
            return err;
        t->n_baselines++;
    }
    return KL_OK;
}

static kl_err parse_precision(kl_task *t, const kli_doc *d, const kli_doc_path *up,
                              const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("precision")};
    const json_t *value = json_object_get(o, "precision");
    if (value == NULL || json_is_null(value)) return KL_OK;
    const kl_err err = kli_dtype_at(&t->precision, d, &here, value);
    if (err == KL_OK && !kl_dtype_is_float(t->precision))
        return kli_doc_fail(d, &here, KL_EINVAL, "\"precision\" is a float dtype");
    return err;
}

kl_err kli_section_parse(kl_task *t, const kli_doc *d, const kli_doc_path *p, json_t *o) {
    const kli_doc_path flops = {.up = p, .key = KL_S("flops")};
    kl_err err;
    if (o == NULL) return KL_OK;
    if ((err = kli_doc_known(
             d, p, o, "case flops inputs mutable check precision stress baselines")) != KL_OK ||
        (err = kli_doc_text(&t->case_name, d, p, o, "case")) != KL_OK ||
        (err = kli_doc_text(&t->flops, d, p, o, "flops")) != KL_OK ||
        (err = parse_input_dists(t, d, p, o)) != KL_OK ||
        (err = parse_mutable(t, d, p, o)) != KL_OK || (err = parse_checks(t, d, p, o)) != KL_OK ||
        (err = parse_precision(t, d, p, o)) != KL_OK || (err = parse_stress(t, d, p, o)) != KL_OK ||
        (err = parse_baselines(t, d, p, o)) != KL_OK)
        return err;
    return t->flops.len > 0 ? check_expr(t, d, &flops, t->flops) : KL_OK;
}
