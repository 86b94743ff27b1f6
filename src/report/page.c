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

static const char style[] =
    "<style>\n"
    "body{font:16px/1.5 "
    "system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:56rem;margin:0 "
    "auto;padding:1rem}\n"
    "h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px "
    "solid "
    "#ccc}h3{font-size:1.05rem}\n"
    "table{border-collapse:collapse;width:100%;font-size:.88rem}th,td{text-align:left;padding:."
    "25rem "
    ".5rem;border-bottom:1px solid #e3e3e3;vertical-align:top}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.scroll{"
    "overflow-x:auto}\n"
    "figure{margin:1rem 0}figure "
    "svg{max-width:100%;height:auto}figcaption,.note,.missing{color:#555;font-size:.88rem}\n"
    "a{color:#1f5a96}code,pre{font:.85rem/1.4 "
    "ui-monospace,monospace}pre{overflow-x:auto;background:#f6f6f6;padding:.6rem;white-space:pre-"
    "wrap}\n"
    "details{margin:.4rem "
    "0}summary{cursor:pointer}.yes{color:#1b6e3c}.no{color:#9a2c2c}:target{background:#fff6d6}\n"
    "@media "
    "print{details>*{display:block}a{color:inherit;text-decoration:none}h2{break-after:avoid}"
    "figure,tr{break-inside:"
    "avoid}}\n"
    "</style>\n";

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

static void interval_cell(kl_buf *out, const kli_facts *f, kl_str key, double v, double low,
                          double high) {
    char number[80];
    snprintf(number, sizeof number, "%.3g \xc3\x97 [%.3g, %.3g]", v, low, high);
    kl_buf_printf(out, "<td class=n>");
    if (v > 0)
        kli_link_verdict(out, f, key, kl_str_of(number));
    else
        kl_buf_printf(out, "&ndash;");
    kl_buf_printf(out, "</td>");
}

void kli_page_section(kl_buf *out, const char *id, const char *title) {
    kl_buf_printf(out, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

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
    if (r->solved)
        return interval_cell(out, f, r->timed ? r->end->verdict : r->best->verdict, r->gain.ratio,
                             r->gain.low, r->gain.high);
    kl_buf_printf(out, "<td class=n>");
    if (r->never_asked)
        kl_buf_printf(out, "never asked");
    else if (r->call == KL_DECISION_UNDECIDED)
        kli_link_verdict(
            out, f, r->timed ? r->end->verdict : r->best->verdict,
            kl_arena_printf(a, "not measurable [%.3g, %.3g]", r->gain.low, r->gain.high));
    else
        kl_buf_printf(out, "1 &times;");
    kl_buf_printf(out, "</td>");
}

static void result_row(kl_buf *out, kl_arena *a, const kli_facts *f, const kli_track_rows *t) {
    kli_result r;
    kli_result_of(&r, a, f, t);
    const kli_row *best = r.shown, *first = t->n_rows ? &t->rows[0] : NULL;
    bool estimated;
    int64_t spent = kli_track_spent(f, t, &estimated);
    int passed = 0, proposed = 0;
    for (int i = 1; i < t->n_rows; i++) {
        if (!kli_is_proposal(&t->rows[i])) continue;
        proposed++;
        passed += kl_str_eq(t->rows[i].outcome, KL_S("pass"));
    }
    kl_buf_printf(out, "<tr>");
    page_cell(out, t->workload);
    page_cell(out, t->policy);
    page_cell(out, page_rival_of(f, best ? best : first));
    interval_cell(out, f, first ? first->verdict : KL_S(""), first ? first->ratio : 0,
                  first ? first->low : 0, first ? first->high : 0);
    interval_cell(out, f, best ? best->verdict : KL_S(""), best ? best->ratio : 0,
                  best ? best->low : 0, best ? best->high : 0);
    gain_cell(out, a, f, &r);
    kl_buf_printf(out, "<td class=n>%d of %d</td><td class=n>$%.4f%s</td></tr>\n", passed, proposed,
                  (double)spent / 1e6, estimated ? " est." : "");
}

static void results(kl_buf *out, kl_arena *a, const kli_facts *f) {
    int n = 0;
    for (int i = 0; i < f->n_tracks; i++) n += kli_is_search(&f->tracks[i]);
    if (!n) return;
    kli_page_section(out, "results", "Results");
    kl_buf_printf(
        out, "<div class=scroll><table><tr><th>task<th>policy<th>against<th class=n>start<th "
             "class=n>best<th class=n>over the start<th class=n>correct<th class=n>spent</tr>\n");
    for (int i = 0; i < f->n_tracks; i++)
        if (kli_is_search(&f->tracks[i])) result_row(out, a, f, &f->tracks[i]);
    kl_buf_printf(
        out, "</table></div>\n<p class=note>Speed over the kernel under <em>against</em>: the "
             "task's primary baseline, or the start if no baseline is available; above 1 is "
             "faster. <em>Over the start</em>: both timed side by side at the end; a best that "
             "was not measurably faster is shown as the start. Every ratio links to its "
             "verdict; dollars are the track's sum in the ledger below.</p>\n");
    if (n > 1) return; /* several are drawn side by side, in the comparison */
    kli_figure_bars(out, a, f);
    for (int i = 0; i < f->n_tracks; i++)
        if (kli_is_search(&f->tracks[i])) kli_figure_cost(out, a, f, f->tracks[i].workload);
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
    kl_buf_printf(out, "<tr>");
    page_cell(out, s->name);
    page_cell(out, d ? d->action : kl_str_of(kli_simplest(l)));
    interval_cell(out, f, d ? d->gain_verdict_key : KL_S(""), d ? d->gain : 0, d ? d->gain_low : 0,
                  d ? d->gain_high : 0);
    interval_cell(out, f, d ? d->recovered_verdict_key : KL_S(""), d ? d->recovered : 0,
                  d ? d->recovered_low : 0, d ? d->recovered_high : 0);
    interval_cell(out, f, s->verdict_key, s->ratio, s->low, s->high);
    kl_buf_printf(out, "<td>");
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
        kl_buf_printf(
            out, "<div class=scroll><table><tr><th>state<th>action<th class=n>gain over the state "
                 "before<th class=n>re-derived<th class=n>against the baseline<th>where</tr>\n");
        for (int j = 0; j < l->n_states; j++) state_row(out, f, l, j);
        kl_buf_printf(out, "</table></div>\n<p class=note>A gain links to the verdict in which the "
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
                  c->status == KL_CARD_ADMITTED ? "yes" : "no", kl_card_status_name(c->status),
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
    kl_buf_printf(out, "<td class=%s>", r->accepted ? "yes" : "no");
    if (r->verdict.len)
        kli_link_verdict(out, f, r->verdict, r->outcome);
    else
        kli_text(out, r->outcome);
    kl_buf_printf(out, "%s</td>", r->best ? ", best" : r->accepted ? ", accepted" : "");
    page_cell(out, r->ratio > 0 ? page_rival_of(f, r) : KL_S(""));
    interval_cell(out, f, r->verdict, r->ratio, r->low, r->high);
    kl_buf_printf(out, "<td class=n>$%.4f</td>", (double)r->spent_microusd / 1e6);
    page_cell(out, (kl_str){r->why.ptr, r->why.len < 300 ? r->why.len : 300});
    kl_buf_printf(out, "</tr>\n");
}

static void steps(kl_buf *out, const kli_facts *f) {
    if (f->n_tracks) kli_page_section(out, "steps", "Every attempt");
    for (int i = 0; i < f->n_tracks; i++) {
        const kli_track_rows *t = &f->tracks[i];
        kl_buf_printf(out, "<details><summary>");
        kli_text(out, t->name);
        kl_buf_printf(out,
                      ": %d attempts</summary><div class=scroll><table><tr><th "
                      "class=n>#<th>phase<th>action<th>outcome<th>against<th class=n>ratio<th "
                      "class=n>spent<th>why</tr>\n",
                      t->n_rows);
        for (int j = 0; j < t->n_rows; j++) step_row(out, f, &t->rows[j], j);
        kl_buf_printf(out, "</table></div></details>\n");
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
    kl_buf_printf(out, "<details><summary>every call</summary><div "
                       "class=scroll><table><tr><th>track<th>phase<th>priced as<th "
                       "class=n>input<th class=n>cached<th class=n>written<th class=n>output<th "
                       "class=n>cost<th>state</tr>\n");
    for (int i = 0; i < f->n_charges; i++) charge_row(out, &f->charges[i]);
    kl_buf_printf(out, "</table></div></details>\n");
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
    kl_buf_printf(out, "<ul>\n");
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

static void page_page(kl_buf *out, kl_arena *a, const kli_facts *f, const char *title) {
    kli_results r;
    kl_buf_printf(out,
                  "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
                  "content=\"width=device-width,initial-scale=1\">\n<title>");
    kli_text(out, kl_str_of(title));
    kl_buf_printf(out, "</title>\n%s</head><body>\n<h1>", style);
    kli_text(out, kl_str_of(title));
    kl_buf_printf(
        out, "</h1>\n<p>Every kernel on this page was compiled, checked against a trusted oracle "
             "and timed interleaved with its comparison kernel. "
             "A run whose model begins with <code>replay</code> repeats recorded proposals; its "
             "measurements are from this machine.</p>\n");
    run_lines(out, f);
    kli_results_of(&r, a, f);
    if (r.n_tracks > 1) kli_comparison(out, a, &r); /* who has many looks for the summary first */
    results(out, a, f);
    if (r.n_tracks == 1) kli_comparison(out, a, &r);
    kli_best_kernels(out, a, &r);
    lineages(out, a, f);
    cards(out, a, f);
    kli_matrix(out, a, f);
    steps(out, f);
    page_ledger(out, f);
    page_evidence(out, a, f);
    kl_buf_printf(out, "</body></html>\n");
}

kl_err kl_report_write(kl_buf *html, kl_store *s, const kl_report_opts *o, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kli_facts *f = KL_NEW(a, kli_facts);
    kl_err err = kli_facts_load(f, a, s, o, e);
    if (!err) page_page(html, a, f, o->title ? o->title : "klineage report");
    kl_arena_free(a);
    return err;
}
