/* tables.c - the questions that results answer, one table each, for Markdown and for the page
 * alike.
 *
 * Tables are made from the document alone, so that they can be made again from one that was kept.
 * It may come from elsewhere: what lacks is a dash, indexes are checked, words are data until a
 * face escapes them.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/json.h"
#include <stdio.h>
#include <string.h>

#define TIMES " \xc3\x97"
#define DASH "\xe2\x80\x93"
#define UNEQUAL "\xe2\x89\xa0"

typedef struct kli_document {
    kl_arena *a;
    const json_t *results, *targets, *contenders, *groups, *tracks;
} document;

/* ---- building ---------------------------------------------------------------------------- */

/* A head that begins with '>' is one of numbers. */
static void tables_begin(kli_report_table *t, const document *d, const char *id,
                         const char *question, const char *note, const char *const *heads, int n,
                         size_t rows) {
    *t = (kli_report_table){.from = d,
                            .id = id,
                            .question = question,
                            .note = note,
                            .heads = KL_ARRAY(d->a, kl_str, n),
                            .numbers = KL_ARRAY(d->a, bool, n),
                            .n_columns = n,
                            .most_cells = ((int)rows + 1) * n,
                            .cells = KL_ARRAY(d->a, kli_report_cell, (rows + 1) * (size_t)n)};
    KL_ASSERT(n > 0);
    for (int i = 0; i < n; i++) {
        t->numbers[i] = heads[i][0] == '>';
        t->heads[i] = kl_arena_copy(d->a, kl_str_of(heads[i] + t->numbers[i]));
    }
}

#define BEGIN(t, d, id, question, note, heads, rows)                                               \
    tables_begin(t, d, id, question, note, heads, (int)KL_COUNT(heads), rows)

static void more(kli_report_table *t, kl_str text, kl_str verdict) {
    KL_ASSERT(t->n_cells > 0 && t->n_cells <= t->most_cells);
    kli_part_add(&t->cells[t->n_cells - 1], t->from->a, text, verdict);
}

static void linked(kli_report_table *t, kl_str text, kl_str verdict) {
    t->n_cells++;
    more(t, text, verdict);
}

static void text(kli_report_table *t, kl_str s) { linked(t, s, KL_S("")); }

static void tables_whole(kli_report_table *t, int64_t n) {
    text(t, kl_arena_printf(t->from->a, "%lld", (long long)n));
}

static void tables_count(kli_report_table *t, const json_t *o, const char *key) {
    tables_whole(t, kli_json_int_or(o, key, 0));
}

static void tables_part(kli_report_table *t, const json_t *o, const char *some, const char *all) {
    text(t, kl_arena_printf(t->from->a, "%lld/%lld", (long long)kli_json_int_or(o, some, 0),
                            (long long)kli_json_int_or(o, all, 0)));
}

static kl_str tables_number(const document *d, double v, const char *unit) {
    return v > 0 ? kl_arena_printf(d->a, "%.3g%s", v, unit) : KL_S(DASH);
}

static void percent(kli_report_table *t, const json_t *o, const char *key) {
    double v = kli_json_real_or(o, key, -1);
    text(t, v < 0 ? KL_S(DASH) : kl_arena_printf(t->from->a, "%.0f %%", v * 100));
}

static void money(kli_report_table *t, const json_t *o, const char *key) {
    text(t, kli_dollars(t->from->a, kli_json_int_or(o, key, 0),
                        kli_json_bool_or(o, "estimated", false)));
}

/* ---- reading ----------------------------------------------------------------------------- */

static kl_str label_at(const json_t *list, const json_t *o, const char *key) {
    int64_t i = kli_json_int_or(o, key, -1);
    return kli_json_text_or(i < 0 ? NULL : json_array_get(list, (size_t)i), "label", KL_S("?"));
}

/* The i-th track of a group. */
static const json_t *track_at(const document *d, const json_t *group, size_t i) {
    const json_t *index = json_array_get(json_object_get(group, "tracks"), i);
    json_int_t at = json_is_integer(index) ? json_integer_value(index) : -1;
    return at < 0 ? NULL : json_array_get(d->tracks, (size_t)at);
}

static size_t n_tracks(const json_t *group) {
    return json_array_size(json_object_get(group, "tracks"));
}

/* "1.31 x (1.28-1.35)"; one trial has no spread. */
static kl_str spread(const document *d, const json_t *o, size_t trials) {
    double median = kli_json_real_or(o, "median", 0);
    if (!(median > 0)) return KL_S(DASH);
    if (trials < 2) return tables_number(d, median, TIMES);
    return kl_arena_printf(d->a, "%.3g" TIMES " (%.3g" DASH "%.3g)", median,
                           kli_json_real_or(o, "min", 0), kli_json_real_or(o, "max", 0));
}

/* "1.31 [1.28, 1.35]" */
static kl_str tables_interval(const document *d, const json_t *o) {
    const double ratio = kli_json_real_or(o, "ratio", 0);
    if (!(ratio > 0)) return KL_S(DASH);
    return kl_arena_printf(d->a, "%.3g [%.3g, %.3g]", ratio, kli_json_real_or(o, "low", 0),
                           kli_json_real_or(o, "high", 0));
}

static kl_str tables_verdict_of(const json_t *row) {
    return kli_json_text_or(row, "verdict", KL_S(""));
}

/* What may be called the best of a track; a document of before this key has the last best alone. */
static const json_t *shown_of(const json_t *track) {
    const json_t *shown = json_object_get(track, "shown");
    return json_is_object(shown) ? shown : json_object_get(track, "best");
}

/* The trials' own numbers, each with its interval and its evidence: what the median beside them is
 * made from. */
static void each_ratio(kli_report_table *t, const json_t *group) {
    const document *d = t->from;
    text(t, KL_S(""));
    for (size_t i = 0; i < n_tracks(group); i++) {
        const json_t *track = track_at(d, group, i), *row = shown_of(track);
        if (i) more(t, KL_S(", "), KL_S(""));
        more(t, tables_interval(d, row), tables_verdict_of(row));
        if (kli_json_bool_or(track, "disagrees", false)) more(t, KL_S(" " UNEQUAL), KL_S(""));
    }
}

/* A document of before this key has no floors either: its intervals decide. */
static kl_str call_of(const json_t *track) {
    const json_t *gain = json_object_get(track, "gain");
    const double low = kli_json_real_or(gain, "low", 0), high = kli_json_real_or(gain, "high", 0);
    const bool timed = kli_json_bool_or(track, "gain_timed", false);
    const kl_decision decided =
        timed ? kl_decide(low, high, 0, true) : kl_search_far_apart(low, high);
    const bool start = !timed && low >= 1 && high <= 1; /* the best is the start */
    return kli_json_text_or(track, "call",
                            kl_str_of(kl_decision_name(start ? KL_DECISION_SAME : decided)));
}

/* The same over the start: 1 where nothing proved to be faster, and in words where that could not
 * be told. */
static void each_gain(kli_report_table *t, const json_t *group) {
    const document *d = t->from;
    text(t, KL_S(""));
    for (size_t i = 0; i < n_tracks(group); i++) {
        const json_t *track = track_at(d, group, i), *gain = json_object_get(track, "gain"),
                     *end = json_object_get(track, "end");
        const kl_str call = call_of(track);
        const kl_str evidence =
            tables_verdict_of(json_is_object(end) ? end : json_object_get(track, "best"));
        if (i) more(t, KL_S(", "), KL_S(""));
        if (kl_str_eq(call, KL_S("faster")))
            more(t, tables_interval(d, gain), evidence);
        else if (kl_str_eq(call, KL_S("undecided")))
            more(t,
                 kl_arena_printf(d->a, "not measurable [%.3g, %.3g]",
                                 kli_json_real_or(gain, "low", 0),
                                 kli_json_real_or(gain, "high", 0)),
                 evidence);
        else
            more(t, KL_S("1"), KL_S(""));
    }
}

static void each_recovery(kli_report_table *t, const json_t *group) {
    const document *d = t->from;
    text(t, KL_S(""));
    for (size_t i = 0; i < n_tracks(group); i++) {
        const json_t *track = track_at(d, group, i);
        if (i) more(t, KL_S(", "), KL_S(""));
        more(t, tables_interval(d, json_object_get(track, "recovered")),
             tables_verdict_of(shown_of(track)));
    }
}

/* "2/3, 1 not measurable, 1 never asked" */
static kl_str solved_of(const document *d, const json_t *o) {
    const long long undecided = kli_json_int_or(o, "undecided", 0),
                    never = kli_json_int_or(o, "never_asked", 0);
    const char *more_text =
        undecided ? kl_arena_printf(d->a, ", %lld not measurable", undecided).ptr : "";
    if (never) more_text = kl_arena_printf(d->a, "%s, %lld never asked", more_text, never).ptr;
    return kl_arena_printf(d->a, "%lld/%lld%s", (long long)kli_json_int_or(o, "solved", 0),
                           (long long)kli_json_int_or(o, "trials", 0), more_text);
}

/* ---- who is best at what? ---------------------------------------------------------------- */

static const json_t *group_of(const document *d, size_t target, size_t contender) {
    json_t *g;
    size_t i;
    json_array_foreach(d->groups, i, g) {
        if (kli_json_int_or(g, "target", -1) == (int64_t)target &&
            kli_json_int_or(g, "contender", -1) == (int64_t)contender)
            return g;
    }
    return NULL;
}

/* Evidence of a median: the verdict of the trial that has it. */
static kl_str middle_verdict(const document *d, const json_t *group) {
    int64_t i = kli_json_int_or(group, "middle", -1);
    const json_t *track = i < 0 ? NULL : json_array_get(d->tracks, (size_t)i);
    return tables_verdict_of(shown_of(track));
}

static void matrix(kli_report_table *t, const document *d) {
    size_t n = json_array_size(d->contenders);
    const char **heads = KL_ARRAY(d->a, const char *, n + 1);
    heads[0] = "target";
    for (size_t i = 0; i < n; i++)
        heads[i + 1] = kl_arena_printf(d->a, ">%.*s",
                                       KL_STR_ARG(kli_json_text_or(json_array_get(d->contenders, i),
                                                                   "label", KL_S("?"))))
                           .ptr;
    tables_begin(
        t, d, "matrix", "Which policy is fastest at what?",
        "Median over trials of the best kernel's speed over the baseline (over the start "
        "without a baseline), and how many trials were faster than their start by the gate's "
        "rule, timed side by side at the end. A best that was not faster counts as the start.",
        heads, (int)n + 1, json_array_size(d->targets));
    for (size_t i = 0; n > 1 && i < json_array_size(d->targets); i++) {
        text(t, kli_json_text_or(json_array_get(d->targets, i), "label", KL_S("?")));
        for (size_t j = 0; j < n; j++) {
            const json_t *g = group_of(d, i, j);
            double median = kli_json_real_or(json_object_get(g, "best"), "median", 0);
            kl_str speed = tables_number(d, median, TIMES);
            linked(t, g ? speed : KL_S(DASH), g && median > 0 ? middle_verdict(d, g) : KL_S(""));
            if (g) more(t, kl_arena_printf(d->a, " %.*s", KL_STR_ARG(solved_of(d, g))), KL_S(""));
        }
    }
}

static void comparison(kli_report_table *t, const document *d) {
    static const char *const heads[] = {"target",
                                        "policy",
                                        ">best over the start",
                                        ">every trial",
                                        ">over the baseline",
                                        ">every trial",
                                        ">solved",
                                        ">spent"};
    BEGIN(t, d, "comparison", "How fast did every policy get, and how certain is that?",
          "Median (least" DASH
          "most) over trials, and every trial with its 95 % interval. Over the start: the last "
          "best and the start timed side by side at the end; 1 where "
          "it was not measurably faster. Over the baseline: its own verdict, above 1 is "
          "faster; over the start if the task's baseline is not available. " UNEQUAL
          ": the two contradict each other beyond both intervals, so the baseline has drifted. "
          "Solved: trials that are faster than their start by the gate's rule; a track that "
          "could not afford a first call is not a trial.",
          heads, json_array_size(d->groups));
    json_t *g;
    size_t i;
    json_array_foreach(d->groups, i, g) {
        int64_t spent = 0;
        bool estimated = false;
        for (size_t j = 0; j < n_tracks(g); j++) {
            spent += kli_json_int_or(track_at(d, g, j), "spent_microusd", 0);
            estimated |= kli_json_bool_or(track_at(d, g, j), "estimated", false);
        }
        text(t, label_at(d->targets, g, "target"));
        text(t, label_at(d->contenders, g, "contender"));
        text(t, spread(d, json_object_get(g, "gain"), n_tracks(g)));
        each_gain(t, g);
        text(t, spread(d, json_object_get(g, "best"), n_tracks(g)));
        each_ratio(t, g);
        text(t, solved_of(d, g));
        text(t, kli_dollars(d->a, spent, estimated));
    }
}

/* ---- how much of the expert came back? --------------------------------------------------- */

/* The cheapest trial that got there: "$0.1200, step 4". */
static kl_str first_reached(const document *d, const json_t *group) {
    const json_t *first = NULL;
    bool estimated = false;
    for (size_t i = 0; i < n_tracks(group); i++) {
        const json_t *track = track_at(d, group, i), *at = json_object_get(track, "reached");
        if (!json_is_object(at)) continue;
        if (!first || kli_json_int_or(at, "microusd", 0) < kli_json_int_or(first, "microusd", 0)) {
            first = at;
            estimated = kli_json_bool_or(track, "estimated", false);
        }
    }
    if (!first) return KL_S("never");
    return kl_arena_printf(
        d->a, "%.*s, step %lld",
        KL_STR_ARG(kli_dollars(d->a, kli_json_int_or(first, "microusd", 0), estimated)),
        (long long)kli_json_int_or(first, "step", 0));
}

static void recovery(kli_report_table *t, const document *d) {
    static const char *const heads[] = {
        "target", "policy", ">recovered", ">of the expert's speed", ">every trial", ">earliest"};
    BEGIN(t, d, "recovery", "How much of the expert's speed was recovered?",
          "Recovered: trials whose best reached 90 % of the reference kernel's speed with "
          "confidence, both timed against the same baseline. The share is the median (least" DASH
          "most); 1 is all of it. Earliest: the lowest cost and step at which a trial reached it.",
          heads, json_array_size(d->groups));
    json_t *g;
    size_t i;
    json_array_foreach(d->groups, i, g) {
        if (!kli_json_int_or(g, "referenced", 0)) continue;
        text(t, label_at(d->targets, g, "target"));
        text(t, label_at(d->contenders, g, "contender"));
        tables_part(t, g, "recovered", "referenced");
        text(t, spread(d, json_object_get(g, "recovery"), n_tracks(g)));
        each_recovery(t, g);
        text(t, first_reached(d, g));
    }
}

/* ---- policies over all targets ----------------------------------------------------------- */

static void mean_cells(kli_report_table *t, const json_t *o) {
    const document *d = t->from;
    text(t, tables_number(d, kli_json_real_or(o, "geomean", 0), TIMES));
    double zero = kli_json_real_or(o, "fail_as_zero", -1);
    text(t, zero < 0 ? KL_S(DASH) : kl_arena_printf(d->a, "%.3g" TIMES, zero));
}

static void overall(kli_report_table *t, const document *d) {
    static const char *const heads[] = {
        "policy",         ">targets",        ">solved",        ">over the baseline",
        ">failures as 0", ">over the start", ">failures as 0", ">fast_1",
        ">fast_2",        ">corr",           ">avg amsr",      ">spent"};
    BEGIN(t, d, "policies",
          json_array_size(d->contenders) > 1 ? "Which policy is best overall?"
                                             : "What did it come to over all targets?",
          "Geometric means over targets of the median successful trial, then the same times "
          "the share of trials that succeeded. fast_p: share of trials faster than p times the "
          "baseline by the gate's rule. corr: share of gated submissions that passed, without "
          "those whose time did not converge. avg amsr: mean speed over the baseline, those "
          "below 1 as 0. Compare policies that had the same targets.",
          heads, json_array_size(d->contenders));
    json_t *c;
    size_t i;
    if (json_array_size(d->tracks) < 2) return; /* the table of the one trial has it all */
    json_array_foreach(d->contenders, i, c) {
        double amsr = kli_json_real_or(c, "amsr", -1);
        text(t, kli_json_text_or(c, "label", KL_S("?")));
        tables_count(t, c, "targets");
        text(t, solved_of(d, c));
        mean_cells(t, json_object_get(c, "best"));
        mean_cells(t, json_object_get(c, "gain"));
        percent(t, c, "fast_1");
        percent(t, c, "fast_2");
        percent(t, c, "correct");
        text(t, amsr < 0 ? KL_S(DASH) : kl_arena_printf(d->a, "%.3g", amsr));
        money(t, c, "spent_microusd");
    }
}

/* ---- money and submissions --------------------------------------------------------------- */

static void phase_row(kli_report_table *t, kl_str who, kl_str phase, const json_t *o) {
    text(t, who);
    text(t, phase);
    tables_count(t, o, "calls");
    tables_count(t, o, "input");
    tables_count(t, o, "cache_read");
    tables_whole(t,
                 kli_json_int_or(o, "cache_write_5m", 0) + kli_json_int_or(o, "cache_write_1h", 0));
    tables_count(t, o, "output");
    percent(t, o, "cache_hit_rate");
    money(t, o, "microusd");
}

static void costs(kli_report_table *t, const document *d) {
    static const char *const heads[] = {"policy",   "phase",   ">calls",      ">input", ">cached",
                                        ">written", ">output", ">cache hits", ">cost"};
    size_t rows = 0;
    for (size_t i = 0; i < json_array_size(d->contenders); i++)
        rows += 1 + json_array_size(json_object_get(json_array_get(d->contenders, i), "phases"));
    BEGIN(t, d, "costs", "What did it cost?",
          "Model calls and tokens of every phase, over all targets and trials. Cache hits: share "
          "of input tokens that the provider had cached. ~: estimated from "
          "bytes, because the provider did not report tokens.",
          heads, rows);
    for (size_t i = 0; i < json_array_size(d->contenders); i++) {
        const json_t *c = json_array_get(d->contenders, i), *phases = json_object_get(c, "phases");
        kl_str who = kli_json_text_or(c, "label", KL_S("?"));
        for (size_t j = 0; j < json_array_size(phases); j++)
            phase_row(t, who, kli_json_text_or(json_array_get(phases, j), "phase", KL_S("?")),
                      json_array_get(phases, j));
        if (json_array_size(phases) != 1)
            phase_row(t, who, KL_S("all"), json_object_get(c, "tokens"));
    }
}

static void submissions(kli_report_table *t, const document *d) {
    static const char *const heads[] = {"policy",      ">proposals", ">pass",   ">wrong",
                                        ">no_compile", ">crash",     ">hang",   ">unstable",
                                        ">cheat",      ">refused",   ">no_edit"};
    BEGIN(t, d, "submissions", "What were the outcomes of the proposals?",
          "The gate's outcome for every proposal. cheat: computed by something other than the "
          "kernel, or not computed; refused and no_edit: no kernel that could be judged. None "
          "of these three counts as a speed.",
          heads, json_array_size(d->contenders));
    for (size_t i = 0; i < json_array_size(d->contenders); i++) {
        const json_t *c = json_array_get(d->contenders, i),
                     *outcomes = json_object_get(c, "outcomes");
        text(t, kli_json_text_or(c, "label", KL_S("?")));
        tables_count(t, c, "proposals");
        for (size_t j = 2; j < KL_COUNT(heads); j++) tables_count(t, outcomes, heads[j] + 1);
    }
}

int kli_report_tables(kli_report_table out[KLI_TABLES], kl_arena *a, const json_t *results) {
    static void (*const makers[KLI_TABLES])(kli_report_table *, const document *) = {
        matrix, comparison, recovery, overall, costs, submissions};
    const document d = {.a = a,
                        .results = results,
                        .targets = json_object_get(results, "targets"),
                        .contenders = json_object_get(results, "contenders"),
                        .groups = json_object_get(results, "groups"),
                        .tracks = json_object_get(results, "tracks")};
    int n = 0;
    for (size_t i = 0; i < KLI_TABLES; i++) {
        makers[i](&out[n], &d);
        KL_ASSERT(out[n].n_cells % out[n].n_columns == 0); /* whole rows */
        out[n].from = NULL;                                /* made: what it was read from may go */
        n += out[n].n_cells > 0;
    }
    return n;
}

/* ---- Markdown ---------------------------------------------------------------------------- */

/* Words are data (law 7): nothing of them is markup, a link, HTML or a new cell.  An underscore
 * within a word is none anyway. */
static void tables_markdown_text(kl_buf *out, kl_str s) {
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool estimate = c == '~' && i + 1 < s.len && s.ptr[i + 1] == '$';
        if (c < 0x20 || c == 0x7f)
            kl_buf_printf(out, " ");
        else if (strchr("\\`*[]<>|&#!~", c) && !estimate)
            kl_buf_printf(out, "\\%c", c);
        else
            kl_buf_add(out, (kl_str){s.ptr + i, 1});
    }
}

static void markdown_cell(kl_buf *out, const kli_report_cell *c) {
    kl_buf_printf(out, " ");
    for (const kli_part *p = c->first; p; p = p->next) tables_markdown_text(out, p->text);
    kl_buf_printf(out, " |");
}

static void markdown_table(kl_buf *out, const kli_report_table *t) {
    kl_buf_printf(out, "### %s\n\n%s\n\n|", t->question, t->note);
    for (int i = 0; i < t->n_columns; i++) {
        kl_buf_printf(out, " ");
        tables_markdown_text(out, t->heads[i]);
        kl_buf_printf(out, " |");
    }
    kl_buf_printf(out, "\n|");
    for (int i = 0; i < t->n_columns; i++) kl_buf_printf(out, t->numbers[i] ? " ---: |" : " --- |");
    for (int i = 0; i < t->n_cells; i++) {
        if (i % t->n_columns == 0) kl_buf_printf(out, "\n|");
        markdown_cell(out, &t->cells[i]);
    }
    kl_buf_printf(out, "\n\n");
}

/* most 0: all of it; what is cut is ASCII. */
static void markdown_words(kl_buf *out, const char *before, const json_t *o, const char *key,
                           size_t most) {
    const kl_str s = kli_json_text_or(o, key, KL_S(""));
    if (!s.len) return;
    kl_buf_printf(out, "%s", before);
    tables_markdown_text(out, (kl_str){s.ptr, most && most < s.len ? most : s.len});
}

/* Where the numbers come from: a page that was copied elsewhere still says it. */
static void markdown_origin(kl_buf *out, const json_t *results) {
    size_t i;
    const json_t *o;
    json_array_foreach(json_object_get(results, "runs"), i, o) {
        markdown_words(out, "- Run ", o, "id", 12);
        markdown_words(out, " of klineage ", o, "command", 0);
        markdown_words(out, ", ", o, "created", 10);
        markdown_words(out, ", answered by ", o, "model", 0);
        kl_buf_printf(out, "\n");
    }
    json_array_foreach(json_object_get(results, "targets"), i, o) {
        markdown_words(out, "- Target ", o, "label", 0);
        markdown_words(out, ": shape ", o, "shape", 0);
        markdown_words(out, ", ", o, "surface", 0);
        markdown_words(out, ", on ", o, "platform", 0);
        kl_buf_printf(out, "\n");
    }
    kl_buf_printf(out, "\n");
}

/* The sentence on top, then a line for each target and lineage. */
static void markdown_summary(kl_buf *out, const json_t *results) {
    size_t i;
    const json_t *o, *lines = json_object_get(results, "summary");
    json_array_foreach(lines, i, o) {
        if (!json_is_string(o)) continue;
        kl_buf_printf(out, i == 1 ? "\n- " : i ? "- " : "");
        tables_markdown_text(out, kl_str_of(json_string_value(o)));
        kl_buf_printf(out, "\n");
    }
    if (json_array_size(lines)) kl_buf_printf(out, "\n");
}

void kl_report_results_markdown(kl_buf *out, const json_t *results) {
    kl_arena *a = kl_arena_new();
    kli_report_table tables[KLI_TABLES + 1];
    int n = kli_report_tables(tables, a, results);
    markdown_summary(out, results);
    if (n) markdown_origin(out, results);
    for (int i = 0; i < n; i++) markdown_table(out, &tables[i]);
    if (!out->len) kl_buf_printf(out, "These runs contain no search.\n");
    kl_arena_free(a);
}

/* ---- HTML -------------------------------------------------------------------------------- */

void kli_parts_html(kl_buf *out, const kli_facts *f, const kli_report_cell *c) {
    for (const kli_part *p = c->first; p; p = p->next)
        if (p->verdict.len)
            kli_link_verdict(out, f, p->verdict, p->text);
        else
            kli_text(out, p->text);
}

/* A cell of several ratios may be broken between them. */
static void html_cell(kl_buf *out, const kli_facts *f, const kli_report_table *t, int i) {
    const kli_report_cell *c = &t->cells[i];
    const int column = i % t->n_columns;
    const bool many = c->first && c->first->next && c->first->next->next;
    kl_buf_printf(out, !column               ? "<th scope=row>"
                       : !t->numbers[column] ? "<td>"
                       : many                ? "<td class=\"n many\">"
                                             : "<td class=n>");
    kli_parts_html(out, f, c);
    kl_buf_printf(out, column ? "</td>" : "</th>");
}

void kli_report_table_html(kl_buf *out, kl_arena *a, const kli_facts *f,
                           const kli_report_table *t) {
    const char **heads = KL_ARRAY(a, const char *, t->n_columns);
    for (int i = 0; i < t->n_columns; i++)
        heads[i] =
            kl_arena_printf(a, "%s%.*s", t->numbers[i] ? ">" : "", KL_STR_ARG(t->heads[i])).ptr;
    kl_buf_printf(out, "<h3 id=\"t-%s\">%s</h3>\n", t->id, t->question);
    kli_table_begin(out, kl_str_of(t->question), heads, t->n_columns);
    for (int i = 0; i < t->n_cells; i++) {
        if (i % t->n_columns == 0) kl_buf_printf(out, i ? "</tr>\n<tr>" : "<tr>");
        html_cell(out, f, t, i);
    }
    kl_buf_printf(out, "</tr>\n");
    kli_table_end(out);
    kl_buf_printf(out, "<p class=note>%s</p>\n", t->note);
}
