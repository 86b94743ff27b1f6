/* postgresql.c - the member that keeps its rows in a PostgreSQL database: connect, recognise,
 * migrate, make several changes one, and say what went wrong.
 *
 *   open: connect -> settings -> ours and not newer? -> migrate
 *
 * Everything lies in the schema `klineage` of the database that the URL names.  One advisory lock
 * is the journal's: a transaction holds it alone, a single put shares it, so within `begin` and
 * `end` nobody else writes while single puts of many processes run side by side.  A client that
 * dies lets go of it with its connection; one that stands still in a transaction loses that.
 *
 * A server that went away is looked for again, for as long as the member has patience; what was
 * sent outside of a transaction is sent again, since a put of the same row twice is one row.  A
 * transaction is not: whether it was kept is for its caller to look up.
 * Not here: statements (postgresql_rows.c), libpq itself (pq_api.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/postgresql_impl.h"

#if KL_HAVE_PQ
#include "base/fs.h"
#include "base/log.h"
#include "store/migrations.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECT_SECONDS "10"
#define CONNECT_STEP_MS 50

extern const unsigned char kl_store_schema_postgresql[]; /* schema_postgresql.sql */
extern const size_t kl_store_schema_postgresql_bytes;

/* ---- errors -------------------------------------------------------------------------- */

typedef struct {
    const char *state; /* an SQLSTATE, or the class that begins it */
    kl_err err;
    const char *hint;
} sql_state;

#define ANOTHER "or name another journal: --store PATH"

/* The first that fits. */
static const sql_state SQL_STATES[] = {
    {"53100", KL_EIO, "the server's disk has no space left: make room there, " ANOTHER},
    {"53300", KL_EBUSY,
     "raise max_connections of the server: a track takes one, and a second one now and then"},
    {"53", KL_EIO, "the server lacks resources; its log says which"},
    {"55P03", KL_EBUSY, "let the other process finish, " ANOTHER},
    {"40", KL_EBUSY, "let the other process finish, " ANOTHER},
    {"57P03", KL_EBUSY, "the server is starting; ask again"},
    {"57", KL_EIO,
     "an administrator ended this; run the same command again: what was paid for "
     "is kept"},
    {"25P03", KL_EIO,
     "this process stood still in a transaction, which was undone; run the same "
     "command again"},
    {"25006", KL_EIO, "this server is a standby or read-only: name its primary"},
    {"42501", KL_EIO, "let this role create a schema: GRANT CREATE ON DATABASE ... TO ..."},
    {"54", KL_ELIMIT, NULL},
    {"22", KL_EINVAL, NULL},
    {"23", KL_EINVAL, NULL},
    {"XX001", KL_EIO,
     "the database is damaged: it contains the ledger and paid answers; save it "
     "with pg_dump before anything else"},
    {"", KL_EIO, "run the same command again: what was paid for is kept; " ANOTHER},
};

static const sql_state *state_of(const char *state) {
    size_t i = 0;
    while (strncmp(SQL_STATES[i].state, state, strlen(SQL_STATES[i].state)) != 0) i++;
    return &SQL_STATES[i];
}

/* The server's text may have several lines; the first says what. */
static int postgresql_first_line(const char *text) { return (int)strcspn(text, "\n"); }

kl_err kli_postgresql_fail(kli_postgresql_database *p, const PGresult *result, const char *doing,
                           kl_error *e) {
    const char *state = result ? p->pq->resultErrorField(result, PG_DIAG_SQLSTATE) : NULL,
               *why = result ? p->pq->resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (!why) why = p->pq->errorMessage(p->db);
    const sql_state *s = state_of(state ? state : "");
    kl_fail(e, s->err, p->shown, "cannot %s: %.*s", doing, postgresql_first_line(why), why);
    return s->hint ? kl_hint(e, "%s", s->hint) : s->err;
}

static void postgresql_let_go(kli_postgresql_database *p) {
    if (p->db) p->pq->finish(p->db);
    p->db = NULL;
}

bool kli_postgresql_lost(kli_postgresql_database *p) {
    if (p->db && p->pq->status(p->db) == CONNECTION_OK) return false;
    postgresql_let_go(p);
    return true;
}

/* ---- connecting ---------------------------------------------------------------------- */

static void postgresql_notice(void *unused, const char *text) {
    (void)unused;
    kli_debug("PostgreSQL: %.*s", postgresql_first_line(text), text);
}

static kl_err postgresql_execute(kli_postgresql_database *p, const char *sql, const char *doing,
                                 kl_error *e) {
    PGresult *result = p->pq->exec(p->db, sql);
    const ExecStatusType got = p->pq->resultStatus(result);
    const bool done = got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK;
    const kl_err err = done ? KL_OK : kli_postgresql_fail(p, result, doing, e);
    p->pq->clear(result);
    return err;
}

/* One try.  False: `why` says why not, in the first line of what libpq says. */
static bool connect_once(kli_postgresql_database *p, char *why, size_t room) {
    static const char *const keys[] = {"dbname", "connect_timeout", "fallback_application_name",
                                       "client_encoding", NULL};
    const char *const values[] = {p->url, CONNECT_SECONDS, "klineage", "UTF8", NULL};
    p->db = p->pq->connectdbParams(keys, values, 1);
    if (!p->db) kl_oom(0);
    p->pq->setNoticeProcessor(p->db, postgresql_notice, NULL);
    if (p->pq->status(p->db) == CONNECTION_OK) return true;
    const char *said = p->pq->errorMessage(p->db);
    snprintf(why, room, "%.*s", postgresql_first_line(said), said);
    postgresql_let_go(p);
    return false;
}

/* A server that comes up again, or has no place for one more, may have one in a moment. */
static bool may_come_back(const char *why) {
    return strstr(why, "starting up") || strstr(why, "shutting down") ||
           strstr(why, "in recovery mode") || strstr(why, "too many clients") ||
           strstr(why, "connection slots");
}

static kl_err connect_patiently(kli_postgresql_database *p, bool again, kl_error *e) {
    char why[512];
    for (int waited = 0; !connect_once(p, why, sizeof why); waited += CONNECT_STEP_MS) {
        if ((again || may_come_back(why)) && waited < KLI_POSTGRESQL_PATIENCE_MS) {
            nanosleep(&(struct timespec){.tv_nsec = CONNECT_STEP_MS * 1000000L}, NULL);
            continue;
        }
        kl_fail(e, KL_EIO, p->shown, "cannot connect: %s", why);
        return kl_hint(e, "is the server running, and is its URL right? psql '%s'; " ANOTHER,
                       p->shown);
    }
    return KL_OK;
}

/* Commits are on disk when they return.  A wait for a lock, and a client that stands still while it
 * has one, have an end. */
static kl_err settle_in(kli_postgresql_database *p, kl_error *e) {
    return postgresql_execute(p,
                              "SET search_path = klineage; SET lock_timeout = '5s';"
                              "SET idle_in_transaction_session_timeout = '30s';"
                              "SET synchronous_commit = on; SET client_min_messages = warning;"
                              "SET default_transaction_isolation = 'read committed';",
                              "open it", e);
}

/* ---- schema -------------------------------------------------------------------------- */

/* The one text that a statement gives, in the arena; KL_ENOENT where it gives no row. */
static kl_err read_text(kl_str *out, kli_postgresql_database *p, kl_arena *a, const char *sql,
                        kl_error *e) {
    PGresult *result = p->pq->exec(p->db, sql);
    kl_err err = p->pq->resultStatus(result) == PGRES_TUPLES_OK
                     ? KL_OK
                     : kli_postgresql_fail(p, result, "open it", e);
    if (!err && !p->pq->ntuples(result)) err = KL_ENOENT;
    if (!err) *out = kl_arena_copy(a, kl_str_of(p->pq->getvalue(result, 0, 0)));
    p->pq->clear(result);
    return err;
}

static kl_err postgresql_foreign(const kli_postgresql_database *p, kl_error *e) {
    kl_fail(e, KL_EINVAL, p->shown,
            "the schema klineage of the database %s belongs to another program", p->pq->db(p->db));
    return kl_hint(e, "name another database, " ANOTHER);
}

static kl_err postgresql_recognise(int64_t *version, kli_postgresql_database *p, kl_arena *a,
                                   int64_t newest, kl_error *e) {
    kl_str text;
    *version = 0;
    kl_err err = read_text(&text, p, a,
                           "SELECT to_regclass('klineage.meta')::text FROM pg_namespace "
                           "WHERE nspname = 'klineage'",
                           e);
    if (err) return err == KL_ENOENT ? KL_OK : err; /* nobody was here */
    if (!text.len) {
        err = read_text(&text, p, a,
                        "SELECT 1 FROM pg_class WHERE relnamespace = 'klineage'::regnamespace "
                        "LIMIT 1",
                        e);
        return err == KL_ENOENT ? KL_OK : err ? err : postgresql_foreign(p, e);
    }
    err = read_text(&text, p, a,
                    "SELECT max(to_jsonb(m)->>'value') FILTER (WHERE to_jsonb(m)->>'key' = "
                    "'schema') FROM klineage.meta m "
                    "HAVING bool_or(to_jsonb(m)->>'key' = 'application' AND "
                    "to_jsonb(m)->>'value' = 'klineage')",
                    e);
    if (err) return err == KL_ENOENT ? postgresql_foreign(p, e) : err;
    *version = strtoll(text.ptr, NULL, 10);
    return *version > 0 ? kli_check_version(p->shown, *version, newest, e)
                        : postgresql_foreign(p, e);
}

/* In one transaction: all missing sections, or none.  The version is read again inside, because
 * another process may have migrated meanwhile. */
static kl_err postgresql_migrate(kli_postgresql_database *p, kl_arena *a, const char *schema,
                                 int64_t newest, kl_error *e) {
    int64_t version, number = 0;
    const char *section;
    kl_err err = postgresql_execute(p,
                                    "BEGIN; SELECT pg_advisory_xact_lock(" KLI_POSTGRESQL_LOCK ");"
                                    "SET LOCAL search_path = klineage",
                                    "migrate it", e);
    if (!err) err = postgresql_recognise(&version, p, a, newest, e);
    if (!err && (section = kli_next_section(schema, version, &number))) {
        const kl_str all = kl_arena_printf(a,
                                           "CREATE SCHEMA IF NOT EXISTS klineage;\n%s;\n"
                                           "UPDATE meta SET value = '%lld' WHERE key = 'schema'",
                                           section, (long long)newest);
        err = postgresql_execute(p, all.ptr, "migrate it", e);
    }
    if (!err) err = postgresql_execute(p, "COMMIT", "migrate it", e);
    if (err && p->db) p->pq->clear(p->pq->exec(p->db, "ROLLBACK"));
    return err;
}

static kl_err postgresql_prepare(kli_postgresql_database *p, kl_error *e) {
    kl_arena *a = kl_arena_new();
    const kl_str schema = kl_arena_copy(
        a, (kl_str){(const char *)kl_store_schema_postgresql, kl_store_schema_postgresql_bytes});
    const int64_t newest = kli_newest_section(schema.ptr);
    int64_t version;
    KL_ASSERT(newest == KLI_STORE_SCHEMA);
    kl_err err = settle_in(p, e);
    if (!err) err = postgresql_recognise(&version, p, a, newest, e);
    if (!err && version < newest) err = postgresql_migrate(p, a, schema.ptr, newest, e);
    kl_arena_free(a);
    return err;
}

/* ---- opening ------------------------------------------------------------------------- */

static kl_err postgresql_attach(kli_postgresql_database *p, bool again, kl_error *e) {
    kl_err err = connect_patiently(p, again, e);
    if (!err) err = postgresql_prepare(p, e);
    if (err) postgresql_let_go(p);
    return err;
}

kl_err kli_postgresql_attach(kli_postgresql_database *p, kl_error *e) {
    if (!kli_postgresql_lost(p)) return KL_OK;
    if (!p->begun) return postgresql_attach(p, true, e);
    kl_fail(e, KL_EIO, p->shown, "the server went away in the middle of a transaction");
    return kl_hint(e, "run the same command again once it is there: what was paid for is kept");
}

static void postgresql_detach(void *self) {
    kli_postgresql_database *p = self;
    KL_ASSERT(!p->begun);
    postgresql_let_go(p);
}

static void postgresql_close(void *self) {
    kli_postgresql_database *p = self;
    postgresql_let_go(p);
    free(p->url);
    free(p->shown);
    free(p);
}

static kl_err postgresql_open(void **self, const char *where, kl_error *e) {
    const kli_pq *pq;
    kl_err err = kli_pq_load(&pq, e);
    if (err) return err;
    kl_arena *a = kl_arena_new();
    kli_postgresql_database *p = calloc(1, sizeof *p);
    if (!p) kl_oom(sizeof *p);
    *p = (kli_postgresql_database){
        .pq = pq, .url = strdup(where), .shown = strdup(kli_store_shown(a, where).ptr)};
    if (!p->url || !p->shown) kl_oom(sizeof *p);
    kl_arena_free(a);
    err = postgresql_attach(p, false, e);
    if (err)
        postgresql_close(p);
    else
        *self = p;
    return err;
}

/* ---- transactions -------------------------------------------------------------------- */

static kl_err take_journal(kli_postgresql_database *p, const char *doing, kl_error *e) {
    return postgresql_execute(p, "BEGIN; SELECT pg_advisory_xact_lock(" KLI_POSTGRESQL_LOCK ")",
                              doing, e);
}

static kl_err postgresql_begin(void *self, const char *doing, kl_error *e) {
    kli_postgresql_database *p = self;
    KL_ASSERT(!p->begun); /* not nested */
    kl_err err = kli_postgresql_attach(p, e);
    if (!err) err = take_journal(p, doing, e);
    if (err && kli_postgresql_lost(p)) { /* nothing was done yet: once more, where it is again */
        err = kli_postgresql_attach(p, e);
        if (!err) err = take_journal(p, doing, e);
    }
    if (err && !kli_postgresql_lost(p)) p->pq->clear(p->pq->exec(p->db, "ROLLBACK"));
    p->begun = !err;
    return err;
}

static kl_err postgresql_end(void *self, kl_err err, const char *doing, kl_error *e) {
    kli_postgresql_database *p = self;
    KL_ASSERT(p->begun);
    if (!err) err = kli_postgresql_attach(p, e);                    /* it may have gone since */
    if (!err && p->pq->transactionStatus(p->db) != PQTRANS_INTRANS) /* COMMIT would say nothing */
        err = kl_fail(e, KL_EIO, p->shown, "cannot %s: a part of it had failed", doing);
    if (!err) err = postgresql_execute(p, "COMMIT", doing, e);
    if (err && !kli_postgresql_lost(p)) p->pq->clear(p->pq->exec(p->db, "ROLLBACK"));
    p->begun = false;
    KL_ASSERT(!p->db || p->pq->transactionStatus(p->db) == PQTRANS_IDLE); /* never half */
    return err;
}

#else /* no libpq at build time: the row says so */

static kl_err postgresql_open(void **self, const char *where, kl_error *e) {
    const kli_pq *none;
    (void)self, (void)where;
    return kli_pq_load(&none, e);
}

#endif

const kli_store_ops kli_postgresql = {
    .name = "postgresql",
    .open = postgresql_open,
#if KL_HAVE_PQ
    .close = postgresql_close,
    .detach = postgresql_detach,
    .begin = postgresql_begin,
    .end = postgresql_end,
    .put = kli_postgresql_put,
    .each = kli_postgresql_each,
    .drop = kli_postgresql_drop,
#endif
};
