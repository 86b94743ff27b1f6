/* bind.c - one captured launch as a kernel file: the code as it is, its pointers bound to a task's
 * tensors, everything else as it was passed.
 *
 *   args   = name "=" place { "," name "=" place }
 *   name   = a tensor, an axis, or "scratch" (memory that is poisoned), "zero" (that is cleared),
 *            "value" (no pointer at all: its bytes stay)
 *   place  = ARGUMENT [ "@" BYTE ]          from 0; a byte inside a struct that is passed by value
 *          | "0x" HEX                       where the program had it: every argument with that
 * address | "rest"                         of scratch and zero: whatever has no name of its own
 *
 * A pointer that equals one that was bound is the same tensor; any other must be named, since what
 * it points to is the program's secret.  What the file can say of a launch it must say in full: a
 * launch with anything else is refused.  SPDX-License-Identifier: Apache-2.0 */
#include "capture/capture.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BOUND = 256, MOST_TEXT_COLUMNS = 96, TENSORMAP_BYTES = 128 };
#define MOST_CUBIN_BYTES ((size_t)256 << 20) /* as a runner loads */

typedef struct {
    kl_str name;
    int64_t argument, byte;
    bool used;
} bound_place;

typedef struct {
    const kli_capture_binding *b;
    kl_arena *arena;
    kl_error *error;
    const json_t *launch;
    bound_place bound[MOST_BOUND];
    bound_place rest;                      /* without a name: every pointer must have one */
    const json_t *buffers[KL_MAX_BUFFERS]; /* the memory that each stands for; borrowed */
    int n_bound, n_buffers, n_maps;
    kl_buf head, args; /* directives before the launch; its arguments */
    size_t column;
} binder;

/* ---- --args ------------------------------------------------------------------------------ */

static bool parse_place(bound_place *out, kl_str text) {
    char *end, copy[64];
    if (text.len == 0 || text.len >= sizeof copy) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    if (strspn(copy, "0123456789@") != text.len) return false;
    out->argument = strtoll(copy, &end, 10);
    if (end == copy) return false;
    if (*end == '@') out->byte = strtoll(end + 1, &end, 10);
    return !*end;
}

/* The first argument that holds this address; the others are found to be equal. */
static bool find_address(bound_place *out, const json_t *launch, kl_str text) {
    char copy[32], *end;
    size_t i, k;
    json_t *parameter, *o;
    if (text.len >= sizeof copy || !kl_str_starts(text, KL_S("0x"))) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    const int64_t address = (int64_t)strtoull(copy, &end, 16);
    if (*end) return false;
    json_array_foreach(json_object_get(launch, "parameters"), i, parameter) {
        static const char *const kinds[] = {"pointers", "maps"};
        for (size_t kind = 0; kind < 2; kind++)
            json_array_foreach(json_object_get(parameter, kinds[kind]), k, o) {
                if (kli_json_int_or(o, "address", 0) != address) continue;
                out->argument = (int64_t)i, out->byte = kli_json_int_or(o, "at", 0);
                return true;
            }
    }
    return false;
}

static bool is_word_of_ours(kl_str s) {
    return kl_str_eq(s, KL_S("scratch")) || kl_str_eq(s, KL_S("zero")) ||
           kl_str_eq(s, KL_S("value"));
}

static kl_err unknown_bound(binder *x, kl_str name) {
    const kl_task *t = x->b->task;
    kl_buf known = {0};
    for (int i = 0; i < t->n_tensors; i++)
        kl_buf_printf(&known, " %.*s", KL_STR_ARG(t->tensors[i].name));
    for (int i = 0; i < t->n_axes; i++) kl_buf_printf(&known, " %.*s", KL_STR_ARG(t->axes[i].name));
    kl_fail(x->error, KL_EINVAL, "--args", "%.*s has no tensor or axis '%.*s'", KL_STR_ARG(t->name),
            KL_STR_ARG(name));
    kl_hint(x->error, "names:%.*s scratch zero value", (int)known.len, known.ptr);
    kl_buf_fini(&known);
    return KL_EINVAL;
}

static kl_err no_place(binder *x, kl_str part, kl_str place) {
    if (kl_str_starts(place, KL_S("0x"))) {
        kl_fail(x->error, KL_EINVAL, "--args", "no argument of this launch holds the address %.*s",
                KL_STR_ARG(place));
        return kl_hint(x->error, "a program's addresses differ from run to run: have it print them "
                                 "while it is captured; klineage capture DIR --launch N shows the "
                                 "arguments");
    }
    kl_fail(x->error, KL_EINVAL, "--args", "'%.*s' is no NAME=ARGUMENT", KL_STR_ARG(part));
    return kl_hint(x->error, "--args x=0,y=2,scratch=3, x=0@16 for byte 16 of a struct, x=0x7f00 "
                             "for an address of the program, zero=rest");
}

/* One NAME=PLACE; what it says of the rest is kept apart. */
static kl_err parse_arg(binder *x, kl_str part) {
    const kl_task *t = x->b->task;
    bound_place p = {0};
    const char *equals = memchr(part.ptr, '=', part.len);
    const size_t n = equals ? (size_t)(equals - part.ptr) : part.len;
    const kl_str place = equals ? kl_str_trim((kl_str){equals + 1, part.len - n - 1}) : (kl_str){0};
    p.name = kl_str_trim((kl_str){part.ptr, n});
    if (kl_str_eq(place, KL_S("rest")) &&
        (kl_str_eq(p.name, KL_S("scratch")) || kl_str_eq(p.name, KL_S("zero")))) {
        x->rest = p;
        return KL_OK;
    }
    if (!parse_place(&p, place) && !find_address(&p, x->launch, place))
        return no_place(x, part, place);
    if (kl_task_tensor(t, p.name) < 0 && kl_task_axis(t, p.name) < 0 && !is_word_of_ours(p.name))
        return unknown_bound(x, p.name);
    if (x->n_bound + 1 == MOST_BOUND)
        return kl_fail(x->error, KL_ELIMIT, "--args", "more than %d names", MOST_BOUND - 1);
    x->bound[x->n_bound++] = p;
    return KL_OK;
}

static kl_err parse_args(binder *x) {
    kl_str rest = kl_str_of(x->b->args), part;
    kl_err err = KL_OK;
    while (!err && kl_str_cut(&part, &rest, ',')) err = parse_arg(x, part);
    return err;
}

static bound_place *bound_at(binder *x, int64_t argument, int64_t byte) {
    for (int i = 0; i < x->n_bound; i++)
        if (x->bound[i].argument == argument && x->bound[i].byte == byte) return &x->bound[i];
    return NULL;
}

/* ---- pieces of arguments ----------------------------------------------------------------- */

KL_PRINTF(3, 4) static void add_piece(binder *x, bool joined, const char *form, ...) {
    char text[160];
    va_list args;
    va_start(args, form);
    (void)vsnprintf(text, sizeof text, form, args);
    va_end(args);
    const size_t n = strlen(text) + 3;
    KL_ASSERT(n < sizeof text && (!joined || x->args.len));
    if (x->args.len) kl_buf_add(&x->args, KL_S(", "));
    if (x->column + n > MOST_TEXT_COLUMNS) {
        kl_buf_add(&x->args, KL_S("\\\n//!     "));
        x->column = 8;
    }
    kl_buf_printf(&x->args, "%s%s", joined ? "&" : "", text);
    x->column += n;
}

static int64_t member(const json_t *o, const char *key) { return kli_json_int_or(o, key, -1); }

static const json_t *found_at(const json_t *parameter, const char *kind, int64_t byte) {
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(parameter, kind), i,
                       o) if (member(o, "at") == byte) return o;
    return NULL;
}

static bool same_place(const json_t *o, const json_t *p) {
    return member(o, "allocation") == member(p, "allocation") &&
           member(o, "offset") == member(p, "offset");
}

/* What was bound to a pointer equal to this one; NULL: nothing. */
static bound_place *equal_bound(binder *x, const json_t *place) {
    const json_t *parameters = json_object_get(x->launch, "parameters");
    for (int i = 0; i < x->n_bound; i++) {
        bound_place *p = &x->bound[i];
        const json_t *parameter = json_array_get(parameters, (size_t)p->argument);
        const json_t *o = found_at(parameter, "pointers", p->byte);
        if (!o) o = found_at(parameter, "maps", p->byte);
        if (o && kl_task_tensor(x->b->task, p->name) >= 0 && same_place(o, place)) return p;
    }
    return NULL;
}

static kl_err unbound(binder *x, const char *what, int64_t argument, int64_t byte,
                      const json_t *place) {
    char at[48];
    (void)snprintf(at, sizeof at, byte ? "%lld@%lld" : "%lld", (long long)argument,
                   (long long)byte);
    kl_fail(x->error, KL_EINVAL, "--args",
            "%s at %s reaches %lld bytes of memory, and nothing says what they are", what, at,
            (long long)(member(place, "bytes") - member(place, "offset")));
    return kl_hint(x->error,
                   "add TENSOR=%s, scratch=%s (poisoned), zero=%s (cleared), value=%s where it is "
                   "no pointer, or zero=rest for all that is left",
                   at, at, at, at);
}

static kl_err check_room(binder *x, int tensor, const json_t *place) {
    kl_shape shape;
    const kl_err err = kl_task_shape(&shape, x->b->task, x->b->workload, tensor, x->error);
    const int64_t room = member(place, "bytes") - member(place, "offset");
    if (err || member(place, "bytes") <= 0 || (uint64_t)room >= shape.bytes) return err;
    const kl_str name = x->b->task->tensors[tensor].name;
    kl_fail(x->error, KL_EINVAL, "--args",
            "%.*s has %zu bytes at this shape, but what was passed ends after %lld",
            KL_STR_ARG(name), shape.bytes, (long long)room);
    return kl_hint(x->error, "name the shape that the program had: --workload LABEL or M=64,N=64");
}

/* The same memory is one buffer, however often it is passed. */
static kl_err add_buffer(binder *x, bool joined, const bound_place *p, const json_t *place) {
    const bool zero = kl_str_eq(p->name, KL_S("zero"));
    int n = 0;
    while (n < x->n_buffers && !same_place(x->buffers[n], place)) n++;
    if (n == KL_MAX_BUFFERS)
        return kl_fail(x->error, KL_ELIMIT, "--args",
                       "more than %d pieces of memory beside tensors", KL_MAX_BUFFERS);
    if (n == x->n_buffers) {
        x->buffers[x->n_buffers++] = place;
        kl_buf_printf(&x->head, "//! buffer scratch_%d: u8[%lld]%s\n", n,
                      (long long)(member(place, "bytes") - member(place, "offset")),
                      zero ? " zero" : "");
    }
    add_piece(x, joined, "scratch_%d", n);
    return KL_OK;
}

static kl_err add_pointer(binder *x, bool joined, int64_t argument, int64_t byte,
                          const json_t *place) {
    bound_place *p = bound_at(x, argument, byte);
    if (!p) p = equal_bound(x, place);
    if (!p && x->rest.name.len) p = &x->rest;
    if (!p) return unbound(x, "a pointer", argument, byte, place);
    p->used = true;
    const int tensor = kl_task_tensor(x->b->task, p->name);
    if (tensor < 0 && is_word_of_ours(p->name)) return add_buffer(x, joined, p, place);
    if (tensor < 0 || x->b->task->tensors[tensor].is_scalar)
        return kl_fail(x->error, KL_EINVAL, "--args",
                       "%.*s is passed by value, but %lld@%lld is a "
                       "pointer",
                       KL_STR_ARG(p->name), (long long)argument, (long long)byte);
    add_piece(x, joined, "%.*s", KL_STR_ARG(p->name));
    return check_room(x, tensor, place);
}

/* ---- tensor maps ------------------------------------------------------------------------- */

/* The driver's number of a type, as src/backend/runner_cuda.c encodes it. */
static int map_type(kl_dtype t) {
    static const int numbers[KL_DTYPE_END] = {
        [KL_F16] = 6, [KL_F32] = 7, [KL_F64] = 8, [KL_BF16] = 9,
        [KL_I64] = 5, [KL_I32] = 3, [KL_I16] = 1};
    return numbers[t];
}

static void add_numbers(kl_buf *to, const char *name, const json_t *list, int64_t divide) {
    size_t i;
    json_t *o;
    if (json_array_size(list) == 0) return;
    kl_buf_printf(to, " %s(", name);
    json_array_foreach((json_t *)(uintptr_t)list, i, o)
        kl_buf_printf(to, "%s%lld", i ? ", " : "", json_integer_value(o) / divide);
    kl_buf_printf(to, ")");
}

static const char *odd_map(const json_t *m, kl_dtype type) {
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(m, "steps"), i,
                       o) if (json_integer_value(o) != 1) return "it skips elements";
    if (member(m, "fill") != 0) return "what is outside of it is not a number";
    if (member(m, "swizzle") > 3) return "its swizzle is one that a kernel file cannot say";
    if (member(m, "dtype") != map_type(type)) return "its elements have another type";
    return NULL;
}

static kl_err add_map(binder *x, bool joined, int64_t argument, int64_t byte, const json_t *m) {
    static const int SWIZZLES[] = {0, 32, 64, 128}, PROMOTIONS[] = {0, 64, 128, 256};
    bound_place *p = bound_at(x, argument, byte);
    if (!p) p = equal_bound(x, m);
    const int tensor = p ? kl_task_tensor(x->b->task, p->name) : -1;
    if (tensor < 0) return unbound(x, "a tensor map", argument, byte, m);
    const kl_dtype type = x->b->workload->dtypes[tensor];
    const char *odd = odd_map(m, type);
    p->used = true;
    if (odd)
        return kl_fail(x->error, KL_EINVAL, "--args", "the tensor map of %.*s: %s",
                       KL_STR_ARG(p->name), odd);
    kl_buf_printf(&x->head, "//! tensormap map_%d: %.*s", x->n_maps, KL_STR_ARG(p->name));
    add_numbers(&x->head, "box", json_object_get(m, "box"), 1);
    add_numbers(&x->head, "dims", json_object_get(m, "dims"), 1);
    add_numbers(&x->head, "strides", json_object_get(m, "strides"), (int64_t)kl_dtype_bytes(type));
    kl_buf_printf(&x->head, " swizzle(%d) interleave(%lld) l2(%d)\n",
                  SWIZZLES[member(m, "swizzle") & 3], (long long)member(m, "interleave") * 16,
                  PROMOTIONS[member(m, "l2") & 3]);
    add_piece(x, joined, "map_%d", x->n_maps++);
    return check_room(x, tensor, m);
}

/* ---- values ------------------------------------------------------------------------------ */

static uint64_t passed_word(const char *value, int64_t at, int n) {
    uint64_t word = 0;
    KL_ASSERT(at >= 0 && strlen(value) >= 2 * (size_t)(at + n));
    for (int i = 0; i < n; i++) {
        const char digits[3] = {value[2 * (at + i)], value[2 * (at + i) + 1], 0};
        word |= strtoull(digits, NULL, 16) << 8 * i;
    }
    return word;
}

static bool axis_value(int64_t *out, const binder *x, kl_str name) {
    const int axis = kl_task_axis(x->b->task, name);
    if (axis >= 0) *out = x->b->workload->axes[axis];
    return axis >= 0;
}

/* An axis or a scalar input in the place of the number that was passed. */
static kl_err add_named(binder *x, bool joined, bound_place *p, int64_t passed, int bytes) {
    int64_t size = 0;
    p->used = true;
    if (axis_value(&size, x, p->name) && size != passed) {
        kl_fail(x->error, KL_EINVAL, "--args", "%.*s is %lld at this shape, but %lld was passed",
                KL_STR_ARG(p->name), (long long)size, (long long)passed);
        return kl_hint(x->error, "name the shape that the program had: --workload M=%lld,...",
                       (long long)passed);
    }
    const int tensor = kl_task_tensor(x->b->task, p->name);
    if (tensor >= 0 && !x->b->task->tensors[tensor].is_scalar)
        return kl_fail(x->error, KL_EINVAL, "--args",
                       "%.*s is a tensor, but %lld@%lld is no pointer into memory of the device",
                       KL_STR_ARG(p->name), (long long)p->argument, (long long)p->byte);
    if (bytes == 8 && tensor < 0)
        add_piece(x, joined, "i64(%.*s)", KL_STR_ARG(p->name));
    else
        add_piece(x, joined, "%.*s", KL_STR_ARG(p->name));
    return KL_OK;
}

/* As many bytes as one piece can say, from `at`; the count is returned in `*took`. */
static kl_err add_passed(binder *x, bool joined, int64_t argument, int64_t at, int64_t left,
                         bool wide, const char *value, int *took) {
    *took = wide && left >= 8 ? 8 : 4;
    bound_place *p = bound_at(x, argument, at);
    if (p && !is_word_of_ours(p->name)) {
        const uint64_t word = passed_word(value, at, *took);
        return add_named(x, joined, p, *took == 8 ? (int64_t)word : (int32_t)word, *took);
    }
    if (p) p->used = true;
    const uint64_t word = passed_word(value, at, *took);
    if (*took == 8 && (int64_t)word != INT64_MIN)
        add_piece(x, joined, "i64(%lld)", (long long)word);
    else
        add_piece(x, joined, "%d", (int)(int32_t)word), *took = 4;
    return KL_OK;
}

/* ---- one parameter ----------------------------------------------------------------------- */

/* Eight bytes at once where none of the second four has a meaning of its own. */
static bool is_wide(binder *x, const json_t *parameter, int64_t argument, int64_t at) {
    return at % 8 == 0 && !bound_at(x, argument, at + 4) &&
           (!bound_at(x, argument, at) || member(parameter, "bytes") == 8);
}

static kl_err add_parameter(binder *x, const json_t *parameter, int64_t argument) {
    const char *value = json_string_value(json_object_get(parameter, "value"));
    const int64_t bytes = member(parameter, "bytes");
    kl_err err = KL_OK;
    if (bytes % 4 != 0 || !*value)
        return kl_fail(x->error, KL_EINVAL, "--launch", "argument %lld has %lld bytes, %s",
                       (long long)argument, (long long)bytes,
                       *value ? "which a kernel file cannot pass" : "which were not seen");
    for (int64_t at = 0; at < bytes && !err;) {
        const json_t *pointer = found_at(parameter, "pointers", at),
                     *map = found_at(parameter, "maps", at);
        const bound_place *p = bound_at(x, argument, at);
        const bool stays = p && kl_str_eq(p->name, KL_S("value"));
        int took = map ? TENSORMAP_BYTES : 8;
        if (map)
            err = add_map(x, at > 0, argument, at, map);
        else if (pointer && !stays)
            err = add_pointer(x, at > 0, argument, at, pointer);
        else
            err = add_passed(x, at > 0, argument, at, bytes - at,
                             is_wide(x, parameter, argument, at), value, &took);
        at += took;
    }
    return err;
}

static kl_err add_parameters(binder *x) {
    size_t i;
    json_t *o;
    kl_err err = KL_OK;
    json_array_foreach(json_object_get(x->launch, "parameters"), i, o) if (!err) err =
        add_parameter(x, o, (int64_t)i);
    for (int k = 0; k < x->n_bound && !err; k++)
        if (!x->bound[k].used) {
            err = kl_fail(x->error, KL_EINVAL, "--args", "there is no argument %lld@%lld for %.*s",
                          (long long)x->bound[k].argument, (long long)x->bound[k].byte,
                          KL_STR_ARG(x->bound[k].name));
            kl_hint(x->error, "klineage capture DIR --launch N shows the arguments");
        }
    return err;
}

/* ---- the file ---------------------------------------------------------------------------- */

/* On one line of a comment, whatever it was. */
static void add_comment(kl_buf *to, kl_arena *a, kl_str text) {
    char *copy = (char *)(uintptr_t)kl_arena_copy(a, text).ptr;
    const size_t n = text.len < 400 ? text.len : 400;
    for (size_t i = 0; i < n; i++)
        if (copy[i] < ' ' || copy[i] > '~' || copy[i] == '\\') copy[i] = '?';
    kl_buf_add(to, (kl_str){copy, n});
    kl_buf_add(to, KL_S("\n"));
}

static kl_err check_launch(binder *x) {
    const json_t *l = x->launch;
    const char *why = json_string_value(json_object_get(l, "why"));
    if (!json_is_string(json_object_get(l, "cubin")))
        return kl_fail(x->error, KL_EINVAL, "--launch", "its code was not kept: %s",
                       why ? why : "unknown");
    if (!json_is_true(json_object_get(l, "told")))
        return kl_fail(x->error, KL_EINVAL, "--launch",
                       "the driver did not say what its arguments are; 12.4 and newer do");
    if (json_is_true(json_object_get(l, "cooperative")))
        return kl_fail(x->error, KL_EINVAL, "--launch",
                       "it is a cooperative launch, which the gate does not make");
    return KL_OK;
}

static kl_err take_captured(kl_str *cubin, binder *x) {
    const kl_str file = kl_str_of(json_string_value(json_object_get(x->launch, "cubin")));
    const kl_str name = kli_fs_basename(file.ptr);
    const char *folder = kli_fs_join(x->arena, x->b->folder, "cubins").ptr;
    const kl_str path = kli_fs_join(x->arena, folder, name.ptr);
    const kl_err err = kli_fs_read(cubin, x->arena, path.ptr, MOST_CUBIN_BYTES, x->error);
    if (err) return err;
    return kl_str_starts(name, kl_str_of(kli_hash_of(*cubin).hex))
               ? KL_OK
               : kl_fail(x->error, KL_EPARSE, path.ptr, "this is not the code that was captured");
}

static void add_sizes(kl_buf *to, const char *name, const json_t *sizes) {
    kl_buf_printf(to, " %s(", name);
    for (size_t i = 0; i < 3; i++)
        kl_buf_printf(to, "%s%lld", i ? ", " : "", json_integer_value(json_array_get(sizes, i)));
    kl_buf_printf(to, ")");
}

static void add_head(kl_buf *to, binder *x, kl_str cubin) {
    const kl_task *t = x->b->task;
    const json_t *l = x->launch;
    const kl_str file = kli_fs_basename(x->b->file);
    kl_buf_printf(to, "// %.*s as a running program launched it, on sm_%lld:\n//   ",
                  KL_STR_ARG(t->name), (long long)member(l, "arch"));
    add_comment(to, x->arena, kli_json_text_or(l, "called", KL_S("")));
    if (json_is_true(json_object_get(l, "overlaps")))
        kl_buf_printf(to,
                      "// There it began before the launch before it had ended; not so here.\n");
    kl_buf_printf(to, "//! cubin %.*s.cubin %s\n", (int)file.len - 3, file.ptr,
                  kli_hash_of(cubin).hex);
    for (int i = 0; i < t->n_axes; i++)
        if (t->axes[i].kind == KL_AXIS_VAR)
            kl_buf_printf(to, "//! require %.*s == %lld\n", KL_STR_ARG(t->axes[i].name),
                          (long long)x->b->workload->axes[i]);
    kl_buf_add(to, kl_buf_str(&x->head));
}

static void add_launch_line(kl_buf *to, const binder *x) {
    const json_t *l = x->launch, *cluster = json_object_get(l, "cluster");
    int c[3] = {1, 1, 1};
    (void)json_unpack((json_t *)(uintptr_t)cluster, "[iii]", &c[0], &c[1], &c[2]);
    kl_buf_printf(to, "//! launch %s", json_string_value(json_object_get(l, "entry")));
    add_sizes(to, "grid", json_object_get(l, "grid"));
    add_sizes(to, "block", json_object_get(l, "block"));
    if (c[0] > 1 || c[1] > 1 || c[2] > 1) add_sizes(to, "cluster", cluster);
    if (member(l, "shared") > 0) kl_buf_printf(to, " smem(%lld)", (long long)member(l, "shared"));
    kl_buf_printf(to, " \\\n//!     args(%.*s)\n", (int)x->args.len,
                  x->args.ptr ? x->args.ptr : "");
}

kl_err kli_capture_bind(kl_str *text, kl_str *cubin, kl_arena *a, const kli_capture_binding *b,
                        kl_error *e) {
    binder *x = KL_NEW(a, binder);
    kl_buf whole = {0};
    *x = (binder){.b = b, .arena = a, .error = e, .column = 14};
    x->launch = kli_capture_launch(b->document, b->launch);
    if (!x->launch)
        return kl_fail(e, KL_EINVAL, "--launch", "there is no launch %lld", (long long)b->launch);
    kl_err err = check_launch(x);
    if (!err) err = parse_args(x);
    if (!err) err = add_parameters(x);
    if (!err) err = take_captured(cubin, x);
    if (!err) {
        add_head(&whole, x, *cubin);
        add_launch_line(&whole, x);
    }
    *text = kl_buf_take(&whole, a);
    kl_buf_fini(&x->head);
    kl_buf_fini(&x->args);
    return err;
}
