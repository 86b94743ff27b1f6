/* search_impl.h - what policies share: the state of one search, one proposal taken through the gate.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SEARCH_SEARCH_IMPL_H
#define KL_SEARCH_SEARCH_IMPL_H
#include <klineage/search.h>

/* A correct kernel that the search knows, and how fast it is. */
typedef struct {
    kl_kernel *kernel;
    kl_verdict verdict;
    kl_traits traits;
    double ratio, low, high; /* to the primary baseline; to the start where the task has none for this host */
} kli_point;

typedef struct {
    const kl_search_opts *o;
    kl_track *track;
    kl_arena *arena;
    kl_search_result *out;
    kli_point start, current, best;
    bool against_start; /* no baseline here: times are compared with the start's */
    kl_message messages[2 * KL_MAX_STEPS + 8];
    int n;
    int since_best, since_accepted;
    kl_str prior; /* actions that are part of `current`, separated by spaces */
    kl_str cards; /* cards likewise */
    kl_str best_prior, best_cards;
} kli_search;

/* What became of one proposal. */
typedef enum { KLI_NO_EDIT, KLI_FAILED, KLI_SLOWER, KLI_BETTER } kli_fate;
typedef struct {
    kli_fate fate;
    kl_proposal proposal;
    kl_verdict verdict; /* unset for KLI_NO_EDIT */
    kli_point point;    /* of a correct one */
    kl_str feedback;    /* for the model */
    bool done;          /* the model says that there is nothing left */
} kli_outcome;

/* Judge the start; it must be correct.  Errors: KL_EINVAL when it is not. */
KL_MUST_USE kl_err kli_search_begin(kli_search *s, kl_search_result *out, kl_track *t, const kl_search_opts *o,
                                    kl_error *e);
/* Append a turn. */
void kli_search_say(kli_search *s, kl_role role, kl_str text);
/* Ask with the conversation so far; purpose as in kl_request. */
KL_MUST_USE kl_err kli_search_ask(kli_search *s, kl_reply *reply, const char *purpose, kl_error *e);
/* Parse a reply, apply it to `base`, gate the result, write the step down.  Updates best, never current. */
KL_MUST_USE kl_err kli_search_take(kli_search *s, kli_outcome *out, const kl_reply *reply, const kli_point *base,
                                   kl_error *e);
/* The same for a text that is there already (a card's patch). */
KL_MUST_USE kl_err kli_search_gate(kli_search *s, kli_outcome *out, kl_str source, const kli_point *base, kl_str action,
                                   kl_error *e);
/* Is it time to stop?  Fills out->stopped. */
bool kli_search_over(kli_search *s);
/* Ends a search: an error that is an end (money gone, recording ended) becomes `stopped`; measures best over start. */
KL_MUST_USE kl_err kli_search_end(kli_search *s, kl_err err, kl_error *e);
/* One line on a point: "0.412 x openblas [0.410, 0.415], 8.5 ms, 3.1 x the start". */
kl_str kli_search_describe(const kli_search *s, const kli_point *p);

kl_err kli_policy_klineage(kl_search_result *out, kl_track *t, const kl_search_opts *o, kl_error *e);
kl_err kli_policy_generate(kl_search_result *out, kl_track *t, const kl_search_opts *o, kl_error *e);
kl_err kli_policy_bestofn(kl_search_result *out, kl_track *t, const kl_search_opts *o, kl_error *e);

#endif
