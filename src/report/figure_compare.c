/* figure_compare.c - pictures of several contenders: bars by policy, running best against dollars,
 * every step of one trial.
 *
 * They follow figures 3, 4 and 6 of the KLineage paper, with the spread over trials that it leaves
 * out: whiskers and bands go from the worst to the best trial, bars and lines are medians.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"

/* Told apart by the colour-blind too (Okabe and Ito); contenders beyond these begin anew. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#6b6b6b"};

static const char *colour_of(int contender) {
    KL_ASSERT(contender >= 0);
    return colours[contender % (int)KL_COUNT(colours)];
}

/* ---- bars -------------------------------------------------------------------------------- */

/* Place of a bar: targets are 1 apart, their contenders stand within 0.8 of it. */
static double bar_place(const kli_results *r, int target, int contender) {
    KL_ASSERT(contender < r->n_contenders);
    return target + (contender - (r->n_contenders - 1) / 2.0) * 0.8 / r->n_contenders;
}

/* Columns: place, median, least, most of those with a success; place of the others. */
static void bar_data(kl_buf *out, const kli_results *r, int contender) {
    kl_buf_printf(out, "$b%d << EOD\n", contender);
    for (int i = 0; i < r->n_targets; i++) {
        const kli_group *g = kli_group_of(r, i, contender);
        if (g && g->best.median > 0)
            kl_buf_printf(out, "%g %.6g %.6g %.6g %s\n", bar_place(r, i, contender), g->best.median,
                          g->best.low, g->best.high, g->solved ? "NaN" : "0");
    }
    kl_buf_printf(out, "EOD\n");
}

static double highest(const kli_results *r) {
    double most = 0;
    for (int i = 0; i < r->n_groups; i++)
        if (r->groups[i].best.high > most) most = r->groups[i].best.high;
    return most;
}

static bool has_bars(const kli_results *r, int contender) {
    for (int i = 0; i < r->n_targets; i++) {
        const kli_group *g = kli_group_of(r, i, contender);
        if (g && g->best.median > 0) return true;
    }
    return false;
}

static void target_tics(kl_buf *out, kl_arena *a, const kli_results *r) {
    kl_buf_printf(out, "set xtics rotate by -20 (");
    for (int i = 0; i < r->n_targets; i++)
        kl_buf_printf(out, "%s\"%s\" %d", i ? ", " : "", kli_figure_label(a, r->targets[i].label),
                      i);
    kl_buf_printf(out, ")\n");
}

void kli_figure_contenders(kl_buf *out, kl_arena *a, const kli_results *r) {
    kl_buf script = {0};
    const char *glue = "plot ";
    if (!(highest(r) > 0)) return;
    kli_figure_begin(&script, 760, 400);
    kl_buf_printf(&script,
                  "set xrange [-0.7:%g]\nset boxwidth %g absolute\nset style fill solid 0.8\n",
                  r->n_targets - 0.3, (r->n_targets < 3 ? 0.4 : 0.72) / r->n_contenders);
    target_tics(&script, a, r);
    kl_buf_printf(&script, "set ylabel 'speed'\nset yrange [0:*]\nset key outside top center "
                           "horizontal\nset arrow from graph 0,first 1 to graph 1,first 1 "
                           "nohead dt 2 lc rgb '#444444'\n");
    for (int i = 0; i < r->n_contenders; i++)
        if (has_bars(r, i)) bar_data(&script, r, i);
    for (int i = 0; i < r->n_contenders; i++) {
        if (!has_bars(r, i)) continue;
        kl_buf_printf(&script,
                      "%s$b%d using 1:2 with boxes lc rgb '%s' title '%s', $b%d using "
                      "1:3:(0):($4-$3) with " WHISKERS " notitle, "
                      "$b%d using 1:($5+%g) with points pt 2 ps 1.2 lw 2 lc rgb '#c00000' notitle",
                      glue, i, colour_of(i), kli_figure_label(a, r->contenders[i].label), i, i,
                      highest(r) * 0.04);
        glue = ", ";
    }
    kl_buf_printf(&script, "\n");
    kli_figure_draw(out, a, &script,
                    "Best kernel by policy over the baseline (over the start where there is "
                    "none): bars are medians over trials, whiskers go from the worst to the "
                    "best trial. Dashed line: baseline speed. Red cross: no trial was "
                    "measurably faster than its start.");
}

/* ---- running best against dollars -------------------------------------------------------- */

/* A band is a step function; a filled curve between two of them needs both ends of every step. */
static void band_data(kl_buf *out, const kli_group *g) {
    kl_buf_printf(out, "$g%d << EOD\n", g->contender);
    for (int i = 0; i < g->n_band; i++) {
        const kli_band_point *p = &g->band[i], *before = i ? p - 1 : p;
        double usd = (double)p->microusd / 1e6;
        kl_buf_printf(out, "%.6f %.6g %.6g %.6g\n%.6f %.6g %.6g %.6g\n", usd, before->best.median,
                      before->best.low, before->best.high, usd, p->best.median, p->best.low,
                      p->best.high);
    }
    kl_buf_printf(out, "EOD\n");
}

static bool has_band(const kli_group *g, int target) {
    return g->target == target && g->n_band > 1 && g->band[g->n_band - 1].microusd > 0;
}

void kli_figure_bands(kl_buf *out, kl_arena *a, const kli_results *r, int target) {
    kl_buf script = {0}, plot = {0};
    const char *glue = "plot ";
    kli_figure_begin(&script, 760, 360);
    for (int i = 0; i < r->n_groups; i++) {
        const kli_group *g = &r->groups[i];
        if (!has_band(g, target)) continue;
        const char *colour = colour_of(g->contender);
        band_data(&script, g);
        if (g->n > 1) {
            kl_buf_printf(&plot,
                          "%s$g%d using 1:3:4 with filledcurves fc rgb '%s' fs transparent solid "
                          "0.2 noborder notitle",
                          glue, g->contender, colour);
            glue = ", ";
        }
        kl_buf_printf(&plot, "%s$g%d using 1:2 with lines lw 2 lc rgb '%s' title '%s'", glue,
                      g->contender, colour, kli_figure_label(a, r->contenders[g->contender].label));
        glue = ", ";
    }
    kl_buf_printf(&script,
                  "set xlabel 'dollars'\nset ylabel 'best so far, speed'\nset key outside top "
                  "center horizontal\nset xrange [0:*]\nset yrange [0:*]\nset arrow from graph "
                  "0,first 1 to graph 1,first 1 nohead dt 2 lc rgb '#444444'\n%.*s\n",
                  KL_STR_ARG(kl_buf_str(&plot)));
    if (plot.len)
        kli_figure_draw(out, a, &script,
                        "Best so far against dollars spent: lines are medians over trials, bands "
                        "go from the worst to "
                        "the best trial. A finished trial keeps its last value.");
    else
        kl_buf_fini(&script);
    kl_buf_fini(&plot);
}

/* ---- every step of a trial --------------------------------------------------------------- */

typedef enum { MARK_VALID, MARK_FAILED, MARK_NONE, MARKS } figure_compare_mark;

static figure_compare_mark figure_compare_mark_of(const kli_row *row) {
    kli_step_outcome f = kli_step_outcome_of(row->outcome);
    if (f == KLI_PASS && row->ratio > 0) return MARK_VALID;
    return f == KLI_CHEAT || f == KLI_REFUSED || f == KLI_NOTHING ? MARK_NONE : MARK_FAILED;
}

static int mark_data(kl_buf *out, const kli_result *t, figure_compare_mark m) {
    int n = 0;
    kl_buf_printf(out, "$m%d << EOD\n", (int)m);
    for (int i = 0; i < t->rows->n_rows; i++) {
        const kli_row *row = &t->rows->rows[i];
        if ((row != t->start && !kli_is_proposal(row)) || figure_compare_mark_of(row) != m)
            continue;
        kl_buf_printf(out, "%lld %.6g\n", (long long)row->n, m == MARK_VALID ? row->ratio : 0);
        n++;
    }
    kl_buf_printf(out, "EOD\n");
    return n;
}

static void best_data(kl_buf *out, const kli_result *t) {
    kl_buf_printf(out, "$best << EOD\n");
    for (int i = 0; i < t->n_curve; i++)
        kl_buf_printf(out, "%lld %.6g\n", (long long)t->curve[i].step, t->curve[i].ratio);
    kl_buf_printf(out, "EOD\n");
}

void kli_figure_steps(kl_buf *out, kl_arena *a, const kli_results *r, const kli_group *g) {
    static const char *const styles[MARKS] = {
        "pt 7 ps 0.7 lc rgb '#009e73' title 'passed'",
        "pt 8 ps 0.8 lc rgb '#888888' title 'failed'",
        "pt 2 ps 0.8 lw 2 lc rgb '#c00000' title 'cheat or no kernel'"};
    kl_buf script = {0}, plot = {0}, caption = {0};
    if (g->middle < 0) return; /* never asked */
    KL_ASSERT(g->middle < r->n_tracks);
    const kli_result *t = &r->tracks[g->middle];
    if (!t->proposals || !t->n_curve) return;
    kli_figure_begin(&script, 760, 300);
    best_data(&script, t);
    kl_buf_printf(&plot,
                  "plot $best using 1:2 with steps lw 2 lc rgb '#0072b2' title 'best so far'");
    for (int m = 0; m < MARKS; m++)
        if (mark_data(&script, t, (figure_compare_mark)m))
            kl_buf_printf(&plot, ", $m%d using 1:2 with points %s", m, styles[m]);
    kl_buf_printf(&script,
                  "set xlabel 'step'\nset ylabel 'speed'\nset key outside top center "
                  "horizontal\nset xrange [0:*]\nset yrange [0:*]\n%.*s\n",
                  KL_STR_ARG(kl_buf_str(&plot)));
    kl_buf_printf(&caption, "Every step of ");
    kli_text(&caption, t->rows->name);
    kl_buf_printf(&caption, g->n > 1 ? ", the trial of the median best. Failures are drawn at 0."
                                     : ". Failures are drawn at 0.");
    kli_figure_draw(out, a, &script, caption.ptr);
    kl_buf_fini(&caption);
    kl_buf_fini(&plot);
}
