/* loops.c - the loops of a source: how many, how deep, which go in steps, which have a fixed number
 * of turns, which only pass the time.
 *
 * A walk over statements, by their shape:
 *
 *     statement = "{" { statement } "}" | "for" "(" [init] ";" [condition] ";" [step] ")" statement
 * | "while" "(" ... ")" statement | "do" statement "while" "(" ... ")" ";" | ("if" | "switch") "("
 * ... ")" statement [ "else" statement ] | ... ";"
 *
 * Macros are expanded already.  Statements inside an expression (a lambda's) are found as well.
 * SPDX-License-Identifier: Apache-2.0 */
#include "source_impl.h"

#include "base/hash.h"

#include <string.h>

enum { MAX_ACCUMULATORS = 64, LOOPS_MAX_HEADER = 400, MAX_BODY = 1 << 14, MAX_TARGET = 32 };

typedef struct {
    kli_reader *r;
    kli_function *f;
    int end;
    int loops;  /* around the current place */
    int nested; /* statements around it */
    int seen;   /* loops met so far: to know whether one has another in it */
} walker;

static const kli_token *loops_token(const walker *w, int i) { return &w->r->tokens.at[i]; }
static bool loops_is(const walker *w, int i, const char *words) {
    return i < w->end && kli_token_is(loops_token(w, i), words);
}

static int statement(walker *w, int i);

/* ---- one loop ---------------------------------------------------------------------------- */

static bool is_one(const kli_token *t) {
    const kl_str s = t->text;
    return s.len && s.ptr[0] == '1' &&
           (s.len == 1 || ((s.ptr[1] | 32) == 'u') || ((s.ptr[1] | 32) == 'l'));
}

/* Does it advance by more than one?  A part of the step that counts by one settles it: pointers may
 * go along in strides. */
static bool is_blocked(const walker *w, const kli_loop *l) {
    bool strides = false;
    for (int i = l->step; i < l->close; i++) {
        if (loops_is(w, i, "++ --")) return false;
        const bool jumps = loops_is(w, i, "+= -= *= /= <<= >>=");
        if (jumps && is_one(loops_token(w, i + 1)) && i + 2 >= l->close && i == l->step + 1)
            return false;
        strides = strides || jumps ||
                  (loops_is(w, i, "=") && i + 2 < l->close && loops_is(w, i + 2, "+ -") &&
                   !is_one(loops_token(w, i + 3)));
    }
    return strides;
}

static bool names_in(const walker *w, int begin, int end, kl_str name) {
    return kli_mentions(&w->r->tokens, begin, end, name);
}

static bool is_parameter(const walker *w, kl_str name) {
    const int begin = w->f->name,
              end = w->f->body - begin < LOOPS_MAX_HEADER ? w->f->body : begin + LOOPS_MAX_HEADER;
    return names_in(w, begin, end, name);
}

/* LANES, KL_BM, 8: known when the source is compiled. */
static bool is_constant(const walker *w, kl_str name) {
    bool upper = false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') return false;
        upper = upper || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z');
    }
    return upper && !is_parameter(w, name);
}

static bool has_constant_bound(const walker *w, const kli_loop *l) {
    for (int i = l->condition; i < l->step - 1; i++) {
        const kli_token *t = loops_token(w, i);
        if (t->kind == KLI_TOKEN_NAME && !names_in(w, l->step, l->close, t->text) &&
            !is_constant(w, t->text))
            return false;
    }
    return l->step - 1 > l->condition;
}

static bool is_changed(const walker *w, int i, const kli_loop *l) {
    return (i + 1 < l->close && loops_is(w, i + 1, "++ -- += -= *= /= <<= >>= =")) ||
           (i > l->step && loops_is(w, i - 1, "++ --"));
}

/* The body does not look at anything that the step changes: every turn does the same. */
static bool is_idle(const walker *w, const kli_loop *l) {
    bool any = false;
    if (l->after - l->body > MAX_BODY) return false; /* much work is hardly none */
    for (int i = l->step; i < l->close; i++) {
        if (loops_token(w, i)->kind != KLI_TOKEN_NAME || !is_changed(w, i, l)) continue;
        any = true;
        if (names_in(w, l->body, l->after, loops_token(w, i)->text)) return false;
    }
    return any;
}

static bool is_empty(const walker *w, const kli_loop *l) {
    return loops_is(w, l->body, ";") ||
           (loops_is(w, l->body, "{") && loops_is(w, l->body + 1, "}"));
}

static uint64_t hash_of(const walker *w, int begin, int end) {
    uint64_t hash = 0;
    for (int i = begin; i < end; i++)
        hash = hash * 31 + kli_hash_bulk(loops_token(w, i)->text.ptr, loops_token(w, i)->text.len);
    return hash;
}

/* How many different things `+=` and `-=` of an innermost loop add to. */
static int accumulators(const walker *w, const kli_loop *l) {
    uint64_t seen[MAX_ACCUMULATORS];
    int n = 0;
    for (int i = l->body; i < l->after && n < MAX_ACCUMULATORS; i++) {
        if (!loops_is(w, i, "+= -=")) continue;
        int begin = i;
        while (begin > l->body && i - begin < MAX_TARGET && !loops_is(w, begin - 1, "; { } )"))
            begin--;
        const uint64_t hash = hash_of(w, begin, i);
        bool known = false;
        for (int k = 0; k < n; k++) known = known || seen[k] == hash;
        if (!known) seen[n++] = hash;
    }
    return n;
}

static void judge_for(walker *w, const kli_loop *l) {
    kli_source *out = w->r->out;
    out->count[KLI_TRAIT_BLOCKED_LOOPS] += is_blocked(w, l);
    out->count[KLI_TRAIT_CONST_LOOPS] += has_constant_bound(w, l);
    if (is_empty(w, l))
        out->empty_loops++;
    else
        out->idle_loops += is_idle(w, l);
}

static int body_of(walker *w, kli_loop *l) {
    const int seen = ++w->seen;
    w->r->out->count[KLI_TRAIT_LOOPS]++;
    w->loops++;
    if (w->loops > w->f->own_depth) w->f->own_depth = w->loops;
    l->after = statement(w, l->body);
    w->loops--;
    KL_ASSERT(w->loops >= 0);
    if (w->seen == seen) {
        const int n = accumulators(w, l);
        double *most = &w->r->out->count[KLI_TRAIT_ACCUMULATORS];
        if (n > *most) *most = n;
    }
    return l->after;
}

/* ---- statements -------------------------------------------------------------------------- */

static void note_call(walker *w, int i) {
    kli_reader *r = w->r;
    const kli_symbol *s = kli_symbol_of(&r->names, loops_token(w, i)->text, false);
    if (!s || s->first < 0) return;
    *KL_PUSH(r->arena, r->calls, r->n_calls) =
        (kli_rewrite_call){s->first, w->loops, w->f->first_call};
    w->f->first_call = r->n_calls - 1;
}

/* Of a condition; `loops`: it is asked in each turn of a loop. */
static void note_calls(walker *w, int begin, int end, int loops) {
    w->loops += loops;
    for (int i = begin; i < end; i++)
        if (loops_token(w, i)->kind == KLI_TOKEN_NAME) note_call(w, i);
    w->loops -= loops;
}

static int for_loop(walker *w, int i) {
    kli_loop l;
    kli_read_header(&l, &w->r->tokens, i, w->end);
    note_calls(w, l.open, l.close, 1);
    const int after = body_of(w, &l);
    if (l.step > 0) judge_for(w, &l);
    return after;
}

static int while_loop(walker *w, int i) {
    kli_loop l = {.open = i + 1};
    l.close = kli_match(&w->r->tokens, l.open, w->end);
    l.body = l.close + 1;
    note_calls(w, l.open, l.close, 1);
    const int after = body_of(w, &l);
    w->r->out->empty_loops += is_empty(w, &l);
    return after;
}

static int do_loop(walker *w, int i) {
    kli_loop l = {.body = i + 1};
    int after = body_of(w, &l);
    w->r->out->empty_loops += is_empty(w, &l);
    if (loops_is(w, after, "while")) {
        const int close = kli_match(&w->r->tokens, after + 1, w->end);
        note_calls(w, after, close, 1);
        after = close + 1;
    }
    return loops_is(w, after, ";") ? after + 1 : after;
}

static int branch(walker *w, int i) {
    int open = i + 1;
    if (loops_is(w, open, "constexpr")) open++;
    const int close = kli_match(&w->r->tokens, open, w->end);
    note_calls(w, open, close, 0);
    int after = statement(w, close + 1);
    if (loops_is(w, after, "else")) after = statement(w, after + 1);
    return after;
}

static int loops_block(walker *w, int i) {
    for (i++; i < w->end && !loops_is(w, i, "}");) {
        const int after = statement(w, i);
        i = after > i ? after : i + 1;
    }
    return i + 1;
}

static bool starts_statement(const walker *w, int i) {
    return loops_is(w, i, "for while do if switch else");
}

/* Up to its semicolon, or to the statement that a macro or a label stands before. */
static int loops_plain(walker *w, int i) {
    int depth = 0;
    for (; i < w->end; i++) {
        const kli_token *t = loops_token(w, i);
        if (t->kind == KLI_TOKEN_NAME) note_call(w, i);
        if (depth == 0 && (loops_is(w, i, "}") || starts_statement(w, i))) return i;
        if (loops_is(w, i, "{")) i = loops_block(w, i) - 1;
        depth += loops_is(w, i, "( [") - loops_is(w, i, ") ]");
        if (depth <= 0 && loops_is(w, i, ";")) return i + 1;
    }
    return i;
}

static int statement(walker *w, int i) {
    while (i < w->end && loops_token(w, i)->kind == KLI_TOKEN_LINE) i++;
    if (i >= w->end || w->nested == KLI_MAX_DEPTH) return w->end;
    w->nested++;
    if (loops_is(w, i, "{"))
        i = loops_block(w, i);
    else if (loops_is(w, i, "for"))
        i = for_loop(w, i);
    else if (loops_is(w, i, "while"))
        i = while_loop(w, i);
    else if (loops_is(w, i, "do"))
        i = do_loop(w, i);
    else if (loops_is(w, i, "if switch"))
        i = branch(w, i);
    else if (loops_is(w, i, "else"))
        i = statement(w, i + 1);
    else {
        const int begin = i;
        i = loops_plain(w, i);
        const bool unfinished = i > begin && !loops_is(w, i - 1, ";"); /* a label, UNROLL for ... */
        if (i < w->end && unfinished && starts_statement(w, i)) i = statement(w, i);
    }
    KL_ASSERT(w->nested > 0);
    w->nested--;
    return i;
}

/* ---- depth through calls ----------------------------------------------------------------- */

static int depth_of(kli_reader *r, int f, int level) {
    kli_function *at = &r->functions[f];
    if (at->measuring) return 0; /* a recursion adds nothing */
    if (at->measured || level == KLI_MAX_DEPTH) return at->depth;
    at->measuring = true;
    at->depth = at->own_depth;
    for (int c = at->first_call; c >= 0; c = r->calls[c].next) {
        KL_ASSERT(r->calls[c].next < c); /* a list of calls ends */
        const int inside = r->calls[c].depth + depth_of(r, r->calls[c].callee, level + 1);
        if (inside > at->depth) at->depth = inside;
    }
    at->measuring = false;
    at->measured = true;
    return at->depth;
}

void kli_read_loops(kli_reader *r) {
    double *depth = &r->out->count[KLI_TRAIT_LOOP_DEPTH];
    for (int f = 0; f < r->n_functions; f++) {
        kli_function *at = &r->functions[f];
        at->first_call = -1;
        walker w = {.r = r, .f = at, .end = at->end};
        if (at->reached) loops_block(&w, at->body);
    }
    for (int f = 0; f < r->n_functions; f++) {
        const int d = r->functions[f].reached ? depth_of(r, f, 0) : 0;
        if (d > *depth) *depth = d;
    }
}
