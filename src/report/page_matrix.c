/* page_matrix.c - the matrix of cards and tasks as a heat map with counts: how many applications
 * got faster, of how many that were tried.
 *
 * Colour is the share that got faster, and paler the fewer were tried: a single success is no
 * promise.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include <stdlib.h>
#include <string.h>

#define SURE 5.0 /* applications from which on a share is shown in full colour */

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

/* From vermilion, none faster, to green, all of them. */
static void heat(kl_buf *out, const kl_matrix_cell *c) {
    const int faster = c->n[KL_PROBE_FASTER];
    const double share = c->tried ? (double)faster / c->tried : 0,
                 sure = c->tried < SURE ? c->tried / SURE : 1;
    KL_ASSERT(share >= 0 && share <= 1 && sure <= 1);
    kl_buf_printf(out, "<td style=\"background:rgba(%.0f,%.0f,%.0f,%.2f)\" title=\"",
                  213 * (1 - share), 94 + 64 * share, 115 * share, 0.15 + 0.6 * sure);
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
    kl_buf_printf(out, "<tr><th>");
    kli_text(out, first->what);
    kl_buf_printf(out, " ");
    kli_text(out, first->surface);
    kl_buf_printf(out, "</th>");
    for (int t = 0; t < m->n_tasks; t++) {
        const bool here =
            i < m->n && same_row(first, &m->cells[i]) && kl_str_eq(m->cells[i].task, m->tasks[t]);
        if (here)
            heat(out, &m->cells[i++]);
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
    kli_page_section(out, "matrix", "Cards and states");
    kl_buf_printf(out,
                  "<p class=note>Applications of a card, or of an action without one, that got "
                  "faster, of those tried, with their median gain; the pale ones rest on few. "
                  "<code>klineage probe show</code> has every outcome.</p>\n<table><tr><th></th>");
    for (int t = 0; t < m.n_tasks; t++) {
        kl_buf_printf(out, "<th>");
        kli_text(out, m.tasks[t]);
        kl_buf_printf(out, "</th>");
    }
    kl_buf_printf(out, "</tr>\n");
    for (size_t i = 0; i < m.n;) i = matrix_row(out, &m, i);
    kl_buf_printf(out, "</table>\n");
}
