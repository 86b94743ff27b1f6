/* page.c - the page: results first, then how they came about, then the evidence that every number
 * links to.
 *
 * Plain HTML with one style sheet inside: no script, nothing fetched, readable on paper and on a
 * phone.  All text from kernels, models and files is escaped (law 7).  SPDX-License-Identifier:
 * Apache-2.0 */
#include "report_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include <stdio.h>
#include <string.h>

/* ---- words ------------------------------------------------------------------------------- */

void kli_text(kl_buf *out, kl_str s) {
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '&')
            kl_buf_printf(out, "&amp;");
        else if (c == '<')
            kl_buf_printf(out, "&lt;");
        else if (c == '>')
            kl_buf_printf(out, "&gt;");
        else if (c == '"')
            kl_buf_printf(out, "&quot;");
        else if (c == '\'')
            kl_buf_printf(out, "&#39;");
        else if (c >= 0x20 || c == '\n' || c == '\t')
            kl_buf_add(out, (kl_str){s.ptr + i, 1});
    }
}

void kli_link_verdict(kl_buf *out, const kli_facts *f, kl_str key, kl_str number) {
    bool here = kli_facts_verdict(f, key) != NULL;
    KL_ASSERT(!here || key.len == 64); /* a key of the store is 64 hexadecimal digits */
    if (here)
        kl_buf_printf(out, "<a href=\"#v-%.16s\">", key.ptr);
    else
        kl_buf_printf(out, "<span class=missing title=\"not in this journal: verdict ");
    if (!here) kli_text(out, key.len ? key : KL_S("of no name"));
    if (!here) kl_buf_printf(out, "\">");
    kli_text(out, number);
    kl_buf_printf(out, here ? "</a>" : "</span>");
}

static void page_cell(kl_buf *out, kl_str s) {
    kl_buf_printf(out, "<td>");
    kli_text(out, s);
    kl_buf_printf(out, "</td>");
}

static void interval(kl_buf *out, const kli_facts *f, kl_str key, double v, double low,
                     double high) {
    kl_arena *a = kl_arena_new();
    if (v > 0)
        kli_link_verdict(out, f, key, kli_ratio_text(a, (kli_span){v, low, high}));
    else
        kl_buf_printf(out, "&ndash;");
    kl_arena_free(a);
}

static void interval_cell(kl_buf *out, const kli_facts *f, kl_str key, double v, double low,
                          double high) {
    kl_buf_printf(out, "<td class=n>");
    interval(out, f, key, v, low, high);
    kl_buf_printf(out, "</td>");
}

static void row_interval(kl_buf *out, const kli_facts *f, const kli_row *r) {
    kl_buf_printf(out, "<td class=n>");
    interval(out, f, r ? r->verdict : KL_S(""), r ? r->ratio : 0, r ? r->low : 0, r ? r->high : 0);
    kl_buf_printf(out, "</td>");
}

void kli_page_section(kl_buf *out, const char *id, const char *title) {
    kl_buf_printf(out, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

/* What is wider than the page scrolls, by keyboard too. */
void kli_table_begin(kl_buf *out, kl_str label, const char *const *heads, int n) {
    kl_buf_printf(out, "<div class=scroll role=region tabindex=0 aria-label=\"");
    kli_text(out, label);
    kl_buf_printf(out, "\"><table><thead><tr>");
    for (int i = 0; i < n; i++) {
        const bool number = heads[i][0] == '>';
        kl_buf_printf(out, number ? "<th scope=col class=n>" : "<th scope=col>");
        kli_text(out, kl_str_of(heads[i] + number));
        kl_buf_printf(out, "</th>");
    }
    kl_buf_printf(out, "</tr></thead><tbody>\n");
}

void kli_table_end(kl_buf *out) { kl_buf_printf(out, "</tbody></table></div>\n"); }

#define TABLE_BEGIN(out, label, heads) kli_table_begin(out, label, heads, (int)KL_COUNT(heads))

/* ---- results ----------------------------------------------------------------------------- */

/* What the ratios of a track are ratios to: the task's primary baseline, or the start where it has
 * none here. */
static kl_str page_rival_of(const kli_facts *f, const kli_row *row) {
    const kl_verdict *v = row ? kli_facts_verdict(f, row->verdict) : NULL;
    if (!v || !v->n_comparisons) return KL_S("");
    return kl_str_eq(v->comparisons[0].baseline, KL_S("candidate")) ? KL_S("itself")
                                                                    : v->comparisons[0].baseline;
}

/* The first row is the start; a reference and the end are no proposals. */
static void gain_cell(kl_buf *out, kl_arena *a, const kli_facts *f, const kli_result *r) {
    const kl_str key = r->timed ? r->end->verdict : r->best ? r->best->verdict : KL_S("");
    kl_buf_printf(out, "<td class=n>");
    if (r->solved)
        interval(out, f, key, r->gain.ratio, r->gain.low, r->gain.high);
    else if (r->never_asked)
        kl_buf_printf(out, "never asked");
    else if (r->call == KL_DECISION_UNDECIDED)
        kli_link_verdict(out, f, key,
                         kl_arena_printf(a, "undecided [%.3g, %.3g]", r->gain.low, r->gain.high));
    else
        kl_buf_printf(out, "1 &times;");
    kl_buf_printf(out, "</td>");
}

static void counts_cells(kl_buf *out, const kli_facts *f, const kli_result *r,
                         const char *between) {
    bool estimated;
    const int64_t spent = kli_track_spent(f, r->rows, &estimated);
    kl_buf_printf(out, "<td class=n>%d of %d</td>%s<td class=n>$%.4f%s</td>", r->outcomes[KLI_PASS],
                  r->proposals, between, (double)spent / 1e6, estimated ? " est." : "");
}

/* Every trial of the runs, those that have not begun too. */
static void result_row(kl_buf *out, kl_arena *a, const kli_facts *f, const kli_track_rows *t) {
    kli_result r;
    kli_result_of(&r, a, f, t);
    const kli_row *first = t->n_rows ? &t->rows[0] : NULL;
    kl_buf_printf(out, "<tr><th scope=row>");
    kli_text(out, t->workload);
    kl_buf_printf(out, "</th>");
    row_interval(out, f, r.shown);
    page_cell(out, page_rival_of(f, r.shown ? r.shown : first));
    gain_cell(out, a, f, &r);
    page_cell(out, t->policy);
    counts_cells(out, f, &r, "");
    row_interval(out, f, first);
    kl_buf_printf(out, "</tr>\n");
}

static void fact(kl_buf *out, const char *what, kl_str of) {
    kl_buf_printf(out, "</tr>\n<tr><th scope=row>%s", what);
    kli_text(out, of);
    kl_buf_printf(out, "</th>");
}

/* One trial is no table of trials: its numbers stand below each other. */
static void one_result(kl_buf *out, kl_arena *a, const kli_facts *f, const kli_track_rows *t) {
    kli_result r;
    kli_result_of(&r, a, f, t);
    const kl_str rival = page_rival_of(f, r.shown);
    kl_buf_printf(out, "<table class=facts><tbody><tr><th scope=row>policy</th>");
    page_cell(out, t->policy);
    fact(out, "best, over ", rival.len ? rival : KL_S("the baseline"));
    row_interval(out, f, r.shown);
    fact(out, "best, over the start", KL_S(""));
    gain_cell(out, a, f, &r);
    fact(out, "start, over ", rival.len ? rival : KL_S("the baseline"));
    row_interval(out, f, t->n_rows ? &t->rows[0] : NULL);
    fact(out, "correct proposals", KL_S(""));
    counts_cells(out, f, &r, "</tr>\n<tr><th scope=row>spent</th>");
    kl_buf_printf(out, "</tr></tbody></table>\n");
}

static void all_results(kl_buf *out, kl_arena *a, const kli_facts *f) {
    static const char *const heads[] = {"task",   ">best",    "against", ">over the start",
                                        "policy", ">correct", ">spent",  ">start"};
    TABLE_BEGIN(out, KL_S("Every trial"), heads);
    for (int i = 0; i < f->n_tracks; i++)
        if (kli_is_search(&f->tracks[i])) result_row(out, a, f, &f->tracks[i]);
    kli_table_end(out);
}

static void results(kl_buf *out, kl_arena *a, const kli_facts *f) {
    const kli_track_rows *one = NULL;
    int n = 0;
    for (int i = 0; i < f->n_tracks; i++)
        if (kli_is_search(&f->tracks[i])) one = &f->tracks[i], n++;
    if (!n) return;
    kli_page_section(out, "results", n > 1 ? "Every trial" : "The trial");
    n > 1 ? all_results(out, a, f) : one_result(out, a, f, one);
    kl_buf_printf(out,
                  "<p class=note>Speed over the task's primary baseline, or over the start if no "
                  "baseline is available; above 1 is faster. <em>Over the start</em>: both timed "
                  "side by side at the end; a best that "
                  "was not measurably faster is shown as the start. Every ratio links to its "
                  "verdict; dollars are the track's sum in the ledger below.</p>\n");
}

/* ---- lineages ---------------------------------------------------------------------------- */

static void rejections(kl_buf *out, const kl_rejection *r, int n) {
    if (!n) return;
    kl_buf_printf(out, "<details><summary>%d rejected attempts</summary><ul>", n);
    for (int i = 0; i < n; i++) {
        kl_buf_printf(out, "<li>");
        kli_text(out, r[i].stage);
        kl_buf_printf(out, ": ");
        kli_text(out, r[i].action);
        kl_buf_printf(out, " &mdash; ");
        kli_text(out, r[i].symptom);
    }
    kl_buf_printf(out, "</ul></details>");
}

static void state_row(kl_buf *out, const kli_facts *f, const kl_lineage *l, int i) {
    const kl_state *s = &l->states[i];
    const kl_edge *d = i ? &l->edges[i - 1] : NULL;
    kl_buf_printf(out, "<tr><th scope=row>");
    kli_text(out, s->name);
    kl_buf_printf(out, "<br><span class=so>");
    kli_text(out, d ? d->action : kl_str_of(kli_simplest(l)));
    kl_buf_printf(out, "</span></th><td class=n>");
    interval(out, f, d ? d->gain_verdict_key : KL_S(""), d ? d->gain : 0, d ? d->gain_low : 0,
             d ? d->gain_high : 0);
    if (d && !d->pays)
        kl_buf_printf(out, "<br><span class=so>%s</span>", kl_decision_name(d->call));
    kl_buf_printf(out, "</td>");
    interval_cell(out, f, d ? d->recovered_verdict_key : KL_S(""), d ? d->recovered : 0,
                  d ? d->recovered_low : 0, d ? d->recovered_high : 0);
    interval_cell(out, f, s->verdict_key, s->ratio, s->low, s->high);
    kl_buf_printf(out, "<td class=w>");
    if (d) kli_text(out, d->locus);
    if (d) rejections(out, d->rejections, d->n_rejections);
    kl_buf_printf(out, "</td></tr>\n");
}

static void sources(kl_buf *out, const kl_lineage *l) {
    for (int i = 0; i < l->n_states; i++) {
        kl_buf_printf(out, "<details><summary>");
        kli_text(out, l->states[i].name);
        kl_buf_printf(out, i ? ": the forward edit that leads to it</summary><pre>"
                             : ": the whole kernel</summary><pre>");
        kli_text(out, i ? l->edges[i - 1].forward : l->states[i].source);
        kl_buf_printf(out, "</pre></details>\n");
    }
}

static void lineages(kl_buf *out, kl_arena *a, const kli_facts *f) {
    static const char *const heads[] = {"state", ">gain over the state before", ">re-derived",
                                        ">against the baseline", "where"};
    if (f->n_lineages) kli_page_section(out, "lineages", "Lineages");
    for (int i = 0; i < f->n_lineages; i++) {
        const kl_lineage *l = &f->lineages[i];
        kl_buf_printf(out, "<h3>");
        kli_text(out, l->name);
        kl_buf_printf(out, "</h3>\n<p>");
        kli_text(out,
                 kl_arena_printf(
                     a,
                     "%.*s, %.*s on %.*s; proposals by %.*s; the walk ended: %s (%.*s). id %.12s",
                     KL_STR_ARG(l->task), KL_STR_ARG(l->surface), KL_STR_ARG(l->platform),
                     KL_STR_ARG(l->model), kl_termination_name(l->termination),
                     KL_STR_ARG(l->termination_why), l->id.ptr));
        kl_buf_printf(out, "</p>\n");
        kli_figure_lineage(out, a, l);
        TABLE_BEGIN(out, KL_S("States of the lineage"), heads);
        for (int j = 0; j < l->n_states; j++) state_row(out, f, l, j);
        kli_table_end(out);
        kl_buf_printf(out, "<p class=note>A gain links to the verdict in which the "
                           "state before was timed against this one, so the ratio there is its "
                           "inverse. <em>Re-derived</em> is the speed of the kernel that a model "
                           "derived from the state before, over this one; empty where it is the "
                           "same kernel or the edge is not profitable.</p>\n");
        sources(out, l);
    }
}

/* ---- cards ------------------------------------------------------------------------------- */

static void one_card(kl_buf *out, kl_arena *a, const kl_card *c) {
    kl_str text = {0};
    if (kli_fs_read(&text, a, kli_fs_join(a, c->folder.ptr, "SKILL.md").ptr, KL_MAX_CARD_BYTES,
                    kl_ignored()))
        text = KL_S("(no longer available)");
    kl_buf_printf(out, "<details><summary><strong>");
    kli_text(out, c->name);
    kl_buf_printf(out, "</strong> <span class=%s>%s</span>, expected %.3g &times;%s</summary><p>",
                  c->status == KL_CARD_ADMITTED ? "yes" : "so", kl_card_status_name(c->status),
                  c->expected_gain, c->edited ? ", edited by hand: not used" : "");
    kli_text(out, c->description);
    kl_buf_printf(out, "</p><pre>");
    kli_text(out, text);
    kl_buf_printf(out, "</pre></details>\n");
}

static void cards(kl_buf *out, kl_arena *a, const kli_facts *f) {
    if (!f->has_library || !f->library->n_cards) return;
    kli_page_section(out, "cards", "SkillCards");
    for (int i = 0; i < f->library->n_cards; i++) one_card(out, a, &f->library->cards[i]);
}

/* ---- steps ------------------------------------------------------------------------------- */

static void step_row(kl_buf *out, const kli_facts *f, const kli_row *r, int n) {
    kl_buf_printf(out, "<tr><td class=n>%d</td>", n);
    page_cell(out, r->phase);
    page_cell(out, r->action);
    kl_buf_printf(out, "<td class=%s>", r->accepted ? "yes" : "so");
    if (r->verdict.len)
        kli_link_verdict(out, f, r->verdict, r->outcome);
    else
        kli_text(out, r->outcome);
    kl_buf_printf(out, "%s</td>", r->best ? ", best" : r->accepted ? ", accepted" : "");
    page_cell(out, r->ratio > 0 ? page_rival_of(f, r) : KL_S(""));
    interval_cell(out, f, r->verdict, r->ratio, r->low, r->high);
    kl_buf_printf(out, "<td class=n>$%.4f</td>", (double)r->spent_microusd / 1e6);
    kl_buf_printf(out, "<td class=w>");
    kli_text(out, (kl_str){r->why.ptr, r->why.len < 300 ? r->why.len : 300});
    kl_buf_printf(out, "</td></tr>\n");
}

static void steps(kl_buf *out, const kli_facts *f) {
    static const char *const heads[] = {">#",      "phase",  "action", "outcome",
                                        "against", ">ratio", ">spent", "why"};
    if (f->n_tracks) kli_page_section(out, "steps", "Every attempt");
    for (int i = 0; i < f->n_tracks; i++) {
        const kli_track_rows *t = &f->tracks[i];
        kl_buf_printf(out, "<details><summary>");
        kli_text(out, t->name);
        kl_buf_printf(out, ": %d attempts</summary>", t->n_rows);
        TABLE_BEGIN(out, t->name, heads);
        for (int j = 0; j < t->n_rows; j++) step_row(out, f, &t->rows[j], j);
        kli_table_end(out);
        kl_buf_printf(out, "</details>\n");
    }
}

/* ---- money ------------------------------------------------------------------------------- */

static void charge_row(kl_buf *out, const kl_store_charge *c) {
    kl_buf_printf(out, "<tr>");
    page_cell(out, c->track);
    page_cell(out, c->phase);
    page_cell(out, c->priced_as.len ? c->priced_as : c->model);
    bool answered = kl_str_eq(c->state, KL_S("settled"));
    kl_buf_printf(
        out,
        "<td class=n>%lld</td><td class=n>%lld</td><td class=n>%lld</td><td class=n>%lld</td><td "
        "class=n>%s$%.6f%s</td>",
        (long long)c->input, (long long)c->cache_read,
        (long long)(c->cache_write_5m + c->cache_write_1h), (long long)c->output,
        answered || !kli_cost_of(c) ? "" : "up to ", (double)kli_cost_of(c) / 1e6,
        c->estimated ? " est." : "");
    page_cell(out, c->state);
    kl_buf_printf(out, "</tr>\n");
}

static void page_ledger(kl_buf *out, const kli_facts *f) {
    static const char *const heads[] = {"track",    "phase",   "priced as", ">input", ">cached",
                                        ">written", ">output", ">cost",     "state"};
    int64_t spent = 0, unknown = 0;
    int calls = 0, unanswered = 0;
    bool estimated = false;
    for (int i = 0; i < f->n_charges; i++) {
        const kl_store_charge *c = &f->charges[i];
        bool answered = kl_str_eq(c->state, KL_S("settled")),
             released = kl_str_eq(c->state, KL_S("released"));
        calls += answered;
        unanswered += !answered && !released;
        *(answered ? &spent : &unknown) += kli_cost_of(c);
        estimated |= c->estimated;
    }
    kli_page_section(out, "ledger", "Ledger");
    kl_buf_printf(out, "<p>%d model calls, $%.4f.", calls, (double)spent / 1e6);
    if (unanswered)
        kl_buf_printf(
            out, " %d more without an answer, up to $%.4f, counted in full against the budget.",
            unanswered, (double)unknown / 1e6);
    kl_buf_printf(out, "%s</p>\n",
                  estimated ? " Calls marked <em>est.</em> were estimated from bytes, because the "
                              "provider did not report tokens."
                            : "");
    if (!f->n_charges) return;
    kl_buf_printf(out, "<details><summary>every call</summary>");
    TABLE_BEGIN(out, KL_S("Every call"), heads);
    for (int i = 0; i < f->n_charges; i++) charge_row(out, &f->charges[i]);
    kli_table_end(out);
    kl_buf_printf(out, "</details>\n");
}

/* ---- evidence ---------------------------------------------------------------------------- */

static void verdict(kl_buf *out, kl_arena *a, kl_str key, const kl_verdict *v) {
    kl_buf text = {0};
    json_t *o = kl_verdict_json(v);
    kl_verdict_render(v, &text, false);
    kl_buf_printf(out, "<details id=\"v-%.16s\"><summary><code>%.16s</code> %s", key.ptr, key.ptr,
                  kl_outcome_name(v->outcome));
    if (v->n_comparisons) kl_buf_printf(out, ", %.4g &times;", v->comparisons[0].ratio);
    kl_buf_printf(out, "</summary><pre>");
    kli_text(out, kl_buf_str(&text));
    kl_buf_printf(out, "</pre><details><summary>JSON</summary><pre>");
    json_object_del(o, "checks"); /* hundreds of lines each; `klineage verdict show` has them */
    kli_text(out, kli_json_dump(a, o, true));
    kl_buf_printf(out, "</pre></details></details>\n");
    json_decref(o);
    kl_buf_fini(&text);
}

static void page_evidence(kl_buf *out, kl_arena *a, const kli_facts *f) {
    if (!f->n_verdicts) return;
    kli_page_section(out, "evidence", "Evidence");
    kl_buf_printf(out, "<p class=note>Every verdict behind a number above; <code>klineage "
                       "verdict show KEY</code> shows it with all checks.</p>\n");
    for (int i = 0; i < f->n_verdicts; i++) verdict(out, a, f->verdict_keys[i], &f->verdicts[i]);
}

/* ---- the page ---------------------------------------------------------------------------- */

static void run_lines(kl_buf *out, const kli_facts *f) {
    kl_buf_printf(out, "<ul class=note>\n");
    for (int i = 0; i < f->n_runs; i++) {
        json_t *o = json_loads(f->runs[i].json.ptr, 0, NULL);
        kl_buf_printf(out, "<li><code>klineage ");
        kli_text(out, f->runs[i].command);
        kl_buf_printf(out, "</code>, run <code>%.12s</code>, %.*s, model <code>", f->runs[i].id.ptr,
                      KL_STR_ARG(f->runs[i].created));
        kli_text(out, kli_json_text_or(o, "model", KL_S("none")));
        kl_buf_printf(out, "</code></li>\n");
        json_decref(o);
    }
    kl_buf_printf(out, "</ul>\n");
}

static void lead(kl_buf *out, kl_arena *a, const kli_results *r) {
    kli_report_cell *lines;
    const int n = kli_summary(&lines, a, r);
    for (int i = 0; i < n; i++) {
        kl_buf_printf(out, i == 0 ? "<p class=lead>" : i == 1 ? "<ul>\n<li>" : "<li>");
        kli_parts_html(out, r->facts, &lines[i]);
        kl_buf_printf(out, i ? "</li>\n" : "</p>\n");
    }
    if (n > 1) kl_buf_printf(out, "</ul>\n");
}

/* The headings of the second level, which no text of a file can look like: it is escaped. */
static void contents(kl_buf *out, kl_str body) {
    static const char begin[] = "<h2 id=\"", end[] = "</h2>";
    kl_buf_printf(out, "<nav aria-label=Contents><ul>\n");
    for (const char *at = body.ptr, *stop = body.ptr + body.len; at < stop;) {
        at = memmem(at, (size_t)(stop - at), begin, strlen(begin));
        if (!at) break;
        at += strlen(begin);
        const char *close = memmem(at, (size_t)(stop - at), end, strlen(end));
        KL_ASSERT(close); /* kli_page_section writes both */
        kl_buf_printf(out, "<li><a href=\"#%.*s</a></li>\n", (int)(close - at), at);
    }
    kl_buf_printf(out, "</ul></nav>\n");
}

static void page_body(kl_buf *out, kl_arena *a, const kli_facts *f, const kli_results *r) {
    if (r->n_tracks > 1) kli_comparison(out, a, r); /* who has many looks for the summary first */
    results(out, a, f);
    if (r->n_tracks == 1) kli_comparison(out, a, r);
    kli_best_kernels(out, a, r);
    lineages(out, a, f);
    cards(out, a, f);
    kli_matrix(out, a, f);
    steps(out, f);
    page_ledger(out, f);
    page_evidence(out, a, f);
}

static void page_head(kl_buf *out, const char *title) {
    kl_buf_printf(out,
                  "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
                  "content=\"width=device-width,initial-scale=1\">\n<title>");
    kli_text(out, kl_str_of(title));
    kl_buf_printf(out, "</title>\n");
    kli_style(out);
    kl_buf_printf(out, "</head><body>\n");
}

static void page_page(kl_buf *out, kl_arena *a, const kli_facts *f, const char *title) {
    kli_results r;
    kl_buf body = {0};
    kli_results_of(&r, a, f);
    page_body(&body, a, f, &r);
    page_head(out, title);
    kl_buf_printf(out, "<header><h1>");
    kli_text(out, kl_str_of(title));
    kl_buf_printf(out, "</h1>\n");
    lead(out, a, &r);
    contents(out, kl_buf_str(&body));
    kl_buf_printf(
        out, "<p class=note>Every kernel on this page was compiled, checked against a trusted "
             "oracle and timed interleaved with its comparison kernel. "
             "A run whose model begins with <code>replay</code> repeats recorded proposals; its "
             "measurements are from this machine. What is folded stays so on paper.</p>\n");
    run_lines(out, f);
    kl_buf_printf(out, "</header>\n<main>\n");
    kl_buf_add(out, kl_buf_str(&body));
    kl_buf_printf(out, "</main></body></html>\n");
    kl_buf_fini(&body);
}

kl_err kl_report_write(kl_buf *html, kl_store *s, const kl_report_opts *o, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kli_facts *f = KL_NEW(a, kli_facts);
    kl_err err = kli_facts_load(f, a, s, o, e);
    if (!err) page_page(html, a, f, o->title ? o->title : "klineage report");
    kl_arena_free(a);
    return err;
}
