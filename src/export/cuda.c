/* cuda.c - the form `c`, for device code: a launcher over the CUDA driver API with the cubin
 * inside.
 *
 * What src/backend/runner_cuda.c does with a plan, as text: sizes, tensor maps and values of each
 * launch.  All of them are evaluated before the first is enqueued, so a shape that is refused
 * leaves nothing behind in a stream or a graph.  SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include "base/fs.h"
#include "kernel/launch.h"
#include <string.h>

#define MAX_CODE_BYTES ((size_t)64 << 20)

/* ---- tensor maps ------------------------------------------------------------------------- */

static const char *map_type(kl_dtype t) {
    switch (t) {
    case KL_F16:
        return "CU_TENSOR_MAP_DATA_TYPE_FLOAT16";
    case KL_F32:
        return "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
    case KL_F64:
        return "CU_TENSOR_MAP_DATA_TYPE_FLOAT64";
    case KL_BF16:
        return "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
    case KL_I64:
        return "CU_TENSOR_MAP_DATA_TYPE_INT64";
    case KL_I32:
        return "CU_TENSOR_MAP_DATA_TYPE_INT32";
    case KL_I16:
        return "CU_TENSOR_MAP_DATA_TYPE_UINT16";
    default:
        return "CU_TENSOR_MAP_DATA_TYPE_UINT8";
    }
}

/* The described tensor or buffer: its type, and its shape as expressions, outermost first. */
typedef struct {
    kl_dtype type;
    int n;
    kl_str dims[KL_MAX_DIMS];
    const char *base;
} described;

static described describe_map(const kli_export *x, const kl_tensormap *m) {
    const int tensor = kl_task_tensor(x->task, m->tensor);
    described d = {0};
    if (tensor >= 0) {
        const kl_tensor *t = &x->task->tensors[tensor];
        d = (described){.type = x->workload->dtypes[tensor],
                        .n = t->ndim,
                        .base = kli_export_name(x->arena, t->name).ptr};
        memcpy(d.dims, t->dims, sizeof d.dims);
        return d;
    }
    for (int i = 0; i < x->kernel->n_buffers; i++) {
        const kl_buffer *b = &x->kernel->buffers[i];
        if (!kl_str_eq(b->name, m->tensor)) continue;
        d = (described){.type = b->dtype, .n = b->ndim};
        d.base =
            kl_arena_printf(x->arena, "workspace + (CUdeviceptr)p->at_%.*s", KL_STR_ARG(b->name))
                .ptr;
        for (int j = 0; j < b->ndim; j++) d.dims[j] = b->dims[j].text;
    }
    return d;
}

/* "const int64_t box_tA[] = {...};"; nothing where there is none, and its name or NULL is in `as`.
 */
static const char *map_list(kl_buf *b, const kli_export *x, const char *what, kl_str map,
                            const kl_expr *exprs, int n) {
    if (!n) return "NULL";
    kl_buf_printf(b, "    const int64_t %s_%.*s[] = {", what, KL_STR_ARG(map));
    for (int i = 0; i < n; i++)
        kl_buf_printf(b, "%s%s", i ? ", " : "", kli_expression(x, exprs[i].text).ptr);
    kl_buf_printf(b, "};\n");
    return kl_arena_printf(x->arena, "%s_%.*s", what, KL_STR_ARG(map)).ptr;
}

static const char *map_choice(const kli_export *x, const kl_tensormap *m, kl_tensormap_option o) {
    return m->n_options[o] ? kli_expression(x, m->options[o][0].text).ptr : "0";
}

static void add_map(kl_buf *b, const kli_export *x, const kl_tensormap *m) {
    const described d = describe_map(x, m);
    const char *dims = map_list(b, x, "dims", m->name, m->options[KL_OPT_DIMS],
                                m->n_options[KL_OPT_DIMS]),
               *strides = map_list(b, x, "strides", m->name, m->options[KL_OPT_STRIDES],
                                   m->n_options[KL_OPT_STRIDES]),
               *box =
                   map_list(b, x, "box", m->name, m->options[KL_OPT_BOX], m->n_options[KL_OPT_BOX]);
    kl_buf_printf(b, "    const int64_t shape_%.*s[] = {", KL_STR_ARG(m->name));
    for (int i = 0; i < d.n; i++)
        kl_buf_printf(b, "%s%s", i ? ", " : "", kli_expression(x, d.dims[i]).ptr);
    kl_buf_printf(b, "%s};\n", d.n ? "" : "1");
    kl_buf_printf(
        b, "    const klx_view view_%.*s = {%s, %zu, %d, %d,\n        shape_%.*s, %s, %s, %s",
        KL_STR_ARG(m->name), map_type(d.type), kl_dtype_bytes(d.type), m->n_options[KL_OPT_BOX],
        d.n, KL_STR_ARG(m->name), dims, strides, box);
    kl_buf_printf(b, ", %s, %s, %s};\n", map_choice(x, m, KL_OPT_SWIZZLE),
                  map_choice(x, m, KL_OPT_INTERLEAVE), map_choice(x, m, KL_OPT_L2));
    kl_buf_printf(b,
                  "    CUtensorMap map_%.*s;\n"
                  "    if (!r) r = klx_encode(&p->bad, &map_%.*s, %s, &view_%.*s);\n",
                  KL_STR_ARG(m->name), KL_STR_ARG(m->name), d.base, KL_STR_ARG(m->name));
}

static kl_str maps_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_tensormaps; i++) add_map(&b, x, &x->kernel->tensormaps[i]);
    return kl_buf_take(&b, x->arena);
}

/* ---- launches ---------------------------------------------------------------------------- */

static void add_sizes(kl_buf *b, const kli_export *x, int launch, const char *what, kl_clause c,
                      const int64_t most[3]) {
    const kl_launch *l = &x->kernel->launches[launch];
    kl_buf_printf(b, "    const unsigned %s_%d[3] = {", what, launch);
    for (int d = 0; d < 3; d++) {
        const char *size = d < l->n_clauses[c] ? kli_expression(x, l->clauses[c][d].text).ptr : "1";
        kl_buf_printf(b, "%sklx_size(&p->bad, %s, 1, INT64_C(%lld))", d ? ", " : "", size,
                      (long long)most[d]);
    }
    kl_buf_printf(b, "};\n");
}

static kl_str sizes_of_launches(const kli_export *x) {
    static const int64_t block[3] = {1024, 1024, 64}, cluster[3] = {16, 16, 16};
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_launches; i++) {
        const kl_launch *l = &x->kernel->launches[i];
        add_sizes(&b, x, i, "grid", KL_CLAUSE_GRID, kli_cuda_grid_most);
        add_sizes(&b, x, i, "block", KL_CLAUSE_BLOCK, block);
        add_sizes(&b, x, i, "cluster", KL_CLAUSE_CLUSTER, cluster);
        kl_buf_printf(
            &b, "    const unsigned smem_%d = klx_size(&p->bad, %s, 0, module->smem_max);\n", i,
            l->n_clauses[KL_CLAUSE_SMEM] ? kli_expression(x, l->clauses[KL_CLAUSE_SMEM][0].text).ptr
                                         : "0");
    }
    return kl_buf_take(&b, x->arena);
}

static void add_values(kl_buf *b, const kli_export *x, int launch) {
    const kl_launch *l = &x->kernel->launches[launch];
    kl_buf_printf(b, "    void *values_%d[] = {", launch);
    for (int j = 0; j < l->n_args; j++) {
        const bool map = kl_str_eq(kli_argument_type(x, &l->args[j]), KL_S("CUtensorMap"));
        if (map)
            kl_buf_printf(b, "%s&map_%.*s", j ? ", " : "", KL_STR_ARG(l->args[j].expr.text));
        else
            kl_buf_printf(b, "%s&arg_%d_%d", j ? ", " : "", launch, j);
    }
    kl_buf_printf(b, "%s};\n", l->n_args ? "" : "NULL");
}

static kl_str cuda_calls(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    kl_buf b = {0};
    for (int i = 0; i < k->n_buffers; i++)
        if (k->buffers[i].zero)
            kl_buf_printf(&b,
                          "    if (!r) r = cuMemsetD8Async(workspace + (CUdeviceptr)p->at_%.*s, 0, "
                          "(size_t)p->bytes_%.*s, stream);\n",
                          KL_STR_ARG(k->buffers[i].name), KL_STR_ARG(k->buffers[i].name));
    for (int i = 0; i < k->n_launches; i++) {
        add_values(&b, x, i);
        kl_buf_printf(
            &b,
            "    if (!r) r = klx_launch(module->functions[%d], stream, grid_%d, block_%d, "
            "cluster_%d, smem_%d, values_%d);\n",
            i, i, i, i, i, i);
    }
    return kl_buf_take(&b, x->arena);
}

static kl_str entries_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_launches; i++)
        kl_buf_printf(&b, "%s\"%.*s\"", i ? ", " : "", KL_STR_ARG(x->kernel->launches[i].entry));
    return kl_buf_take(&b, x->arena);
}

/* ---- the code ---------------------------------------------------------------------------- */

static kl_err code_text(kl_str *out, const kli_export *x, kl_error *e) {
    kl_str code;
    kl_buf b = {0};
    const kl_err err = kli_fs_read(&code, x->arena, x->artefact.path.ptr, MAX_CODE_BYTES, e);
    if (err) return err;
    kl_buf_printf(&b,
                  "/* %s_code.c - the compiled kernel for %.*s, as the driver loads it: sha256\n"
                  " * %s */\n"
                  "extern const unsigned char %s_code[];\n"
                  "__attribute__((aligned(64))) const unsigned char %s_code[] = {",
                  x->name, KL_STR_ARG(x->arch), x->artefact.hash, x->name, x->name);
    for (size_t i = 0; i < code.len; i++)
        kl_buf_printf(&b, "%s%u,", i % 20 ? "" : "\n", (unsigned)(unsigned char)code.ptr[i]);
    kl_buf_printf(&b, "\n};\n");
    *out = kl_buf_take(&b, x->arena);
    return KL_OK;
}

kl_err kli_export_cuda(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    kl_str code;
    kl_arena *a = x->arena;
    const kl_err err = code_text(&code, x, e);
    if (err) return err;
    KL_ASSERT(x->artefact.ok && x->arch.len);
    kli_launcher_values(&v, x);
    kli_value_set(&v, "arch", x->arch);
    kli_value_set(&v, "n_launches", kl_arena_printf(a, "%d", x->kernel->n_launches));
    kli_value_set(&v, "entries", entries_text(x));
    kli_value_set(&v, "maps", maps_text(x));
    kli_value_set(&v, "sizes_of_launches", sizes_of_launches(x));
    kli_value_set(&v, "calls", cuda_calls(x));
    kli_files_add(out, kl_arena_printf(a, "%s.h", x->name), kli_template(&v, "cuda_header"));
    kli_files_add(out, kl_arena_printf(a, "%s.c", x->name), kli_template(&v, "cuda_launcher"));
    kli_files_add(out, kl_arena_printf(a, "%s_code.c", x->name), code);
    kli_files_add(out, KL_S("kernel.cu"), x->kernel->source);
    kli_files_add(out, KL_S("Makefile"), kli_template(&v, "cuda_makefile"));
    return KL_OK;
}
