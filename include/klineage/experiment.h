/* experiment.h - a comparison at equal cost: workloads x policies x surfaces x trials as one run of
 * many tracks.
 *
 * Owns the plan (a YAML file, docs/formats/experiment.md, or the arguments of a command), the
 * tracks that follow from it, and the table that is seen while they run.  Everything that can be
 * wrong with a plan is found before anything is paid.  What came out is told by report.h, from the
 * journal. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_EXPERIMENT_H
#define KLINEAGE_EXPERIMENT_H

#include <klineage/search.h>

KL_API_BEGIN

/* A plan, and a row of its workloads and of its policies, in the arena. */
typedef struct kl_experiment kl_experiment;
typedef struct kl_experiment_workload kl_experiment_workload;
typedef struct kl_experiment_policy kl_experiment_policy;

/* Read a plan: tasks found, kernels parsed, policies and their parameters known and within bounds.
 * Paths are relative to the file's folder. Errors: KL_ENOENT, KL_EPARSE and KL_EINVAL with
 * file:line:column and the line, KL_ELIMIT; those of tasks and kernels as these have them. */
KL_MUST_USE kl_err kl_experiment_load(kl_experiment **out, kl_arena *a, const char *path,
                                      kl_error *e);
/* Load the library when a policy uses one.  Errors: as kl_library_load. */
KL_MUST_USE kl_err kl_experiment_cards(kl_experiment *x, kl_arena *a, kl_error *e);
/* Is every call that the plan may make one that has a price and a budget?  `free`: calls cost
 * nothing.  Errors: KL_EINVAL (no model, no budget), KL_ENOENT (unknown price), those of opening a
 * model that is not reached over a network. */
KL_MUST_USE kl_err kl_experiment_priced(bool *free, const kl_experiment *x, kl_arena *a,
                                        kl_error *e);
/* What makes it this experiment and no other: neither its title nor its budget. */
void kl_experiment_identity(kl_str **parts, int *n, kl_arena *a, const kl_experiment *x);
/* Of the admitted cards as they are now; empty without any. */
kl_str kl_experiment_cards_id(const kl_experiment *x, kl_arena *a);

typedef struct {
    const char *name; /* "softmax/klineage/1" */
    const kl_experiment_workload *workload;
    const kl_experiment_policy *policy;
    int trial; /* from 1 */
    kl_search_opts opts;
    kl_search_result result; /* counts where `error.code` is KL_OK; lives as long as the run */
    kl_error error;
} kl_experiment_track;

/* Every track of the plan, workloads first.  Errors: KL_EINVAL (two of the same name), KL_ELIMIT
 * (above KL_MAX_TRACKS). */
KL_MUST_USE kl_err kl_experiment_tracks(kl_experiment_track **out, int *n, kl_arena *a,
                                        const kl_experiment *x, kl_error *e);
/* The most that `n` tracks can cost together. */
int64_t kl_experiment_most(const kl_experiment *x, int n);
/* Run them; several at a time are shown as a table on stderr while they run, when `table` says so.
 * Errors: as kl_run_tracks; each track has its own. */
KL_MUST_USE kl_err kl_experiment_run(kl_run *r, const kl_experiment *x, kl_experiment_track *tracks,
                                     int n, const kl_track_opts *o, bool table, kl_error *e);

KL_API_END
#endif
