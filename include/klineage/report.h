/* report.h - what happened, for people: runs as one HTML page that needs no script and no network;
 * for programs: the same as numbers.
 *
 * Reads the journal and a library; cannot write either (law 10).  Every number on the page links to
 * the verdict that it comes from, which is on the page too, or says that this journal does not have
 * it; money is a sum over the charges in the ledger below.  Pictures are drawn by gnuplot; where it
 * is missing the page says so and keeps its tables. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_REPORT_H
#define KLINEAGE_REPORT_H

#include <jansson.h>
#include <klineage/search.h>

KL_API_BEGIN

typedef struct {
    const char *const *runs;
    int n_runs;          /* ids or their beginnings */
    const char *library; /* folder; NULL: no cards on the page */
    const char *title;   /* NULL: "klineage report" */
} kl_report_opts;

/* Errors: KL_ENOENT (no such run), KL_EIO. */
KL_MUST_USE kl_err kl_report_write(kl_buf *html, kl_store *s, const kl_report_opts *o, kl_error *e);

/* What the searches of these runs reached and how policies compare: docs/formats/results.md.  Walks
 * and admissions are not in it.  The caller json_decref's.  Errors: as kl_report_write. */
KL_MUST_USE kl_err kl_report_results(json_t **out, kl_store *s, const kl_report_opts *o,
                                     kl_error *e);
/* The document's tables as GitHub Markdown, each with one line that says how to read it; whatever
 * lacks in the document is left out. */
void kl_report_results_markdown(kl_buf *out, const json_t *results);
/* The comparison's figures as SVG files in `dir`, which is made, and Markdown that shows them by
 * `link`, the way from the text to them. Errors: as kl_report_write; KL_ENOENT without gnuplot. */
KL_MUST_USE kl_err kl_report_pictures(kl_buf *markdown, const char *dir, const char *link,
                                      kl_store *s, const kl_report_opts *o, kl_error *e);

KL_API_END
#endif
