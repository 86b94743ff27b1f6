/* stride.c - how far apart the elements are that neighbouring turns of a loop touch: an expression
 * is followed to what the loop moves, through locals, arguments and callers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nests.h"

#include <string.h>

enum { STRIDE_MAX_HOPS = 24 };

typedef struct {
    const kli_nests *n;
    const kli_nest *l;
    int hops;
} stride_ctx;

static kl_str stride_text(const stride_ctx *c, int i) { return c->n->r->tokens.at[i].text; }
static bool stride_is(const stride_ctx *c, int i, const char *words) {
    return kli_is(&c->n->r->tokens, i, words);
}
static bool stride_is_name(const stride_ctx *c, int i) {
    return kli_is_kind(&c->n->r->tokens, i, KLI_TOKEN_NAME);
}

static kli_stride wider(kli_stride a, kli_stride b) { return a > b ? a : b; }

static kli_stride stride_sum(stride_ctx *c, const kli_frame *f, kli_range e);

static bool is_around(const kli_frame *outer, const kli_frame *f) {
    while (f && f != outer) f = f->caller;
    return f != NULL;
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_step_of(const kli_nest *l, kl_str name, kli_stride *by) {
    for (int i = 0; i < l->n_vars; i++)
        if (kl_str_eq(l->vars[i], name)) return *by = l->steps[i], true;
    return false;
}

/* What a turn of the loop's body does to a name from outside of it. */
static kli_stride moved_by(stride_ctx *c, const kli_frame *f, kl_str name) {
    const kli_nest *l = c->l;
    KL_ASSERT(l->loop.body <= l->loop.after);
    if (kli_nests_tired(c->n, l->loop.after - l->loop.body)) return KLI_STRIDE_GATHER;
    for (int i = l->loop.body; i < l->loop.after; i++) {
        if (!kl_str_eq(stride_text(c, i), name) || stride_is(c, i - 1, "-> .")) continue;
        if (stride_is(c, i + 1, "++ --") || stride_is(c, i - 1, "++ --")) return KLI_STRIDE_GATHER;
        if (stride_is(c, i + 1, "+= -=")) {
            int end = i + 2;
            while (end < l->loop.after && !stride_is(c, end, ", ; )")) end++;
            const kli_amount by = kli_amount_of(c->n, f, (kli_range){i + 2, end});
            return by.known ? by.fixed ? KLI_STRIDE_BLOCK : KLI_STRIDE_FAR : KLI_STRIDE_GATHER;
        }
        if (stride_is(c, i + 1, "=") && ++c->hops < STRIDE_MAX_HOPS) {
            int end = i + 2;
            while (end < l->loop.after && !stride_is(c, end, ", ; )")) end++;
            if (kli_mentions(&c->n->r->tokens, i + 2, end, name)) return KLI_STRIDE_GATHER;
            return stride_sum(c, f, (kli_range){i + 2, end});
        }
    }
    return KLI_STRIDE_NONE;
}

/* What a local of the loop's body is set to after its declaration, wherever a branch does it. */
static kli_stride set_later(stride_ctx *c, const kli_frame *f, const kli_local *l) {
    kli_stride s = KLI_STRIDE_NONE;
    if (kli_nests_tired(c->n, c->l->loop.after - l->at)) return KLI_STRIDE_GATHER;
    for (int i = l->at + 1; i < c->l->loop.after && !l->pointer; i++) {
        if (!kl_str_eq(stride_text(c, i), l->name) || !stride_is(c, i + 1, "=") ||
            stride_is(c, i - 1, "-> ."))
            continue;
        int end = i + 2;
        while (end < c->l->loop.after && !stride_is(c, end, ";")) end++;
        if (++c->hops < STRIDE_MAX_HOPS && !kli_mentions(&c->n->r->tokens, i + 2, end, l->name))
            s = wider(s, stride_sum(c, f, (kli_range){i + 2, end}));
    }
    return s;
}

static kli_stride stride_of_name(stride_ctx *c, const kli_frame *f, int at) {
    const kl_str name = stride_text(c, at);
    kli_stride by;
    if (stride_is(c, at - 1, "-> .") || ++c->hops > STRIDE_MAX_HOPS) return KLI_STRIDE_NONE;
    if (f == c->l->frame && is_step_of(c->l, name, &by)) return by;
    const kli_local *l = kli_local_of(c->n, f, name, at);
    if (!l) return KLI_STRIDE_NONE;
    const kli_locals *all = &c->n->locals[f->function];
    const long p = l - all->at;
    if (f == c->l->frame) {
        const bool inside = l->at >= c->l->loop.body && l->at < c->l->loop.after;
        if (!inside) return moved_by(c, f, name);
    } else if (p < all->n_params)
        return p < f->n_args ? stride_sum(c, f->caller, f->args[p]) : KLI_STRIDE_NONE;
    const kli_stride first = l->init.end ? stride_sum(c, f, l->init) : KLI_STRIDE_NONE;
    return f == c->l->frame ? wider(first, set_later(c, f, l)) : first;
}

/* ---- expressions ------------------------------------------------------------------------- */

static kli_stride stride_arguments(stride_ctx *c, const kli_frame *f, kli_range e) {
    kli_range parts[16];
    kli_stride s = KLI_STRIDE_NONE;
    const int n = kli_split_arguments(c->n, parts, 16, e);
    for (int i = 0; i < n; i++) s = wider(s, stride_sum(c, f, parts[i]));
    return s;
}

/* One operand: a name, a bracket, a call, which is taken to pass on what it is given. */
static kli_stride stride_factor(stride_ctx *c, const kli_frame *f, kli_range e) {
    int i = e.begin;
    for (;;) {
        i = kli_skip_cast(c->n, f, i, e.end);
        if (i < e.end && stride_is(c, i, "- + ~ ! & *"))
            i++;
        else
            break;
    }
    if (i >= e.end) return KLI_STRIDE_NONE;
    if (stride_is(c, i, "( {")) {
        const int close = kli_match(&c->n->r->tokens, i, e.end);
        const kli_stride within = stride_arguments(c, f, (kli_range){i + 1, close});
        if (!stride_is(c, close + 1, "[") || close + 1 >= e.end) return within;
        const int end = kli_match(&c->n->r->tokens, close + 1, e.end);
        return wider(within, stride_sum(c, f, (kli_range){close + 2, end}));
    }
    if (!stride_is_name(c, i)) return KLI_STRIDE_NONE;
    kli_stride s = stride_of_name(c, f, i);
    for (int k = i + 1; k < e.end; k++) {
        if (stride_is(c, k, "(")) {
            const int close = kli_match(&c->n->r->tokens, k, e.end);
            s = wider(s, stride_arguments(c, f, (kli_range){k + 1, close}));
            k = close;
        } else if (stride_is(c, k, "[")) { /* memory's value is data */
            const int close = kli_match(&c->n->r->tokens, k, e.end);
            const kli_stride in = stride_sum(c, f, (kli_range){k + 1, close});
            const bool address = stride_is(c, i - 1, "&");
            s = in == KLI_STRIDE_NONE || address ? wider(s, in) : KLI_STRIDE_GATHER;
            k = close;
        }
    }
    return s;
}

/* Tokens at which an expression falls apart, outside of brackets; `end` when there is none. */
static int next_operator(const stride_ctx *c, const kli_frame *f, int i, int end,
                         const char *words) {
    const int begin = i;
    for (; i < end; i++) {
        const int behind = kli_skip_cast(c->n, f, i, end);
        if (behind > i) {
            i = behind - 1;
            continue;
        }
        if (stride_is(c, i, "( [ {")) {
            i = kli_match(&c->n->r->tokens, i, end);
            continue;
        }
        const bool binary = i > begin && !stride_is(c, i - 1, "+ - * / % ( , = ? : << >> & ^ |");
        if (binary && stride_is(c, i, words)) return i;
    }
    return end;
}

/* a * b * c: what moves, times what does not. */
static kli_stride stride_product(stride_ctx *c, const kli_frame *f, kli_range e) {
    static const char OPERATORS[] = "* / % << >> & ^ |";
    kli_stride s = KLI_STRIDE_NONE;
    bool scaled = false, far = false, cut = false;
    for (int i = e.begin; i < e.end;) {
        const int end = next_operator(c, f, i, e.end, OPERATORS);
        const kli_range part = {i, end};
        const kli_stride one = stride_factor(c, f, part);
        const kli_amount by = kli_amount_of(c->n, f, part);
        if (one != KLI_STRIDE_NONE) {
            s = s == KLI_STRIDE_NONE ? one : KLI_STRIDE_GATHER;
        } else if (!(by.known && by.fixed && by.value == 1)) {
            far = far || !(by.known && by.fixed);
            scaled = true;
        }
        cut = cut || stride_is(c, end, "/ % << >> & ^ |");
        i = end + 1;
    }
    if (s == KLI_STRIDE_NONE || s == KLI_STRIDE_GATHER || !scaled) return s;
    return wider(s, far && !cut ? KLI_STRIDE_FAR : KLI_STRIDE_BLOCK);
}

static kli_stride stride_sum(stride_ctx *c, const kli_frame *f, kli_range e) {
    kli_stride s = KLI_STRIDE_NONE;
    if (!is_around(c->l->frame, f)) return s; /* decided outside of the loop */
    if (kli_nests_tired(c->n, e.end > e.begin ? e.end - e.begin : 0)) return KLI_STRIDE_GATHER;
    const int choice = next_operator(c, f, e.begin, e.end, "?");
    if (choice < e.end) e.begin = choice + 1;
    for (int i = e.begin; i < e.end;) {
        const int end = next_operator(c, f, i, e.end, "+ - : < > <= >= == != && ||");
        const bool compared = stride_is(c, end, "< > <= >= == !=") && end < e.end;
        const kli_stride one = stride_product(c, f, (kli_range){i, end});
        s = wider(s, compared && one ? KLI_STRIDE_GATHER : one);
        i = end + 1;
    }
    return s;
}

/* a->b[i][j]: what its base and its indices add up to. */
static kli_stride stride_place(stride_ctx *c, const kli_frame *f, kli_range e, int index) {
    kli_stride s = stride_of_name(c, f, e.begin);
    for (int i = index; stride_is(c, i, "[") && i < e.end;) {
        const int close = kli_match(&c->n->r->tokens, i, e.end);
        const kli_stride one = stride_sum(c, f, (kli_range){i + 1, close});
        const bool row = one == KLI_STRIDE_UNIT && stride_is(c, close + 1, "[");
        s = wider(s, row ? KLI_STRIDE_BLOCK : one);
        i = close + 1;
    }
    return s;
}

kli_stride kli_stride_of(const kli_nests *n, const kli_nest *l, const kli_frame *f,
                         kli_range expr) {
    stride_ctx c = {.n = n, .l = l};
    if (!is_around(l->frame, f)) return KLI_STRIDE_NONE;
    int i = expr.begin;
    while (i < expr.end && (stride_is_name(&c, i) || stride_is(&c, i, "-> ."))) i++;
    return i > expr.begin && i < expr.end && stride_is(&c, i, "[") ? stride_place(&c, f, expr, i)
                                                                   : stride_sum(&c, f, expr);
}

bool kli_declared_inside(const kli_nests *n, const kli_nest *l, const kli_frame *f, kl_str name,
                         int before) {
    const kli_local *local = kli_local_of(n, f, name, before);
    while (local && local->pointer &&
           local - n->locals[f->function].at < n->locals[f->function].n_params && f->caller) {
        const long p = local - n->locals[f->function].at;
        const kli_range arg = p < f->n_args ? f->args[p] : (kli_range){0};
        f = f->caller;
        local = NULL;
        for (int i = arg.begin; i < arg.end && !local; i++)
            local = kli_local_of(n, f, n->r->tokens.at[i].text, i);
    }
    if (!local || !is_around(l->frame, f)) return false;
    return f != l->frame || (local->at >= l->loop.body && local->at < l->loop.after);
}
