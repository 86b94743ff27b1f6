/* report_impl.h - the rows that a page is made from, and how they are written.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REPORT_REPORT_IMPL_H
#define KL_REPORT_REPORT_IMPL_H
#include <klineage/report.h>

/* One gated attempt, as the journal holds it. */
typedef struct {
    kl_str phase, action, locus, kernel, verdict, outcome, why;
    double ratio, low, high;
    int64_t median_ns, spent_microusd;
    bool accepted, best;
} kli_row;

typedef struct {
    kl_str run, name, workload, policy;
    kli_row *rows;
    int n_rows;
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
    kl_library library;
    bool has_library;
    kl_verdict *verdicts;
    kl_str *verdict_keys;
    int n_verdicts; /* everything that a number on the page comes from */
} kli_facts;

KL_MUST_USE kl_err kli_facts_load(kli_facts *out, kl_arena *a, kl_store *s, const kl_report_opts *o, kl_error *e);
const kl_verdict *kli_facts_verdict(const kli_facts *f, kl_str key); /* NULL when it is not there */
bool kli_is_search(const kli_track_rows *t);                         /* a policy's, and no walk, lift or admission */
/* The last best of a track; NULL when nothing passed. */
const kli_row *kli_track_best(const kli_track_rows *t);

/* What a call cost, or may have cost when it was never answered. */
int64_t kli_cost_of(const kl_store_charge *c);
/* Of a track, over the ledger. */
int64_t kli_track_spent(const kli_facts *f, const kli_track_rows *t, bool *estimated);

/* What K0 is: naive only when the walk was complete. */
const char *kli_simplest(const kl_lineage *l);

/* ---- pictures: inline SVG, or a sentence why there is none ---------------------------------------------------------- */

void kli_figure_bars(kl_buf *out, kl_arena *a, const kli_facts *f); /* best of every track against the baseline */
void kli_figure_cost(kl_buf *out, kl_arena *a, const kli_facts *f, kl_str workload); /* best so far against dollars */
void kli_figure_lineage(kl_buf *out, kl_arena *a, const kl_lineage *l);              /* speed of every state */

/* ---- HTML -------------------------------------------------------------------------------------------------------------- */

void kli_text(kl_buf *out, kl_str s); /* escaped */
/* A number with its evidence: a link where the journal has the verdict, else its key as a tooltip. */
void kli_link_verdict(kl_buf *out, const kli_facts *f, kl_str key, kl_str number);

#endif
