/* tvm_ffi.c - the form `tvm-ffi`: a shared object with a function of the stable C ABI of tvm-ffi,
 * which calls the launcher of the form `c`, in a folder of its own.
 *
 * Outputs are the caller's, as FlashInfer and TVM pass them.  SPDX-License-Identifier: Apache-2.0
 */
#include "export_impl.h"

#include <string.h>

static const struct {
    const char *code;
    int bits;
} DLPACK_TYPES[KL_DTYPE_END] = {[KL_F64] = {"kDLFloat", 64},
                                [KL_F32] = {"kDLFloat", 32},
                                [KL_F16] = {"kDLFloat", 16},
                                [KL_BF16] = {"kDLBfloat", 16},
                                [KL_F8E4M3] = {"kDLFloat8_e4m3fn", 8},
                                [KL_F8E5M2] = {"kDLFloat8_e5m2", 8},
                                [KL_I64] = {"kDLInt", 64},
                                [KL_I32] = {"kDLInt", 32},
                                [KL_I16] = {"kDLInt", 16},
                                [KL_I8] = {"kDLInt", 8},
                                [KL_U8] = {"kDLUInt", 8},
                                [KL_BOOL] = {"kDLBool", 8}};

static const char *tvm_name(const kli_export *x, int tensor) {
    return kli_export_name(x->arena, x->task->tensors[tensor].name).ptr;
}

static bool is_var_axis(const kli_export *x, int i) { return x->task->axes[i].kind == KL_AXIS_VAR; }

/* The first tensor that has the axis, or -1. */
static int tensor_of_axis(const kli_export *x, int axis, int *dim) {
    for (int i = 0; i < x->task->n_tensors; i++)
        for (int d = 0; d < x->task->tensors[i].ndim; d++)
            if (kl_str_eq(x->task->tensors[i].dims[d], x->task->axes[axis].name))
                return *dim = d, i;
    return -1;
}

/* Names of the arguments: tensors, then what none of them tells. */
static kl_str tvm_names(const kli_export *x, int *n) {
    kl_buf b = {0};
    int dim;
    *n = 0;
    for (int i = 0; i < x->task->n_tensors; i++)
        kl_buf_printf(&b, "%s%s", (*n)++ ? ", " : "", tvm_name(x, i));
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var_axis(x, i) && tensor_of_axis(x, i, &dim) < 0)
            kl_buf_printf(&b, "%s%s", (*n)++ ? ", " : "",
                          kli_export_name(x->arena, x->task->axes[i].name).ptr);
    return kl_buf_take(&b, x->arena);
}

static kl_str tvm_arguments(const kli_export *x, const char *first) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_tensors; i++) {
        const char *name = tvm_name(x, i);
        const kl_dtype t = x->workload->dtypes[i];
        if (x->task->tensors[i].is_scalar)
            kl_buf_printf(&b, "    const %s %s = klx_%s(&args[%d], &bad);\n",
                          kl_dtype_is_float(t) ? "double" : "int64_t", name,
                          kl_dtype_is_float(t) ? "real" : "integer", i);
        else
            kl_buf_printf(&b, "    const DLTensor *const %s = klx_tensor(&args[%d]);\n", name, i);
    }
    kl_buf_printf(&b, "    if (!%s) return klx_raise(\"TypeError\", \"%s: %s is no tensor\");\n",
                  first, x->name, first);
    for (int i = 0; i < x->task->n_tensors; i++) {
        const kl_dtype t = x->workload->dtypes[i];
        if (x->task->tensors[i].is_scalar) continue;
        kl_buf_printf(&b, "    if (klx_check(%s, \"%s\", %s, %d, %d, %s->device)) return -1;\n",
                      tvm_name(x, i), tvm_name(x, i), DLPACK_TYPES[t].code, DLPACK_TYPES[t].bits,
                      x->task->tensors[i].ndim, first);
    }
    return kl_buf_take(&b, x->arena);
}

static kl_str tvm_axes(const kli_export *x) {
    kl_buf b = {0};
    int argument = x->task->n_tensors, dim = 0;
    for (int i = 0; i < x->task->n_axes; i++) {
        const kl_axis *axis = &x->task->axes[i];
        const char *name = kli_export_name(x->arena, axis->name).ptr;
        const int from = is_var_axis(x, i) ? tensor_of_axis(x, i, &dim) : -1;
        if (from >= 0)
            kl_buf_printf(&b, "    p->axis_%s = %s->shape[%d];\n", name, tvm_name(x, from), dim);
        else if (is_var_axis(x, i))
            kl_buf_printf(&b, "    p->axis_%s = klx_integer(&args[%d], &bad);\n", name, argument++);
        else if (axis->kind == KL_AXIS_CONST)
            kl_buf_printf(&b, "    p->axis_%s = INT64_C(%lld);\n", name,
                          (long long)x->workload->axes[i]);
        else
            kl_buf_printf(&b, "    p->axis_%s = %s;\n", name, kli_expression(x, axis->expr).ptr);
    }
    kl_buf_printf(&b,
                  "    if (bad) return klx_raise(\"TypeError\", \"%s: a size was expected\");\n",
                  x->name);
    return kl_buf_take(&b, x->arena);
}

static kl_str tvm_shapes(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_tensors; i++)
        for (int d = 0; d < x->task->tensors[i].ndim; d++)
            kl_buf_printf(&b, "    if (klx_size(%s, \"%s\", %d, %s)) return -1;\n", tvm_name(x, i),
                          tvm_name(x, i), d, kli_expression(x, x->task->tensors[i].dims[d]).ptr);
    kl_buf_printf(&b, "    if (p->bad) return klx_refused(%s_BAD_SHAPE);\n",
                  kli_export_upper(x->arena, x->name).ptr);
    return kl_buf_take(&b, x->arena);
}

static kl_str axis_members(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        kl_buf_printf(&b, "    int64_t axis_%s;\n",
                      kli_export_name(x->arena, x->task->axes[i].name).ptr);
    return kl_buf_take(&b, x->arena);
}

static kl_str axis_values(const kli_export *x, bool leads) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        if (is_var_axis(x, i))
            kl_buf_printf(&b, "%sp->axis_%s", leads || b.len ? ", " : "",
                          kli_export_name(x->arena, x->task->axes[i].name).ptr);
    return kl_buf_take(&b, x->arena);
}

static kl_str tvm_call_values(const kli_export *x) {
    const bool device = kli_is_device_code(x);
    const kl_str axes = axis_values(x, false);
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s%s", KL_STR_ARG(axes), axes.len ? ", " : "");
    for (int i = 0; i < x->task->n_tensors; i++) {
        const char *name = tvm_name(x, i), *type = kli_element_type(x->workload->dtypes[i]);
        if (x->task->tensors[i].is_scalar)
            kl_buf_printf(&b, "(%s)%s, ", type, name);
        else if (device)
            kl_buf_printf(&b, "(CUdeviceptr)(uintptr_t)klx_data(%s), ", name);
        else
            kl_buf_printf(&b, "(%s *)(void *)klx_data(%s), ", type, name);
    }
    return kl_buf_take(&b, x->arena);
}

static void tvm_values(kli_values *v, const kli_export *x, int first) {
    const bool device = kli_is_device_code(x);
    kl_arena *a = x->arena;
    int n;
    const kl_str names = tvm_names(x, &n);
    kli_value_set(v, "tvm_names", names);
    kli_value_set(v, "tvm_count", kl_arena_printf(a, "%d", n));
    kli_value_set(v, "dl_device", device ? KL_S("kDLCUDA") : KL_S("kDLCPU"));
    kli_value_set(v, "axis_members", axis_members(x));
    kli_value_set(v, "axis_values", axis_values(x, false));
    kli_value_set(v, "comma_axis_values", axis_values(x, true));
    kli_value_set(v, "call_values", tvm_call_values(x));
    kli_value_set(v, "checked", kli_template(v, "checked"));
    kli_value_set(v, "tvm_arguments", tvm_arguments(x, tvm_name(x, first)));
    kli_value_set(v, "tvm_axes", tvm_axes(x));
    kli_value_set(v, "tvm_shapes", tvm_shapes(x));
    kli_value_set(v, "tvm_runtime", kli_template(v, device ? "tvm_ffi_cuda" : "tvm_ffi_cpu"));
    kli_value_set(v, "tvm_call",
                  kli_template(v, device ? "tvm_ffi_cuda_call" : "tvm_ffi_cpu_call"));
    kli_value_set(v, "first_index", kl_arena_printf(a, "%d", first));
    kli_value_set(v, "n_inputs", kl_arena_printf(a, "%d", x->task->n_inputs));
    kli_value_set(v, "cuda_home", device ? KL_S("CUDA_HOME = /usr/local/cuda\n") : KL_S(""));
    kli_value_set(v, "cuda_include", device ? KL_S("-I$(CUDA_HOME)/include ") : KL_S(""));
    kli_value_set(v, "libraries",
                  device ? KL_S("-L$(CUDA_HOME)/lib64/stubs -lcuda -lm") : kli_libraries(x));
}

kl_err kli_export_tvm_ffi(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    kl_arena *a = x->arena;
    kl_err err = kli_python_values(&v, x, e);
    if (err) return err;
    kli_operator_values(&v, x);
    int first = 0;
    while (x->task->tensors[first].is_scalar) first++;
    tvm_values(&v, x, first);
    kli_files_add(out, kl_arena_printf(a, "%s_tvm_ffi.c", x->name), kli_template(&v, "tvm_ffi"));
    kli_files_add(out, KL_S("Makefile"), kli_template(&v, "tvm_ffi_makefile"));
    kli_files_add(out, kl_arena_printf(a, "test_%s.py", x->name), kli_template(&v, "tvm_ffi_test"));
    return kli_export_native(out, x, "native", e);
}
