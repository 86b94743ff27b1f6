/* store.h - the journal, in which every verdict, every model call and every charge stays.
 *
 * A handle over a table of operations (src/store/store_ops.h); the first member keeps the rows in
 * one SQLite file (src/store/schema.sql).  Never runs a kernel, never calls a model, never judges
 * what it keeps: a verdict is JSON that the gate wrote.  Several processes may share a journal; one
 * kl_store belongs to one thread.  A worker never links this.
 *
 * Every function may wait up to 5 s for another writer (then KL_EBUSY) and gives KL_EIO, with a
 * hint, for a full disk, a file that cannot be written and a file that is damaged.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_STORE_H
#define KLINEAGE_STORE_H

#include <klineage/record.h>
#include <sys/types.h>

KL_API_BEGIN

typedef struct kl_store kl_store;

/* $KLINEAGE_STORE, else $XDG_STATE_HOME/klineage/klineage.db, else
 * ~/.local/state/klineage/klineage.db. */
kl_str kl_store_default_path(kl_arena *a);

/* Open, creating file and folders and bringing an older schema up to date.  Exactly one
 * kl_store_close. Errors: KL_EINVAL for a file of another program or of a newer klineage; it is
 * left untouched. */
KL_MUST_USE kl_err kl_store_open(kl_store **out, const char *path, kl_error *e);
void kl_store_close(kl_store *s); /* accepts NULL */
/* fork(2) for a process that has a store open: both sides may use it, each for itself.  No other
 * store of this process may be open on the same journal meanwhile, and it may hold no lease. */
KL_MUST_USE pid_t kl_store_fork(kl_store *s);

/* ---- verdicts ---------------------------------------------------------------------------- */

typedef struct {
#define KL_DEF_VERDICT_ROW KL_MEMBER
#include <klineage/store.def>
} kl_store_verdict;

/* The JSON of one verdict, in the arena, NUL-terminated.  Errors: KL_ENOENT when it is not there.
 */
KL_MUST_USE kl_err kl_store_verdict_get(kl_str *json, kl_store *s, kl_arena *a, const char *key,
                                        kl_error *e);
/* Keep a verdict; on disk when it returns.  The first writer wins: a key that exists keeps its row,
 * and that is KL_OK. Errors: KL_EINVAL for a key that is no hash or text that is no JSON, KL_ELIMIT
 * above KL_MAX_JSON_BYTES. */
KL_MUST_USE kl_err kl_store_verdict_put(kl_store *s, const kl_store_verdict *v, kl_error *e);
/* The full key of the one verdict whose key begins with `prefix` (at least 4 digits).
 * Errors: KL_ENOENT when there is none, KL_EINVAL when there are several. */
KL_MUST_USE kl_err kl_store_verdict_find(char key[65], kl_store *s, const char *prefix,
                                         kl_error *e);

/* Which verdicts; all-zero means all. */
typedef struct {
    const char *task, *kernel, *platform, *outcome; /* exact; NULL: any */
    int64_t limit;                                  /* at most so many, newest first; 0: no limit */
} kl_store_verdict_query;

/* Calls `visit` for each, newest first; the row's text lives during the call only.  A nonzero
 * return stops, and is returned.  The callback must not use the same store. */
KL_MUST_USE kl_err kl_store_verdict_each(kl_store *s, const kl_store_verdict_query *q,
                                         kl_err (*visit)(void *ctx, const kl_store_verdict *v),
                                         void *ctx, kl_error *e);
/* The same as an array in the arena. */
KL_MUST_USE kl_err kl_store_verdict_list(kl_store_verdict **rows, size_t *n, kl_store *s,
                                         kl_arena *a, const kl_store_verdict_query *q, kl_error *e);

/* ---- blobs: text by content -------------------------------------------------------------- */

/* Sources, prompts, replies: kept once, for all users.  `hash`: sha256, filled. */
KL_MUST_USE kl_err kl_store_blob_put(char hash[65], kl_store *s, kl_str text, kl_error *e);
/* NUL-terminated, in the arena.  Errors: KL_ENOENT. */
KL_MUST_USE kl_err kl_store_blob_get(kl_str *text, kl_store *s, kl_arena *a, kl_str hash,
                                     kl_error *e);

/* ---- runs -------------------------------------------------------------------------------- */

typedef struct {
#define KL_DEF_RUN_ROW KL_MEMBER
#include <klineage/store.def>
} kl_store_run;

KL_MUST_USE kl_err kl_store_run_put(kl_store *s, const kl_store_run *r,
                                    kl_error *e); /* a known id keeps its row */
KL_MUST_USE kl_err kl_store_run_list(kl_store_run **rows, size_t *n, kl_store *s, kl_arena *a,
                                     kl_error *e); /* newest first */
KL_MUST_USE kl_err kl_store_run_find(kl_store_run *out, kl_store *s, kl_arena *a,
                                     const char *prefix, kl_error *e); /* as verdict_find */

/* ---- effects: what was asked and what came back ------------------------------------------ */

typedef struct {
#define KL_DEF_EFFECT_ROW KL_MEMBER
#include <klineage/store.def>
} kl_store_effect;

/* Errors: KL_ENOENT. */
KL_MUST_USE kl_err kl_store_effect_get(kl_store_effect *out, kl_store *s, kl_arena *a,
                                       const char *key, kl_error *e);
/* First writer wins; KL_OK then too. */
KL_MUST_USE kl_err kl_store_effect_put(kl_store *s, const kl_store_effect *f, kl_error *e);
/* Of a run (and a track, NULL: all), in the order they were written. */
KL_MUST_USE kl_err kl_store_effect_list(kl_store_effect **rows, size_t *n, kl_store *s, kl_arena *a,
                                        const char *run, const char *track, kl_error *e);

/* ---- leases: which process works on what ------------------------------------------------- */

/* This process alone works on `name` until it releases the lease or ends.  A lease has an owner, a
 * process, and a deadline, and is renewed in the background.  It is taken over at once from an
 * owner of this host that is gone, and after its deadline from one that cannot be seen from here.
 */
typedef struct kl_lease kl_lease;

enum { KL_LEASE_OWNER_BYTES = 128 };

/* Errors: KL_EBUSY, with "process 17" in `owner`, where another process has it; a journal that is
 * busy leaves `owner` empty. */
KL_MUST_USE kl_err kl_lease_take(kl_lease **out, kl_store *s, const char *name,
                                 char owner[KL_LEASE_OWNER_BYTES], kl_error *e);
void kl_lease_release(kl_lease *l); /* before its store is closed; accepts NULL */

/* ---- the ledger -------------------------------------------------------------------------- */

typedef struct {
#define KL_DEF_CHARGE KL_MEMBER
#include <klineage/store.def>
} kl_store_charge;
extern const kl_record KL_CHARGE;

/* In one transaction: sum what the track and the run have committed (settled, else reserved), and
 * write the row unless a cap would be passed.  `repeatable`: a reservation left by a crash is taken
 * over; otherwise it becomes "lost" and this is the next attempt.  A cap of 0 allows only a
 * reservation of 0; run_cap 0: none.  Where less is left than is asked for, `c` says afterwards
 * what was reserved.  Errors: KL_EBUDGET, with what is left; KL_EBUSY: the lease is another's. */
KL_MUST_USE kl_err kl_store_reserve(kl_store *s, kl_store_charge *c, bool repeatable,
                                    int64_t track_cap, int64_t run_cap, kl_error *e);
/* In one transaction: keep the effect and settle its open reservation. */
KL_MUST_USE kl_err kl_store_settle(kl_store *s, const kl_store_effect *f, const kl_store_charge *c,
                                   kl_error *e);
/* The call did not happen and cost nothing (refused before it was sent, pending): the reservation
 * goes. */
KL_MUST_USE kl_err kl_store_release(kl_store *s, const char *effect, kl_error *e);
/* The call failed and may have been billed: the reservation stays and counts in full. */
KL_MUST_USE kl_err kl_store_lose(kl_store *s, const char *effect, kl_error *e);
/* The answer broke off: of the reservation stays the most that what arrived can have cost,
 * `c->settled_microusd`, with its tokens. */
KL_MUST_USE kl_err kl_store_break_off(kl_store *s, const kl_store_charge *c, kl_error *e);
/* In the order they were reserved; `run` NULL: of every run. */
KL_MUST_USE kl_err kl_store_charge_list(kl_store_charge **rows, size_t *n, kl_store *s, kl_arena *a,
                                        const char *run, kl_error *e);

/* ---- steps, lineages, trials: JSON that their modules own -------------------------------- */

/* A step of a track; (run, track, n) is its key, the last writer wins (a resumed line writes the
 * same). */
typedef struct {
#define KL_DEF_STEP_ROW KL_MEMBER
#include <klineage/store.def>
} kl_store_step;
KL_MUST_USE kl_err kl_store_step_put(kl_store *s, const kl_store_step *row, kl_error *e);
/* Keep the first `n` steps: a line that another budget led another way leaves none of the old way
 * behind. */
KL_MUST_USE kl_err kl_store_step_cut(kl_store *s, const char *run, const char *track, int64_t n,
                                     kl_error *e);
KL_MUST_USE kl_err kl_store_step_list(kl_store_step **rows, size_t *n, kl_store *s, kl_arena *a,
                                      const char *run, kl_error *e);

/* kind "lineage", written by lineage/lineage.c; "noise", by run/noise.c, named by host; "reward",
 * by reward/kept.c; trials stay in their cards.  A known (kind, id) is replaced. */
typedef struct {
#define KL_DEF_RECORD_ROW KL_MEMBER
#include <klineage/store.def>
} kl_store_record;
KL_MUST_USE kl_err kl_store_record_put(kl_store *s, const kl_store_record *r, kl_error *e);
KL_MUST_USE kl_err kl_store_record_find(
    kl_store_record *out, kl_store *s, kl_arena *a, const char *kind, const char *id_or_name,
    kl_error *e); /* an id's prefix or the newest of that name */
/* At most `limit` of that name, newest first. */
KL_MUST_USE kl_err kl_store_record_latest(kl_store_record **rows, size_t *n, kl_store *s,
                                          kl_arena *a, const char *kind, const char *name,
                                          int64_t limit, kl_error *e);
KL_MUST_USE kl_err kl_store_record_list(kl_store_record **rows, size_t *n, kl_store *s, kl_arena *a,
                                        const char *kind, kl_error *e);

KL_API_END
#endif
