/* expand.c - a source with its macros in place: what it does, wherever that is written.
 *
 * A use becomes the macro's body with the arguments in it, again and again.  Not a preprocessor: no
 * file is included, no condition followed (of several definitions that differ all are taken, one
 * behind the other), no words are joined.  Work is bounded; past the bound, names stay.
 * SPDX-License-Identifier: Apache-2.0 */
#include "source_impl.h"

#include <string.h>

enum { MAX_STEPS = 1 << 19, MAX_MACRO_DEPTH = 8, MAX_MACROS = 4096, MAX_ARGUMENTS = 32 };

typedef struct {
    kl_str text; /* behind the name */
    kli_tokens params, body;
    bool function_like;
    int next; /* another definition of the same name; -1: none */
} macro;

typedef struct {
    kl_arena *arena;
    kli_symbols names;
    macro *macros;
    int n_macros;
    int steps; /* tokens looked at, but for those of the source itself */
} expander;

static kli_tokens expand_part(const kli_tokens *t, int begin, int end) {
    return (kli_tokens){t->at + begin, begin < end ? end - begin : 0};
}

/* ---- definitions ------------------------------------------------------------------------- */

static bool expand_is_known(const expander *x, int m, kl_str text) {
    while (m >= 0 && !kl_str_eq(x->macros[m].text, text)) m = x->macros[m].next;
    return m >= 0;
}

/* #define NAME body, #define NAME(a, b) body */
static void add_macro(expander *x, kl_str line) {
    kli_tokens t;
    size_t skip = 1;
    while (skip < line.len && line.ptr[skip] != 'd') skip++;
    if (line.len - skip < 7 || memcmp(line.ptr + skip, "define", 6) != 0) return;
    kli_tokens_of(&t, x->arena, kli_from(line, skip + 6));
    if (!t.n || t.at[0].kind != KLI_TOKEN_NAME || x->n_macros == MAX_MACROS) return;
    const char *behind = t.at[0].text.ptr + t.at[0].text.len;
    const kl_str text = {behind, (size_t)(line.ptr + line.len - behind)};
    const bool params = t.n > 1 && kli_token_is(&t.at[1], "(") && t.at[1].text.ptr == behind;
    const int body = params ? kli_match(&t, 1, t.n) + 1 : 1;
    if (body > t.n) return;
    kli_symbol *s = kli_symbol_of(&x->names, t.at[0].text, true);
    if (expand_is_known(x, s->first, text)) return;
    KL_ASSERT(s->first < x->n_macros);
    x->macros[x->n_macros] =
        (macro){.text = text,
                .params = params ? expand_part(&t, 2, body - 1) : (kli_tokens){0},
                .body = expand_part(&t, body, t.n),
                .function_like = params,
                .next = s->first};
    s->first = x->n_macros++;
}

/* ---- uses -------------------------------------------------------------------------------- */

typedef struct {
    int n, close;
    kli_tokens at[MAX_ARGUMENTS];
} expand_arguments;

static int depth_change(const kli_token *t) {
    if (t->kind != KLI_TOKEN_PUNCT || t->text.len != 1) return 0;
    const char c = t->text.ptr[0];
    return (c == '(' || c == '{' || c == '[') - (c == ')' || c == '}' || c == ']');
}

/* Behind the name at `i`; false where no bracket closes. */
static bool read_arguments(expander *x, expand_arguments *a, const kli_tokens *t, int i) {
    int begin = i + 2, depth = 0;
    if (i + 1 >= t->n || !kli_token_is(&t->at[i + 1], "(")) return false;
    for (a->n = 0, i++; i < t->n && x->steps < MAX_STEPS; i++, x->steps++) {
        depth += depth_change(&t->at[i]);
        const bool comma = depth == 1 && kli_token_is(&t->at[i], ",");
        if (depth && !(comma && a->n < MAX_ARGUMENTS - 1)) continue;
        KL_ASSERT(a->n < MAX_ARGUMENTS);
        a->at[a->n++] = expand_part(t, begin, i);
        begin = i + 1;
        a->close = i;
        if (!depth) return true;
    }
    return false;
}

/* Which argument a word of the body stands for; -1: none. */
static int param_of(const macro *m, kl_str word) {
    int n = 0;
    for (int i = 0; i < m->params.n && i < 2 * MAX_ARGUMENTS; i++) {
        const kl_str name = m->params.at[i].text;
        if (kl_str_eq(name, word)) return n;
        if (kl_str_eq(name, KL_S("...")) && kl_str_eq(word, KL_S("__VA_ARGS__"))) return n;
        n += kl_str_eq(name, KL_S(","));
    }
    return -1;
}

static void copy(expander *x, kli_tokens *out, const kli_tokens *t) {
    for (int i = 0; i < t->n && x->steps < MAX_STEPS; i++, x->steps++)
        kli_tokens_add(out, x->arena, &t->at[i]);
}

/* The body with the arguments in the places of the params; the last takes all that are left. */
static kli_tokens with_arguments(expander *x, const macro *m, const expand_arguments *a) {
    kli_tokens out = {0};
    for (int i = 0; i < m->body.n && x->steps < MAX_STEPS; i++, x->steps++) {
        const kli_token *t = &m->body.at[i];
        const int n = t->kind == KLI_TOKEN_NAME ? param_of(m, t->text) : -1;
        const bool rest = n >= 0 && kl_str_eq(t->text, KL_S("__VA_ARGS__"));
        if (n < 0) kli_tokens_add(&out, x->arena, t);
        for (int k = n; n >= 0 && k < (rest ? a->n : n + 1) && k < a->n; k++)
            copy(x, &out, &a->at[k]);
    }
    return out;
}

static void expand_expand(expander *x, kli_tokens *out, const kli_tokens *t, int depth) {
    expand_arguments a;
    for (int i = 0; i < t->n; i++) {
        const bool open = x->steps < MAX_STEPS && depth < MAX_MACRO_DEPTH;
        const bool name = open && t->at[i].kind == KLI_TOKEN_NAME;
        const kli_symbol *s = name ? kli_symbol_of(&x->names, t->at[i].text, false) : NULL;
        const macro *m = s ? &x->macros[s->first] : NULL;
        if (depth && x->steps++ >= MAX_STEPS) return;
        if (!m || (m->function_like && !read_arguments(x, &a, t, i))) {
            kli_tokens_add(out, x->arena, &t->at[i]);
            continue;
        }
        if (m->function_like) i = a.close;
        for (int n = s->first; n >= 0; n = x->macros[n].next) {
            const bool filled = n == s->first && m->function_like; /* arguments count once */
            const kli_tokens body = filled ? with_arguments(x, m, &a) : x->macros[n].body;
            expand_expand(x, out, &body, depth + 1);
        }
    }
}

void kli_expand(kli_tokens *out, kl_arena *a, const kli_tokens *source) {
    expander x = {.arena = a};
    x.macros = KL_ARRAY(a, macro, MAX_MACROS);
    kli_symbols_init(&x.names, a, MAX_MACROS);
    for (int i = 0; i < source->n; i++)
        if (source->at[i].kind == KLI_TOKEN_LINE) add_macro(&x, source->at[i].text);
    *out = (kli_tokens){0};
    expand_expand(&x, out, source, 0);
}
