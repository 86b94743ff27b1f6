/* figure.c - pictures by gnuplot, as SVG that stands in the page.
 *
 * gnuplot is a program with a language of its own, and labels come from files: only letters, digits
 * and a few signs reach it.  Every picture is drawn twice, wide and narrow, so that its words are
 * as large on a phone as on paper; it says in words what it shows, for who cannot see it and for
 * where gnuplot is missing.  Bars lie, so that their names need no slant and no legend.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/fs.h"
#include "base/proc.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIGURE_SECONDS 30
#define WIDE 860
#define NARROW 345
#define MOST_LABEL 40

/* ---- one picture ------------------------------------------------------------------------- */

/* A label that can stand in quotes and in a data line: nothing that gnuplot could take for a
 * command. */
const char *kli_figure_label(kl_arena *a, kl_str s) {
    kl_str copy = kl_arena_copy(a, (kl_str){s.ptr, s.len < MOST_LABEL ? s.len : MOST_LABEL});
    for (char *p = (char *)copy.ptr; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_./+:", *p)) *p = '-';
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

/* gnuplot's own titles would pop up below the mouse. */
static const char *after_title(const char *at, const char *end) {
    static const char *const begins[] = {"<title>", "<desc>"}, *const ends[] = {"</title>",
                                                                                "</desc>"};
    for (size_t i = 0; i < KL_COUNT(begins); i++) {
        if (strncmp(at, begins[i], strlen(begins[i])) != 0) continue;
        const char *close = memmem(at, (size_t)(end - at), ends[i], strlen(ends[i]));
        return close ? close + strlen(ends[i]) : NULL;
    }
    return NULL;
}

/* A colour in quotes: "#rrggbb" or "rgb( r, g, b)".  Returns its end, NULL when there is none of
 * colours.def. */
static const char *figure_colour(const char *at, const char **name, const char **light) {
    int r, g, b, n = 0;
    if (*at != '#' && *at != 'r') return NULL;
    if (sscanf(at, "rgb( %d , %d , %d )%n", &r, &g, &b, &n) != 3 || !n)
        if (sscanf(at, "#%2x%2x%2x%n", (unsigned *)&r, (unsigned *)&g, (unsigned *)&b, &n) != 3)
            return NULL;
    *name = kli_colour_name(r, g, b);
    if (!*name) return NULL;
    *light = kli_colour(*name);
    return at + n;
}

/* One SVG element without XML declaration and document type: ids of its own, colours by name, with
 * the light one for who does not know names. */
static void add_svg(kl_buf *out, kl_str svg, kl_str alt) {
    const char *at = svg.ptr + 4, *end = svg.ptr + svg.len, *done = at;
    const size_t place = out->len;
    kl_buf_printf(out, "<svg role=\"img\" aria-label=\"");
    kli_text(out, alt);
    kl_buf_printf(out, "\"");
    while (at < end) {
        const char *name = NULL, *light = NULL, *mark = after_mark(at), *next = mark;
        const char *title = mark ? NULL : after_title(at, end);
        const bool quoted = at[-1] == '"' || at[-1] == '\'';
        if (!next) next = title ? title : quoted ? figure_colour(at, &name, &light) : NULL;
        if (!next) {
            at++;
            continue;
        }
        kl_buf_add(out, (kl_str){done, (size_t)((mark ? mark : at) - done)});
        if (mark) kl_buf_printf(out, "f%zu-", place);
        if (name) kl_buf_printf(out, "var(--%s,%s)", name, light);
        at = done = next;
    }
    kl_buf_add(out, (kl_str){done, (size_t)(end - done)});
}

/* The next SVG of what gnuplot said. */
static kl_str next_svg(kl_str *said) {
    const char *at = said->len ? memmem(said->ptr, said->len, "<svg", 4) : NULL;
    const char *end = at ? memmem(at, said->len - (size_t)(at - said->ptr), "</svg>", 6) : NULL;
    if (!end) return KL_S("");
    end += 6;
    *said = (kl_str){end, said->len - (size_t)(end - said->ptr)};
    return (kl_str){at, (size_t)(end - at)};
}

static void add_terminal(kl_buf *out, int width, int height) {
    kl_buf_printf(out,
                  "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,%d' background "
                  "'%s'\n",
                  width, height, width == WIDE ? 14 : 12, kli_colour("page"));
}

/* Both sizes by one gnuplot; empty when that failed. */
static kl_str drawn(kl_arena *a, const kli_figure *g) {
    const char *argv[] = {"gnuplot", "-d", "-", NULL}; /* -d: nobody's own settings */
    kl_buf script = {0};
    kli_proc_result r = {0};
    add_terminal(&script, WIDE, g->wide);
    kl_buf_add(&script, kl_buf_str(&g->script));
    add_terminal(&script, NARROW, g->narrow);
    kl_buf_printf(&script, "replot\n");
    kli_proc_spec spec = {.argv = argv,
                          .input = kl_buf_str(&script),
                          .timeout_ns = FIGURE_SECONDS * INT64_C(1000000000),
                          .max_output = 16u << 20};
    const bool ran = kli_proc_run(&r, a, &spec, kl_ignored()) == KL_OK && r.exit_code == 0;
    kl_buf_fini(&script);
    return ran ? r.out : KL_S("");
}

void kli_figure_draw(kl_buf *out, kl_arena *a, kli_figure *g, const char *caption) {
    const bool there = kli_fs_find_program(a, "gnuplot").len != 0;
    const kl_str alt = kl_buf_str(&g->alt);
    kl_str said = there ? drawn(a, g) : KL_S("");
    const kl_str wide = next_svg(&said), narrow = next_svg(&said);
    KL_ASSERT(alt.len); /* no picture without words */
    kl_buf_printf(out, "<figure>");
    if (narrow.len) {
        kl_buf_printf(out, "<div class=wide>");
        add_svg(out, wide, alt);
        kl_buf_printf(out, "</div><div class=narrow>");
        add_svg(out, narrow, alt);
        kl_buf_printf(out, "</div>");
    } else {
        kl_buf_printf(out, "<p>");
        kli_text(out, alt);
        kl_buf_printf(out, "</p><p class=note>%s</p>",
                      there ? "gnuplot failed, so this figure is missing."
                            : "gnuplot is not installed, so this figure is missing: apt-get "
                              "install gnuplot-nox.");
    }
    kl_buf_printf(out, "<figcaption>%s</figcaption></figure>\n", caption);
    kl_buf_fini(&g->script);
    kl_buf_fini(&g->alt);
}

void kli_figure_begin(kli_figure *g, int wide, int narrow) {
    *g = (kli_figure){.wide = wide, .narrow = narrow};
    kl_buf_printf(&g->script,
                  "set encoding utf8\nset tmargin 0.6\nset border 1 lc rgb '%s'\nset tics nomirror "
                  "out scale 0.5 "
                  "textcolor rgb '%s'\nset key textcolor rgb '%s'\n",
                  kli_colour("axis"), kli_colour("ink"), kli_colour("ink"));
}

/* ---- bars that lie ----------------------------------------------------------------------- */

#define BAR_HIGH 26       /* of a row, wide */
#define BAR_MARGIN 70     /* for the axis below */
#define MANY_DECADES 2000 /* whose names would touch on a phone */
#define LONG_WORDS 8
#define BAR_ROOM_LONG 0.42
#define BAR_ROOM 0.3 /* of the axis, for the words behind the longest bar */

void kli_figure_bars_begin(kli_figure *g, int n_rows) {
    KL_ASSERT(n_rows > 0);
    const int high = n_rows * BAR_HIGH + BAR_MARGIN;
    kli_figure_begin(g, high, high);
    kl_buf_printf(&g->script, "unset key\nset ytics scale 0\nset yrange [%g:-0.6]\n$d << EOD\n",
                  n_rows - 0.4);
}

void kli_figure_bar(kli_figure *g, kli_bar bar) {
    KL_ASSERT(isfinite(bar.value) && bar.value > 0);
    g->least = g->n_bars && g->least < bar.low ? g->least : bar.low;
    g->most = g->n_bars && g->most > bar.high ? g->most : bar.high;
    g->n_bars++;
    g->has_long_words |= strlen(bar.words) >= LONG_WORDS;
    kl_buf_printf(&g->script, "%d %.6g %.6g %.6g 0x%s \"%s\" \"%s\"\n", bar.row, bar.value, bar.low,
                  bar.high, kli_colour(bar.told ? "bar" : "flat") + 1, bar.name, bar.words);
}

/* Names below it are paler then. */
void kli_figure_bar_heading(kli_figure *g, int row, const char *words) {
    if (!g->headings.len)
        kl_buf_printf(&g->headings, "set ytics textcolor rgb '%s'\n", kli_colour("soft"));
    kl_buf_printf(&g->headings,
                  "set label \"%s\" at graph 0,first %d right offset -1,0 textcolor rgb '%s'\n",
                  words, row, kli_colour("ink"));
}

/* From `origin` to the value; an axis of factors is logarithmic. */
void kli_figure_bars_end(kli_figure *g, double origin, bool factors, const char *axis) {
    const double room = g->has_long_words ? BAR_ROOM_LONG : BAR_ROOM;
    const double low = factors ? fmin(g->least, 1) : 0, high = fmax(g->most, 1);
    const double top =
        factors ? high * pow(fmax(high / low, 2), room / (1 - room)) : high / (1 - room);
    KL_ASSERT(g->n_bars > 0 && top > low);
    kl_buf_printf(&g->script, "EOD\n%.*s", KL_STR_ARG(kl_buf_str(&g->headings)));
    kl_buf_fini(&g->headings);
    if (factors)
        kl_buf_printf(&g->script, "set logscale x\n%s",
                      top / low > MANY_DECADES ? "set xtics 100\n" : "set xtics autofreq\n");
    kl_buf_printf(&g->script,
                  "set xrange [%g:%g]\nunset mxtics\nset grid x lc rgb '%s' lt 1\n"
                  "set xlabel '%s' textcolor rgb '%s'\n"
                  "set arrow from first 1, graph 0 to first 1, graph 1 nohead dt 2 lc rgb '%s'\n",
                  factors ? low / pow(high / low, 0.04) : 0.0, top, kli_colour("grid"), axis,
                  kli_colour("soft"), kli_colour("soft"));
    kl_buf_printf(
        &g->script,
        "plot $d using 2:1:(%g):2:($1-0.3):($1+0.3):5:ytic(6) with boxxyerror fs solid 1 noborder "
        "lc rgb variable, $d using 3:1:($4-$3):(0) with vectors heads size graph 0.004,90 lc rgb "
        "'%s', $d using ($4>%g?$4:%g):1:7 with labels left offset 0.6,0 textcolor rgb '%s'\n",
        origin, kli_colour("ink"), origin, origin, kli_colour("ink"));
}

/* ---- a lineage --------------------------------------------------------------------------- */

/* Gains were timed interleaved, state against state; times of states were not: on a busy machine
 * these drift by more than an edge gains. */
static bool has_every_gain(const kl_lineage *l) {
    for (int i = 0; i < l->n_edges; i++)
        if (!(l->edges[i].gain > 0) || !(l->edges[i].gain_low > 0)) return false;
    return true;
}

kli_span kli_lineage_speed(const kl_lineage *l, int state) {
    double speed = 1, error = 0;
    const kl_state *s = &l->states[state];
    KL_ASSERT(state < l->n_states);
    if (!has_every_gain(l)) return (kli_span){s->ratio, s->low, s->high};
    for (int i = 0; i < state; i++) {
        const kl_edge *d = &l->edges[i];
        const double half = log(d->gain_high / d->gain_low) / 2;
        speed *= d->gain;
        error += half * half; /* errors of the factors are independent */
    }
    return (kli_span){speed, speed / exp(sqrt(error)), speed * exp(sqrt(error))};
}

bool kli_lineage_by_gain(const kl_lineage *l) { return has_every_gain(l); }

static kl_str action_of(kl_str action) {
    const kl_str other = KL_S("other:");
    return kl_str_starts(action, other) ? (kl_str){action.ptr + other.len, action.len - other.len}
                                        : action;
}

static const char *state_label(kl_arena *a, const kl_lineage *l, int i) {
    const kl_str action = i ? action_of(l->edges[i - 1].action) : kl_str_of(kli_simplest(l));
    return kli_figure_label(a, kl_arena_printf(a, "%.24s", kl_arena_copy(a, action).ptr));
}

static const char *edge_words(kl_arena *a, const kl_edge *d) {
    if (!d || !(d->gain > 0)) return "";
    if (d->call == KL_DECISION_UNDECIDED) return "undecided";
    if (d->call == KL_DECISION_SAME) return "same";
    return kl_arena_printf(a, "%.3g \xc3\x97", d->gain).ptr;
}

static void lineage_bar(kli_figure *g, kl_arena *a, const kl_lineage *l, int i, int row) {
    const kl_edge *d = i ? &l->edges[i - 1] : NULL;
    const kli_span v = kli_lineage_speed(l, i);
    const kli_bar bar = {
        row, v.ratio, v.low, v.high, d ? d->pays : true, state_label(a, l, i), edge_words(a, d)};
    kli_figure_bar(g, bar);
    kl_buf_printf(&g->alt, "%s %s: %.3g", row ? "," : "", bar.name, v.ratio);
    if (*bar.words) kl_buf_printf(&g->alt, " (this step %s)", bar.words);
}

static int n_speeds(const kl_lineage *l) {
    int n = 0;
    for (int i = 0; i < l->n_states; i++) n += kli_lineage_speed(l, i).ratio > 0;
    return n;
}

void kli_figure_lineage(kl_buf *out, kl_arena *a, const kl_lineage *l) {
    const bool gains = has_every_gain(l);
    const int n = n_speeds(l);
    kli_figure g;
    int row = 0;
    if (n < 2) return; /* one bar shows nothing */
    kli_figure_bars_begin(&g, n);
    kl_buf_printf(&g.alt, "Speed of %d states over %s:", n, gains ? "K0" : "the baseline");
    for (int i = 0; i < l->n_states; i++)
        if (kli_lineage_speed(l, i).ratio > 0) lineage_bar(&g, a, l, i, row++);
    kli_figure_bars_end(&g, 1, true, gains ? "speed over K0" : "speed over the baseline");
    kli_figure_draw(out, a, &g,
                    gains
                        ? "Speed of every state over the simplest, which is on top: the product "
                          "of the edges' gains, each timed interleaved with the state before. A "
                          "name is the optimization that led to the state, a number what that "
                          "step alone gained; grey steps were not measurably faster."
                        : "Speed of every state over the baseline, the simplest on top. A name is "
                          "the optimization that led to the state, a number what that step "
                          "alone gained; grey steps were not measurably faster.");
}
