/* sqlite.c - the member that keeps its rows in one SQLite file: open, recognise, migrate, and say
 * what went wrong.
 *
 *   open: folder -> open -> settings -> ours and not newer? -> write-ahead log -> migrate
 *
 * Write-ahead log with full synchronisation: a row that was put survives a power cut, and readers
 * never wait for a writer.  application_id tells our files from other programs', user_version is
 * the schema's number.  SQLite's locks must not be carried into a child, so `detach` closes the
 * file and the next op opens it again.
 * Not here: statements (sqlite_rows.c), what the tables mean (the other files of this folder).
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_impl.h"
#include "base/fs.h"
#include "store/migrations.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MS 5000
#define BUSY_STEP_MS 5

extern const unsigned char kl_store_schema[]; /* schema.sql */
extern const size_t kl_store_schema_bytes;

/* ---- errors -------------------------------------------------------------------------- */

/* Not `.recover`, which the sqlite3 of some distributions is built without.  A dump of a damaged
 * file ends with ROLLBACK, and never says whose file it is. */
static kl_err sqlite_damaged(const kli_sqlite_file *f, const char *doing, kl_error *e) {
    kl_fail(e, KL_EIO, f->path, "cannot %s: the file is damaged or not a journal (%s)", doing,
            sqlite3_errmsg(f->db));
    return kl_hint(e,
                   "it contains the ledger and paid answers: save what is readable and "
                   "continue with --store '%s.saved': "
                   "(sqlite3 '%s' .dump | sed 's/^ROLLBACK.*/COMMIT;/'; echo 'PRAGMA "
                   "application_id=%d; PRAGMA user_version=%d;') "
                   "| sqlite3 '%s.saved'",
                   f->path, f->path, KLI_SQLITE_APPLICATION, f->version, f->path);
}

kl_err kli_sqlite_fail(const kli_sqlite_file *f, const char *doing, kl_error *e) {
    int code = sqlite3_errcode(f->db), os = sqlite3_system_errno(f->db);
    const char *why = sqlite3_errmsg(f->db);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        kl_fail(e, KL_EBUSY, f->path, "cannot %s: another process held the store for %d s", doing,
                BUSY_MS / 1000);
        kl_hint(e, "let it finish, or use another journal for this run: --store PATH");
        return KL_EBUSY;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return sqlite_damaged(f, doing, e);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return kl_fail(e, KL_EINVAL, f->path, "cannot %s: %s", doing, why);
    case SQLITE_TOOBIG:
        return kl_fail(e, KL_ELIMIT, f->path, "cannot %s: %s", doing, why);
    case SQLITE_NOMEM:
        kl_oom(0);
    default:
        break;
    }
    kl_fail(e, KL_EIO, f->path, "cannot %s: %s%s%s", doing, why, os ? ": " : "",
            os ? strerror(os) : "");
    /* SQLite does not always keep the errno of a write, so a full disk cannot be told from a broken
     * one. */
    if ((code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR)
        kl_hint(
            e,
            "check that the disk works and has space left (df '%s'), or use another: --store PATH",
            f->path);
    else if (kli_fs_is_dir(f->path))
        kl_hint(e, "this is a folder; the journal is a file: --store %s/journal.db", f->path);
    else
        kl_hint(e, "make the file and its folder writable, or use another journal: --store PATH");
    return KL_EIO;
}

/* ---- opening ------------------------------------------------------------------------- */

static kl_err execute(const kli_sqlite_file *f, const char *sql, const char *doing, kl_error *e) {
    return sqlite3_exec(f->db, sql, NULL, NULL, NULL) == SQLITE_OK ? KL_OK
                                                                   : kli_sqlite_fail(f, doing, e);
}

static kl_err read_number(int64_t *out, const kli_sqlite_file *f, const char *sql, kl_error *e) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(f->db, sql, -1, &statement, NULL);
    bool got = statement && sqlite3_step(statement) == SQLITE_ROW;
    if (got) *out = sqlite3_column_int64(statement, 0);
    kl_err err = got ? KL_OK : kli_sqlite_fail(f, "open it", e);
    sqlite3_finalize(statement);
    return err;
}

static kl_err recognise(int64_t *version, const kli_sqlite_file *f, int64_t newest, kl_error *e) {
    int64_t application = 0, tables = 0;
    kl_err err = read_number(&application, f, "PRAGMA application_id", e);
    if (!err) err = read_number(version, f, "PRAGMA user_version", e);
    if (!err) err = read_number(&tables, f, "SELECT count(*) FROM sqlite_schema", e);
    if (err) return err;
    if (application != KLI_SQLITE_APPLICATION &&
        (application != 0 || *version != 0 || tables != 0)) {
        kl_fail(e, KL_EINVAL, f->path, "this SQLite file belongs to another program");
        kl_hint(e, "name another file: --store PATH");
        return KL_EINVAL;
    }
    return kli_check_version(f->path, *version, newest, e);
}

/* In one transaction: all missing sections, or none.  The version is read again inside, because
 * another process may have migrated meanwhile. */
static kl_err migrate(const kli_sqlite_file *f, const char *schema, int64_t newest, kl_error *e) {
    int64_t version, number = 0;
    const char *section;
    kl_err err = execute(f, "BEGIN IMMEDIATE", "migrate it", e);
    if (err) return err;
    err = recognise(&version, f, newest, e);
    if (!err && (section = kli_next_section(
                     schema, version, &number))) { /* sections follow one another up to the end */
        char stamp[96];
        snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %lld",
                 KLI_SQLITE_APPLICATION, (long long)newest);
        err = execute(f, section, "migrate it", e);
        if (!err) err = execute(f, stamp, "migrate it", e);
    }
    if (!err) err = execute(f, "COMMIT", "migrate it", e);
    if (err) sqlite3_exec(f->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

/* Entering the write-ahead log needs the file for itself, and SQLite does not wait for that by its
 * busy timeout. */
static kl_err enter_log(const kli_sqlite_file *f, kl_error *e) {
    for (int waited = 0;; waited += BUSY_STEP_MS) {
        int code = sqlite3_exec(f->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if (code == SQLITE_OK) return KL_OK;
        if (code != SQLITE_BUSY || waited >= BUSY_MS) return kli_sqlite_fail(f, "open it", e);
        sqlite3_sleep(BUSY_STEP_MS);
    }
}

/* In one transaction: between two reads another process may create its tables. */
static kl_err recognise_alone(int64_t *version, const kli_sqlite_file *f, int64_t newest,
                              kl_error *e) {
    kl_err err = execute(f, "BEGIN", "open it", e);
    if (!err) err = recognise(version, f, newest, e);
    sqlite3_exec(f->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

static kl_err prepare_file(kli_sqlite_file *f, const char *schema, kl_error *e) {
    int64_t newest = kli_newest_section(schema), version = 0;
    KL_ASSERT(newest == KLI_STORE_SCHEMA);
    kl_err err = recognise_alone(&version, f, newest, e);
    if (!err && version) f->version = (int)version;
    if (!err && sqlite3_db_readonly(f->db, "main") == 1) {
        kl_fail(e, KL_EIO, f->path, "the journal is not writable");
        kl_hint(e, "make the file and its folder writable, or use another journal: --store PATH");
        return KL_EIO;
    }
    if (!err) err = enter_log(f, e);
    if (!err && version < newest) err = migrate(f, schema, newest, e);
    if (!err) f->version = KLI_STORE_SCHEMA;
    return err;
}

static kl_err open_file(kli_sqlite_file *f, kl_error *e) {
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(f->path, &f->db, flags, NULL) != SQLITE_OK) {
        if (!f->db) kl_oom(sizeof f->db);
        return kli_sqlite_fail(f, "open it", e);
    }
    sqlite3_busy_timeout(f->db, BUSY_MS);
    /* A file that somebody sent may carry triggers: its schema may call harmless functions only. */
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    sqlite3_db_config(f->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    return execute(f, "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL", "open it", e);
}

static kl_err open_prepared(kli_sqlite_file *f, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kl_str schema =
        kl_arena_copy(scratch, (kl_str){(const char *)kl_store_schema, kl_store_schema_bytes});
    kl_err err = open_file(f, e);
    if (!err) err = prepare_file(f, schema.ptr, e);
    kl_arena_free(scratch);
    return err;
}

static void sqlite_detach(void *self) {
    kli_sqlite_file *f = self;
    for (int i = 0; i < f->n_statements; i++) {
        sqlite3_finalize(f->statements[i].prepared);
        free(f->statements[i].sql);
    }
    f->n_statements = 0;
    KL_ASSERT(sqlite3_close(f->db) == SQLITE_OK);
    f->db = NULL;
}

static void close_self(void *self) {
    kli_sqlite_file *f = self;
    sqlite_detach(f);
    free(f->path);
    free(f);
}

kl_err kli_sqlite_attach(kli_sqlite_file *f, kl_error *e) {
    kl_err err = f->db ? KL_OK : open_prepared(f, e);
    if (err) sqlite_detach(f);
    return err;
}

static kl_err open_self(void **self, const char *path, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kli_sqlite_file *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) kl_oom(sizeof *f);
    f->version = KLI_STORE_SCHEMA;
    kl_err err = kli_fs_mkdirs(kli_fs_dirname(scratch, path).ptr, e);
    if (err) kl_hint(e, "use another journal: --store PATH");
    if (!err) err = kli_sqlite_attach(f, e);
    if (err)
        close_self(f);
    else
        *self = f;
    kl_arena_free(scratch);
    return err;
}

/* ---- transactions -------------------------------------------------------------------- */

/* It may write from its beginning on, so that what it reads cannot change under it. */
static kl_err sqlite_begin(void *self, const char *doing, kl_error *e) {
    const kl_err err = kli_sqlite_attach(self, e);
    if (err) return err;
    KL_ASSERT(sqlite3_get_autocommit(((kli_sqlite_file *)self)->db)); /* not nested */
    return execute(self, "BEGIN IMMEDIATE", doing, e);
}

static kl_err sqlite_end(void *self, kl_err err, const char *doing, kl_error *e) {
    const kli_sqlite_file *f = self;
    if (!err) err = execute(f, "COMMIT", doing, e);
    /* Says no when SQLite did so by itself. */
    if (err) sqlite3_exec(f->db, "ROLLBACK", NULL, NULL, NULL);
    KL_ASSERT(sqlite3_get_autocommit(f->db) || err); /* kept, or not: never half */
    return err;
}

const kli_store_ops kli_sqlite = {
    .name = "sqlite",
    .open = open_self,
    .close = close_self,
    .detach = sqlite_detach,
    .begin = sqlite_begin,
    .end = sqlite_end,
    .put = kli_sqlite_put,
    .each = kli_sqlite_each,
    .drop = kli_sqlite_drop,
};
