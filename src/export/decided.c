/* decided.c - launches as a compiler completed them (docs/formats/completion.md), as C.
 *
 * A completion comes out of a process in which a candidate's code may have run.  It was held
 * against the plan of every shape that it is for (kli_plan_complete) before it gets here, so its
 * indices, names and sizes are sound; what is written of it are names, integers and expressions,
 * nothing else. SPDX-License-Identifier: Apache-2.0 */
#include "cuda_impl.h"

#include "base/json.h"
#include "kernel/launch.h"

typedef struct {
    const kli_export *x;
    const json_t *root;
    kl_buf *out;
} decided;

static const json_t *decided_list(const decided *d, const char *key) {
    return json_object_get(d->root, key);
}

static kl_str decided_number(const decided *d, const json_t *v, int launch) {
    if (json_is_integer(v))
        return kl_arena_printf(d->x->arena, "INT64_C(%lld)", (long long)json_integer_value(v));
    return kli_decided_expression(d->x, kl_str_of(json_string_value(v)), launch);
}

static int decided_of(const json_t *o) { return (int)kli_json_int_or(o, "of", 0); }

/* ---- hidden memory ----------------------------------------------------------------------- */

/* "at_hidden_0": each behind the one before, all behind the kernel's own buffers. */
static void add_hidden(const decided *d) {
    const json_t *list = decided_list(d, "buffers");
    kl_buf_printf(d->out, "    int64_t hidden = p->own;\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        kl_buf_printf(d->out,
                      "    const int64_t bytes_hidden_%zu = %s, at_hidden_%zu = hidden;\n"
                      "    (void)at_hidden_%zu, (void)bytes_hidden_%zu;\n"
                      "    hidden = klx_behind(&p->bad, hidden, bytes_hidden_%zu);\n",
                      i, decided_number(d, json_object_get(o, "bytes"), decided_of(o)).ptr, i, i, i,
                      i);
    }
}

static int hidden_named(const decided *d, const char *name) {
    const json_t *list = decided_list(d, "buffers");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (kl_str_eq(kli_json_text_or(json_array_get(list, i), "name", (kl_str){0}),
                      kl_str_of(name)))
            return (int)i;
    return -1;
}

/* The address of a tensor or buffer by its name. */
static kl_str decided_address(const decided *d, const char *name) {
    kl_arena *a = d->x->arena;
    if (kl_task_tensor(d->x->task, kl_str_of(name)) >= 0)
        return kli_export_name(a, kl_str_of(name));
    const int hidden = hidden_named(d, name);
    if (hidden >= 0) return kl_arena_printf(a, "workspace + (CUdeviceptr)at_hidden_%d", hidden);
    return kl_arena_printf(a, "workspace + (CUdeviceptr)p->at_%s", name);
}

/* ---- descriptors ------------------------------------------------------------------------- */

static void add_numbers(const decided *d, const char *what, size_t map, const json_t *list,
                        int of) {
    if (!json_array_size(list)) return;
    kl_buf_printf(d->out, "    const int64_t %s_made_%zu[] = {", what, map);
    for (size_t i = 0; i < json_array_size(list); i++)
        kl_buf_printf(d->out, "%s%s", i ? ", " : "",
                      decided_number(d, json_array_get(list, i), of).ptr);
    kl_buf_printf(d->out, "};\n");
}

/* The view of a directive's map, with the box that was decided. */
static void add_view_of(const decided *d, size_t map, const json_t *o, const char *name) {
    add_numbers(d, "box", map, json_object_get(o, "box"), 0);
    kl_buf_printf(d->out,
                  "    klx_view made_%zu = view_%s;\n"
                  "    made_%zu.box = box_made_%zu;\n",
                  map, name, map, map);
    static const char *const CHOICES[] = {"swizzle", "l2"};
    for (size_t i = 0; i < KL_COUNT(CHOICES); i++)
        if (json_object_get(o, CHOICES[i]))
            kl_buf_printf(d->out, "    made_%zu.%s = %s;\n", map, CHOICES[i],
                          decided_number(d, json_object_get(o, CHOICES[i]), 0).ptr);
}

/* What a descriptor describes: by name, or as what an argument of the directives passes. */
static const char *memory_named(const decided *d, const json_t *o) {
    const json_t *arg = json_object_get(o, "arg");
    kl_arena *a = d->x->arena;
    if (arg) {
        const kl_launch *l = &d->x->kernel->launches[decided_of(o)];
        return kl_arena_copy(a, l->args[json_integer_value(arg)].expr.text).ptr;
    }
    const kl_str tensor = kli_json_text_or(o, "tensor", (kl_str){0});
    return kl_arena_copy(a, tensor.len ? tensor : kli_json_text_or(o, "buffer", (kl_str){0})).ptr;
}

static void add_view(const decided *d, size_t map, const json_t *o, const char *name) {
    const int of = decided_of(o);
    const kli_described m = kli_describe_memory(d->x, kl_str_of(name));
    const char *const lists[] = {"dims", "strides", "box"};
    for (size_t i = 0; i < KL_COUNT(lists); i++)
        add_numbers(d, lists[i], map, json_object_get(o, lists[i]), of);
    kl_buf_printf(d->out, "    const int64_t shape_made_%zu[] = {", map);
    for (int i = 0; i < m.n; i++)
        kl_buf_printf(d->out, "%s%s", i ? ", " : "", kli_expression(d->x, m.dims[i]).ptr);
    kl_buf_printf(d->out, "%s};\n", m.n ? "" : "1");
    kl_buf_printf(d->out,
                  "    const klx_view made_%zu = {%s, %zu, %zu, %d, shape_made_%zu, dims_made_%zu, "
                  "%s%s, 1, box_made_%zu",
                  map, kli_map_type(m.type), kl_dtype_bytes(m.type),
                  json_array_size(json_object_get(o, "box")), m.n, map, map,
                  json_array_size(json_object_get(o, "strides")) ? "strides_made_" : "NULL",
                  json_array_size(json_object_get(o, "strides"))
                      ? kl_arena_printf(d->x->arena, "%zu", map).ptr
                      : "",
                  map);
    static const char *const CHOICES[] = {"swizzle", "interleave", "l2"};
    for (size_t i = 0; i < KL_COUNT(CHOICES); i++) {
        const json_t *choice = json_object_get(o, CHOICES[i]);
        kl_buf_printf(d->out, ", %s", choice ? decided_number(d, choice, of).ptr : "0");
    }
    kl_buf_printf(d->out, "};\n");
}

static kl_str map_memory(const kli_export *x, const char *map) {
    for (int i = 0; i < x->kernel->n_tensormaps; i++)
        if (kl_str_eq(x->kernel->tensormaps[i].name, kl_str_of(map)))
            return x->kernel->tensormaps[i].tensor;
    kl_bug("a map of the kernel", __FILE__, __LINE__);
}

static void add_made(const decided *d) {
    const json_t *list = decided_list(d, "tensormaps");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *map = json_string_value(json_object_get(o, "map"));
        kl_arena *a = d->x->arena;
        const char *memory = map ? kl_arena_copy(a, map_memory(d->x, map)).ptr : memory_named(d, o);
        if (map)
            add_view_of(d, i, o, map);
        else
            add_view(d, i, o, memory);
        kl_buf_printf(d->out,
                      "    CUtensorMap map_made_%zu;\n"
                      "    if (!r) r = klx_encode(&p->bad, &map_made_%zu, %s, &made_%zu);\n",
                      i, i, decided_address(d, memory).ptr, i);
    }
}

/* ---- launches ---------------------------------------------------------------------------- */

/* "const unsigned out_grid_1[3] = {...};": what was decided, else what the directives say. */
static void add_three(const decided *d, size_t launch, const json_t *o, const char *what,
                      const int64_t most[3]) {
    const json_t *list = json_object_get(o, what);
    const int of = decided_of(o);
    kl_buf_printf(d->out, "    const unsigned out_%s_%zu[3] = {", what, launch);
    for (size_t i = 0; i < 3; i++) {
        const char *size = json_array_size(list) == 3
                               ? decided_number(d, json_array_get(list, i), of).ptr
                               : kl_arena_printf(d->x->arena, "%s_%d[%zu]", what, of, i).ptr;
        kl_buf_printf(d->out, "%sklx_size(&p->bad, %s, 1, INT64_C(%lld))", i ? ", " : "", size,
                      (long long)most[i]);
    }
    kl_buf_printf(d->out, "};\n");
}

static bool is_used(const decided *d, int launch, int arg) {
    const json_t *launches = decided_list(d, "launches");
    for (size_t i = 0; i < json_array_size(launches); i++) {
        const json_t *o = json_array_get(launches, i), *args = json_object_get(o, "args");
        for (size_t j = 0; decided_of(o) == launch && j < json_array_size(args); j++) {
            const json_t *index = json_object_get(json_array_get(args, j), "arg");
            if (index && json_integer_value(index) == arg) return true;
        }
        if (decided_of(o) == launch && !args) return true;
    }
    return false;
}

static void add_arguments(const decided *d) {
    kl_buf_add(d->out, kli_reals_text(d->x));
    for (int i = 0; i < d->x->kernel->n_launches; i++)
        for (int j = 0; j < d->x->kernel->launches[i].n_args; j++) {
            const kl_arg *arg = &d->x->kernel->launches[i].args[j];
            if (is_used(d, i, j)) kli_add_argument(d->out, d->x, i, j, arg);
        }
}

/* The value of parameter `j` of launch `launch`, as something to take the address of. */
static void add_value(const decided *d, size_t launch, size_t j, const json_t *v, int of) {
    const json_t *o;
    if ((o = json_object_get(v, "arg")) || json_object_get(v, "tensormap")) return;
    if ((o = json_object_get(v, "i32")))
        kl_buf_printf(d->out, "    int32_t value_%zu_%zu = klx_i32(&p->bad, %s);\n", launch, j,
                      decided_number(d, o, of).ptr);
    else if ((o = json_object_get(v, "i64")))
        kl_buf_printf(d->out, "    int64_t value_%zu_%zu = %s;\n", launch, j,
                      decided_number(d, o, of).ptr);
    else
        kl_buf_printf(d->out, "    CUdeviceptr value_%zu_%zu = %s;\n", launch, j,
                      decided_address(d, memory_named(d, v)).ptr);
}

static void add_pointer(const decided *d, size_t launch, size_t j, const json_t *v, int of) {
    const json_t *arg = json_object_get(v, "arg"), *map = json_object_get(v, "tensormap");
    kl_buf_printf(d->out, "%s&", j ? ", " : "");
    if (map)
        kl_buf_printf(d->out, "map_made_%lld", (long long)json_integer_value(map));
    else if (arg)
        kl_buf_printf(d->out, "arg_%d_%lld", of, (long long)json_integer_value(arg));
    else
        kl_buf_printf(d->out, "value_%zu_%zu", launch, j);
}

static void decided_add_values(const decided *d, size_t launch, const json_t *o) {
    const json_t *args = json_object_get(o, "args");
    const int of = decided_of(o);
    const size_t n = json_array_size(args);
    for (size_t j = 0; j < n; j++) add_value(d, launch, j, json_array_get(args, j), of);
    kl_buf_printf(d->out, "    void *values_%zu[] = {", launch);
    for (size_t j = 0; j < n; j++) add_pointer(d, launch, j, json_array_get(args, j), of);
    kl_buf_printf(d->out, "%s};\n", n ? "" : "NULL");
}

static void add_shape(const decided *d, size_t launch, const json_t *o) {
    static const int64_t block[3] = {1024, 1024, 64}, cluster[3] = {16, 16, 16};
    const json_t *smem = json_object_get(o, "smem");
    add_three(d, launch, o, "grid", kli_cuda_grid_most);
    add_three(d, launch, o, "block", block);
    add_three(d, launch, o, "cluster", cluster);
    kl_buf_printf(d->out,
                  "    const unsigned out_smem_%zu = klx_size(&p->bad, %s, 0, module->smem_max);\n",
                  launch, smem ? decided_number(d, smem, decided_of(o)).ptr : "0");
}

/* Sizes of the directives, which decided ones are about. */
static void add_before(const decided *d) {
    kl_buf_add(d->out, kli_sizes_of_launches(d->x, true));
    for (int i = 0; i < d->x->kernel->n_tensormaps; i++)
        kli_add_view(d->out, d->x, &d->x->kernel->tensormaps[i]);
}

static void add_launches(const decided *d, int first) {
    const json_t *launches = decided_list(d, "launches"), *buffers = decided_list(d, "buffers");
    for (size_t i = 0; i < json_array_size(launches); i++) {
        add_shape(d, i, json_array_get(launches, i));
        decided_add_values(d, i, json_array_get(launches, i));
    }
    kl_buf_printf(d->out, "    if (p->bad) return %s_BAD_SHAPE;\n",
                  kli_export_upper(d->x->arena, d->x->name).ptr);
    kl_buf_add(d->out, kli_cleared_text(d->x));
    for (size_t i = 0; i < json_array_size(buffers); i++)
        if (kli_json_bool_or(json_array_get(buffers, i), "zero", false))
            kl_buf_printf(d->out,
                          "    if (!r) r = cuMemsetD8Async(workspace + (CUdeviceptr)at_hidden_%zu, "
                          "0, (size_t)bytes_hidden_%zu, stream);\n",
                          i, i);
    for (size_t i = 0; i < json_array_size(launches); i++)
        kl_buf_printf(d->out,
                      "    if (!r) r = klx_launch(module->functions[%d], stream, out_grid_%zu, "
                      "out_block_%zu, out_cluster_%zu, out_smem_%zu, values_%zu);\n",
                      first + (int)i, i, i, i, i, i);
}

kl_str kli_decided_body(const kli_export *x, const json_t *completion, int first_function) {
    kl_buf b = {0};
    const decided d = {.x = x, .root = completion, .out = &b};
    add_before(&d);
    add_hidden(&d);
    kl_buf_printf(&b, "    p->bad |= hidden > p->workspace;\n");
    add_arguments(&d);
    add_made(&d);
    add_launches(&d, first_function);
    return kl_buf_take(&b, x->arena);
}

kl_str kli_decided_hidden(const kli_export *x, const json_t *completion) {
    kl_buf b = {0};
    const decided d = {.x = x, .root = completion, .out = &b};
    if (!json_array_size(decided_list(&d, "buffers"))) return (kl_str){0};
    kl_buf_printf(&b, "    {\n");
    add_before(&d);
    add_hidden(&d);
    kl_buf_printf(&b, "    p->workspace = klx_max(&p->bad, p->workspace, hidden);\n    }\n");
    return kl_buf_take(&b, x->arena);
}
