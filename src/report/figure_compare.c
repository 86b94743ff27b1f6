/* figure_compare.c - pictures of several contenders: bars by policy, running best against dollars,
 * every step of one trial.
 *
 * They follow figures 3, 4 and 6 of the KLineage paper, with the spread over trials that it leaves
 * out: whiskers and bands go from the worst to the best trial, bars and lines are medians.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include <math.h>

/* Contenders beyond these begin anew, with other dashes. */
static const char *const contender_colours[] = {"line-1", "line-2", "line-3",
                                                "line-4", "line-5", "line-6"};
#define DASHES 5 /* of gnuplot's SVG terminal, the first is none */

static const char *colour_of(int contender) {
    KL_ASSERT(contender >= 0);
    return kli_colour(contender_colours[contender % (int)KL_COUNT(contender_colours)]);
}

static int dash_of(int contender) { return contender % DASHES + 1; }

/* ---- bars -------------------------------------------------------------------------------- */

static bool has_bar(const kli_group *g) { return g && g->n && g->best.median > 0; }

static int n_bars(const kli_results *r, int target) {
    int n = 0;
    for (int i = 0; i < r->n_groups; i++)
        n += (target < 0 || r->groups[i].target == target) && has_bar(&r->groups[i]);
    return n;
}

static void contender_bar(kli_figure *g, kl_arena *a, const kli_results *r, const kli_group *group,
                          int row) {
    const char *who = kli_figure_label(a, r->contenders[group->contender].label);
    const char *what = kli_figure_label(a, r->targets[group->target].label);
    const bool one = r->n_contenders == 1; /* then the target is all that tells bars apart */
    const bool told = group->solved > 0;
    const char *words = !told && group->undecided ? "undecided"
                        : !told                   ? "not faster"
                                : kl_arena_printf(a, "%.3g \xc3\x97", group->best.median).ptr;
    kli_figure_bar(g, (kli_bar){row, group->best.median, group->best.low, group->best.high, told,
                                one ? what : who, words});
    kl_buf_printf(&g->alt, " %s%s%s %.3g%s%s;", what, one ? "" : " by ", one ? "" : who,
                  group->best.median, told ? "" : ", ", told ? "" : words);
}

static void contender_bars(kli_figure *g, kl_arena *a, const kli_results *r) {
    int row = 0;
    for (int i = 0; i < r->n_targets; i++) {
        if (r->n_contenders > 1 && n_bars(r, i))
            kli_figure_bar_heading(g, row++, kli_figure_label(a, r->targets[i].label));
        for (int j = 0; j < r->n_contenders; j++) {
            const kli_group *group = kli_group_of(r, i, j);
            if (has_bar(group)) contender_bar(g, a, r, group, row++);
        }
    }
}

void kli_figure_contenders(kl_buf *out, kl_arena *a, const kli_results *r) {
    const int n = n_bars(r, -1);
    kli_figure g;
    int rows = n;
    if (n < 2) return; /* one bar is a sentence, which is on top of the page */
    for (int i = 0; i < r->n_targets; i++) rows += r->n_contenders > 1 && n_bars(r, i);
    kli_figure_bars_begin(&g, rows);
    kl_buf_printf(&g.alt, "Best kernel, median speed over the baseline:");
    contender_bars(&g, a, r);
    kli_figure_bars_end(&g, 0, false, "speed over the baseline");
    kli_figure_draw(out, a, &g,
                    "Best kernel by policy over the baseline (over the start where there is "
                    "none): bars are medians over trials, whiskers go from the worst to the "
                    "best trial. Dashed line: baseline speed. Grey: no trial was measurably "
                    "faster than its start, which is drawn.");
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

/* A line that never rises says no more than its end does. */
static bool has_band(const kli_group *g, int target) {
    return g->target == target && g->n_band > 1 && g->band[g->n_band - 1].microusd > 0;
}

static bool rises(const kli_results *r, int target) {
    for (int i = 0; i < r->n_groups; i++) {
        const kli_group *g = &r->groups[i];
        if (has_band(g, target) && g->band[g->n_band - 1].best.median > g->band[0].best.median)
            return true;
    }
    return false;
}

static void add_band(kli_figure *figure, kl_buf *plot, kl_arena *a, const kli_results *r,
                     const kli_group *g) {
    const char *who = kli_figure_label(a, r->contenders[g->contender].label);
    const kli_band_point *last = &g->band[g->n_band - 1];
    const char *colour = colour_of(g->contender);
    band_data(&figure->script, g);
    if (g->n > 1)
        kl_buf_printf(plot,
                      "%s$g%d using 1:3:4 with filledcurves fc rgb '%s' fs transparent solid 0.15 "
                      "noborder notitle",
                      plot->len ? ", " : "plot ", g->contender, colour);
    kl_buf_printf(plot, "%s$g%d using 1:2 with lines lw 2 dt %d lc rgb '%s' title '%s'",
                  plot->len ? ", " : "plot ", g->contender, dash_of(g->contender), colour, who);
    kl_buf_printf(&figure->alt, " %s %.3g for $%.2f;", who, last->best.median,
                  (double)last->microusd / 1e6);
}

#define CURVE_AXES                                                                                 \
    "set key outside top left horizontal Left reverse samplen 2\nset xrange [0:*]\nset yrange "    \
    "[0:*]\n"

/* Of an axis that goes up to `most`: 1, 2 or 5 times a power of ten, so that no more than five
 * names stand side by side on a phone. */
static double tic_step(double most) {
    const double rough = most / 5, power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

/* Grid, axes and their names, of a picture of lines. */
static void curve_axes(kli_figure *g, const char *x, double most, const char *y) {
    KL_ASSERT(most > 0);
    kl_buf_printf(
        &g->script,
        "set border 3\nset tmargin -1\nset grid y lc rgb '%s' lt 1\nset xlabel '%s' textcolor rgb "
        "'%s'\nset ylabel '%s' textcolor rgb '%s'\nset xtics %g\n" CURVE_AXES,
        kli_colour("grid"), x, kli_colour("soft"), y, kli_colour("soft"), tic_step(most));
}

void kli_figure_bands(kl_buf *out, kl_arena *a, const kli_results *r, int target) {
    kl_buf plot = {0};
    kli_figure g;
    double most = 0;
    if (!rises(r, target)) return;
    kli_figure_begin(&g, 380, 320);
    kl_buf_printf(&g.alt, "Best so far against dollars, %s, at the end:",
                  kli_figure_label(a, r->targets[target].label));
    for (int i = 0; i < r->n_groups; i++) {
        const kli_group *group = &r->groups[i];
        if (!has_band(group, target)) continue;
        add_band(&g, &plot, a, r, group);
        most = fmax(most, (double)group->band[group->n_band - 1].microusd / 1e6);
    }
    curve_axes(&g, "dollars", most, "best so far, speed");
    kl_buf_printf(&g.script,
                  "set arrow from graph 0,first 1 to graph 1,first 1 nohead dt 2 lc rgb '%s'\n"
                  "%.*s\n",
                  kli_colour("soft"), KL_STR_ARG(kl_buf_str(&plot)));
    kli_figure_draw(out, a, &g,
                    "Best so far against dollars spent: lines are medians over trials, bands "
                    "go from the worst to the best trial. A finished trial keeps its last value. "
                    "Dashed line: baseline speed.");
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

#define FEWEST_STEPS 3 /* fewer are a line of the table */

static void step_marks(kli_figure *g, kl_buf *plot, const kli_result *t) {
    static const char *const styles[MARKS] = {"pt 7 ps 0.7", "pt 8 ps 0.9", "pt 2 ps 0.9 lw 2"};
    static const char *const colour_names[MARKS] = {"line-3", "axis", "failed"};
    static const char *const titles[MARKS] = {"passed", "failed", "cheat or no kernel"};
    for (int m = 0; m < MARKS; m++) {
        const int n = mark_data(&g->script, t, (figure_compare_mark)m);
        if (!n) continue;
        kl_buf_printf(plot, ", $m%d using 1:2 with points %s lc rgb '%s' title '%s'", m, styles[m],
                      kli_colour(colour_names[m]), titles[m]);
        kl_buf_printf(&g->alt, " %d %s,", n, titles[m]);
    }
}

void kli_figure_steps(kl_buf *out, kl_arena *a, const kli_results *r, const kli_group *g) {
    kl_buf plot = {0}, caption = {0};
    kli_figure figure;
    if (g->middle < 0) return; /* never asked */
    KL_ASSERT(g->middle < r->n_tracks);
    const kli_result *t = &r->tracks[g->middle];
    if (t->proposals < FEWEST_STEPS || !t->n_curve) return;
    kli_figure_begin(&figure, 320, 300);
    best_data(&figure.script, t);
    kl_buf_printf(&figure.alt, "Every step of one trial, the start among them:");
    kl_buf_printf(&plot, "plot $best using 1:2 with steps lw 2 lc rgb '%s' title 'best so far'",
                  kli_colour("line-1"));
    step_marks(&figure, &plot, t);
    kl_buf_printf(&figure.alt, " best %.3g", t->curve[t->n_curve - 1].ratio);
    curve_axes(&figure, "step", t->rows->n_rows, "speed");
    kl_buf_printf(&figure.script, "%.*s\n", KL_STR_ARG(kl_buf_str(&plot)));
    kl_buf_printf(&caption, "Every step of ");
    kli_text(&caption, t->rows->name);
    kl_buf_printf(&caption, g->n > 1 ? ", the trial of the median best. Failures are drawn at 0."
                                     : ". Failures are drawn at 0.");
    kli_figure_draw(out, a, &figure, caption.ptr);
    kl_buf_fini(&caption);
    kl_buf_fini(&plot);
}
