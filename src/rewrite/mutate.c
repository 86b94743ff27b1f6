/* mutate.c - every mechanical variation of a kernel's text, each by one small step: what can be
 * tried without knowing anything.
 *
 * Values of params, compile flags, hints before loops, the order of two loops, a loop cut into
 * tiles, promises of no aliasing, and the undoings of mechanical.c.  A variation reads as the
 * surface's language, by the shape of its tokens; whether it compiles, is right or pays is the
 * gate's question.  Applied again and again they compose: a loop that was cut can change places
 * with the loop around it, which is blocking. Not here: which one to try (a policy, or --model
 * mutate); loops inside macros; Python beyond its directives. SPDX-License-Identifier: Apache-2.0
 */
#include "source_impl.h"

#include <string.h>

/* Each for and each head of a function looks for its bracket through the rest of the text:
 * MAX_TRIES bounds that in a text made to be slow. */
enum { MAX_LOOPS = 256, MAX_TRIES = 1024, MAX_PATCHES = 48, MAX_NESTED = 64 };

/* Bytes [begin, end) of the source become `text`. */
typedef struct {
    size_t begin, end;
    kl_str text;
} mutate_patch;

typedef struct {
    kl_undoing *out;
    int n, max;
    kl_arena *arena;
    const kl_kernel *kernel;
    kl_str source;
    kli_tokens tokens;
    kli_loop *loops;
    int n_loops;
} rewrite_mutate_mutator;

static kl_str mutate_text(const rewrite_mutate_mutator *m, int i) { return m->tokens.at[i].text; }
static bool mutate_is(const rewrite_mutate_mutator *m, int i, const char *words) {
    return kli_is(&m->tokens, i, words);
}
static bool mutate_is_name(const rewrite_mutate_mutator *m, int i) {
    return kli_is_kind(&m->tokens, i, KLI_TOKEN_NAME);
}
static size_t begin_of(const rewrite_mutate_mutator *m, int i) { return m->tokens.at[i].offset; }
static size_t mutate_end_of(const rewrite_mutate_mutator *m, int i) {
    return kli_token_end(&m->tokens, i);
}

/* The text of tokens [from, to). */
static kl_str mutate_text_of(const rewrite_mutate_mutator *m, int from, int to) {
    if (from >= to) return (kl_str){0};
    return kli_between(m->source.ptr + begin_of(m, from), m->source.ptr + mutate_end_of(m, to - 1));
}

/* ---- one variation ----------------------------------------------------------------------- */

/* Patches in the order of their places, which do not overlap. */
static void rewrite_mutate_vary(rewrite_mutate_mutator *m, const char *action,
                                const mutate_patch *p, int n) {
    kl_buf b = {0};
    size_t at = 0;
    if (m->n == m->max) return;
    for (int i = 0; i < n; i++) {
        KL_ASSERT(at <= p[i].begin && p[i].begin <= p[i].end && p[i].end <= m->source.len);
        kl_buf_add(&b, kli_between(m->source.ptr + at, m->source.ptr + p[i].begin));
        kl_buf_add(&b, p[i].text);
        at = p[i].end;
    }
    kl_buf_add(&b, kli_from(m->source, at));
    const kl_str source = kl_buf_str(&b);
    if (source.len <= KL_MAX_SOURCE_BYTES && !kl_str_eq(source, m->source))
        m->out[m->n++] = (kl_undoing){kl_str_of(action), kli_locus(m->arena, m->source, p[0].begin),
                                      kl_arena_copy(m->arena, source)};
    kl_buf_fini(&b);
}

/* ---- directives -------------------------------------------------------------------------- */

/* The number behind `NAME =`; false where it is written in a way that is not worth understanding.
 */
static bool find_value(const rewrite_mutate_mutator *m, const kl_param *p, mutate_patch *out) {
    const kl_str s = m->source;
    size_t i = p->offset + p->name.len;
    while (i < s.len && kli_is_blank(s.ptr[i])) i++;
    if (i == s.len || s.ptr[i++] != '=') return false;
    while (i < s.len && kli_is_blank(s.ptr[i])) i++;
    out->begin = i;
    if (i < s.len && s.ptr[i] == '-') i++;
    while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9') i++;
    out->end = i;
    return i > out->begin &&
           (i == s.len || kli_is_blank(s.ptr[i]) || s.ptr[i] == '\n' || s.ptr[i] == '{');
}

static void vary_params(rewrite_mutate_mutator *m) {
    mutate_patch p;
    for (int i = 0; i < m->kernel->n_params; i++) {
        const kl_param *param = &m->kernel->params[i];
        if (!find_value(m, param, &p)) continue;
        for (int v = 0; v < param->n_values; v++) {
            p.text = kl_arena_printf(m->arena, "%lld", (long long)param->values[v]);
            rewrite_mutate_vary(m, "autotune", &p,
                                1); /* the value that is there changes nothing and is dropped */
        }
    }
}

/* What stands behind a flag of the allow-list that takes a word. */
static const struct {
    const char *flag, *words;
} FLAG_WORDS[] = {{"-ffp-contract=", "fast off"},
                  {"-fvect-cost-model=", "unlimited dynamic very-cheap"},
                  {"-fsimd-cost-model=", "unlimited"},
                  {"-finline-limit=", "1000"},
                  {"-falign-loops=", "32 64"},
                  {"-falign-functions=", "64"},
                  {"-mavx512*", "f vl"},
                  {"-mprefer-vector-width=", "128 256 512"},
                  {"-fmad=", "false"},
                  {"-ftz=", "true"},
                  {"-prec-div=", "false"},
                  {"-prec-sqrt=", "false"},
                  {"-maxrregcount=", "64 128 255"}};

static bool mutate_has_flag(const kl_kernel *k, kl_str flag) {
    for (int i = 0; i < k->n_flags; i++)
        if (kl_str_eq(k->flags[i], flag)) return true;
    return false;
}

/* Another language, another spelling, or a word that can only slow down: nothing to be tried. */
static bool is_idle_flag(kl_str flag) {
    kl_str idle, rest = KL_S("-- -std= -cl-std= -O0 -Xptxas=-O0 -Xptxas=-v -cl-opt-disable");
    while (kli_next_word(&idle, &rest))
        if (kl_str_starts(flag, idle)) return true;
    return false;
}

/* Beginning of the line of the first launch: directives may stand before it. */
static bool above_launch(const rewrite_mutate_mutator *m, size_t *at) {
    if (!m->kernel->n_launches) return false;
    *at = kli_line_begin(m->source, m->kernel->launches[0].offset);
    const kl_str line = kl_str_trim(kli_line_at(m->source, *at));
    return kl_str_starts(line, kl_str_of(m->kernel->surface->comment)) &&
           kli_contains(line, "launch");
}

static void add_flag(rewrite_mutate_mutator *m, kl_str flag) {
    mutate_patch p;
    if (mutate_has_flag(m->kernel, flag) || !above_launch(m, &p.begin)) return;
    p.end = p.begin;
    p.text =
        kl_arena_printf(m->arena, "%s flags %.*s\n", m->kernel->surface->comment, KL_STR_ARG(flag));
    rewrite_mutate_vary(m, "other:flags", &p, 1);
}

/* Every word that may stand behind a flag which takes one. */
static void add_with_words(rewrite_mutate_mutator *m, kl_str flag) {
    const kl_str stem = kl_str_ends(flag, KL_S("*")) ? kli_cut(flag, flag.len - 1) : flag;
    for (size_t i = 0; i < KL_COUNT(FLAG_WORDS); i++) {
        kl_str words = kl_str_of(FLAG_WORDS[i].words), word;
        while (kl_str_eq(kl_str_of(FLAG_WORDS[i].flag), flag) && kli_next_word(&word, &words))
            add_flag(m, kl_arena_printf(m->arena, "%.*s%.*s", KL_STR_ARG(stem), KL_STR_ARG(word)));
    }
}

static void add_flags(rewrite_mutate_mutator *m) {
    for (const char *const *f = m->kernel->surface->flags; *f; f++) {
        const kl_str flag = kl_str_of(*f);
        if (is_idle_flag(flag)) continue;
        if (kl_str_ends(flag, KL_S("=")) || kl_str_ends(flag, KL_S("*")))
            add_with_words(m, flag);
        else
            add_flag(m, flag);
    }
}

/* Each word of one `flags` line away; the last one takes the line with it. */
static void drop_each_flag(rewrite_mutate_mutator *m, const kli_directive *d) {
    const char *text = m->source.ptr;
    const kl_str words = kli_between(text + d->words, text + d->end);
    for (kl_str word, rest = words; kli_next_word(&word, &rest);) {
        const size_t begin = (size_t)(word.ptr - text);
        mutate_patch p = {begin, begin + word.len, {0}};
        while (p.begin > d->words && kli_is_blank(text[p.begin - 1])) p.begin--;
        if (kl_str_eq(kl_str_trim(words), word))
            p = (mutate_patch){d->line, d->end + (d->end < m->source.len), {0}};
        rewrite_mutate_vary(m, "other:flags", &p, 1);
    }
}

static void vary_flags(rewrite_mutate_mutator *m) {
    kli_directive d = {0};
    while (m->kernel->n_flags && kli_next_directive(&d, m->source, m->kernel->surface, "flags"))
        drop_each_flag(m, &d);
    add_flags(m);
}

/* ---- loops ------------------------------------------------------------------------------- */

static int statement_end(const rewrite_mutate_mutator *m, int i, int level) {
    const int n = m->tokens.n;
    while (kli_is_kind(&m->tokens, i, KLI_TOKEN_LINE)) i++;
    if (i >= n || level == MAX_NESTED) return n;
    if (mutate_is(m, i, "{")) return kli_match(&m->tokens, i, n) + 1;
    if (mutate_is(m, i, "for while if switch")) {
        const int after = statement_end(m, kli_match(&m->tokens, i + 1, n) + 1, level + 1);
        return mutate_is(m, i, "if") && mutate_is(m, after, "else")
                   ? statement_end(m, after + 1, level + 1)
                   : after;
    }
    const bool again = mutate_is(m, i, "do");
    if (again) i = statement_end(m, i + 1, level + 1);
    while (i < n && !mutate_is(m, i, ";"))
        i = mutate_is(m, i, "( { [") ? kli_match(&m->tokens, i, n) + 1 : i + 1;
    return i < n ? i + 1 : n;
}

static bool any_of(const rewrite_mutate_mutator *m, int from, int to, const char *words) {
    for (int i = from; i < to; i++)
        if (mutate_is(m, i, words)) return true;
    return false;
}

static bool read_loop(const rewrite_mutate_mutator *m, int i, kli_loop *l) {
    if (!mutate_is(m, i + 1, "(")) return false;
    kli_read_header(l, &m->tokens, i, m->tokens.n);
    l->after = l->close < m->tokens.n ? statement_end(m, l->body, 0) : 0;
    if (!l->step || l->after > m->tokens.n || l->body >= m->tokens.n) return false;
    KL_ASSERT(l->open < l->condition && l->condition < l->step && l->step <= l->close);
    l->innermost = !any_of(m, l->body, l->after, "for while do");
    return true;
}

static void find_loops(rewrite_mutate_mutator *m) {
    m->loops = KL_ARRAY(m->arena, kli_loop, MAX_LOOPS);
    int tries = 0;
    for (int i = 0; i < m->tokens.n && m->n_loops < MAX_LOOPS && tries < MAX_TRIES; i++) {
        if (!mutate_is(m, i, "for")) continue;
        tries++;
        if (read_loop(m, i, &m->loops[m->n_loops])) m->n_loops++;
    }
}

/* The pragma right above the loop that says `word`; -1: none. */
static int pragma_above(const rewrite_mutate_mutator *m, const kli_loop *l, const char *word) {
    for (int i = l->at - 1;
         kli_is_kind(&m->tokens, i, KLI_TOKEN_LINE) && kli_contains(mutate_text(m, i), "pragma");
         i--)
        if (kli_contains(mutate_text(m, i), word)) return i;
    return -1;
}

static bool begins_line(const rewrite_mutate_mutator *m, int i) {
    size_t at = begin_of(m, i);
    while (at > 0 && kli_is_blank(m->source.ptr[at - 1])) at--;
    return at == 0 || m->source.ptr[at - 1] == '\n';
}

/* `line` becomes a line of its own above the loop, or takes the place of the pragma `old`. */
static void vary_pragma(rewrite_mutate_mutator *m, const char *action, const kli_loop *l, int old,
                        kl_str line) {
    mutate_patch p = {begin_of(m, l->at), begin_of(m, l->at), {0}};
    if (old >= 0)
        p = (mutate_patch){begin_of(m, old), mutate_end_of(m, old), line};
    else if (begins_line(m, l->at)) {
        p.begin = p.end = kli_line_begin(m->source, p.begin);
        p.text = kl_arena_printf(m->arena, "%.*s\n", KL_STR_ARG(line));
    } else
        p.text = kl_arena_printf(m->arena, "\n%.*s\n", KL_STR_ARG(line));
    rewrite_mutate_vary(m, action, &p, 1);
}

static void vary_unroll(rewrite_mutate_mutator *m) {
    static const int TURNS[] = {1, 2, 4, 8};
    const char *word = m->kernel->surface->families & KL_FAMILY_C ? "GCC unroll" : "unroll";
    for (int i = 0; i < m->n_loops; i++)
        for (size_t n = 0; m->loops[i].innermost && n < KL_COUNT(TURNS); n++)
            vary_pragma(m, "unroll", &m->loops[i], pragma_above(m, &m->loops[i], "unroll"),
                        kl_arena_printf(m->arena, "#pragma %s %d", word, TURNS[n]));
}

static void vary_ivdep(rewrite_mutate_mutator *m) {
    for (int i = 0; i < m->n_loops; i++)
        if (m->loops[i].innermost && pragma_above(m, &m->loops[i], "ivdep") < 0)
            vary_pragma(m, "simd_pragma", &m->loops[i], -1, KL_S("#pragma GCC ivdep"));
}

/* The name before the first `=` of the loop's beginning; -1: none. */
static int variable_of(const rewrite_mutate_mutator *m, const kli_loop *l) {
    for (int i = l->open + 2; i < l->condition - 1; i++)
        if (mutate_is(m, i, "=")) return mutate_is_name(m, i - 1) ? i - 1 : -1;
    return -1;
}

static bool mentions(const rewrite_mutate_mutator *m, int from, int to, kl_str name) {
    return kli_mentions(&m->tokens, from, to, name);
}

/* Nothing but `in` is in `out`. */
static bool is_perfect(const rewrite_mutate_mutator *m, const kli_loop *out, const kli_loop *in) {
    if (in->at == out->body) return true;
    return mutate_is(m, out->body, "{") && in->at == out->body + 1 &&
           mutate_is(m, in->after, "}") && in->after + 1 == out->after;
}

static void vary_order(rewrite_mutate_mutator *m) {
    for (int i = 0; i + 1 < m->n_loops; i++) {
        const kli_loop *out = &m->loops[i], *in = &m->loops[i + 1]; /* in the order of the text */
        const int variable = variable_of(m, out);
        if (!is_perfect(m, out, in) || variable < 0) continue;
        if (mentions(m, in->open, in->close, mutate_text(m, variable))) continue;
        const mutate_patch p[] = {{mutate_end_of(m, out->open), begin_of(m, out->close),
                                   mutate_text_of(m, in->open + 1, in->close)},
                                  {mutate_end_of(m, in->open), begin_of(m, in->close),
                                   mutate_text_of(m, out->open + 1, out->close)}};
        rewrite_mutate_vary(m, "loop_order", p, 2);
    }
}

/* ---- tiles ------------------------------------------------------------------------------- */

/* for (TYPE NAME = FIRST; NAME < END; NAME++), or NAME += STEP. */
typedef struct {
    kl_str type, name, first, end, step, advance;
} count_ctx;

static bool is_flat(const rewrite_mutate_mutator *m, int from, int to) {
    for (int i = from; i < to; i++) {
        if (mutate_is(m, i, "( [ {")) i = kli_match(&m->tokens, i, to);
        if (i < to && mutate_is(m, i, ", && || ? =")) return false;
    }
    return from < to;
}

static bool read_step(const rewrite_mutate_mutator *m, const kli_loop *l, count_ctx *c) {
    const int n = l->close - l->step, at = l->step;
    c->advance = mutate_text_of(m, l->step, l->close);
    c->step = (kl_str){0};
    if (n == 2)
        return (mutate_is(m, at, "++") && mentions(m, at + 1, at + 2, c->name)) ||
               (mutate_is(m, at + 1, "++") && mentions(m, at, at + 1, c->name));
    if (n != 3 || !mutate_is(m, at + 1, "+=") || !mentions(m, at, at + 1, c->name)) return false;
    c->step = mutate_text(m, at + 2);
    return mutate_is_name(m, at + 2) || kli_is_kind(&m->tokens, at + 2, KLI_TOKEN_NUMBER);
}

static bool read_counting(const rewrite_mutate_mutator *m, const kli_loop *l, count_ctx *c) {
    const int variable = variable_of(m, l);
    if (variable <= l->open + 1 || any_of(m, l->open + 1, variable, "*")) return false;
    *c = (count_ctx){.type = mutate_text_of(m, l->open + 1, variable),
                     .name = mutate_text(m, variable),
                     .first = mutate_text_of(m, variable + 2, l->condition - 1),
                     .end = mutate_text_of(m, l->condition + 2, l->step - 1)};
    return mentions(m, l->condition, l->condition + 1, c->name) &&
           mutate_is(m, l->condition + 1, "<") && is_flat(m, variable + 2, l->condition - 1) &&
           is_flat(m, l->condition + 2, l->step - 1) && read_step(m, l, c) &&
           !any_of(m, l->body, l->after, "break goto");
}

/* A name that nothing in the source has; empty: none was found. */
static kl_str free_name(const rewrite_mutate_mutator *m, kl_str stem) {
    for (int i = 1; i < 10; i++) {
        const kl_str name = i == 1 ? kl_arena_printf(m->arena, "%.*s_tile", KL_STR_ARG(stem))
                                   : kl_arena_printf(m->arena, "%.*s_tile%d", KL_STR_ARG(stem), i);
        if (!mentions(m, 0, m->tokens.n, name)) return name;
    }
    return (kl_str){0};
}

static kl_str tiled(const rewrite_mutate_mutator *m, const kli_loop *l, const count_ctx *c,
                    kl_str tile, int turns) {
    const size_t line = kli_line_begin(m->source, begin_of(m, l->at));
    const int indent = begins_line(m, l->at) ? (int)(begin_of(m, l->at) - line) : 0;
    const kl_str width = c->step.len
                             ? kl_arena_printf(m->arena, "%d * %.*s", turns, KL_STR_ARG(c->step))
                             : kl_arena_printf(m->arena, "%d", turns);
    kl_buf b = {0};
    kl_buf_printf(&b, "for (%.*s %.*s = %.*s; %.*s < %.*s; %.*s += %.*s)\n%.*s",
                  KL_STR_ARG(c->type), KL_STR_ARG(tile), KL_STR_ARG(c->first), KL_STR_ARG(tile),
                  KL_STR_ARG(c->end), KL_STR_ARG(tile), KL_STR_ARG(width), indent,
                  m->source.ptr + line);
    kl_buf_printf(
        &b, "for (%.*s %.*s = %.*s; %.*s < ((%.*s) - %.*s < %.*s ? (%.*s) : %.*s + %.*s); %.*s)",
        KL_STR_ARG(c->type), KL_STR_ARG(c->name), KL_STR_ARG(tile), KL_STR_ARG(c->name),
        KL_STR_ARG(c->end), KL_STR_ARG(tile), KL_STR_ARG(width), KL_STR_ARG(c->end),
        KL_STR_ARG(tile), KL_STR_ARG(width), KL_STR_ARG(c->advance));
    return kli_buf_keep(&b, m->arena);
}

static void vary_tiles(rewrite_mutate_mutator *m) {
    static const int TURNS[] = {16, 64, 256};
    for (int i = 0; i < m->n_loops; i++) {
        const kli_loop *l = &m->loops[i];
        count_ctx c;
        if (!read_counting(m, l, &c)) continue;
        const kl_str tile = free_name(m, c.name);
        for (size_t n = 0; tile.len && n < KL_COUNT(TURNS); n++) {
            const mutate_patch p = {begin_of(m, l->at), mutate_end_of(m, l->close),
                                    tiled(m, l, &c, tile, TURNS[n])};
            rewrite_mutate_vary(m, "cache_block", &p, 1);
        }
    }
}

/* ---- parameters of functions ------------------------------------------------------------- */

/* `float *x` as a whole between begin and end: where a qualifier of the pointer goes; -1: nowhere.
 */
static int pointer_name(const rewrite_mutate_mutator *m, int begin, int end) {
    const bool fits = end - begin >= 3 && mutate_is(m, end - 2, "*") &&
                      mutate_is_name(m, end - 1) && !mutate_is(m, end - 1, "restrict") &&
                      !kl_str_starts(mutate_text(m, end - 1), KL_S("__restrict"));
    return fits ? end - 1 : -1;
}

static void vary_restrict(rewrite_mutate_mutator *m) {
    const kl_str word =
        m->kernel->surface->families & KL_FAMILY_CUDA ? KL_S("__restrict__ ") : KL_S("restrict ");
    for (int i = 1, tries = 0; i + 1 < m->tokens.n && tries < MAX_TRIES; i++) {
        const bool typed =
            mutate_is_name(m, i - 1) ||
            mutate_is(m, i - 1, "*"); /* what it returns; a call has none before it */
        if (!mutate_is_name(m, i) || !typed || !mutate_is(m, i + 1, "(") ||
            mutate_is(m, i, "for while if switch"))
            continue;
        tries++;
        const int close = kli_match(&m->tokens, i + 1, m->tokens.n);
        mutate_patch p[MAX_PATCHES];
        int n = 0;
        if (!mutate_is(m, close + 1, "{")) continue;
        for (int k = i + 2, begin = k; k <= close && n < MAX_PATCHES; k++) {
            if (!mutate_is(m, k, ",") && k != close) continue;
            const int name = pointer_name(m, begin, k);
            if (name >= 0) p[n++] = (mutate_patch){begin_of(m, name), begin_of(m, name), word};
            begin = k + 1;
        }
        if (n) rewrite_mutate_vary(m, "restrict_alias", p, n);
    }
}

/* ---- all of them ------------------------------------------------------------------------- */

enum { MUTATE_C_LIKE = KL_FAMILY_C | KL_FAMILY_OPENCL | KL_FAMILY_CUDA };

static const struct {
    void (*vary)(rewrite_mutate_mutator *);
    unsigned families;
} MUTATE_ROWS[] = {{vary_params, KL_FAMILY_ANY}, {vary_flags, KL_FAMILY_ANY},
                   {vary_unroll, MUTATE_C_LIKE}, {vary_ivdep, KL_FAMILY_C},
                   {vary_order, MUTATE_C_LIKE},  {vary_restrict, MUTATE_C_LIKE},
                   {vary_tiles, MUTATE_C_LIKE}};

int kl_rewrite_mutate(kl_undoing *out, int max, kl_arena *a, const kl_kernel *k) {
    rewrite_mutate_mutator m = {
        .out = out, .max = max, .arena = a, .kernel = k, .source = k->source};
    kli_tokens_of(&m.tokens, a, k->source);
    find_loops(&m);
    for (size_t row = 0; row < KL_COUNT(MUTATE_ROWS); row++)
        if (MUTATE_ROWS[row].families & k->surface->families) MUTATE_ROWS[row].vary(&m);
    KL_ASSERT(m.n <= max);
    return m.n + kl_rewrite_undo(out + m.n, max - m.n, a, k);
}
