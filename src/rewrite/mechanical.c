/* mechanical.c - undoing without a model: simplifications that are a matter of words.
 *
 * Each row of the table at the end takes words out of the text, or puts plainer ones in their
 * place, over the tokens of the source; comments and strings are never touched.  A loop or
 * condition that is left with nothing to do goes as well.  What is inside a macro stays.  A result
 * is offered only when it parses and passes kl_rewrite_check_undo; whether it is still correct is
 * the gate's question. Not here: anything that needs to know types or values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "source_impl.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_INSERTS = 4096, MAX_LIST = 8 };

typedef struct {
    size_t at;
    kl_str text;
} insert;

typedef struct {
    const kl_kernel *kernel;
    kl_arena *arena;
    kl_str source;
    kli_tokens tokens;
    bool *gone; /* bytes */
    insert *inserts;
    int n_inserts;
    size_t first; /* offset of the first change; SIZE_MAX: none */
    int changes;
} undoer;

static kl_str text_at(const undoer *u, int i) { return u->tokens.at[i].text; }
static size_t token_place(const undoer *u, int i) { return u->tokens.at[i].offset; }
static bool mechanical_is(const undoer *u, int i, const char *words) {
    return kli_is(&u->tokens, i, words);
}
static bool is_line(const undoer *u, int i) { return kli_is_kind(&u->tokens, i, KLI_TOKEN_LINE); }

/* ---- changing bytes ---------------------------------------------------------------------- */

static void mechanical_drop(undoer *u, size_t begin, size_t end) {
    KL_ASSERT(begin <= end && end <= u->source.len);
    memset(u->gone + begin, 1, end - begin);
    if (begin < u->first) u->first = begin;
    u->changes++;
}

/* A word and the blanks behind it, where a blank or a bracket stands before it as well. */
static void drop_word(undoer *u, size_t begin, size_t end) {
    const char before = begin ? u->source.ptr[begin - 1] : ' ';
    mechanical_drop(u, begin, end);
    if (before != ' ' && before != '\n' && before != '(' && before != '*') return;
    while (end < u->source.len && (u->source.ptr[end] == ' ' || u->source.ptr[end] == '\t'))
        u->gone[end++] = true;
}

/* Tokens [begin, end]. */
static void drop_tokens(undoer *u, int begin, int end) {
    mechanical_drop(u, token_place(u, begin), kli_token_end(&u->tokens, end));
}

static void drop_words(undoer *u, int begin, int end) {
    drop_word(u, token_place(u, begin), kli_token_end(&u->tokens, end));
}

static void mechanical_put(undoer *u, size_t at, kl_str text) {
    if (u->n_inserts < MAX_INSERTS) u->inserts[u->n_inserts++] = (insert){at, text};
}

static void replace_tokens(undoer *u, int begin, int end, kl_str text) {
    drop_tokens(u, begin, end);
    mechanical_put(u, token_place(u, begin), text);
}

static int by_place(const void *a, const void *b) {
    const insert *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->text.ptr > y->text.ptr) - (x->text.ptr < y->text.ptr);
}

static bool all_blank(kl_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!kli_is_blank(s.ptr[i])) return false;
    return true;
}

/* Blank, or a comment on what is gone. */
static bool is_nothing(const undoer *u, kl_str line) {
    const kl_str rest = kl_str_trim(line);
    return all_blank(line) || (kl_str_starts(rest, KL_S("//")) &&
                               !kl_str_starts(rest, kl_str_of(u->kernel->surface->comment)));
}

/* The source with its changes; a line that lost all it had goes as a whole. */
static kl_str changed(undoer *u) {
    kl_buf out = {0}, line = {0};
    bool lost = false;
    int n = 0;
    qsort(u->inserts, (size_t)u->n_inserts, sizeof u->inserts[0], by_place);
    KL_ASSERT(u->n_inserts < MAX_INSERTS);
    for (size_t i = 0; i <= u->source.len; i++) {
        while (n < u->n_inserts && u->inserts[n].at == i) kl_buf_add(&line, u->inserts[n++].text);
        const bool newline = i < u->source.len && u->source.ptr[i] == '\n';
        lost = lost || (i < u->source.len && u->gone[i]);
        if (i < u->source.len && !u->gone[i] && !newline)
            kl_buf_add(&line, (kl_str){&u->source.ptr[i], 1});
        if (!newline && i < u->source.len) continue;
        kl_str text = kl_buf_str(&line);
        if (lost)
            while (text.len && kli_is_blank(text.ptr[text.len - 1])) text.len--;
        if (!(lost && is_nothing(u, text))) {
            kl_buf_add(&out, text);
            if (newline) kl_buf_add(&out, KL_S("\n"));
        }
        line.len = 0;
        lost = false;
    }
    const kl_str text = kl_arena_copy(u->arena, kl_buf_str(&out));
    kl_buf_fini(&out);
    kl_buf_fini(&line);
    return text;
}

/* ---- calls ------------------------------------------------------------------------------- */

/* -1: none. */
static int closing(const undoer *u, int open) {
    const int close = kli_match(&u->tokens, open, u->tokens.n);
    return close < u->tokens.n ? close : -1;
}

static int opening(const undoer *u, int close) {
    int depth = 0;
    for (int i = close; i >= 0; i--) {
        depth += mechanical_is(u, i, ")") - mechanical_is(u, i, "(");
        if (!depth) return i;
    }
    return -1;
}

typedef struct {
    int name, open, close, n;
    struct {
        int begin, end;
    } arg[MAX_LIST];
} mechanical_call;

static bool read_call(const undoer *u, int i, mechanical_call *c) {
    *c = (mechanical_call){.name = i, .open = i + 1};
    if (!mechanical_is(u, i + 1, "(") || (c->close = closing(u, i + 1)) < 0) return false;
    for (int k = i + 2, begin = k, depth = 0; k <= c->close; k++) {
        depth += mechanical_is(u, k, "( { [") - mechanical_is(u, k, ") } ]");
        if (!((depth == 0 && mechanical_is(u, k, ",")) || k == c->close)) continue;
        if (k == begin || c->n == MAX_LIST) return false;
        c->arg[c->n].begin = begin;
        c->arg[c->n++].end = k;
        begin = k + 1;
    }
    return true;
}

/* An argument as an operand: in brackets unless it is one name, number, element or call. */
static kl_str operand(undoer *u, const mechanical_call *c, int n) {
    const int begin = c->arg[n].begin, end = c->arg[n].end;
    const kl_str text = kli_between(u->source.ptr + token_place(u, begin),
                                    u->source.ptr + kli_token_end(&u->tokens, end - 1));
    bool simple = kli_is_kind(&u->tokens, begin, KLI_TOKEN_NAME) ||
                  kli_is_kind(&u->tokens, begin, KLI_TOKEN_NUMBER) || mechanical_is(u, begin, "(");
    for (int i = begin + !mechanical_is(u, begin, "("); i < end && simple; i++) {
        if (mechanical_is(u, i, "[ ("))
            i = closing(u, i);
        else if (mechanical_is(u, i, ". ->"))
            i++;
        else
            simple = false;
        if (i < 0 || (mechanical_is(u, begin, "(") && i + 1 < end))
            simple = false; /* (a) + b, or a cast */
    }
    return simple ? text : kl_arena_printf(u->arena, "(%.*s)", KL_STR_ARG(text));
}

/* ---- statements that go ------------------------------------------------------------------ */

static bool is_gone(const undoer *u, int i) { return u->gone[token_place(u, i)]; }

static bool is_launched(const undoer *u, kl_str name) {
    for (int i = 0; i < u->kernel->n_launches; i++)
        if (kl_str_eq(u->kernel->launches[i].entry, name)) return true;
    return false;
}

/* The statement around token `i` is a call that ends in a semicolon: which tokens? */
static bool is_call_statement(const undoer *u, const mechanical_call *c) {
    const bool begins =
        c->name == 0 || mechanical_is(u, c->name - 1, "; { } ) else") || is_line(u, c->name - 1);
    return begins && mechanical_is(u, c->close + 1, ";");
}

/* for (...) or if (...) before a body of which nothing is left; `begin` .. `end` are the body's
 * tokens. */
static bool drop_header(undoer *u, int begin, int end) {
    if (!mechanical_is(u, begin - 1, ")")) return false;
    const int open = opening(u, begin - 1);
    const bool branch = mechanical_is(u, open - 1, "if");
    if (!branch && !mechanical_is(u, open - 1, "for")) return false;
    if (branch && (mechanical_is(u, end + 1, "else") || mechanical_is(u, open - 2, "else")))
        return false;
    int from = open - 1;
    if (is_line(u, from - 1) && kli_contains(text_at(u, from - 1), "unroll")) from--;
    if (!branch && kli_is_kind(&u->tokens, from - 1, KLI_TOKEN_NAME) &&
        mechanical_is(u, from - 2, "{ ; }"))
        from--; /* UNROLL for */
    drop_tokens(u, from, end);
    drop_header(u, from, end); /* for (...) for (...) nothing */
    return true;
}

static void drop_statement(undoer *u, const mechanical_call *c) {
    drop_tokens(u, c->name, c->close + 1);
    if (mechanical_is(u, c->name - 1, ") else") && !drop_header(u, c->name, c->close + 1))
        mechanical_put(u, token_place(u, c->name), KL_S(";"));
}

/* Lines of comment right above `at`, which is the beginning of a line; directives are none. */
static size_t above(const undoer *u, size_t at) {
    while (at > 0) {
        const size_t begin = kli_line_begin(u->source, at - 1);
        const kl_str line = kl_str_trim(kli_line_at(u->source, begin));
        if (!kl_str_starts(line, KL_S("//")) ||
            kl_str_starts(line, kl_str_of(u->kernel->surface->comment)))
            break;
        at = begin;
    }
    return at;
}

/* A helper of which nothing is left, with its calls; `open` and `close` are its braces. */
static bool drop_helper(undoer *u, int open, int close) {
    mechanical_call c;
    const int bracket = mechanical_is(u, open - 1, ")") ? opening(u, open - 1) : -1;
    if (!kli_is_kind(&u->tokens, bracket - 1, KLI_TOKEN_NAME) ||
        is_launched(u, text_at(u, bracket - 1)))
        return false;
    const kl_str name = text_at(u, bracket - 1);
    for (int i = 0; i < u->tokens.n; i++)
        if (i != bracket - 1 && !is_gone(u, i) && kl_str_eq(text_at(u, i), name) &&
            !(read_call(u, i, &c) && is_call_statement(u, &c)))
            return false;
    int begin = bracket - 1;
    while (begin > 0 && !mechanical_is(u, begin - 1, "; }") && !is_line(u, begin - 1)) begin--;
    if (!mechanical_is(u, begin, "static")) return false;
    for (int i = 0; i < u->tokens.n; i++)
        if (i != bracket - 1 && !is_gone(u, i) && kl_str_eq(text_at(u, i), name) &&
            read_call(u, i, &c))
            drop_statement(u, &c);
    drop_tokens(u, begin, close);
    const size_t from = token_place(u, begin);
    if (from && u->source.ptr[from - 1] == '\n') mechanical_drop(u, above(u, from), from);
    return true;
}

static bool clean_round(undoer *u) {
    bool more = false;
    for (int i = 1; i < u->tokens.n; i++) {
        if (is_gone(u, i) || !mechanical_is(u, i, "{")) continue;
        const int close = closing(u, i);
        bool empty = close > i + 1;
        for (int k = i + 1; k < close && empty; k++) empty = is_gone(u, k);
        if (empty) more = drop_header(u, i, close) || drop_helper(u, i, close) || more;
    }
    return more;
}

/* ---- directives -------------------------------------------------------------------------- */

/* Compile flags that have one of `parts` in them; a line of none is dropped as a whole. */
static void mechanical_drop_flags(undoer *u, const char *parts) {
    kli_directive d = {0};
    while (kli_next_directive(&d, u->source, u->kernel->surface, "flags")) {
        const kl_str source = u->source;
        int left = 0, dropped = 0;
        for (kl_str flag, rest = kli_between(source.ptr + d.words, source.ptr + d.end);
             kli_next_word(&flag, &rest);) {
            const size_t begin = (size_t)(flag.ptr - source.ptr);
            const bool hit = kli_parts_in(flag, parts) > 0;
            left += !hit;
            dropped += hit;
            if (hit) drop_word(u, begin, begin + flag.len);
        }
        if (dropped && !left) mechanical_drop(u, d.line, d.end);
    }
}

/* ---- what rows have in common ------------------------------------------------------------ */

static void drop_pragmas(undoer *u, const char *with, const char *without) {
    for (int i = 0; i < u->tokens.n; i++) {
        const bool line = is_line(u, i) && kli_contains(text_at(u, i), "pragma");
        const bool word = mechanical_is(u, i, "_Pragma") && mechanical_is(u, i + 3, ")");
        if (!line && !word) continue;
        const kl_str said = text_at(u, line ? i : i + 2);
        if (!kli_contains(said, with) || (without && kli_contains(said, without))) continue;
        if (line)
            drop_tokens(u, i, i);
        else
            drop_words(u, i, i + 3);
    }
}

/* A call of one of `names` with `n` arguments becomes `form`: $0 is the first argument as an
 * operand, @0 what it points to. */
typedef struct {
    const char *names;
    int n;
    const char *form;
} call_rule;

static void add_pointee(kl_buf *b, undoer *u, mechanical_call c, int n) {
    const bool address = mechanical_is(u, c.arg[n].begin, "&");
    c.arg[n].begin += address;
    kl_buf_printf(b, "%s%.*s", address ? "" : "*", KL_STR_ARG(operand(u, &c, n)));
}

static kl_str filled(undoer *u, const mechanical_call *c, const char *form) {
    kl_buf b = {0};
    for (; *form; form++) {
        const int n = form[1] - '0';
        if (*form != '$' && *form != '@') {
            kl_buf_printf(&b, "%c", *form);
            continue;
        }
        KL_ASSERT(n >= 0 && n < c->n);
        form++;
        if (form[-1] == '@')
            add_pointee(&b, u, *c, n);
        else
            kl_buf_add(&b, operand(u, c, n));
    }
    return kli_buf_keep(&b, u->arena);
}

/* A call inside another's argument is left for the next undoing: the outer text is copied as it
 * stands. */
static void rewrite_calls(undoer *u, const call_rule *rules, size_t n) {
    mechanical_call c;
    for (int i = 0; i < u->tokens.n; i++)
        for (const call_rule *r = rules; r < rules + n; r++) {
            if (!mechanical_is(u, i, r->names) || !read_call(u, i, &c) || c.n != r->n) continue;
            replace_tokens(u, c.name, c.close, filled(u, &c, r->form));
            i = c.close;
            break;
        }
}

/* name(x, ...) becomes (x). */
static void unwrap(undoer *u, const char *name) {
    mechanical_call c;
    for (int i = 0; i < u->tokens.n; i++) {
        if (!mechanical_is(u, i, name) || !read_call(u, i, &c) || c.n < 2 || is_gone(u, i))
            continue;
        drop_tokens(u, i, i);
        mechanical_drop(u, token_place(u, c.arg[0].end),
                        token_place(u, c.close)); /* the brackets stay */
    }
}

/* ---- the rows ---------------------------------------------------------------------------- */

static void undo_omp(undoer *u) {
    kli_directive d = {0};
    for (int i = 0; i < u->tokens.n; i++)
        if (kl_str_starts(text_at(u, i), KL_S("omp_")))
            return; /* the code asks who it is: no matter of words */
    drop_pragmas(u, "omp ", "omp simd");
    while (kli_next_directive(&d, u->source, u->kernel->surface, "threads"))
        mechanical_drop(u, d.line, d.end);
    mechanical_drop_flags(u, "-fopenmp");
    for (int i = 0; i < u->tokens.n; i++)
        if (is_line(u, i) && kli_contains(text_at(u, i), "<omp.h>")) drop_tokens(u, i, i);
}

static void undo_simd_pragma(undoer *u) {
    drop_pragmas(u, "omp simd", NULL);
    drop_pragmas(u, "omp declare simd", NULL);
    drop_pragmas(u, "ivdep", NULL);
    if (u->changes) mechanical_drop_flags(u, "-fopenmp-simd");
}

/* Also in the definition of a macro: #define UNROLL _Pragma("GCC unroll 8") */
static void undo_unroll(undoer *u) {
    drop_pragmas(u, "unroll", NULL);
    for (int i = 0; i < u->tokens.n; i++) {
        if (!is_line(u, i) || !kli_contains(text_at(u, i), "define")) continue;
        const kl_str s = text_at(u, i);
        const char *at = memmem(s.ptr, s.len, "_Pragma", 7), *end = s.ptr + s.len;
        const char *close = at ? memmem(at, (size_t)(end - at), "\")", 2) : NULL;
        if (!close || !kli_contains(kli_between(at, close), "unroll")) continue;
        const size_t from = token_place(u, i) + (size_t)(at - s.ptr);
        drop_word(u, from, from + (size_t)(close + 2 - at));
    }
}

static void undo_prefetch(undoer *u) {
    const bool opencl = u->kernel->surface->families & KL_FAMILY_OPENCL;
    const char *names =
        opencl ? "__builtin_prefetch _mm_prefetch prefetch" : "__builtin_prefetch _mm_prefetch";
    mechanical_call c;
    for (int i = 0; i < u->tokens.n; i++)
        if (mechanical_is(u, i, names) && read_call(u, i, &c) && is_call_statement(u, &c))
            drop_statement(u, &c);
    for (int round = 0; round < MAX_LIST && clean_round(u); round++) {
    }
}

static void undo_nt_store(undoer *u) {
    static const call_rule RULES[] = {{"__builtin_nontemporal_store", 2, "*$1 = $0"},
                                      {"_mm_stream_si32 _mm_stream_si64", 2, "*$0 = $1"}};
    rewrite_calls(u, RULES, KL_COUNT(RULES));
    for (int i = 0; i < u->tokens.n; i++) {
        const kl_str s = text_at(u, i);
        const char *at = kl_str_starts(s, KL_S("_mm")) && mechanical_is(u, i + 1, "(")
                             ? memmem(s.ptr, s.len, "_stream_", 8)
                             : NULL;
        if (!at || is_gone(u, i)) continue;
        const bool load = kli_contains(s, "_stream_load_");
        const size_t from = token_place(u, i) + (size_t)(at - s.ptr);
        mechanical_drop(u, from, from + (load ? 13 : 8));
        mechanical_put(u, from, load ? KL_S("_load_") : KL_S("_store_"));
    }
}

static void undo_cache_hint(undoer *u) {
    static const call_rule RULES[] = {{"__ldg __ldcs __ldcg __ldca __ldlu __ldcv", 1, "@0"},
                                      {"__stcs __stcg __stwt __stwb", 2, "@0 = $1"}};
    rewrite_calls(u, RULES, KL_COUNT(RULES));
}

static void undo_expect(undoer *u) { unwrap(u, "__builtin_expect"); }
static void undo_align(undoer *u) { unwrap(u, "__builtin_assume_aligned"); }

static void undo_launch_bounds(undoer *u) {
    mechanical_call c;
    for (int i = 0; i < u->tokens.n; i++)
        if (mechanical_is(u, i, "__launch_bounds__") && read_call(u, i, &c))
            drop_words(u, i, c.close);
}

static void undo_inline_hint(undoer *u) {
    for (int i = 0; i < u->tokens.n; i++) {
        if (mechanical_is(u, i, "__forceinline__")) replace_tokens(u, i, i, KL_S("inline"));
        if (!mechanical_is(u, i, "always_inline __always_inline__")) continue;
        const bool alone = i >= 3 && mechanical_is(u, i - 1, "(") && mechanical_is(u, i + 1, ")") &&
                           mechanical_is(u, i - 2, "(") && mechanical_is(u, i + 2, ")");
        if (alone)
            drop_words(u, i - 3, i + 2);
        else
            drop_words(u, i, mechanical_is(u, i + 1, ",") ? i + 1 : i);
    }
}

static void undo_restrict(undoer *u) {
    for (int i = 0; i < u->tokens.n; i++)
        if (mechanical_is(u, i, "restrict __restrict __restrict__")) drop_words(u, i, i);
}

static void undo_fast_math(undoer *u) {
    mechanical_drop_flags(
        u, "-ffast-math -funsafe-math -fassociative-math -freciprocal-math -ffinite-math -Ofast "
           "use_fast_math -cl-fast-relaxed-math -cl-unsafe-math -cl-finite-math -fno-signed-zeros "
           "ftz=true prec-div=false prec-sqrt=false -cl-no-signed-zeros");
}

static void undo_fma(undoer *u) {
    mechanical_call c;
    for (int i = 0; i < u->tokens.n; i++) {
        if (!mechanical_is(u, i, "fma fmaf mad __builtin_fma __builtin_fmaf __fmaf_rn") ||
            !read_call(u, i, &c) || c.n != 3)
            continue;
        const bool alone = mechanical_is(u, i - 1, "=") && mechanical_is(u, c.close + 1, ";");
        replace_tokens(u, i, c.close, filled(u, &c, alone ? "$0 * $1 + $2" : "($0 * $1 + $2)"));
        i = c.close;
    }
}

/* NAME = 16 in an enum, or #define NAME 16: one lane instead. */
static void set_to_one(undoer *u, kl_str name) {
    for (int i = 0; i < u->tokens.n; i++) {
        const kl_str s = text_at(u, i);
        if (kl_str_eq(s, name) && mechanical_is(u, i + 1, "=") &&
            kli_is_kind(&u->tokens, i + 2, KLI_TOKEN_NUMBER))
            replace_tokens(u, i + 2, i + 2, KL_S("1"));
        if (!is_line(u, i) || !kli_contains(s, "define")) continue;
        kli_tokens t;
        kli_tokens_of(&t, u->arena, kli_from(s, 1));
        if (t.n != 3 || !kl_str_eq(t.at[1].text, name) || t.at[2].kind != KLI_TOKEN_NUMBER)
            continue;
        const size_t from = token_place(u, i) + 1 + t.at[2].offset;
        mechanical_drop(u, from, from + t.at[2].text.len);
        mechanical_put(u, from, KL_S("1"));
    }
}

static bool counts_by_sizeof(const undoer *u) {
    for (int i = 0; i + 5 < u->tokens.n; i++)
        if (mechanical_is(u, i, "sizeof") && mechanical_is(u, i + 1, "(") &&
            mechanical_is(u, i + 3, ")") && mechanical_is(u, i + 4, "/") &&
            mechanical_is(u, i + 5, "sizeof"))
            return true;
    return false;
}

/* Lanes that are moved about, or words for a fixed width, need more than another number. */
static bool has_fixed_lanes(const undoer *u) {
    for (int i = 0; i < u->tokens.n; i++) {
        const kl_str s = text_at(u, i);
        if (kl_str_starts(s, KL_S("_mm")) || kl_str_starts(s, KL_S("__m")) ||
            kli_contains(s, "__builtin_shuffle") || kl_str_starts(s, KL_S("__builtin_ia32")))
            return true;
    }
    return false;
}

/* Vectors of one lane, where the number of lanes stands in one place: a name in vector_size(4 *
 * NAME), or sizeof (vector) / sizeof (float). */
static void undo_vectors(undoer *u) {
    if (has_fixed_lanes(u)) return;
    const bool by_sizeof = counts_by_sizeof(u);
    mechanical_call c;
    for (int i = 0; i < u->tokens.n; i++) {
        if (!mechanical_is(u, i, "vector_size __vector_size__") || !read_call(u, i, &c) || c.n != 1)
            continue;
        const int begin = c.arg[0].begin, n = c.arg[0].end - begin;
        if (n == 3 && mechanical_is(u, begin, "4") && mechanical_is(u, begin + 1, "*") &&
            kli_is_kind(&u->tokens, begin + 2, KLI_TOKEN_NAME))
            set_to_one(u, text_at(u, begin + 2));
        else if (n == 1 && kli_is_kind(&u->tokens, begin, KLI_TOKEN_NUMBER) && by_sizeof &&
                 !mechanical_is(u, begin, "4"))
            replace_tokens(u, begin, begin, KL_S("4"));
    }
}

enum {
    UNDO_C = KL_FAMILY_C,
    C_CUDA = KL_FAMILY_C | KL_FAMILY_CUDA,
    UNDO_C_LIKE = C_CUDA | KL_FAMILY_OPENCL
};

/* What is applied last comes first. */
static const struct {
    const char *action;
    void (*undo)(undoer *);
    unsigned families;
} MECHANICAL_ROWS[] = {
    {"omp_parallel", undo_omp, UNDO_C},
    {"nt_store", undo_nt_store, UNDO_C},
    {"cache_hint", undo_cache_hint, KL_FAMILY_CUDA},
    {"prefetch", undo_prefetch, UNDO_C | KL_FAMILY_OPENCL},
    {"fast_math", undo_fast_math, UNDO_C_LIKE},
    {"launch_bounds", undo_launch_bounds, KL_FAMILY_CUDA},
    {"inline_hint", undo_inline_hint, UNDO_C_LIKE},
    {"branch_hint", undo_expect, C_CUDA},
    {"unroll", undo_unroll, UNDO_C_LIKE},
    {"align", undo_align, C_CUDA},
    {"restrict_alias", undo_restrict, UNDO_C_LIKE},
    {"simd_pragma", undo_simd_pragma, UNDO_C},
    {"fma_contract", undo_fma, UNDO_C_LIKE},
    {"fma_simd", undo_vectors, UNDO_C},
};

/* Does the result still read as a kernel, and is it what its action says? */
static bool mechanical_holds(kl_arena *a, const kl_kernel *k, const kl_undoing *u) {
    kl_kernel *after;
    kl_traits t_before, t_after;
    const kl_kernel_opts opts = {.trusted = k->trusted};
    if (kl_kernel_parse(&after, a, u->source, k->path, k->surface, &opts, kl_ignored()) != KL_OK)
        return false;
    kl_traits_of(&t_before, a, k, NULL);
    kl_traits_of(&t_after, a, after, NULL);
    return kl_rewrite_check_undo(u->action, KL_S(""), k, &t_before, after, &t_after,
                                 kl_ignored()) == KL_OK;
}

static bool undo_one(kl_undoing *out, kl_arena *a, const kl_kernel *k, const kli_tokens *tokens,
                     size_t row) {
    undoer u = {.kernel = k, .arena = a, .source = k->source, .tokens = *tokens, .first = SIZE_MAX};
    u.gone = KL_ARRAY(a, bool, k->source.len + 1);
    u.inserts = KL_ARRAY(a, insert, MAX_INSERTS);
    MECHANICAL_ROWS[row].undo(&u);
    if (!u.changes || u.n_inserts == MAX_INSERTS) return false;
    KL_ASSERT(u.first < k->source.len);
    const kl_str source = changed(&u);
    *out = (kl_undoing){kl_str_of(MECHANICAL_ROWS[row].action), kli_locus(a, k->source, u.first),
                        source};
    return !kl_str_eq(source, k->source) && mechanical_holds(a, k, out);
}

int kl_rewrite_undo(kl_undoing *out, int max, kl_arena *a, const kl_kernel *k) {
    int n = 0;
    kli_tokens tokens;
    kli_tokens_of(&tokens, a, k->source);
    for (size_t row = 0; row < KL_COUNT(MECHANICAL_ROWS) && n < max; row++)
        if ((MECHANICAL_ROWS[row].families & k->surface->families) &&
            undo_one(&out[n], a, k, &tokens, row))
            n++;
    return n;
}
