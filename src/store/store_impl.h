/* store_impl.h - the inside of the store, for the file that owns each table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_STORE_IMPL_H
#define KL_STORE_STORE_IMPL_H
#include "store/store_ops.h"

typedef struct kli_packer kli_packer;

struct kl_store {
    const kli_store_ops *ops;
    void *self;
    char *place;        /* to open it once more; a URL may hold a password */
    char *where;        /* for messages */
    kli_packer *packer; /* NULL until something is packed or unpacked */
    int leases;         /* held through this handle */
};

KL_MUST_USE kl_err kli_store_open(kl_store **out, const kli_store_ops *ops, const char *where,
                                  kl_error *e);

/* ---- the tables ---------------------------------------------------------------------- */

/* A verdict as it lies in the store: `v.json` is empty where `packed` is not. */
typedef struct {
    kl_store_verdict v;
    kl_str packed;
} kli_verdict_row;

typedef struct {
    kl_str hash, text;
} kli_blob_row;
typedef struct {
    kl_str name, owner;
    int64_t deadline_ms;
} kli_lease_row;

extern const kli_store_table kli_verdicts, kli_blobs, kli_runs, kli_effects, kli_charges, kli_steps,
    kli_records, kli_leases;

/* ---- rows of any table --------------------------------------------------------------- */

/* Check every cell, fill the date, and put.  Errors: KL_EINVAL (no hash, no JSON, a number below
 * 0), KL_ELIMIT. */
KL_MUST_USE kl_err kli_put(kl_store *s, const kli_store_table *t, const void *row, kl_error *e);
/* The first row that matches, copied into the arena.  Errors: KL_ENOENT, without words. */
KL_MUST_USE kl_err kli_first(void *row, kl_store *s, kl_arena *a, const kli_query *q, kl_error *e);
/* All that match, copied into the arena: `*rows` is an array of the table's structs. */
KL_MUST_USE kl_err kli_list(void *rows, size_t *n, kl_store *s, kl_arena *a, const kli_query *q,
                            kl_error *e);
/* The one row whose key begins with `prefix`.  Errors: KL_ENOENT, KL_EINVAL where there are several
 * or it is no prefix; both name `command`, which prints such keys. */
KL_MUST_USE kl_err kli_find(void *row, kl_store *s, kl_arena *a, const kli_query *q,
                            const char *command, kl_error *e);
bool kli_is_prefix(const char *text); /* 4 to 64 hexadecimal digits */
bool kli_is_json(kl_str text);

KL_MUST_USE kl_err kli_begin(kl_store *s, const char *doing, kl_error *e);
KL_MUST_USE kl_err kli_end(kl_store *s, kl_err err, const char *doing, kl_error *e);

/* Inside of a transaction: is the lease still the caller's?  Errors: KL_EBUSY. */
KL_MUST_USE kl_err kli_lease_check(kl_store *s, const kl_lease *l, kl_error *e);

/* kl_lease_take with another time to live. */
KL_MUST_USE kl_err kli_lease_take(kl_lease **out, kl_store *s, const char *name,
                                  int64_t milliseconds, char owner[KL_LEASE_OWNER_BYTES],
                                  kl_error *e);

/* ---- packing ------------------------------------------------------------------------- */

/* A zstd frame over the dictionary of verdicts, in the arena. */
kl_str kli_pack(kl_store *s, kl_arena *a, kl_str text);
/* Errors: KL_EIO where the frame is damaged or of a dictionary that this program does not have. */
KL_MUST_USE kl_err kli_unpack(kl_str *text, kl_store *s, kl_arena *a, kl_str frame, kl_error *e);
void kli_packer_free(kli_packer *p); /* accepts NULL */

#endif
