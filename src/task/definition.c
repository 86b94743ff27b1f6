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

static void parse_identifier(kl_str *out, const kli_node *p, const char *what) {
    if (p->key.len > KL_MAX_NAME - 1)
        kli_doc_fail_name(p, KL_EINVAL, "the name of this %s is longer than %d bytes", what,
                          KL_MAX_NAME - 1);
    else if (!is_identifier(p->key))
        kli_doc_fail_name(p, KL_EINVAL, "%s '%.*s' is not an identifier (letters, digits and _)",
                          what, KL_STR_ARG(p->key));
    *out = kl_arena_copy(p->doc->arena, p->key);
}

int kl_task_axis(const kl_task *t, kl_str name) {
    for (int i = 0; i < t->n_axes; i++)
        if (kl_str_eq(t->axes[i].name, name)) return i;
    return -1;
}

kl_str kl_task_name(const kl_task *t) { return t->name; }
const char *kl_task_hash(const kl_task *t) { return t->hash; }
kl_str kl_workload_label(const kl_workload *w) { return w->label; }

const kl_workload *kl_task_workload_each(const kl_task *t, int i) {
    return i >= 0 && i < t->n_workloads ? &t->workloads[i] : NULL;
}

int kl_task_tensor(const kl_task *t, kl_str name) {
    for (int i = 0; i < t->n_tensors; i++)
        if (kl_str_eq(t->tensors[i].name, name)) return i;
    return -1;
}

int kli_tensor_at(const kl_task *t, kli_tensor_side side, const kli_node *p) {
    static const char *const names[] = {"a tensor", "an input", "an output"};
    const int index = kl_task_tensor(t, p->key);
    if (index >= 0 && (side == KLI_TENSOR || t->tensors[index].is_output == (side == KLI_OUTPUT)))
        return index;
    kli_doc_fail_name(p, KL_EINVAL, "'%.64s' is not %s of this task", p->key.ptr, names[side]);
    return -1;
}

bool kli_dtype_at(kl_dtype *out, const kli_node *p) {
    const char *name = json_string_value(p->value);
    if (!name)
        kli_doc_fail(p, KL_EPARSE, "\"%.*s\" must be the name of a dtype", KL_STR_ARG(p->key));
    else if (!kl_dtype_parse(out, (kl_str){name, json_string_length(p->value)}))
        kli_doc_fail(p, KL_EINVAL,
                     "unknown dtype '%.40s'; there are float64 float32 float16 bfloat16 "
                     "float8_e4m3fn float8_e5m2 int64 int32 int16 int8 uint8 bool",
                     name);
    return !p->doc->err;
}

/* ---- axes -------------------------------------------------------------------------------- */

static void parse_const_axis(kl_axis *axis, const kli_node *p) {
    const kli_node value = kli_doc_member(p, "value");
    axis->kind = KL_AXIS_CONST;
    axis->value = json_integer_value(value.value);
    if (!json_is_integer(value.value))
        kli_doc_fail(&value, KL_EPARSE, "a const axis needs an integer \"value\"");
    else if (axis->value < 1)
        kli_doc_fail(&value, KL_EINVAL, "axis '%.*s' is %lld; the smallest size is 1",
                     KL_STR_ARG(axis->name), (long long)axis->value);
}

static void parse_axis(kl_axis *axis, const kli_node *p) {
    const kli_node type_place = kli_doc_member(p, "type");
    kl_str type = {0};
    parse_identifier(&axis->name, p, "axis");
    if (!json_is_object(p->value))
        kli_doc_fail(p, KL_EPARSE, "an axis must be an object with a \"type\"");
    kli_doc_text(&type, p, "type");
    axis->kind = KL_AXIS_VAR;
    if (kl_str_eq(type, KL_S("const"))) return parse_const_axis(axis, p);
    if (kl_str_eq(type, KL_S("expr"))) {
        axis->kind = KL_AXIS_EXPR;
        kli_doc_text(&axis->expr, p, "expression");
        if (!axis->expr.len) kli_doc_fail(p, KL_EPARSE, "an expr axis needs an \"expression\"");
    } else if (!kl_str_eq(type, KL_S("var"))) {
        kli_doc_fail(&type_place, KL_EPARSE,
                     "the type of an axis is \"var\", \"const\" or \"expr\"");
    }
}

/* Each axis expression may use every plain axis and the expressions before it: what
 * kli_workload_complete computes. */
static void check_axis_exprs(const kl_task *t, const kli_node *axes) {
    for (int i = 0; i < t->n_axes; i++) {
        const kli_node here = kli_doc_member(axes, t->axes[i].name.ptr);
        const kli_node expr = kli_doc_member(&here, "expression");
        kli_axes names = {t, NULL, i};
        kli_fault fault;
        int64_t ignored;
        if (t->axes[i].kind == KL_AXIS_EXPR &&
            kli_expr_run(&ignored, t->axes[i].expr, true, kli_axes_lookup, &names, &fault))
            kli_doc_fault(&expr, &fault);
    }
}

static void definition_parse_axes(kl_task *t, const kli_node *root) {
    const kli_node axes = kli_doc_object(root, "axes", true);
    if (json_object_size(axes.value) > KL_MAX_AXES)
        kli_doc_fail(&axes, KL_ELIMIT, "more than %d axes", KL_MAX_AXES);
    for (kli_node at = kli_doc_first(&axes); at.value; at = kli_doc_next(&at)) {
        KL_ASSERT(t->n_axes < KL_MAX_AXES);
        parse_axis(&t->axes[t->n_axes++], &at);
    }
    check_axis_exprs(t, &axes);
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* A dimension is an axis, or a size: an integer, or (SOL-ExecBench) an integer in quotes. */
static void parse_dim(kl_str *out, const kl_task *t, const kli_node *p) {
    const kl_str name = {json_string_value(p->value), json_string_length(p->value)};
    int64_t size = json_integer_value(p->value);
    kli_fault fault;
    if (json_is_integer(p->value)) {
        if (size < 1) kli_doc_fail(p, KL_EINVAL, "the smallest size of a dimension is 1");
        *out = kl_arena_printf(p->doc->arena, "%lld", (long long)size);
        return;
    }
    if (!name.ptr)
        return kli_doc_fail(p, KL_EPARSE, "a dimension is the name of an axis or an integer");
    const bool is_size = name.len > 0 && strspn(name.ptr, "0123456789") == name.len;
    if (is_size && (kli_expr_run(&size, name, false, NULL, NULL, &fault) || size < 1))
        kli_doc_fail(p, KL_EINVAL, "the size of a dimension is not between 1 and 2^63 - 1");
    if (!is_size && kl_task_axis(t, name) < 0)
        kli_doc_fail(p, KL_EINVAL, "the shape uses '%.64s', which is not one of the axes",
                     name.ptr);
    *out = kl_arena_copy(p->doc->arena, name);
}

static void parse_shape(kl_tensor *tensor, const kl_task *t, const kli_node *p) {
    const kli_node shape = kli_doc_member(p, "shape");
    if (json_is_null(shape.value)) {
        tensor->is_scalar = !tensor->is_output; /* an output cannot be passed by value; it is a
                                                   tensor of one element */
        return;
    }
    if (!json_is_array(shape.value))
        return kli_doc_fail(&shape, KL_EPARSE, "a tensor needs a \"shape\": an array or null");
    if (json_array_size(shape.value) > KL_MAX_DIMS)
        return kli_doc_fail(&shape, KL_ELIMIT, "more than %d dimensions", KL_MAX_DIMS);
    for (kli_node at = kli_doc_first(&shape); at.value; at = kli_doc_next(&at))
        parse_dim(&tensor->dims[tensor->ndim++], t, &at);
    KL_ASSERT(tensor->ndim <= KL_MAX_DIMS);
}

static void parse_tensor(kl_tensor *tensor, const kl_task *t, const kli_node *p) {
    const kli_node dtype = kli_doc_member(p, "dtype");
    parse_identifier(&tensor->name, p, tensor->is_output ? "output" : "input");
    if (kl_task_tensor(t, tensor->name) >= 0)
        kli_doc_fail_name(p, KL_EINVAL, "output '%s' has the name of an input", p->key.ptr);
    if (!json_is_object(p->value))
        return kli_doc_fail(p, KL_EPARSE,
                            "a tensor must be an object with \"shape\" and \"dtype\"");
    parse_shape(tensor, t, p);
    if (!kli_dtype_at(&tensor->dtype, dtype.value ? &dtype : p)) return;
    if (tensor->is_output)
        tensor->check = kli_check_default(tensor->dtype);
    else
        tensor->dist = kli_dist_default(tensor->dtype);
}

static void parse_tensors(kl_task *t, const kli_node *root, const char *section, bool is_output) {
    const kli_node tensors = kli_doc_object(root, section, true);
    if (json_object_size(tensors.value) > (size_t)(KL_MAX_TENSORS - t->n_tensors))
        kli_doc_fail(&tensors, KL_ELIMIT, "more than %d tensors", KL_MAX_TENSORS);
    if (is_output && json_object_size(tensors.value) == 0)
        kli_doc_fail(&tensors, KL_EINVAL, "a task needs at least one output");
    for (kli_node at = kli_doc_first(&tensors); at.value; at = kli_doc_next(&at)) {
        KL_ASSERT(t->n_tensors < KL_MAX_TENSORS);
        t->tensors[t->n_tensors].is_output = is_output;
        parse_tensor(&t->tensors[t->n_tensors], t, &at);
        t->n_tensors++;
    }
}

/* ---- constraints ------------------------------------------------------------------------- */

/* Foreign constraints are Python: what we cannot read, or what asks for the contents of a tensor,
 * is kept and skipped.
 */
static void parse_constraint(kl_task *t, const kli_node *p) {
    const kl_str text = {json_string_value(p->value), json_string_length(p->value)};
    kli_axes names = {t, NULL, t->n_axes};
    kli_fault fault;
    int64_t ignored;
    if (!text.ptr) return kli_doc_fail(p, KL_EPARSE, "a constraint is text");
    if (kli_expr_run(&ignored, text, true, kli_axes_lookup, &names, &fault)) {
        if (fault.unknown_name.len > 0 && kl_task_tensor(t, fault.unknown_name) < 0)
            return kli_doc_fault(p, &fault);
        kli_warn("%.*s: constraint \"%.*s\" is not checked: %s", KL_STR_ARG(p->doc->file),
                 KL_STR_ARG(text), fault.message);
    }
    KL_ASSERT(t->n_constraints < KL_MAX_AXES);
    t->constraints[t->n_constraints++] = kl_arena_copy(p->doc->arena, text);
}

static void parse_constraints(kl_task *t, const kli_node *root) {
    const kli_node list = kli_doc_array(root, "constraints", KL_MAX_AXES, "constraints");
    for (kli_node at = kli_doc_first(&list); at.value; at = kli_doc_next(&at))
        parse_constraint(t, &at);
}

/* Words for people and for facts; what is no text is passed over. */
static void parse_tags(kl_task *t, const kli_node *root) {
    const kli_node list = kli_doc_member(root, "tags");
    kl_buf words = {0};
    size_t i;
    json_t *tag;
    json_array_foreach(list.value, i, tag) if (json_is_string(tag))
        kl_buf_printf(&words, "%s%s", words.len ? " " : "", json_string_value(tag));
    t->tags = kl_buf_take(&words, root->doc->arena);
}

/* ---- the whole --------------------------------------------------------------------------- */

static void parse_texts(kl_task *t, const kli_node *root) {
    const kli_node name = kli_doc_member(root, "name");
    kli_doc_text(&t->name, root, "name");
    if (!t->name.ptr) kli_doc_fail(root, KL_EPARSE, "\"name\" is missing");
    if (!kli_is_printable(t->name, 127) || memchr(t->name.ptr, '/', t->name.len))
        kli_doc_fail(&name, KL_EINVAL,
                     "the name of a task is 1 to 127 bytes without '/' and control characters");
    kli_doc_text(&t->op_type, root, "op_type");
    kli_doc_text(&t->description, root, "description");
    kli_doc_text(&t->python_reference, root, "reference");
    kli_doc_text(&t->custom_inputs, root, "custom_inputs_entrypoint");
    t->case_name = t->op_type;
}

static void parse_root(kl_task *t, const kli_node *root) {
    if (!json_is_object(root->value))
        return kli_doc_fail(root, KL_EPARSE, "a definition must be a JSON object");
    parse_texts(t, root);
    definition_parse_axes(t, root);
    parse_tensors(t, root, "inputs", false);
    t->n_inputs = t->n_tensors;
    parse_tensors(t, root, "outputs", true);
    parse_constraints(t, root);
    parse_tags(t, root);
    const kli_node section = kli_doc_object(root, "klineage", false);
    if (section.value) kli_section_parse(t, &section);
}

kl_err kli_definition_parse(kl_task *t, kl_arena *a, kl_str text, kl_str file, kl_error *e) {
    kli_doc d = {.arena = a, .file = file, .text = text, .e = e};
    kli_node root = {.doc = &d};
    const kl_err err = kli_json_parse(&root.value, text, file, e);
    if (err) return err;
    parse_root(t, &root);
    json_decref(root.value);
    return d.err;
}
