/* store.c - the handle: what is true of rows of every table, whoever keeps them.
 *
 *   kl_store_verdict_put -> check cells, fill the date -> member's put
 *
 * Not here: what a table's rows mean (its own file), what a member does (store_ops.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include <klineage/limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------------- */

kl_err kli_store_open(kl_store **out, const kli_store_ops *ops, const char *where, kl_error *e) {
    kl_store *s = calloc(1, sizeof *s);
    *out = NULL;
    kl_arena *scratch = kl_arena_new();
    if (!s || !(s->place = strdup(where))) kl_oom(sizeof *s);
    if (!(s->where = strdup(kli_store_shown(scratch, where).ptr))) kl_oom(sizeof *s);
    kl_arena_free(scratch);
    s->ops = ops;
    const kl_err err = ops->open(&s->self, where, e);
    if (!err) {
        *out = s;
        return KL_OK;
    }
    free(s->place);
    free(s->where);
    free(s);
    return err;
}

/* "postgresql" of "postgresql://..."; empty of a path. */
static kl_str url_scheme(const char *where) {
    const char *colon = strstr(where, "://");
    if (!colon || memchr(where, '/', (size_t)(colon - where))) return (kl_str){0};
    return (kl_str){where, (size_t)(colon - where)};
}

kl_err kl_store_open(kl_store **out, const char *where, kl_error *e) {
    const kl_str scheme = url_scheme(where);
    if (!scheme.len) return kli_store_open(out, &kli_sqlite, where, e);
    if (kl_str_eq(scheme, KL_S("postgresql")) || kl_str_eq(scheme, KL_S("postgres")))
        return kli_store_open(out, &kli_postgresql, where, e);
    *out = NULL;
    kl_fail(e, KL_EINVAL, NULL, "no journal can be kept at %.*s://", KL_STR_ARG(scheme));
    return kl_hint(e, "--store PATH, or --store postgresql://HOST/DATABASE");
}

kl_str kli_store_shown(kl_arena *a, const char *where) {
    const kl_str scheme = url_scheme(where);
    if (!scheme.len) return kl_arena_copy(a, kl_str_of(where));
    const char *host = where + scheme.len + 3, *end = host + strcspn(host, "/?");
    for (const char *at = end; at > host; at--)
        if (at[-1] == '@') {
            host = at;
            break;
        }
    const char *options = strstr(end, "password="); /* in whatever follows nothing is safe */
    return kl_arena_printf(a, "%.*s://%.*s", KL_STR_ARG(scheme),
                           (int)(options ? options - host : (ptrdiff_t)strlen(host)), host);
}

void kl_store_close(kl_store *s) {
    if (!s) return;
    KL_ASSERT(!s->leases); /* whoever holds one still works */
    s->ops->close(s->self);
    kli_packer_free(s->packer);
    free(s->place);
    free(s->where);
    free(s);
}

pid_t kl_store_fork(kl_store *s) {
    KL_ASSERT(!s->leases); /* two processes would hold it */
    s->ops->detach(s->self);
    return fork();
}

kl_str kl_store_default_path(kl_arena *a) {
    const char *own = getenv("KLINEAGE_STORE"), *state = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    if (own && own[0]) return kl_arena_copy(a, kl_str_of(own));
    if (state && state[0] == '/') return kli_fs_join(a, state, "klineage/klineage.db");
    if (home && home[0]) return kli_fs_join(a, home, ".local/state/klineage/klineage.db");
    return kl_arena_copy(a, KL_S("klineage.db"));
}

/* ---- what a cell may hold ------------------------------------------------------------ */

static bool is_hex(kl_str text, size_t least, size_t most) {
    if (text.len < least || text.len > most) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!memchr("0123456789abcdef", text.ptr[i], 16)) return false;
    return true;
}

bool kli_is_prefix(const char *text) { return is_hex(kl_str_of(text), 4, 64); }

bool kli_is_json(kl_str text) {
    json_error_t unused;
    json_t *parsed =
        json_loadb(text.ptr ? text.ptr : "", text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &unused);
    json_decref(parsed);
    return parsed != NULL;
}

/* Lengths before bytes: what is too long is never read. */
static kl_err store_check_text(const kl_store *s, const kli_store_table *t, const kli_column *c,
                               kl_str text, kl_error *e) {
    if (text.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->where, "the %s of a %s has %zu bytes; the limit is %u",
                       c->name, t->name, text.len, KL_MAX_JSON_BYTES);
    if (c->cell == KLI_HASH && !is_hex(text, 64, 64))
        return kl_fail(e, KL_EINVAL, s->where, "the %s of a %s is no sha256: %.*s", c->name,
                       t->name, (int)(text.len < 80 ? text.len : 80), text.ptr);
    if (c->cell == KLI_JSON && !kli_is_json(text))
        return kl_fail(e, KL_EINVAL, s->where, "the %s of a %s is no JSON", c->name, t->name);
    return KL_OK;
}

static kl_err check_row(const kl_store *s, const kli_store_table *t, const void *row, kl_error *e) {
    kl_err err = KL_OK;
    for (int i = 0; !err && i < t->n_columns; i++) {
        const kli_column *c = &t->columns[i];
        if (kli_is_text(c))
            err = store_check_text(s, t, c, *kli_text_of(row, c), e);
        else if (kli_number_of(row, c) < 0)
            err = kl_fail(e, KL_EINVAL, s->where, "the %s of a %s is below 0", c->name, t->name);
    }
    return err;
}

/* ---- rows ---------------------------------------------------------------------------- */

kl_err kli_put(kl_store *s, const kli_store_table *t, const void *row, kl_error *e) {
    _Alignas(max_align_t) char dated[KLI_ROW_BYTES];
    KL_ASSERT(t->row_bytes <= sizeof dated);
    const kl_err err = check_row(s, t, row, e);
    if (err) return err;
    kl_arena *scratch = kl_arena_new();
    memcpy(dated, row, t->row_bytes);
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].cell == KLI_DATE)
            *kli_text_of(dated, &t->columns[i]) = kli_utc_now(scratch);
    const kl_err put = s->ops->put(s->self, t, dated, e);
    kl_arena_free(scratch);
    return put;
}

typedef struct {
    const kli_store_table *table;
    kl_arena *arena;
    char *rows;
    size_t n, cap;
} collection;

static void copy_row(kl_arena *a, const kli_store_table *t, void *to, const void *row) {
    memcpy(to, row, t->row_bytes);
    for (int i = 0; i < t->n_columns; i++)
        if (kli_is_text(&t->columns[i])) {
            kl_str *text = kli_text_of(to, &t->columns[i]);
            *text = kl_arena_copy(a, *text);
        }
}

static kl_err store_collect(void *ctx, const void *row) {
    collection *c = ctx;
    const size_t bytes = c->table->row_bytes;
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        char *grown = kl_arena_alloc(c->arena, c->cap, bytes);
        if (c->n) memcpy(grown, c->rows, c->n * bytes);
        c->rows = grown;
    }
    copy_row(c->arena, c->table, c->rows + c->n++ * bytes, row);
    return KL_OK;
}

kl_err kli_list(void *rows, size_t *n, kl_store *s, kl_arena *a, const kli_query *q, kl_error *e) {
    collection c = {.table = q->table, .arena = a};
    const kl_err err = s->ops->each(s->self, q, store_collect, &c, e);
    memcpy(rows, &c.rows, sizeof c.rows); /* whatever it points to, it is a pointer to a struct */
    *n = c.n;
    return err;
}

kl_err kli_first(void *row, kl_store *s, kl_arena *a, const kli_query *q, kl_error *e) {
    kli_query one = *q;
    void *rows;
    size_t n;
    one.limit = 1;
    const kl_err err = kli_list(&rows, &n, s, a, &one, e);
    if (err) return err;
    if (!n) return KL_ENOENT;
    memcpy(row, rows, q->table->row_bytes);
    return KL_OK;
}

kl_err kli_find(void *row, kl_store *s, kl_arena *a, const kli_query *q, const char *command,
                kl_error *e) {
    const char *prefix = q->match[0].text.ptr, *what = q->table->name;
    KL_ASSERT(q->match[0].how == KLI_BEGINS);
    kli_query two = *q;
    void *rows;
    size_t n;
    two.limit = 2;
    if (!kli_is_prefix(prefix)) {
        kl_fail(e, KL_EINVAL, s->where, "'%s' is not a key or a prefix of one", prefix);
        return kl_hint(e, "give 4 to 64 hexadecimal digits, as printed by `%s`", command);
    }
    const kl_err err = kli_list(&rows, &n, s, a, &two, e);
    if (err) return err;
    if (n == 1) memcpy(row, rows, q->table->row_bytes);
    if (n == 1) return KL_OK;
    kl_fail(e, n ? KL_EINVAL : KL_ENOENT, s->where,
            n ? "several %ss begin with %s" : "no %s begins with %s", what, prefix);
    return kl_hint(e, "%s prints them", command);
}

/* ---- several changes as one ---------------------------------------------------------- */

kl_err kli_begin(kl_store *s, const char *doing, kl_error *e) {
    return s->ops->begin(s->self, doing, e);
}

kl_err kli_end(kl_store *s, kl_err err, const char *doing, kl_error *e) {
    return s->ops->end(s->self, err, doing, e);
}
