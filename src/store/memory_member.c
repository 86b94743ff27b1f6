/* memory_member.c - a member of the store that keeps its rows in this process; only tests link it.
 *
 * It has nothing in common with SQLite but the operations, so what holds over both holds by the
 * operations.  Handles that name the same place share it, as processes share a file, and one lock
 * keeps their transactions apart.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_ops.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 4096, MOST_PLACES = 16 };

typedef struct {
    const kli_store_table *table;
    const void *row; /* never changed: another one takes its place */
} entry;

typedef struct {
    entry rows[MOST_ROWS]; /* in the order of their first put */
    int n;
} contents;

typedef struct {
    char *name;
    int handles;
    contents now, before; /* before: as the open transaction found it */
    kl_arena *arena;
    pthread_mutex_t lock; /* recursive: a transaction holds it over its operations */
} memory_member_place;

static memory_member_place *places[MOST_PLACES];
static pthread_mutex_t lock_of_places = PTHREAD_MUTEX_INITIALIZER;

/* ---- places -------------------------------------------------------------------------- */

static memory_member_place *new_place(const char *name) {
    pthread_mutexattr_t recursive;
    memory_member_place *p = calloc(1, sizeof *p);
    if (!p || !(p->name = strdup(name))) kl_oom(sizeof *p);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&p->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    p->arena = kl_arena_new();
    return p;
}

static memory_member_place **memory_member_slot_of(const char *name) {
    memory_member_place **empty = NULL;
    for (int i = 0; i < MOST_PLACES; i++) {
        if (places[i] && strcmp(places[i]->name, name) == 0) return &places[i];
        if (!places[i] && !empty) empty = &places[i];
    }
    KL_ASSERT(empty);
    return empty;
}

static kl_err open_place(void **self, const char *where, kl_error *e) {
    (void)e;
    pthread_mutex_lock(&lock_of_places);
    memory_member_place **slot = memory_member_slot_of(where);
    if (!*slot) *slot = new_place(where);
    (*slot)->handles++;
    *self = *slot;
    pthread_mutex_unlock(&lock_of_places);
    return KL_OK;
}

static void close_place(void *self) {
    memory_member_place *p = self;
    pthread_mutex_lock(&lock_of_places);
    if (!--p->handles) {
        *memory_member_slot_of(p->name) = NULL;
        kl_arena_free(p->arena);
        pthread_mutex_destroy(&p->lock);
        free(p->name);
        free(p);
    }
    pthread_mutex_unlock(&lock_of_places);
}

static void memory_member_detach(void *self) {
    (void)self; /* memory is not shared with a child, so no test forks with this member */
}

/* ---- transactions -------------------------------------------------------------------- */

static kl_err memory_member_begin(void *self, const char *doing, kl_error *e) {
    memory_member_place *p = self;
    (void)doing, (void)e;
    pthread_mutex_lock(&p->lock);
    p->before = p->now;
    return KL_OK;
}

static kl_err memory_member_end(void *self, kl_err err, const char *doing, kl_error *e) {
    memory_member_place *p = self;
    (void)doing, (void)e;
    if (err) p->now = p->before;
    pthread_mutex_unlock(&p->lock);
    return err;
}

/* ---- rows ---------------------------------------------------------------------------- */

static const void *copy_of(kl_arena *a, const kli_store_table *t, const void *row,
                           const void *known) {
    void *copy = kl_arena_alloc(a, 1, t->row_bytes);
    memcpy(copy, row, t->row_bytes);
    for (int i = 0; i < t->n_columns; i++) {
        const kli_column *c = &t->columns[i];
        if (!kli_is_text(c)) continue;
        *kli_text_of(copy, c) =
            kl_arena_copy(a, *kli_text_of(c->cell == KLI_DATE && known ? known : row, c));
    }
    return copy;
}

static bool same_key(const kli_store_table *t, const void *one, const void *other) {
    bool same = true;
    for (int i = 0; same && i < t->n_key; i++) {
        const kli_column *c = &t->columns[i];
        same = kli_is_text(c) ? kl_str_eq(*kli_text_of(one, c), *kli_text_of(other, c))
                              : kli_number_of(one, c) == kli_number_of(other, c);
    }
    return same;
}

static entry *memory_member_find(contents *in, const kli_store_table *t, const void *row) {
    for (int i = 0; i < in->n; i++)
        if (in->rows[i].table == t && same_key(t, in->rows[i].row, row)) return &in->rows[i];
    return NULL;
}

static kl_err memory_member_put(void *self, const kli_store_table *t, const void *row,
                                kl_error *e) {
    memory_member_place *p = self;
    (void)e;
    pthread_mutex_lock(&p->lock);
    entry *known = memory_member_find(&p->now, t, row);
    if (!known) {
        KL_ASSERT(p->now.n < MOST_ROWS);
        p->now.rows[p->now.n++] = (entry){t, copy_of(p->arena, t, row, NULL)};
    } else if (t->replaces) {
        known->row = copy_of(p->arena, t, row, known->row);
    }
    pthread_mutex_unlock(&p->lock);
    return KL_OK;
}

static bool memory_member_matches(const kli_query *q, const entry *found) {
    if (found->table != q->table) return false;
    for (int i = 0; i < KLI_MAX_MATCHES && q->match[i].column; i++) {
        const kli_match *m = &q->match[i];
        const kli_column *c = kli_column_named(q->table, m->column);
        const bool number = !kli_is_text(c);
        if (m->how == KLI_FROM && kli_number_of(found->row, c) < m->number) return false;
        if (m->how == KLI_BEGINS && !kl_str_starts(*kli_text_of(found->row, c), m->text))
            return false;
        if (m->how == KLI_IS && number && kli_number_of(found->row, c) != m->number) return false;
        if (m->how == KLI_IS && !number && !kl_str_eq(*kli_text_of(found->row, c), m->text))
            return false;
    }
    return true;
}

static int by_key(const void *one, const void *other) {
    const entry *a = one, *b = other;
    for (int i = 0; i < a->table->n_key; i++) {
        const kli_column *c = &a->table->columns[i];
        const int64_t x = kli_is_text(c) ? 0 : kli_number_of(a->row, c),
                      y = kli_is_text(c) ? 0 : kli_number_of(b->row, c);
        /* Copies end with a NUL, and no text of a key that is ordered holds one. */
        const int order = kli_is_text(c)
                              ? strcmp(kli_text_of(a->row, c)->ptr, kli_text_of(b->row, c)->ptr)
                              : (x > y) - (x < y);
        if (order) return order;
    }
    return 0;
}

static kl_err memory_member_each(void *self, const kli_query *q, kli_visit *visit, void *ctx,
                                 kl_error *e) {
    memory_member_place *p = self;
    kl_err err = KL_OK;
    (void)e;
    pthread_mutex_lock(&p->lock);
    contents *found = calloc(1, sizeof *found);
    if (!found) kl_oom(sizeof *found);
    for (int i = 0; i < p->now.n; i++)
        if (memory_member_matches(q, &p->now.rows[i])) found->rows[found->n++] = p->now.rows[i];
    if (q->order == KLI_BY_KEY) qsort(found->rows, (size_t)found->n, sizeof *found->rows, by_key);
    const int most = q->limit > 0 && q->limit < found->n ? (int)q->limit : found->n;
    for (int i = 0; !err && i < most; i++)
        err = visit(ctx, found->rows[q->order == KLI_NEWEST_FIRST ? found->n - 1 - i : i].row);
    free(found);
    pthread_mutex_unlock(&p->lock);
    return err;
}

static kl_err memory_member_drop(void *self, const kli_query *q, kl_error *e) {
    memory_member_place *p = self;
    int kept = 0;
    (void)e;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->now.n; i++)
        if (!memory_member_matches(q, &p->now.rows[i])) p->now.rows[kept++] = p->now.rows[i];
    p->now.n = kept;
    pthread_mutex_unlock(&p->lock);
    return KL_OK;
}

extern const kli_store_ops kli_memory; /* members.h */
const kli_store_ops kli_memory = {
    .name = "memory",
    .open = open_place,
    .close = close_place,
    .detach = memory_member_detach,
    .begin = memory_member_begin,
    .end = memory_member_end,
    .put = memory_member_put,
    .each = memory_member_each,
    .drop = memory_member_drop,
};
