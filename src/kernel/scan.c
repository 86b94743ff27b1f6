/* scan.c - which lines of a source are directives.
 *
 * A directive is a line whose first non-blank characters are the surface's prefix and which starts
 * outside a block comment and outside a string.  So the scanner follows just enough of each
 * language to know where those end:
 *
 *     CODE -- "/ *" --> BLOCK        CODE -- "//" or "#" --> COMMENT (ends with its line)
 *     CODE -- quote --> STRING (ends with its line unless that ends in a backslash)
 *     CODE -- R"x( --> RAW (C++)     CODE -- three quotes --> TRIPLE (Python)
 *
 * Preprocessor conditions are not followed: a directive inside #if 0 counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <string.h>

typedef enum { IN_CODE, IN_COMMENT, IN_BLOCK, IN_STRING, IN_RAW, IN_TRIPLE } scan_state;

typedef struct {
    const kl_kernel *kernel;
    kli_scan *out;
    kl_error *error;
    char *clean;
    kl_str prefix;
    bool python;
    size_t pos, len;
    scan_state state;
    char quote;
    kl_str raw_end; /* the x of R"x( ... )x" */
} scanner;

static size_t line_end(const scanner *s, size_t from) {
    const char *newline = from < s->len ? memchr(s->clean + from, '\n', s->len - from) : NULL;
    return newline ? (size_t)(newline - s->clean) : s->len;
}

static size_t skip_blank(const scanner *s, size_t from, size_t end) {
    while (from < end && kli_is_space(s->clean[from])) from++;
    return from;
}

static size_t trim_end(const scanner *s, size_t from, size_t end) {
    while (end > from && kli_is_space(s->clean[end - 1])) end--;
    return end;
}

static bool scan_at(const scanner *s, size_t i, size_t end, const char *text) {
    size_t n = strlen(text);
    return end - i >= n && memcmp(s->clean + i, text, n) == 0;
}

/* R"x( : C++ puts at most 16 characters before the parenthesis. */
static size_t enter_raw(scanner *s, size_t i, size_t end) {
    size_t open = i + 1;
    while (open < end && open - i <= 17 && s->clean[open] != '(') open++;
    if (open == end || s->clean[open] != '(') return i + 1;
    s->raw_end = (kl_str){s->clean + i + 1, open - i - 1};
    s->state = IN_RAW;
    return open + 1;
}

/* A name or a number as one step, so that a digit separator (1'000) or a string prefix is not taken
 * for a quote. */
static size_t step_word(scanner *s, size_t i, size_t end) {
    bool number = kli_is_digit(s->clean[i]);
    size_t start = i;
    while (i < end &&
           (kli_is_name_part(s->clean[i]) || (number && s->clean[i] == '\'' && !s->python &&
                                              i + 1 < end && kli_is_name_part(s->clean[i + 1]))))
        i++;
    bool raw =
        !s->python && i < end && s->clean[i] == '"' && s->clean[i - 1] == 'R' && i - start <= 3;
    return raw ? enter_raw(s, i, end) : i;
}

static size_t step_code(scanner *s, size_t i, size_t end) {
    char c = s->clean[i];
    if (kli_is_name_part(c)) return step_word(s, i, end);
    if (s->python ? c == '#' : scan_at(s, i, end, "//")) {
        s->state = IN_COMMENT;
        return end;
    }
    if (!s->python && scan_at(s, i, end, "/*")) {
        s->state = IN_BLOCK;
        return i + 2;
    }
    if (c != '"' && c != '\'') return i + 1;
    s->quote = c;
    s->state = IN_STRING;
    if (s->python && end - i >= 3 && s->clean[i + 1] == c && s->clean[i + 2] == c) {
        s->state = IN_TRIPLE;
        return i + 3;
    }
    return i + 1;
}

static size_t step_string(scanner *s, size_t i, size_t end) {
    if (s->clean[i] == '\\') return i + 2 < end ? i + 2 : end;
    if (s->clean[i] != s->quote) return i + 1;
    if (s->state == IN_STRING) {
        s->state = IN_CODE;
        return i + 1;
    }
    bool closes = end - i >= 3 && s->clean[i + 1] == s->quote && s->clean[i + 2] == s->quote;
    if (closes) s->state = IN_CODE;
    return closes ? i + 3 : i + 1;
}

static size_t step_raw(scanner *s, size_t i, size_t end) {
    size_t n = s->raw_end.len;
    bool closes = s->clean[i] == ')' && end - i >= n + 2 &&
                  memcmp(s->clean + i + 1, s->raw_end.ptr, n) == 0 && s->clean[i + 1 + n] == '"';
    if (closes) s->state = IN_CODE;
    return closes ? i + n + 2 : i + 1;
}

static size_t scan_step(scanner *s, size_t i, size_t end) {
    switch (s->state) {
    case IN_CODE:
        return step_code(s, i, end);
    case IN_COMMENT:
        return end;
    case IN_BLOCK:
        if (!scan_at(s, i, end, "*/")) return i + 1;
        s->state = IN_CODE;
        return i + 2;
    case IN_STRING:
    case IN_TRIPLE:
        return step_string(s, i, end);
    case IN_RAW:
        return step_raw(s, i, end);
    }
    return end;
}

/* Follow one line that is no directive; comments and strings go on behind a backslash at its end.
 */
static void skip_line(scanner *s) {
    size_t end = line_end(s, s->pos), text_end = trim_end(s, s->pos, end);
    bool continued = text_end > s->pos && s->clean[text_end - 1] == '\\' &&
                     !(s->python && s->state == IN_COMMENT);
    for (size_t i = s->pos, next; i < end; i = next) {
        next = scan_step(s, i, end);
        KL_ASSERT(next > i && next <= end);
    }
    if (s->state == IN_COMMENT && (s->python || !continued)) s->state = IN_CODE;
    if (s->state == IN_STRING && !continued) s->state = IN_CODE;
    s->pos = end < s->len ? end + 1 : end;
}

/* "#!/usr/bin/env python3" on the first line belongs to the shell. */
static bool is_shebang(const scanner *s, size_t text, size_t end) {
    size_t after = skip_blank(s, text, end);
    return s->python && s->pos == 0 && after < end && s->clean[after] == '/';
}

/* Does the line at s->pos begin a directive?  `text` is then the offset behind its prefix. */
static bool starts_directive(const scanner *s, size_t *text) {
    if (s->state != IN_CODE && s->state != IN_COMMENT) return false;
    size_t end = line_end(s, s->pos), i = skip_blank(s, s->pos, end);
    if (!scan_at(s, i, end, s->prefix.ptr)) return false;
    *text = i + s->prefix.len;
    return !is_shebang(s, *text, end);
}

/* Join the next physical line: blank what lies between the two texts.  Python does not continue a
 * comment, so there the prefix must be repeated; in C the backslash has already made the next line
 * part of the comment. */
static kl_err join_next(scanner *s, size_t backslash, size_t end) {
    size_t next = end + 1, next_end = line_end(s, next), text = skip_blank(s, next, next_end);
    if (scan_at(s, text, next_end, s->prefix.ptr))
        text += s->prefix.len;
    else if (s->python) {
        kl_fail_at(s->error, KL_EPARSE, s->kernel->path, s->kernel->source, backslash,
                   "this directive goes on, but the next line does not begin with '#!'");
        return kl_hint(s->error, "begin the next line with `#!`, or drop the backslash");
    }
    KL_ASSERT(backslash < text && text <= s->len);
    memset(s->clean + backslash, ' ', text - backslash);
    return KL_OK;
}

static kl_err take_directive(scanner *s, size_t text) {
    kli_line line = {.begin = s->pos, .text = text};
    for (;;) {
        size_t end = line_end(s, s->pos), text_end = trim_end(s, text, end);
        line.end = text_end;
        line.next = s->pos = end < s->len ? end + 1 : end;
        bool continued = text_end > text && s->clean[text_end - 1] == '\\';
        if (!continued) break;
        if (end + 1 >= s->len) { /* a backslash at the end of the file continues nothing */
            s->clean[text_end - 1] = ' ';
            line.end = trim_end(s, text, text_end - 1);
            break;
        }
        kl_err err = join_next(s, text_end - 1, end);
        if (err) return err;
    }
    s->state = IN_CODE;
    line.text = skip_blank(s, line.text, line.end);
    KL_ASSERT(line.begin < line.text && line.text <= line.end && line.end <= line.next);
    if (line.text == line.end) return KL_OK; /* a bare prefix separates groups of directives */
    if (s->out->n_lines == KLI_MAX_DIRECTIVES)
        return kl_fail_at(s->error, KL_ELIMIT, s->kernel->path, s->kernel->source, line.text,
                          "more than %d directives in one file", KLI_MAX_DIRECTIVES);
    s->out->lines[s->out->n_lines++] = line;
    return KL_OK;
}

static kl_err refuse_nul(const kl_kernel *k, kl_error *e) {
    const char *nul = k->source.len ? memchr(k->source.ptr, '\0', k->source.len) : NULL;
    if (!nul) return KL_OK;
    kl_fail_at(e, KL_EPARSE, k->path, k->source, (size_t)(nul - k->source.ptr),
               "a NUL byte: this is not a text file");
    return kl_hint(e, "a kernel is source text; give the source, not what it compiles to");
}

kl_err kli_scan_source(kli_scan *out, kl_arena *a, const kl_kernel *k, kl_error *e) {
    kl_err err = refuse_nul(k, e);
    if (err) return err;
    scanner s = {.kernel = k, .out = out, .error = e, .len = k->source.len};
    s.clean = kl_arena_alloc(a, k->source.len + 1, 1);
    if (s.len) memcpy(s.clean, k->source.ptr, s.len);
    s.prefix = kl_str_of(k->surface->comment);
    s.python = (k->surface->families & KL_FAMILY_PYTHON) != 0;
    out->clean = s.clean;
    out->n_lines = 0;
    if (scan_at(&s, 0, s.len, "\xef\xbb\xbf")) memset(s.clean, ' ', 3); /* byte order mark */
    while (s.pos < s.len) {
        size_t text;
        if (!starts_directive(&s, &text))
            skip_line(&s);
        else if ((err = take_directive(&s, text)) != KL_OK)
            return err;
    }
    return KL_OK;
}

kl_str kli_line_word(const kli_scan *scan, int line) {
    KL_ASSERT(line >= 0 && line < scan->n_lines);
    const kli_line *l = &scan->lines[line];
    size_t end = l->text;
    while (end < l->end && kli_is_name_part(scan->clean[end])) end++;
    return (kl_str){scan->clean + l->text, end - l->text};
}
