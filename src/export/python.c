/* python.c - what tensors and axes are in Python: how a launcher is called with the addresses of
 * tensors, and what an operator takes and returns.
 *
 * An axis is read from the first tensor that has it.  Where only an output has it, an operator
 * takes it as a number behind its inputs.  SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

// clang-format off
static const char *const TORCH_TYPES[KL_DTYPE_END] = {
    [KL_F64] = "torch.float64", [KL_F32] = "torch.float32", [KL_F16] = "torch.float16",
    [KL_BF16] = "torch.bfloat16", [KL_F8E4M3] = "torch.float8_e4m3fn",
    [KL_F8E5M2] = "torch.float8_e5m2", [KL_I64] = "torch.int64", [KL_I32] = "torch.int32",
    [KL_I16] = "torch.int16", [KL_I8] = "torch.int8", [KL_U8] = "torch.uint8",
    [KL_BOOL] = "torch.bool"};

static const char *const CTYPES[KL_DTYPE_END] = {
    [KL_F64] = "double", [KL_F32] = "float", [KL_I64] = "int64", [KL_I32] = "int32",
    [KL_I16] = "int16", [KL_I8] = "int8", [KL_U8] = "uint8", [KL_BOOL] = "uint8"};
// clang-format on

const char *kli_torch_type(kl_dtype t) { return TORCH_TYPES[t]; }

static const char *python_name(const kli_export *x, kl_str name) {
    return kli_export_name(x->arena, name).ptr;
}

/* ---- expressions of sizes ---------------------------------------------------------------- */

static bool is_python_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static kl_str python_word(const kli_export *x, kl_str word) {
    static const char *const functions[] = {"cdiv", "pow2"}, *const kept[] = {"min", "max", "and",
                                                                              "or", "not"};
    for (size_t i = 0; i < KL_COUNT(functions); i++)
        if (kl_str_eq(word, kl_str_of(functions[i])))
            return kl_arena_printf(x->arena, "_%s", functions[i]);
    for (size_t i = 0; i < KL_COUNT(kept); i++)
        if (kl_str_eq(word, kl_str_of(kept[i]))) return word;
    return word.ptr[0] >= '0' && word.ptr[0] <= '9' ? word : kli_export_name(x->arena, word);
}

/* Sizes are positive, so that `/` is `//`. */
static kl_str python_expression(const kli_export *x, kl_str text) {
    kl_buf b = {0};
    for (size_t i = 0; i < text.len;) {
        size_t n = 0;
        while (i + n < text.len && is_python_word(text.ptr[i + n])) n++;
        const kl_str rest = {text.ptr + i, text.len - i};
        if (n)
            kl_buf_add(&b, python_word(x, (kl_str){text.ptr + i, n}));
        else if (kl_str_starts(rest, KL_S("&&")) || kl_str_starts(rest, KL_S("||")))
            kl_buf_add(&b, text.ptr[i] == '&' ? KL_S(" and ") : KL_S(" or ")), n = 2;
        else if (text.ptr[i] == '/')
            kl_buf_add(&b, KL_S("//")), n = kl_str_starts(rest, KL_S("//")) ? 2 : 1;
        else
            kl_buf_add(&b, (kl_str){text.ptr + i, n = 1});
        i += n;
    }
    return kl_buf_take(&b, x->arena);
}

static kl_str shape_text(const kli_export *x, int tensor) {
    const kl_tensor *t = &x->task->tensors[tensor];
    kl_buf b = {0};
    for (int d = 0; d < t->ndim; d++)
        kl_buf_printf(&b, "%s%s", d ? ", " : "", python_expression(x, t->dims[d]).ptr);
    const kl_str dims = kl_buf_take(&b, x->arena);
    return kl_arena_printf(x->arena, "[%.*s]", KL_STR_ARG(dims));
}

/* ---- axes -------------------------------------------------------------------------------- */

/* "x.shape[1]" of the first of `most` tensors that has the axis; empty when none has. */
static kl_str axis_source(const kli_export *x, int axis, int most) {
    for (int i = 0; i < most; i++)
        for (int d = 0; d < x->task->tensors[i].ndim; d++)
            if (kl_str_eq(x->task->tensors[i].dims[d], x->task->axes[axis].name))
                return kl_arena_printf(x->arena, "%s.shape[%d]",
                                       python_name(x, x->task->tensors[i].name), d);
    return (kl_str){0};
}

static bool is_var(const kli_export *x, int axis) {
    return x->task->axes[axis].kind == KL_AXIS_VAR;
}

static kl_str axis_lines(const kli_export *x, int most) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++) {
        const kl_axis *axis = &x->task->axes[i];
        const kl_str from = is_var(x, i) ? axis_source(x, i, most) : (kl_str){0};
        const char *name = python_name(x, axis->name);
        if (from.len)
            kl_buf_printf(&b, "    %s = %s\n", name, from.ptr);
        else if (axis->kind == KL_AXIS_CONST)
            kl_buf_printf(&b, "    %s = %lld\n", name, (long long)x->workload->axes[i]);
        else if (axis->kind == KL_AXIS_EXPR)
            kl_buf_printf(&b, "    %s = %s\n", name, python_expression(x, axis->expr).ptr);
    }
    return kl_buf_take(&b, x->arena);
}

/* ---- the call ---------------------------------------------------------------------------- */

static kl_str call_types(const kli_export *x, bool axes_only) {
    const bool device = kli_is_device_code(x);
    kl_buf b = {0};
    if (device)
        kl_buf_printf(&b, "%s",
                      axes_only ? "ctypes.c_void_p, " : "ctypes.c_void_p, ctypes.c_void_p, ");
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var(x, i)) kl_buf_printf(&b, "ctypes.c_int64, ");
    for (int i = 0; i < x->task->n_tensors && !axes_only; i++)
        if (x->task->tensors[i].is_scalar)
            kl_buf_printf(&b, "ctypes.c_%s, ", CTYPES[x->workload->dtypes[i]]);
        else
            kl_buf_printf(&b, "ctypes.c_void_p, ");
    return kl_buf_take(&b, x->arena);
}

static kl_str call_values(const kli_export *x, bool axes_only) {
    const bool device = kli_is_device_code(x);
    kl_buf b = {0};
    if (device) kl_buf_printf(&b, "%s", axes_only ? "module, " : "module, stream, ");
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var(x, i)) kl_buf_printf(&b, "%s, ", python_name(x, x->task->axes[i].name));
    for (int i = 0; i < x->task->n_tensors && !axes_only; i++)
        kl_buf_printf(&b, "%s%s, ", python_name(x, x->task->tensors[i].name),
                      x->task->tensors[i].is_scalar ? "" : ".data_ptr()");
    return kl_buf_take(&b, x->arena);
}

static kl_str tensor_lines(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_tensors; i++) {
        const kl_tensor *t = &x->task->tensors[i];
        const char *name = python_name(x, t->name);
        if (t->is_scalar) continue;
        kl_buf_printf(&b, "    _tensor(\"%s\", %s, %s, %s, device)\n", name, name,
                      TORCH_TYPES[x->workload->dtypes[i]], shape_text(x, i).ptr);
        if (t->is_output || t->is_mutable)
            kl_buf_printf(&b, "    _usable(\"%s\", %s)\n", name, name);
        else
            kl_buf_printf(&b, "    %s = dense(%s)\n", name, name);
    }
    return kl_buf_take(&b, x->arena);
}

static int first_tensor(const kli_export *x, int most) {
    for (int i = 0; i < most; i++)
        if (!x->task->tensors[i].is_scalar) return i;
    return -1;
}

/* Names of the first `most` tensors, and of the axes that those do not tell. */
static kl_str name_list(const kli_export *x, int most, bool with_axes) {
    kl_buf b = {0};
    for (int i = 0; i < most; i++)
        kl_buf_printf(&b, "%s%s", b.len ? ", " : "", python_name(x, x->task->tensors[i].name));
    for (int i = 0; i < x->task->n_axes && with_axes; i++)
        if (is_var(x, i) && !axis_source(x, i, most).len)
            kl_buf_printf(&b, "%s%s", b.len ? ", " : "", python_name(x, x->task->axes[i].name));
    return kl_buf_take(&b, x->arena);
}

static kl_str module_code(const kli_export *x) {
    if (!kli_is_device_code(x)) return KL_S("");
    return kl_arena_printf(
        x->arena,
        "@functools.cache\n"
        "def _module(index):\n"
        "    \"\"\"The code, loaded once for each device, in the context that is current.\"\"\"\n"
        "    module = ctypes.c_void_p()\n"
        "    _checked(library().%s_load(ctypes.byref(module)))\n"
        "    return module\n\n\n",
        x->name);
}

const kl_axis *kli_untold_axis(const kli_export *x) {
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var(x, i) && !axis_source(x, i, x->task->n_tensors).len) return &x->task->axes[i];
    return NULL;
}

/* ", B": of the axes that no tensor tells. */
static kl_str untold_axes(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var(x, i) && !axis_source(x, i, x->task->n_tensors).len)
            kl_buf_printf(&b, ", %s", python_name(x, x->task->axes[i].name));
    return kl_buf_take(&b, x->arena);
}

kl_err kli_python_values(kli_values *v, const kli_export *x, kl_error *e) {
    const bool device = kli_is_device_code(x);
    const int n = x->task->n_tensors, first = first_tensor(x, x->task->n_inputs);
    kli_header_values(v, x);
    if (first < 0) return kl_fail(e, KL_EINVAL, x->task->name.ptr, "no input is a tensor");
    kli_value_set(v, "device", device ? KL_S("cuda") : KL_S("cpu"));
    kli_value_set(v, "ctypes", call_types(x, false));
    kli_value_set(v, "ctypes_axes", call_types(x, true));
    kli_value_set(v, "module_code", module_code(x));
    kli_value_set(v, "guard",
                  device ? KL_S("torch.cuda.device(device)") : KL_S("contextlib.nullcontext()"));
    kli_value_set(v, "before",
                  device ? KL_S("        module = _module(device.index)\n        stream = "
                                "torch.cuda.current_stream(device).cuda_stream\n")
                         : KL_S(""));
    kli_value_set(v, "first_tensor", kl_str_of(python_name(x, x->task->tensors[first].name)));
    kli_value_set(v, "run_parameters", name_list(x, n, true));
    kli_value_set(v, "axis_lines", axis_lines(x, n));
    kli_value_set(v, "tensor_lines", tensor_lines(x));
    kli_value_set(v, "workspace_arguments", call_values(x, true));
    kli_value_set(v, "call_arguments", call_values(x, false));
    return KL_OK;
}

/* ---- an operator ------------------------------------------------------------------------- */

static kl_str empty_outputs(const kli_export *x) {
    const int n = x->task->n_inputs;
    kl_buf b = {0};
    for (int i = n; i < x->task->n_tensors; i++)
        kl_buf_printf(&b, "%storch.empty(%s, dtype=%s, device=%s.device)", i > n ? ", " : "",
                      shape_text(x, i).ptr, TORCH_TYPES[x->workload->dtypes[i]],
                      python_name(x, x->task->tensors[first_tensor(x, n)].name));
    return kl_buf_take(&b, x->arena);
}

static const char *schema_scalar(kl_dtype t) {
    return kl_dtype_is_float(t) ? "float" : t == KL_BOOL ? "bool" : "int";
}

static kl_str schema_text(const kli_export *x) {
    const int n = x->task->n_inputs, outputs = x->task->n_tensors - n;
    kl_buf b = {0};
    for (int i = 0; i < n; i++) {
        const kl_tensor *t = &x->task->tensors[i];
        kl_buf_printf(&b, "%s", i ? ", " : "");
        if (t->is_scalar)
            kl_buf_printf(&b, "%s", schema_scalar(x->workload->dtypes[i]));
        else if (t->is_mutable)
            kl_buf_printf(&b, "Tensor(a%d!)", i);
        else
            kl_buf_printf(&b, "Tensor");
        kl_buf_printf(&b, " %s", python_name(x, t->name));
    }
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var(x, i) && !axis_source(x, i, n).len)
            kl_buf_printf(&b, ", SymInt %s", python_name(x, x->task->axes[i].name));
    const kl_str takes = kl_buf_take(&b, x->arena);
    for (int i = 0; i < outputs; i++) kl_buf_printf(&b, "%sTensor", i ? ", " : "");
    const kl_str gives = kl_buf_take(&b, x->arena);
    return kl_arena_printf(x->arena, outputs == 1 ? "(%s) -> %s" : "(%s) -> (%s)", takes.ptr,
                           gives.ptr);
}

static kl_str mutated(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_inputs; i++)
        if (x->task->tensors[i].is_mutable)
            kl_buf_printf(&b, "\"%s\", ", python_name(x, x->task->tensors[i].name));
    return kl_buf_take(&b, x->arena);
}

/* The tiny shape where the kernel was checked at it, else the real one: sizes that go together. */
static const kl_workload *example_shape(const kli_export *x) {
    const kl_workload *tiny = kl_task_workload(x->task, KL_S("tiny"), x->kernel->surface->on);
    bool fits = tiny && memcmp(tiny->dtypes, x->workload->dtypes,
                               (size_t)x->task->n_tensors * sizeof tiny->dtypes[0]) == 0;
    for (int i = 0; i < x->task->n_axes && fits; i++)
        fits = tiny->axes[i] >= x->domain.least[i] && tiny->axes[i] <= x->domain.most[i];
    return fits ? tiny : x->workload;
}

static void example_input(kl_buf *b, const kli_export *x, const kl_workload *w, int i) {
    const kl_tensor *t = &x->task->tensors[i];
    const char *type = TORCH_TYPES[w->dtypes[i]], *device = kli_is_device_code(x) ? "cuda" : "cpu";
    const char *shape = shape_text(x, i).ptr,
               *only = t->ndim == 1 ? python_expression(x, t->dims[0]).ptr : "1";
    if (t->is_scalar && w->dtypes[i] == KL_BOOL)
        kl_buf_printf(b, "%s", w->scalars[i] > 0 ? "True" : "False");
    else if (t->is_scalar && !kl_dtype_is_float(w->dtypes[i]))
        kl_buf_printf(b, "%lld", (long long)w->scalars[i]);
    else if (t->is_scalar)
        kl_buf_printf(b, "%#.17g", w->scalars[i]);
    else if (w->dists[i].kind == KL_DIST_OFFSETS && w->dists[i].total.len && t->ndim == 1)
        kl_buf_printf(b, "(torch.arange(%s) * (%s) // max(%s - 1, 1)).to(%s).to(\"%s\")", only,
                      python_expression(x, w->dists[i].total).ptr, only, type, device);
    else if (kl_dtype_is_float(w->dtypes[i]))
        kl_buf_printf(b, "torch.randn(%s).to(%s).to(\"%s\")", shape, type, device);
    else
        kl_buf_printf(b, "torch.zeros(%s, dtype=%s, device=\"%s\")", shape, type, device);
}

static void example_values(kli_values *v, const kli_export *x) {
    const kl_workload *w = example_shape(x);
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        kl_buf_printf(&b, "    %s = %lld\n", python_name(x, x->task->axes[i].name),
                      (long long)w->axes[i]);
    kli_value_set(v, "example_axes", kl_buf_take(&b, x->arena));
    for (int i = 0; i < x->task->n_inputs; i++) {
        example_input(&b, x, w, i);
        kl_buf_printf(&b, ", ");
    }
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var(x, i) && !axis_source(x, i, x->task->n_inputs).len)
            kl_buf_printf(&b, "%s, ", python_name(x, x->task->axes[i].name));
    kli_value_set(v, "example_inputs", kl_buf_take(&b, x->arena));
}

void kli_operator_values(kli_values *v, const kli_export *x) {
    const int n = x->task->n_inputs, outputs = x->task->n_tensors - n;
    const kl_str inputs = name_list(x, n, false), changes = mutated(x);
    kli_value_set(v, "op_names", name_list(x, n, true));
    kli_value_set(v, "op_inputs", kl_arena_printf(x->arena, "%s, ", inputs.ptr));
    kli_value_set(v, "op_untold", untold_axes(x));
    kli_value_set(v, "op_axis_lines", axis_lines(x, n));
    kli_value_set(v, "empty_outputs", empty_outputs(x));
    kli_value_set(v, "op_schema", schema_text(x));
    kli_value_set(v, "op_mutates", changes);
    kli_value_set(v, "op_return",
                  outputs == 0   ? KL_S("None")
                  : outputs == 1 ? KL_S("outputs[0]")
                                 : KL_S("tuple(outputs)"));
    kli_value_set(v, "autograd",
                  changes.len
                      ? KL_S("# An operator that changes an input takes no gradient.")
                      : kl_arena_printf(x->arena, "%s.register_autograd(_no_gradient)", x->name));
    example_values(v, x);
}
