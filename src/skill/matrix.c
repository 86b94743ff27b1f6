/* matrix.c - rows of evidence as counts: cards and actions against tasks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <stdlib.h>
#include <string.h>

static kl_str what_of(const kl_probe *p) { return p->card.len ? p->card : p->action; }

static int order_of_text(kl_str a, kl_str b) { return strcmp(a.ptr, b.ptr); }

static int by_cell(const void *x, const void *y) {
    const kl_probe *a = *(const kl_probe *const *)x, *b = *(const kl_probe *const *)y;
    int order = order_of_text(a->surface, b->surface);
    if (!order) order = order_of_text(what_of(a), what_of(b));
    if (!order) order = order_of_text(a->task, b->task);
    return order ? order : a->gain < b->gain ? -1 : a->gain > b->gain;
}

static bool same_cell(const kl_probe *a, const kl_probe *b) {
    return kl_str_eq(a->surface, b->surface) && kl_str_eq(what_of(a), what_of(b)) &&
           kl_str_eq(a->task, b->task);
}

/* Rows of one cell, slowest first: the gains of those that got faster are in order. */
static kl_matrix_cell cell_of(kl_arena *a, const kl_probe *const *rows, size_t n) {
    kl_matrix_cell c = {.what = what_of(rows[0]),
                        .surface = rows[0]->surface,
                        .task = rows[0]->task,
                        .card = rows[0]->card.len > 0};
    double *gains = KL_ARRAY(a, double, n + 1);
    int faster = 0;
    for (size_t i = 0; i < n; i++) {
        c.n[rows[i]->outcome]++;
        c.tried += rows[i]->outcome != KL_PROBE_UNDECIDED;
        if (rows[i]->outcome == KL_PROBE_FASTER) gains[faster++] = rows[i]->gain;
    }
    if (faster) c.middle = (gains[(faster - 1) / 2] + gains[faster / 2]) / 2;
    KL_ASSERT(faster == c.n[KL_PROBE_FASTER] && faster <= c.tried);
    return c;
}

size_t kl_probes_matrix(kl_matrix_cell **out, kl_arena *a, const kl_probes *p) {
    const kl_probe **rows = KL_ARRAY(a, const kl_probe *, p->n + 1);
    size_t n = 0;
    *out = KL_ARRAY(a, kl_matrix_cell, p->n + 1);
    for (size_t i = 0; i < p->n; i++) rows[i] = &p->at[i];
    if (p->n) qsort(rows, p->n, sizeof *rows, by_cell);
    for (size_t i = 0, end; i < p->n; i = end) {
        for (end = i + 1; end < p->n && same_cell(rows[i], rows[end]);) end++;
        (*out)[n++] = cell_of(a, rows + i, end - i);
    }
    KL_ASSERT(n <= p->n);
    return n;
}
