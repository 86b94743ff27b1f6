/* plan.c - a kernel and a workload become numbers: what a worker allocates, encodes and launches.
 *
 * Names are resolved here because only now is there a task.  Everything a directive asks for is
 * bounded before anybody allocates it: by limits.h (KL_ELIMIT) and by the device (KL_EINVAL).  The
 * order is the order in which a reader would ask: do names fit the task, lets, requires, threads,
 * buffers, total memory, tensormaps, launches. Launches are in launch.c, tensormaps in tensormap.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A plan is written and compared as bytes: its parts have no padding. */
_Static_assert(sizeof(kl_value) == 2 * sizeof(uint32_t) + 2 * 8, "kl_value has no padding");
_Static_assert(sizeof(kl_plan_tensormap) % 8 == 0 &&
                   offsetof(kl_plan, args) ==
                       offsetof(kl_plan, launches) + sizeof(kl_plan_launch[KL_MAX_LAUNCHES]),
               "plans are laid out alike everywhere");

/* ---- failing with a caret ---------------------------------------------------------------- */

kl_err kli_plan_fail(kli_planner *p, kl_err code, size_t offset, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return kl_fail_at(p->error, code, p->kernel->path, p->kernel->source, offset, "%s", text);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool device_constant(const kl_device_limits *limits, kl_str name, int64_t *out) {
    int64_t value = 0;
    if (kl_str_eq(name, KL_S("sms")))
        value = limits->sms;
    else if (kl_str_eq(name, KL_S("smem_max")))
        value = limits->smem_max;
    else if (kl_str_eq(name, KL_S("cores")))
        value = limits->cores;
    *out = value;
    return value != 0; /* 0 is "unknown", and a guess would plan for another device */
}

bool kli_value_of(kli_planner *p, kl_str name, int64_t *out) {
    int i = kl_task_axis(p->task, name);
    if (i >= 0) return *out = p->workload->axes[i], true;
    if ((i = kli_param_index(p->kernel, name)) >= 0) return *out = p->kernel->params[i].value, true;
    i = kli_let_index(p->kernel, name);
    if (i >= 0 && i < p->n_lets && !p->kernel->lets[i].real) return *out = p->lets[i], true;
    return i < 0 && device_constant(&p->limits, name, out);
}

bool kli_real_of(void *planner, kl_str name, double *out) {
    kli_planner *p = planner;
    int64_t whole;
    const int let = kli_let_index(p->kernel, name), tensor = kl_task_tensor(p->task, name);
    if (let >= 0 && let < p->n_lets && p->kernel->lets[let].real) return *out = p->reals[let], true;
    if (tensor >= 0 && p->task->tensors[tensor].is_scalar)
        return *out = p->workload->scalars[tensor], true;
    if (kli_value_of(p, name, &whole)) return *out = (double)whole, true;
    p->unknown = name;
    return false;
}

static bool plan_look_up(void *ctx, kl_str name, int64_t *value) {
    kli_planner *p = ctx;
    if (kli_value_of(p, name, value)) return true;
    p->unknown = name;
    return false;
}

/* ---- hints about names ------------------------------------------------------------------- */

/* What a kernel and its task name, in the order of hints: pointers first. */
typedef struct {
    const char *what;
    const void *first; /* a struct that begins with its name */
    size_t size;
    int n;
} name_group;
enum { N_GROUPS = 6, N_POINTERS = 2, N_FOR_ARGS = 3 };
_Static_assert(offsetof(kl_tensor, name) == 0 && offsetof(kl_buffer, name) == 0 &&
                   offsetof(kl_tensormap, name) == 0 && offsetof(kl_axis, name) == 0 &&
                   offsetof(kl_param, name) == 0 && offsetof(kl_let, name) == 0,
               "what has a name begins with it");

#define NAME_GROUP(what, list, n)                                                                  \
    { what, list, sizeof(list)[0], n }

static void name_groups(const kli_planner *p, name_group out[N_GROUPS]) {
    const kl_kernel *k = p->kernel;
    const kl_task *t = p->task;
    const name_group all[N_GROUPS] = {NAME_GROUP("tensors", t->tensors, t->n_tensors),
                                      NAME_GROUP("buffers", k->buffers, k->n_buffers),
                                      NAME_GROUP("tensormaps", k->tensormaps, k->n_tensormaps),
                                      NAME_GROUP("axes", t->axes, t->n_axes),
                                      NAME_GROUP("params", k->params, k->n_params),
                                      NAME_GROUP("lets", k->lets, k->n_lets)};
    memcpy(out, all, sizeof all);
}

static kl_str name_at(const name_group *g, int i) {
    KL_ASSERT(i >= 0 && i < g->n);
    return *(const kl_str *)(const void *)((const char *)g->first + (size_t)i * g->size);
}

/* "tensors A B; buffers tmp", as much as fits: a hint is short. */
static void list_names(const kli_planner *p, int from, int to, char *out, size_t bytes) {
    name_group groups[N_GROUPS];
    size_t used = 0;
    out[0] = '\0';
    name_groups(p, groups);
    for (int g = from; g < to; g++) {
        const char *lead = groups[g].what;
        for (int i = 0; i < groups[g].n; i++) {
            const kl_str name = name_at(&groups[g], i);
            const char *comma = *lead && used ? "; " : "";
            if (used + strlen(comma) + strlen(lead) + name.len + 2 > bytes) continue;
            used += (size_t)snprintf(out + used, bytes - used, "%s%s %.*s", comma, lead,
                                     KL_STR_ARG(name));
            lead = "";
        }
    }
}

void kli_list_pointers(kli_planner *p, char *out, size_t out_bytes) {
    list_names(p, 0, N_POINTERS, out, out_bytes);
}

/* Of those that are as close as others, a value's name comes before a pointer's. */
static int collect_names(const kli_planner *p, int from, kl_str *names) {
    name_group groups[N_GROUPS];
    int n = 0;
    name_groups(p, groups);
    for (int g = N_FOR_ARGS; g < N_GROUPS + N_FOR_ARGS - from; g++) {
        const name_group *group = &groups[g % N_GROUPS];
        for (int i = 0; i < group->n; i++) names[n++] = name_at(group, i);
    }
    return n;
}

/* What is special about this name, most telling first; false when nothing is. */
static bool explain_name(kli_planner *p, kl_str name, bool with_pointers) {
    const kl_kernel *k = p->kernel;
    int let = kli_let_index(k, name), tensor = kl_task_tensor(p->task, name);
    int64_t ignored;
    kl_device_limits every = {1, 1, 1, 1, 1};
    if (let >= 0 && let < p->n_lets && k->lets[let].real)
        kl_hint(p->error,
                "'%.*s' is a real number, which args(...) and lets with a type can name, "
                "expressions of integers cannot",
                KL_STR_ARG(name));
    else if (let >= 0)
        kl_hint(p->error, "the let '%.*s' is on line %d and may be used below it only",
                KL_STR_ARG(name),
                kli_line_number(k->source, (size_t)(k->lets[let].name.ptr - k->source.ptr)));
    else if (device_constant(&every, name, &ignored))
        kl_hint(p->error, "'%.*s' is a constant of the device, and this device does not have it",
                KL_STR_ARG(name));
    else if (!with_pointers && tensor >= 0)
        kl_hint(p->error,
                "'%.*s' is a tensor; expressions are over axes, params and lets: its value or "
                "address is "
                "passed by its name alone in args(...)",
                KL_STR_ARG(name));
    else if (!with_pointers &&
             (kli_buffer_index(k, name) >= 0 || kli_tensormap_index(k, name) >= 0))
        kl_hint(p->error, "'%.*s' is passed by its name alone in args(...)", KL_STR_ARG(name));
    else
        return false;
    return true;
}

kl_err kli_unknown_name(kli_planner *p, kl_str name, size_t offset, bool with_pointers) {
    enum {
        PLAN_MOST = KL_MAX_AXES + KL_MAX_PARAMS + KL_MAX_LETS + KL_MAX_TENSORS + KL_MAX_BUFFERS +
                    KL_MAX_TENSORMAPS
    };
    kl_str known[PLAN_MOST];
    char list[360];
    const char *prefix = p->kernel->surface->comment;
    kl_err err = kli_plan_fail(p, KL_EINVAL, offset,
                               with_pointers ? "unknown name '%s' in args"
                                             : "unknown name '%s' in an expression",
                               kli_show(name).text);
    if (explain_name(p, name, with_pointers)) return err;
    const int from = with_pointers ? 0 : N_FOR_ARGS;
    int n = collect_names(p, from, known), close = kli_closest(name, known, n);
    list_names(p, from, N_GROUPS, list, sizeof list);
    if (close >= 0)
        kl_hint(p->error, "did you mean '%.*s'?  %s", KL_STR_ARG(known[close]), list);
    else
        kl_hint(p->error, "declare it with `%s param %s = 64 {32, 64}` or use one of: %s", prefix,
                kli_show(name).text, list);
    return err;
}

/* ---- values ------------------------------------------------------------------------------ */

/* "M = 65, BM = 128": the values of every name in `expr`, each once. */
static void list_values(kli_planner *p, const kl_expr *expr, char *out, size_t bytes) {
    size_t used = 0;
    kl_str text = expr->text, seen[16];
    size_t n_seen = 0;
    out[0] = '\0';
    for (size_t i = 0; i < text.len && n_seen < KL_COUNT(seen);) {
        size_t start = i;
        while (i < text.len && kli_is_name_part(text.ptr[i])) i++;
        kl_str name = {text.ptr + start, i - start};
        int64_t value;
        if (name.len == 0) i++;
        bool fresh = kli_is_name(name) && kli_value_of(p, name, &value);
        for (size_t j = 0; j < n_seen && fresh; j++) fresh = !kl_str_eq(seen[j], name);
        if (!fresh || used + name.len + 28 > bytes) continue;
        seen[n_seen++] = name;
        used += (size_t)snprintf(out + used, bytes - used, "%s%.*s = %lld", used ? ", " : "",
                                 KL_STR_ARG(name), (long long)value);
    }
}

/* Hint at the values behind `expr`, unless there is a hint already: "here M = 65, BM = 128". */
static kl_err hint_values(kli_planner *p, kl_err err, const kl_expr *expr) {
    char values[256];
    list_values(p, expr, values, sizeof values);
    if (err && !p->error->hint[0] && values[0]) kl_hint(p->error, "here %s", values);
    return err;
}

/* What evaluating `expr` ended with, told at its place in the source. */
static kl_err evaluated(kli_planner *p, const kl_expr *expr, kl_err err) {
    if (!err) return KL_OK;
    if (p->unknown.ptr)
        return kli_unknown_name(p, p->unknown,
                                expr->offset + (size_t)(p->unknown.ptr - expr->text.ptr), false);
    return hint_values(p, kli_rebase(p->error, p->kernel, expr), expr);
}

kl_err kli_eval(kli_planner *p, int64_t *out, const kl_expr *expr) {
    p->unknown = (kl_str){0};
    return evaluated(p, expr, kl_expr_eval(out, expr->text, plan_look_up, p, p->error));
}

static kl_err eval_real(kli_planner *p, double *out, const kl_let *let) {
    KL_ASSERT(let->real && (let->type == KL_F32 || let->type == KL_F64));
    p->unknown = (kl_str){0};
    kl_err err =
        evaluated(p, &let->expr, kli_real_eval(out, let->expr.text, kli_real_of, p, p->error));
    if (err || let->type == KL_F64 || isfinite((float)*out)) return err;
    return kli_plan_fail(p, KL_EINVAL, let->expr.offset, "%g does not fit float32", *out);
}

kl_err kli_eval_range(kli_planner *p, int64_t *out, const kl_expr *expr, const char *what,
                      int64_t low, int64_t high) {
    KL_ASSERT(low <= high);
    kl_err err = kli_eval(p, out, expr);
    if (err || (*out >= low && *out <= high)) return err;
    if (*out < low)
        err = kli_plan_fail(p, KL_EINVAL, expr->offset, "%s is %lld; it must be at least %lld",
                            what, (long long)*out, (long long)low);
    else
        err = kli_plan_fail(p, KL_EINVAL, expr->offset, "%s is %lld; it must be at most %lld", what,
                            (long long)*out, (long long)high);
    return hint_values(p, err, expr);
}

/* ---- does the kernel fit the task? ------------------------------------------------------- */

static kl_err refuse_shadow(kli_planner *p, kl_str name, const char *what) {
    bool axis = kl_task_axis(p->task, name) >= 0;
    if (!axis && kl_task_tensor(p->task, name) < 0) return KL_OK;
    kli_plan_fail(p, KL_EINVAL, (size_t)(name.ptr - p->kernel->source.ptr),
                  "%s '%.*s' has the name of %s of task %.*s", what, KL_STR_ARG(name),
                  axis ? "an axis" : "a tensor", KL_STR_ARG(p->task->name));
    return kl_hint(p->error, "call it something else");
}

static kl_err plan_check_names(kli_planner *p) {
    const kl_kernel *k = p->kernel;
    kl_err err = KL_OK;
    for (int i = 0; i < k->n_params && !err; i++)
        err = refuse_shadow(p, k->params[i].name, "param");
    for (int i = 0; i < k->n_lets && !err; i++) err = refuse_shadow(p, k->lets[i].name, "let");
    for (int i = 0; i < k->n_buffers && !err; i++)
        err = refuse_shadow(p, k->buffers[i].name, "buffer");
    for (int i = 0; i < k->n_tensormaps && !err; i++)
        err = refuse_shadow(p, k->tensormaps[i].name, "tensormap");
    return err;
}

/* ---- tensors ----------------------------------------------------------------------------- */

kl_dtype kli_tensor_dtype(const kl_kernel *k, const kl_task *t, const kl_workload *w, int i) {
    bool widened = k->result != 0 && t->tensors[i].is_output && kl_dtype_is_float(w->dtypes[i]);
    return widened ? k->result : w->dtypes[i];
}

static void copy_name(char out[KL_MAX_NAME], kl_str name) {
    size_t n = name.len;
    KL_ASSERT(n < KL_MAX_NAME); /* longer ones were refused */
    if (n) memcpy(out, name.ptr, n);
    out[n] = '\0';
}

static kl_err plan_tensor(kli_planner *p, int i) {
    const kl_tensor *tensor = &p->task->tensors[i];
    kl_plan_tensor *out = &p->plan->tensors[i];
    kl_shape shape;
    if (tensor->name.len >= KL_MAX_NAME)
        return kl_fail(p->error, KL_ELIMIT, p->kernel->path.ptr,
                       "tensor %s: a name longer than %d characters", kli_show(tensor->name).text,
                       KL_MAX_NAME - 1);
    kl_err err = kl_task_shape(&shape, p->task, p->workload, i, p->error);
    if (err) return err;
    out->dtype = kli_tensor_dtype(p->kernel, p->task, p->workload, i);
    out->role = tensor->is_output    ? KL_ROLE_OUTPUT
                : tensor->is_scalar  ? KL_ROLE_SCALAR
                : tensor->is_mutable ? KL_ROLE_MUTABLE
                                     : KL_ROLE_INPUT;
    if (tensor->is_scalar) out->value = p->workload->scalars[i];
    out->ndim = shape.ndim;
    memcpy(out->dims, shape.dims, sizeof out->dims);
    copy_name(out->name, tensor->name);
    bool overflow = __builtin_mul_overflow((uint64_t)shape.elems,
                                           (uint64_t)kl_dtype_bytes(out->dtype), &out->bytes);
    if (overflow || out->bytes > KL_MAX_TENSOR_BYTES)
        return kl_fail(p->error, KL_ELIMIT, p->kernel->path.ptr,
                       "tensor %s is larger than %llu bytes", out->name, KL_MAX_TENSOR_BYTES);
    return KL_OK;
}

static kl_err plan_tensors(kli_planner *p) {
    kl_err err = KL_OK;
    p->plan->n_tensors = (uint32_t)p->task->n_tensors;
    for (int i = 0; i < p->task->n_tensors && !err; i++) err = plan_tensor(p, i);
    return err;
}

/* ---- lets, requires, threads ------------------------------------------------------------- */

static kl_err plan_lets(kli_planner *p) {
    kl_err err = KL_OK;
    for (int i = 0; i < p->kernel->n_lets && !err; i++) {
        const kl_let *let = &p->kernel->lets[i];
        err = let->real ? eval_real(p, &p->reals[i], let) : kli_eval(p, &p->lets[i], &let->expr);
        KL_ASSERT(p->n_lets == i); /* a let sees those above it */
        if (!err) p->n_lets = i + 1;
    }
    return err;
}

static kl_err plan_requires(kli_planner *p) {
    const kl_kernel *k = p->kernel;
    for (int i = 0; i < k->n_required; i++) {
        const kl_expr *expr = &k->required[i];
        int64_t holds = 0;
        kl_err err = kli_eval(p, &holds, expr);
        if (err) return err;
        if (holds) continue;
        err = kli_plan_fail(p, KL_EINVAL, expr->offset,
                            "this shape is outside the kernel's domain: %.*s does not hold",
                            (int)(expr->text.len < 200 ? expr->text.len : 200), expr->text.ptr);
        return hint_values(p, err, expr);
    }
    return KL_OK;
}

/* The directive says how many threads a kernel may start, so a smaller machine gives it fewer
 * instead of refusing it.
 */
static kl_err plan_threads(kli_planner *p) {
    enum { PLAN_MOST = 4096 };
    int64_t threads = 1;
    if (p->kernel->threads.text.len) {
        kl_err err = kli_eval_range(p, &threads, &p->kernel->threads, "threads", 1, PLAN_MOST);
        if (err) return err;
    }
    if (p->limits.cores && threads > p->limits.cores) threads = p->limits.cores;
    KL_ASSERT(threads >= 1 && threads <= PLAN_MOST);
    p->plan->threads = (uint32_t)threads;
    return KL_OK;
}

/* ---- buffers ----------------------------------------------------------------------------- */

static kl_err plan_buffer(kli_planner *p, int i) {
    const kl_buffer *b = &p->kernel->buffers[i];
    kl_plan_buffer *out = &p->plan->buffers[i];
    uint64_t bytes = kl_dtype_bytes(b->dtype);
    for (int d = 0; d < b->ndim; d++) {
        int64_t dim = 0;
        kl_err err = kli_eval_range(p, &dim, &b->dims[d], "this dimension", 1, INT64_MAX);
        if (err) return err;
        p->buffer_dims[i][d] = dim;
        if (__builtin_mul_overflow(bytes, (uint64_t)dim, &bytes) || bytes > KL_MAX_TENSOR_BYTES)
            return hint_values(p,
                               kli_plan_fail(p, KL_ELIMIT, b->dims[d].offset,
                                             "buffer '%.*s' is larger than %llu GiB",
                                             KL_STR_ARG(b->name), KL_MAX_TENSOR_BYTES >> 30),
                               &b->dims[d]);
    }
    *out = (kl_plan_buffer){.bytes = bytes, .zero = b->zero, .dtype = b->dtype};
    copy_name(out->name, b->name);
    return KL_OK;
}

/* Sums cannot overflow: at most KL_MAX_TENSORS + KL_MAX_BUFFERS times KL_MAX_TENSOR_BYTES. */
static kl_err check_total(kli_planner *p) {
    const kl_plan *plan = p->plan;
    const kl_kernel *k = p->kernel;
    uint64_t total = 0, tensors = 0, memory = (uint64_t)p->limits.memory;
    int largest = 0;
    for (uint32_t i = 0; i < plan->n_tensors; i++) tensors += plan->tensors[i].bytes;
    total = tensors;
    for (uint32_t i = 0; i < plan->n_buffers; i++) {
        total += plan->buffers[i].bytes;
        if (plan->buffers[i].bytes > plan->buffers[largest].bytes) largest = (int)i;
    }
    size_t offset = k->n_buffers ? k->buffers[largest].offset : k->launches[0].offset;
    kl_err err = KL_OK;
    if (total > KL_MAX_TOTAL_BYTES)
        err = kli_plan_fail(p, KL_ELIMIT, offset,
                            "tensors and buffers together need %llu bytes; the limit is %llu",
                            (unsigned long long)total, KL_MAX_TOTAL_BYTES);
    else if (memory && total > memory)
        err = kli_plan_fail(p, KL_EINVAL, offset,
                            "tensors and buffers together need %llu bytes; the device has %llu",
                            (unsigned long long)total, (unsigned long long)memory);
    if (err)
        kl_hint(p->error, "the task's tensors take %llu bytes, this kernel's buffers %llu",
                (unsigned long long)tensors, (unsigned long long)(total - tensors));
    return err;
}

static kl_err plan_buffers(kli_planner *p) {
    kl_err err = KL_OK;
    p->plan->n_buffers = (uint32_t)p->kernel->n_buffers;
    for (int i = 0; i < p->kernel->n_buffers && !err; i++) err = plan_buffer(p, i);
    return err ? err : check_total(p);
}

/* ---- entry ------------------------------------------------------------------------------- */

kl_err kli_kernel_plan(kl_plan *out, const kl_kernel *k, const kl_task *t, const kl_workload *w,
                       const kl_device_limits *limits, kl_error *e) {
    static kl_err (*const steps[])(kli_planner *) = {
        plan_check_names, plan_tensors, plan_lets,           plan_requires,
        plan_threads,     plan_buffers, kli_plan_tensormaps, kli_plan_launches};
    kli_planner p = {.kernel = k, .task = t, .workload = w, .plan = out, .error = e};
    if (limits) p.limits = *limits;
    KL_ASSERT(k->n_launches > 0 && k->n_launches <= KL_MAX_LAUNCHES);
    KL_ASSERT(k->n_buffers <= KL_MAX_BUFFERS && k->n_tensormaps <= KL_MAX_TENSORMAPS);
    KL_ASSERT(t->n_tensors <= KL_MAX_TENSORS && t->n_inputs <= t->n_tensors);
    memset(out, 0, sizeof *out); /* padding too: plans are compared and written as bytes */
    out->magic = KL_PLAN_MAGIC;
    out->version = KL_PLAN_VERSION;
    for (size_t i = 0; i < KL_COUNT(steps); i++) {
        kl_err err = steps[i](&p);
        if (err) return err;
    }
    return KL_OK;
}
