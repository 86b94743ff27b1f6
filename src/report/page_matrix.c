/* page_matrix.c - the matrix of cards and tasks as a heat map with counts: how many applications
 * got faster, of how many that were tried.
 *
 * A bar below the words is as long as the share that got faster, and as thick as many were tried: a
 * single success is no promise.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include <stdlib.h>
#include <string.h>

#define THICKEST 5 /* pixels of the bar: one for each application that was tried, up to this */

typedef struct {
    const kl_matrix_cell *cells;
    size_t n;
    kl_str *tasks;
    int n_tasks;
} page_grid;

static int by_task(const void *x, const void *y) {
    return strcmp(((const kl_str *)x)->ptr, ((const kl_str *)y)->ptr);
}

static void find_tasks(page_grid *m, kl_arena *a) {
    m->tasks = KL_ARRAY(a, kl_str, m->n + 1);
    for (size_t i = 0; i < m->n; i++) {
        bool known = false;
        for (int k = 0; k < m->n_tasks && !known; k++)
            known = kl_str_eq(m->tasks[k], m->cells[i].task);
        if (!known) m->tasks[m->n_tasks++] = m->cells[i].task;
    }
    if (m->n_tasks) qsort(m->tasks, (size_t)m->n_tasks, sizeof *m->tasks, by_task);
}

static void share(kl_buf *out, const kl_matrix_cell *c) {
    const int faster = c->n[KL_PROBE_FASTER];
    KL_ASSERT(faster >= 0 && faster <= c->tried);
    kl_buf_printf(out, "<td class=share style=\"--part:%d%%;--tried:%dpx\" title=\"",
                  c->tried ? 100 * faster / c->tried : 0,
                  c->tried < THICKEST ? c->tried : THICKEST);
    for (int o = 0; o <= KL_PROBE_UNDECIDED; o++)
        if (c->n[o])
            kl_buf_printf(out, "%d %s ", c->n[o], kl_probe_outcome_name((kl_probe_outcome)o));
    kl_buf_printf(out, "\">%d of %d", faster, c->tried);
    if (c->middle > 0) kl_buf_printf(out, "<br>%.3g &times;", c->middle);
    kl_buf_printf(out, "</td>");
}

static bool same_row(const kl_matrix_cell *a, const kl_matrix_cell *b) {
    return kl_str_eq(a->what, b->what) && kl_str_eq(a->surface, b->surface);
}

/* Cells of one card stand together and in the order of their tasks; returns where the next begins.
 */
static size_t matrix_row(kl_buf *out, const page_grid *m, size_t i) {
    const kl_matrix_cell *first = &m->cells[i];
    kl_buf_printf(out, "<tr><th scope=row>");
    kli_text(out, first->what);
    kl_buf_printf(out, " ");
    kli_text(out, first->surface);
    kl_buf_printf(out, "</th>");
    for (int t = 0; t < m->n_tasks; t++) {
        const bool here =
            i < m->n && same_row(first, &m->cells[i]) && kl_str_eq(m->cells[i].task, m->tasks[t]);
        if (here)
            share(out, &m->cells[i++]);
        else
            kl_buf_printf(out, "<td></td>");
    }
    kl_buf_printf(out, "</tr>\n");
    return i;
}

void kli_matrix(kl_buf *out, kl_arena *a, const kli_facts *f) {
    kl_matrix_cell *cells;
    page_grid m = {.n = kl_probes_matrix(&cells, a, &f->probes)};
    if (!m.n) return;
    m.cells = cells;
    find_tasks(&m, a);
    const char **heads = KL_ARRAY(a, const char *, m.n_tasks + 1);
    heads[0] = "card or action";
    for (int t = 0; t < m.n_tasks; t++) heads[t + 1] = m.tasks[t].ptr;
    kli_page_section(out, "matrix", "Cards and states");
    kl_buf_printf(out,
                  "<p class=note>Applications of a card, or of an action without one, that got "
                  "faster, of those tried, with their median gain; a thin bar rests on few. "
                  "<code>klineage probe show</code> has every outcome.</p>\n");
    kli_table_begin(out, KL_S("Cards and states"), heads, m.n_tasks + 1);
    for (size_t i = 0; i < m.n;) i = matrix_row(out, &m, i);
    kli_table_end(out);
}
