/* cuda.c - the form `c`, for device code: a launcher over the CUDA driver API with the cubin
 * inside.
 *
 * What src/backend/runner_cuda.c does with a plan, as text: sizes, tensor maps and values of each
 * launch.  All of them are evaluated before the first is enqueued, so a shape that is refused
 * leaves nothing behind in a stream or a graph.  SPDX-License-Identifier: Apache-2.0 */
#include "cuda_impl.h"

#include "base/fs.h"
#include "base/json.h"
#include "kernel/launch.h"
#include <string.h>

#define MAX_CODE_BYTES ((size_t)64 << 20)

/* ---- tensor maps ------------------------------------------------------------------------- */

const char *kli_map_type(kl_dtype t) {
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

kli_described kli_describe_memory(const kli_export *x, kl_str name) {
    const int tensor = kl_task_tensor(x->task, name);
    kli_described d = {0};
    if (tensor >= 0) {
        const kl_tensor *t = &x->task->tensors[tensor];
        d = (kli_described){.type = x->workload->dtypes[tensor],
                            .n = t->ndim,
                            .base = kli_export_name(x->arena, t->name).ptr};
        memcpy(d.dims, t->dims, sizeof d.dims);
        return d;
    }
    for (int i = 0; i < x->kernel->n_buffers; i++) {
        const kl_buffer *b = &x->kernel->buffers[i];
        if (!kl_str_eq(b->name, name)) continue;
        d = (kli_described){.type = b->dtype, .n = b->ndim};
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

void kli_add_view(kl_buf *b, const kli_export *x, const kl_tensormap *m) {
    const kli_described d = kli_describe_memory(x, m->tensor);
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
        b, "    const klx_view view_%.*s = {%s, %zu, %d, %d,\n        shape_%.*s, %s, %s, %zu, %s",
        KL_STR_ARG(m->name), kli_map_type(d.type), kl_dtype_bytes(d.type), m->n_options[KL_OPT_BOX],
        d.n, KL_STR_ARG(m->name), dims, strides, kl_dtype_bytes(d.type), box);
    kl_buf_printf(b, ", %s, %s, %s};\n", map_choice(x, m, KL_OPT_SWIZZLE),
                  map_choice(x, m, KL_OPT_INTERLEAVE), map_choice(x, m, KL_OPT_L2));
    kl_buf_printf(b, "    (void)view_%.*s;\n", KL_STR_ARG(m->name));
}

static kl_str maps_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_tensormaps; i++) {
        const kl_tensormap *m = &x->kernel->tensormaps[i];
        kli_add_view(&b, x, m);
        kl_buf_printf(&b,
                      "    CUtensorMap map_%.*s;\n"
                      "    if (!r) r = klx_encode(&p->bad, &map_%.*s, %s, &view_%.*s);\n",
                      KL_STR_ARG(m->name), KL_STR_ARG(m->name),
                      kli_describe_memory(x, m->tensor).base, KL_STR_ARG(m->name));
    }
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

kl_str kli_sizes_of_launches(const kli_export *x, bool decided) {
    static const int64_t block[3] = {1024, 1024, 64}, cluster[3] = {16, 16, 16};
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_launches; i++) {
        const kl_launch *l = &x->kernel->launches[i];
        add_sizes(&b, x, i, "grid", KL_CLAUSE_GRID, kli_cuda_grid_most);
        add_sizes(&b, x, i, "block", KL_CLAUSE_BLOCK, block);
        add_sizes(&b, x, i, "cluster", KL_CLAUSE_CLUSTER, cluster);
        if (decided) {
            kl_buf_printf(&b, "    (void)grid_%d, (void)block_%d, (void)cluster_%d;\n", i, i, i);
            continue;
        }
        kl_buf_printf(
            &b, "    const unsigned smem_%d = klx_size(&p->bad, %s, 0, module->smem_max);\n", i,
            l->n_clauses[KL_CLAUSE_SMEM] ? kli_expression(x, l->clauses[KL_CLAUSE_SMEM][0].text).ptr
                                         : "0");
    }
    return kl_buf_take(&b, x->arena);
}

kl_str kli_cleared_text(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    kl_buf b = {0};
    for (int i = 0; i < k->n_buffers; i++)
        if (k->buffers[i].zero)
            kl_buf_printf(&b,
                          "    if (!r) r = cuMemsetD8Async(workspace + (CUdeviceptr)p->at_%.*s, 0, "
                          "(size_t)p->bytes_%.*s, stream);\n",
                          KL_STR_ARG(k->buffers[i].name), KL_STR_ARG(k->buffers[i].name));
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

/* What a launch of a kernel does whose directives say all. */
static kl_str directed_body(const kli_export *x, kl_str arguments) {
    const kl_kernel *k = x->kernel;
    kl_buf b = {0};
    kl_buf_add(&b, arguments);
    kl_buf_add(&b, maps_text(x));
    kl_buf_add(&b, kli_sizes_of_launches(x, false));
    kl_buf_printf(&b, "    if (p->bad) return %s_BAD_SHAPE;\n",
                  kli_export_upper(x->arena, x->name).ptr);
    kl_buf_add(&b, kli_cleared_text(x));
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

/* ---- codes ------------------------------------------------------------------------------- */

static json_t *completion_of(const kli_export *x, int variant) {
    json_t *root = NULL;
    const kl_err err = kli_json_parse(&root, x->variants[variant].artefact.completion,
                                      KL_S("completion"), kl_ignored());
    KL_ASSERT(!err && json_array_size(json_object_get(root, "launches"))); /* variant.c saw to it */
    return root;
}

typedef struct {
    kl_buf launchers, functions, hidden, cases;
    int n_functions;
} code_texts;

static void add_function(code_texts *t, int code, kl_str entry) {
    kl_buf_printf(&t->functions, "%s{%d, \"%.*s\"}", t->n_functions++ ? ", " : "", code,
                  KL_STR_ARG(entry));
}

static void add_launcher(code_texts *t, const kli_values *v, int code, kl_str body) {
    kli_values with = *v;
    kli_value_set(&with, "code", kl_arena_printf(v->arena, "%d", code));
    kli_value_set(&with, "body", body);
    kl_buf_add(&t->launchers, kli_template(&with, "cuda_launch"));
    kl_buf_add(&t->cases, kli_template(&with, "cuda_case"));
}

static void add_directed(code_texts *t, const kli_values *v, const kli_export *x,
                         kl_str arguments) {
    for (int i = 0; i < x->kernel->n_launches; i++)
        add_function(t, 0, x->kernel->launches[i].entry);
    add_launcher(t, v, 0, directed_body(x, arguments));
}

static void add_decided(code_texts *t, const kli_values *v, const kli_export *x, int code) {
    json_t *root = completion_of(x, code);
    const json_t *launches = json_object_get(root, "launches");
    const int first = t->n_functions;
    for (size_t i = 0; i < json_array_size(launches); i++) {
        const json_t *o = json_array_get(launches, i);
        const kl_launch *l = &x->kernel->launches[kli_json_int_or(o, "of", 0)];
        add_function(t, code, kl_arena_copy(x->arena, kli_json_text_or(o, "entry", l->entry)));
    }
    add_launcher(t, v, code, kli_decided_body(x, root, first));
    kl_buf_add(&t->hidden, kli_decided_hidden(x, root));
    json_decref(root);
}

/* ---- which code is for a shape ----------------------------------------------------------- */

static void cuda_add_key(kl_buf *b, const kli_export *x, const kli_key *key) {
    const char *value =
        key->scalar ? kli_export_name(x->arena, key->text).ptr : kli_expression(x, key->text).ptr;
    kl_buf_printf(b, key->kind == KLI_KEY_CLASS ? "klx_class(%s), " : "%s, ", value);
}

static kl_str select_text(const kli_export *x) {
    const kli_keys keys = kli_export_keys(x);
    kl_buf b = {0};
    if (!keys.n) return KL_S("    code = 0;\n");
    kl_buf_printf(&b, "    static const int64_t known[%d][%d] = {\n", x->n_variants, keys.n);
    for (int i = 0; i < x->n_variants; i++) {
        kl_buf_printf(&b, "        {");
        for (int k = 0; k < keys.n; k++)
            kl_buf_printf(&b, "%s%lld", k ? ", " : "", (long long)x->variants[i].keys[k]);
        kl_buf_printf(&b, "},\n");
    }
    kl_buf_printf(&b, "    };\n    const int64_t keys[%d] = {", keys.n);
    for (int k = 0; k < keys.n; k++) cuda_add_key(&b, x, &keys.at[k]);
    kl_buf_printf(&b,
                  "};\n"
                  "    for (int i = 0; i < %d; i++)\n"
                  "        if (memcmp(keys, known[i], sizeof keys) == 0) code = i;\n",
                  x->n_variants);
    return kl_buf_take(&b, x->arena);
}

/* ---- the code ---------------------------------------------------------------------------- */

static kl_err add_code(kl_buf *b, const kli_export *x, int variant, kl_error *e) {
    kl_str code;
    const kl_artefact *artefact = &x->variants[variant].artefact;
    const kl_err err = kli_fs_read(&code, x->arena, artefact->path.ptr, MAX_CODE_BYTES, e);
    if (err) return err;
    kl_buf_printf(b,
                  "\n/* sha256 %s */\n"
                  "extern const unsigned char %s_code_%d[];\n"
                  "__attribute__((aligned(64))) const unsigned char %s_code_%d[] = {",
                  artefact->hash, x->name, variant, x->name, variant);
    for (size_t i = 0; i < code.len; i++)
        kl_buf_printf(b, "%s%u,", i % 20 ? "" : "\n", (unsigned)(unsigned char)code.ptr[i]);
    kl_buf_printf(b, "\n};\n");
    return KL_OK;
}

static kl_err code_text(kl_str *out, const kli_export *x, kl_error *e) {
    kl_buf b = {0};
    kl_err err = KL_OK;
    kl_buf_printf(&b, "/* %s_code.c - the compiled kernel for %.*s, as the driver loads it. */\n",
                  x->name, KL_STR_ARG(x->arch));
    for (int i = 0; !err && i < x->n_variants; i++) err = add_code(&b, x, i, e);
    *out = kl_buf_take(&b, x->arena);
    return err;
}

static kl_str list_of_codes(const kli_export *x, const char *before, const char *after) {
    kl_buf b = {0};
    for (int i = 0; i < x->n_variants; i++)
        kl_buf_printf(&b, "%s%s_code_%d%s", before, x->name, i, after);
    return kl_buf_take(&b, x->arena);
}

static void codes_values(kli_values *v, const kli_export *x, kl_str arguments) {
    code_texts t = {0};
    kl_arena *a = x->arena;
    if (x->kernel->surface->specialize)
        for (int i = 0; i < x->n_variants; i++) add_decided(&t, v, x, i);
    else
        add_directed(&t, v, x, arguments);
    kli_value_set(v, "n_codes", kl_arena_printf(a, "%d", x->n_variants));
    kli_value_set(v, "codes", list_of_codes(x, "", ", "));
    kli_value_set(v, "extern_codes", list_of_codes(x, "extern const unsigned char ", "[];\n"));
    kli_value_set(v, "n_functions", kl_arena_printf(a, "%d", t.n_functions));
    kli_value_set(v, "functions", kl_buf_take(&t.functions, a));
    kli_value_set(v, "launchers", kl_buf_take(&t.launchers, a));
    kli_value_set(v, "cases", kl_buf_take(&t.cases, a));
    kli_value_set(v, "hidden", kl_buf_take(&t.hidden, a));
    kli_value_set(v, "select", select_text(x));
}

kl_err kli_export_cuda(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    kl_str code, arguments = kli_launcher_values(&v, x);
    kl_arena *a = x->arena;
    KL_ASSERT(x->n_variants >= 1 && x->arch.len);
    const kl_err err = code_text(&code, x, e);
    if (err) return err;
    const char *suffix = x->kernel->surface->suffix;
    kli_value_set(&v, "arch", x->arch);
    kli_value_set(&v, "source_name", kl_arena_printf(a, "kernel%s", suffix));
    codes_values(&v, x, arguments);
    kli_files_add(out, kl_arena_printf(a, "%s.h", x->name), kli_template(&v, "cuda_header"));
    kli_files_add(out, kl_arena_printf(a, "%s.c", x->name), kli_template(&v, "cuda_launcher"));
    kli_files_add(out, kl_arena_printf(a, "%s_code.c", x->name), code);
    kli_files_add(out, kl_arena_printf(a, "kernel%s", suffix), x->kernel->source);
    kli_files_add(out, KL_S("Makefile"), kli_template(&v, "cuda_makefile"));
    return KL_OK;
}
