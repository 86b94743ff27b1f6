/* complete.c - a plan with what its compiler decided: sizes of a launch, the order of parameters,
 * hidden buffers, descriptors; and what the compiler is told of a plan before.  Format:
 * docs/formats/completion.md.
 *
 * The text comes out of a process in which a candidate's own code may have run.  So nothing of it
 * is believed: every index, name and size is held against the plan, limits.h and the device, and
 * what does not fit is refused with words.  SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    kl_plan *plan;
    const kl_plan *before;            /* as the directives made it */
    const kl_plan_launch *about;      /* whose grid_x, grid_y and grid_z are meant */
    uint32_t n_buffers, n_tensormaps; /* of `before`: what is behind them is the compiler's */
    const kl_kernel *kernel;
    const kl_task *task;
    const kl_workload *workload;
    kl_device_limits limits;
    kl_error *error;
} completer;

KL_PRINTF(2, 3) static bool complete_refuse(completer *c, const char *fmt, ...) {
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return !kl_fail(c->error, KL_EINVAL, c->kernel->path.ptr, "its compiler decided: %s", text);
}

/* ---- numbers ----------------------------------------------------------------------------- */

static bool ends_in_digit(kl_str name, const char *stem, uint32_t *digit) {
    if (name.len < 2 || !kl_str_starts(name, kl_str_of(stem))) return false;
    *digit = (uint32_t)(name.ptr[name.len - 1] - '0');
    return *digit < 5 && name.len == strlen(stem) + 1;
}

/* MAP_dim0 and MAP_stride0 of a directive's tensormap, innermost first, in elements. */
static bool map_name(const completer *c, kl_str name, int64_t *value) {
    for (int i = 0; i < c->kernel->n_tensormaps; i++) {
        const kl_str map = c->kernel->tensormaps[i].name;
        const kl_plan_tensormap *m = &c->before->tensormaps[i];
        uint32_t d;
        if (!kl_str_starts(name, map)) continue;
        const kl_str rest = {name.ptr + map.len, name.len - map.len};
        if (ends_in_digit(rest, "_dim", &d) && d < m->rank)
            return *value = (int64_t)m->dims[d], true;
        if (ends_in_digit(rest, "_stride", &d) && d < m->rank)
            return *value = d ? (int64_t)(m->strides[d] / kl_dtype_bytes((kl_dtype)m->dtype)) : 1,
                   true;
    }
    return false;
}

/* Axes, params, the grid as the directives gave it, and the sizes of their tensormaps. */
static bool completion_name(void *ctx, kl_str name, int64_t *value) {
    static const char *const GRID[] = {"grid_x", "grid_y", "grid_z"};
    const completer *c = ctx;
    int i = kl_task_axis(c->task, name);
    if (i >= 0) return *value = c->workload->axes[i], true;
    if ((i = kli_param_index(c->kernel, name)) >= 0)
        return *value = c->kernel->params[i].value, true;
    for (int d = 0; d < 3; d++)
        if (kl_str_eq(name, kl_str_of(GRID[d]))) return *value = c->about->grid[d], true;
    return map_name(c, name, value);
}

/* An integer, or an expression as text. */
static bool complete_number(completer *c, const json_t *v, const char *what, int64_t low,
                            int64_t high, int64_t *out) {
    if (json_is_integer(v))
        *out = json_integer_value(v);
    else if (!json_is_string(v))
        return complete_refuse(c, "%s is no number", what);
    else if (kl_expr_eval(out, kl_str_of(json_string_value(v)), completion_name, c, c->error))
        return complete_refuse(c, "%s is no expression over axes, params and the grid", what);
    if (*out >= low && *out <= high) return true;
    return complete_refuse(c, "%s is %lld; %lld to %lld are possible", what, (long long)*out,
                           (long long)low, (long long)high);
}

/* Leaves `out` as it is where `key` is absent. */
static bool complete_field(completer *c, const json_t *o, const char *key, int64_t low,
                           int64_t high, uint32_t *out) {
    int64_t value = *out;
    const json_t *v = json_object_get(o, key);
    const bool ok = !v || complete_number(c, v, key, low, high, &value);
    KL_ASSERT(low >= 0 && high <= UINT32_MAX);
    if (ok) *out = (uint32_t)value;
    return ok;
}

static bool complete_sizes(completer *c, const json_t *o, const char *key, const int64_t most[3],
                           uint32_t out[3]) {
    const json_t *list = json_object_get(o, key);
    int64_t value;
    if (!list) return true;
    if (json_array_size(list) != 3) return complete_refuse(c, "%s has not three sizes", key);
    for (size_t d = 0; d < 3; d++) {
        if (!complete_number(c, json_array_get(list, d), key, 1, most[d], &value)) return false;
        out[d] = (uint32_t)value;
    }
    return true;
}

/* ---- names ------------------------------------------------------------------------------- */

static bool take_name(completer *c, const json_t *o, const char *key, char out[KL_MAX_NAME]) {
    const kl_str name = kli_json_text_or(o, key, (kl_str){0});
    if (!json_object_get(o, key)) return true;
    if (!kli_is_name(name) || name.len >= KL_MAX_NAME)
        return complete_refuse(c, "%s is no name", key);
    memset(out, 0, KL_MAX_NAME);
    memcpy(out, name.ptr, name.len);
    return true;
}

static int buffer_named(const kl_plan *p, kl_str name) {
    for (uint32_t i = 0; i < p->n_buffers; i++)
        if (kl_str_eq(name, kl_str_of(p->buffers[i].name))) return (int)i;
    return -1;
}

/* The tensor or buffer that argument `arg` of the launch passes. */
static bool memory_of_argument(completer *c, const json_t *arg, bool *is_buffer, uint32_t *index,
                               uint64_t *bytes) {
    int64_t i;
    if (!complete_number(c, arg, "arg", 0, (int64_t)c->about->n_args - 1, &i)) return false;
    const kl_value *v = &kli_launch_args(c->before, c->about)[i];
    *is_buffer = v->kind == KL_VALUE_BUFFER;
    if (!*is_buffer && v->kind != KL_VALUE_TENSOR)
        return complete_refuse(c, "argument %lld is no tensor or buffer", (long long)i);
    *index = v->index;
    *bytes = *is_buffer ? c->plan->buffers[v->index].bytes : c->plan->tensors[v->index].bytes;
    return true;
}

/* The tensor or buffer that `o` names under "tensor" or "buffer", or as an argument. */
static bool find_memory(completer *c, const json_t *o, bool *is_buffer, uint32_t *index,
                        uint64_t *bytes) {
    const json_t *arg = json_object_get(o, "arg");
    if (arg) return memory_of_argument(c, arg, is_buffer, index, bytes);
    const kl_str tensor = kli_json_text_or(o, "tensor", (kl_str){0});
    const kl_str buffer = kli_json_text_or(o, "buffer", (kl_str){0});
    const int t = kl_task_tensor(c->task, tensor), b = buffer_named(c->plan, buffer);
    *is_buffer = b >= 0;
    if (b >= 0) return *index = (uint32_t)b, *bytes = c->plan->buffers[b].bytes, true;
    if (t < 0 || c->task->tensors[t].is_scalar)
        return complete_refuse(c, "it names a tensor or buffer that there is not");
    return *index = (uint32_t)t, *bytes = c->plan->tensors[t].bytes, true;
}

static bool launch_of(completer *c, const json_t *o) {
    const int64_t of = kli_json_int_or(o, "of", 0);
    if (of < 0 || of >= c->before->n_launches)
        return complete_refuse(c, "there is no launch %lld", (long long)of);
    c->about = &c->before->launches[of];
    return true;
}

/* ---- hidden buffers ---------------------------------------------------------------------- */

static bool complete_buffer(completer *c, const json_t *o) {
    KL_ASSERT(c->plan->n_buffers < KL_MAX_BUFFERS);
    kl_plan_buffer *out = &c->plan->buffers[c->plan->n_buffers];
    int64_t bytes = 0;
    *out = (kl_plan_buffer){.dtype = KL_U8, .zero = kli_json_bool_or(o, "zero", false)};
    if (!launch_of(c, o) || !take_name(c, o, "name", out->name)) return false;
    if (!out->name[0] || buffer_named(c->plan, kl_str_of(out->name)) >= 0)
        return complete_refuse(c, "a hidden buffer has no name of its own");
    if (!complete_number(c, json_object_get(o, "bytes"), "bytes", 1, (int64_t)KL_MAX_TENSOR_BYTES,
                         &bytes))
        return false;
    out->bytes = (uint64_t)bytes;
    c->plan->n_buffers++;
    return true;
}

static bool check_memory(completer *c) {
    const uint64_t room = c->limits.memory ? (uint64_t)c->limits.memory : KL_MAX_TOTAL_BYTES;
    uint64_t all = 0;
    for (uint32_t i = 0; i < c->plan->n_tensors; i++) all += c->plan->tensors[i].bytes;
    for (uint32_t i = 0; i < c->plan->n_buffers; i++) all += c->plan->buffers[i].bytes;
    if (all <= room && all <= KL_MAX_TOTAL_BYTES) return true;
    return complete_refuse(c, "with its hidden buffers it needs %llu bytes",
                           (unsigned long long)all);
}

/* ---- descriptors ------------------------------------------------------------------------- */

static bool numbers(completer *c, const json_t *o, const char *key, size_t n, int64_t low,
                    int64_t high, uint64_t *out) {
    const json_t *list = json_object_get(o, key);
    int64_t value;
    if (json_array_size(list) != n) return complete_refuse(c, "%s has not %zu values", key, n);
    for (size_t d = 0; d < n; d++) {
        if (!complete_number(c, json_array_get(list, d), key, low, high, &value)) return false;
        out[d] = (uint64_t)value;
    }
    return true;
}

static bool complete_is_one_of(uint32_t value, const uint32_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (value == list[i]) return true;
    return false;
}

static bool check_map(completer *c, const kl_plan_tensormap *m, uint64_t bytes) {
    static const uint32_t SWIZZLES[] = {0, 32, 64, 128}, INTERLEAVES[] = {0, 16, 32},
                          PROMOTIONS[] = {0, 64, 128, 256};
    for (uint32_t d = 1; d < m->rank; d++)
        if (m->strides[d] % 16)
            return complete_refuse(c, "a stride of a descriptor is no multiple of 16 bytes");
    if (!complete_is_one_of(m->swizzle, SWIZZLES, 4) ||
        !complete_is_one_of(m->interleave, INTERLEAVES, 3) ||
        !complete_is_one_of(m->l2, PROMOTIONS, 4))
        return complete_refuse(c, "a descriptor has a swizzle, interleave or l2 that there is not");
    if (kli_tensormap_end(m) > bytes)
        return complete_refuse(c, "a descriptor reaches past the end of its tensor");
    return true;
}

/* The view of a directive's tensormap with another box. */
static bool complete_view(completer *c, const json_t *o, kl_plan_tensormap *out) {
    const kl_str name = kli_json_text_or(o, "map", (kl_str){0});
    const int i = kli_tensormap_index(c->kernel, name);
    uint64_t box[5] = {0};
    if (i < 0) return complete_refuse(c, "there is no tensormap '%.*s'", KL_STR_ARG(name));
    *out = c->before->tensormaps[i];
    const bool is_buffer = out->of_buffer;
    const uint64_t bytes =
        is_buffer ? c->before->buffers[out->index].bytes : c->before->tensors[out->index].bytes;
    if (!numbers(c, o, "box", out->rank, 1, 256, box) ||
        !complete_field(c, o, "swizzle", 0, 128, &out->swizzle) ||
        !complete_field(c, o, "l2", 0, 256, &out->l2) || !check_map(c, out, bytes))
        return false;
    for (uint32_t d = 0; d < out->rank; d++) out->box[d] = (uint32_t)box[d];
    c->plan->n_tensormaps++;
    return true;
}

static bool complete_map(completer *c, const json_t *o) {
    KL_ASSERT(c->plan->n_tensormaps < KL_MAX_TENSORMAPS);
    kl_plan_tensormap *out = &c->plan->tensormaps[c->plan->n_tensormaps];
    if (json_object_get(o, "map")) return complete_view(c, o, out);
    const size_t rank = json_array_size(json_object_get(o, "box"));
    uint64_t box[5] = {0}, bytes = 0;
    bool is_buffer = false;
    *out = (kl_plan_tensormap){.rank = (uint32_t)rank};
    if (rank < 1 || rank > 5) return complete_refuse(c, "a descriptor of %zu dimensions", rank);
    if (!launch_of(c, o) || !find_memory(c, o, &is_buffer, &out->index, &bytes)) return false;
    out->of_buffer = is_buffer;
    out->dtype =
        is_buffer ? c->plan->buffers[out->index].dtype : c->plan->tensors[out->index].dtype;
    const bool ok = numbers(c, o, "dims", rank, 1, (int64_t)1 << 32, out->dims) &&
                    (rank == 1 || numbers(c, o, "strides", rank - 1, 1, ((int64_t)1 << 40) - 1,
                                          out->strides + 1)) &&
                    numbers(c, o, "box", rank, 1, 256, box) &&
                    complete_field(c, o, "swizzle", 0, 128, &out->swizzle) &&
                    complete_field(c, o, "interleave", 0, 32, &out->interleave) &&
                    complete_field(c, o, "l2", 0, 256, &out->l2) && check_map(c, out, bytes);
    for (size_t d = 0; d < rank; d++) out->box[d] = (uint32_t)box[d];
    c->plan->n_tensormaps += ok;
    return ok;
}

/* ---- launches ---------------------------------------------------------------------------- */

static bool complete_memory_argument(completer *c, const json_t *o, kl_value *out) {
    bool is_buffer;
    uint64_t bytes;
    if (!find_memory(c, o, &is_buffer, &out->index, &bytes)) return false;
    out->kind = is_buffer ? KL_VALUE_BUFFER : KL_VALUE_TENSOR;
    return true;
}

static bool complete_argument(completer *c, const json_t *o, kl_value *out) {
    const json_t *v;
    int64_t index = 0;
    *out = (kl_value){0};
    if ((v = json_object_get(o, "arg")) != NULL) {
        if (!complete_number(c, v, "arg", 0, (int64_t)c->about->n_args - 1, &index)) return false;
        *out = kli_launch_args(c->before, c->about)[index];
        out->joined = 0; /* its compiler's parameters are whole */
        return true;
    }
    if ((v = json_object_get(o, "tensormap")) != NULL) {
        const int64_t last = (int64_t)c->plan->n_tensormaps - c->n_tensormaps - 1;
        if (!complete_number(c, v, "tensormap", 0, last, &index)) return false;
        *out = (kl_value){.kind = KL_VALUE_TENSORMAP, .index = c->n_tensormaps + (uint32_t)index};
        return true;
    }
    if ((v = json_object_get(o, "i32")) != NULL)
        return out->kind = KL_VALUE_I32,
               complete_number(c, v, "i32", INT32_MIN, INT32_MAX, &out->i);
    if ((v = json_object_get(o, "i64")) != NULL)
        return out->kind = KL_VALUE_I64,
               complete_number(c, v, "i64", INT64_MIN, INT64_MAX, &out->i);
    return complete_memory_argument(c, o, out);
}

static bool complete_arguments(completer *c, const json_t *o, kl_plan_launch *out) {
    const json_t *list = json_object_get(o, "args");
    const size_t n = list ? json_array_size(list) : c->about->n_args;
    if (n > KL_MAX_ARGS)
        return complete_refuse(c, "%zu arguments; a launch has at most %d", n, KL_MAX_ARGS);
    kl_value *args = kli_take_args(c->plan, out, (uint32_t)n);
    if (!args)
        return complete_refuse(c, "more than %d arguments of all launches", KL_MAX_PLAN_ARGS);
    if (!list) memcpy(args, kli_launch_args(c->before, c->about), n * sizeof *args);
    for (size_t i = 0; list && i < n; i++)
        if (!complete_argument(c, json_array_get(list, i), &args[i])) return false;
    return true;
}

static bool complete_check_shape(completer *c, const kl_plan_launch *l) {
    const int64_t most = c->limits.max_threads ? c->limits.max_threads : 1024;
    const int64_t threads = (int64_t)l->block[0] * l->block[1] * l->block[2];
    if (threads > most) return complete_refuse(c, "a block of %lld threads", (long long)threads);
    if ((int64_t)l->cluster[0] * l->cluster[1] * l->cluster[2] > 16)
        return complete_refuse(c, "a cluster of more than 16 blocks");
    for (int d = 0; d < 3; d++)
        if (l->grid[d] % l->cluster[d])
            return complete_refuse(c, "a grid that its clusters do not divide");
    return true;
}

static bool complete_launch(completer *c, const json_t *o) {
    static const int64_t BLOCK[3] = {1024, 1024, 64}, CLUSTER[3] = {16, 16, 16};
    const int64_t smem = c->limits.smem_max ? c->limits.smem_max : 1 << 20;
    KL_ASSERT(c->plan->n_launches < KL_MAX_LAUNCHES);
    kl_plan_launch *out = &c->plan->launches[c->plan->n_launches];
    if (!launch_of(c, o)) return false;
    *out = *c->about;
    const bool shaped =
        json_object_get(o, "grid") || json_object_get(o, "block") || json_object_get(o, "cluster");
    c->plan->n_launches++;
    return take_name(c, o, "entry", out->entry) &&
           complete_sizes(c, o, "grid", kli_cuda_grid_most, out->grid) &&
           complete_sizes(c, o, "block", BLOCK, out->block) &&
           complete_sizes(c, o, "cluster", CLUSTER, out->cluster) &&
           complete_field(c, o, "smem", 0, smem, &out->smem) &&
           (!shaped || complete_check_shape(c, out)) && complete_arguments(c, o, out);
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool complete_each(completer *c, const json_t *root, const char *key, uint32_t room,
                          bool (*complete)(completer *c, const json_t *o)) {
    const json_t *list = json_object_get(root, key);
    if (json_array_size(list) > room)
        return complete_refuse(c, "more %s than there is room for", key);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!complete(c, json_array_get(list, i))) return false;
    return true;
}

static bool complete_all(completer *c, const json_t *root) {
    if (kli_json_int_or(root, "version", 0) != 1)
        return complete_refuse(c, "in a version that is not known here");
    if (!complete_each(c, root, "buffers", KL_MAX_BUFFERS - c->n_buffers, complete_buffer) ||
        !check_memory(c) ||
        !complete_each(c, root, "tensormaps", KL_MAX_TENSORMAPS - c->n_tensormaps, complete_map))
        return false;
    if (!json_object_get(root, "launches")) return true;
    memset(c->plan->args, 0, c->plan->n_args * sizeof *c->plan->args);
    c->plan->n_launches = c->plan->n_args = 0;
    return complete_each(c, root, "launches", KL_MAX_LAUNCHES, complete_launch) &&
           (c->plan->n_launches || complete_refuse(c, "nothing is launched"));
}

kl_err kli_plan_complete(kl_plan *plan, kl_str completion, const kl_kernel *k, const kl_task *t,
                         const kl_workload *w, const kl_device_limits *limits, kl_error *e) {
    json_t *root = NULL;
    if (!completion.len) return KL_OK;
    kl_arena *scratch = kl_arena_new();
    kl_plan *before = KL_NEW(scratch, kl_plan);
    *before = *plan;
    completer c = {.plan = plan,
                   .before = before,
                   .about = &before->launches[0],
                   .kernel = k,
                   .task = t,
                   .workload = w,
                   .n_buffers = plan->n_buffers,
                   .n_tensormaps = plan->n_tensormaps,
                   .error = e};
    if (limits) c.limits = *limits;
    const bool ok = kli_json_parse(&root, completion, KL_S("completion"), kl_ignored())
                        ? complete_refuse(&c, "nothing that can be read")
                        : complete_all(&c, root);
    json_decref(root);
    kl_arena_free(scratch);
    return ok ? KL_OK : e->code;
}

/* ---- the other way: what a compiler is told ---------------------------------------------- */

static const char *integer_class(int64_t value, bool wide) {
    if (value == 1) return "one";
    if (wide) return value % 16 ? "i64" : "i64/16";
    return value % 16 ? "i32" : "i32/16";
}

static const char *class_of(const kl_plan *p, const kl_value *v) {
    const kl_dtype dtype = v->kind == KL_VALUE_SCALAR ? (kl_dtype)p->tensors[v->index].dtype : 0;
    switch ((kl_value_kind)v->kind) {
    case KL_VALUE_TENSOR:
    case KL_VALUE_BUFFER:
        return "ptr";
    case KL_VALUE_TENSORMAP:
        return "map";
    case KL_VALUE_I32:
        return integer_class(v->i, false);
    case KL_VALUE_I64:
        return integer_class(v->i, true);
    case KL_VALUE_F32:
        return "f32";
    case KL_VALUE_F64:
        return "f64";
    case KL_VALUE_LOCAL:
        return "local";
    case KL_VALUE_NONE:
        return "none";
    case KL_VALUE_SCALAR:
        break;
    }
    return kl_dtype_is_float(dtype) ? kl_dtype_name(dtype) : integer_class(v->i, dtype == KL_I64);
}

kl_str kli_plan_classes(kl_arena *a, const kl_plan *plan) {
    kl_buf b = {0};
    for (uint32_t l = 0; l < plan->n_launches; l++) {
        if (l) kl_buf_add(&b, KL_S(";"));
        const kl_value *args = kli_launch_args(plan, &plan->launches[l]);
        for (uint32_t i = 0; i < plan->launches[l].n_args; i++)
            kl_buf_printf(&b, "%s%s", i ? " " : "", class_of(plan, &args[i]));
    }
    const kl_str text = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}
