/* render.c - a lineage as a table for a terminal: naive first, as the curriculum reads.
 *
 *   K0                              0.42x   naive.c reached
 *    + cache_block       3.10x  [3.08, 3.12]   recovered 1.00
 *   K1                              1.31x
 *
 * Words of a model are shown as one line without control characters (law 7).
 * SPDX-License-Identifier: Apache-2.0 */
#include "lineage_impl.h"

#define LOCUS_BYTES 60
#define RENDER_WHY_BYTES 160

typedef struct {
    kl_buf *out;
    kl_arena *a;
    bool colour;
} render_page;

static const char *render_paint(const render_page *p, const char *code) {
    return p->colour ? code : "";
}

static void state_line(const render_page *p, const kl_state *s) {
    kl_buf_printf(p->out, "%s%-4.*s%s", render_paint(p, "\x1b[1m"), KL_STR_ARG(s->name),
                  render_paint(p, "\x1b[0m"));
    if (s->ratio > 0)
        kl_buf_printf(p->out, " %9.3fx of the baseline  %10.4g ms  %.12s%s\n", s->ratio,
                      (double)s->median_ns * 1e-6, s->verdict_key.ptr,
                      s->unsettled ? "  did not settle" : "");
    else
        kl_buf_printf(p->out, " %34s  %.12s\n", "correct, time not known", s->verdict_key.ptr);
}

static void forward_words(const render_page *p, const kl_lineage *l, const kl_edge *d) {
    const bool same = kl_str_eq(d->forward_hash, l->states[d->to].hash);
    if (!d->forward.len && kl_str_eq(d->witness, KL_S("none")))
        kl_buf_add(p->out, KL_S("  not re-derived yet"));
    else if (!d->forward.len)
        kl_buf_add(p->out, KL_S("  simplification only: no forward edit"));
    else if (d->recovered_verdict_key.len)
        kl_buf_printf(p->out, "  re-derived: %.3f [%.3f, %.3f] of it%s", d->recovered,
                      d->recovered_low, d->recovered_high,
                      d->mechanical ? " (mechanical reverse)" : "");
    else
        kl_buf_printf(p->out, "  re-derived%s%s", same ? ", the same kernel" : ", correct",
                      d->mechanical ? " (mechanical reverse)" : "");
}

static void call_words(const render_page *p, const kl_edge *d) {
    if (d->call == KL_DECISION_UNDECIDED)
        kl_buf_printf(p->out, "  not measurable: A/A noise %.1f %%", 100 * d->noise);
    else if (!d->pays)
        kl_buf_add(p->out, KL_S("  does not pay"));
    if (d->decided.len) kl_buf_add(p->out, KL_S("  (decided by the recording)"));
}

static void render_edge_line(const render_page *p, const kl_lineage *l, const kl_edge *d) {
    const char *locus = kli_shown_line(p->a, d->locus, LOCUS_BYTES).ptr;
    kl_buf_printf(p->out, "  %s+ %-22s%s", render_paint(p, d->pays ? "\x1b[32m" : "\x1b[33m"),
                  kli_shown_line(p->a, d->action, 64).ptr, render_paint(p, "\x1b[0m"));
    if (d->gain > 0)
        kl_buf_printf(p->out, " %8.3fx [%.3f, %.3f]", d->gain, d->gain_low, d->gain_high);
    else
        kl_buf_printf(p->out, " %26s", "no interval");
    forward_words(p, l, d);
    call_words(p, d);
    kl_buf_printf(p->out, "\n      %s", locus);
    if (d->n_rejections)
        kl_buf_printf(p->out, "%s%d rejected attempts", *locus ? "; " : "", d->n_rejections);
    kl_buf_add(p->out, KL_S("\n"));
}

static void rejection_lines(const render_page *p, const kl_lineage *l) {
    if (l->n_rejections) kl_buf_add(p->out, KL_S("\nrejected after the last accepted step\n"));
    for (int i = 0; i < l->n_rejections; i++) {
        const kl_rejection *r = &l->rejections[i];
        kl_buf_printf(p->out, "  %-11.*s %-22s %s\n", KL_STR_ARG(r->stage),
                      kli_shown_line(p->a, r->action, 64).ptr,
                      kli_shown_line(p->a, r->symptom, RENDER_WHY_BYTES).ptr);
    }
}

void kl_lineage_render(const kl_lineage *l, kl_buf *out, bool colour) {
    const render_page p = {.out = out, .a = kl_arena_new(), .colour = colour};
    kl_buf_printf(out, "%s%s%s  %.*s on %.*s, shape %.*s, by %s\n\n", render_paint(&p, "\x1b[1m"),
                  kli_shown_line(p.a, l->name, 128).ptr, render_paint(&p, "\x1b[0m"),
                  KL_STR_ARG(l->task), KL_STR_ARG(l->platform), KL_STR_ARG(l->workload),
                  kli_shown_line(p.a, l->model, 128).ptr);
    for (int i = 0; i < l->n_states; i++) {
        state_line(&p, &l->states[i]);
        if (i < l->n_edges) render_edge_line(&p, l, &l->edges[i]);
    }
    rejection_lines(&p, l);
    kl_buf_printf(out, "\n%s: %s\n", kl_termination_name(l->termination),
                  kli_shown_line(p.a, l->termination_why, 400).ptr);
    kl_buf_printf(out, "%d steps, %s$%.4f, lineage %.12s\n", l->n_edges,
                  l->estimated && l->spent_microusd ? "about " : "",
                  (double)l->spent_microusd * 1e-6, l->id.ptr);
    kl_arena_free(p.a);
}
