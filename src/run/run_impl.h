/* run_impl.h - the inside of a run: what a track remembers while its line is gone through.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_RUN_RUN_IMPL_H
#define KL_RUN_RUN_IMPL_H
#include "kernel/kernel.h"
#include "run/effects.h"

struct kl_run {
    kl_arena *arena;
    kl_run_opts opts; /* texts copied */
    kl_str path;      /* of the store */
    kl_store *store;
    char id[65];
    bool resumed;          /* the journal knew it before */
    kl_noise_record noise; /* of this host */
    int64_t start_ns;
    kl_arena **kept; /* arenas of lines that ended */
    size_t n_kept;
};

/* How often the line has had an answer to the same text so far. */
typedef struct {
    kl_str what;
    int64_t n;
} kli_count;

/* An effect that ended in an error: carried to the process that goes through the line again out of
 * the journal. */
typedef struct {
    char key[65];
    kl_error error;
} kli_failure;

/* Failures beyond these are not carried; a line that goes on after so many would not be a line. */
enum { KLI_MAX_FAILURES = 256 };

/* An effect whose verdict did not settle: written down when the line goes on from it.  A line that
 * gives up on it measures again when it is resumed. */
typedef struct {
    bool there;
    char key[65], question[65], verdict[65];
    kl_str purpose;
    int64_t ordinal;
} kli_pending_check;

/* A job that was submitted before anybody asked for it; an empty id: somebody did. */
typedef struct {
    char id[65];
} kli_ahead;

/* A track of a run: its effects are journaled. */
typedef struct {
    kl_track base;
    kl_run *run;
    const kl_track_spec *spec;
    bool many;         /* other tracks may write to the same terminal */
    bool journal_only; /* nothing is asked or judged */
    kl_arena *keep;    /* as long as the track */

    /* of this pass through the line */
    kli_count *counts;
    size_t n_counts;
    int64_t steps;
    bool live; /* something was asked or judged: from here on there is something to say */
    kli_pending_check pending_check;
    kl_gate_job prefetched; /* comes next if the question that is asked now is answered well; no
                               kernel: nothing is */
    const char *slot;       /* of the call that was answered last; NULL: none was */

    /* opened on first use, kept from pass to pass */
    kl_model *model;
    kl_error *no_model; /* why it could not be opened to say its name: then it is not asked under
                           another one */
    void *own;          /* self of run->opts.provider */
    bool own_open;
    kl_executor *executor;
    char awaited[65]; /* the job that this pass ended at; empty: it waits for something else */
    kli_ahead *ahead;
    size_t n_ahead;
    kl_lease *lease; /* NULL: none */
    int64_t start_ns;
    kl_str waiting; /* what was said last while waiting */

    kli_failure *failures;
    size_t n_failures;
} kli_track;

extern const kli_run_effects kli_journaled; /* track.c */
static inline kli_track *kli_of(kl_track *t) {
    return (kli_track *)t;
} /* of a track whose effects are these */
static inline const kli_track *kli_of_const(const kl_track *t) { return (const kli_track *)t; }

/* The operations; see effects.h. */
kl_err kli_effect_ask(kl_reply *out, kl_track *t, kl_arena *a, const kl_request *q, kl_error *e);
kl_err kli_effect_judge(kl_verdict *out, kl_track *t, kl_arena *a, const kl_gate_job *j,
                        kl_error *e);
kl_err kli_effect_refuse(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task,
                         kl_str source, kl_str path, const kl_error *why, kl_error *e);
void kli_effect_foresee(kl_track *t, const kl_gate_job *j);
kl_err kli_effect_step(kl_track *t, const kl_step *s, kl_str kernel_source, kl_error *e);
const char *kli_effect_model(const kl_track *t);
const char *kli_effect_recorded_next(kl_track *t, const char *slot);

/* Rows of an earlier pass behind the last step of this one go. */
KL_MUST_USE kl_err kli_steps_end(kli_track *t, kl_error *e);
/* The line ended: what was submitted ahead and not asked for is waited for by nobody. */
void kli_ahead_cancel(kli_track *t);

void kli_track_init(kli_track *t, kl_run *r, const kl_track_spec *spec);
void kli_track_fini(kli_track *t);
void kli_track_begin(kli_track *t); /* the line starts from its beginning */
/* This process alone works on the track until fini.  Errors: KL_EBUSY. */
KL_MUST_USE kl_err kli_track_lease(kli_track *t, kl_error *e);

/* How often there was an answer to `what` in this pass, and one more. */
int64_t kli_count_of(const kli_track *t, kl_str what);
void kli_count_up(kli_track *t, kl_str what);
/* Key of an effect: sha256 over run, track, kind, content and how often it was answered before. */
void kli_effect_key(char key[65], const kli_track *t, const char *kind, kl_str content);

/* The beginning of a hash as a root of random numbers; never 0. */
uint64_t kli_hash_seed(const kl_str *parts, size_t n);

/* An effect failed: remember it, and give the error back. */
kl_err kli_fail_remember(kli_track *t, const char *key, kl_err err, const kl_error *e);
/* What the effect ended in, as the process that tried it said; a line that asks for something else
 * is a bug in it. */
kl_err kli_fail_recall(const kli_track *t, const char *key, kl_error *e);
/* The user asked to stop: nothing new is begun. */
KL_MUST_USE kl_err kli_check_interrupt(const kli_track *t, kl_error *e);

/* The line goes on: what it goes on from is written down. */
KL_MUST_USE kl_err kli_pending_check_write(kli_track *t, kl_error *e);

/* One pass after the other until the line ends; `once`: not if it waits. */
KL_MUST_USE kl_err kli_track_run(kli_track *t, bool once, kl_error *e);

#endif
