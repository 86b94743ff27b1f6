/* diff.c - what one kernel changed against another, as a unified diff for people and for models.
 *
 * Two parts: the directives, then the rest of the source; most edits touch one of them.  Params
 * whose value was chosen from outside (`--param`) appear among the directives as "chosen" lines,
 * since the file does not show them. Line numbers are those of the files.  The result is for
 * reading; `patch` is not meant to apply it.
 *
 * Source of the method: E. Myers, "An O(ND) difference algorithm and its variations", the greedy
 * form with its trace kept.  Time and memory grow with the square of the number of changed lines,
 * so beyond MAX_EDITS of them the part between the common beginning and end counts as replaced as a
 * whole.  SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_EDITS = 1200, /* changed lines that are matched finely; the trace then takes 6 MB */
    CONTEXT = 3
};

typedef struct {
    kl_str text;
    uint64_t hash;
    int number;
} diff_line; /* number in its file */
typedef struct {
    const diff_line *at;
    int n;
} diff_text;

/* One row of the result: ' ' both, '-' only old, '+' only new.  The indices say where both texts
 * stand at this row. */
typedef struct {
    char kind;
    int old_index, new_index;
} diff_row;

typedef struct {
    diff_text old_text, new_text;
    diff_row *rows;
    int n_rows;
} diff_script;

static bool same_line(const diff_line *a, const diff_line *b) {
    return a->hash == b->hash && kl_str_eq(a->text, b->text);
}

/* ---- shortest edit script ---------------------------------------------------------------- */

typedef struct {
    diff_text a, b;
    int *trace[MAX_EDITS + 1]; /* trace[d][k + d]: furthest x on diagonal k = x - y after d edits */
} edit_search;

/* The diagonal from which diagonal `k` is best reached by edit `d`: k + 1 inserts a line, k - 1
 * deletes one. */
static int came_from(const edit_search *s, int d, int k) {
    const int *before = s->trace[d - 1] + (d - 1);
    return k == -d || (k != d && before[k - 1] < before[k + 1]) ? k + 1 : k - 1;
}

static int start_on(const edit_search *s, int d, int k) {
    if (d == 0) return 0;
    int from = came_from(s, d, k);
    return s->trace[d - 1][from + d - 1] + (from < k);
}

/* Number of edits, or -1 when there are more than MAX_EDITS. */
static int find_edits(edit_search *s) {
    for (int d = 0; d <= MAX_EDITS; d++) {
        s->trace[d] = calloc((size_t)(2 * d + 1), sizeof(int));
        if (!s->trace[d]) kl_oom((size_t)(2 * d + 1) * sizeof(int));
        for (int k = -d; k <= d; k += 2) {
            int x = start_on(s, d, k);
            while (x < s->a.n && x - k < s->b.n && same_line(&s->a.at[x], &s->b.at[x - k])) x++;
            s->trace[d][k + d] = x;
            if (x >= s->a.n && x - k >= s->b.n) return d;
        }
    }
    return -1;
}

/* Rows in reverse order, from the end of both texts to their beginning; `base` is added to every
 * index. */
static int walk_back(const edit_search *s, int edits, int base, diff_row *rows) {
    int x = s->a.n, y = s->b.n, n = 0;
    for (int d = edits; d >= 0; d--) {
        int k = x - y, start = start_on(s, d, k);
        for (; x > start; x--, y--) rows[n++] = (diff_row){' ', base + x - 1, base + y - 1};
        if (d == 0) break;
        if (came_from(s, d, k) > k)
            rows[n++] = (diff_row){'+', base + x, base + --y};
        else
            rows[n++] = (diff_row){'-', base + --x, base + y};
    }
    return n;
}

static int replace_all(int old_n, int new_n, int base, diff_row *rows) {
    int n = 0;
    for (int j = new_n; j-- > 0;) rows[n++] = (diff_row){'+', base + old_n, base + j};
    for (int i = old_n; i-- > 0;) rows[n++] = (diff_row){'-', base + i, base};
    return n;
}

static int diff_middle(diff_text a, diff_text b, int base, diff_row *rows) {
    edit_search *s = calloc(1, sizeof *s);
    if (!s) kl_oom(sizeof *s);
    s->a = a;
    s->b = b;
    int edits = find_edits(s);
    int n = edits < 0 ? replace_all(a.n, b.n, base, rows) : walk_back(s, edits, base, rows);
    for (int d = 0; d <= MAX_EDITS; d++) free(s->trace[d]);
    free(s);
    return n;
}

/* The common beginning and end first: they are most of two versions of one kernel. */
static void diff_texts(diff_script *out, kl_arena *arena, diff_text a, diff_text b) {
    int head = 0, tail = 0;
    while (head < a.n && head < b.n && same_line(&a.at[head], &b.at[head])) head++;
    while (tail < a.n - head && tail < b.n - head &&
           same_line(&a.at[a.n - 1 - tail], &b.at[b.n - 1 - tail]))
        tail++;
    diff_text middle_a = {a.at + head, a.n - head - tail},
              middle_b = {b.at + head, b.n - head - tail};
    KL_ASSERT(head + tail <= a.n && head + tail <= b.n);
    *out = (diff_script){
        .old_text = a, .new_text = b, .rows = KL_ARRAY(arena, diff_row, a.n + b.n + 1)};
    diff_row *rows = out->rows;
    for (int i = 0; i < head; i++) rows[out->n_rows++] = (diff_row){' ', i, i};
    int n = diff_middle(middle_a, middle_b, head, rows + head);
    for (int i = head, j = head + n - 1; i < j; i++, j--) {
        diff_row swap = rows[i];
        rows[i] = rows[j];
        rows[j] = swap;
    }
    out->n_rows += n;
    KL_ASSERT(out->n_rows + tail <= a.n + b.n);
    for (int i = tail; i > 0; i--) rows[out->n_rows++] = (diff_row){' ', a.n - i, b.n - i};
}

/* ---- output ------------------------------------------------------------------------------ */

/* First line number of a hunk: of the line it begins with, or of the line before when it holds none
 * of this text. */
static int hunk_start(diff_text t, int index, int count) {
    if (count > 0) return t.at[index].number;
    return index > 0 ? t.at[index - 1].number : 0;
}

static void print_hunk(kl_buf *out, const diff_script *s, int from, int to, const char *heading) {
    int old_count = 0, new_count = 0;
    for (int i = from; i < to; i++) {
        old_count += s->rows[i].kind != '+';
        new_count += s->rows[i].kind != '-';
    }
    kl_buf_printf(out, "@@ -%d,%d +%d,%d @@%s\n",
                  hunk_start(s->old_text, s->rows[from].old_index, old_count), old_count,
                  hunk_start(s->new_text, s->rows[from].new_index, new_count), new_count, heading);
    for (int i = from; i < to; i++) {
        const diff_row *row = &s->rows[i];
        const diff_line *line =
            row->kind == '+' ? &s->new_text.at[row->new_index] : &s->old_text.at[row->old_index];
        kl_buf_add(out, (kl_str){&row->kind, 1});
        kl_buf_add(out, line->text);
        kl_buf_add(out, KL_S("\n"));
    }
}

/* End of the hunk whose first change is row `i`: changes with at most 2 * CONTEXT equal rows
 * between them. */
static int hunk_end(const diff_script *s, int i) {
    int last = i;
    for (int j = i; j < s->n_rows && j - last <= 2 * CONTEXT + 1; j++)
        if (s->rows[j].kind != ' ') last = j;
    return last + 1 + CONTEXT < s->n_rows ? last + 1 + CONTEXT : s->n_rows;
}

static void print_script(kl_buf *out, const diff_script *s, const char *heading) {
    for (int i = 0; i < s->n_rows; i++) {
        if (s->rows[i].kind == ' ') continue;
        int end = hunk_end(s, i);
        print_hunk(out, s, i > CONTEXT ? i - CONTEXT : 0, end, heading);
        i = end - 1;
    }
}

/* ---- the two parts of a kernel ----------------------------------------------------------- */

static diff_line diff_line_of(kl_str text, int number) {
    return (diff_line){text, kli_hash_bulk(text.ptr, text.len), number};
}

/* A value that came from outside stands in no line of the file; values[0] is the declared one. */
static void add_chosen(kl_arena *a, const kl_kernel *k, diff_line *lines, int *n) {
    for (int i = 0; i < k->n_params; i++) {
        const kl_param *p = &k->params[i];
        if (p->value == p->values[0]) continue;
        kl_str text =
            kl_arena_printf(a, "chosen %.*s = %lld", KL_STR_ARG(p->name), (long long)p->value);
        lines[(*n)++] = diff_line_of(text, kli_line_number(k->source, p->offset));
    }
}

/* Lines inside a directive when `directives`, else all others. */
static diff_text part_of(kl_arena *a, const kl_kernel *k, const kli_scan *scan, bool directives) {
    kl_str source = k->source;
    size_t pos = 0, n_lines = 1;
    int number = 0, directive = 0, n = 0;
    for (size_t i = 0; i < source.len; i++) n_lines += source.ptr[i] == '\n';
    diff_line *lines = KL_ARRAY(a, diff_line, n_lines + KL_MAX_PARAMS);
    while (pos < source.len) {
        const char *newline = memchr(source.ptr + pos, '\n', source.len - pos);
        size_t end = newline ? (size_t)(newline - source.ptr) : source.len;
        number++;
        while (directive < scan->n_lines && scan->lines[directive].next <= pos) directive++;
        bool inside = directive < scan->n_lines && pos >= scan->lines[directive].begin;
        if (inside == directives)
            lines[n++] = diff_line_of((kl_str){source.ptr + pos, end - pos}, number);
        pos = end + 1;
    }
    if (directives) add_chosen(a, k, lines, &n);
    return (diff_text){lines, n};
}

kl_str kl_kernel_diff(kl_arena *a, const kl_kernel *from, const kl_kernel *to) {
    kli_scan *old_scan = KL_NEW(a, kli_scan), *new_scan = KL_NEW(a, kli_scan);
    diff_script directives, rest;
    kl_buf body = {0};
    /* What was parsed was scanned without an error; a text that was refused may be compared all the
     * same, or cannot be. */
    if (kli_scan_source(old_scan, a, from, kl_ignored()) ||
        kli_scan_source(new_scan, a, to, kl_ignored()))
        return (kl_str){0};
    diff_texts(&directives, a, part_of(a, from, old_scan, true), part_of(a, to, new_scan, true));
    diff_texts(&rest, a, part_of(a, from, old_scan, false), part_of(a, to, new_scan, false));
    print_script(&body, &directives, " directives");
    print_script(&body, &rest, "");
    kl_str text = {0};
    if (body.len)
        text = kl_arena_printf(a, "--- %.*s\n+++ %.*s\n%.*s", KL_STR_ARG(from->path),
                               KL_STR_ARG(to->path), KL_STR_ARG(kl_buf_str(&body)));
    kl_buf_fini(&body);
    return text;
}
