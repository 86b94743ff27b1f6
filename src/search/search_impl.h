/* search_impl.h - what policies share: the state of one search, one proposal taken through the
 * gate. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SEARCH_SEARCH_IMPL_H
#define KL_SEARCH_SEARCH_IMPL_H
#include "search/search.h"

/* A correct kernel that the search knows, and how fast it is. */
typedef struct {
    kl_kernel *kernel;
    kl_verdict verdict;
    kl_traits traits;
    double ratio, low,
        high; /* to the primary baseline; to the start where the task has none for this host */
} kli_point;

/* One conversation; append-only. */
typedef struct {
    kl_message *at;
    int n;
} kli_search_dialog;

/* Verdicts on an action in this search. */
typedef struct {
    kl_str action;
    int gained, failed;
    double log_gain; /* of those that gained, together */
} kli_belief;

struct kl_search {
    kl_search_opts o; /* as they count for this policy */
    kl_track *track;
    kl_arena *arena;
    kl_search_result *out;
    const kl_policy *policy;
    kl_str task;      /* in the words of a prompt */
    kl_device device; /* on which the start was judged, as far as it is known here */
    kli_point start, best;
    bool against_start; /* no baseline here: times are compared with the start's */
    int since_best;     /* proposals */
    bool may_fetch;     /* the model may ask for cards; it has asked for so many */
    int fetches;
    kl_kernel **correct; /* that came out so far: a recorded edit may refer to one that another
                            decision made current */
    int n_correct;
    kl_gain_model *gain; /* by which cards are ranked; NULL: by their trials */
    kli_belief *beliefs; /* what this search has seen of actions, beside that */
    int n_beliefs;
};

/* What became of one proposal; from KLI_UNDECIDED on it is correct. */
typedef enum { KLI_NO_EDIT, KLI_FAILED, KLI_UNDECIDED, KLI_SLOWER, KLI_BETTER } kli_step_result;
typedef struct {
    kli_step_result ended;
    kl_proposal proposal;
    kl_verdict verdict; /* unset for KLI_NO_EDIT */
    kl_str verdict_key; /* its name in the journal */
    kli_point point;    /* of a correct one */
    kl_comparison over; /* what it was applied to: timed against that, else by the ratios of both;
                           ratio 0: not known */
    kl_str reply;       /* of the model; empty for a card's patch */
    kl_str feedback;    /* for the model */
    kl_str fetch;       /* the model asks for this card and proposes nothing: no proposal */
    bool done;          /* the model says that there is nothing left; fate is KLI_NO_EDIT */
} kli_outcome;

/* A parameter of the policy: as set, else its default, within its bounds.  One that is not in its
 * table is a bug. */
double kli_search_param(const kl_search *s, const char *name);
/* Append a turn. */
void kli_search_dialog_add(kli_search_dialog *talk, kl_arena *a, kl_role role, kl_str text);
/* Ask with a conversation; purpose as in kl_request, subject: the kernel that it is about. */
KL_MUST_USE kl_err kli_search_ask(kl_search *s, kl_reply *reply, const kli_search_dialog *talk,
                                  const char *purpose, const kl_kernel *subject, kl_error *e);
/* Ask about `base`, apply the reply to it, gate the result, write the step down.  Updates best.
 * What leaves the start's EVOLVE-BLOCK ranges is KLI_NO_EDIT, here and in kli_search_gate. */
KL_MUST_USE kl_err kli_search_propose(kl_search *s, kli_outcome *out, const kli_search_dialog *talk,
                                      const char *purpose, const kli_point *base, kl_error *e);
/* The same for a text that is there already. */
KL_MUST_USE kl_err kli_search_gate(kl_search *s, kli_outcome *out, kl_str source,
                                   const kli_point *base, kl_str action, kl_error *e);
/* Is it time to stop?  Fills out->stopped. */
bool kli_search_over(kl_search *s);
/* One line on a point: "0.412 x openblas [0.410, 0.415], 8.5 ms". */
kl_str kli_search_describe(const kl_search *s, const kli_point *p);
/* What became of a proposal, in words for a model. */
const char *kli_step_result_words(kli_step_result ended);
/* The surface's rules: the system turn of every conversation that asks for kernels. */
kl_str kli_search_rules(const kl_search *s);
/* The fence tag of the surface: "c". */
kl_str kli_search_tag(const kl_search *s);
/* Where a kernel stands under the bounds of the machine, and what the compiler made of it; empty
 * where that is not known. */
kl_str kli_search_limits(const kl_search *s, const kli_point *p);
/* A prompt of a policy.  `own` are its values; behind them stand task, tag, platform, and of the
 * point `about` the kernel, its profile and the gate's feedback. */
kl_str kli_search_prompt(const kl_search *s, const char *name, const kli_point *about,
                         const kl_prompt_value *own, size_t n);

/* ---- EVOLVE-BLOCK ranges (blocks.c) ------------------------------------------------------ */

/* Are there any?  Without, the whole file may change. */
bool kli_blocks_any(kl_str source);
/* Errors: KL_EPARSE, a range that does not end or begin; `where` is NUL-terminated. */
KL_MUST_USE kl_err kli_blocks_valid(kl_str source, kl_str where, kl_error *e);
/* Errors: KL_EINVAL when `source` differs from `start` outside of the ranges of `start`; the
 * message is for the model. */
KL_MUST_USE kl_err kli_blocks_check(kl_str start, kl_str source, kl_error *e);

/* ---- rank (rank.c) ----------------------------------------------------------------------- */

extern const kl_policy_param kli_rank_params[]; /* of policies that rank by the gain model */
/* Reads the model of the library, for such a policy.  Errors: as kl_gain_load. */
KL_MUST_USE kl_err kli_rank_open(kl_search *s, kl_error *e);
/* Best first, by a draw out of what is believed; without a model they stay as they are. */
void kli_rank(kl_search *s, kl_match *m, int n, const kl_facts *f);
/* Is the best of them worth less than it costs?  Says so in `stopped`. */
bool kli_rank_over(kl_search *s, const kl_match *m, int n);
/* What a proposal showed of its action. */
void kli_rank_learn(kl_search *s, const kli_outcome *o);

/* ---- cards (cards.c) --------------------------------------------------------------------- */

enum { KLI_MAX_FETCHES = 16 }; /* of one search: each costs a turn */

kli_cards_shown kli_shown(const kl_search *s);
/* The index of the surface's cards as a part of the system turn, the same for every task; empty
 * without a library. */
kl_str kli_cards_text(kl_search *s);
/* The few that fit a kernel best as it is, best expected gain per dollar first: a line each, and
 * more of those that no turn of the conversation has shown yet.  `prior`: actions that are part of
 * it. */
kl_str kli_cards_fitting(kl_search *s, const kli_point *p, kl_str prior,
                         const kli_search_dialog *talk);
/* The whole of a card that the model asked for, or that there is none of that name. */
kl_str kli_cards_fetched(kl_search *s, kl_str name);
/* The fitting cards themselves; the array lives in the arena. */
int kli_cards_match(kl_search *s, kl_match **out, const kli_point *p, kl_str prior);
/* What a model calls a card need not be one: the admitted card of that name, or NULL. */
const kl_card *kli_cards_named(const kl_search *s, kl_str name);

/* A card's patch as a proposal for `base`; false when it does not apply verbatim. */
bool kli_cards_patch(kl_search *s, kli_outcome *o, kl_str *source, const kli_point *base,
                     const kl_card *card);

/* Words separated by spaces, and one more. */
kl_str kli_with_word(kl_arena *a, kl_str words, kl_str word);

/* The lines of the policies, a row each in policies.c, and their numbers. */
kl_policy_line kli_policy_klineage, kli_policy_bestofn, kli_policy_accelopt, kli_policy_adaexplore,
    kli_policy_evolve;
extern const kl_policy_param kli_accelopt_params[], kli_adaexplore_params[], kli_evolve_params[],
    kli_evolve_cards_params[];

#endif
