/* edits.c - SEARCH/REPLACE blocks applied to a text, all or nothing.
 *
 * A block replaces whole lines.  They are looked for three times, each time only when the time
 * before found nothing:
 *
 *     as they are -> without white space at line ends -> shifted by one uniform indent (the
 * replacement is shifted along)
 *
 * More than one place is an error, however it was found: no place is guessed.  Blocks apply in
 * order, each to what the one before left. Whether the text ends in a newline stays as it was,
 * unless a block's last line is NO_NEWLINE, as in a unified diff. Deliberately not here: fuzzy
 * matching.  SPDX-License-Identifier: Apache-2.0 */
#include "edits_impl.h"

#include "base/hash.h"

#include <string.h>

enum {
    MAX_NEAREST_LINES = 20000, /* of the source that are compared when nothing matches */
    MAX_NEAREST_SEARCH = 40,   /* lines of the block that are compared then */
    EDITS_MAX_SHOWN = 2400,    /* bytes of the nearest region: it must fit kl_error.detail */
    MAX_PLACES = 8             /* line numbers that a message lists */
};

_Static_assert(EDITS_MAX_SHOWN < sizeof(((kl_error *)0)->detail), "the region fits its error");

/* ---- lines ------------------------------------------------------------------------------- */

void kli_lines_of(kli_lines *out, kl_arena *a, kl_str text) {
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == '\n';
    *out = (kli_lines){.at = KL_ARRAY(a, kl_str, n),
                       .ended = !text.len || kl_str_ends(text, KL_S("\n"))};
    while (kli_next_line(&out->at[out->n], &text)) out->n++;
    KL_ASSERT((size_t)out->n <= n);
}

void kli_lines_add(kli_lines *out, const kl_str *lines, int n) {
    KL_ASSERT(n >= 0);
    for (int i = 0; i < n; i++) out->at[out->n++] = lines[i];
}

kl_str kli_lines_text(kl_arena *a, const kli_lines *lines) {
    kl_buf b = {0};
    for (int i = 0; i < lines->n; i++) {
        kl_buf_add(&b, lines->at[i]);
        if (i + 1 < lines->n || lines->ended) kl_buf_add(&b, KL_S("\n"));
    }
    return kli_buf_keep(&b, a);
}

static kl_str edits_without_end(kl_str s) {
    while (s.len && kli_is_blank(s.ptr[s.len - 1])) s.len--;
    return s;
}

static size_t indent_of(kl_str s) {
    size_t n = 0;
    while (n < s.len && kli_is_blank(s.ptr[n])) n++;
    return n;
}

/* ---- a block's two sides ----------------------------------------------------------------- */

typedef struct {
    kli_lines search, replace;
    bool at_end; /* SEARCH ends in NO_NEWLINE: it matches only at the end of a text without a final
                    newline */
    bool leaves_no_end; /* REPLACE does */
} edits_block;

static bool take_mark(kli_lines *lines) {
    if (!lines->n ||
        !kl_str_eq(edits_without_end(lines->at[lines->n - 1]), kl_str_of(KLI_NO_NEWLINE)))
        return false;
    lines->n--;
    return true;
}

static void edits_read_block(edits_block *out, kl_arena *a, const kl_edit *edit) {
    kli_lines_of(&out->search, a, edit->search);
    kli_lines_of(&out->replace, a, edit->replace);
    out->at_end = take_mark(&out->search);
    out->leaves_no_end = take_mark(&out->replace);
}

/* ---- matching ---------------------------------------------------------------------------- */

typedef enum { AS_IT_IS, WITHOUT_ENDS, INDENTED, EDITS_LEVELS } edits_level;

/* One uniform indent: every source line is `indent` before the search line, or the other way round
 * (`removed`). */
typedef struct {
    kl_str indent;
    bool removed;
} shift;

static bool is_shifted(kl_str source, kl_str search, shift *s, bool first) {
    source = edits_without_end(source);
    search = edits_without_end(search);
    const size_t there = indent_of(source), here = indent_of(search);
    if (!kl_str_eq(kli_from(source, there), kli_from(search, here))) return false;
    if (!source.len) return true; /* blank lines have no indent */
    const bool removed = here > there;
    const kl_str ours = kli_cut(search, here), theirs = kli_cut(source, there);
    const kl_str longer = removed ? ours : theirs, shorter = removed ? theirs : ours;
    if (!kl_str_ends(longer, shorter)) return false;
    const shift mine = {{longer.ptr, longer.len - shorter.len}, removed};
    if (first) *s = mine;
    return mine.removed == s->removed ? kl_str_eq(mine.indent, s->indent)
                                      : !mine.indent.len && !s->indent.len;
}

static bool matches_at(const kli_lines *text, int at, const edits_block *b, edits_level how,
                       shift *s) {
    bool first = true;
    for (int i = 0; i < b->search.n; i++) {
        const kl_str source = text->at[at + i], search = b->search.at[i];
        if (how == AS_IT_IS && !kl_str_eq(source, search)) return false;
        if (how == WITHOUT_ENDS && !kl_str_eq(edits_without_end(source), edits_without_end(search)))
            return false;
        if (how == INDENTED && !is_shifted(source, search, s, first)) return false;
        first = first && !edits_without_end(source).len;
    }
    return true;
}

typedef struct {
    int places[MAX_PLACES], n;
    edits_level how;
    shift shift;
} found;

static void edits_find(found *out, const kli_lines *text, const edits_block *b) {
    for (edits_level how = AS_IT_IS; how < EDITS_LEVELS && !out->n; how++)
        for (int at = b->at_end ? text->n - b->search.n : 0; at >= 0 && at + b->search.n <= text->n;
             at++) {
            shift s = {0};
            if (!matches_at(text, at, b, how, &s)) continue;
            if (!out->n) *out = (found){.how = how, .shift = s};
            if (out->n < MAX_PLACES) out->places[out->n] = at + 1;
            out->n++;
        }
}

/* ---- what to say when it does not match -------------------------------------------------- */

/* 0..100: the common beginning and end of two lines. */
static int likeness(kl_str a, kl_str b) {
    size_t head = 0, tail = 0;
    const size_t least = a.len < b.len ? a.len : b.len, most = a.len < b.len ? b.len : a.len;
    if (!most) return 0;
    while (head < least && a.ptr[head] == b.ptr[head]) head++;
    while (tail < least - head && a.ptr[a.len - 1 - tail] == b.ptr[b.len - 1 - tail]) tail++;
    return (int)(100 * (head + tail) / most);
}

static int nearest(const kli_lines *text, const kli_lines *search) {
    const int lines = text->n < MAX_NEAREST_LINES ? text->n : MAX_NEAREST_LINES;
    const int wanted = search->n < MAX_NEAREST_SEARCH ? search->n : MAX_NEAREST_SEARCH;
    int best = 0, best_score = -1;
    for (int at = 0; at < lines; at++) {
        int score = 0;
        for (int i = 0; i < wanted && at + i < text->n; i++)
            score += likeness(kl_str_trim(text->at[at + i]), kl_str_trim(search->at[i]));
        if (score > best_score) {
            best_score = score;
            best = at;
        }
    }
    return best;
}

static kl_err not_found(const kli_lines *text, const edits_block *b, int number, kl_error *e) {
    const int at = nearest(text, &b->search);
    int end = at + b->search.n + 2 < text->n ? at + b->search.n + 2 : text->n;
    kl_buf region = {0};
    for (int i = at > 2 ? at - 2 : 0; i < end && region.len < EDITS_MAX_SHOWN; i++)
        kl_buf_printf(&region, "%.*s\n", text->at[i].len > 400 ? 400 : (int)text->at[i].len,
                      text->at[i].ptr);
    bool there = b->replace.n > 0;
    if (there) {
        const edits_block turned = {.search = b->replace};
        found f = {0};
        edits_find(&f, text, &turned);
        there = f.n > 0;
    }
    const kl_err err =
        kl_fail(e, KL_EINVAL, "edit",
                "block %d: these SEARCH lines are nowhere in the text%s; the nearest region begins "
                "at line %d",
                number, there ? " (its REPLACE lines are already there)" : "", at + 1);
    snprintf(e->detail, sizeof e->detail, "%.*s", EDITS_MAX_SHOWN, region.len ? region.ptr : "");
    kl_buf_fini(&region);
    return err;
}

static kl_err several(const found *f, int number, kl_error *e) {
    KL_ASSERT(f->n > 1);
    kl_buf lines = {0};
    for (int i = 0; i < f->n && i < MAX_PLACES; i++)
        kl_buf_printf(&lines, "%s%d", i ? ", " : "", f->places[i]);
    const kl_err err = kl_fail(e, KL_EINVAL, "edit",
                               "block %d: these SEARCH lines are in %d places (at lines %s%s); add "
                               "lines around them until only one fits",
                               number, f->n, lines.ptr, f->n > MAX_PLACES ? " ..." : "");
    kl_buf_fini(&lines);
    return err;
}

/* ---- replacing --------------------------------------------------------------------------- */

/* The line as the source writes lines: its indent, its line ends. */
static kl_str adapted(kl_arena *a, kl_str line, const found *f, bool carriage_return) {
    if (f->how == AS_IT_IS) return line;
    const kl_str bare = kl_str_ends(line, KL_S("\r")) ? kli_cut(line, line.len - 1) : line;
    kl_str text = bare;
    if (f->how == INDENTED && edits_without_end(bare).len && f->shift.indent.len) {
        size_t common = 0;
        const size_t most = indent_of(bare);
        while (common < most && common < f->shift.indent.len &&
               bare.ptr[common] == f->shift.indent.ptr[common])
            common++;
        if (f->shift.removed)
            text = kli_from(bare, common);
        else
            text = kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(f->shift.indent), KL_STR_ARG(bare));
    }
    return carriage_return ? kl_arena_printf(a, "%.*s\r", KL_STR_ARG(text)) : text;
}

static void edits_replace(kli_lines *text, kl_arena *a, const edits_block *b, const found *f) {
    const int at = f->places[0] - 1, tail = text->n - at - b->search.n;
    KL_ASSERT(f->n == 1 && at >= 0 && tail >= 0);
    kli_lines out = {.at = KL_ARRAY(a, kl_str, at + b->replace.n + tail + 1), .ended = text->ended};
    const bool carriage_return = b->search.n && kl_str_ends(text->at[at], KL_S("\r"));
    kli_lines_add(&out, text->at, at);
    for (int i = 0; i < b->replace.n; i++)
        out.at[out.n++] = adapted(a, b->replace.at[i], f, carriage_return);
    kli_lines_add(&out, text->at + at + b->search.n, tail);
    if (b->at_end) out.ended = true;
    if (b->leaves_no_end && !tail) out.ended = false;
    *text = out;
}

static bool same_lines(const kli_lines *a, const kli_lines *b) {
    for (int i = 0; a->n == b->n && i < a->n; i++)
        if (!kl_str_eq(a->at[i], b->at[i])) return false;
    return a->n == b->n;
}

static kl_err apply_one(kli_lines *text, kl_arena *a, const kl_edit *edit, int number,
                        kl_error *e) {
    edits_block b;
    found f = {0};
    edits_read_block(&b, a, edit);
    if (b.at_end && text->ended && text->n) return not_found(text, &b, number, e);
    if (same_lines(&b.search, &b.replace) && b.at_end == b.leaves_no_end)
        return KL_OK; /* it asks for nothing; the whole is judged later */
    if (!b.search.n && text->n)
        return kl_fail(e, KL_EINVAL, "edit",
                       "block %d: SEARCH is empty; repeat the line before or behind which the new "
                       "lines belong",
                       number);
    edits_find(&f, text, &b);
    if (!f.n) return not_found(text, &b, number, e);
    if (f.n > 1) return several(&f, number, e);
    edits_replace(text, a, &b, &f);
    return KL_OK;
}

kl_err kl_edits_apply(kl_str *out, kl_arena *a, kl_str source, const kl_edit *edits, int n,
                      kl_error *e) {
    kli_lines text;
    kl_err err = KL_OK;
    kli_lines_of(&text, a, source);
    if (n > KL_MAX_EDITS) return kl_fail(e, KL_ELIMIT, "edit", "more than %d blocks", KL_MAX_EDITS);
    for (int i = 0; i < n && !err; i++) err = apply_one(&text, a, &edits[i], i + 1, e);
    if (err) return err;
    const kl_str result = kli_lines_text(a, &text);
    if (kl_str_eq(result, source))
        return kl_fail(e, KL_EINVAL, "edit",
                       "the blocks would change nothing: every REPLACE is what is there already");
    if (result.len > KL_MAX_SOURCE_BYTES)
        return kl_fail(e, KL_ELIMIT, "edit", "the result is longer than %u bytes",
                       KL_MAX_SOURCE_BYTES);
    *out = result;
    return KL_OK;
}
