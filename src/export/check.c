/* check.c - what the gate loads to judge an export: a plugin over the shared object that its
 * Makefile builds, or a script that calls it from Python as its users do.
 *
 * Both are trusted, being ours; the kernel inside is what was judged before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

static const char *check_axis(const kli_export *x, int axis) {
    for (int i = 0; i < x->task->n_tensors; i++)
        for (int d = 0; d < x->task->tensors[i].ndim; d++)
            if (kl_str_eq(x->task->tensors[i].dims[d], x->task->axes[axis].name))
                return kl_arena_printf(x->arena, "t[%d].dims[%d]", i, d).ptr;
    kl_bug("an axis that a tensor tells", __FILE__, __LINE__);
}

/* ", int64_t" or ", t[0].dims[1]" of each axis that callers give. */
static kl_str check_axes(const kli_export *x, bool types, bool module) {
    kl_buf b = {0};
    if (module) kl_buf_printf(&b, types ? "const void *" : "s->module");
    for (int i = 0; i < x->task->n_axes; i++)
        if (x->task->axes[i].kind == KL_AXIS_VAR)
            kl_buf_printf(&b, "%s%s", b.len ? ", " : "", types ? "int64_t" : check_axis(x, i));
    if (types && !b.len) kl_buf_printf(&b, "void");
    return kl_buf_take(&b, x->arena);
}

static kl_str check_types(const kli_export *x) {
    const bool device = kli_is_device_code(x);
    const char *address = device ? "unsigned long long" : "void *";
    kl_buf b = {0};
    if (device) kl_buf_printf(&b, "const void *, void *, ");
    for (int i = 0; i < x->task->n_axes; i++)
        if (x->task->axes[i].kind == KL_AXIS_VAR) kl_buf_printf(&b, "int64_t, ");
    for (int i = 0; i < x->task->n_tensors; i++)
        kl_buf_printf(&b, "%s, ",
                      x->task->tensors[i].is_scalar ? kli_element_type(x->workload->dtypes[i])
                                                    : address);
    kl_buf_printf(&b, "%s, size_t", address);
    return kl_buf_take(&b, x->arena);
}

static kl_str check_values(const kli_export *x) {
    const bool device = kli_is_device_code(x);
    kl_buf b = {0};
    if (device) kl_buf_printf(&b, "s->module, call->stream, ");
    for (int i = 0; i < x->task->n_axes; i++)
        if (x->task->axes[i].kind == KL_AXIS_VAR) kl_buf_printf(&b, "%s, ", check_axis(x, i));
    for (int i = 0; i < x->task->n_tensors; i++)
        if (x->task->tensors[i].is_scalar)
            kl_buf_printf(&b, "*(const %s *)t[%d].data, ", kli_element_type(x->workload->dtypes[i]),
                          i);
        else
            kl_buf_printf(&b, "%st[%d].data, ", device ? "(unsigned long long)(uintptr_t)" : "", i);
    return kl_buf_take(&b, x->arena);
}

static kl_str plugin_text(const kli_export *x, const char *folder) {
    kli_values v = {0};
    const bool device = kli_is_device_code(x);
    kli_header_values(&v, x);
    kli_value_set(&v, "folder", kl_str_of(folder));
    kli_value_set(&v, "check_types", check_types(x));
    kli_value_set(&v, "check_axis_types", check_axes(x, true, device));
    kli_value_set(&v, "check_axes", check_axes(x, false, device));
    kli_value_set(&v, "check_values", check_values(x));
    kli_value_set(&v, "check_address", device ? KL_S("unsigned long long") : KL_S("void *"));
    kli_value_set(&v, "check_runtime", kli_template(&v, device ? "check_cuda" : "check_cpu"));
    return kli_template(&v, "check_plugin");
}

/* ---- scripts ----------------------------------------------------------------------------- */

/* How a form is loaded in Python, and called; `writes`: outputs are given to it. */
typedef struct {
    const char *form, *import, *call;
    bool writes;
} check_way;

static const check_way CHECK_WAYS[] = {
    {"torch", "import {{name}} as exported", "exported.{{name}}({{op_names}})", false},
    {"triton", "import {{name}} as exported", "exported.{{name}}({{op_names}})", false},
    {"kernelbench", "from model_new import ModelNew\n\nexported = ModelNew()",
     "exported({{op_names}})", false},
    {"kernels",
     "from kernels import get_local_kernel\n\nexported = get_local_kernel(FOLDER, "
     "backend=\"{{device}}\")",
     "exported.{{name}}({{op_names}})", false},
    {"tvm-ffi",
     "import torch\nimport tvm_ffi\n\nexported = tvm_ffi.load_module(str(FOLDER / "
     "\"{{name}}.so\"))",
     "exported.{{name}}({{run_parameters}})", true},
    {"flashinfer",
     "import importlib\nimport json\n\nfor source in json.loads((FOLDER / "
     "\"solution.json\").read_text())[\"sources\"]:\n    place = FOLDER / \"solution\" / "
     "source[\"path\"]\n    place.parent.mkdir(parents=True, exist_ok=True)\n    "
     "place.write_text(source[\"content\"])\nexported = importlib.import_module(\"solution.main\")",
     "exported.run({{run_parameters}})", true},
};

static const check_way *way_of(const char *form) {
    for (size_t i = 0; i < KL_COUNT(CHECK_WAYS); i++)
        if (strcmp(CHECK_WAYS[i].form, form) == 0) return &CHECK_WAYS[i];
    return NULL;
}

static kl_err script_text(kl_str *out, const kli_export *x, const check_way *way,
                          const char *folder, kl_error *e) {
    kli_values v = {0};
    const kl_err err = kli_python_values(&v, x, e);
    if (err) return err;
    kli_operator_values(&v, x);
    kli_value_set(&v, "folder", kl_str_of(folder));
    kli_value_set(
        &v, "check_parameters",
        kli_template_of(&v, way->writes ? KL_S("{{run_parameters}}") : KL_S("{{op_names}}")));
    kli_value_set(&v, "check_import", kli_template_of(&v, kl_str_of(way->import)));
    kli_value_set(&v, "check_call", kli_template_of(&v, kl_str_of(way->call)));
    *out = kli_template(&v, "check_script");
    return KL_OK;
}

bool kli_export_is_told(const kli_export *x) { return !kli_untold_axis(x); }

/* ---- which, and what is built before ----------------------------------------------------- */

kl_err kli_export_checker(kli_export_checker_text *out, const kli_export *x, const char *form,
                          const char *folder, kl_error *e) {
    const check_way *way = way_of(form);
    const kl_axis *untold = kli_untold_axis(x);
    *out = (kli_export_checker_text){.file = way ? "check.py" : "check.c"};
    if (untold) {
        kl_fail(e, KL_EINVAL, "--check",
                "no tensor has the axis %.*s, and a baseline is given tensors alone",
                KL_STR_ARG(untold->name));
        return kl_hint(e, "leave --check out");
    }
    if (!way && strcmp(form, "c") != 0) {
        kl_fail(e, KL_EINVAL, "--check", "what is exported as %s is called by a program of its own",
                form);
        return kl_hint(e, "--as c --check judges the launcher that is in it");
    }
    if (!way)
        out->target = kl_arena_printf(x->arena, "lib%s.so", x->name).ptr;
    else if (strcmp(form, "tvm-ffi") == 0)
        out->target = kl_arena_printf(x->arena, "%s.so", x->name).ptr;
    if (way) return script_text(&out->text, x, way, folder, e);
    out->text = plugin_text(x, folder);
    return KL_OK;
}
