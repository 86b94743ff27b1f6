/* defines.c - what a kernel learns at compile time: params, const axes and data types, as -D flags.
 *
 * Shapes are deliberately not here: they are arguments, so that one binary serves every workload.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

static const char *const macros[KL_DTYPE_END] = {
    [KL_F64] = "KL_F64",   [KL_F32] = "KL_F32",       [KL_F16] = "KL_F16",
    [KL_BF16] = "KL_BF16", [KL_F8E4M3] = "KL_F8E4M3", [KL_F8E5M2] = "KL_F8E5M2",
    [KL_I64] = "KL_I64",   [KL_I32] = "KL_I32",       [KL_I16] = "KL_I16",
    [KL_I8] = "KL_I8",     [KL_U8] = "KL_U8",         [KL_BOOL] = "KL_BOOL",
};

typedef struct {
    kl_arena *arena;
    const char **flags;
    size_t n;
} flag_list;

/* Names that are no C identifier (a foreign data set may have them) get no macro. */
static void define(flag_list *l, const char *prefix, kl_str name, const char *value) {
    if (!kli_is_name(name)) return;
    l->flags[l->n++] =
        kl_arena_printf(l->arena, "-D%s%.*s=%s", prefix, KL_STR_ARG(name), value).ptr;
}

static void define_int(flag_list *l, kl_str name, int64_t value) {
    define(l, "KL_", name, kl_arena_printf(l->arena, "%lld", (long long)value).ptr);
}

const char **kli_kernel_defines(kl_arena *a, const kl_kernel *k, const kl_task *t,
                                const kl_workload *w) {
    flag_list l = {.arena = a};
    l.flags = KL_ARRAY(a, const char *,
                       KL_DTYPE_END + 2 * KL_MAX_TENSORS + KL_MAX_PARAMS + KL_MAX_AXES + 1);
    for (int d = 1; d < KL_DTYPE_END; d++)
        l.flags[l.n++] = kl_arena_printf(a, "-D%s=%d", macros[d], d).ptr;
    for (int i = 0; i < t->n_tensors; i++) {
        kl_dtype d = kli_tensor_dtype(k, t, w, i);
        KL_ASSERT(d > 0 && d < KL_DTYPE_END);
        define(&l, "KL_DTYPE_", t->tensors[i].name, macros[d]);
        if (k->surface->types) define(&l, "kl_t_", t->tensors[i].name, k->surface->types[d]);
    }
    for (int i = 0; i < k->n_params; i++) define_int(&l, k->params[i].name, k->params[i].value);
    for (int i = 0; i < t->n_axes; i++)
        if (t->axes[i].kind == KL_AXIS_CONST) define_int(&l, t->axes[i].name, w->axes[i]);
    return l.flags;
}
