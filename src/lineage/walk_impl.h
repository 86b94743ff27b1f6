/* walk_impl.h - the inside of a walk, shared by walk.c, attempt.c, rederive.c, recorded.c and
 * talk.c.
 *
 * Everything here lives in the track's arena and ends with the line.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_LINEAGE_WALK_IMPL_H
#define KL_LINEAGE_WALK_IMPL_H
#include "lineage_impl.h"

#define KLI_SABOTAGE                                                                               \
    2.0 /* a simpler kernel this many times slower than the naive one wastes time on purpose */
#define KLI_MAX_REDERIVE 16

/* One append-only conversation.  Text that was said is never changed, so that a provider's prompt
 * cache holds. */
typedef struct {
    kl_message *at;
    int n;
} kli_walk_dialog;

/* One proposal on its way: asked, read, applied, gated.  `symptom` not empty: rejected, and that is
 * why. */
typedef struct {
    const char *stage; /* "deoptimize" or "rederive" */
    kl_proposal proposal;
    kl_str reply;      /* as the model wrote it */
    kl_str source;     /* the kernel's text with the proposal in it */
    kl_kernel *kernel; /* NULL until it was judged */
    kl_verdict verdict;
    kl_state state;
    bool judged; /* verdict is filled */
    bool failed; /* the gate said no, alone or beside a opponent: no recording overrules that */
    bool accepted;
    kl_str symptom; /* one line: "wrong: ..." */
    kl_str advice;  /* what the model is told; the symptom itself when empty */
} kli_attempt;

/* One kernel timed against another, interleaved; > 1: the first is faster.  All 0: it has no
 * interval. */
typedef struct {
    double ratio, low, high, noise;
    kl_decision call;
    kl_str verdict_key, receipt;
} kli_pairwise;

typedef struct {
    kl_lineage *out;
    kl_track *track;
    kl_arena *a;
    const kl_task *task;
    const kl_workload *workload;
    const kl_surface *surface;
    kl_walk_opts opts;    /* defaults filled */
    kl_gate_opts gate;    /* of every full verdict */
    kl_kernel *current;   /* K_i */
    kl_state *states;     /* expert first: the order of the walk */
    kl_edge *edges;       /* edges[i] leads back from states[i] to states[i + 1] */
    int n;                /* accepted steps */
    int skipped;          /* steps of a recording that could not be taken here */
    kli_walk_dialog talk; /* the deoptimization */
    kl_rejection *rejections;
    int n_rejections, cap_rejections; /* since the last accepted step */
    int in_a_row;
    kl_str *seen;
    int n_seen; /* identities of kernels that were proposed */
    kli_attempt **tries;
    int n_tries; /* of the re-derivation that goes on or went last */
    bool asked;  /* a model has answered */
    bool over;   /* out->termination says how */
} kli_walk;

/* ---- talk.c: what the model is told ------------------------------------------------------ */

void kli_walk_dialog_open(kli_walk *w); /* rules, task and expert */
void kli_walk_dialog_open_rederive(kli_walk_dialog *talk, kli_walk *w, const kli_attempt *back,
                                   const kl_edge *edge);
/* The last proposal was rejected; one line of why it was, and what to do instead. */
void kli_walk_dialog_rejected(kli_walk_dialog *talk, kli_walk *w, const kli_attempt *x);
void kli_walk_dialog_accepted(kli_walk *w, const kli_attempt *x); /* it is the current kernel now */
/* The next reply, as the conversation's next turn.  Truncated and refused ones are symptoms. */
KL_MUST_USE kl_err kli_walk_dialog_ask(kli_attempt *x, kli_walk_dialog *talk, kli_walk *w,
                                       const kl_kernel *subject, kl_error *e);

/* ---- attempt.c: from a reply to a judged kernel ------------------------------------------ */

void kli_reject(kli_attempt *x, kli_walk *w, const char *kind, const char *fmt, ...)
    KL_PRINTF(4, 5);
static inline bool kli_alive(const kli_attempt *x) { return x->symptom.len == 0; }
/* Ask, read and apply to `base`.  Afterwards x->source is the new text, unless rejected or DONE. */
KL_MUST_USE kl_err kli_propose(kli_attempt *x, kli_walk_dialog *talk, kli_walk *w,
                               const kl_kernel *base, kl_error *e);
/* Take x->source through the gate: verdict, state and traits; rejected unless it is correct. */
KL_MUST_USE kl_err kli_judge(kli_attempt *x, kli_walk *w, kl_error *e);
/* Did it pass every check?  How long it takes may be unknown: a state needs no more. */
static inline bool kli_correct(const kl_verdict *v) {
    return v->outcome == KL_OUTCOME_PASS || v->outcome == KL_OUTCOME_UNSTABLE;
}
/* What a full verdict of a state asks for. */
kl_gate_opts kli_state_opts(const kli_walk *w);
/* x->source will be timed against this one if it passes: one visit to a spool's host is then
 * enough. */
void kli_prefetch_comparison(const kli_attempt *x, kli_walk *w, const kl_kernel *proven);
/* Time x's kernel against one that has passed.  Rejects x when it fails there. */
KL_MUST_USE kl_err kli_compare(kli_pairwise *out, kli_attempt *x, kli_walk *w,
                               const kl_kernel *proven, kl_error *e);
/* A judged kernel as a state.  Errors: KL_EINVAL when it was judged on another platform or task
 * version than the expert. */
KL_MUST_USE kl_err kli_state_of(kl_state *out, kli_walk *w, const kl_kernel *k, const kl_verdict *v,
                                kl_error *e);
void kli_keep_rejection(kli_walk *w, const kli_attempt *x);
/* Into the track's list of gated attempts. */
KL_MUST_USE kl_err kli_record(kli_walk *w, const kli_attempt *x, kl_str parent, kl_error *e);

/* ---- rederive.c: the forward edit -------------------------------------------------------- */

/* How fast a forward kernel is beside the one that it leads to. */
void kli_recovered(kl_edge *edge, const kli_pairwise *r);
/* Derive K_(i-1) -> K_i anew for the step that `back` has taken; fills the edge's forward part, or
 * rejects `back`. */
KL_MUST_USE kl_err kli_rederive(kl_edge *edge, kli_attempt *back, kli_walk *w, kl_error *e);

/* ---- recorded.c: what a recording shows of the decisions that were made then ------------- */

typedef enum { KLI_UNKNOWN, KLI_ACCEPTED, KLI_REJECTED } kli_recorded;
/* By what was asked after the last answer: did the step pass the gate, was the try of a
 * re-derivation taken, was the step kept in the end? */
kli_recorded kli_recorded_gate(const kli_walk *w);
kli_recorded kli_recorded_try(const kli_walk *w);
kli_recorded kli_recorded_step(const kli_walk *w);
bool kli_recorded_ends(const kli_walk *w); /* the last answer was the recording's last */
/* Is the re-derivation tried once more, after `done` tries of `most`? */
bool kli_another_try(const kli_walk *w, int done, int most);
/* A correct kernel goes the way that the recording shows; where this machine says otherwise, that
 * is told, and marked in the edge. */
void kli_follow(kl_edge *edge, kli_attempt *x, kli_walk *w, kli_recorded then);
/* The edge was decided by the recording; `here`: what this machine says. */
void kli_mark_recorded(kl_edge *edge, kli_walk *w, kl_str here);
/* The recording went on from a step that is rejected here: its next step takes the place of this
 * one. */
void kli_skip(kli_walk *w);
static inline int kli_place(const kli_walk *w) {
    return w->n + 1 + w->skipped;
} /* of the step that is asked for */

/* ---- walk.c ------------------------------------------------------------------------------ */

/* What a comparison of the simpler kernel over the other says of their edge. */
void kli_gain(kl_edge *edge, const kli_pairwise *r);
/* Nobody derives anything: the builtin provider proposes, or did when the recording was made. */
bool kli_is_mechanical(const kli_walk *w);
/* Does this error end the walk with what it has?  Then it is over, and says why. */
bool kli_ends(kli_walk *w, kl_err err, const kl_error *e);

#endif
