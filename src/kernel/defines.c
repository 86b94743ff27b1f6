/* defines.c - what a kernel learns at compile time: params, const axes and data types, as -D flags.
 *
 * Shapes are deliberately not here: they are arguments, so that one binary serves every workload.  Type names need no
 * header and, in opencl, hold no space, because clBuildProgram splits its options at spaces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

typedef struct {
    const char *macro, *c, *opencl, *cuda;
} type_row;

static const type_row types[KL_DTYPE_END] = {
    [KL_F64] = {"KL_F64", "double", "double", "double"},
    [KL_F32] = {"KL_F32", "float", "float", "float"},
    [KL_F16] = {"KL_F16", "_Float16", "half", "__half"},
    [KL_BF16] = {"KL_BF16", "unsigned short", "ushort", "__nv_bfloat16"},
    [KL_F8E4M3] = {"KL_F8E4M3", "unsigned char", "uchar", "__nv_fp8_e4m3"},
    [KL_F8E5M2] = {"KL_F8E5M2", "unsigned char", "uchar", "__nv_fp8_e5m2"},
    [KL_I64] = {"KL_I64", "long", "long", "long long"},
    [KL_I32] = {"KL_I32", "int", "int", "int"},
    [KL_I16] = {"KL_I16", "short", "short", "short"},
    [KL_I8] = {"KL_I8", "signed char", "char", "signed char"},
    [KL_U8] = {"KL_U8", "unsigned char", "uchar", "unsigned char"},
    [KL_BOOL] = {"KL_BOOL", "unsigned char", "uchar", "bool"},
};

static const char *type_name(kl_surface_id surface, kl_dtype t)
{
    switch (surface) {
    case KL_SURFACE_OPENCL:
        return types[t].opencl;
    case KL_SURFACE_CUDA:
        return types[t].cuda;
    case KL_SURFACE_NONE:
    case KL_SURFACE_C:
    case KL_SURFACE_TRITON:
    case KL_SURFACE_TILELANG:
        break;
    }
    return types[t].c;
}

typedef struct {
    kl_arena *arena;
    const char **flags;
    size_t n;
} flag_list;

/* Names that are no C identifier (a foreign data set may have them) get no macro. */
static void define(flag_list *l, const char *prefix, kl_str name, const char *value)
{
    if (!kli_is_name(name)) return;
    l->flags[l->n++] = kl_arena_printf(l->arena, "-D%s%.*s=%s", prefix, KL_STR_ARG(name), value).ptr;
}

static void define_int(flag_list *l, kl_str name, int64_t value)
{
    define(l, "KL_", name, kl_arena_printf(l->arena, "%lld", (long long)value).ptr);
}

const char **kl_kernel_defines(kl_arena *a, const kl_kernel *k, const kl_task *t, const kl_workload *w)
{
    flag_list l = {.arena = a};
    l.flags = KL_ARRAY(a, const char *, KL_DTYPE_END + 2 * KL_MAX_TENSORS + KL_MAX_PARAMS + KL_MAX_AXES + 1);
    for (int d = 1; d < KL_DTYPE_END; d++) l.flags[l.n++] = kl_arena_printf(a, "-D%s=%d", types[d].macro, d).ptr;
    for (int i = 0; i < t->n_tensors; i++) {
        kl_dtype d = kli_tensor_dtype(k, t, w, i);
        KL_ASSERT(d > 0 && d < KL_DTYPE_END);
        define(&l, "KL_DTYPE_", t->tensors[i].name, types[d].macro);
        define(&l, "kl_t_", t->tensors[i].name, type_name(k->surface->id, d));
    }
    for (int i = 0; i < k->n_params; i++) define_int(&l, k->params[i].name, k->params[i].value);
    for (int i = 0; i < t->n_axes; i++)
        if (t->axes[i].kind == KL_AXIS_CONST) define_int(&l, t->axes[i].name, w->axes[i]);
    return l.flags;
}
