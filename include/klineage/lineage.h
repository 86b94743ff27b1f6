/* lineage.h - the proven chain from naive to expert: how it is found (walk) and what it is.
 *
 * Owns the lineage document and the walk that makes one: guided deoptimization (KLineage paper, section 3.2).  Never lifts, never judges by
 * itself: every edge rests on two verdicts of the same task version and platform (law 4).  Format: docs/formats/lineage.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_LINEAGE_H
#define KLINEAGE_LINEAGE_H

#include <klineage/run.h>

KL_API_BEGIN

/* One kernel of the chain, K_i. */
typedef struct {
    kl_str    name;           /* "K0" ... "Kn"; K0 is the simplest reached */
    kl_str    hash, source;   /* identity and text of the kernel */
    kl_traits traits;
    kl_str    verdict_key;
    double    ratio, low, high; /* against the primary baseline; 0: not known */
    int64_t   median_ns;
    bool      unsettled;      /* correct, and its time did not settle: a state needs no more */
    kl_str    receipt;        /* of the verdict */
} kl_state;

typedef struct {
    kl_str action, locus, why, symptom; /* symptom: "wrong: ...", "not_simpler: ...", "no_edit: ..." */
    kl_str edit;              /* the proposal's text, as the model wrote it */
    kl_str verdict_key;       /* empty when nothing was gated */
    kl_str stage;             /* "deoptimize" or "rederive" */
} kl_rejection;

/* K_from -> K_to, to = from + 1: the backward step that was accepted and the forward edit that was re-derived. */
typedef struct {
    int    from, to;          /* indexes of states */
    kl_str action, bundle, locus, why;
    kl_str backward;          /* edits K_to -> K_from */
    kl_str forward;           /* edits K_from -> forward_source, derived without sight of K_to; empty: none was found, which only an edge
                               * that does not pay may have */
    kl_str forward_hash, forward_source, forward_verdict_key, forward_receipt;
    double forward_ratio, forward_low, forward_high;   /* against the primary baseline */
    kl_str witness;           /* "alone": forward was re-derived independently of the walk; "failed": that was tried without success;
                                 "none": not re-derived yet; empty: in the walk alone */
    bool   mechanical;        /* forward is the reverse of backward: a model that cannot derive proposed it */
    double recovered, recovered_low, recovered_high;   /* speed of the forward kernel over that of K_to, interleaved: 1 is all of it; 0: not
                               * compared, because it is K_to itself or the edge does not pay */
    kl_str recovered_verdict_key, recovered_receipt;   /* of that comparison: the forward kernel against K_to */
    double gain, gain_low, gain_high;                  /* speed of K_to over that of K_from, interleaved */
    kl_str gain_verdict_key, gain_receipt;             /* of that comparison: K_from against K_to, so its ratio is 1/gain */
    double floor;             /* A/A, of that comparison; 0: not known */
    kl_call call;             /* what that comparison means, K_to over K_from: `undecided` is an edge that could not be measured */
    bool   has_call;          /* floor and call stand in the document; without them the call is kl_decide's of the interval alone */
    bool   pays;              /* call is faster: otherwise the edge is a sound simplification that cost nothing that was seen */
    kl_str decided, here;     /* "recorded": a recording was followed where this machine said otherwise or could not tell, and what it said */
    kl_str raised;            /* witness traits that K_to has over K_from */
    kl_traits before, after;
    kl_rejection *rejections; int n_rejections; /* attempts that failed on the way to this edge */
} kl_edge;

typedef enum {
    KL_WALK_COMPLETE, KL_WALK_STEP_LIMIT, KL_WALK_REJECTION_LIMIT, KL_WALK_BUDGET, KL_WALK_STOPPED,
    KL_WALK_UNSETTLED,        /* the world failed before the next step was decided: gate, device, disk, network */
    KL_WALK_INTERRUPTED
} kl_termination;

typedef struct {
    kl_str id;                /* sha256 of the document without it */
    kl_str name;              /* "gemm-c-expert" */
    kl_str task, task_hash, case_name, surface, workload, platform, toolchain, dtype; /* dtype of the first input */
    kl_str model;             /* who proposed: "claude-opus-4-6", "mailbox", "builtin", "replay" */
    kl_str run;               /* run id in the journal that made it */
    kl_str expert;            /* path as it was named, for people */
    kl_termination termination;
    kl_str     termination_why;
    kl_state  *states; int n_states;   /* K0 first */
    kl_edge   *edges;  int n_edges;    /* edges[i] leads from states[i] to states[i+1] */
    kl_rejection *rejections; int n_rejections; /* after the last accepted step */
    kl_state   naive;         /* the task's own naive kernel, by which K0 is called naive; hash empty when it could not be judged */
    int64_t spent_microusd;
    bool    estimated;
    kl_str  created;
} kl_lineage;

const char *kl_termination_name(kl_termination t); /* "complete" "step_limit" "rejection_limit" "budget" "stopped" "unsettled" "interrupted" */

typedef struct {
    int    max_steps;         /* 0: 16 */
    int    max_rejections;    /* per step; 0: 4 */
    double recover;           /* forward speed over K_i's that an edge needs; 0: 0.99.  A no is only what is surely slower, by kl_decide, and below it */
    int    max_rederive;      /* tries per edge; 0: 2 */
    bool   backward_only;     /* accept steps without a forward edit: kl_lineage_rederive then derives all edges, each in a track of its own */
    const char *name;         /* of the lineage; NULL: TASK-SURFACE-FILE */
    const char *run;          /* id of the run, for the document; NULL: none */
} kl_walk_opts;

/* Walk `expert` backward.  A track's line: call it from one.  The lineage lives in the track's arena.  States need correctness alone; a race that
 * does not settle is an edge that could not be measured.  After an error other than KL_PENDING `out` is the lineage so far when an edge was proven
 * (its id is filled), else out->id is empty.  Where a recording answers, it decides what the gate leaves open: src/lineage/recorded.c.
 * Errors: KL_EINVAL (the expert itself does not pass the gate: says why), KL_PENDING, KL_EINTR, KL_EMODEL, those of the gate. */
KL_MUST_USE kl_err kl_lineage_walk(kl_lineage *out, kl_track *t, const kl_task *task, const kl_workload *w, const kl_kernel *expert,
                                   const kl_walk_opts *o, kl_error *e);

/* Derive edge `index` once more, in a track of its own, independently of the walk.  `out` is the edge with the result: a new
 * forward part and witness "alone", or the old one and "failed".  Give the edges back to their lineage, then sign it.  Errors: as kl_lineage_walk; KL_EBUDGET. */
KL_MUST_USE kl_err kl_lineage_rederive(kl_edge *out, kl_track *t, const kl_task *task, const kl_workload *workload, const kl_lineage *l, int index,
                                       const kl_walk_opts *o, kl_error *e);
/* Repeat every comparison of `l`, by today's gate and rule: `out` is the lineage with the results, with a new id.  Through a spool all of them are
 * put at once.  Errors: KL_EINVAL (another platform, toolchain or version of the task; a kernel that is not correct any more), KL_PENDING, those of the gate. */
KL_MUST_USE kl_err kl_lineage_judge(kl_lineage *out, kl_track *t, const kl_task *task, const kl_workload *workload, const kl_lineage *l, kl_error *e);
void    kl_lineage_sign(kl_lineage *l, kl_arena *a); /* fills id anew after a change */

json_t *kl_lineage_json(const kl_lineage *l);
/* Checks what must hold: edges join neighbouring states, hashes are those of the sources, law 4's fields agree.  Errors: KL_EPARSE, KL_EINVAL. */
KL_MUST_USE kl_err kl_lineage_parse(kl_lineage *out, kl_arena *a, kl_str json, kl_str file, kl_error *e);
/* Under its id, which walk and parse fill.  Errors: KL_EINVAL when it does not match the document any more. */
KL_MUST_USE kl_err kl_lineage_keep(const kl_lineage *l, kl_store *s, kl_error *e);
/* A file, or an id or name in the store. */
KL_MUST_USE kl_err kl_lineage_load(kl_lineage *out, kl_arena *a, kl_store *s, const char *what, kl_error *e);
/* A table for a terminal: state, action, gain, ratio. */
void    kl_lineage_render(const kl_lineage *l, kl_buf *out, bool colour);
/* A git repository at `dir` (must not exist): naive first, one commit per edge with its evidence, `git log -p` is the curriculum.
 * Reproducible: authors and dates come from the lineage.  Errors: KL_ENODEV (no git), KL_EIO. */
KL_MUST_USE kl_err kl_lineage_export_git(const kl_lineage *l, const char *dir, kl_error *e);

KL_API_END
#endif
