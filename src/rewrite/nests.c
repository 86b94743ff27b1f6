/* nests.c - a walk through what a launch runs: loops, calls, reads, writes and sums, each told to
 * all loops around it.  Work is bounded: past a bound the rest of the source adds nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nests.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

enum {
    NESTS_MAX_CALLS = 4000,     /* followed in all */
    NESTS_MAX_DEPTH = 10,       /* of calls in calls */
    NESTS_MAX_LOOPS = 1024,     /* the largest expert runs about a hundred */
    NESTS_MAX_ACCESSES = 20000, /* told to the loops around them */
    NESTS_MOST_UNROLLED = 64,   /* turns of a loop that registers can be counted through */
    NESTS_COMPUTING_CALLS = 2,  /* in which a product is looked for */
    NESTS_MAX_ARGUMENTS = 64,
    NESTS_MAX_MEMORIES = 128,
    NESTS_MAX_HEADER = 200 /* tokens of a header, looked back on */
};

static const kli_tokens *nests_tokens(const kli_nests *n) { return &n->r->tokens; }
static kl_str nests_text(const kli_nests *n, int i) { return n->r->tokens.at[i].text; }
static bool nests_is(const kli_nests *n, int i, const char *words) {
    return kli_is(nests_tokens(n), i, words);
}
static bool nests_is_name(const kli_nests *n, int i) {
    return kli_is_kind(nests_tokens(n), i, KLI_TOKEN_NAME);
}

static int line_of(const kli_nests *n, int token) {
    KL_ASSERT(token >= 0 && token < n->r->tokens.n);
    const kl_str source = n->r->kernel->source, text = nests_text(n, token);
    int line = 1;
    for (const char *p = source.ptr; p < text.ptr; p++) line += *p == '\n';
    return line;
}

static void nests_walk(kli_nests *n, const kli_frame *f, int begin, int end, int nest);

/* ---- statements -------------------------------------------------------------------------- */

static int nests_statement_end(const kli_nests *n, int i, int end) {
    for (int depth = 0; depth < KLI_MAX_DEPTH && i < end; depth++) {
        while (kli_is_kind(nests_tokens(n), i, KLI_TOKEN_LINE)) i++;
        if (nests_is(n, i, "_Pragma")) i = kli_match(nests_tokens(n), i + 1, end) + 1;
        if (nests_is(n, i, "{")) return kli_match(nests_tokens(n), i, end) + 1;
        if (nests_is(n, i, "else do")) {
            i++;
            continue;
        }
        if (!nests_is(n, i, "for while if switch")) break;
        i = kli_match(nests_tokens(n), i + 1 + nests_is(n, i + 1, "constexpr"), end) + 1;
    }
    for (; i < end && !nests_is(n, i, ";"); i++)
        if (nests_is(n, i, "( { [")) i = kli_match(nests_tokens(n), i, end);
    return i < end ? i + 1 : end;
}

/* ---- loops ------------------------------------------------------------------------------- */

static int value_end(const kli_nests *n, int i, int end) {
    for (; i < end && !nests_is(n, i, ", ; )"); i++)
        if (nests_is(n, i, "( [ {")) i = kli_match(nests_tokens(n), i, end);
    return i;
}

/* i++, b += NR, step *= 2 */
static void nests_step(kli_nests *n, kli_nest *l) {
    for (int i = l->loop.step; i < l->loop.close && l->n_vars < KLI_NEST_VARS; i++) {
        if (!nests_is_name(n, i) || nests_is(n, i - 1, "-> .")) continue;
        const bool one = nests_is(n, i + 1, "++ --") || nests_is(n, i - 1, "++ --");
        const bool by = nests_is(n, i + 1, "+= -= *= /= <<= >>= =");
        if (!one && !by) continue;
        const int end = value_end(n, i + 2, l->loop.close);
        const kli_amount a = kli_amount_of(n, l->frame, (kli_range){i + 2, end});
        l->doubles = l->doubles || nests_is(n, i + 1, "*= <<= /= >>=");
        if (!l->n_vars) l->step = one ? 1 : a.known ? a.value : NAN;
        l->steps[l->n_vars] = one || !l->n_vars ? KLI_STRIDE_UNIT
                              : a.fixed         ? KLI_STRIDE_BLOCK
                                                : KLI_STRIDE_FAR;
        l->vars[l->n_vars++] = nests_text(n, i);
        if (by) i = end - 1;
    }
}

/* Of the first loop variable: what it starts from. */
static kli_amount first_value(kli_nests *n, const kli_nest *l) {
    for (int i = l->loop.open + 1; i < l->loop.condition && l->n_vars; i++)
        if (kl_str_eq(nests_text(n, i), l->vars[0]) && nests_is(n, i + 1, "="))
            return kli_amount_of(n, l->frame,
                                 (kli_range){i + 2, value_end(n, i + 2, l->loop.condition)});
    const kli_amount zero = {.known = true, .fixed = true};
    return zero;
}

static void read_condition(kli_nests *n, kli_nest *l) {
    int op = l->loop.condition;
    const int close = l->loop.step - 1;
    while (op < close && !nests_is(n, op, "< <= > >= !=")) op++;
    int end = op + 1;
    while (end < close && !nests_is(n, end, "&& ||")) end++;
    const kli_amount last = kli_amount_of(n, l->frame, (kli_range){op + 1, end});
    const kli_amount from = first_value(n, l);
    l->bound = last.axis;
    if (last.known && from.known && l->step > 0 && !l->doubles)
        l->turns = ceil(fabs(last.value - from.value) / l->step);
    if (l->doubles && last.known && last.value > 0) l->turns = ceil(log2(last.value));
    l->fixed =
        last.known && last.fixed && from.known && from.fixed && !(l->turns > NESTS_MOST_UNROLLED);
}

static void tell_parents(kli_nests *n, int nest) {
    const bool open = !n->nests[nest].fixed;
    for (int p = n->nests[nest].parent; p >= 0; p = n->nests[p].parent) {
        KL_ASSERT(p < n->n_nests);
        n->nests[p].inner++;
        n->nests[p].inner_open += open;
    }
}

static int open_nest(kli_nests *n, const kli_frame *f, int at, int end, int parent) {
    const bool is_for = nests_is(n, at, "for");
    *KL_PUSH(n->arena, n->nests, n->n_nests) =
        (kli_nest){.frame = f, .parent = parent, .turns = NAN, .step = NAN, .line = line_of(n, at)};
    kli_nest *l = &n->nests[n->n_nests - 1];
    kli_read_header(&l->loop, nests_tokens(n), at, end);
    if (nests_is(n, at, "do")) l->loop.body = at + 1, l->loop.close = at;
    if (l->loop.body > end) l->loop.body = end; /* a header that does not close */
    l->loop.after = nests_statement_end(n, l->loop.body, end);
    KL_ASSERT(l->loop.body <= l->loop.after);
    l->waits = !is_for || !l->loop.step;
    if (!l->waits) {
        nests_step(n, l);
        read_condition(n, l);
    }
    tell_parents(n, n->n_nests - 1);
    return n->n_nests - 1;
}

static int walk_loop(kli_nests *n, const kli_frame *f, int at, int end, int parent) {
    if (n->n_nests == NESTS_MAX_LOOPS) return at + 1;
    const int nest = open_nest(n, f, at, end, parent);
    const kli_loop loop = n->nests[nest].loop;
    if (loop.condition) nests_walk(n, f, loop.open + 1, loop.condition, parent);
    if (n->nests[nest].waits) nests_walk(n, f, loop.open, loop.close, nest);
    nests_walk(n, f, loop.body, loop.after, nest);
    return loop.after > at ? loop.after : at + 1;
}

/* ---- calls ------------------------------------------------------------------------------- */

static void walk_body(kli_nests *n, const kli_frame *f, int callee, kli_range args, int nest) {
    if (f->depth == NESTS_MAX_DEPTH || n->frames >= NESTS_MAX_CALLS) return;
    for (const kli_frame *up = f; up; up = up->caller)
        if (up->function == callee) return; /* a recursion adds nothing */
    kli_frame *g = KL_NEW(n->arena, kli_frame);
    *g = (kli_frame){.caller = f, .function = callee, .depth = f->depth + 1};
    g->args = KL_ARRAY(n->arena, kli_range, NESTS_MAX_ARGUMENTS);
    g->n_args = kli_split_arguments(n, g->args, NESTS_MAX_ARGUMENTS, args);
    n->frames++;
    nests_walk(n, g, n->r->functions[callee].body + 1, n->r->functions[callee].end, nest);
}

/* What a function is given is made before it runs.  The token behind the call. */
static int walk_call(kli_nests *n, const kli_frame *f, int callee, int at, int nest) {
    int open = at + 1;
    while (!nests_is(n, open, "(")) open++;
    const int close = kli_match(nests_tokens(n), open, n->r->tokens.n);
    nests_walk(n, f, open + 1, close, nest);
    walk_body(n, f, callee, (kli_range){open + 1, close}, nest);
    return close + 1;
}

/* ---- reads and writes -------------------------------------------------------------------- */

typedef struct {
    const kli_frame *frame;
    kli_range where;                                      /* the operand with its index */
    bool write, read, vector, pair, adds, bulk, computed; /* pair: a vector of two */
    kli_range value;                                      /* what is written */
} nests_access;

static bool same_root(const kli_root *a, const kli_root *b) {
    return a->kind == b->kind && kl_str_eq(a->name, b->name) && a->at == b->at;
}

static kli_operand *operand_of(kli_nest *l, const kli_root *root) {
    for (int i = 0; i < l->n_operands; i++)
        if (same_root(&l->operands[i].root, root)) return &l->operands[i];
    KL_ASSERT(root->kind != KLI_ROOT_NONE && l->n_operands <= KLI_NEST_OPERANDS);
    if (l->n_operands == KLI_NEST_OPERANDS) return NULL;
    kli_operand *o = &l->operands[l->n_operands++];
    *o = (kli_operand){.root = *root};
    return o;
}

/* Turns of the fixed loops between an access and the loop `nest` that count through `where`; a
 * plain name is one place. */
static double in_flight(kli_nests *n, int from, int nest, const kli_frame *f, kli_range where,
                        int *dims) {
    double all = 1;
    if (where.end <= where.begin + 1) return all;
    for (int i = from; i >= 0 && i != nest; i = n->nests[i].parent)
        if (n->nests[i].fixed && n->nests[i].turns >= 1 &&
            kli_stride_of(n, &n->nests[i], f, where) != KLI_STRIDE_NONE) {
            all *= n->nests[i].turns;
            (*dims)++;
        }
    return all;
}

static void tell_loop(kli_nests *n, int nest, int innermost, const nests_access *x,
                      const kli_root *root) {
    kli_nest *l = &n->nests[nest];
    kli_operand *o = operand_of(l, root);
    const kli_stride s = kli_stride_of(n, l, x->frame, x->where);
    int dims = 0;
    if (x->vector) l->vector = true;
    if (!o) return;
    o->adds = o->adds || x->adds;
    if (x->write) {
        o->computed = o->computed || x->computed;
        o->writes++;
        o->write = s > o->write ? s : o->write;
    }
    if (!x->read) return;
    o->reads++;
    o->read = s > o->read ? s : o->read;
    *(x->vector ? &o->vector : &o->scalar) = true;
    if (root->kind != KLI_ROOT_LOCAL)
        l->loads += in_flight(n, innermost, nest, x->frame, x->where, &dims);
}

static kli_memory *memory_of(kli_nests *n, const kli_root *root, int token) {
    for (int i = 0; i < n->n_memories; i++)
        if (same_root(&n->memories[i].root, root)) return &n->memories[i];
    if (n->n_memories == NESTS_MAX_MEMORIES) return NULL;
    *KL_PUSH(n->arena, n->memories, n->n_memories) =
        (kli_memory){.root = *root, .line = line_of(n, token)};
    return &n->memories[n->n_memories - 1];
}

/* ---- what is written --------------------------------------------------------------------- */

/* Is something multiplied or powered there, or in a function that is called there? */
static bool computes_within(const kli_nests *n, kli_range e, int calls) {
    if (kli_nests_tired(n, e.end > e.begin ? e.end - e.begin : 0)) return false;
    for (int i = e.begin; i < e.end; i++) {
        const kl_str word = nests_text(n, i);
        const int callee = calls ? kli_function_at(n, i) : -1;
        if (callee >= 0 &&
            computes_within(
                n, (kli_range){n->r->functions[callee].body + 1, n->r->functions[callee].end},
                calls - 1))
            return true;
        const bool word_before = nests_is_name(n, i - 1) && !nests_is(n, i - 1, "sizeof return");
        const bool binary = i > e.begin && (word_before || nests_is(n, i - 1, ") ]") ||
                                            kli_is_kind(nests_tokens(n), i - 1, KLI_TOKEN_NUMBER));
        if (binary && nests_is(n, i, "* /") && !nests_is(n, i + 1, ")")) return true;
        if (nests_is_name(n, i) &&
            (kli_one_of(word, "exp expf exp2 exp2f __expf fma fmaf sqrtf rsqrtf") ||
             kli_contains(word, "fmadd") || kli_contains(word, "dpbusd")))
            return true;
        if (nests_is(n, i, "[")) i = kli_match(nests_tokens(n), i, e.end); /* an index */
    }
    return false;
}

/* What a condition decides between is the value, not the condition. */
static bool computes(const kli_nests *n, kli_range e) {
    for (int i = e.begin; i < e.end; i++) {
        if (nests_is(n, i, "( [ {")) i = kli_match(nests_tokens(n), i, e.end);
        if (nests_is(n, i, "?")) e.begin = i + 1;
    }
    return computes_within(n, e, NESTS_COMPUTING_CALLS);
}

/* Is a number of another type made into a float there? */
static bool converts(const kli_nests *n, kli_range e) {
    for (int i = e.begin; i < e.end; i++)
        if (nests_is_name(n, i) && (kl_str_starts(nests_text(n, i), KL_S("float")) ||
                                    kli_contains(nests_text(n, i), "2float")))
            return true;
    return false;
}

/* The input, or the memory that was filled from one, whose elements a value is. */
static kl_str copied_input(kli_nests *n, const kli_frame *f, kli_range e, int hops,
                           bool *converted) {
    *converted = *converted || converts(n, e);
    for (int i = e.begin; i < e.end; i++) {
        if (!nests_is_name(n, i) || nests_is(n, i - 1, "-> .")) continue;
        const kli_local *l = kli_local_of(n, f, nests_text(n, i), i);
        const kli_root r = kli_root_of(n, f, (kli_range){i, i + 1});
        if (r.kind == KLI_ROOT_INPUT) return r.name;
        for (int m = 0; m < n->n_memories; m++)
            if (r.kind && same_root(&n->memories[m].root, &r) && n->memories[m].copied)
                return n->memories[m].source;
        if (!l || hops > 3 || r.kind) continue;
        /* a local that took its value on the way */
        if (kli_nests_tired(n, i - n->r->functions[f->function].body)) break;
        for (int k = i - 1; k > n->r->functions[f->function].body; k--)
            if (kl_str_eq(nests_text(n, k), l->name) && nests_is(n, k + 1, "=")) {
                const kl_str from = copied_input(n, f, (kli_range){k + 2, value_end(n, k + 2, i)},
                                                 hops + 1, converted);
                if (from.len) return from;
            }
    }
    return (kl_str){0};
}

static bool is_cleared(const kli_nests *n, kli_range e) {
    for (int i = e.begin; i < e.end; i++)
        if (nests_is_name(n, i) && !kli_one_of(nests_text(n, i), "INFINITY make_int4 make_uint4"))
            return false;
    return e.end > e.begin;
}

static bool holds_floats(const kli_nests *n, kl_str input) {
    const int t = n->task ? kl_task_tensor(n->task, input) : -1;
    return t >= 0 && (n->workload ? n->workload->dtypes[t] : n->task->tensors[t].dtype) == KL_F32;
}

static void tell_memory(kli_nests *n, const nests_access *x, const kli_root *root, int nest) {
    kli_memory *m = memory_of(n, root, x->where.begin);
    if (!m) return;
    m->reads += x->read;
    m->vector = m->vector || (x->vector && x->read);
    if (!x->write) return;
    bool converted = converts(n, x->where);
    const kl_str from =
        x->computed ? (kl_str){0} : copied_input(n, x->frame, x->value, 0, &converted);
    const bool gathers =
        nest >= 0 && kli_stride_of(n, &n->nests[nest], x->frame, x->where) == KLI_STRIDE_GATHER;
    m->updated = m->updated || (x->adds && !gathers);
    if (x->adds && gathers)
        m->counted++;
    else if (from.len)
        m->copied++, m->source = from,
                     m->converted = m->converted || (converted && !holds_floats(n, from));
    else if (is_cleared(n, x->value))
        m->cleared++;
    else
        m->computed++;
}

static void note_access(kli_nests *n, int nest, nests_access *x) {
    x->computed = x->write && !x->bulk && computes(n, x->value);
    const kli_root root = kli_root_of(n, x->frame, x->where);
    if (n->accesses++ >= NESTS_MAX_ACCESSES || !root.kind) return;
    n->wide = n->wide || (root.kind == KLI_ROOT_INPUT && x->read && x->vector && !x->pair);
    if (root.kind != KLI_ROOT_INPUT) tell_memory(n, x, &root, nest);
    for (int i = nest; i >= 0; i = n->nests[i].parent) tell_loop(n, i, nest, x, &root);
}

static bool is_pair_type(kl_str name) {
    return kl_str_ends(name, KL_S("2")) || kli_one_of(name, "__nv_bfloat162");
}

/* Does the place hold vectors?  A cast or a name of a vector type says so. */
static bool is_vector_place(const kli_nests *n, const kli_frame *f, int begin, int end,
                            bool *pair) {
    for (int i = begin; i < end; i++) {
        if (!nests_is_name(n, i)) continue;
        const kl_str name = nests_text(n, i);
        const kli_symbol *s = kli_symbol_of(&n->r->names, name, false);
        const kli_local *l = kli_local_of(n, f, name, i);
        if ((l && l->vector) || (!l && s && s->vector) ||
            (!l && kli_is_vector_type(name, n->r->kernel->surface)))
            return *pair = l ? l->pair : is_pair_type(name), true;
    }
    return false;
}

/* ---- sums -------------------------------------------------------------------------------- */

static uint64_t nests_hash(const kli_nests *n, int begin, int end) {
    uint64_t hash = 0;
    for (int i = begin; i < end; i++)
        hash = hash * 31 + kli_hash_bulk(nests_text(n, i).ptr, nests_text(n, i).len);
    return hash;
}

static void add_sum(kli_nest *l, const kli_sum *sum) {
    for (int i = 0; i < l->n_sums; i++)
        if (l->sums[i].key == sum->key) {
            l->sums[i].product = l->sums[i].product || sum->product;
            l->sums[i].whole = l->sums[i].whole && sum->whole;
            return;
        }
    KL_ASSERT(l->n_sums <= KLI_NEST_SUMS);
    if (l->n_sums < KLI_NEST_SUMS) l->sums[l->n_sums++] = *sum;
}

/* Turns of all fixed loops between `from` and the loop `nest`. */
static double times(const kli_nests *n, int from, int nest) {
    double all = 1;
    for (int i = from; i >= 0 && i != nest; i = n->nests[i].parent)
        if (n->nests[i].fixed && n->nests[i].turns >= 1) all *= n->nests[i].turns;
    return all;
}

/* Does a value depend on what lies in memory, and not on where alone? */
static bool reads_memory(const kli_nests *n, const kli_frame *f, kli_range e) {
    for (int i = e.begin; i < e.end; i++) {
        const kli_local *l = nests_is_name(n, i) ? kli_local_of(n, f, nests_text(n, i), i) : NULL;
        if (nests_is(n, i + 1, "[") || (l && !l->integer && !l->pointer)) return true;
        if (l && l->init.end && kli_root_of(n, f, l->init).kind) return true;
    }
    return false;
}

/* target += value: a sum of every loop that it outlives and that does not count through it. */
static void note_sum(kli_nests *n, const kli_frame *f, kli_range target, kli_range value,
                     int nest) {
    const kli_local *local = kli_local_of(n, f, nests_text(n, target.begin), target.begin);
    bool pair;
    const bool product = computes(n, value),
               whole = !product && local && local->integer && reads_memory(n, f, value),
               vector = is_vector_place(n, f, target.begin, value.end, &pair);
    for (int i = nest; i >= 0; i = n->nests[i].parent) {
        kli_nest *l = &n->nests[i];
        l->vector = l->vector || vector;
        l->products += product;
        l->work += product ? times(n, nest, i) : 0;
        const bool indexed = target.end > target.begin + 1;
        if (kli_declared_inside(n, l, f, nests_text(n, target.begin), target.begin) ||
            (indexed && kli_stride_of(n, l, f, target) != KLI_STRIDE_NONE) ||
            (l->waits && kli_mentions(nests_tokens(n), l->loop.open, l->loop.close,
                                      nests_text(n, target.begin))))
            continue;
        kli_sum sum = {
            .key = nests_hash(n, target.begin, target.end), .product = product, .whole = whole};
        sum.n = in_flight(n, nest, i, f, target, &sum.dims);
        add_sum(l, &sum);
    }
}

/* ---- one token after the other ----------------------------------------------------------- */

/* Where the header begins that ends before `i`: its word; -1: none ends there. */
static int header_before(const kli_nests *n, int i) {
    int depth = 0;
    for (int k = i - 1; k > 0 && i - k < NESTS_MAX_HEADER; k--) {
        depth += nests_is(n, k, ")") - nests_is(n, k, "(");
        if (!depth) return nests_is(n, k - 1, "for while if switch") ? k - 1 : -1;
    }
    return -1;
}

static bool is_unary(const kli_nests *n, int i) {
    if (nests_is(n, i - 1, ")") && header_before(n, i) >= 0) return true;
    return !(nests_is_name(n, i - 1) && !nests_is(n, i - 1, "return")) &&
           !nests_is(n, i - 1, ") ]") && !kli_is_kind(nests_tokens(n), i - 1, KLI_TOKEN_NUMBER);
}

/* &a[i] is an address; *(type *)&a[i] is an access again. */
static bool is_address_only(const kli_nests *n, int name) {
    int i = name - 1;
    while (nests_is(n, i, "-> .")) i -= 2;
    if (!nests_is(n, i, "&") || !is_unary(n, i)) return false;
    if (!nests_is(n, i - 1, ")") || !nests_is(n, i - 2, "*")) return true;
    int open = i - 2;
    while (open > 0 && !nests_is(n, open, "(")) open--;
    return !(nests_is(n, open - 1, "*") && is_unary(n, open - 1));
}

static void read_assignment(const kli_nests *n, nests_access *x, int behind, int end) {
    static const char ASSIGNS[] = "= += -= *= /= |= &= ^= <<= >>=";
    x->write = nests_is(n, behind, ASSIGNS) || nests_is(n, behind, "++ --");
    x->adds = x->write && !nests_is(n, behind, "=");
    x->read = !x->write || x->adds;
    x->value = (kli_range){behind + 1, nests_is(n, behind, ASSIGNS) ? value_end(n, behind + 1, end)
                                                                    : behind + 1};
}

/* The beginning of what stands before `[` at the name: members, a cast in front. */
static int place_begin(const kli_nests *n, int name) {
    int i = name;
    while (nests_is(n, i - 1, "-> .") && nests_is_name(n, i - 2)) i -= 2;
    return i;
}

static int cast_begin(const kli_nests *n, int i) {
    int k = i - 1;
    while (nests_is(n, k, "&")) k--;
    if (!nests_is(n, k, ")")) return i;
    while (k > 0 && i - k < 8 && !nests_is(n, k, "(")) k--;
    return nests_is(n, k, "(") ? k : i;
}

static void walk_indexed(kli_nests *n, const kli_frame *f, int name, int end, int nest) {
    const kli_local *l = kli_local_of(n, f, nests_text(n, name), name);
    int behind = name + 1;
    if ((l && l->at == name) || is_address_only(n, name)) return;
    int indices = 0;
    for (; nests_is(n, behind, "["); indices++)
        behind = kli_match(nests_tokens(n), behind, end) + 1;
    if (l && l->array && l->pointer && indices == 1) return; /* a pointer, not what it points to */
    while (nests_is(n, behind, ".")) behind += 2;
    nests_access x = {.frame = f, .where = {place_begin(n, name), behind}};
    const int value =
        nests_is(n, behind, ")") && nests_is(n, x.where.begin - 1, "(") ? behind + 1 : behind;
    read_assignment(n, &x, value, end);
    x.vector = is_vector_place(n, f, cast_begin(n, x.where.begin), behind, &x.pair);
    note_access(n, nest, &x);
    const bool sums =
        x.adds || kli_mentions(nests_tokens(n), x.value.begin, x.value.end, nests_text(n, name));
    if (x.write && sums && x.value.end > x.value.begin) note_sum(n, f, x.where, x.value, nest);
}

/* ((type *)p)[i], reinterpret_cast<type *>(p)[i]; `close` ends the bracket around the cast. */
static void walk_cast_indexed(kli_nests *n, const kli_frame *f, int close, int end, int nest) {
    int open = close, depth = 0;
    for (; open > 0 && close - open < NESTS_MAX_HEADER; open--) {
        depth += nests_is(n, open, ")") - nests_is(n, open, "(");
        if (!depth) break;
    }
    if (nests_is(n, open - 1, ">"))
        while (open > 0 && !nests_is(n, open, "reinterpret_cast ; {")) open--;
    else if (nests_is_name(n, open - 1))
        return;
    const int behind = kli_match(nests_tokens(n), close + 1, end) + 1;
    nests_access x = {.frame = f, .where = {open, behind}};
    read_assignment(n, &x, behind, end);
    x.vector = is_vector_place(n, f, open, close, &x.pair);
    note_access(n, nest, &x);
}

/* *p, *(type *)p, *(type *)(p + i) */
static void walk_dereference(kli_nests *n, const kli_frame *f, int star, int end, int nest) {
    int i = kli_skip_cast(n, f, star + 1, end), behind;
    if (nests_is(n, i, "&") || !(nests_is(n, i, "(") || nests_is_name(n, i))) return;
    if (nests_is(n, i, "("))
        behind = kli_match(nests_tokens(n), i, end) + 1;
    else
        for (behind = i + 1; nests_is(n, behind, "-> .");) behind += 2;
    if (nests_is(n, behind, "[ (")) return;
    if (nests_is(n, behind, "++")) behind++;
    nests_access x = {.frame = f, .where = {i, behind}};
    read_assignment(n, &x, behind, end);
    x.vector = is_vector_place(n, f, star + 1, behind, &x.pair);
    note_access(n, nest, &x);
}

/* memcpy(to, from, n), vector loads and stores of a CPU, atomics of a device */
static bool walk_memory_call(kli_nests *n, const kli_frame *f, int at, int nest) {
    const kl_str name = nests_text(n, at);
    kli_range args[4];
    const int close = kli_match(nests_tokens(n), at + 1, n->r->tokens.n);
    const bool copy = kli_one_of(name, "memcpy memmove"), clear = kli_one_of(name, "memset");
    const bool simd = kl_str_starts(name, KL_S("_mm"));
    const bool store = simd && (kli_contains(name, "store") || kli_contains(name, "_stream"));
    const bool load = simd && kli_contains(name, "load"),
               atomic = kl_str_starts(name, KL_S("atomic"));
    if (!copy && !clear && !store && !load && !atomic) return false;
    const int count = kli_split_arguments(n, args, 4, (kli_range){at + 2, close});
    if (!count) return false;
    nests_access x = {.frame = f, .vector = simd, .where = args[load ? count - 1 : 0]};
    x.bulk = copy; /* its value is an address */
    x.read = load;
    x.write = !load;
    x.adds = atomic;
    x.value = copy || store ? args[count > 1 ? 1 : 0] : clear && count > 1 ? args[1] : x.value;
    note_access(n, nest, &x);
    if (!copy || count < 2) return true;
    x = (nests_access){.frame = f, .where = args[1], .read = true};
    note_access(n, nest, &x);
    return true;
}

static void note_word(kli_nests *n, int i, int nest) {
    const kl_str name = nests_text(n, i);
    const bool barrier = kli_one_of(name, "__syncthreads barrier work_group_barrier");
    const bool power =
        kli_one_of(name, "exp expf exp2 exp2f __expf native_exp native_exp2 half_exp");
    const bool atomic = kl_str_starts(name, KL_S("atomic"));
    const bool shuffle = kli_contains(name, "shfl_"), branch = kl_str_eq(name, KL_S("if"));
    for (int p = nest; p >= 0; p = n->nests[p].parent) {
        n->nests[p].barriers += barrier;
        n->nests[p].exps += power;
        n->nests[p].atomics += atomic;
        n->nests[p].shuffles += shuffle;
        n->nests[p].branches += branch;
        if (kl_str_starts(name, KL_S("_mm")) && !kli_contains(name, "prefetch"))
            n->nests[p].vector = true;
    }
}

/* The condition of the `if` whose statement, or whose block, begins at `i`; empty: of none. */
static kli_range condition_before(const kli_nests *n, int i) {
    if (nests_is(n, i - 1, "{")) i--;
    const int word = header_before(n, i);
    return word >= 0 && nests_is(n, word, "if") ? (kli_range){word + 2, i - 1} : (kli_range){0};
}

/* sum += a * b, best = max(best, a[i]), if (a[i] > best) best = a[i]: of a plain name. */
static void walk_name_sum(kli_nests *n, const kli_frame *f, int at, int end, int nest) {
    const bool adds = nests_is(n, at + 1, "+= -=");
    if (nest < 0 || nests_is(n, at - 1, "-> .") || !(adds || nests_is(n, at + 1, "="))) return;
    const kli_range value = {at + 2, value_end(n, at + 2, end)};
    const kl_str name = nests_text(n, at);
    const kli_range chosen = condition_before(n, at);
    if (adds || kli_mentions(nests_tokens(n), value.begin, value.end, name))
        note_sum(n, f, (kli_range){at, at + 1}, value, nest);
    else if (kli_mentions(nests_tokens(n), chosen.begin, chosen.end, name))
        note_sum(n, f, (kli_range){at, at + 1}, chosen, nest);
}

/* The token to go on with. */
static int walk_name(kli_nests *n, const kli_frame *f, int i, int end, int nest) {
    const int callee = kli_function_at(n, i);
    if (nests_is(n, i + 1, "[")) walk_indexed(n, f, i, end, nest);
    note_word(n, i, nest);
    if (nests_is(n, i + 1, "(") && walk_memory_call(n, f, i, nest)) return i + 1;
    walk_name_sum(n, f, i, end, nest);
    return callee < 0 ? i + 1 : walk_call(n, f, callee, i, nest);
}

/* Assembler: what fetches tiles, what multiplies them, what stores. */
static void note_text(kli_nests *n, int i, int nest) {
    const kl_str text = nests_text(n, i);
    const bool fetch = kli_contains(text, "cp.async.bulk.tensor") ||
                       kli_contains(text, "cp.async.c") ||
                       kli_contains(text, "cp.async.bulk.shared"),
               matrix = kli_contains(text, "mma");
    n->stores = n->stores || kli_contains(text, "st.shared");
    for (int p = nest; p >= 0; p = n->nests[p].parent) {
        n->nests[p].fetches += fetch;
        n->nests[p].matrices += matrix;
    }
}

static void nests_walk(kli_nests *n, const kli_frame *f, int begin, int end, int nest) {
    KL_ASSERT(nest >= -1 && nest < n->n_nests);
    for (int i = begin; i < end && !kli_nests_tired(n, 0);) {
        if (nests_is(n, i, "for while do") &&
            !(nests_is(n, i, "while") && nests_is(n, i - 1, "}") &&
              nests_is(n, kli_match(nests_tokens(n), i + 1, end) + 1, ";"))) {
            i = walk_loop(n, f, i, end, nest);
            continue;
        }
        if (nests_is(n, i, "*") && is_unary(n, i)) walk_dereference(n, f, i, end, nest);
        if (nests_is(n, i, "[") && nests_is(n, i - 1, ")"))
            walk_cast_indexed(n, f, i - 1, end, nest);
        if (nests_is(n, i, "^") && nests_is(n, i + 2, "% &")) n->swizzle = true; /* c ^ r % 8 */
        if (kli_is_kind(nests_tokens(n), i, KLI_TOKEN_STRING)) note_text(n, i, nest);
        i = nests_is_name(n, i) ? walk_name(n, f, i, end, nest) : i + 1;
    }
}

void kli_nests_read(kli_nests *out, kl_arena *a, kli_reader *r, const kl_task *t,
                    const kl_workload *w) {
    *out = (kli_nests){.arena = a, .r = r, .task = t, .workload = w, .steps = KL_NEW(a, int)};
    kli_names_read(out);
    for (int i = 0; i < r->kernel->n_launches; i++) {
        const kli_symbol *s = kli_symbol_of(&r->names, r->kernel->launches[i].entry, false);
        if (!s || s->first < 0) continue;
        kli_frame *f = KL_NEW(a, kli_frame);
        *f = (kli_frame){.launch = &r->kernel->launches[i], .function = s->first};
        nests_walk(out, f, r->functions[s->first].body + 1, r->functions[s->first].end, -1);
    }
}
