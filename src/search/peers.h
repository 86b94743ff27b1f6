/* peers.h - what the policies that follow other programs share: prose from a model as data, and
 * kernels that did not pass as a base. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SEARCH_PEERS_H
#define KL_SEARCH_PEERS_H
#include "search_impl.h"

#define KLI_PROSE_BYTES 4000 /* of a plan, a review or a summary: a page; more is code */

/* Ask for prose in a conversation of its own, prompts PROMPT_rules and PROMPT; `purpose` is the
 * phase in the ledger too.  `*out` is plain text of at most KLI_PROSE_BYTES; empty when the
 * provider refused.  Errors: as kl_ask. */
KL_MUST_USE kl_err kli_prose_ask(kl_search *s, kl_str *out, const char *purpose, const char *prompt,
                                 const kli_point *about, const kl_prompt_value *own, size_t n,
                                 kl_error *e);
/* Printable and cut: what a model said, as data. */
kl_str kli_prose_clean(kl_arena *a, kl_str text, size_t most);
/* Every line behind "> ", so that nothing in it can pass for a heading, a fence or a block of the
 * prompt around it. */
kl_str kli_prose_quote(kl_arena *a, kl_str text);

/* Ask for code, by the surface's rules and one question, and take what comes.  Errors: as
 * kli_search_propose. */
KL_MUST_USE kl_err kli_code_propose(kl_search *s, kli_outcome *out, const char *purpose,
                                    kl_str question, const kli_point *base, kl_error *e);
/* A kernel in its fence and what the gate says of it. */
void kli_show_kernel(const kl_search *s, kl_buf *b, const kli_point *p);

/* What a proposal made of `base` although it did not pass, so that the next edit can go from there:
 * text and verdict, no time.  False when nothing was made.  It is no point of comparison. */
bool kli_point_failed(kl_search *s, kli_point *out, const kli_outcome *o, const kli_point *base);
/* Passed and timed against what the start was timed against. */
bool kli_point_timed(const kli_outcome *o);

#endif
