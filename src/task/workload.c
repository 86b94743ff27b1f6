/* workload.c - workloads.jsonl: one FlashInfer-Trace workload a line, with SOL-ExecBench's
 * tolerance and our section.
 *
 *   {"uuid", "axes": {NAME: SIZE}, "inputs": {NAME: {"type": "random" | "scalar" | "safetensors" |
 * "custom", ...}}, "tolerance"?, "klineage"?: {"label", "on", "hidden", "dtypes", "inputs"}} or
 * {"definition", "workload": {the above}, ...}: a line of a FlashInfer-Trace data set
 *
 * The order in which things override each other: definition, then dtypes, then "inputs" of the
 * workload, then "inputs" of our section.  Every workload is settled (shape.c) while its line is at
 * hand, so that errors point into it. Deliberately not here: choosing a workload by host beyond
 * first-fit, reading tensors (safetensors.c). SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "task_impl.h"

/* ---- axes -------------------------------------------------------------------------------- */

static void parse_axis_value(kl_workload *w, const kl_task *t, const kli_node *p) {
    const int index = kl_task_axis(t, p->key);
    const long long size = json_integer_value(p->value);
    if (index < 0)
        return kli_doc_fail_name(p, KL_EINVAL, "'%.64s' is not an axis of this task", p->key.ptr);
    const kl_axis *axis = &t->axes[index];
    if (!json_is_integer(p->value))
        kli_doc_fail(p, KL_EPARSE, "the size of an axis is an integer");
    else if (size < 1)
        kli_doc_fail(p, KL_EINVAL, "axis '%.*s' is %lld; the smallest size is 1",
                     KL_STR_ARG(axis->name), size);
    else if (axis->kind == KL_AXIS_CONST && size != axis->value)
        kli_doc_fail(p, KL_EINVAL, "axis '%.*s' is always %lld", KL_STR_ARG(axis->name),
                     (long long)axis->value);
    w->axes[index] = size;
}

static void workload_parse_axes(kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node axes = kli_doc_object(p, "axes", false);
    for (kli_node at = kli_doc_first(&axes); at.value; at = kli_doc_next(&at))
        parse_axis_value(w, t, &at);
    for (int i = 0; i < t->n_axes; i++)
        if (t->axes[i].kind == KL_AXIS_VAR && w->axes[i] == 0)
            kli_doc_fail(axes.value ? &axes : p, KL_EINVAL, "the size of axis '%.*s' is missing",
                         KL_STR_ARG(t->axes[i].name));
}

/* A workload may repeat the value of an expr axis; it must be the same value. */
static void check_repeated(const kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node axes = kli_doc_member(p, "axes");
    for (int i = 0; i < t->n_axes; i++) {
        const kli_node axis = kli_doc_member(&axes, t->axes[i].name.ptr);
        if (axis.value && json_integer_value(axis.value) != w->axes[i])
            kli_doc_fail(&axis, KL_EINVAL, "axis '%.*s' is %lld by its expression",
                         KL_STR_ARG(axis.key), (long long)w->axes[i]);
    }
}

/* ---- inputs ------------------------------------------------------------------------------ */

/* Data sets name blobs relative to their root, above definitions/OP/; tasks relative to their
 * folder. */
static kl_str resolve_file(const kl_task *t, kl_arena *a, kl_str file) {
    static const char *const above[] = {"", "../", "../../", "../../../"};
    if (t->dir.len == 0) return file;
    for (size_t i = 0; i < KL_COUNT(above); i++) {
        const kl_str path =
            kl_arena_printf(a, "%.*s/%s%.*s", KL_STR_ARG(t->dir), above[i], KL_STR_ARG(file));
        if (kli_fs_exists(path.ptr)) return path;
    }
    return kli_fs_join(a, t->dir.ptr, file.ptr);
}

static void parse_file_input(kl_dist *dist, const kl_task *t, const kli_node *p) {
    const kli_node path = kli_doc_member(p, "path");
    *dist = (kl_dist){.kind = KL_DIST_FILE};
    kli_doc_text(&dist->file, p, "path");
    kli_doc_text(&dist->tensor_key, p, "tensor_key");
    if (!dist->file.len || !dist->tensor_key.len)
        return kli_doc_fail(p, KL_EPARSE, "a safetensors input needs \"path\" and \"tensor_key\"");
    if (!kli_is_inside(dist->file))
        return kli_doc_fail(&path, KL_EINVAL, "the path must be relative and without \"..\"");
    dist->file = resolve_file(t, p->doc->arena, dist->file);
}

static void parse_scalar_input(kl_dist *dist, const kl_tensor *tensor, const kli_node *p) {
    const json_t *value = json_object_get(p->value, "value");
    if (tensor->ndim > 0)
        kli_doc_fail(p, KL_EINVAL, "input '%.*s' is a tensor, not a scalar",
                     KL_STR_ARG(tensor->name));
    if (!json_is_number(value) && !json_is_boolean(value))
        kli_doc_fail(p, KL_EPARSE, "a scalar input needs a \"value\": a number, true or false");
    *dist = (kl_dist){.kind = KL_DIST_CONSTANT,
                      .scale = 1,
                      .active = 1,
                      .value = json_is_true(value) ? 1 : json_number_value(value)};
}

static void parse_input(kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node place = kli_doc_member(p, "type");
    const int index = kli_tensor_at(t, KLI_INPUT, p);
    kl_str type = {0};
    if (index < 0) return;
    if (!json_is_object(p->value))
        return kli_doc_fail(p, KL_EPARSE, "an input is an object with a \"type\"");
    kli_doc_text(&type, p, "type");
    if (kl_str_eq(type, KL_S("random"))) return;
    if (kl_str_eq(type, KL_S("scalar")))
        return parse_scalar_input(&w->dists[index], &t->tensors[index], p);
    if (kl_str_eq(type, KL_S("safetensors")) && !t->tensors[index].is_scalar)
        return parse_file_input(&w->dists[index], t, p);
    if (!kl_str_eq(type, KL_S("custom")))
        kli_doc_fail(
            &place, KL_EPARSE,
            "the type of an input is \"random\", \"scalar\", \"safetensors\" (tensors only) "
            "or \"custom\"");
    if (!t->custom_inputs.len)
        kli_doc_fail(&place, KL_EINVAL, "the definition has no \"custom_inputs_entrypoint\"");
    w->dists[index] = (kl_dist){.kind = KL_DIST_CUSTOM, .scale = 1, .active = 1};
}

static void parse_inputs(kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node inputs = kli_doc_object(p, "inputs", false);
    size_t custom = 0;
    for (kli_node at = kli_doc_first(&inputs); at.value; at = kli_doc_next(&at)) {
        const char *type = json_string_value(json_object_get(at.value, "type"));
        parse_input(w, t, &at);
        custom += type && strcmp(type, "custom") == 0;
    }
    if (custom > 0 && custom != json_object_size(inputs.value))
        kli_doc_fail(&inputs, KL_EINVAL, "either all inputs are \"custom\" or none");
}

/* ---- our section ------------------------------------------------------------------------- */

static void parse_dtypes(kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node dtypes = kli_doc_object(p, "dtypes", false);
    for (kli_node at = kli_doc_first(&dtypes); at.value; at = kli_doc_next(&at)) {
        const int index = kli_tensor_at(t, KLI_TENSOR, &at);
        if (index >= 0) (void)kli_dtype_at(&w->dtypes[index], &at);
    }
}

static void parse_section_inputs(kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node inputs = kli_doc_object(p, "inputs", false);
    for (kli_node at = kli_doc_first(&inputs); at.value; at = kli_doc_next(&at)) {
        const int index = kli_tensor_at(t, KLI_INPUT, &at);
        if (index >= 0) kli_dist_parse(&w->dists[index], &at, t);
    }
}

static void parse_label(kl_workload *w, const kli_node *p) {
    const kli_node label = kli_doc_member(p, "label");
    kli_doc_known(p, "label on hidden dtypes inputs");
    kli_doc_text(&w->label, p, "label");
    kli_doc_host(&w->on, p);
    if (w->label.ptr && !kli_is_printable(w->label, KL_MAX_NAME - 1))
        kli_doc_fail(&label, KL_EINVAL, "a label is 1 to %d bytes without control characters",
                     KL_MAX_NAME - 1);
    kli_doc_bool(&w->hidden, p, "hidden");
}

/* ---- checks ------------------------------------------------------------------------------ */

static void set_defaults(kl_workload *w, const kl_task *t) {
    for (int i = 0; i < t->n_tensors; i++) {
        w->dtypes[i] = t->tensors[i].dtype;
        w->dists[i] = t->tensors[i].dist;
        w->checks[i] = t->tensors[i].check;
    }
}

/* Nothing about it was said: it is what the dtype gives by itself. */
static bool is_usual(const kl_dist *dist, kl_dtype dtype) {
    const kl_dist usual = kli_dist_default(dtype);
    return dist->kind == usual.kind && dist->low == usual.low && dist->high == usual.high &&
           dist->scale == usual.scale && dist->active == usual.active && !dist->l2norm &&
           dist->low_expr.len == 0 && dist->high_expr.len == 0;
}

/* What the definition left to the dtype follows the workload's dtype. */
static void follow_dtypes(kl_workload *w, const kl_task *t) {
    for (int i = 0; i < t->n_inputs; i++)
        if (is_usual(&w->dists[i], t->tensors[i].dtype))
            w->dists[i] = kli_dist_default(w->dtypes[i]);
    for (int i = t->n_inputs; i < t->n_tensors; i++) {
        kl_check *check = &w->checks[i];
        if (check->kind != KL_CHECK_TOPK &&
            kl_dtype_is_float(t->tensors[i].dtype) != kl_dtype_is_float(w->dtypes[i]))
            *check = kli_check_default(w->dtypes[i]);
        if (check->kind == KL_CHECK_BUDGET && check->rtol == 0 && check->atol == 0)
            check->rtol = check->atol = kli_check_tolerance(w->dtypes[i]);
    }
}

/* SOL-ExecBench's tolerance holds for every float output.  "allow_negative_inf" needs nothing:
 * equal infinities match.
 */
static void parse_tolerance(kl_workload *w, const kl_task *t, const kli_node *p) {
    const kli_node tolerance = kli_doc_object(p, "tolerance", false);
    double rtol = -1, atol = -1, matched = -1, cap = -1;
    kli_doc_real(&rtol, &tolerance, "max_rtol");
    kli_doc_real(&atol, &tolerance, "max_atol");
    kli_doc_real(&matched, &tolerance, "required_matched_ratio");
    kli_doc_real(&cap, &tolerance, "max_error_cap");
    if (matched == 0 || matched > 1)
        kli_doc_fail(&tolerance, KL_EINVAL,
                     "\"required_matched_ratio\" is a share: above 0, at most 1");
    for (int i = t->n_inputs; i < t->n_tensors; i++) {
        kl_check *check = &w->checks[i];
        if (check->kind != KL_CHECK_BUDGET) continue;
        check->rtol = rtol < 0 ? check->rtol : rtol;
        check->atol = atol < 0 ? check->atol : atol;
        check->matched = matched < 0 ? check->matched : matched;
        check->max_error = cap < 0 ? check->max_error : cap;
    }
}

/* ---- one line ---------------------------------------------------------------------------- */

/* `holder` has our section: the workload, or in a data set the line around it. */
static void parse_body(kl_workload *w, const kl_task *t, const kli_node *p,
                       const kli_node *holder) {
    const kli_node ours = kli_doc_object(holder, "klineage", false);
    const kli_node axes = kli_doc_member(p, "axes");
    kl_error why = {0};
    set_defaults(w, t);
    workload_parse_axes(w, t, p);
    parse_label(w, &ours);
    parse_dtypes(w, t, &ours);
    follow_dtypes(w, t);
    parse_inputs(w, t, p);
    parse_tolerance(w, t, p);
    parse_section_inputs(w, t, &ours);
    if (p->doc->err) return;
    const kl_err err = kli_workload_complete(w, t, &why);
    if (err) return kli_doc_fail(axes.value ? &axes : p, err, "%s", why.message);
    check_repeated(w, t, p);
}

static void parse_uuid(kl_workload *w, const kli_node *p) {
    const kli_node uuid = kli_doc_member(p, "uuid");
    kli_doc_text(&w->uuid, p, "uuid");
    if (!w->uuid.ptr) kli_doc_fail(p, KL_EPARSE, "\"uuid\" is missing");
    if (!kli_is_printable(w->uuid, 127))
        kli_doc_fail(&uuid, KL_EINVAL, "a uuid is 1 to 127 bytes without control characters");
}

static void parse_line(kl_workload *w, const kl_task *t, const kli_node *root) {
    const kli_node definition = kli_doc_member(root, "definition");
    kl_str name = {0};
    if (!json_is_object(root->value))
        return kli_doc_fail(root, KL_EPARSE, "a workload is a JSON object on one line");
    const kli_node inner = kli_doc_object(root, "workload", false);
    const kli_node *body = inner.value ? &inner : root;
    if (inner.value) kli_doc_text(&name, root, "definition");
    if (name.ptr && !kl_str_eq(name, t->name))
        kli_doc_fail(&definition, KL_EINVAL,
                     "this workload is of another definition, not of '%.*s'", KL_STR_ARG(t->name));
    parse_uuid(w, body);
    parse_body(w, t, body, json_object_get(root->value, "klineage") ? root : body);
    w->label = w->label.ptr ? w->label : w->uuid;
    for (const kl_workload *other = t->workloads; other < w; other++)
        if (kl_str_eq(other->uuid, w->uuid))
            kli_doc_fail(body, KL_EINVAL, "another workload has the uuid '%.*s'",
                         KL_STR_ARG(w->uuid));
}

/* ---- the file ---------------------------------------------------------------------------- */

/* The next line that holds more than white space, from `*at` on; empty at the end. */
static kl_str workload_next_line(kl_str text, size_t *at) {
    while (*at < text.len) {
        const char *begin = text.ptr + *at;
        const char *newline = memchr(begin, '\n', text.len - *at);
        const size_t length = newline == NULL ? text.len - *at : (size_t)(newline - begin);
        *at += length + (newline == NULL ? 0 : 1);
        if (kl_str_trim((kl_str){begin, length}).len > 0) return (kl_str){begin, length};
    }
    return (kl_str){0};
}

static kl_err parse_text_line(kl_workload *w, const kl_task *t, kli_doc *d, kl_str line) {
    json_error_t why;
    d->start = (size_t)(line.ptr - d->text.ptr);
    const kli_node root = {.doc = d,
                           .value = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, &why)};
    if (!root.value) {
        const size_t offset = why.position > 0 ? (size_t)why.position - 1 : 0;
        return kl_fail_at(d->e, KL_EPARSE, d->file, d->text, d->start + offset, "%s", why.text);
    }
    parse_line(w, t, &root);
    json_decref(root.value);
    return d->err;
}

kl_err kli_workloads_parse(kl_task *t, kl_arena *a, kl_str text, kl_str file, kl_error *e) {
    kli_doc d = {.arena = a, .file = file, .text = text, .e = e};
    size_t at = 0;
    int count = 0;
    while (count <= KL_MAX_WORKLOADS && workload_next_line(text, &at).len > 0) count++;
    if (count > KL_MAX_WORKLOADS)
        return kl_fail_at(e, KL_ELIMIT, file, text, at, "more than %d workloads", KL_MAX_WORKLOADS);
    t->workloads = KL_ARRAY(a, kl_workload, count > 0 ? count : 1);
    at = 0;
    for (kl_str line = workload_next_line(text, &at); line.len > 0;
         line = workload_next_line(text, &at)) {
        KL_ASSERT(t->n_workloads < count);
        const kl_err err = parse_text_line(&t->workloads[t->n_workloads], t, &d, line);
        if (err) return err;
        t->n_workloads++;
    }
    return KL_OK;
}

/* ---- choosing and making ----------------------------------------------------------------- */

bool kl_workload_fits(const kl_workload *w, kl_host_kind on) {
    return w->on == KL_ON_ANY || on == KL_ON_ANY || w->on == on;
}

const kl_workload *kl_task_workload(const kl_task *t, kl_str label, kl_host_kind on) {
    for (int i = 0; i < t->n_workloads; i++) {
        const kl_workload *w = &t->workloads[i];
        const bool named = kl_str_eq(w->label, label) || kl_str_eq(w->uuid, label);
        const bool real = !w->hidden && !kl_str_eq(w->label, KL_S("tiny"));
        if (kl_workload_fits(w, on) && (label.len > 0 ? named : real)) return w;
    }
    return NULL;
}

/* "M=64": sets one axis.  `rest` starts at the assignment; `all` is shown with the caret. */
static kl_err assign_axis(kl_workload *w, bool *given, const kl_task *t, kl_str all, kl_str part,
                          kl_error *e) {
    const size_t offset = (size_t)(part.ptr - all.ptr);
    const char *equals = part.len > 0 ? memchr(part.ptr, '=', part.len) : NULL;
    if (!equals) return kl_fail_at(e, KL_EINVAL, KL_S("axes"), all, offset, "expected NAME=SIZE");
    const size_t split = (size_t)(equals - part.ptr);
    const kl_str name = kl_str_trim((kl_str){part.ptr, split});
    const kl_str size = {equals + 1, part.len - split - 1};
    const int axis = kl_task_axis(t, name);
    kli_fault fault;
    int64_t value = 0;
    if (axis < 0)
        return kl_fail_at(e, KL_EINVAL, KL_S("axes"), all, offset,
                          "'%.*s' is not an axis of this task", KL_STR_ARG(name));
    if (t->axes[axis].kind != KL_AXIS_VAR || given[axis])
        return kl_fail_at(e, KL_EINVAL, KL_S("axes"), all, offset, "axis '%.*s' %s",
                          KL_STR_ARG(name), given[axis] ? "is given twice" : "is not variable");
    if (kli_expr_run(&value, size, false, NULL, NULL, &fault))
        return kl_fail_at(e, KL_EINVAL, KL_S("axes"), all, offset + split + 1 + fault.offset, "%s",
                          fault.message);
    if (value < 1) {
        kl_fail_at(e, KL_EINVAL, KL_S("axes"), all, offset + split + 1, "the smallest size is 1");
        return kl_hint(e, "sizes are whole numbers above 0, as in --workload M=64,N=64");
    }
    given[axis] = true;
    w->axes[axis] = value;
    return KL_OK;
}

kl_err kl_workload_with_axes(kl_workload **out, kl_arena *a, const kl_task *t,
                             const kl_workload *base, kl_str assignments, kl_error *e) {
    kl_workload *w = KL_NEW(a, kl_workload);
    bool given[KL_MAX_AXES] = {false};
    *w = *base;
    if (assignments.len == 0) return kl_fail(e, KL_EINVAL, "axes", "expected NAME=SIZE");
    for (size_t at = 0; at <= assignments.len;) {
        const char *comma =
            at < assignments.len ? memchr(assignments.ptr + at, ',', assignments.len - at) : NULL;
        const size_t end = comma == NULL ? assignments.len : (size_t)(comma - assignments.ptr);
        const kl_str part = {assignments.ptr + at, end - at};
        const kl_err err = assign_axis(w, given, t, assignments, part, e);
        if (err) return err;
        at = end + 1;
    }
    for (int i = 0; i < t->n_inputs; i++)
        if (w->dists[i].kind == KL_DIST_FILE)
            return kl_fail(e, KL_EINVAL, "axes",
                           "input '%.*s' comes from a file, which has one size",
                           KL_STR_ARG(t->tensors[i].name));
    w->hidden = false;
    w->label = kl_arena_copy(a, assignments);
    w->uuid = kl_arena_printf(a, "%.*s[%.*s]", KL_STR_ARG(base->uuid), KL_STR_ARG(assignments));
    *out = w;
    return kli_workload_complete(w, t, e);
}

kl_err kl_workload_wanted(const kl_workload **out, kl_arena *a, const kl_task *t,
                          const char *wanted, kl_host_kind on, kl_error *e) {
    const kl_workload *base = kl_task_workload(t, (kl_str){0}, on);
    kl_workload *made = NULL;
    *out = kl_task_workload(t, kl_str_of(wanted), on);
    if (*out) return KL_OK;
    if (base && wanted && strchr(wanted, '=')) {
        const kl_err err = kl_workload_with_axes(&made, a, t, base, kl_str_of(wanted), e);
        if (!err) *out = made;
        return err;
    }
    kl_buf labels = {0};
    for (int i = 0; i < t->n_workloads; i++)
        if (!t->workloads[i].hidden && kl_workload_fits(&t->workloads[i], on))
            kl_buf_printf(&labels, " %.*s", KL_STR_ARG(t->workloads[i].label));
    kl_fail(e, KL_ENOENT, t->name.ptr, "no workload '%s' for a %s", wanted ? wanted : "(default)",
            on == KL_ON_GPU ? "gpu" : "cpu");
    kl_hint(e, "workloads of this task here:%s; or give axes: --workload \"M=64,N=64\"",
            labels.ptr ? labels.ptr : " none");
    kl_buf_fini(&labels);
    return KL_ENOENT;
}
