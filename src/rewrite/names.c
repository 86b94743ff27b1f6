/* names.c - what a name in a function stands for: a local with its first value, a parameter and
 * through it what a caller gave, an operand of the launch; and numbers that follow from that.
 *
 * A declaration is known by its shape, TYPE NAME; what is no declaration after all adds a name that
 * nobody asks for.  SPDX-License-Identifier: Apache-2.0 */
#include "nests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX_HOPS = 24 }; /* from a name to what it stands for, through calls */

static const kli_tokens *names_tokens(const kli_nests *n) { return &n->r->tokens; }
static kl_str names_text(const kli_nests *n, int i) { return n->r->tokens.at[i].text; }
static bool names_is(const kli_nests *n, int i, const char *words) {
    return kli_is(names_tokens(n), i, words);
}
static bool names_is_name(const kli_nests *n, int i) {
    return kli_is_kind(names_tokens(n), i, KLI_TOKEN_NAME);
}

/* ---- declarations ------------------------------------------------------------------------ */

static bool is_vector_name(const kli_nests *n, kl_str name) {
    const kli_symbol *s = kli_symbol_of(&n->r->names, name, false);
    return (s && s->vector) || kli_is_vector_type(name, n->r->kernel->surface);
}

/* The end of an expression: the comma or semicolon behind it, or the bracket around it. */
static int end_of_value(const kli_nests *n, int i, int end) {
    for (; i < end; i++) {
        if (names_is(n, i, "( [ {")) {
            i = kli_match(names_tokens(n), i, end);
            continue;
        }
        if (names_is(n, i, ", ; ) ] }")) return i;
    }
    return end;
}

static int skip_angles(const kli_nests *n, int i, int end) {
    int depth = 0;
    for (int k = i; k < end && k < i + 32 && !names_is(n, k, "; {"); k++) {
        depth += names_is(n, k, "<") - names_is(n, k, ">");
        if (!depth) return k;
    }
    return i;
}

/* The name of a type with its arguments; -1 where < compares. */
static int skip_type(const kli_nests *n, int i, int end) {
    if (names_is(n, i + 1, "(")) return kli_match(names_tokens(n), i + 1, end);
    if (!names_is(n, i + 1, "<")) return i;
    const int close = skip_angles(n, i + 1, end);
    return close > i + 1 ? close : -1;
}

static const char INTEGERS[] = "int unsigned long size_t int8_t int16_t int32_t int64_t uint8_t "
                               "uint16_t uint32_t uint64_t uint ulong";

/* Where the declared name stands when what begins at `i` declares one; -1. */
static int declared_name(const kli_nests *n, int i, int end, kli_local *as) {
    int words = 0;
    for (; i < end; i++) {
        as->pointer = as->pointer || names_is(n, i, "* &");
        if (names_is(n, i, "* & ::")) continue;
        if (!names_is_name(n, i) ||
            names_is(n, i, "return else goto case new delete asm typedef for while if switch do"))
            return -1;
        if (words && names_is(n, i + 1, "= ; [ , ) :")) return i;
        as->vector = as->vector || is_vector_name(n, names_text(n, i));
        as->pair = as->pair || kl_str_ends(names_text(n, i), KL_S("2"));
        as->shared = as->shared || names_is(n, i, "__shared__ __local");
        as->integer = as->integer || names_is(n, i, INTEGERS);
        i = skip_type(n, i, end);
        if (i < 0 || i >= end) return -1;
        words++;
    }
    return -1;
}

static void add_local(kli_nests *n, kli_locals *to, kli_local as, int name, int end) {
    int i = name + 1;
    as.name = names_text(n, name);
    as.at = name;
    for (; names_is(n, i, "["); i++, as.array = true) i = kli_match(names_tokens(n), i, end);
    if (names_is(n, i, "=")) as.init = (kli_range){i + 1, end_of_value(n, i + 1, end)};
    *KL_PUSH(n->arena, to->at, to->n) = as;
}

/* TYPE a = 1, *b; the token behind it */
static int read_declaration(kli_nests *n, kli_locals *to, int i, int end) {
    kli_local as = {0};
    for (int name = declared_name(n, i, end, &as); name >= 0;) {
        add_local(n, to, as, name, end);
        i = end_of_value(n, name + 1, end);
        if (!names_is(n, i, ",")) break;
        as.pointer = names_is(n, ++i, "*");
        while (names_is(n, i, "*")) i++;
        name = names_is_name(n, i) && names_is(n, i + 1, "= ; [ ,") ? i : -1;
    }
    return i;
}

static void read_parameters(kli_nests *n, kli_locals *to, const kli_function *f) {
    const int open = f->name + 1, close = kli_match(names_tokens(n), open, f->body + 1);
    for (int i = open + 1; i < close; i++) {
        const int end = end_of_value(n, i, close);
        kli_local as = {0};
        int name = -1;
        for (; i < end; i++) {
            as.array = as.array || (as.pointer && names_is(n, i, "["));
            as.pointer = as.pointer || names_is(n, i, "* & [");
            if (names_is(n, i, "[ =")) break;
            if (names_is(n, i, "(")) name = i = names_is(n, i + 1, "&") ? i + 2 : i;
            if (!names_is_name(n, i)) continue;
            as.vector = as.vector || is_vector_name(n, names_text(n, i));
            as.pair = as.pair || kl_str_ends(names_text(n, i), KL_S("2"));
            as.integer = as.integer || names_is(n, i, INTEGERS);
            name = i;
        }
        if (name >= 0) {
            as.name = names_text(n, name);
            as.at = name;
            *KL_PUSH(n->arena, to->at, to->n) = as;
            to->n_params++;
        }
        i = end;
    }
}

static void read_locals(kli_nests *n, kli_locals *to, const kli_function *f) {
    read_parameters(n, to, f);
    for (int i = f->body + 1; i < f->end; i++) {
        const bool start = names_is(n, i - 1, "; { }") ||
                           kli_is_kind(names_tokens(n), i - 1, KLI_TOKEN_LINE) ||
                           (names_is(n, i - 1, "(") && names_is(n, i - 2, "for"));
        if (!start || !names_is_name(n, i)) continue;
        const int behind = read_declaration(n, to, i, f->end);
        if (behind > i) i = behind - 1;
    }
}

static bool is_upper(kl_str name) {
    bool upper = false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') return false;
        upper = upper || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z');
    }
    return upper;
}

void kli_names_read(kli_nests *n) {
    n->locals = KL_ARRAY(n->arena, kli_locals, n->r->n_functions + 1);
    kli_symbols_init(&n->constants, n->arena, n->r->tokens.n + 1);
    for (int i = 0; i + 1 < n->r->tokens.n; i++)
        if (names_is(n, i + 1, "=") && is_upper(names_text(n, i))) {
            kli_symbol *s = kli_symbol_of(&n->constants, names_text(n, i), true);
            if (s->first < 0) s->first = i + 2; /* the first branch of #if speaks for all */
        }
    for (int f = 0; f < n->r->n_functions; f++)
        if (n->r->functions[f].reached) read_locals(n, &n->locals[f], &n->r->functions[f]);
}

const kli_local *kli_local_of(const kli_nests *n, const kli_frame *f, kl_str name, int before) {
    const kli_locals *l = &n->locals[f->function];
    KL_ASSERT(l->n_params <= l->n);
    if (kli_nests_tired(n, l->n)) return NULL;
    for (int i = l->n - 1; i >= 0; i--)
        if (l->at[i].at <= before && kl_str_eq(l->at[i].name, name)) return &l->at[i];
    return NULL;
}

/* Which parameter a local is; -1: none. */
static int parameter_of(const kli_nests *n, const kli_frame *f, const kli_local *l) {
    const kli_locals *all = &n->locals[f->function];
    KL_ASSERT(l >= all->at && l < all->at + all->n);
    return l - all->at < all->n_params ? (int)(l - all->at) : -1;
}

/* ---- calls and casts --------------------------------------------------------------------- */

int kli_function_at(const kli_nests *n, int i) {
    if (!names_is_name(n, i)) return -1;
    const int behind = names_is(n, i + 1, "<") ? skip_angles(n, i + 1, n->r->tokens.n) + 1 : i + 1;
    const kli_symbol *s = kli_symbol_of(&n->r->names, names_text(n, i), false);
    return names_is(n, behind, "(") && s && s->first >= 0 && n->r->functions[s->first].reached
               ? s->first
               : -1;
}

int kli_split_arguments(const kli_nests *n, kli_range *out, int most, kli_range expr) {
    int k = 0;
    for (int i = expr.begin; i < expr.end && k < most; i++) {
        const int end = end_of_value(n, i, expr.end);
        out[k++] = (kli_range){i, end};
        i = end;
    }
    KL_ASSERT(k <= most);
    return k;
}

int kli_skip_cast(const kli_nests *n, const kli_frame *f, int i, int end) {
    while (names_is(n, i, "(")) {
        const int close = kli_match(names_tokens(n), i, end);
        int k = i + 1;
        while (k < close && (names_is(n, k, "* & ::") || names_is_name(n, k))) k++;
        const bool value = close == i + 2 && kli_local_of(n, f, names_text(n, i + 1), i);
        const bool operand = close + 1 < end &&
                             (names_is_name(n, close + 1) || names_is(n, close + 1, "( * & { ~") ||
                              kli_is_kind(names_tokens(n), close + 1, KLI_TOKEN_NUMBER));
        if (k < close || close == i + 1 || value || !operand) return i;
        i = close + 1;
    }
    return i;
}

/* ---- operands ---------------------------------------------------------------------------- */

static kli_root tensor_or_buffer(const kli_nests *n, kl_str name) {
    const kl_kernel *k = n->r->kernel;
    for (int i = 0; i < k->n_tensormaps; i++)
        if (kl_str_eq(k->tensormaps[i].name, name)) name = k->tensormaps[i].tensor;
    for (int i = 0; i < k->n_buffers; i++)
        if (kl_str_eq(k->buffers[i].name, name)) return (kli_root){KLI_ROOT_BUFFER, name, NULL, 0};
    const int t = n->task ? kl_task_tensor(n->task, name) : -1;
    if (t < 0 || n->task->tensors[t].is_scalar) return (kli_root){0};
    return (kli_root){n->task->tensors[t].is_output ? KLI_ROOT_OUTPUT : KLI_ROOT_INPUT,
                      n->task->tensors[t].name, NULL, 0};
}

static kl_str launched_name(const kl_launch *l, int i) {
    return l && i < l->n_args ? kl_str_trim(l->args[i].expr.text) : (kl_str){0};
}

static kli_root root_within(const kli_nests *n, const kli_frame *f, kli_range expr, int hops);

static kli_root root_of_name(const kli_nests *n, const kli_frame *f, int at, int hops);

/* { .name = value } in one of the functions that are running. */
static kli_root root_of_initializer(const kli_nests *n, const kli_frame *f, kl_str name, int hops) {
    for (; f && !kli_nests_tired(n, n->r->functions[f->function].end -
                                        n->r->functions[f->function].body);
         f = f->caller)
        for (int i = n->r->functions[f->function].body; i < n->r->functions[f->function].end; i++)
            if (names_is(n, i - 1, ".") && names_is(n, i - 2, "{ ,") && names_is(n, i + 1, "=") &&
                kl_str_eq(names_text(n, i), name))
                return root_within(
                    n, f,
                    (kli_range){i + 2, end_of_value(n, i + 2, n->r->functions[f->function].end)},
                    hops + 1);
    return (kli_root){0};
}

/* A member is an operand of the launch when it is called like one, or set to one; of memory of a
 * block, a part. */
static kli_root root_of_member(const kli_nests *n, const kli_frame *f, int at, int hops) {
    kli_root r = tensor_or_buffer(n, names_text(n, at));
    if (r.kind || !names_is_name(n, at - 2) || hops > NAMES_MAX_HOPS) return r;
    r = root_of_initializer(n, f, names_text(n, at), hops);
    if (r.kind) return r;
    r = root_of_name(n, f, at - 2, hops + 1);
    if (r.kind != KLI_ROOT_SHARED) return (kli_root){0};
    r.name = names_text(n, at);
    return r;
}

/* rows[i] = x + ...: what an array of pointers points into. */
static kli_root root_of_elements(const kli_nests *n, const kli_frame *f, const kli_local *l,
                                 int hops) {
    const int end = n->r->functions[f->function].end;
    if (kli_nests_tired(n, l->at < end ? end - l->at : 0)) return (kli_root){0};
    for (int i = l->at + 1; i < end; i++) {
        if (!kl_str_eq(names_text(n, i), l->name) || !names_is(n, i + 1, "[")) continue;
        const int close = kli_match(names_tokens(n), i + 1, end);
        if (names_is(n, close + 1, "="))
            return root_within(n, f, (kli_range){close + 2, end_of_value(n, close + 2, end)},
                               hops + 1);
    }
    return (kli_root){0};
}

static kli_root root_of_name(const kli_nests *n, const kli_frame *f, int at, int hops) {
    const kl_str name = names_text(n, at);
    const kli_local *l = kli_local_of(n, f, name, at);
    if (names_is(n, at - 1, "-> .")) return root_of_member(n, f, at, hops);
    if (!l || hops > NAMES_MAX_HOPS) return tensor_or_buffer(n, name);
    const int p = parameter_of(n, f, l);
    if (p >= 0 && !f->caller) return tensor_or_buffer(n, launched_name(f->launch, p));
    if (!l->pointer && !l->array && !l->shared) return (kli_root){0}; /* a number */
    if (p >= 0) {
        const kli_range none = {0};
        return p < f->n_args ? root_within(n, f->caller, f->args[p], hops + 1)
                             : root_within(n, f->caller, none, hops);
    }
    if (!l->shared && (!l->array || !l->init.end)) {
        const kli_root from = root_within(n, f, l->init, hops + 1);
        if (from.kind && !l->array) return from;
    }
    if (l->array && l->pointer) {
        const kli_root of = root_of_elements(n, f, l, hops);
        if (of.kind) return of;
    }
    const kli_root_kind kind = l->shared ? KLI_ROOT_SHARED : l->array ? KLI_ROOT_LOCAL : 0;
    return (kli_root){kind, kind ? name : (kl_str){0}, f, l->at};
}

/* Of the first pointer in it: an index stands behind what it belongs to, and a function that is
 * given a pointer is taken to return one into the same. */
static kli_root root_within(const kli_nests *n, const kli_frame *f, kli_range expr, int hops) {
    if (kli_nests_tired(n, expr.end > expr.begin ? expr.end - expr.begin : 0)) return (kli_root){0};
    for (int i = expr.begin; i < expr.end; i++) {
        i = kli_skip_cast(n, f, i, expr.end);
        if (i >= expr.end) break;
        if (names_is_name(n, i) && !names_is(n, i + 1, "( -> .")) {
            const kli_root r = root_of_name(n, f, i, hops);
            if (r.kind) return r;
        }
        if (names_is(n, i, "[")) i = kli_match(names_tokens(n), i, expr.end);
    }
    return (kli_root){0};
}

kli_root kli_root_of(const kli_nests *n, const kli_frame *f, kli_range expr) {
    return root_within(n, f, expr, 0);
}

/* ---- numbers ----------------------------------------------------------------------------- */

typedef struct {
    const kli_nests *n;
    const kli_frame *f;
    int i, end, hops;
} names_cursor;

static const kli_amount NOBODY_KNOWS = {0};

static kli_amount names_sum(names_cursor *c);

static kli_amount names_within(const kli_nests *n, const kli_frame *f, kli_range expr, int hops) {
    names_cursor c = {n, f, expr.begin, expr.end, hops};
    if (hops > NAMES_MAX_HOPS || expr.begin >= expr.end || kli_nests_tired(n, 0))
        return NOBODY_KNOWS;
    const kli_amount a = names_sum(&c);
    /* alternatives of #if stand one behind the other: the first speaks for all */
    return c.i >= c.end || kli_is_kind(names_tokens(n), c.i, KLI_TOKEN_NUMBER) ? a : NOBODY_KNOWS;
}

static kli_amount amount_at_launch(const kli_nests *n, kl_str name) {
    const kl_kernel *k = n->r->kernel;
    const kl_str word = kl_str_starts(name, KL_S("KL_")) ? kli_from(name, 3) : name;
    for (int i = 0; i < k->n_params; i++)
        if (kl_str_eq(k->params[i].name, word))
            return (kli_amount){true, true, (double)k->params[i].value, word};
    const int axis = n->task ? kl_task_axis(n->task, word) : -1;
    if (axis < 0) return NOBODY_KNOWS;
    if (n->task->axes[axis].kind == KL_AXIS_CONST)
        return (kli_amount){true, true, (double)n->task->axes[axis].value, word};
    return n->workload ? (kli_amount){true, false, (double)n->workload->axes[axis], word}
                       : (kli_amount){.axis = word};
}

static bool is_reassigned(const kli_nests *n, const kli_frame *f, const kli_local *l) {
    const int end = n->r->functions[f->function].end;
    if (kli_nests_tired(n, l->at < end ? end - l->at : 0)) return true;
    for (int i = l->at + 1; i < end; i++)
        if (kl_str_eq(names_text(n, i), l->name) && !names_is(n, i - 1, "-> .") &&
            (names_is(n, i + 1, "= += -= *= /= ++ -- <<= >>=") || names_is(n, i - 1, "++ --")))
            return true;
    return false;
}

static kli_amount amount_of_name(names_cursor *c, int at) {
    const kli_nests *n = c->n;
    const kl_str name = names_text(n, at);
    const kli_local *l = kli_local_of(n, c->f, name, at);
    if (!l) {
        const kli_symbol *s = kli_symbol_of(&n->constants, name, false);
        if (!s) return amount_at_launch(n, name);
        return names_within(
            n, c->f, (kli_range){s->first, end_of_value(n, s->first, n->r->tokens.n)}, c->hops + 1);
    }
    const int p = parameter_of(n, c->f, l);
    if (is_reassigned(n, c->f, l)) return NOBODY_KNOWS;
    if (p >= 0 && !c->f->caller) return amount_at_launch(n, launched_name(c->f->launch, p));
    if (p >= 0)
        return p < c->f->n_args ? names_within(n, c->f->caller, c->f->args[p], c->hops + 1)
                                : NOBODY_KNOWS;
    return names_within(n, c->f, l->init, c->hops + 1);
}

static kli_amount names_factor(names_cursor *c) {
    c->i = kli_skip_cast(c->n, c->f, c->i, c->end);
    if (c->i >= c->end) return NOBODY_KNOWS;
    const int at = c->i++;
    if (names_is(c->n, at, "-")) {
        kli_amount a = names_factor(c);
        a.value = -a.value;
        return a;
    }
    if (names_is(c->n, at, "(")) {
        const int close = kli_match(names_tokens(c->n), at, c->end);
        c->i = close + 1;
        return names_within(c->n, c->f, (kli_range){at + 1, close}, c->hops + 1);
    }
    if (kli_is_kind(names_tokens(c->n), at, KLI_TOKEN_NUMBER)) {
        /* what a macro stands for in each branch of #if, the first branch last */
        while (kli_is_kind(names_tokens(c->n), c->i, KLI_TOKEN_NUMBER) && c->i < c->end) c->i++;
        const double v = strtod(kl_arena_copy(c->n->arena, names_text(c->n, c->i - 1)).ptr, NULL);
        return (kli_amount){true, true, v, {0}};
    }
    if (!names_is_name(c->n, at) || names_is(c->n, c->i, "( [ -> .")) return NOBODY_KNOWS;
    return amount_of_name(c, at);
}

static kli_amount amount_with(kli_amount a, kli_amount b, double value) {
    return (kli_amount){a.known && b.known && isfinite(value), a.fixed && b.fixed, value, {0}};
}

static kli_amount names_product(names_cursor *c) {
    kli_amount a = names_factor(c);
    while (c->i < c->end && names_is(c->n, c->i, "* / % << >>")) {
        const char op = names_text(c->n, c->i++).ptr[0];
        const kli_amount b = names_factor(c);
        const double v = op == '*'   ? a.value * b.value
                         : op == '/' ? trunc(a.value / b.value)
                         : op == '%' ? fmod(a.value, b.value)
                         : op == '<' ? ldexp(a.value, (int)b.value)
                                     : floor(ldexp(a.value, -(int)b.value));
        a = amount_with(a, b, v);
    }
    return a;
}

static kli_amount names_sum(names_cursor *c) {
    kli_amount a = names_product(c);
    while (c->i < c->end && names_is(c->n, c->i, "+ -")) {
        const bool plus = names_is(c->n, c->i++, "+");
        const kli_amount b = names_product(c);
        a = amount_with(a, b, plus ? a.value + b.value : a.value - b.value);
    }
    return a;
}

kli_amount kli_amount_of(const kli_nests *n, const kli_frame *f, kli_range expr) {
    return names_within(n, f, expr, 0);
}
