/* report_impl.h - the rows that a report is made from, what they come to, and how that is written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REPORT_REPORT_IMPL_H
#define KL_REPORT_REPORT_IMPL_H
#include <klineage/report.h>

#include "search/search.h"

/* ---- facts: what the journal says -------------------------------------------------------- */

typedef kl_step kli_row; /* one gated attempt, as the journal holds it */

typedef struct {
    kl_str run, name, workload, policy;
    kli_row *rows;
    int n_rows;
    kl_str start_source,
        best_source; /* of a search; empty when the journal does not have the text */
} kli_track_rows;

typedef struct {
    kl_store_run *runs;
    int n_runs;
    kli_track_rows *tracks;
    int n_tracks;
    kl_store_charge *charges;
    int n_charges;
    kl_lineage *lineages;
    int n_lineages;
    kl_library *library; /* NULL: none */
    bool has_library;
    kl_probes probes; /* of the library */
    kl_verdict *verdicts;
    kl_str *verdict_keys;
    int n_verdicts; /* everything that a number on the page comes from */
} kli_facts;

KL_MUST_USE kl_err kli_facts_load(kli_facts *out, kl_arena *a, kl_store *s, const kl_report_opts *o,
                                  kl_error *e);
const kl_verdict *kli_facts_verdict(const kli_facts *f, kl_str key); /* NULL when it is not there */
bool kli_is_proposal(
    const kli_row *r); /* not the start, a reference, the end, or a model that says it is done */
bool kli_is_search(const kli_track_rows *t); /* a policy's, and no walk, lift or admission */
/* The last best of a track; NULL when nothing passed. */
const kli_row *kli_track_best(const kli_track_rows *t);
/* The first row of this action ("start", "reference"); NULL when there is none. */
const kli_row *kli_track_row(const kli_track_rows *t, const char *action);

/* What a call cost, or may have cost when it was never answered. */
int64_t kli_cost_of(const kl_store_charge *c);
/* Of a track, over the ledger. */
int64_t kli_track_spent(const kli_facts *f, const kli_track_rows *t, bool *estimated);

/* What K0 is: naive only when the walk was complete. */
const char *kli_simplest(const kl_lineage *l);

/* ---- results: what the rows of searches come to (docs/formats/results.md) ---------------- */

#define KLI_RECOVERED                                                                              \
    0.9 /* share of the reference that counts as recovered: KLineage paper, section 4.4 */

typedef struct {
    double ratio, low, high;
} kli_span; /* ratio 0: not there */
typedef struct {
    int64_t microusd;
    double ratio;
    int64_t step;
} kli_curve_point;

typedef enum {
    KLI_PASS,
    KLI_WRONG,
    KLI_NO_COMPILE,
    KLI_CRASH,
    KLI_HANG,
    KLI_UNSTABLE,
    KLI_CHEAT,
    KLI_REFUSED,
    KLI_NOTHING,
    KLI_OTHER,
    KLI_STEP_OUTCOMES
} kli_step_outcome;
const char *kli_step_outcome_name(kli_step_outcome f); /* as in the journal's `outcome` */
kli_step_outcome kli_step_outcome_of(kl_str outcome);

/* Calls of one phase, or of a whole track. */
typedef struct {
    kl_str phase;
    int calls;
    int64_t microusd, input, cache_read, cache_write_5m, cache_write_1h, output;
    bool estimated;
} kli_bill;

typedef struct {
    kli_bill sum, *phases;
    int n_phases;
    int64_t unanswered_microusd; /* part of the sum: reserved for calls that never were answered */
} kli_money;

/* What was to be made faster, and where.  `label`: as much of it as tells it from the others of the
 * document. */
typedef struct {
    kl_str label, workload, shape, surface, platform;
} kli_target;
/* Who tried.  `run` only where two runs have the same trial, so that they are no trials of one
 * experiment. */
typedef struct {
    kl_str label, policy, model, run;
} kli_contender;

typedef struct {
    const kli_track_rows *rows;
    int target, contender, trial; /* trial 0: the name says none */
    kl_str model, baseline;       /* baseline empty: ratios are over the start */
    const kli_row *start, *reference, *best, *reached,
        *end;             /* best: the last one; end: why, and the best timed against the start */
    const kli_row *shown; /* what may be called the best: `best` where it proved to be faster than
                             the start, else the start */
    kli_span gain,
        recovered;      /* gain: side by side where `timed`, else the quotient of two ratios */
    kl_decision call;   /* what the gain means */
    bool timed, solved; /* solved: the call is faster */
    bool disagrees;     /* the ratios to the baseline say another gain, beyond both intervals: the
                           baseline has moved */
    bool never_asked;   /* no money for a first question: no trial */
    int proposals, outcomes[KLI_STEP_OUTCOMES];
    kli_money money;
    kli_curve_point *curve; /* every new best; the last point is the end */
    int n_curve;
    const kli_row **path; /* accepted bests' chain from the start to the best */
    int n_path;
} kli_result;

typedef struct {
    double median, low, high;
} kli_spread; /* over trials; median 0: none */
typedef struct {
    int64_t microusd;
    kli_spread best;
} kli_band_point;

/* All trials of one contender at one target. */
typedef struct {
    int target, contender, *tracks, n,
        middle; /* middle: the track of the median best, the lower of two */
    int solved, undecided, never_asked, referenced,
        recovered; /* those never asked are not among the tracks */
    bool baseline; /* every best is a ratio to a baseline */
    kli_spread best, gain, recovery;
    double solved_best, solved_gain; /* medians over the trials that succeeded */
    kli_band_point *band;
    int n_band;
} kli_group;

/* One contender over its targets. */
typedef struct {
    int targets, trials, solved, undecided, never_asked, referenced, recovered, proposals, gated,
        outcomes[KLI_STEP_OUTCOMES];
    double share;                 /* mean over targets of the share of trials that succeeded */
    double geomean, gain_geomean; /* success only; 0: no success */
    double fast_1, fast_2, amsr, correct; /* -1: cannot be said */
    int baselined;                        /* targets that have a baseline */
    double baselined_share;               /* share, over these */
    kli_money money;
} kli_overall;

typedef struct {
    const kli_facts *facts;
    kli_result *tracks;
    int n_tracks;
    kli_target *targets;
    int n_targets;
    kli_contender *contenders;
    kli_overall *overall; /* one each */
    int n_contenders;
    kli_group *groups; /* by target, then by contender */
    int n_groups;
} kli_results;

void kli_results_of(kli_results *out, kl_arena *a, const kli_facts *f);
void kli_result_of(kli_result *out, kl_arena *a, const kli_facts *f,
                   const kli_track_rows *t); /* but for target and contender */
/* What a row's interval means over so many times its opponent, beside the floor of its verdict;
 * without the verdict, a floor of 0. */
kl_decision kli_row_call(const kli_facts *f, const kli_row *r, double times);
void kli_results_compare(kli_results *r, kl_arena *a); /* groups and overall, from the tracks */
const kli_group *kli_group_of(const kli_results *r, int target,
                              int contender); /* NULL: it was not tried */
void kli_money_add(kli_money *to, kl_arena *a, const kli_money *from);
json_t *kli_results_json(const kli_results *r);
kl_str kli_dollars(kl_arena *a, int64_t microusd, bool estimated); /* "~$0.3496" */

/* ---- tables: the same for Markdown and HTML ---------------------------------------------- */

typedef struct kli_part {
    kl_str text, verdict;
    struct kli_part *next;
} kli_part; /* verdict empty: not one number's */
typedef struct {
    kli_part *first, *last;
} kli_report_cell;
typedef struct {
    const struct kli_document *from; /* what its cells are read from */
    const char *id, *question, *note;
    kl_str *heads;
    bool *numbers; /* right-aligned */
    int n_columns;
    kli_report_cell *cells;
    int n_cells, most_cells;
} kli_report_table;

#define KLI_TABLES 6
int kli_report_tables(kli_report_table out[KLI_TABLES], kl_arena *a,
                      const json_t *results); /* those that have rows */
void kli_report_table_html(kl_buf *out, kl_arena *a, const kli_facts *f, const kli_report_table *t);
void kli_part_add(kli_report_cell *c, kl_arena *a, kl_str text, kl_str verdict);
void kli_parts_html(kl_buf *out, const kli_facts *f, const kli_report_cell *c);

/* ---- the sentence on top ----------------------------------------------------------------- */

/* What was asked, what came of it by the decision rule, what it cost, what stayed undecided: the
 * first line is the result, the others are of one target or lineage each.  Never none. */
int kli_summary(kli_report_cell **lines, kl_arena *a, const kli_results *r);
kl_str kli_ratio_text(kl_arena *a, kli_span v); /* "1.027 x [1.026, 1.028]" */
kl_str kli_summary_text(kl_arena *a, const kli_report_cell *line);

/* ---- pictures: inline SVG, or the same in words ------------------------------------------ */

typedef struct {
    kl_buf script, alt,
        headings;     /* gnuplot's; what is to be seen, in words; above groups of bars */
    int wide, narrow; /* heights */
    int n_bars;
    bool has_long_words;
    double least, most; /* ends of all whiskers */
} kli_figure;

void kli_figure_begin(kli_figure *g, int wide, int narrow);
void kli_figure_draw(kl_buf *out, kl_arena *a, kli_figure *g,
                     const char *caption);           /* caption is markup; ends the figure */
const char *kli_figure_label(kl_arena *a, kl_str s); /* that cannot be a command */

/* Bars that lie, from top to bottom.  `told`: in full colour. */
typedef struct {
    int row;
    double value, low, high;
    bool told;
    const char *name, *words; /* labels; on the left, and behind the bar */
} kli_bar;
void kli_figure_bars_begin(kli_figure *g, int n_rows);
void kli_figure_bar(kli_figure *g, kli_bar bar);
void kli_figure_bar_heading(kli_figure *g, int row, const char *words);
void kli_figure_bars_end(kli_figure *g, double origin, bool factors, const char *axis);

void kli_figure_lineage(kl_buf *out, kl_arena *a, const kl_lineage *l); /* speed of every state */
kli_span kli_lineage_speed(const kl_lineage *l, int state); /* over K0 where every gain is known */
bool kli_lineage_by_gain(const kl_lineage *l);              /* it is; else over the baseline */

void kli_figure_contenders(kl_buf *out, kl_arena *a,
                           const kli_results *r); /* bars by policy, KLineage's figure 3 */
void kli_figure_bands(kl_buf *out, kl_arena *a, const kli_results *r,
                      int target); /* its figure 4 */
void kli_figure_steps(kl_buf *out, kl_arena *a, const kli_results *r,
                      const kli_group *g); /* its figure 6 */

/* ---- HTML -------------------------------------------------------------------------------- */

void kli_style(kl_buf *out);                               /* the style sheet */
const char *kli_colour(const char *name);                  /* of colours.def, on light ground */
const char *kli_colour_name(int red, int green, int blue); /* NULL: it has none */
void kli_text(kl_buf *out, kl_str s);                      /* escaped */
/* A table of these heads, '>' before one of numbers; `label` says what it is for who cannot see it.
 * The caller writes the rows. */
void kli_table_begin(kl_buf *out, kl_str label, const char *const *heads, int n);
void kli_table_end(kl_buf *out);
/* A number with its evidence: a link where the journal has the verdict, else its key as a tooltip.
 */
void kli_link_verdict(kl_buf *out, const kli_facts *f, kl_str key, kl_str number);
void kli_comparison(
    kl_buf *out, kl_arena *a,
    const kli_results *r); /* pictures and tables, where there is something to compare */
void kli_matrix(kl_buf *out, kl_arena *a, const kli_facts *f); /* cards against tasks */
void kli_page_section(kl_buf *out, const char *id, const char *title);
void kli_best_kernels(kl_buf *out, kl_arena *a, const kli_results *r);

#endif
