/* tokens.c - a source as tokens, without comments, white space and what `#if 0` hides.
 *
 * Enough of C, C++, OpenCL C and CUDA to count words and to follow loops; it is no parser and never
 * fails.  A preprocessor line with its continuations is one token, because what stands in a macro
 * is code only where the macro is used.  Conditions other than `#if 0` are not followed: all
 * branches count.  SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"

#include <string.h>

typedef struct {
    kl_str src;
    size_t pos;
    bool line_start; /* nothing but blanks on this line so far */
    kli_tokens *out;
    kl_arena *arena;
} lexer;

static bool tokens_is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           tokens_is_digit(c) || (unsigned char)c >= 0x80;
}

static char tokens_peek(const lexer *l, size_t ahead) {
    return l->pos + ahead < l->src.len ? l->src.ptr[l->pos + ahead] : '\0';
}

static bool here(const lexer *l, const char *text) {
    const size_t n = strlen(text);
    return l->src.len - l->pos >= n && memcmp(l->src.ptr + l->pos, text, n) == 0;
}

void kli_tokens_add(kli_tokens *t, kl_arena *a, const kli_token *token) {
    *KL_PUSH(a, t->at, t->n) = *token;
}

static void emit(lexer *l, kli_token_kind kind, size_t begin) {
    KL_ASSERT(begin < l->pos && l->pos <= l->src.len);
    const kli_token token = {kind, {l->src.ptr + begin, l->pos - begin}, begin};
    kli_tokens_add(l->out, l->arena, &token);
    l->line_start = false;
}

static void skip_to(lexer *l, const char *end) {
    while (l->pos < l->src.len && !here(l, end)) l->pos++;
    l->pos += l->pos < l->src.len ? strlen(end) : 0;
}

static bool skip_comment(lexer *l) {
    if (here(l, "/*")) {
        l->pos += 2;
        skip_to(l, "*/");
        return true;
    }
    if (!here(l, "//")) return false;
    while (l->pos < l->src.len && tokens_peek(l, 0) != '\n')
        l->pos += tokens_peek(l, 0) == '\\' && tokens_peek(l, 1) == '\n' ? 2 : 1;
    if (l->pos > l->src.len) l->pos = l->src.len;
    return true;
}

/* R"x( ... )x" */
static void raw_string(lexer *l) {
    char end[20] = ")";
    size_t n = 0;
    while (n < 16 && tokens_peek(l, 1 + n) && tokens_peek(l, 1 + n) != '(') n++;
    KL_ASSERT(n + 2 < sizeof end);
    memcpy(end + 1, l->src.ptr + l->pos + 1, n);
    end[n + 1] = '"';
    skip_to(l, end);
}

static void tokens_quoted(lexer *l) {
    const char quote = tokens_peek(l, 0);
    for (l->pos++; l->pos < l->src.len && tokens_peek(l, 0) != quote && tokens_peek(l, 0) != '\n';
         l->pos++)
        if (tokens_peek(l, 0) == '\\' && l->pos + 1 < l->src.len) l->pos++;
    if (tokens_peek(l, 0) == quote) l->pos++;
    if (l->pos > l->src.len) l->pos = l->src.len;
}

static void word(lexer *l) {
    const size_t begin = l->pos;
    const bool number = tokens_is_digit(tokens_peek(l, 0)) ||
                        (tokens_peek(l, 0) == '.' && tokens_is_digit(tokens_peek(l, 1)));
    while (l->pos < l->src.len) {
        const char c = tokens_peek(l, 0), before = l->pos > begin ? l->src.ptr[l->pos - 1] : ' ';
        const bool sign = (c == '+' || c == '-') &&
                          (before == 'e' || before == 'E' || before == 'p' || before == 'P');
        const bool hex = l->pos - begin > 1 && (l->src.ptr[begin + 1] | 32) == 'x';
        if (is_word(c) || (number && (c == '.' || (c == '\'' && is_word(tokens_peek(l, 1))))))
            l->pos++;
        else if (number && sign && (!hex || (before | 32) == 'p'))
            l->pos++;
        else
            break;
    }
    const bool raw =
        !number && tokens_peek(l, 0) == '"' && l->src.ptr[l->pos - 1] == 'R' && l->pos - begin <= 3;
    if (raw) raw_string(l);
    emit(l, raw ? KLI_TOKEN_STRING : number ? KLI_TOKEN_NUMBER : KLI_TOKEN_NAME, begin);
}

static void punct(lexer *l) {
    static const char *const LONG[] = {
        "<<=", ">>=", "...", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
        "^=",  "==",  "!=",  "<=", ">=", "&&", "||", "->", "::", "<<", ">>", "**"};
    const size_t begin = l->pos;
    for (size_t i = 0; i < KL_COUNT(LONG) && l->pos == begin; i++)
        if (here(l, LONG[i])) l->pos += strlen(LONG[i]);
    if (l->pos == begin) l->pos++;
    emit(l, KLI_TOKEN_PUNCT, begin);
}

/* To the end of the preprocessor line, its continuations and the comments in it included. */
static void preprocessor(lexer *l) {
    const size_t begin = l->pos;
    while (l->pos < l->src.len && tokens_peek(l, 0) != '\n') {
        const bool quote = tokens_peek(l, 0) == '"';
        if (tokens_peek(l, 0) == '\\' && tokens_peek(l, 1) == '\r' && tokens_peek(l, 2) == '\n')
            l->pos += 3;
        else if (tokens_peek(l, 0) == '\\' && tokens_peek(l, 1))
            l->pos += 2;
        else if (quote)
            tokens_quoted(l);
        else if (!skip_comment(l))
            l->pos++;
    }
    emit(l, KLI_TOKEN_LINE, begin);
}

static kl_str directive_of(kl_str line) {
    size_t i = 1, begin;
    while (i < line.len && kli_is_blank(line.ptr[i])) i++;
    for (begin = i; i < line.len && is_word(line.ptr[i]);) i++;
    return (kl_str){line.ptr + begin, i - begin};
}

static bool is_if_zero(kl_str line) {
    const kl_str name = directive_of(line);
    if (!kl_str_eq(name, KL_S("if"))) return false;
    const kl_str rest = kl_str_trim(
        (kl_str){name.ptr + name.len, line.len - (size_t)(name.ptr + name.len - line.ptr)});
    return rest.len && rest.ptr[0] == '0' &&
           (rest.len == 1 || kli_is_blank(rest.ptr[1]) || rest.ptr[1] == '/');
}

/* From behind `#if 0` to the #else, #elif or #endif that ends it. */
static void skip_hidden(lexer *l) {
    for (int depth = 1; l->pos < l->src.len && depth;) {
        const char *newline = memchr(l->src.ptr + l->pos, '\n', l->src.len - l->pos);
        const size_t end = newline ? (size_t)(newline - l->src.ptr) + 1 : l->src.len;
        const kl_str line = kl_str_trim((kl_str){l->src.ptr + l->pos, end - l->pos});
        const kl_str name = line.len && line.ptr[0] == '#' ? directive_of(line) : (kl_str){0};
        if (kl_str_starts(name, KL_S("if")))
            depth++;
        else if (kl_str_eq(name, KL_S("endif")))
            depth--;
        else if (depth == 1 && kl_str_starts(name, KL_S("el")))
            depth--;
        l->pos = end;
    }
    l->line_start = true;
}

static void tokens_step(lexer *l) {
    const char c = tokens_peek(l, 0);
    if (c == '\n') {
        l->pos++;
        l->line_start = true;
    } else if (kli_is_blank(c))
        l->pos++;
    else if (c == '\\' && tokens_peek(l, 1) == '\n')
        l->pos += 2;
    else if (!skip_comment(l)) {
        if (c == '#' && l->line_start) {
            preprocessor(l);
            if (is_if_zero(l->out->at[l->out->n - 1].text)) skip_hidden(l);
        } else if (is_word(c) || (c == '.' && tokens_is_digit(tokens_peek(l, 1))))
            word(l);
        else if (c == '"' || c == '\'') {
            const size_t begin = l->pos;
            tokens_quoted(l);
            emit(l, KLI_TOKEN_STRING, begin);
        } else
            punct(l);
    }
}

void kli_tokens_of(kli_tokens *out, kl_arena *a, kl_str source) {
    lexer l = {.src = source, .out = out, .arena = a, .line_start = true};
    *out = (kli_tokens){0};
    while (l.pos < l.src.len) tokens_step(&l);
}

bool kli_token_is(const kli_token *t, const char *words) { return kli_one_of(t->text, words); }

bool kli_is(const kli_tokens *t, int i, const char *words) {
    return i >= 0 && i < t->n && kli_token_is(&t->at[i], words);
}

bool kli_is_kind(const kli_tokens *t, int i, kli_token_kind kind) {
    return i >= 0 && i < t->n && t->at[i].kind == kind;
}

size_t kli_token_end(const kli_tokens *t, int i) {
    KL_ASSERT(i >= 0 && i < t->n);
    return t->at[i].offset + t->at[i].text.len;
}

bool kli_mentions(const kli_tokens *t, int begin, int end, kl_str text) {
    for (int i = begin; i < end; i++)
        if (kl_str_eq(t->at[i].text, text)) return true;
    return false;
}

/* ---- lines ------------------------------------------------------------------------------- */

bool kli_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

size_t kli_line_begin(kl_str source, size_t at) {
    while (at > 0 && source.ptr[at - 1] != '\n') at--;
    return at;
}

kl_str kli_line_at(kl_str source, size_t at) {
    return kli_before(kli_from(source, kli_line_begin(source, at)), '\n');
}

kl_str kli_locus(kl_arena *a, kl_str source, size_t at) {
    int line = 1;
    for (size_t i = 0; i < at; i++) line += source.ptr[i] == '\n';
    const kl_str text = kli_cut(kl_str_trim(kli_line_at(source, at)), 80);
    return kl_arena_printf(a, "line %d: %.*s", line, KL_STR_ARG(text));
}

bool kli_next_directive(kli_directive *d, kl_str source, const kl_surface *surface,
                        const char *word) {
    const kl_str prefix = kl_str_of(surface->comment), wanted = kl_str_of(word);
    for (size_t at = d->end ? d->end + 1 : 0; at < source.len; at = d->end + 1) {
        const kl_str line = kli_line_at(source, at);
        kl_str text = kl_str_trim(line);
        d->end = at + line.len;
        if (kl_str_ends(text, KL_S("\\")) || !kl_str_starts(text, prefix)) continue;
        text = kl_str_trim(kli_from(text, prefix.len));
        if (!kl_str_starts(text, wanted) ||
            (text.len > wanted.len && !kli_is_blank(text.ptr[wanted.len])))
            continue;
        d->line = at;
        d->words = (size_t)(text.ptr - source.ptr) + wanted.len;
        return true;
    }
    return false;
}
