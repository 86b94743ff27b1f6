/* source.c - the numbers that are read from a kernel's text: which words it uses, and which loops it runs.
 *
 * Only what can be reached counts: functions that a launch names, what those mention, and so on through macros; a
 * macro counts where it is used.  Branches of #if are all counted, except `#if 0`.  Loops are followed by the shape of
 * statements, without types; text that defeats that loses its loops and nothing else.  Work is bounded: macros that
 * multiply end at MAX_EXPANDED tokens. The table of words is words.c; loops are loops.c.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "source_impl.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EXPANDED = 1 << 19, MAX_MACRO_DEPTH = 8 };

/* ---- symbols ------------------------------------------------------------------------------------------------------- */

kli_symbol *kli_symbol_of(kli_reader *r, kl_str name, bool add) {
    size_t i = kl_hash_bulk(name.ptr, name.len) & (r->n_slots - 1);
    while (r->slots[i].name.ptr && !kl_str_eq(r->slots[i].name, name)) i = (i + 1) & (r->n_slots - 1);
    if (r->slots[i].name.ptr) return &r->slots[i];
    if (!add) return NULL;
    r->slots[i] = (kli_symbol){.name = name, .function = -1, .macro = -1};
    return &r->slots[i];
}

static void make_slots(kli_reader *r) {
    r->n_slots = 64;
    while (r->n_slots < 2 * (size_t)r->tokens.n + 64) r->n_slots *= 2; /* every symbol is a token: at most half full */
    r->slots = KL_ARRAY(r->arena, kli_symbol, r->n_slots);
}

int kli_match(const kli_tokens *t, int open, int end) {
    int depth = 0;
    for (int i = open; i < end; i++) {
        const kl_str s = t->at[i].text;
        if (t->at[i].kind != KLI_TOKEN_PUNCT || s.len != 1) continue;
        if (s.ptr[0] == '(' || s.ptr[0] == '{' || s.ptr[0] == '[') depth++;
        if ((s.ptr[0] == ')' || s.ptr[0] == '}' || s.ptr[0] == ']') && --depth == 0) return i;
    }
    return end;
}

/* ---- macros ---------------------------------------------------------------------------------------------------------- */

/* #define NAME body, #define NAME(a, b) body */
static void add_macro(kli_reader *r, kl_str line) {
    kli_tokens t;
    size_t skip = 1;
    while (skip < line.len && line.ptr[skip] != 'd') skip++;
    if (line.len - skip < 7 || memcmp(line.ptr + skip, "define", 6) != 0) return;
    kli_tokens_of(&t, r->arena, (kl_str){line.ptr + skip + 6, line.len - skip - 6}, r->kernel->surface);
    if (!t.n || t.at[0].kind != KLI_TOKEN_NAME) return;
    const kl_str name = t.at[0].text;
    const bool params = t.n > 1 && kli_token_is(&t.at[1], "(") && t.at[1].text.ptr == name.ptr + name.len;
    const int body = params ? kli_match(&t, 1, t.n) + 1 : 1;
    kli_symbol *s = kli_symbol_of(r, name, true);
    if (body > t.n || r->n_macros == KLI_MAX_MACROS) return;
    r->macros[r->n_macros] = (kli_macro){.body = {t.at + body, t.n - body}, .next = s->macro, .function_like = params};
    s->macro = r->n_macros++;
}

static void find_macros(kli_reader *r) {
    for (int i = 0; i < r->tokens.n; i++)
        if (r->tokens.at[i].kind == KLI_TOKEN_LINE) add_macro(r, r->tokens.at[i].text);
}

/* ---- functions -------------------------------------------------------------------------------------------------------- */

static bool is_attribute(const kli_token *t) {
    static const char *const WORDS[] = {
        "__attribute__", "__attribute",          "__launch_bounds__", "alignas",          "_Alignas", "__align__",
        "__declspec",    "reqd_work_group_size", "_Pragma",           "__cluster_dims__", "decltype"};
    for (size_t i = 0; i < KL_COUNT(WORDS); i++)
        if (kli_token_is(t, WORDS[i])) return true;
    return false;
}

static void add_function(kli_reader *r, int name, int body, int end) {
    kli_symbol *s = kli_symbol_of(r, r->tokens.at[name].text, true);
    if (r->n_functions == KLI_MAX_FUNCTIONS) return;
    r->functions[r->n_functions] = (kli_function){.name = name, .body = body, .end = end, .next = s->function};
    s->function = r->n_functions++;
}

/* At the outermost level: NAME ( ... ) [attributes] { ... }.  `extern "C" {` and `namespace x {` are stepped into. */
static void find_functions(kli_reader *r) {
    const kli_tokens *t = &r->tokens;
    int name = -1, begin = 0;
    for (int i = 0; i < t->n; i++) {
        const kli_token *k = &t->at[i];
        if (k->kind == KLI_TOKEN_NAME && i + 1 < t->n && kli_token_is(k + 1, "(")) {
            if (!is_attribute(k)) name = i;
            i = kli_match(t, i + 1, t->n);
        } else if (kli_token_is(k, "{")) {
            const bool opens = i > begin && (t->at[begin].kind == KLI_TOKEN_NAME) &&
                               (kli_token_is(&t->at[begin], "namespace") || (t->at[i - 1].kind == KLI_TOKEN_STRING));
            const int end = opens ? i : kli_match(t, i, t->n);
            if (!opens && name >= 0) add_function(r, name, i, end);
            i = end;
            name = -1;
            begin = i + 1;
        } else if (kli_token_is(k, ";") || kli_token_is(k, "=")) {
            name = -1;
            begin = i + 1;
        } else if (k->kind == KLI_TOKEN_LINE && i == begin)
            begin = i + 1;
    }
}

/* ---- types of vectors ------------------------------------------------------------------------------------------------- */

/* Every definition of `name` in the source, by enum or macro, says 1. */
static bool means_one(kli_reader *r, kl_str name) {
    const kli_tokens *t = &r->tokens;
    const kli_symbol *s = kli_symbol_of(r, name, false);
    bool any = false;
    for (int m = s ? s->macro : -1; m >= 0; m = r->macros[m].next) {
        any = true;
        if (r->macros[m].body.n != 1 || !kli_token_is(&r->macros[m].body.at[0], "1")) return false;
    }
    for (int i = 0; i + 3 < t->n; i++) {
        if (!kl_str_eq(t->at[i].text, name) || !kli_token_is(&t->at[i + 1], "=")) continue;
        any = true;
        if (!kli_token_is(&t->at[i + 2], "1") ||
            !(kli_token_is(&t->at[i + 3], ",") || kli_token_is(&t->at[i + 3], "}")))
            return false;
    }
    return any;
}

/* vector_size(4), vector_size(4 * LANES) with LANES = 1: a float by another name.  `open` is the bracket. */
static bool has_one_lane(kli_reader *r, int open) {
    const kli_token *at = r->tokens.at + open;
    if (open + 4 >= r->tokens.n || !kli_token_is(at + 1, "4")) return false;
    return kli_token_is(at + 2, ")") ||
           (kli_token_is(at + 2, "*") && kli_token_is(at + 4, ")") && means_one(r, at[3].text));
}

/* typedef ... NAME [attributes] ; where the dots hold a vector type */
static void find_vector_types(kli_reader *r) {
    const kli_tokens *t = &r->tokens;
    for (int i = 0; i < t->n; i++) {
        if (!kli_token_is(&t->at[i], "typedef")) continue;
        int name = -1, j = i + 1;
        bool vector = false;
        for (int depth = 0; j < t->n && !kli_token_is(&t->at[j], ";") && !kli_token_is(&t->at[j], "{"); j++) {
            const kli_token *k = &t->at[j];
            depth += kli_token_is(k, "(") - kli_token_is(k, ")");
            if (k->kind != KLI_TOKEN_NAME) continue;
            const kli_symbol *s = kli_symbol_of(r, k->text, false);
            const bool sized = kli_token_is(k, "vector_size") || kli_token_is(k, "__vector_size__");
            vector = vector || (sized && !has_one_lane(r, j + 1)) || kli_token_is(k, "ext_vector_type") ||
                     kli_is_vector_type(k->text, r->kernel->surface) || (s && s->vector);
            if (!depth && !is_attribute(k)) name = j;
        }
        if (vector && name >= 0 && j < t->n && kli_token_is(&t->at[j], ";"))
            kli_symbol_of(r, t->at[name].text, true)->vector = true;
        i = j;
    }
}

/* ---- what can be reached --------------------------------------------------------------------------------------------- */

static void reach(kli_reader *r, const kli_tokens *t, int begin, int end, int depth);

static void reach_symbol(kli_reader *r, kli_symbol *s, int depth) {
    for (int m = s->macro; m >= 0 && depth < KLI_MAX_DEPTH; m = r->macros[m].next) {
        if (r->macros[m].reached) continue;
        r->macros[m].reached = true;
        reach(r, &r->macros[m].body, 0, r->macros[m].body.n, depth + 1);
    }
    for (int f = s->function; f >= 0; f = r->functions[f].next) {
        if (r->functions[f].reached) continue;
        r->functions[f].reached = true;
        r->queue[r->n_queue++] = f;
    }
}

static void reach(kli_reader *r, const kli_tokens *t, int begin, int end, int depth) {
    for (int i = begin; i < end; i++) {
        kli_symbol *s = t->at[i].kind == KLI_TOKEN_NAME ? kli_symbol_of(r, t->at[i].text, false) : NULL;
        if (s) reach_symbol(r, s, depth);
    }
}

static void reach_everything(kli_reader *r) {
    for (int f = 0; f < r->n_functions; f++) r->functions[f].reached = true;
}

static void find_reached(kli_reader *r) {
    bool known = r->kernel->n_launches > 0;
    for (int i = 0; i < r->kernel->n_launches; i++) {
        kli_symbol *s = kli_symbol_of(r, r->kernel->launches[i].entry, false);
        known = known && s && s->function >= 0;
        if (s) reach_symbol(r, s, 0);
    }
    for (int done = 0; done < r->n_queue; done++) {
        const kli_function *f = &r->functions[r->queue[done]];
        reach(r, &r->tokens, f->name, f->end, 0);
    }
    if (!known) reach_everything(r); /* an entry that a macro spells: better too much than nothing */
}

/* ---- counting words ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const kli_tokens *t;
    int asm_end; /* strings before it are assembler */
    bool body;   /* inside a function's braces */
    int depth;   /* of macros */
} place;

static void count_range(kli_reader *r, place *p, int begin, int end);

static void count_macro(kli_reader *r, const place *p, const kli_symbol *s) {
    for (int m = s->macro; m >= 0 && p->depth < MAX_MACRO_DEPTH; m = r->macros[m].next) {
        place inside = {.t = &r->macros[m].body,
                        .asm_end = p->asm_end > 0 ? r->macros[m].body.n : 0,
                        .body = p->body,
                        .depth = p->depth + 1};
        count_range(r, &inside, 0, r->macros[m].body.n);
    }
}

static bool is_asm(const kli_token *t) {
    return kli_token_is(t, "asm") || kli_token_is(t, "__asm__") || kli_token_is(t, "__asm");
}

static void count_asm(kli_reader *r, place *p, int i) {
    int open = i + 1;
    while (open < p->t->n && open < i + 4 && p->t->at[open].kind == KLI_TOKEN_NAME) open++; /* volatile, goto */
    r->out->asms++;
    if (i >= p->asm_end && open < p->t->n && kli_token_is(&p->t->at[open], "("))
        p->asm_end = kli_match(p->t, open, p->t->n);
}

/* TYPE NAME [ : an array of a function's own. */
static bool declares_array(const kli_reader *r, const place *p, int i) {
    static const char *const NOT_TYPES[] = {"return", "else", "case", "goto", "sizeof", "do", "throw", "new", "delete"};
    const kli_token *t = &p->t->at[i];
    if (!p->body || i < 1 || i + 1 >= p->t->n || !kli_token_is(t + 1, "[") || t[-1].kind != KLI_TOKEN_NAME)
        return false;
    for (size_t n = 0; n < KL_COUNT(NOT_TYPES); n++)
        if (kli_token_is(t - 1, NOT_TYPES[n])) return false;
    for (int back = i - 1; back >= 0 && p->t->at[back].kind == KLI_TOKEN_NAME; back--)
        if (kli_token_is(&p->t->at[back], "__shared__") || kli_token_is(&p->t->at[back], "__local")) return false;
    const kli_symbol *s = kli_symbol_of((kli_reader *)(uintptr_t)r, t[-1].text, false);
    return !s || s->macro < 0;
}

static void count_name(kli_reader *r, place *p, int i) {
    const kli_token *t = &p->t->at[i];
    const kli_symbol *s = kli_symbol_of(r, t->text, false);
    const bool call = i + 1 < p->t->n && kli_token_is(t + 1, "(");
    if (is_asm(t)) count_asm(r, p, i);
    if ((kli_token_is(t, "volatile") || kli_token_is(t, "__volatile__")) && !(i > 0 && is_asm(t - 1)))
        r->out->volatiles++;
    if (kli_token_is(t, "_Pragma") && i + 2 < p->t->n) kli_count_pragma(r->out, p->t->at[i + 2].text);
    if (s && s->vector && p->body) r->out->count[KLI_TRAIT_VECTOR_TYPES]++;
    if (declares_array(r, p, i)) r->out->count[KLI_TRAIT_LOCAL_ARRAYS]++;
    kli_count_name(r->out, p->t, i, call, r->kernel->surface, p->body);
    if (s && s->macro >= 0) count_macro(r, p, s);
}

static void count_range(kli_reader *r, place *p, int begin, int end) {
    for (int i = begin; i < end && r->expanded < MAX_EXPANDED; i++, r->expanded++) {
        const kli_token *t = &p->t->at[i];
        if (t->kind == KLI_TOKEN_NAME) count_name(r, p, i);
        if (t->kind == KLI_TOKEN_NUMBER) kli_count_number(r->out, t->text);
        if (t->kind == KLI_TOKEN_STRING && i < p->asm_end) kli_count_asm(r->out, t->text);
        if (t->kind == KLI_TOKEN_LINE) kli_count_pragma(r->out, t->text);
    }
}

static void count_functions(kli_reader *r) {
    for (int f = 0; f < r->n_functions; f++) {
        const kli_function *at = &r->functions[f];
        if (!at->reached) continue;
        place head = {.t = &r->tokens}, body = {.t = &r->tokens, .body = true};
        int begin = at->name; /* the attributes before the name belong to it */
        while (begin > 0 && !kli_token_is(&r->tokens.at[begin - 1], ";") &&
               !kli_token_is(&r->tokens.at[begin - 1], "}") && r->tokens.at[begin - 1].kind != KLI_TOKEN_LINE &&
               at->name - begin < 64)
            begin--;
        r->out->count[KLI_TRAIT_FUNCTIONS]++;
        count_range(r, &head, begin, at->body);
        count_range(r, &body, at->body, at->end);
    }
}

/* What stands between the functions: OpenMP and compiler pragmas, arrays in shared memory. */
static void count_outside(kli_reader *r) {
    place p = {.t = &r->tokens};
    int from = 0;
    for (int f = 0; f < r->n_functions; f++) { /* in the order of the text */
        for (int i = from; i < r->functions[f].name; i++)
            if (r->tokens.at[i].kind == KLI_TOKEN_LINE || kli_token_is(&r->tokens.at[i], "_Pragma"))
                count_range(r, &p, i, i + 1);
        from = r->functions[f].end;
    }
}

/* ---- directives ----------------------------------------------------------------------------------------------------------- */

static double number_of(kl_str text) {
    const kl_str s = kl_str_trim(text);
    double v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || i > 6) return 2; /* an expression: more than one, usually */
        v = v * 10 + (s.ptr[i] - '0');
    }
    return v;
}

static bool has(kl_str s, const char *part) { return s.len && memmem(s.ptr, s.len, part, strlen(part)) != NULL; }

static void count_flags(kli_reader *r) {
    static const char *const FAST[] = {"fast-math",   "unsafe-math",    "associative-math", "reciprocal-math",
                                       "finite-math", "fast_math",      "relaxed-math",     "Ofast",
                                       "ftz=true",    "prec-div=false", "prec-sqrt=false",  "signed-zeros"};
    static const char *const SLOW[] = {"-O0",         "-O1",   "-Os",          "-fno-inline", "-fno-tree",
                                       "-fno-unroll", "-mno-", "-opt-disable", "O0",          "-dlcm"};
    for (int i = 0; i < r->kernel->n_flags; i++) {
        for (size_t n = 0; n < KL_COUNT(FAST); n++)
            if (has(r->kernel->flags[i], FAST[n])) {
                r->out->count[KLI_TRAIT_FAST_MATH]++;
                break;
            }
        for (size_t n = 0; n < KL_COUNT(SLOW); n++) r->out->slow_flags += has(r->kernel->flags[i], SLOW[n]);
        if (kl_str_eq(r->kernel->flags[i], KL_S("-fopenmp"))) r->out->count[KLI_TRAIT_OMP_PRAGMAS]++;
    }
}

static void count_directives(kli_reader *r) {
    const kl_kernel *k = r->kernel;
    double *count = r->out->count;
    count[KLI_TRAIT_BUFFERS] = k->n_buffers;
    count[KLI_TRAIT_LAUNCHES] = k->n_launches;
    count[KLI_TRAIT_PARAMS] = k->n_params;
    count[KLI_TRAIT_TENSORMAPS] = k->n_tensormaps;
    const double threads = k->threads.text.len ? number_of(k->threads.text) : 0;
    count[KLI_TRAIT_THREADS] = threads > 1 ? threads : 0;
    for (int i = 0; i < k->n_params; i++)
        if (has(k->params[i].name, "STAGE") && (double)k->params[i].value > count[KLI_TRAIT_STAGES])
            count[KLI_TRAIT_STAGES] = (double)k->params[i].value;
    for (int i = 0; i < k->n_launches; i++) {
        count[KLI_TRAIT_CLUSTERS] += k->launches[i].n_clauses[KL_CLAUSE_CLUSTER] > 0;
        if (k->launches[i].n_clauses[KL_CLAUSE_STAGES])
            count[KLI_TRAIT_STAGES] = number_of(k->launches[i].clauses[KL_CLAUSE_STAGES][0].text);
        for (int n = 0; n < k->launches[i].n_args; n++)
            count[KLI_TRAIT_SHARED_ARRAYS] += k->launches[i].args[n].kind == KL_ARG_LOCAL;
    }
    count_flags(r);
}

static void read_python(kli_reader *r) {
    place p = {.t = &r->tokens, .body = true};
    count_range(r, &p, 0, r->tokens.n);
    kli_read_python_loops(r);
}

static void read_c(kli_reader *r) {
    make_slots(r);
    find_macros(r);
    find_functions(r);
    find_vector_types(r);
    find_reached(r);
    count_functions(r);
    count_outside(r);
    kli_read_loops(r);
}

void kli_source_read(kli_source *out, const kl_kernel *k) {
    *out = (kli_source){0};
    kl_arena *scratch = kl_arena_new();
    kli_reader *r = KL_NEW(scratch, kli_reader);
    r->kernel = k;
    r->out = out;
    r->arena = scratch;
    kli_tokens_of(&r->tokens, scratch, k->source, k->surface);
    count_directives(r);
    if (k->surface->comment[0] == '#') {
        make_slots(r);
        read_python(r);
    } else
        read_c(r);
    out->count[KLI_TRAIT_TOKENS] = r->tokens.n;
    kl_arena_free(scratch);
}
