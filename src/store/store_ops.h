/* store_ops.h - what a member of the store has to do: keep rows, find them, and make several
 * changes one.
 *
 * A member knows tables, columns and matches; what the rows mean, which of them are allowed, and
 * every state machine over them lie above (charge.c, lease.c, ...), written once for all members.
 * So a law that holds for one holds for all.
 * Not here: SQL, files, sockets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_STORE_OPS_H
#define KL_STORE_STORE_OPS_H
#include <klineage/store.h>

/* ---- rows ---------------------------------------------------------------------------- */

/* What a cell holds.  store.c has checked it before a member sees it. */
typedef enum {
    KLI_HASH,   /* kl_str: sha256 as 64 hexadecimal digits */
    KLI_TEXT,   /* kl_str */
    KLI_JSON,   /* kl_str: a JSON document */
    KLI_DATE,   /* kl_str: UTC, of the first time that the row was put; never replaced */
    KLI_BYTES,  /* kl_str: any bytes; empty where the row is older than its column */
    KLI_NUMBER, /* int64_t, not negative */
    KLI_FLAG,   /* bool */
} kli_store_cell;

typedef struct {
    const char *name;
    kli_store_cell cell;
    size_t offset; /* in the row, a plain struct */
} kli_column;

typedef struct {
    const char *name;          /* "charge"; messages call a row so, too */
    const kli_column *columns; /* those of the key come first */
    int n_columns, n_key;
    bool
        replaces; /* a known key gets the new cells and keeps its place; else the first row stays */
    size_t row_bytes;
} kli_store_table;

enum { KLI_ROW_BYTES = 512, KLI_MAX_MATCHES = 4 }; /* no row and no query is larger: asserted */

static inline kl_str *kli_text_of(const void *row, const kli_column *c) {
    return (kl_str *)(void *)((char *)(uintptr_t)row + c->offset);
}

static inline bool kli_is_text(const kli_column *c) { return c->cell < KLI_NUMBER; }

int64_t kli_number_of(const void *row, const kli_column *c);
void kli_set_number(void *row, const kli_column *c, int64_t value);
const kli_column *kli_column_named(const kli_store_table *t,
                                   const char *name); /* there is one, or it is a bug */

/* ---- which rows ---------------------------------------------------------------------- */

typedef enum { KLI_IS, KLI_BEGINS /* a hash */, KLI_FROM /* this number and above */ } kli_how;

typedef struct {
    const char *column;
    kli_how how;
    kl_str text;
    int64_t number; /* of a column of numbers */
} kli_match;

typedef enum {
    KLI_OLDEST_FIRST,
    KLI_NEWEST_FIRST,
    KLI_BY_KEY
} kli_order; /* oldest: by the first put */

typedef struct {
    const kli_store_table *table;
    kli_match match[KLI_MAX_MATCHES]; /* all of them; up to the first without a column */
    kli_order order;
    int64_t limit; /* 0: none */
} kli_query;

/* `row`'s texts live during the call only.  A nonzero return stops, and is returned. */
typedef kl_err kli_visit(void *ctx, const void *row);

/* ---- the member ---------------------------------------------------------------------- */

/* Every op may fail with KL_EIO (the medium), KL_EBUSY (another writer did not let go within the
 * member's patience) and KL_EINVAL (the medium's own checks refuse a row), with a hint.  `doing`
 * completes "cannot ...". */
typedef struct {
    const char *name; /* "sqlite" */
    /* Find or make what `where` names, and bring an older form up to date.  Errors: KL_EINVAL where
     * it is somebody else's or of a newer klineage; it is left untouched then. */
    kl_err (*open)(void **self, const char *where, kl_error *e);
    void (*close)(void *self);
    /* Let go of what must not be carried through a fork.  The next op takes it again, in the parent
     * and in the child alike. */
    void (*detach)(void *self);
    /* Until `end` nobody else writes, so that what is read cannot change before it is acted on. Not
     * nested.  */
    kl_err (*begin)(void *self, const char *doing, kl_error *e);
    /* With KL_OK keep all changes since `begin`, on disk when it returns; else none.  Gives `err`,
     * or why they could not be kept. */
    kl_err (*end)(void *self, kl_err err, const char *doing, kl_error *e);
    /* Insert; a known key is replaced or kept as the table says, KL_OK in either case.  Outside of
     * a transaction it is one. */
    kl_err (*put)(void *self, const kli_store_table *t, const void *row, kl_error *e);
    /* The visitor uses no other op of the same store. */
    kl_err (*each)(void *self, const kli_query *q, kli_visit *visit, void *ctx, kl_error *e);
    kl_err (*drop)(void *self, const kli_query *q, kl_error *e);
} kli_store_ops;

extern const kli_store_ops kli_sqlite, kli_postgresql;

/* Where a store is, for people: of a URL without user and password. */
kl_str kli_store_shown(kl_arena *a, const char *where);

#endif
