/* edits_impl.h - what edits.c, between.c and proposal.c share.  SPDX-License-Identifier: Apache-2.0
 */
#ifndef KL_REWRITE_EDITS_IMPL_H
#define KL_REWRITE_EDITS_IMPL_H

#include "rewrite_impl.h"

#define KLI_NO_NEWLINE "\\ No newline at end of file"

/* Lines without their ends; `ended`: a newline stands behind the last one (true for no lines). */
typedef struct {
    kl_str *at;
    int n;
    bool ended;
} kli_lines;

void kli_lines_of(kli_lines *out, kl_arena *a, kl_str text);
void kli_lines_add(kli_lines *out, const kl_str *lines, int n); /* there is room */
kl_str kli_lines_text(kl_arena *a, const kli_lines *lines);

/* "<<<<<<< SEARCH" and its like: the number of the characters, or 0.  `word` (may be NULL) is what
 * follows. */
enum { KLI_MIN_MARK = 5, KLI_MAX_MARK = 40, KLI_MARK = 7 };
int kli_mark_length(kl_str line, char c, kl_str *word);

#endif
