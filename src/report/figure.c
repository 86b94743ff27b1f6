/* figure.c - pictures by gnuplot, as SVG that stands in the page.
 *
 * gnuplot is a program with a language of its own, and labels come from files: only letters, digits and a few signs reach it.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/fs.h"
#include "base/proc.h"
#include <ctype.h>
#include <string.h>

#define FIGURE_SECONDS 30

/* A label that can stand in quotes and in a data line: nothing that gnuplot could take for a command. */
static const char *label(kl_arena *a, kl_str s) {
    kl_str copy = kl_arena_copy(a, (kl_str){s.ptr, s.len < 40 ? s.len : 40});
    for (char *p = (char *)copy.ptr; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-./+:", *p)) *p = '-';
    return copy.ptr;
}

/* A picture's ids are the same in every one that gnuplot draws, and a page has several: each gets its place in the page in front. */
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

static void draw(kl_buf *out, kl_arena *a, kl_buf *script, const char *caption) {
    const char *argv[] = {"gnuplot", "-d", "-", NULL}; /* -d: nobody's own settings */
    kl_proc_spec spec = {.argv = argv,
                         .input = kl_buf_str(script),
                         .timeout_ns = FIGURE_SECONDS * INT64_C(1000000000),
                         .max_output = 8u << 20};
    kl_proc_result r = {0};
    kl_error e = {0};
    kl_buf_add(out, KL_S("<figure>"));
    bool there = kl_fs_find_program(a, "gnuplot").len != 0;
    if (there && kl_proc_run(&r, a, &spec, &e) == KL_OK && r.exit_code == 0)
        add_svg(out, r.out);
    else
        kl_buf_printf(out, "<p class=missing>%s</p>",
                      there ? "gnuplot failed, so this picture is left out."
                            : "gnuplot is not installed, so this picture is left out: apt-get install gnuplot-nox.");
    kl_buf_printf(out, "<figcaption>%s</figcaption></figure>\n", caption);
    kl_buf_fini(script);
}

static void begin(kl_buf *script, int width, int height) {
    kl_buf_printf(script,
                  "set encoding utf8\nset terminal svg size %d,%d dynamic font 'sans-serif,13' background '#ffffff'\n"
                  "set border 3 lc rgb '#888888'\nset tics nomirror out\nset grid y lc rgb '#dddddd'\n",
                  width, height);
}

/* ---- bars ------------------------------------------------------------------------------------------------------------------ */

void kli_figure_bars(kl_buf *out, kl_arena *a, const kli_facts *f) {
    kl_buf script = {0}, data = {0};
    int n = 0;
    for (int i = 0; i < f->n_tracks; i++) {
        const kli_row *b = kli_track_best(&f->tracks[i]);
        if (b && b->ratio > 0 && kli_is_search(&f->tracks[i]))
            kl_buf_printf(&data, "%d %.6g %.6g %.6g \"%s\"\n", n++, b->ratio, b->low, b->high,
                          label(a, f->tracks[i].name));
    }
    if (n) {
        begin(&script, 760, 380);
        kl_buf_printf(&script, "$d << EOD\n%.*sEOD\n", KL_STR_ARG(kl_buf_str(&data)));
        kl_buf_add(&script,
                   KL_S("set boxwidth 0.7\nset style fill solid 0.8\nset ylabel 'speed'\nset yrange [0:*]\nunset key\n"
                        "set xtics rotate by -35\nset arrow from graph 0,first 1 to graph 1,first 1 nohead dt 2 lc rgb "
                        "'#444444'\n"
                        "plot $d using 1:2:xtic(5) with boxes lc rgb '#3b6ea5', $d using 1:2:3:4 with yerrorbars lc "
                        "rgb '#222222' pt 0\n"));
        draw(out, a, &script,
             "Best kernel of every track against what the table names, 95 % intervals. The dashed line is as fast as "
             "that.");
    }
    kl_buf_fini(&data);
}

/* ---- best so far against dollars ------------------------------------------------------------------------------------------- */

static void cost_data(kl_buf *out, const kli_track_rows *t, int index) {
    double best = 0, spent = 0;
    kl_buf_printf(out, "$t%d << EOD\n", index);
    for (int i = 0; i < t->n_rows; i++) {
        if (t->rows[i].best) best = t->rows[i].ratio;
        spent = (double)t->rows[i].spent_microusd / 1e6;
        kl_buf_printf(out, "%.6f %.6g\n", spent, best);
    }
    kl_buf_add(out, KL_S("EOD\n"));
}

void kli_figure_cost(kl_buf *out, kl_arena *a, const kli_facts *f, kl_str workload) {
    kl_buf script = {0}, plot = {0};
    int n = 0;
    begin(&script, 760, 360);
    for (int i = 0; i < f->n_tracks; i++) {
        const kli_track_rows *t = &f->tracks[i];
        if (!kl_str_eq(t->workload, workload) || !kli_track_best(t) || !kli_is_search(t)) continue;
        cost_data(&script, t, n);
        kl_buf_printf(&plot, "%s$t%d using 1:2 with steps lw 2 lc %d title '%s'", n ? ", " : "plot ", n, n + 1,
                      label(a, t->name));
        n++;
    }
    kl_buf_printf(&script,
                  "set xlabel 'dollars'\nset ylabel 'best so far, speed'\nset key outside right top\nset xrange "
                  "[0:*]\nset yrange [0:*]\n%.*s\n",
                  KL_STR_ARG(kl_buf_str(&plot)));
    if (n)
        draw(out, a, &script, "Best so far against dollars spent.");
    else
        kl_buf_fini(&script);
    kl_buf_fini(&plot);
}

/* ---- a lineage ---------------------------------------------------------------------------------------------------------------- */

void kli_figure_lineage(kl_buf *out, kl_arena *a, const kl_lineage *l) {
    kl_buf script = {0};
    begin(&script, 760, 340);
    kl_buf_add(&script, KL_S("$d << EOD\n"));
    for (int i = 0; i < l->n_states; i++)
        kl_buf_printf(&script, "%d %.6g \"%s %s\"\n", i, (double)l->states[i].median_ns / 1e3,
                      label(a, l->states[i].name), i ? label(a, l->edges[i - 1].action) : kli_simplest(l));
    kl_buf_add(&script, KL_S("EOD\nset boxwidth 0.6\nset style fill solid 0.8\nunset key\nset logscale y\nset ylabel "
                             "'time of a run, microseconds'\n"
                             "set xtics rotate by -25\nplot $d using 1:2:xtic(3) with boxes lc rgb '#3b6ea5'\n"));
    draw(out, a, &script,
         "Time of every state, the simplest on the left; each label names the optimization that led to the state.");
}
