/* between.c - blocks that turn one text into another: a change as something that can be carried and
 * applied.
 *
 * Lines are matched by a longest common subsequence between the common beginning and end; where
 * that would take more than MAX_CELLS, the part between them is replaced as a whole.  Every block
 * gets lines of context until its SEARCH is unique in the text as the blocks before it leave it, so
 * that applying them in order gives the other text exactly. SPDX-License-Identifier: Apache-2.0 */
#include "edits_impl.h"

#include <string.h>

enum {
    MAX_CELLS = 4 << 20,      /* of the table: 8 MB */
    BETWEEN_MAX_CONTEXT = 64, /* lines on each side; beyond that the whole text is one block */
    MAX_BLOCKS = KL_MAX_EDITS
};

_Static_assert((int64_t)UINT16_MAX *UINT16_MAX > MAX_CELLS, "a common length fits its cell");

/* Lines from[a, a_end) become to[b, b_end). */
typedef struct {
    int a, a_end, b, b_end;
} hunk;
typedef struct {
    hunk *at;
    int n;
} hunks;

/* ---- difference -------------------------------------------------------------------------- */

static bool same(const kli_lines *x, int i, const kli_lines *y, int j) {
    return kl_str_eq(x->at[i], y->at[j]);
}

static void add_hunk(hunks *h, int a, int a_end, int b, int b_end) {
    KL_ASSERT(a <= a_end && b <= b_end);
    if (a == a_end && b == b_end) return;
    h->at[h->n++] = (hunk){a, a_end, b, b_end};
}

/* length[i * width + j]: of the longest common subsequence of from[head + i ..) and to[head + j ..)
 */
static void follow(hunks *out, const kli_lines *from, const kli_lines *to, int head, int rows,
                   int columns, const uint16_t *length) {
    const size_t width = (size_t)columns + 1;
    int i = 0, j = 0, a = 0, b = 0;
    while (i < rows && j < columns) {
        if (same(from, head + i, to, head + j)) {
            add_hunk(out, head + a, head + i, head + b, head + j);
            a = ++i;
            b = ++j;
        } else {
            const uint16_t *here = &length[(size_t)i * width + (size_t)j];
            const bool down = here[width] >= here[1];
            i += down;
            j += !down;
        }
    }
    add_hunk(out, head + a, head + rows, head + b, head + columns);
}

static void between_compare(hunks *out, kl_arena *a, const kli_lines *from, const kli_lines *to) {
    int head = 0, tail = 0;
    while (head < from->n && head < to->n && same(from, head, to, head)) head++;
    while (tail < from->n - head && tail < to->n - head &&
           same(from, from->n - 1 - tail, to, to->n - 1 - tail))
        tail++;
    const int rows = from->n - head - tail, columns = to->n - head - tail;
    out->at = KL_ARRAY(a, hunk, (rows < columns ? rows : columns) + 2);
    if (((int64_t)rows + 1) * ((int64_t)columns + 1) > MAX_CELLS) {
        add_hunk(out, head, head + rows, head, head + columns);
        return;
    }
    const size_t width = (size_t)columns + 1;
    uint16_t *length = KL_ARRAY(a, uint16_t, ((size_t)rows + 1) * width);
    for (int i = rows - 1; i >= 0; i--)
        for (int j = columns - 1; j >= 0; j--) {
            uint16_t *here = &length[(size_t)i * width + (size_t)j];
            const uint16_t *below = here + width, *right = here + 1;
            *here = same(from, head + i, to, head + j) ? (uint16_t)(below[1] + 1)
                    : *below > *right                  ? *below
                                                       : *right;
        }
    follow(out, from, to, head, rows, columns, length);
}

/* Join hunks with at most `gap` equal lines between them. */
static void join(hunks *h, int gap) {
    int n = 0;
    for (int i = 0; i < h->n; i++) {
        if (n && h->at[i].a - h->at[n - 1].a_end <= gap) {
            h->at[n - 1].a_end = h->at[i].a_end;
            h->at[n - 1].b_end = h->at[i].b_end;
        } else
            h->at[n++] = h->at[i];
    }
    h->n = n;
}

/* ---- blocks ------------------------------------------------------------------------------ */

typedef struct {
    kl_arena *arena;
    kli_lines now; /* the text as the blocks so far leave it */
    const kli_lines *to;
    kl_buf out;
    int mark;
    bool ends_differ; /* one text ends in a newline and the other does not */
    bool from_ended;
} writer;

static bool is_unique(const kli_lines *text, int begin, int end) {
    const int n = end - begin;
    for (int at = 0; at + n <= text->n; at++) {
        int i = 0;
        while (at != begin && i < n && same(text, at + i, text, begin + i)) i++;
        if (at != begin && i == n) return false;
    }
    return true;
}

static void between_line_of(writer *w, char c, const char *word) {
    for (int i = 0; i < w->mark; i++) kl_buf_add(&w->out, (kl_str){&c, 1});
    kl_buf_printf(&w->out, "%s\n", word);
}

static void between_lines_of(writer *w, const kl_str *at, int n) {
    for (int i = 0; i < n; i++) {
        kl_buf_add(&w->out, at[i]);
        kl_buf_add(&w->out, KL_S("\n"));
    }
}

/* Replace now[begin, end) by `lines`; `last`: the end of the text belongs to it. */
static void write_block(writer *w, int begin, int end, const kli_lines *lines, bool last) {
    KL_ASSERT(0 <= begin && begin <= end && end <= w->now.n);
    const bool marks = last && w->ends_differ;
    between_line_of(w, '<', " SEARCH");
    between_lines_of(w, w->now.at + begin, end - begin);
    if (marks && !w->from_ended) kl_buf_printf(&w->out, "%s\n", KLI_NO_NEWLINE);
    between_line_of(w, '=', "");
    between_lines_of(w, lines->at, lines->n);
    if (marks && !w->to->ended) kl_buf_printf(&w->out, "%s\n", KLI_NO_NEWLINE);
    between_line_of(w, '>', " REPLACE");
}

static void between_replace(writer *w, int begin, int end, const kli_lines *lines) {
    kli_lines now = {.at = KL_ARRAY(w->arena, kl_str, w->now.n + lines->n + 1),
                     .ended = w->now.ended};
    KL_ASSERT(0 <= begin && begin <= end && end <= w->now.n);
    kli_lines_add(&now, w->now.at, begin);
    kli_lines_add(&now, lines->at, lines->n);
    kli_lines_add(&now, w->now.at + end, w->now.n - end);
    w->now = now;
}

/* False: no context makes it unique. */
static bool write_hunk(writer *w, const hunk *h, int moved, bool last) {
    const int begin = h->a + moved, end = h->a_end + moved, n_new = h->b_end - h->b;
    const bool whole_end =
        last && w->ends_differ; /* then the block must reach the end of the text */
    for (int context = 1; context <= BETWEEN_MAX_CONTEXT; context *= 2) {
        const int before = begin < context ? begin : context;
        const int behind = whole_end || w->now.n - end < context ? w->now.n - end : context;
        if (!is_unique(&w->now, begin - before, end + behind)) continue;
        kli_lines lines = {.at = KL_ARRAY(w->arena, kl_str, before + n_new + behind + 1)};
        kli_lines_add(&lines, w->now.at + begin - before, before);
        kli_lines_add(&lines, w->to->at + h->b, n_new);
        kli_lines_add(&lines, w->now.at + end, behind);
        write_block(w, begin - before, end + behind, &lines, last);
        between_replace(w, begin - before, end + behind, &lines);
        return true;
    }
    return false;
}

/* A line of markers in the texts must not end a block: take longer ones. */
static int free_mark(const kli_lines *from, const kli_lines *to) {
    int mark = KLI_MARK;
    for (const kli_lines *text = from; text; text = text == from ? to : NULL)
        for (int i = 0; i < text->n; i++)
            for (const char *c = "<=>"; *c; c++) {
                const int n = kli_mark_length(text->at[i], *c, NULL);
                if (n >= mark && n < KLI_MAX_MARK) mark = n + 1;
            }
    return mark;
}

static bool write_hunks(writer *w, const hunks *h) {
    int moved = 0;
    for (int i = 0; i < h->n; i++) {
        if (!write_hunk(w, &h->at[i], moved, i + 1 == h->n)) return false;
        moved += (h->at[i].b_end - h->at[i].b) - (h->at[i].a_end - h->at[i].a);
    }
    return true;
}

kl_str kl_edits_between(kl_arena *a, kl_str from, kl_str to) {
    kli_lines old_lines, new_lines;
    hunks h = {0};
    if (kl_str_eq(from, to)) return (kl_str){0};
    kli_lines_of(&old_lines, a, from);
    kli_lines_of(&new_lines, a, to);
    writer w = {.arena = a,
                .now = old_lines,
                .to = &new_lines,
                .mark = free_mark(&old_lines, &new_lines),
                .ends_differ = old_lines.ended != new_lines.ended,
                .from_ended = old_lines.ended};
    between_compare(&h, a, &old_lines, &new_lines);
    for (int gap = 2; gap == 2 || h.n > MAX_BLOCKS; gap *= 2) join(&h, gap);
    if (w.ends_differ &&
        (!h.n || h.at[h.n - 1].a_end != old_lines.n)) /* only the end changes there */
        h.at[h.n++] = (hunk){old_lines.n, old_lines.n, new_lines.n, new_lines.n};
    if (h.n > MAX_BLOCKS || !write_hunks(&w, &h)) {
        w.out.len = 0;
        w.now = old_lines;
        write_block(&w, 0, old_lines.n, &new_lines, true);
    }
    return kli_buf_keep(&w.out, a);
}
