/* store.h - the journal: one SQLite file in which every verdict stays.
 *
 * Owns the file and its schema (src/store/schema.sql).  Never runs a kernel, never calls a model, never judges what it
 * keeps: a verdict is JSON that the gate wrote.  Several processes may share one file; one kl_store belongs to one
 * thread.  A worker never links this.
 *
 * Every function may wait up to 5 s for another writer (then KL_EBUSY) and gives KL_EIO, with a hint, for a full disk,
 * a file that cannot be written and a file that is damaged.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_STORE_H
#define KLINEAGE_STORE_H

#include <klineage/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kl_store kl_store;

/* $KLINEAGE_STORE, else $XDG_STATE_HOME/klineage/klineage.db, else ~/.local/state/klineage/klineage.db. */
kl_str kl_store_default_path(kl_arena *a);

/* Open, creating file and folders and bringing an older schema up to date.  Exactly one kl_store_close.
 * Errors: KL_EINVAL for a file of another program or of a newer klineage; it is left untouched. */
KL_MUST_USE kl_err kl_store_open(kl_store **out, const char *path, kl_error *e);
void               kl_store_close(kl_store *s); /* accepts NULL */

/* ---- verdicts ----------------------------------------------------------------------------------------------- */

typedef struct {
    kl_str key;      /* what kl_gate_key says: 64 hexadecimal digits */
    kl_str task;     /* name of the task */
    kl_str kernel;   /* identity of the kernel */
    kl_str platform; /* "x86-64-v4/gcc-12" */
    kl_str outcome;  /* "pass", "wrong", ... */
    kl_str json;     /* the whole verdict */
    kl_str created;  /* UTC; filled when it is stored, ignored by put */
} kl_store_verdict;

/* The JSON of one verdict, in the arena, NUL-terminated.  Errors: KL_ENOENT when it is not there. */
KL_MUST_USE kl_err kl_store_verdict_get(kl_str *json, kl_store *s, kl_arena *a, const char *key, kl_error *e);
/* Keep a verdict; on disk when it returns.  The first writer wins: a key that exists keeps its row, and that is KL_OK.
 * Errors: KL_EINVAL for a key that is no hash or text that is no JSON, KL_ELIMIT above KL_MAX_JSON_BYTES. */
KL_MUST_USE kl_err kl_store_verdict_put(kl_store *s, const kl_store_verdict *v, kl_error *e);
/* The full key of the one verdict whose key begins with `prefix` (at least 4 digits).
 * Errors: KL_ENOENT when there is none, KL_EINVAL when there are several. */
KL_MUST_USE kl_err kl_store_verdict_find(char key[65], kl_store *s, const char *prefix, kl_error *e);

/* Which verdicts; all-zero means all. */
typedef struct {
    const char *task, *kernel, *platform, *outcome; /* exact; NULL: any */
    int64_t     limit;                              /* at most so many, newest first; 0: no limit */
} kl_store_verdict_query;

/* Calls `visit` for each, newest first; the row's text lives during the call only.  A nonzero return stops, and is
 * returned.  The callback must not use the same store. */
KL_MUST_USE kl_err kl_store_verdict_each(kl_store *s, const kl_store_verdict_query *q,
                                         kl_err (*visit)(void *ctx, const kl_store_verdict *v), void *ctx, kl_error *e);
/* The same as an array in the arena. */
KL_MUST_USE kl_err kl_store_verdict_list(kl_store_verdict **rows, size_t *n, kl_store *s, kl_arena *a,
                                         const kl_store_verdict_query *q, kl_error *e);

#ifdef __cplusplus
}
#endif
#endif
