/* run.h - effects: everything that costs goes through here, is written down before it is used, and
 * is never paid twice.
 *
 * A policy is straight-line C over kl_ask (a model) and kl_judge (the gate).  Both look their
 * request up in the journal by content first; so to resume is to run again.  Where an answer is not
 * there yet they give KL_PENDING, the track unwinds, and the next invocation goes one effect
 * further (laws 6, 8, 9).  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_RUN_H
#define KLINEAGE_RUN_H

#include <klineage/executor.h>
#include <klineage/model.h>
#include <klineage/store.h>

KL_API_BEGIN

typedef struct {
    const char *command;   /* "walk", "optimize", "admit", ... */
    const char *store;     /* path; NULL: the default place */
    const char *model;     /* spec; NULL: no model may be asked */
    const char *priced_as; /* price row to use instead of the model's own name: for mailbox,
                              command, replay */
    /* Answers instead of the one that `model` names: for tests, and for a program that has its own.
     * `model` (NULL: the provider's name) then only identifies the run, what follows its colon goes
     * to `open`, and the price is that of `priced_as` or of the provider's name. */
    const kl_provider *provider;
    int64_t budget_microusd; /* cap of each track; 0: only calls that cost nothing */
    int64_t total_microusd;  /* cap of the whole run; 0: tracks' caps alone */
    uint64_t trial;          /* tells repetitions of the same command apart */
    const kl_str *identity;
    int n_identity;    /* everything else that makes it this run and no other: task version, kernel
                          hash, options */
    kl_gate_opts gate; /* base options of every gate run */
    const char *executor; /* spec of who judges: "spool:DIR"; NULL: "local" */
    /* One that is in no table, opened with what follows the colon of `executor`; NULL: the one that
     * `executor` names. */
    const kl_executor_ops *executor_ops;
} kl_run_opts;

/* A run is its id: sha256 of command, model, trial and identity.  The same command is the same run,
 * and resumes. */
typedef struct kl_run kl_run;
KL_MUST_USE kl_err kl_run_open(kl_run **out, const kl_run_opts *o, kl_error *e);
void kl_run_close(kl_run *r); /* accepts NULL */
const char *kl_run_id(const kl_run *r);
bool kl_run_resumed(const kl_run *r); /* the journal knew it when it was opened */
kl_store *kl_run_store(kl_run *r);    /* borrowed */

/* ---- the A/A record of a host ------------------------------------------------------------ */

/* Keep a measurement in the journal; one that did not settle tells nothing, and is not kept. */
KL_MUST_USE kl_err kl_noise_keep(kl_store *s, kl_arena *a, const kl_noise *n, kl_error *e);
/* What the journal knows of this host; `n` is 0 where it knows nothing. */
KL_MUST_USE kl_err kl_noise_recall(kl_noise_record *out, kl_store *s, kl_arena *a, kl_error *e);
/* The same of a run's journal.  Its gates take it as kl_gate_opts.noise, as it is when the run is
 * opened and after each measurement that is kept. */
KL_MUST_USE kl_err kl_run_keep_noise(kl_run *r, const kl_noise *n, kl_error *e);
const kl_noise_record *kl_run_noise(const kl_run *r);

/* ---- a track: one independent line of work ----------------------------------------------- */

typedef struct kl_track kl_track;

typedef struct {
    const char *name; /* unique in the run, "gemm/klineage/1"; part of every effect's key */
    const char *workload, *policy; /* for the ledger */
    /* The straight line.  KL_PENDING: an answer is missing.  Called again from its beginning until
     * it returns something else. */
    kl_err (*body)(kl_track *t, void *ctx, kl_error *e);
    void *ctx;
    kl_error *result; /* filled: how this track ended, code KL_OK where its ctx holds the result;
                         may be NULL */
} kl_track_spec;

typedef enum { KL_TRACK_WAITS, KL_TRACK_RUNS, KL_TRACK_ENDED } kl_track_state;

typedef struct {
    int jobs;   /* tracks at a time, each in its own process; 0: 1 */
    bool once;  /* pump: return KL_PENDING instead of waiting for a mailbox or an executor */
    bool quiet; /* tracks print nothing: the caller shows their progress */
    /* Called now and then while several tracks run, with one state per track.  It may read the
     * run's store. */
    void (*tick)(void *ctx, const kl_track_state *states, int n);
    void *tick_ctx;
} kl_track_opts;

/* Run every track to its end, then each line that ended well once more in this process, out of the
 * journal alone, so that its ctx holds the result.  A single track runs here at once.  Two
 * processes may not work on one track (a lease): KL_EBUSY.  No other store of this process may be
 * open on the same journal meanwhile (kl_store_fork).  Errors: KL_PENDING (with `once`), KL_EINTR
 * (says how to resume), else the first track's error after the others ended. */
KL_MUST_USE kl_err kl_run_tracks(kl_run *r, const kl_track_spec *tracks, int n,
                                 const kl_track_opts *o, kl_error *e);

kl_arena *kl_track_arena(kl_track *t); /* of the last pass, the one whose results count, lives until
                                          kl_run_close; others until the line returns */
uint64_t
kl_track_seed(const kl_track *t,
              const char *name); /* root of a named substream of the run and the track (law 9) */
const kl_gate_opts *kl_track_gate_opts(
    const kl_track *t); /* the run's base options, to be copied and changed for one kl_judge */
const char *kl_track_model(const kl_track *t);       /* who answers: kl_model_name; borrowed */
void kl_track_phase(kl_track *t, const char *phase); /* for the ledger: walk, rederive, lift, admit,
                                                        retrieve, materialize, repair */
/* One line for who watches: a progress line on a terminal, a plain line elsewhere; silent while the
 * journal answers. */
void kl_track_log(kl_track *t, const char *fmt, ...) KL_PRINTF(2, 3);
void kl_track_best(kl_track *t, double ratio); /* best so far, for that line; 0: none */

/* ---- effects ----------------------------------------------------------------------------- */

/* Ask the model.  Reserved, asked, journaled and settled; the n-th identical request of a track has
 * its own key. Errors: KL_PENDING, KL_EBUDGET (the cap would be passed: nothing was asked),
 * KL_EMODEL, KL_ENOENT (replay ended; unknown price). */
KL_MUST_USE kl_err kl_ask(kl_reply *out, kl_track *t, kl_arena *a, const kl_request *q,
                          kl_error *e);
/* What a scripted replay has recorded in this track after the call in `slot`, both without the
 * track's name ("rederive 3/0"); `slot` NULL: the call that was answered last.  "": that was the
 * last one; NULL: nothing is replayed, or no such call. */
const char *kl_track_recorded_next(kl_track *t, const char *slot);
/* Take a kernel through the gate, or out of the journal.  `o` NULL: the run's base options; else it
 * wins as a whole. Errors: as kl_gate_run, KL_PENDING. */
KL_MUST_USE kl_err kl_judge(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task,
                            const kl_kernel *k, const kl_gate_opts *o, kl_error *e);
/* What will be asked if the next answer is a good one.  Where that has to wait for others, this is
 * submitted as well, so that one visit to another host answers both; what was not asked for by the
 * end of the line is cancelled.  `k` and what `o` names live until that next kl_judge has returned.
 */
void kl_prefetch(kl_track *t, const kl_task *task, const kl_kernel *k, const kl_gate_opts *o);
/* The same as kl_judge for text: one that does not parse is a verdict (refused), `*k` NULL then. */
KL_MUST_USE kl_err kl_judge_text(kl_verdict *out, kl_kernel **k, kl_track *t, kl_arena *a,
                                 const kl_task *task, kl_str source, const kl_surface *s,
                                 const kl_gate_opts *o, kl_error *e);
/* Key of the verdict that the last kl_judge of this track gave, for evidence. */
const char *kl_track_verdict_key(const kl_track *t);
/* Micro-dollars of every call this track's line has used so far, in the line's own order: a call
 * answered from the journal counts what it cost then, so that a resumed line sees the numbers of
 * the first time. */
int64_t kl_track_spent(const kl_track *t);
int64_t kl_track_budget(const kl_track *t); /* cap of the track; 0: only what costs nothing */

/* Write down one gated attempt, for tables and figures; the track numbers them.  Idempotent.  The
 * track fills in workload, policy, source and what was spent, and its own phase where there is
 * none.
 */
typedef struct {
#define KL_DEF_STEP KL_MEMBER
#include <klineage/run.def>
} kl_step;
extern const kl_record KL_STEP;
KL_MUST_USE kl_err kl_track_step(kl_track *t, const kl_step *s, kl_str kernel_source, kl_error *e);

KL_API_END
#endif
