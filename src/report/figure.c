/* figure.c - pictures by gnuplot, as SVG that stands in the page.
 *
 * gnuplot is a program with a language of its own, and labels come from files: only letters, digits
 * and a few signs reach it.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/fs.h"
#include "base/proc.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

#define FIGURE_SECONDS 30
#define FEWEST_SLOTS 6

/* A label that can stand in quotes and in a data line: nothing that gnuplot could take for a
 * command. */
const char *kli_figure_label(kl_arena *a, kl_str s) {
    kl_str copy = kl_arena_copy(a, (kl_str){s.ptr, s.len < 40 ? s.len : 40});
    for (char *p = (char *)copy.ptr; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-./+:", *p)) *p = '-';
    return copy.ptr;
}

/* A picture's ids are the same in every one that gnuplot draws, and a page has several: each gets
 * its place in the page in front. */
static const char *after_mark(const char *at) {
    static const char *const marks[] = {"id=\"gnuplot", "id='", "href='#"};
    static const size_t lengths[] = {4, 4, 7}; /* up to where the id begins */
    for (size_t i = 0; i < KL_COUNT(marks); i++)
        if (strncmp(at, marks[i], strlen(marks[i])) == 0) return at + lengths[i];
    return NULL;
}

/* The SVG element alone, without XML declaration and document type. */
static void add_svg(kl_buf *out, kl_str svg) {
    const char *at = memmem(svg.ptr, svg.len, "<svg", 4), *end = svg.ptr + svg.len;
    const size_t place = out->len;
    for (const char *done = at; at && done < end; done = at) {
        const char *mark = NULL;
        while (at < end && !(mark = after_mark(at))) at++;
        if (mark) at = mark;
        kl_buf_add(out, (kl_str){done, (size_t)(at - done)});
        if (mark) kl_buf_printf(out, "f%zu-", place);
    }
}

void kli_figure_draw(kl_buf *out, kl_arena *a, kl_buf *script, const char *caption) {
    const char *argv[] = {"gnuplot", "-d", "-", NULL}; /* -d: nobody's own settings */
    kli_proc_spec spec = {.argv = argv,
                          .input = kl_buf_str(script),
                          .timeout_ns = FIGURE_SECONDS * INT64_C(1000000000),
                          .max_output = 8u << 20};
    kli_proc_result r = {0};
    kl_buf_printf(out, "<figure>");
    bool there = kli_fs_find_program(a, "gnuplot").len != 0;
    if (there && kli_proc_run(&r, a, &spec, kl_ignored()) == KL_OK && r.exit_code == 0)
        add_svg(out, r.out);
    else
        kl_buf_printf(out, "<p class=missing>%s</p>",
                      there ? "gnuplot failed, so this figure is missing."
                            : "gnuplot is not installed, so this figure is missing: apt-get "
                              "install gnuplot-nox.");
    kl_buf_printf(out, "<figcaption>%s</figcaption></figure>\n", caption);
    kl_buf_fini(script);
}

void kli_figure_begin(kl_buf *script, int width, int height) {
    kl_buf_printf(
        script,
        "set encoding utf8\nset terminal svg size %d,%d dynamic font 'sans-serif,13' background "
        "'#ffffff'\n"
        "set border 3 lc rgb '#888888'\nset tics nomirror out\nset grid y lc rgb '#dddddd'\n",
        width, height);
}

/* Room for `n` bars of width 1 and no fewer than a few, so that a single one does not fill the
 * picture. */
void kli_figure_slots(kl_buf *script, int n) {
    KL_ASSERT(n > 0);
    double half = (n < FEWEST_SLOTS ? FEWEST_SLOTS : n) / 2.0, middle = (n - 1) / 2.0;
    kl_buf_printf(script, "set xrange [%g:%g]\n", middle - half, middle + half);
}

/* ---- bars -------------------------------------------------------------------------------- */

void kli_figure_bars(kl_buf *out, kl_arena *a, const kli_facts *f) {
    kl_buf script = {0}, data = {0};
    int n = 0;
    for (int i = 0; i < f->n_tracks; i++) {
        kli_result t;
        kli_result_of(&t, a, f, &f->tracks[i]);
        const kli_row *b = t.shown;
        if (b && b->ratio > 0 && kli_is_search(&f->tracks[i]))
            kl_buf_printf(&data, "%d %.6g %.6g %.6g \"%s\"\n", n++, b->ratio, b->low, b->high,
                          kli_figure_label(a, f->tracks[i].name));
    }
    if (n) {
        kli_figure_begin(&script, 760, 380);
        kli_figure_slots(&script, n);
        kl_buf_printf(&script, "$d << EOD\n%.*sEOD\n", KL_STR_ARG(kl_buf_str(&data)));
        kl_buf_add(&script,
                   KL_S("set boxwidth 0.7\nset style fill solid 0.8\nset ylabel "
                        "'speed'\nset yrange [0:*]\nunset key\nset xtics rotate by "
                        "-35\nset arrow from graph 0,first 1 to graph 1,first 1 "
                        "nohead dt 2 lc rgb '#444444'\nplot $d using 1:2:xtic(5) with "
                        "boxes lc rgb '#3b6ea5', $d using 1:3:(0):($4-$3) with " WHISKERS "\n"));
        kli_figure_draw(
            out, a, &script,
            "Best kernel of every track, as speed over the comparison named in the table, with "
            "95 % intervals; the start where nothing was measurably faster. Dashed line: equal "
            "speed.");
    }
    kl_buf_fini(&data);
}

/* ---- best so far against dollars --------------------------------------------------------- */

static void cost_data(kl_buf *out, const kli_result *t, int index) {
    kl_buf_printf(out, "$t%d << EOD\n", index);
    for (int i = 0; i < t->n_curve; i++)
        kl_buf_printf(out, "%.6f %.6g\n", (double)t->curve[i].microusd / 1e6, t->curve[i].ratio);
    kl_buf_printf(out, "EOD\n");
}

void kli_figure_cost(kl_buf *out, kl_arena *a, const kli_facts *f, kl_str workload) {
    kl_buf script = {0}, plot = {0};
    int n = 0;
    kli_figure_begin(&script, 760, 360);
    for (int i = 0; i < f->n_tracks; i++) {
        const kli_track_rows *t = &f->tracks[i];
        kli_result one;
        if (!kl_str_eq(t->workload, workload) || !kli_is_search(t)) continue;
        kli_result_of(&one, a, f, t);
        if (!one.n_curve) continue;
        cost_data(&script, &one, n);
        kl_buf_printf(&plot, "%s$t%d using 1:2 with steps lw 2 lc %d title '%s'",
                      n ? ", " : "plot ", n, n + 1, kli_figure_label(a, t->name));
        n++;
    }
    kl_buf_printf(&script,
                  "set xlabel 'dollars'\nset ylabel 'best so far, speed'\nset key outside "
                  "right top\nset xrange [0:*]\nset yrange [0:*]\n%.*s\n",
                  KL_STR_ARG(kl_buf_str(&plot)));
    if (n)
        kli_figure_draw(out, a, &script, "Best so far against dollars spent.");
    else
        kl_buf_fini(&script);
    kl_buf_fini(&plot);
}

/* ---- a lineage --------------------------------------------------------------------------- */

/* Gains were timed interleaved, state against state; times of states were not: on a busy machine
 * these drift by more than an edge gains.  The errors of the factors are independent, so their
 * logarithms add as squares. */
static bool speeds_by_gain(kl_buf *out, kl_arena *a, const kl_lineage *l) {
    double speed = 1, error = 0;
    for (int i = 1; i < l->n_states; i++)
        if (!(l->edges[i - 1].gain > 0) || !(l->edges[i - 1].gain_low > 0)) return false;
    for (int i = 0; i < l->n_states; i++) {
        const kl_edge *d = i ? &l->edges[i - 1] : NULL;
        if (d) {
            double half = log(d->gain_high / d->gain_low) / 2;
            speed *= d->gain;
            error += half * half;
        }
        kl_buf_printf(out, "%d %.6g %.6g %.6g \"%s %s\"\n", i, speed, speed / exp(sqrt(error)),
                      speed * exp(sqrt(error)), kli_figure_label(a, l->states[i].name),
                      d ? kli_figure_label(a, d->action) : kli_simplest(l));
    }
    return true;
}

static void speeds_by_ratio(kl_buf *out, kl_arena *a, const kl_lineage *l) {
    for (int i = 0; i < l->n_states; i++) {
        const kl_state *s = &l->states[i];
        if (s->ratio > 0)
            kl_buf_printf(out, "%d %.6g %.6g %.6g \"%s %s\"\n", i, s->ratio, s->low, s->high,
                          kli_figure_label(a, s->name),
                          i ? kli_figure_label(a, l->edges[i - 1].action) : kli_simplest(l));
    }
}

void kli_figure_lineage(kl_buf *out, kl_arena *a, const kl_lineage *l) {
    kl_buf script = {0}, data = {0};
    bool gains = speeds_by_gain(&data, a, l);
    if (!gains) speeds_by_ratio(&data, a, l);
    kli_figure_begin(&script, 760, 340);
    kli_figure_slots(&script, l->n_states);
    if (gains)
        kl_buf_printf(&script, "set yrange [0.5:*]\n"); /* K0 is 1, and a bar ends at the axis */
    kl_buf_printf(&script, "$d << EOD\n%.*sEOD\n", KL_STR_ARG(kl_buf_str(&data)));
    kl_buf_printf(&script,
                  "set boxwidth 0.6\nset style fill solid 0.8\nunset key\nset logscale y\nset "
                  "ylabel '%s'\nset xtics rotate by -25\nplot $d using 1:2:xtic(5) with boxes "
                  "lc rgb '#3b6ea5', $d using 1:3:(0):($4-$3) with " WHISKERS "\n",
                  gains ? "speed over K0" : "speed over the baseline");
    if (data.len)
        kli_figure_draw(out, a, &script,
                        gains ? "Speed of every state over the simplest, which is on the left: "
                                "the product of the edges' gains, each timed interleaved with "
                                "the state before. Each label names the optimization that led "
                                "to the state."
                              : "Speed of every state over the baseline, the simplest on the "
                                "left; each label names the optimization that led to the state.");
    else
        kl_buf_fini(&script);
    kl_buf_fini(&data);
}
