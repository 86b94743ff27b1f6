/* definition.c - a FlashInfer-Trace definition (and SOL-ExecBench's dialect of it) becomes a
 * kl_task.
 *
 *   {"name", "op_type"?, "axes": {NAME: {"type": "var" | "const" | "expr", ...}},
 *    "inputs": {NAME: {"shape": [AXIS | SIZE, ...] | null, "dtype"}}, "outputs": {...},
 *    "reference"?, "constraints"?, "description"?, "custom_inputs_entrypoint"?, "klineage"?}
 *
 * Members that are not ours are passed over when unknown, since both projects add to their schema;
 * members that are null count as absent, since both write them.  Names of axes and tensors become
 * macros and parameters of kernels, so anything but a C identifier is refused here, once.
 * Deliberately not here: the "klineage" section (section.c), workloads (workload.c), running the
 * reference. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "task_impl.h"

/* ---- names ------------------------------------------------------------------------------- */

static bool is_identifier(kl_str s) {
    if (s.len == 0 || (s.ptr[0] >= '0' && s.ptr[0] <= '9')) return false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return true;
}

static kl_err parse_identifier(kl_str *out, const kli_doc *d, const kli_doc_path *p,
                               const char *what) {
    if (p->key.len > KL_MAX_NAME - 1)
        return kli_doc_fail(d, p, KL_EINVAL, "the name of this %s is longer than %d bytes", what,
                            KL_MAX_NAME - 1);
    if (!is_identifier(p->key))
        return kli_doc_fail(d, p, KL_EINVAL,
                            "%s '%.*s' is not an identifier (letters, digits and _)", what,
                            KL_STR_ARG(p->key));
    *out = kl_arena_copy(d->arena, p->key);
    return KL_OK;
}

int kl_task_axis(const kl_task *t, kl_str name) {
    for (int i = 0; i < t->n_axes; i++)
        if (kl_str_eq(t->axes[i].name, name)) return i;
    return -1;
}

int kl_task_tensor(const kl_task *t, kl_str name) {
    for (int i = 0; i < t->n_tensors; i++)
        if (kl_str_eq(t->tensors[i].name, name)) return i;
    return -1;
}

kl_err kli_dtype_at(kl_dtype *out, const kli_doc *d, const kli_doc_path *p, const json_t *value) {
    if (!json_is_string(value))
        return kli_doc_fail(d, p, KL_EPARSE, "\"%.*s\" must be the name of a dtype",
                            KL_STR_ARG(p->key));
    const kl_str name = {json_string_value(value), json_string_length(value)};
    if (!kl_dtype_parse(out, name))
        return kli_doc_fail(d, p, KL_EINVAL,
                            "unknown dtype '%.40s'; there are float64 float32 float16 bfloat16 "
                            "float8_e4m3fn float8_e5m2 int64 int32 int16 int8 uint8 bool",
                            name.ptr);
    return KL_OK;
}

/* ---- axes -------------------------------------------------------------------------------- */

static kl_err parse_const_axis(kl_axis *axis, const kli_doc *d, const kli_doc_path *p,
                               const json_t *o) {
    const json_t *value = json_object_get(o, "value");
    const kli_doc_path here = {.up = p, .key = KL_S("value")};
    axis->kind = KL_AXIS_CONST;
    if (!json_is_integer(value))
        return kli_doc_fail(d, value == NULL ? p : &here, KL_EPARSE,
                            "a const axis needs an integer \"value\"");
    axis->value = json_integer_value(value);
    if (axis->value < 1)
        return kli_doc_fail(d, &here, KL_EINVAL, "axis '%.*s' is %lld; the smallest size is 1",
                            KL_STR_ARG(axis->name), (long long)axis->value);
    return KL_OK;
}

static kl_err parse_expr_axis(kl_axis *axis, const kli_doc *d, const kli_doc_path *p,
                              const json_t *o) {
    axis->kind = KL_AXIS_EXPR;
    const kl_err err = kli_doc_text(&axis->expr, d, p, o, "expression");
    if (err == KL_OK && axis->expr.len == 0)
        return kli_doc_fail(d, p, KL_EPARSE, "an expr axis needs an \"expression\"");
    return err;
}

static kl_err parse_axis(kl_axis *axis, const kli_doc *d, const kli_doc_path *up, const char *key,
                         const json_t *o) {
    const kli_doc_path name = {.up = up, .key = kl_str_of(key), .at_name = true};
    const kli_doc_path here = {.up = up, .key = kl_str_of(key)};
    const kli_doc_path type_place = {.up = &here, .key = KL_S("type")};
    kl_str type = {0};
    kl_err err = parse_identifier(&axis->name, d, &name, "axis");
    if (err != KL_OK) return err;
    if (!json_is_object(o))
        return kli_doc_fail(d, &here, KL_EPARSE, "an axis must be an object with a \"type\"");
    if ((err = kli_doc_text(&type, d, &here, o, "type")) != KL_OK) return err;
    if (kl_str_eq(type, KL_S("const"))) return parse_const_axis(axis, d, &here, o);
    if (kl_str_eq(type, KL_S("expr"))) return parse_expr_axis(axis, d, &here, o);
    if (!kl_str_eq(type, KL_S("var")))
        return kli_doc_fail(d, &type_place, KL_EPARSE,
                            "the type of an axis is \"var\", \"const\" or \"expr\"");
    axis->kind = KL_AXIS_VAR;
    return KL_OK;
}

/* Each axis expression may use every plain axis and the expressions before it: what
 * kli_workload_complete computes. */
static kl_err check_axis_exprs(const kl_task *t, const kli_doc *d, const kli_doc_path *up) {
    for (int i = 0; i < t->n_axes; i++) {
        const kl_axis *axis = &t->axes[i];
        const kli_doc_path here = {.up = up, .key = axis->name};
        const kli_doc_path expr = {.up = &here, .key = KL_S("expression")};
        kli_axes names = {t, NULL, i};
        kli_fault fault;
        int64_t ignored;
        if (axis->kind != KL_AXIS_EXPR) continue;
        if (kli_expr_run(&ignored, axis->expr, true, kli_axes_lookup, &names, &fault) != KL_OK)
            return kli_doc_fail_inside(d, &expr, fault.offset, fault.code, "%s", fault.message);
    }
    return KL_OK;
}

static kl_err definition_parse_axes(kl_task *t, const kli_doc *d, const json_t *root) {
    const kli_doc_path here = {.key = KL_S("axes")};
    json_t *axes;
    kl_err err = kli_doc_object(&axes, d, NULL, root, "axes", true);
    if (err != KL_OK) return err;
    if (json_object_size(axes) > KL_MAX_AXES)
        return kli_doc_fail(d, &here, KL_ELIMIT, "more than %d axes", KL_MAX_AXES);
    const char *key;
    json_t *value;
    json_object_foreach(axes, key, value) {
        if ((err = parse_axis(&t->axes[t->n_axes], d, &here, key, value)) != KL_OK) return err;
        t->n_axes++;
    }
    return check_axis_exprs(t, d, &here);
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* A dimension is an axis, or a size: an integer, or (SOL-ExecBench) an integer in quotes. */
static kl_err parse_dim(kl_str *out, const kl_task *t, const kli_doc *d, const kli_doc_path *p,
                        const json_t *value) {
    if (json_is_integer(value)) {
        if (json_integer_value(value) < 1)
            return kli_doc_fail(d, p, KL_EINVAL, "the smallest size of a dimension is 1");
        *out = kl_arena_printf(d->arena, "%lld", (long long)json_integer_value(value));
        return KL_OK;
    }
    if (!json_is_string(value))
        return kli_doc_fail(d, p, KL_EPARSE, "a dimension is the name of an axis or an integer");
    const kl_str name = {json_string_value(value), json_string_length(value)};
    kli_fault fault;
    int64_t size = 0;
    const bool is_size = name.len > 0 && strspn(name.ptr, "0123456789") == name.len;
    if (is_size && (kli_expr_run(&size, name, false, NULL, NULL, &fault) != KL_OK || size < 1))
        return kli_doc_fail(d, p, KL_EINVAL,
                            "the size of a dimension is not between 1 and 2^63 - 1");
    if (!is_size && kl_task_axis(t, name) < 0)
        return kli_doc_fail(d, p, KL_EINVAL, "the shape uses '%.64s', which is not one of the axes",
                            name.ptr);
    *out = kl_arena_copy(d->arena, name);
    return KL_OK;
}

static kl_err parse_shape(kl_tensor *tensor, const kl_task *t, const kli_doc *d,
                          const kli_doc_path *up, const json_t *o) {
    const kli_doc_path here = {.up = up, .key = KL_S("shape")};
    json_t *shape = json_object_get(o, "shape");
    if (json_is_null(shape)) {
        tensor->is_scalar = !tensor->is_output; /* an output cannot be passed by value; it is a
                                                   tensor of one element */
        return KL_OK;
    }
    if (!json_is_array(shape))
        return kli_doc_fail(d, shape == NULL ? up : &here, KL_EPARSE,
                            "a tensor needs a \"shape\": an array or null");
    if (json_array_size(shape) > KL_MAX_DIMS)
        return kli_doc_fail(d, &here, KL_ELIMIT, "more than %d dimensions", KL_MAX_DIMS);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const kli_doc_path element = {.up = &here, .index = i};
        const kl_err err = parse_dim(&tensor->dims[i], t, d, &element, json_array_get(shape, i));
        if (err != KL_OK) return err;
    }
    tensor->ndim = (int)json_array_size(shape);
    return KL_OK;
}

static kl_err parse_tensor(kl_tensor *tensor, const kl_task *t, const kli_doc *d,
                           const kli_doc_path *up, const char *key, const json_t *o) {
    const kli_doc_path name = {.up = up, .key = kl_str_of(key), .at_name = true};
    const kli_doc_path here = {.up = up, .key = kl_str_of(key)};
    const kli_doc_path dtype = {.up = &here, .key = KL_S("dtype")};
    kl_err err = parse_identifier(&tensor->name, d, &name, tensor->is_output ? "output" : "input");
    if (err != KL_OK) return err;
    if (kl_task_tensor(t, tensor->name) >= 0)
        return kli_doc_fail(d, &name, KL_EINVAL, "output '%s' has the name of an input", key);
    if (!json_is_object(o))
        return kli_doc_fail(d, &here, KL_EPARSE,
                            "a tensor must be an object with \"shape\" and \"dtype\"");
    if ((err = parse_shape(tensor, t, d, &here, o)) != KL_OK) return err;
    const json_t *dtype_value = json_object_get(o, "dtype");
    return kli_dtype_at(&tensor->dtype, d, dtype_value == NULL ? &here : &dtype, dtype_value);
}

static kl_err parse_tensors(kl_task *t, const kli_doc *d, const json_t *root, const char *section,
                            bool is_output) {
    const kli_doc_path here = {.key = kl_str_of(section)};
    json_t *tensors;
    kl_err err = kli_doc_object(&tensors, d, NULL, root, section, true);
    if (err != KL_OK) return err;
    if (json_object_size(tensors) > (size_t)(KL_MAX_TENSORS - t->n_tensors))
        return kli_doc_fail(d, &here, KL_ELIMIT, "more than %d tensors", KL_MAX_TENSORS);
    if (is_output && json_object_size(tensors) == 0)
        return kli_doc_fail(d, &here, KL_EINVAL, "a task needs at least one output");
    const char *key;
    json_t *value;
    json_object_foreach(tensors, key, value) {
        kl_tensor *tensor = &t->tensors[t->n_tensors];
        tensor->is_output = is_output;
        if ((err = parse_tensor(tensor, t, d, &here, key, value)) != KL_OK) return err;
        tensor->dist = is_output ? (kl_dist){0} : kli_dist_default(tensor->dtype);
        tensor->check = is_output ? kli_check_default(tensor->dtype) : (kl_check){0};
        t->n_tensors++;
    }
    return KL_OK;
}

/* ---- constraints ------------------------------------------------------------------------- */

/* Foreign constraints are Python: what we cannot read, or what asks for the contents of a tensor,
 * is kept and skipped.
 */
static kl_err check_constraint(const kl_task *t, const kli_doc *d, const kli_doc_path *p,
                               kl_str text) {
    kli_axes names = {t, NULL, t->n_axes};
    kli_fault fault;
    int64_t ignored;
    if (kli_expr_run(&ignored, text, true, kli_axes_lookup, &names, &fault) == KL_OK) return KL_OK;
    if (fault.unknown_name.len > 0 && kl_task_tensor(t, fault.unknown_name) < 0)
        return kli_doc_fail_inside(d, p, fault.offset, fault.code, "%s", fault.message);
    kli_warn("%.*s: constraint \"%.*s\" is not checked: %s", KL_STR_ARG(d->file), KL_STR_ARG(text),
             fault.message);
    return KL_OK;
}

static kl_err parse_constraints(kl_task *t, const kli_doc *d, const json_t *root) {
    const kli_doc_path here = {.key = KL_S("constraints")};
    json_t *list;
    kl_err err = kli_doc_array(&list, d, NULL, root, "constraints");
    if (err != KL_OK) return err;
    if (json_array_size(list) > KL_MAX_AXES)
        return kli_doc_fail(d, &here, KL_ELIMIT, "more than %d constraints", KL_MAX_AXES);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const kli_doc_path element = {.up = &here, .index = i};
        const json_t *value = json_array_get(list, i);
        if (!json_is_string(value))
            return kli_doc_fail(d, &element, KL_EPARSE, "a constraint is text");
        const kl_str text = {json_string_value(value), json_string_length(value)};
        if ((err = check_constraint(t, d, &element, text)) != KL_OK) return err;
        t->constraints[t->n_constraints++] = kl_arena_copy(d->arena, text);
    }
    return KL_OK;
}

/* ---- the whole --------------------------------------------------------------------------- */

static kl_err parse_texts(kl_task *t, const kli_doc *d, const json_t *root) {
    const kli_doc_path name = {.key = KL_S("name")};
    kl_err err;
    if ((err = kli_doc_text(&t->name, d, NULL, root, "name")) != KL_OK) return err;
    if (t->name.ptr == NULL) return kli_doc_fail(d, NULL, KL_EPARSE, "\"name\" is missing");
    if (!kli_is_printable(t->name, 127) || memchr(t->name.ptr, '/', t->name.len) != NULL)
        return kli_doc_fail(
            d, &name, KL_EINVAL,
            "the name of a task is 1 to 127 bytes without '/' and control characters");
    if ((err = kli_doc_text(&t->op_type, d, NULL, root, "op_type")) != KL_OK ||
        (err = kli_doc_text(&t->description, d, NULL, root, "description")) != KL_OK ||
        (err = kli_doc_text(&t->python_reference, d, NULL, root, "reference")) != KL_OK)
        return err;
    t->case_name = t->op_type;
    return kli_doc_text(&t->custom_inputs, d, NULL, root, "custom_inputs_entrypoint");
}

static kl_err parse_root(kl_task *t, const kli_doc *d, const json_t *root) {
    const kli_doc_path section = {.key = KL_S("klineage")};
    json_t *ours = NULL;
    kl_err err;
    if (!json_is_object(root))
        return kli_doc_fail(d, NULL, KL_EPARSE, "a definition must be a JSON object");
    if ((err = parse_texts(t, d, root)) != KL_OK ||
        (err = definition_parse_axes(t, d, root)) != KL_OK ||
        (err = parse_tensors(t, d, root, "inputs", false)) != KL_OK)
        return err;
    t->n_inputs = t->n_tensors;
    if ((err = parse_tensors(t, d, root, "outputs", true)) != KL_OK ||
        (err = parse_constraints(t, d, root)) != KL_OK ||
        (err = kli_doc_object(&ours, d, NULL, root, "klineage", false)) != KL_OK)
        return err;
    return kli_section_parse(t, d, &section, ours);
}

kl_err kli_definition_parse(kl_task *t, kl_arena *a, kl_str text, kl_str file, kl_error *e) {
    const kli_doc d = {.arena = a, .file = file, .text = text, .e = e};
    json_t *root = NULL;
    kl_err err = kli_json_parse(&root, text, file, e);
    if (err == KL_OK) err = parse_root(t, &d, root);
    json_decref(root);
    return err;
}
