/* lineage.h - the proven chain from naive to expert: how it is found (walk) and what it is.
 *
 * Owns the lineage document and the walk that makes one: guided deoptimization (KLineage paper,
 * section 3.2).  Never lifts, never judges by itself: every edge rests on two verdicts of the same
 * task version and platform (law 4).  Format: docs/formats/lineage.md. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KLINEAGE_LINEAGE_H
#define KLINEAGE_LINEAGE_H

#include <klineage/run.h>

KL_API_BEGIN

/* The records are declared in lineage.def, with the meaning of each field. */

/* One kernel of the chain, K_i. */
typedef struct {
#define KL_DEF_STATE KL_MEMBER
#include <klineage/lineage.def>
} kl_state;

typedef struct {
#define KL_DEF_REJECTION KL_MEMBER
#include <klineage/lineage.def>
} kl_rejection;

/* K_from -> K_to, to = from + 1: the backward step that was accepted and the forward edit that was
 * re-derived. */
typedef struct {
#define KL_DEF_EDGE KL_MEMBER
#include <klineage/lineage.def>
} kl_edge;

typedef enum {
#define KL_DEF_TERMINATION(id, name, meaning) id,
#include <klineage/lineage.def>
} kl_termination;

typedef struct {
#define KL_DEF_LINEAGE KL_MEMBER
#include <klineage/lineage.def>
} kl_lineage;
extern const kl_record KL_LINEAGE;

const char *kl_termination_name(kl_termination t);

typedef struct {
    int max_steps;      /* 0: 16 */
    int max_rejections; /* per step; 0: 4 */
    double recover;   /* forward speed over K_i's that an edge needs; 0: 0.99.  A no is only what is
                         surely slower, by kl_decide, and below it */
    int max_rederive; /* tries per edge; 0: 2 */
    bool backward_only; /* accept steps without a forward edit: kl_lineage_rederive then derives all
                           edges, each in a track of its own */
    const char *name;   /* of the lineage; NULL: TASK-SURFACE-FILE */
    const char *run;    /* id of the run, for the document; NULL: none */
} kl_walk_opts;

/* Walk `expert` backward.  A track's line: call it from one.  The lineage lives in the track's
 * arena.  States need correctness alone; a comparison that does not settle is an edge that could
 * not be measured.  After an error other than KL_PENDING `out` is the lineage so far when an edge
 * was proven (its id is filled), else out->id is empty.  Where a recording answers, it decides what
 * the gate leaves open: src/lineage/recorded.c. Errors: KL_EINVAL (the expert itself does not pass
 * the gate: says why), KL_PENDING, KL_EINTR, KL_EMODEL, those of the gate. */
KL_MUST_USE kl_err kl_lineage_walk(kl_lineage *out, kl_track *t, const kl_task *task,
                                   const kl_workload *w, const kl_kernel *expert,
                                   const kl_walk_opts *o, kl_error *e);

/* Derive edge `index` once more, in a track of its own, independently of the walk.  `out` is the
 * edge with the result: a new forward part and witness "alone", or the old one and "failed".  Give
 * the edges back to their lineage, then sign it.  Errors: as kl_lineage_walk; KL_EBUDGET. */
KL_MUST_USE kl_err kl_lineage_rederive(kl_edge *out, kl_track *t, const kl_task *task,
                                       const kl_workload *workload, const kl_lineage *l, int index,
                                       const kl_walk_opts *o, kl_error *e);
/* Repeat every comparison of `l`, by today's gate and rule: `out` is the lineage with the results,
 * with a new id.  Through a spool all of them are put at once.  Errors: KL_EINVAL (another
 * platform, toolchain or version of the task; a kernel that is not correct any more), KL_PENDING,
 * those of the gate. */
KL_MUST_USE kl_err kl_lineage_judge(kl_lineage *out, kl_track *t, const kl_task *task,
                                    const kl_workload *workload, const kl_lineage *l, kl_error *e);
void kl_lineage_sign(kl_lineage *l, kl_arena *a); /* fills id anew after a change */

json_t *kl_lineage_json(const kl_lineage *l);
/* Checks what must hold: edges join neighbouring states, hashes are those of the sources, law 4's
 * fields agree.  Errors: KL_EPARSE, KL_EINVAL. */
KL_MUST_USE kl_err kl_lineage_parse(kl_lineage *out, kl_arena *a, kl_str json, kl_str file,
                                    kl_error *e);
/* Under its id, which walk and parse fill.  Errors: KL_EINVAL when it does not match the document
 * any more. */
KL_MUST_USE kl_err kl_lineage_keep(const kl_lineage *l, kl_store *s, kl_error *e);
/* A file, or an id or name in the store. */
KL_MUST_USE kl_err kl_lineage_load(kl_lineage *out, kl_arena *a, kl_store *s, const char *what,
                                   kl_error *e);
/* A table for a terminal: state, action, gain, ratio. */
void kl_lineage_render(const kl_lineage *l, kl_buf *out, bool colour);
/* A git repository at `dir` (must not exist): naive first, one commit per edge with its evidence,
 * `git log -p` is the curriculum. Reproducible: authors and dates come from the lineage.  Errors:
 * KL_ENODEV (no git), KL_EIO. */
KL_MUST_USE kl_err kl_lineage_export_git(const kl_lineage *l, const char *dir, kl_error *e);

KL_API_END
#endif
