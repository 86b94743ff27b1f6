/* launcher.c - what directives and tensors become in headers and launchers, for cores and devices.
 *
 * A launcher evaluates a shape in the order of src/kernel/plan.c: axes, lets, requires, threads,
 * buffers.  Text of a task or of a kernel that ends up in a comment cannot end it (law 7).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_impl.h"

#include <string.h>

/* ---- words ------------------------------------------------------------------------------- */

/* One line that may stand in a comment of C and in a text of Python. */
static const char *comment_text(kl_arena *a, kl_str text) {
    const size_t most = 240;
    char *out = KL_ARRAY(a, char, 2 * most + 2);
    size_t n = 0;
    for (size_t i = 0; i < text.len && n < most; i++) {
        const char c = text.ptr[i];
        if (n && ((c == '/' && out[n - 1] == '*') || (c == '*' && out[n - 1] == '/')))
            out[n++] = ' ';
        out[n++] = (unsigned char)c < ' ' || c == '\\' ? ' ' : c == '"' ? '\'' : c;
    }
    return out;
}

kl_str kli_export_licence(kl_str source) {
    static const char mark[] = "SPDX-License-Identifier:";
    const char *found = memmem(source.ptr, source.len, mark, sizeof mark - 1);
    if (!found) return KL_S("NOASSERTION");
    const char *from = found + sizeof mark - 1;
    while (*from == ' ' && from < source.ptr + source.len) from++;
    size_t n = 0;
    while (from + n < source.ptr + source.len && n < 80 && from[n] &&
           strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+() ", from[n]))
        n++;
    const kl_str licence = kl_str_trim((kl_str){from, n});
    return licence.len ? licence : KL_S("NOASSERTION");
}

/* How an element is written where callers have no type for narrow floats: its bits. */
static const char *const EXPORT_TYPES[KL_DTYPE_END] = {
    [KL_F64] = "double",     [KL_F32] = "float",      [KL_F16] = "uint16_t", [KL_BF16] = "uint16_t",
    [KL_F8E4M3] = "uint8_t", [KL_F8E5M2] = "uint8_t", [KL_I64] = "int64_t",  [KL_I32] = "int32_t",
    [KL_I16] = "int16_t",    [KL_I8] = "int8_t",      [KL_U8] = "uint8_t",   [KL_BOOL] = "uint8_t"};

const char *kli_element_type(kl_dtype t) { return EXPORT_TYPES[t]; }

/* ---- parameters -------------------------------------------------------------------------- */

static bool is_parameter(const kli_export *x, int axis) {
    return x->task->axes[axis].kind == KL_AXIS_VAR;
}

/* "int64_t M, int64_t N", or "M, N"; `before` and `between` are as in ", int64_t M, int64_t N". */
static kl_str axis_list(const kli_export *x, const char *type, bool leads) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_parameter(x, i))
            kl_buf_printf(&b, "%s%s%s", leads || b.len ? ", " : "", type,
                          kli_export_name(x->arena, x->task->axes[i].name).ptr);
    return kl_buf_take(&b, x->arena);
}

static void parameter_shape(kl_buf *b, const kli_export *x, int i) {
    const kl_tensor *t = &x->task->tensors[i];
    kl_buf_printf(b, " /* ");
    if (t->is_scalar) kl_buf_printf(b, "%g when it was gated", x->workload->scalars[i]);
    for (int d = 0; d < t->ndim; d++)
        kl_buf_printf(b, "%s%s", d ? ", " : "[", comment_text(x->arena, t->dims[d]));
    if (!t->is_scalar) kl_buf_printf(b, "%s%s", t->ndim ? "]" : "one element", "");
    kl_buf_printf(b, ", %s%s */", kl_dtype_name(x->workload->dtypes[i]),
                  t->is_output    ? ", written"
                  : t->is_mutable ? ", updated in place"
                                  : "");
}

static void tensor_parameter(kl_buf *b, const kli_export *x, int i) {
    const kl_tensor *t = &x->task->tensors[i];
    const char *name = kli_export_name(x->arena, t->name).ptr,
               *type = EXPORT_TYPES[x->workload->dtypes[i]];
    const bool writes = t->is_output || t->is_mutable;
    kl_buf_printf(b, "\n    ");
    if (t->is_scalar)
        kl_buf_printf(b, "%s %s", type, name);
    else if (kli_is_device_code(x))
        kl_buf_printf(b, "CUdeviceptr %s", name);
    else
        kl_buf_printf(b, "%s%s *%s", writes ? "" : "const ", type, name);
    kl_buf_printf(b, ",");
    parameter_shape(b, x, i);
}

static kl_str data_parameters(const kli_export *x) {
    kl_buf b = {0};
    const kl_str axes = axis_list(x, "int64_t ", false);
    kl_buf_printf(&b, "%.*s%s", KL_STR_ARG(axes), axes.len ? "," : "");
    for (int i = 0; i < x->task->n_tensors; i++) tensor_parameter(&b, x, i);
    return kl_buf_take(&b, x->arena);
}

static kl_str parameters(const kli_export *x) {
    const bool device = kli_is_device_code(x);
    kl_buf b = {0};
    if (device) kl_buf_printf(&b, "const %s_module *module, CUstream stream, ", x->name);
    kl_buf_add(&b, data_parameters(x));
    kl_buf_printf(&b, "\n    %s workspace, size_t workspace_bytes",
                  device ? "CUdeviceptr" : "void *");
    return kl_buf_take(&b, x->arena);
}

/* The same without module and workspace, whose caller has none; the comma of the last tensor stands
 * before its comment. */
static kl_str site_parameters(const kli_export *x) {
    const kl_str all = data_parameters(x);
    char *text = KL_ARRAY(x->arena, char, all.len + 1);
    memcpy(text, all.ptr, all.len);
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, ", /*")); at++) last = at;
    if (last) text[last - text] = ' ';
    return kl_arena_printf(x->arena, "%s%s", kli_is_device_code(x) ? "CUstream stream, " : "",
                           text);
}

static kl_str data_names(const kli_export *x) {
    kl_buf b = {0};
    const kl_str axes = axis_list(x, "", false);
    kl_buf_printf(&b, "%.*s%s", KL_STR_ARG(axes), axes.len ? ", " : "");
    for (int i = 0; i < x->task->n_tensors; i++)
        kl_buf_printf(&b, "%s, ", kli_export_name(x->arena, x->task->tensors[i].name).ptr);
    return kl_buf_take(&b, x->arena);
}

static kl_str parameter_names(const kli_export *x) {
    return kl_arena_printf(x->arena, "%s%sworkspace, workspace_bytes",
                           kli_is_device_code(x) ? "module, stream, " : "", data_names(x).ptr);
}

/* ---- header ------------------------------------------------------------------------------ */

static kl_str sizes_text(const kli_export *x, const char *before) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++) {
        if (!is_parameter(x, i)) continue;
        kl_buf_printf(&b, "%s%s %lld to %lld", b.len ? ", " : before,
                      comment_text(x->arena, x->task->axes[i].name), (long long)x->domain.least[i],
                      (long long)x->domain.most[i]);
    }
    return kl_buf_take(&b, x->arena);
}

static kl_str notes_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_required; i++)
        kl_buf_printf(&b, " * The kernel requires: %s\n",
                      comment_text(x->arena, x->kernel->required[i].text));
    for (int i = 0; i < x->task->n_constraints; i++)
        kl_buf_printf(&b, " * Not checked, the caller sees to it: %s\n",
                      comment_text(x->arena, x->task->constraints[i]));
    return kl_buf_take(&b, x->arena);
}

static kl_str number_text(kl_arena *a, int64_t n) {
    return kl_arena_printf(a, "%lld", (long long)n);
}

void kli_header_values(kli_values *v, const kli_export *x) {
    kl_arena *a = x->arena;
    const kl_str axes = axis_list(x, "int64_t ", false);
    v->arena = a;
    kli_value_set(v, "name", kl_str_of(x->name));
    kli_value_set(v, "upper", kli_export_upper(a, x->name));
    kli_value_set(v, "summary",
                  kl_str_of(comment_text(a, x->task->description.len ? x->task->description
                                                                     : x->task->name)));
    kli_value_set(v, "notes", notes_text(x));
    kli_value_set(v, "shapes", number_text(a, x->domain.shapes));
    kli_value_set(v, "sizes", sizes_text(x, ",\n * "));
    const kl_str licence = kli_export_licence(x->kernel->source);
    kli_value_set(v, "licence", licence);
    kli_value_set(v, "licence_tag",
                  kl_str_eq(licence, KL_S("NOASSERTION")) ? KL_S("unknown") : licence);
    kli_value_set(v, "sizes_inline", sizes_text(x, ", "));
    kli_value_set(v, "alignment", kli_is_device_code(x) ? KL_S("256") : KL_S("64"));
    kli_value_set(v, "axes_or_void", axes.len ? axes : KL_S("void"));
    kli_value_set(v, "comma_axes", axis_list(x, "int64_t ", true));
    kli_value_set(v, "comma_axes_names", axis_list(x, "", true));
    kli_value_set(v, "axes_names", axis_list(x, "", false));
    kli_value_set(v, "parameters", parameters(x));
    kli_value_set(v, "site_parameters", site_parameters(x));
    kli_value_set(v, "site_names", data_names(x));
    kli_value_set(v, "names", parameter_names(x));
}

/* ---- evaluation -------------------------------------------------------------------------- */

static kl_str plan_members(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        kl_buf_printf(&b, "    int64_t axis_%s;\n",
                      kli_export_name(x->arena, x->task->axes[i].name).ptr);
    for (int i = 0; i < k->n_lets; i++)
        if (!k->lets[i].real)
            kl_buf_printf(&b, "    int64_t let_%.*s;\n", KL_STR_ARG(k->lets[i].name));
    for (int i = 0; i < k->n_buffers; i++)
        kl_buf_printf(&b, "    int64_t at_%.*s, bytes_%.*s;\n", KL_STR_ARG(k->buffers[i].name),
                      KL_STR_ARG(k->buffers[i].name));
    kl_buf_printf(&b, "    int64_t device_sms, device_smem_max, device_cores, threads;\n");
    return kl_buf_take(&b, x->arena);
}

static void evaluate_axes(kl_buf *b, const kli_export *x) {
    for (int i = 0; i < x->task->n_axes; i++) {
        const kl_axis *axis = &x->task->axes[i];
        const char *name = kli_export_name(x->arena, axis->name).ptr;
        if (axis->kind == KL_AXIS_VAR)
            kl_buf_printf(b, "    p->axis_%s = %s;\n", name, name);
        else if (axis->kind == KL_AXIS_CONST)
            kl_buf_printf(b, "    p->axis_%s = INT64_C(%lld);\n", name,
                          (long long)x->workload->axes[i]);
        else
            kl_buf_printf(b, "    p->axis_%s = %s;\n", name, kli_expression(x, axis->expr).ptr);
    }
    for (int i = 0; i < x->task->n_axes; i++)
        kl_buf_printf(b, "    p->bad |= p->axis_%s < 1;\n",
                      kli_export_name(x->arena, x->task->axes[i].name).ptr);
}

static void evaluate_buffers(kl_buf *b, const kli_export *x) {
    for (int i = 0; i < x->kernel->n_buffers; i++) {
        const kl_buffer *m = &x->kernel->buffers[i];
        const char *name = kl_arena_copy(x->arena, m->name).ptr;
        kl_buf_printf(b, "    p->at_%s = p->workspace;\n", name);
        kl_buf_printf(b, "    p->bytes_%s = klx_bytes(&p->bad, %zu, %d, (const int64_t[]){", name,
                      kl_dtype_bytes(m->dtype), m->ndim);
        for (int d = 0; d < m->ndim; d++)
            kl_buf_printf(b, "%s%s", d ? ", " : "", kli_expression(x, m->dims[d].text).ptr);
        kl_buf_printf(
            b, "});\n    p->workspace = klx_behind(&p->bad, p->workspace, p->bytes_%s);\n", name);
    }
}

static void evaluate_domain(kl_buf *b, const kli_export *x, const char *upper) {
    kl_buf_printf(b, "#ifndef %s_ANY_SHAPE\n", upper);
    for (int i = 0; i < x->task->n_axes; i++) {
        const char *name = kli_export_name(x->arena, x->task->axes[i].name).ptr;
        if (is_parameter(x, i))
            kl_buf_printf(b,
                          "    if (p->axis_%s < INT64_C(%lld) || p->axis_%s > INT64_C(%lld))\n"
                          "        return %s_NOT_ADMITTED;\n",
                          name, (long long)x->domain.least[i], name, (long long)x->domain.most[i],
                          upper);
    }
    kl_buf_printf(b, "#endif\n");
}

/* What the device is asked: only where an expression names it. */
static kl_str with_device(const kli_export *x, kl_str text) {
    const char *asks = kli_is_device_code(x) ? "    p->device_sms = module->sms;\n"
                                               "    p->device_smem_max = module->smem_max;\n"
                       : strstr(text.ptr, "p->device_cores")
                           ? "    p->device_cores = sysconf(_SC_NPROCESSORS_ONLN);\n"
                           : "";
    return kl_arena_printf(x->arena, "%s%s", asks, text.ptr);
}

static kl_str evaluate_text(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    const char *upper = kli_export_upper(x->arena, x->name).ptr;
    kl_buf b = {0};
    evaluate_axes(&b, x);
    kl_buf_printf(&b, "    if (p->bad) return %s_BAD_SHAPE;\n", upper);
    for (int i = 0; i < k->n_lets; i++)
        if (!k->lets[i].real)
            kl_buf_printf(&b, "    p->let_%.*s = %s;\n", KL_STR_ARG(k->lets[i].name),
                          kli_expression(x, k->lets[i].expr.text).ptr);
    kl_buf_printf(&b, "    if (p->bad) return %s_BAD_SHAPE;\n", upper);
    for (int i = 0; i < k->n_required; i++)
        kl_buf_printf(&b,
                      "    if (!(%s) || p->bad)\n"
                      "        return p->bad ? %s_BAD_SHAPE : %s_REFUSED;\n",
                      kli_expression(x, k->required[i].text).ptr, upper, upper);
    kl_buf_printf(&b, "    p->threads = %s;\n    p->bad |= p->threads < 1 || p->threads > 4096;\n",
                  k->threads.text.len ? kli_expression(x, k->threads.text).ptr : "1");
    evaluate_buffers(&b, x);
    kl_buf_printf(&b, "    if (p->bad) return %s_BAD_SHAPE;\n", upper);
    evaluate_domain(&b, x, upper);
    return with_device(x, kl_buf_take(&b, x->arena));
}

/* ---- arguments --------------------------------------------------------------------------- */

static int named_in(const kli_export *x, kl_str name, bool buffers) {
    const kl_kernel *k = x->kernel;
    for (int i = 0; i < (buffers ? k->n_buffers : k->n_tensormaps); i++)
        if (kl_str_eq(buffers ? k->buffers[i].name : k->tensormaps[i].name, name)) return i;
    return -1;
}

static const kl_let *real_let(const kli_export *x, kl_str name) {
    for (int i = 0; i < x->kernel->n_lets; i++)
        if (x->kernel->lets[i].real && kl_str_eq(x->kernel->lets[i].name, name))
            return &x->kernel->lets[i];
    return NULL;
}

/* A function of C takes what is narrower than an int as one, and so does a kernel in Python; a
 * launch of CUDA takes its bytes. */
static kl_str scalar_type(const kli_export *x, int tensor) {
    const kl_dtype t = x->workload->dtypes[tensor];
    const bool narrow =
        kl_dtype_bytes(t) < 4 && (!kli_is_device_code(x) || x->kernel->surface->specialize);
    return narrow ? KL_S("int32_t") : kl_str_of(EXPORT_TYPES[t]);
}

kl_str kli_argument_type(const kli_export *x, const kl_arg *arg) {
    const kl_str name = arg->expr.text;
    const bool device = kli_is_device_code(x);
    const int tensor = arg->kind == KL_ARG_NAME ? kl_task_tensor(x->task, name) : -1;
    const kl_let *real = arg->kind == KL_ARG_NAME ? real_let(x, name) : NULL;
    if (tensor >= 0 && x->task->tensors[tensor].is_scalar) return scalar_type(x, tensor);
    if (tensor >= 0 || (arg->kind == KL_ARG_NAME && named_in(x, name, true) >= 0))
        return device ? KL_S("CUdeviceptr") : KL_S("const void *");
    if (arg->kind == KL_ARG_NAME && named_in(x, name, false) >= 0) return KL_S("CUtensorMap");
    if (arg->kind == KL_ARG_F64 || (real && real->type == KL_F64)) return KL_S("double");
    if (arg->kind == KL_ARG_F32 || real) return KL_S("float");
    return arg->kind == KL_ARG_I64 ? KL_S("int64_t") : KL_S("int32_t");
}

kl_str kli_argument(const kli_export *x, const kl_arg *arg) {
    const kl_str name = arg->expr.text;
    kl_arena *a = x->arena;
    if (arg->kind == KL_ARG_I64) return kli_expression(x, name);
    if (arg->kind == KL_ARG_F32 || arg->kind == KL_ARG_F64)
        return kl_arena_printf(a, "(%s)(%s)", arg->kind == KL_ARG_F32 ? "float" : "double",
                               kli_real_expression(x, name).ptr);
    if (arg->kind == KL_ARG_NAME && kl_task_tensor(x->task, name) >= 0)
        return kli_export_name(a, name);
    if (arg->kind == KL_ARG_NAME && named_in(x, name, true) >= 0)
        return kl_arena_printf(a,
                               kli_is_device_code(x) ? "workspace + (CUdeviceptr)p->at_%.*s"
                                                     : "scratch + p->at_%.*s",
                               KL_STR_ARG(name));
    if (arg->kind == KL_ARG_NAME && named_in(x, name, false) >= 0)
        return kl_arena_printf(a, "map_%.*s", KL_STR_ARG(name));
    if (arg->kind == KL_ARG_NAME && real_let(x, name))
        return kl_arena_printf(a, "(%s)real_%.*s", kli_argument_type(x, arg).ptr, KL_STR_ARG(name));
    return kl_arena_printf(a, "klx_i32(&p->bad, %s)", kli_expression(x, name).ptr);
}

kl_str kli_reals_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_lets; i++) {
        const kl_let *let = &x->kernel->lets[i];
        if (!let->real) continue;
        kl_buf_printf(&b, "    const double real_%.*s = klx_finite(&p->bad, %s);\n",
                      KL_STR_ARG(let->name), kli_real_expression(x, let->expr.text).ptr);
        kl_buf_printf(&b, "    (void)real_%.*s;\n", KL_STR_ARG(let->name));
    }
    return kl_buf_take(&b, x->arena);
}

void kli_add_argument(kl_buf *b, const kli_export *x, int launch, int j, const kl_arg *arg) {
    const kl_str type = kli_argument_type(x, arg);
    if (kl_str_eq(type, KL_S("CUtensorMap"))) return; /* encoded by its own name */
    kl_buf_printf(b, "    %.*s%sarg_%d_%d = %s;\n", KL_STR_ARG(type),
                  kl_str_ends(type, KL_S("*")) ? "" : " ", launch, j, kli_argument(x, arg).ptr);
}

static kl_str arguments_text(const kli_export *x) {
    kl_buf b = {0};
    kl_buf_add(&b, kli_reals_text(x));
    for (int i = 0; i < x->kernel->n_launches; i++)
        for (int j = 0; j < x->kernel->launches[i].n_args; j++)
            kli_add_argument(&b, x, i, j, &x->kernel->launches[i].args[j]);
    return kl_buf_take(&b, x->arena);
}

static kl_str pointers_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_tensors; i++) {
        const char *name = kli_export_name(x->arena, x->task->tensors[i].name).ptr;
        if (x->task->tensors[i].is_scalar)
            kl_buf_printf(&b, "    (void)%s;\n", name); /* a kernel may do without */
        else
            kl_buf_printf(&b, "    if (!%s_usable(%s)) return %s_POINTER;\n", x->name, name,
                          kli_export_upper(x->arena, x->name).ptr);
    }
    return kl_buf_take(&b, x->arena);
}

kl_str kli_launcher_values(kli_values *v, const kli_export *x) {
    kli_header_values(v, x);
    const kl_str evaluate = evaluate_text(x);
    kli_value_set(v, "members", plan_members(x));
    kli_value_set(v, "evaluate", evaluate);
    kli_value_set(v, "system_includes",
                  kl_arena_printf(x->arena, "%s%s",
                                  x->kernel->threads.text.len ? "#include <omp.h>\n" : "",
                                  strstr(evaluate.ptr, "sysconf(") ? "#include <unistd.h>\n" : ""));
    kli_value_set(v, "pointers", pointers_text(x));
    kli_value_set(v, "checked", kli_template(v, "checked"));
    return x->kernel->surface->specialize ? (kl_str){0} : arguments_text(x);
}
