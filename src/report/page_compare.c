/* page_compare.c - the part of the page that stands several trials side by side, and the kernels
 * that came out. SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include <string.h>

#define MAX_STEP_FIGURES 32 /* 20 KB and 50 ms each */

/* ---- comparison -------------------------------------------------------------------------- */

static void page_compare_heading(kl_buf *out, const char *tag, kl_str text) {
    kl_buf_printf(out, "<%s>", tag);
    kli_text(out, text);
    kl_buf_printf(out, "</%s>\n", tag);
}

/* A heading that nothing came after is taken back. */
static void take_back(kl_buf *out, size_t before, size_t after) {
    KL_ASSERT(before <= after && after <= out->len);
    if (out->len != after) return;
    out->len = before;
    out->ptr[before] = '\0';
}

static void curves(kl_buf *out, kl_arena *a, const kli_results *r) {
    for (int i = 0; i < r->n_targets; i++) {
        const size_t before = out->len;
        page_compare_heading(out, "h3", r->targets[i].label);
        const size_t after = out->len;
        kli_figure_bands(out, a, r, i);
        take_back(out, before, after);
    }
}

static void one_step_figure(kl_buf *out, kl_arena *a, const kli_results *r, const kli_group *g) {
    const size_t before = out->len;
    page_compare_heading(out, "h4",
                         kl_arena_printf(a, "%.*s, %.*s", KL_STR_ARG(r->targets[g->target].label),
                                         KL_STR_ARG(r->contenders[g->contender].label)));
    const size_t after = out->len;
    kli_figure_steps(out, a, r, g);
    take_back(out, before, after);
}

static void step_figures(kl_buf *out, kl_arena *a, const kli_results *r) {
    const int n = r->n_groups < MAX_STEP_FIGURES ? r->n_groups : MAX_STEP_FIGURES;
    const size_t before = out->len;
    kl_buf_printf(out, "<details><summary>every step, one trial per policy%s</summary>\n",
                  n < r->n_groups ? "; only the first" : "");
    const size_t after = out->len;
    for (int i = 0; i < n; i++) one_step_figure(out, a, r, &r->groups[i]);
    take_back(out, before, after);
    if (out->len > after) kl_buf_printf(out, "</details>\n");
}

void kli_comparison(kl_buf *out, kl_arena *a, const kli_results *r) {
    kli_report_table tables[KLI_TABLES + 1];
    if (!r->n_tracks) return;
    json_t *document = kli_results_json(r);
    int n = kli_report_tables(tables, a, document);
    kli_page_section(out, "comparison", r->n_tracks > 1 ? "Comparison" : "In numbers");
    kli_figure_contenders(out, a, r);
    curves(out, a, r);
    for (int i = 0; i < n; i++)
        if (r->n_tracks > 1 ||
            strcmp(tables[i].id, "comparison") != 0) /* one trial is told above */
            kli_report_table_html(out, a, r->facts, &tables[i]);
    step_figures(out, a, r);
    json_decref(document);
}

/* ---- best kernels ------------------------------------------------------------------------ */

static void diff_lines(kl_buf *out, kl_str diff) {
    kl_buf_printf(out, "<pre>");
    while (diff.len) {
        const char *end = memchr(diff.ptr, '\n', diff.len);
        size_t n = end ? (size_t)(end - diff.ptr) + 1 : diff.len;
        char kind = diff.ptr[0];
        if (kind == '+' || kind == '-')
            kl_buf_printf(out, kind == '+' ? "<span class=yes>" : "<span class=no>");
        kli_text(out, (kl_str){diff.ptr, n});
        if (kind == '+' || kind == '-') kl_buf_printf(out, "</span>");
        diff = (kl_str){diff.ptr + n, diff.len - n};
    }
    kl_buf_printf(out, "</pre>\n");
}

/* What the best changed against the start, as `klineage kernel diff` shows it. */
static void diff(kl_buf *out, kl_arena *a, const kli_results *r, const kli_result *t) {
    const kl_surface *s = kl_surface_by_name(r->targets[t->target].surface);
    kl_kernel *from, *to;
    if (!s || !t->rows->start_source.len || !t->rows->best_source.len ||
        kl_kernel_parse(&from, a, t->rows->start_source, KL_S("start"), s, NULL, kl_ignored()) ||
        kl_kernel_parse(&to, a, t->rows->best_source, KL_S("best"), s, NULL, kl_ignored())) {
        kl_buf_printf(out, "<p class=missing>The journal lacks one of the sources, so no diff "
                           "can be shown.</p>\n");
        return;
    }
    kl_buf_printf(out, "<details><summary>diff from the start to the best</summary>");
    diff_lines(out, kl_kernel_diff(a, from, to));
    kl_buf_printf(out, "</details>\n<details><summary>the whole kernel</summary><pre>");
    kli_text(out, t->rows->best_source);
    kl_buf_printf(out, "</pre></details>\n");
}

static void path(kl_buf *out, kl_arena *a, const kli_results *r, const kli_result *t) {
    kl_buf_printf(out, "<ol>");
    for (int i = 0; i < t->n_path; i++) {
        const kli_row *row = t->path[i];
        bool card = r->facts->has_library && kl_library_card(r->facts->library, row->action);
        kl_buf_printf(out, card ? "<li>card <strong>" : "<li><strong>");
        kli_text(out, row->action);
        kl_buf_printf(out, "</strong> at step ");
        kli_text(out,
                 kl_arena_printf(a, "%lld, %s: ", (long long)row->n,
                                 kli_dollars(a, row->spent_microusd, t->money.sum.estimated).ptr));
        kli_link_verdict(out, r->facts, row->verdict,
                         kl_arena_printf(a, "%.3g \xc3\x97", row->ratio));
        kl_buf_printf(out, "</li>");
    }
    kl_buf_printf(out, "</ol>\n");
}

static void best_kernel(kl_buf *out, kl_arena *a, const kli_results *r, const kli_result *t) {
    kl_buf_printf(out, "<h3>");
    kli_text(out, t->rows->name);
    kl_buf_printf(out, "</h3>\n<p>");
    kli_link_verdict(out, r->facts, t->best->verdict,
                     kl_arena_printf(a, "%.3g \xc3\x97 [%.3g, %.3g]", t->best->ratio, t->best->low,
                                     t->best->high));
    kl_buf_printf(out, t->baseline.len ? " over " : " over the start");
    kli_text(out, t->baseline);
    kl_buf_printf(out, ", ");
    kli_link_verdict(
        out, r->facts, t->timed ? t->end->verdict : t->best->verdict,
        kl_arena_printf(a, "%.3g \xc3\x97 [%.3g, %.3g]", t->gain.ratio, t->gain.low, t->gain.high));
    kl_buf_printf(out, t->timed ? " over the start, side by side"
                                : " over the start, from the ratios of both");
    if (t->disagrees)
        kl_buf_printf(out, " (the ratios to the baseline contradict this beyond both intervals: "
                           "the baseline has drifted)");
    kl_buf_printf(out, ". Steps that led to it:</p>\n");
    path(out, a, r, t);
    diff(out, a, r, t);
}

static void undecided_kernel(kl_buf *out, kl_arena *a, const kli_results *r, const kli_result *t) {
    kl_buf_printf(out, "<h3>");
    kli_text(out, t->rows->name);
    kl_buf_printf(out, "</h3>\n<p>Not measurable: the last candidate is correct, but not "
                       "measurably different from the start, ");
    kli_link_verdict(
        out, r->facts, t->timed ? t->end->verdict : t->best->verdict,
        kl_arena_printf(a, "%.3g \xc3\x97 [%.3g, %.3g]", t->gain.ratio, t->gain.low, t->gain.high));
    kl_buf_printf(out, ".</p>\n");
    diff(out, a, r, t);
}

void kli_best_kernels(kl_buf *out, kl_arena *a, const kli_results *r) {
    bool first = true;
    for (int i = 0; i < r->n_tracks; i++) {
        const kli_result *t = &r->tracks[i];
        if (!t->best || t->best == t->start || (!t->solved && t->call != KL_DECISION_UNDECIDED))
            continue;
        if (first) kli_page_section(out, "kernels", "Best kernels");
        first = false;
        t->solved ? best_kernel(out, a, r, t) : undecided_kernel(out, a, r, t);
    }
}
