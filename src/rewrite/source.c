/* source.c - the numbers that are read from a kernel's text: which words it uses, and which loops
 * it runs.
 *
 * Only what can be reached counts: functions that a launch names, what those mention, and so on;
 * macros count where they are used (expand.c).  Branches of #if are all counted, except `#if 0`.
 * Loops are followed by the shape of statements, without types; text that defeats that loses its
 * loops and nothing else.  The table of words is words.c; loops are loops.c.
 * Why no compiler's parser: a trait stands in prompts, and a prompt is the key of its answer, so
 * the numbers have to be the same on every machine, whatever is installed there, for text whose
 * headers, types and macros are known to the compiler alone.  loops_test.c holds the loops that
 * are read here against a compiler's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "source_impl.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- symbols ----------------------------------------------------------------------------- */

void kli_symbols_init(kli_symbols *out, kl_arena *a, int most) {
    out->n = 64;
    while (out->n < 2 * (size_t)most) out->n *= 2; /* at most half full */
    KL_ASSERT((out->n & (out->n - 1)) == 0);       /* look-ups mask with n - 1 */
    out->slots = KL_ARRAY(a, kli_symbol, out->n);
}

kli_symbol *kli_symbol_of(const kli_symbols *s, kl_str name, bool add) {
    size_t i = kli_hash_bulk(name.ptr, name.len) & (s->n - 1);
    while (s->slots[i].name.ptr && !kl_str_eq(s->slots[i].name, name)) i = (i + 1) & (s->n - 1);
    if (s->slots[i].name.ptr) return &s->slots[i];
    if (!add) return NULL;
    KL_ASSERT(name.ptr); /* what marks a slot as taken */
    s->slots[i] = (kli_symbol){.name = name, .first = -1};
    return &s->slots[i];
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

void kli_read_header(kli_loop *l, const kli_tokens *t, int at, int end) {
    *l = (kli_loop){.at = at, .open = at + 1};
    KL_ASSERT(at >= 0 && at < end);
    l->close = kli_match(t, l->open, end);
    l->body = l->close + 1;
    for (int i = l->open + 1; i < l->close && !l->step; i++) {
        const kli_token *k = &t->at[i];
        const bool open = kli_token_is(k, "( { [");
        if (open) i = kli_match(t, i, l->close);
        if (kli_token_is(k, ";")) *(l->condition ? &l->step : &l->condition) = i + 1;
    }
}

/* ---- functions --------------------------------------------------------------------------- */

static bool is_attribute(const kli_token *t) {
    return kli_token_is(t, "__attribute__ __attribute __launch_bounds__ alignas _Alignas __align__ "
                           "__declspec reqd_work_group_size _Pragma __cluster_dims__ decltype");
}

static void add_function(kli_reader *r, int name, int body, int end) {
    kli_symbol *s = kli_symbol_of(&r->names, r->tokens.at[name].text, true);
    if (r->n_functions == KLI_MAX_FUNCTIONS) return;
    r->functions[r->n_functions] =
        (kli_function){.name = name, .body = body, .end = end, .next = s->first};
    s->first = r->n_functions++;
}

/* extern "C" {, namespace x {, struct y {: what stands inside are declarations again. */
static bool opens_scope(const kli_tokens *t, int begin, int open) {
    if (begin < open && t->at[open - 1].kind == KLI_TOKEN_STRING) return true;
    for (int i = begin; i < open; i++)
        if (kli_token_is(&t->at[i], "namespace struct class union")) return true;
    return false;
}

/* Outside of functions: NAME ( ... ) [attributes] { ... }. */
static void find_functions(kli_reader *r) {
    const kli_tokens *t = &r->tokens;
    int name = -1, begin = 0;
    for (int i = 0; i < t->n; i++) {
        const kli_token *k = &t->at[i];
        if (k->kind == KLI_TOKEN_NAME && kli_is(t, i + 1, "(")) {
            if (!is_attribute(k)) name = i;
            i = kli_match(t, i + 1, t->n);
        } else if (kli_token_is(k, "{")) {
            const int end = name < 0 && opens_scope(t, begin, i) ? i : kli_match(t, i, t->n);
            if (name >= 0) add_function(r, name, i, end);
            i = end;
            name = -1;
            begin = i + 1;
        } else if (kli_token_is(k, "; =")) {
            name = -1;
            begin = i + 1;
        } else if (k->kind == KLI_TOKEN_LINE && i == begin)
            begin = i + 1;
    }
}

/* ---- types of vectors -------------------------------------------------------------------- */

/* A 1, or a name that every enum of the source says is 1. */
static bool means_one(kli_reader *r, kl_str name) {
    const kli_tokens *t = &r->tokens;
    bool any = kl_str_eq(name, KL_S("1"));
    for (int i = 0; i + 3 < t->n; i++) {
        if (!kl_str_eq(t->at[i].text, name) || !kli_is(t, i + 1, "=")) continue;
        any = true;
        if (!kli_is(t, i + 2, "1") || !kli_is(t, i + 3, ", }")) return false;
    }
    return any;
}

/* vector_size(4), vector_size(4 * LANES) with LANES = 1: a float by another name.  `open` is the
 * bracket. */
static bool has_one_lane(kli_reader *r, int open) {
    const kli_tokens *t = &r->tokens;
    if (open + 4 >= t->n || !kli_is(t, open + 1, "4")) return false;
    return kli_is(t, open + 2, ")") || (kli_is(t, open + 2, "*") && kli_is(t, open + 4, ")") &&
                                        means_one(r, t->at[open + 3].text));
}

/* typedef ... NAME [attributes] ; where the dots hold a vector type */
static void find_vector_types(kli_reader *r) {
    const kli_tokens *t = &r->tokens;
    for (int i = 0; i < t->n; i++) {
        if (!kli_token_is(&t->at[i], "typedef")) continue;
        int name = -1, j = i + 1;
        bool vector = false;
        for (int depth = 0; j < t->n && !kli_is(t, j, "; {"); j++) {
            const kli_token *k = &t->at[j];
            depth += kli_token_is(k, "(") - kli_token_is(k, ")");
            if (k->kind != KLI_TOKEN_NAME) continue;
            const kli_symbol *s = kli_symbol_of(&r->names, k->text, false);
            const bool sized = kli_token_is(k, "vector_size __vector_size__");
            vector = vector || (sized && !has_one_lane(r, j + 1)) ||
                     kli_token_is(k, "ext_vector_type") ||
                     kli_is_vector_type(k->text, r->kernel->surface) || (s && s->vector);
            if (!depth && !is_attribute(k)) name = j;
        }
        if (vector && name >= 0 && kli_is(t, j, ";"))
            kli_symbol_of(&r->names, t->at[name].text, true)->vector = true;
        i = j;
    }
}

/* ---- what can be reached ----------------------------------------------------------------- */

static void reach(kli_reader *r, kl_str name) {
    const kli_symbol *s = kli_symbol_of(&r->names, name, false);
    for (int f = s ? s->first : -1; f >= 0; f = r->functions[f].next) {
        if (r->functions[f].reached) continue;
        r->functions[f].reached = true;
        KL_ASSERT(r->n_queue < r->n_functions); /* each is reached once */
        r->queue[r->n_queue++] = f;
    }
}

static void reach_everything(kli_reader *r) {
    for (int f = 0; f < r->n_functions; f++) r->functions[f].reached = true;
}

static void find_reached(kli_reader *r) {
    bool known = r->kernel->n_launches > 0;
    for (int i = 0; i < r->kernel->n_launches; i++) {
        const kli_symbol *s = kli_symbol_of(&r->names, r->kernel->launches[i].entry, false);
        known = known && s && s->first >= 0;
        reach(r, r->kernel->launches[i].entry);
    }
    for (int done = 0; done < r->n_queue; done++) {
        const kli_function *f = &r->functions[r->queue[done]];
        for (int i = f->name; i < f->end; i++)
            if (r->tokens.at[i].kind == KLI_TOKEN_NAME) reach(r, r->tokens.at[i].text);
    }
    if (!known)
        reach_everything(r); /* an entry that a macro spells: better too much than nothing */
}

/* ---- counting words ---------------------------------------------------------------------- */

typedef struct {
    int asm_end; /* strings before it are assembler */
    bool body;   /* inside a function's braces */
} source_place;

static bool is_asm(const kli_token *t) { return kli_token_is(t, "asm __asm__ __asm"); }

static void count_asm(kli_reader *r, source_place *p, int i) {
    const kli_tokens *t = &r->tokens;
    int open = i + 1;
    while (open < i + 4 && kli_is_kind(t, open, KLI_TOKEN_NAME)) open++; /* volatile, goto */
    r->out->asms++;
    if (i >= p->asm_end && kli_is(t, open, "(")) p->asm_end = kli_match(t, open, t->n);
}

/* TYPE NAME [ : an array of a function's own. */
static bool declares_array(const kli_reader *r, const source_place *p, int i) {
    const kli_tokens *t = &r->tokens;
    if (!p->body || !kli_is(t, i + 1, "[") || !kli_is_kind(t, i - 1, KLI_TOKEN_NAME) ||
        kli_is(t, i - 1, "return else case goto sizeof do throw new delete"))
        return false;
    for (int back = i - 1; kli_is_kind(t, back, KLI_TOKEN_NAME); back--)
        if (kli_is(t, back, "__shared__ __local")) return false;
    return true;
}

/* aligned(4) takes alignment away: only 16 and more, or a name, promise some.  True of any other
 * word. */
static bool gives_alignment(const kli_tokens *t, int i) {
    if (!kli_is(t, i, "aligned") || i + 2 >= t->n) return true;
    const kl_str s = t->at[i + 2].text;
    return t->at[i + 2].kind != KLI_TOKEN_NUMBER || (s.len > 1 && !kl_str_eq(s, KL_S("0")));
}

static void count_name(kli_reader *r, source_place *p, int i) {
    const kli_token *t = &r->tokens.at[i];
    const kli_symbol *s = kli_symbol_of(&r->names, t->text, false);
    const bool call = kli_is(&r->tokens, i + 1, "(");
    if (is_asm(t)) count_asm(r, p, i);
    if (kli_token_is(t, "volatile __volatile__") && !(i > 0 && is_asm(t - 1))) r->out->volatiles++;
    if (kli_token_is(t, "_Pragma") && i + 2 < r->tokens.n) kli_count_pragma(r->out, t[2].text);
    if (s && s->vector && p->body) r->out->count[KLI_TRAIT_VECTOR_TYPES]++;
    if (declares_array(r, p, i)) r->out->count[KLI_TRAIT_LOCAL_ARRAYS]++;
    if (gives_alignment(&r->tokens, i))
        kli_count_name(r->out, t->text, call, p->body, r->kernel->surface);
}

static void count_range(kli_reader *r, source_place *p, int begin, int end) {
    for (int i = begin; i < end; i++) {
        const kli_token *t = &r->tokens.at[i];
        if (t->kind == KLI_TOKEN_NAME) count_name(r, p, i);
        if (t->kind == KLI_TOKEN_NUMBER) kli_count_number(r->out, t->text);
        if (t->kind == KLI_TOKEN_STRING && i < p->asm_end) kli_count_asm(r->out, t->text);
        if (t->kind == KLI_TOKEN_LINE) kli_count_pragma(r->out, t->text);
    }
}

static void count_functions(kli_reader *r) {
    const kli_tokens *t = &r->tokens;
    for (int f = 0; f < r->n_functions; f++) {
        const kli_function *at = &r->functions[f];
        if (!at->reached) continue;
        source_place head = {0}, body = {.body = true};
        int begin = at->name; /* the attributes before the name belong to it */
        while (begin > 0 && !kli_is(t, begin - 1, "; }") &&
               !kli_is_kind(t, begin - 1, KLI_TOKEN_LINE) && at->name - begin < 64)
            begin--;
        r->out->count[KLI_TRAIT_FUNCTIONS]++;
        count_range(r, &head, begin, at->body);
        count_range(r, &body, at->body, at->end);
    }
}

/* What stands between the functions: OpenMP and compiler pragmas, arrays in shared memory. */
static void count_outside(kli_reader *r) {
    source_place p = {0};
    int from = 0;
    for (int f = 0; f < r->n_functions; f++) { /* in the order of the text */
        for (int i = from; i < r->functions[f].name; i++)
            if (kli_is_kind(&r->tokens, i, KLI_TOKEN_LINE) || kli_is(&r->tokens, i, "_Pragma"))
                count_range(r, &p, i, i + 1);
        from = r->functions[f].end;
    }
}

/* ---- directives -------------------------------------------------------------------------- */

static double source_number_of(kl_str text) {
    const kl_str s = kl_str_trim(text);
    double v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || i > 6)
            return 2; /* an expression: more than one, usually */
        v = v * 10 + (s.ptr[i] - '0');
    }
    return v;
}

static void count_flags(kli_reader *r) {
    for (int i = 0; i < r->kernel->n_flags; i++) {
        const kl_str flag = r->kernel->flags[i];
        const bool fast = kli_parts_in(
            flag, "fast-math unsafe-math associative-math reciprocal-math finite-math fast_math "
                  "relaxed-math Ofast ftz=true prec-div=false prec-sqrt=false signed-zeros");
        r->out->count[KLI_TRAIT_FAST_MATH] += fast;
        r->out->slow_flags += kli_parts_in(flag, "-O0 -O1 -Os -fno-inline -fno-tree -fno-unroll "
                                                 "-mno- -opt-disable O0 -dlcm");
        r->out->count[KLI_TRAIT_OMP_PRAGMAS] += kl_str_eq(flag, KL_S("-fopenmp"));
    }
}

static void count_directives(kli_reader *r) {
    const kl_kernel *k = r->kernel;
    double *count = r->out->count;
    count[KLI_TRAIT_BUFFERS] = k->n_buffers;
    count[KLI_TRAIT_LAUNCHES] = k->n_launches;
    count[KLI_TRAIT_PARAMS] = k->n_params;
    count[KLI_TRAIT_TENSORMAPS] = k->n_tensormaps;
    const double threads = k->threads.text.len ? source_number_of(k->threads.text) : 0;
    count[KLI_TRAIT_THREADS] = threads > 1 ? threads : 0;
    for (int i = 0; i < k->n_params; i++)
        if (kli_contains(k->params[i].name, "STAGE") &&
            (double)k->params[i].value > count[KLI_TRAIT_STAGES])
            count[KLI_TRAIT_STAGES] = (double)k->params[i].value;
    for (int i = 0; i < k->n_launches; i++) {
        count[KLI_TRAIT_CLUSTERS] += k->launches[i].n_clauses[KL_CLAUSE_CLUSTER] > 0 ||
                                     k->launches[i].n_clauses[KL_CLAUSE_CTAS] > 0;
        if (k->launches[i].n_clauses[KL_CLAUSE_STAGES])
            count[KLI_TRAIT_STAGES] =
                source_number_of(k->launches[i].clauses[KL_CLAUSE_STAGES][0].text);
        for (int n = 0; n < k->launches[i].n_args; n++)
            count[KLI_TRAIT_SHARED_ARRAYS] += k->launches[i].args[n].kind == KL_ARG_LOCAL;
    }
    count_flags(r);
}

static void read_c(kli_reader *r) {
    kli_tokens written;
    kli_tokens_of(&written, r->arena, r->kernel->source);
    r->out->count[KLI_TRAIT_TOKENS] = written.n;
    kli_expand(&r->tokens, r->arena, &written);
    kli_symbols_init(&r->names, r->arena, r->tokens.n);
    find_functions(r);
    find_vector_types(r);
    find_reached(r);
    count_functions(r);
    count_outside(r);
    kli_read_loops(r);
}

kli_reader *kli_reader_open(kli_source *out, kl_arena *a, const kl_kernel *k) {
    kli_reader *r = KL_NEW(a, kli_reader);
    *out = (kli_source){0};
    *r = (kli_reader){.kernel = k, .out = out, .arena = a};
    count_directives(r);
    if (k->surface->families & KL_FAMILY_PYTHON)
        kli_python_read(out, a, k);
    else
        read_c(r);
    return r;
}

void kli_source_read(kli_source *out, const kl_kernel *k) {
    kl_arena *scratch = kl_arena_new();
    kli_reader_open(out, scratch, k);
    kl_arena_free(scratch);
}
