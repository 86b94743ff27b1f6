/* store.c - the file: open, recognise, migrate, prepare, and say what went wrong.
 *
 *   kl_store_open: folder -> open -> settings -> ours and not newer? -> write-ahead log -> migrate
 *
 * Write-ahead log with full synchronisation: a row that was put survives a power cut, and readers never wait for a
 * writer.  application_id tells our files from other programs', user_version is the schema's number.
 * Not here: what the tables mean.  Each has its own file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include "base/fs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 0x4b4c696e /* "KLin" */
#define SCHEMA_VERSION 2            /* the last section of schema.sql; asserted on opening */
#define BUSY_MS 5000
#define BUSY_STEP_MS 5

extern const unsigned char kl_store_schema[]; /* schema.sql */
extern const size_t        kl_store_schema_bytes;

#define VERDICT_COLUMNS "key, task, kernel, platform, outcome, json, created FROM verdict"
#define VERDICT_FILTER \
    " AND (?2 IS NULL OR kernel = ?2) AND (?3 IS NULL OR platform = ?3) AND (?4 IS NULL OR outcome = ?4)" \
    " ORDER BY rowid DESC LIMIT ?5"

#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
#define RUN_COLUMNS "id, command, json, created FROM run"
#define EFFECT_COLUMNS "key, run, track, kind, purpose, ordinal, request, answer, created FROM effect"
#define CHARGE_COLUMNS \
    "effect, attempt, run, track, workload, policy, phase, model, priced_as, price_date, state, reserved_microusd," \
    " settled_microusd, input, cache_read, cache_write_5m, cache_write_1h, output, estimated, created"
#define RECORD_COLUMNS "kind, id, name, task, json, created FROM record"
/* What a charge takes from the caps: nobody knows what a lost call cost, so what is still reserved for it counts. */
#define COMMITTED \
    "CASE state WHEN 'settled' THEN settled_microusd WHEN 'released' THEN 0 ELSE reserved_microusd END"

static const char *const statement_text[KLI_STATEMENTS] = {
    [KLI_VERDICT_GET] = "SELECT json FROM verdict WHERE key = ?1",
    /* Text that is no JSON becomes NULL and meets NOT NULL; a CHECK could not call json_valid, see open_file. */
    [KLI_VERDICT_PUT] = "INSERT INTO verdict (key, task, kernel, platform, outcome, json, created)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN json_valid(?6) THEN ?6 END,"
                        "         strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))"
                        " ON CONFLICT (key) DO NOTHING",
    /* A range, not LIKE: it can use the primary key's index.  'g' comes after every hexadecimal digit. */
    [KLI_VERDICT_FIND] = "SELECT key FROM verdict WHERE key >= ?1 AND key < ?1 || 'g' LIMIT 2",
    [KLI_VERDICT_LIST] = "SELECT " VERDICT_COLUMNS " WHERE ?1 IS NULL" VERDICT_FILTER,
    [KLI_VERDICT_LIST_OF_TASK] = "SELECT " VERDICT_COLUMNS " WHERE task = ?1" VERDICT_FILTER, /* by the index */

    [KLI_BLOB_GET] = "SELECT text FROM blob WHERE hash = ?1",
    [KLI_BLOB_PUT] = "INSERT INTO blob (hash, text) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING",

    [KLI_RUN_PUT] = "INSERT INTO run (id, command, json, created)"
                    " VALUES (?1, ?2, CASE WHEN json_valid(?3) THEN ?3 END, " NOW ") ON CONFLICT (id) DO NOTHING",
    [KLI_RUN_LIST] = "SELECT " RUN_COLUMNS " ORDER BY rowid DESC",
    [KLI_RUN_FIND] = "SELECT " RUN_COLUMNS " WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2",

    [KLI_EFFECT_GET] = "SELECT " EFFECT_COLUMNS " WHERE key = ?1",
    [KLI_EFFECT_PUT] = "INSERT INTO effect (key, run, track, kind, purpose, request, answer, ordinal, created)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, " NOW ") ON CONFLICT (key) DO NOTHING",
    [KLI_EFFECT_LIST] = "SELECT " EFFECT_COLUMNS " WHERE run = ?1 AND (?2 IS NULL OR track = ?2) ORDER BY rowid",

    [KLI_CHARGE_LAST] = "SELECT attempt, state FROM charge WHERE effect = ?1 ORDER BY attempt DESC LIMIT 1",
    [KLI_CHARGE_SUMS] = "SELECT coalesce(sum(" COMMITTED ") FILTER (WHERE track = ?2), 0), coalesce(sum(" COMMITTED "), 0)"
                        " FROM charge WHERE run = ?1 AND NOT (effect = ?3 AND attempt = ?4)",
    [KLI_CHARGE_RESERVE] = "INSERT INTO charge (" CHARGE_COLUMNS ") VALUES (?1, ?10, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                           " 'reserved', ?11, 0, 0, 0, 0, 0, 0, 0, " NOW ") ON CONFLICT (effect, attempt) DO UPDATE SET"
                           " state = 'reserved', reserved_microusd = excluded.reserved_microusd, model = excluded.model,"
                           " priced_as = excluded.priced_as, price_date = excluded.price_date",
    [KLI_CHARGE_STATE] = "UPDATE charge SET state = ?3 WHERE effect = ?1 AND attempt = ?2 AND state = 'reserved'",
    [KLI_CHARGE_SETTLE] = "UPDATE charge SET state = 'settled', settled_microusd = ?3, input = ?4, cache_read = ?5,"
                          " cache_write_5m = ?6, cache_write_1h = ?7, output = ?8, estimated = ?9, price_date = ?10"
                          " WHERE effect = ?1 AND attempt = ?2 AND state IN ('reserved', 'lost')",
    [KLI_CHARGE_BREAK_OFF] = "UPDATE charge SET state = 'lost', reserved_microusd = min(reserved_microusd, ?3), input = ?4,"
                             " cache_read = ?5, cache_write_5m = ?6, cache_write_1h = ?7, output = ?8, estimated = ?9,"
                             " price_date = ?10 WHERE effect = ?1 AND attempt = ?2 AND state = 'reserved'",
    [KLI_CHARGE_LIST] = "SELECT " CHARGE_COLUMNS " FROM charge WHERE ?1 IS NULL OR run = ?1 ORDER BY rowid",

    [KLI_STEP_PUT] = "INSERT INTO step (run, track, n, json) VALUES (?1, ?2, ?3, CASE WHEN json_valid(?4) THEN ?4 END)"
                     " ON CONFLICT (run, track, n) DO UPDATE SET json = excluded.json WHERE json <> excluded.json",
    [KLI_STEP_CUT] = "DELETE FROM step WHERE run = ?1 AND track = ?2 AND n >= ?3",
    [KLI_STEP_LIST] = "SELECT run, track, n, json FROM step WHERE run = ?1 ORDER BY track, n",

    [KLI_RECORD_PUT] = "INSERT INTO record (kind, id, name, task, json, created)"
                       " VALUES (?1, ?2, ?3, ?4, CASE WHEN json_valid(?5) THEN ?5 END, " NOW ")"
                       " ON CONFLICT (kind, id) DO UPDATE SET"
                       " name = excluded.name, task = excluded.task, json = excluded.json",
    [KLI_RECORD_BY_NAME] = "SELECT " RECORD_COLUMNS " WHERE kind = ?1 AND name = ?2 ORDER BY rowid DESC LIMIT 1",
    [KLI_RECORD_BY_ID] = "SELECT " RECORD_COLUMNS " WHERE kind = ?1 AND id >= ?2 AND id < ?2 || 'g' LIMIT 2",
    [KLI_RECORD_LIST] = "SELECT " RECORD_COLUMNS " WHERE kind = ?1 ORDER BY rowid DESC",
};

/* ---- errors ------------------------------------------------------------------------------------------------- */

/* Not `.recover`, which the sqlite3 of some distributions is built without.  A dump of a damaged file ends with ROLLBACK, and never says whose
 * file it is. */
static kl_err damaged(const kl_store *s, const char *doing, kl_error *e) {
    kl_fail(e, KL_EIO, s->path, "cannot %s: the file is damaged or not a journal (%s)", doing, sqlite3_errmsg(s->db));
    return kl_hint(e,
                   "it contains the ledger and paid answers: save what is readable and continue with --store '%s.saved': "
                   "(sqlite3 '%s' .dump | sed 's/^ROLLBACK.*/COMMIT;/'; echo 'PRAGMA application_id=%d; PRAGMA user_version=%d;') "
                   "| sqlite3 '%s.saved'",
                   s->path, s->path, APPLICATION_ID, SCHEMA_VERSION, s->path);
}

kl_err kli_store_fail(const kl_store *s, const char *doing, kl_error *e) {
    int         code = sqlite3_errcode(s->db), os = sqlite3_system_errno(s->db);
    const char *why = sqlite3_errmsg(s->db);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        kl_fail(e, KL_EBUSY, s->path, "cannot %s: another process held the store for %d s", doing, BUSY_MS / 1000);
        kl_hint(e, "let it finish, or use another journal for this run: --store PATH");
        return KL_EBUSY;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: return damaged(s, doing, e);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH: return kl_fail(e, KL_EINVAL, s->path, "cannot %s: %s", doing, why);
    case SQLITE_TOOBIG: return kl_fail(e, KL_ELIMIT, s->path, "cannot %s: %s", doing, why);
    case SQLITE_NOMEM: kl_oom(0);
    default: break;
    }
    kl_fail(e, KL_EIO, s->path, "cannot %s: %s%s%s", doing, why, os ? ": " : "", os ? strerror(os) : "");
    /* SQLite does not always keep the errno of a write, so a full disk cannot be told from a broken one. */
    if ((code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR)
        kl_hint(e, "check that the disk works and has space left (df '%s'), or use another: --store PATH", s->path);
    else if (kl_fs_is_dir(s->path))
        kl_hint(e, "this is a folder; the journal is a file: --store %s/journal.db", s->path);
    else
        kl_hint(e, "make the file and its folder writable, or use another journal: --store PATH");
    return KL_EIO;
}

/* ---- statements --------------------------------------------------------------------------------------------- */

kl_err kli_store_statement(sqlite3_stmt **out, kl_store *s, kli_statement which, kl_error *e) {
    sqlite3_stmt **slot = &s->statements[which];
    KL_ASSERT(s->db); /* else it is paused */
    if (!*slot) sqlite3_prepare_v3(s->db, statement_text[which], -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
    if (!*slot) return kli_store_fail(s, "read the schema", e);
    *out = *slot;
    return KL_OK;
}

void kli_store_release(sqlite3_stmt *statement) {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

void kli_store_bind(sqlite3_stmt *statement, int index, kl_str text) {
    int code = sqlite3_bind_text64(statement, index, text.ptr ? text.ptr : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
    /* Too big: the step then finds NULL, and NOT NULL says so. */
    KL_ASSERT(code == SQLITE_OK || code == SQLITE_TOOBIG);
}

kl_str kli_store_column(sqlite3_stmt *statement, int column) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    int         bytes = sqlite3_column_bytes(statement, column);
    return (kl_str){text, text ? (size_t)bytes : 0};
}

kl_str kli_store_copy(kl_arena *a, sqlite3_stmt *statement, int column) {
    return kl_arena_copy(a, kli_store_column(statement, column));
}

void *kli_store_grow(kl_arena *a, void *rows, size_t n, size_t *cap, size_t row_bytes) {
    if (n < *cap) return rows;
    *cap = *cap ? 2 * *cap : 16;
    void *grown = kl_arena_alloc(a, *cap, row_bytes);
    if (n) memcpy(grown, rows, n * row_bytes);
    return grown;
}

kl_err kli_store_do(kl_store *s, sqlite3_stmt *statement, const char *doing, kl_error *e) {
    int    step = sqlite3_step(statement);
    kl_err err = KL_OK;
    if (step == SQLITE_CONSTRAINT_NOTNULL) err = kl_fail(e, KL_EINVAL, s->path, "cannot %s: this is no JSON", doing);
    else if (step != SQLITE_DONE) err = kli_store_fail(s, doing, e);
    kli_store_release(statement);
    return err;
}

kl_err kli_store_prefix(const kl_store *s, const char *prefix, const char *shown_by, kl_error *e) {
    size_t len = strlen(prefix);
    if (len >= 4 && len <= 64 && strspn(prefix, "0123456789abcdef") == len) return KL_OK;
    kl_fail(e, KL_EINVAL, s->path, "'%s' is not a key or a prefix of one", prefix);
    return kl_hint(e, "give 4 to 64 hexadecimal digits, as printed by `%s`", shown_by);
}

/* ---- opening ------------------------------------------------------------------------------------------------ */

static kl_err execute(const kl_store *s, const char *sql, const char *doing, kl_error *e) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? KL_OK : kli_store_fail(s, doing, e);
}

kl_err kli_store_begin(kl_store *s, const char *doing, kl_error *e) {
    KL_ASSERT(s->db); /* else it is paused */
    return execute(s, "BEGIN IMMEDIATE", doing, e);
}

kl_err kli_store_end(kl_store *s, kl_err err, const char *doing, kl_error *e) {
    if (!err) err = execute(s, "COMMIT", doing, e);
    if (err) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* says no when SQLite did so by itself */
    return err;
}

static kl_err read_number(int64_t *out, const kl_store *s, const char *sql, kl_error *e) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);
    bool got = statement && sqlite3_step(statement) == SQLITE_ROW;
    if (got) *out = sqlite3_column_int64(statement, 0);
    kl_err err = got ? KL_OK : kli_store_fail(s, "open it", e);
    sqlite3_finalize(statement);
    return err;
}

/* The first section whose number is above `version`; NULL when there is none.  `*number` is its number. */
static const char *next_section(const char *schema, int64_t version, int64_t *number) {
    static const char mark[] = "\n-- version ";
    for (const char *at = schema; (at = strstr(at, mark)); at += sizeof mark - 1) {
        *number = strtoll(at + sizeof mark - 1, NULL, 10);
        if (*number > version) return at + 1;
    }
    return NULL;
}

static int64_t newest_version(const char *schema) {
    int64_t version = 0, number;
    while (next_section(schema, version, &number)) version = number;
    return version;
}

static kl_err recognise(int64_t *version, const kl_store *s, int64_t newest, kl_error *e) {
    int64_t application = 0, tables = 0;
    kl_err  err = read_number(&application, s, "PRAGMA application_id", e);
    if (!err) err = read_number(version, s, "PRAGMA user_version", e);
    if (!err) err = read_number(&tables, s, "SELECT count(*) FROM sqlite_schema", e);
    if (err) return err;
    if (application != APPLICATION_ID && (application != 0 || *version != 0 || tables != 0)) {
        kl_fail(e, KL_EINVAL, s->path, "this SQLite file belongs to another program");
        kl_hint(e, "name another file: --store PATH");
        return KL_EINVAL;
    }
    if (*version > newest) {
        kl_fail(e, KL_EINVAL, s->path, "written by a newer klineage: schema %lld, this program knows %lld",
                (long long)*version, (long long)newest);
        kl_hint(e, "upgrade klineage, or name another file: --store PATH");
        return KL_EINVAL;
    }
    return KL_OK;
}

/* In one transaction: all missing sections, or none.  The version is read again inside, because another process may
 * have migrated meanwhile. */
static kl_err migrate(const kl_store *s, const char *schema, int64_t newest, kl_error *e) {
    int64_t     version, number = 0;
    const char *section;
    kl_err      err = execute(s, "BEGIN IMMEDIATE", "migrate it", e);
    if (err) return err;
    err = recognise(&version, s, newest, e);
    if (!err && (section = next_section(schema, version, &number))) { /* sections follow one another up to the end */
        char stamp[96];
        snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %lld", APPLICATION_ID,
                 (long long)newest);
        err = execute(s, section, "migrate it", e);
        if (!err) err = execute(s, stamp, "migrate it", e);
    }
    if (!err) err = execute(s, "COMMIT", "migrate it", e);
    if (err) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

/* Entering the write-ahead log needs the file for itself, and SQLite does not wait for that by its busy timeout. */
static kl_err enter_log(const kl_store *s, kl_error *e) {
    for (int waited = 0;; waited += BUSY_STEP_MS) {
        int code = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if (code == SQLITE_OK) return KL_OK;
        if (code != SQLITE_BUSY || waited >= BUSY_MS) return kli_store_fail(s, "open it", e);
        sqlite3_sleep(BUSY_STEP_MS);
    }
}

/* In one transaction: between two reads another process may create its tables. */
static kl_err recognise_alone(int64_t *version, const kl_store *s, int64_t newest, kl_error *e) {
    kl_err err = execute(s, "BEGIN", "open it", e);
    if (!err) err = recognise(version, s, newest, e);
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

static kl_err prepare_file(const kl_store *s, const char *schema, kl_error *e) {
    int64_t newest = newest_version(schema), version = 0;
    KL_ASSERT(newest == SCHEMA_VERSION);
    kl_err  err = recognise_alone(&version, s, newest, e);
    if (!err && sqlite3_db_readonly(s->db, "main") == 1) {
        kl_fail(e, KL_EIO, s->path, "the journal is not writable");
        kl_hint(e, "make the file and its folder writable, or use another journal: --store PATH");
        return KL_EIO;
    }
    if (!err) err = enter_log(s, e);
    if (!err && version < newest) err = migrate(s, schema, newest, e);
    return err;
}

static kl_err open_file(kl_store *s, kl_error *e) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(s->path, &s->db, flags, NULL) != SQLITE_OK) {
        if (!s->db) kl_oom(sizeof s->db);
        return kli_store_fail(s, "open it", e);
    }
    sqlite3_busy_timeout(s->db, BUSY_MS);
    /* A file that somebody sent may carry triggers: its schema may call harmless functions only. */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    return execute(s, "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL", "open it", e);
}

static kl_err open_prepared(kl_store *s, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kl_str    schema = kl_arena_copy(scratch, (kl_str){(const char *)kl_store_schema, kl_store_schema_bytes});
    kl_err    err = open_file(s, e);
    if (!err) err = prepare_file(s, schema.ptr, e);
    kl_arena_free(scratch);
    return err;
}

kl_err kl_store_open(kl_store **out, const char *path, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kl_store *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s || !(s->path = strdup(path))) kl_oom(sizeof *s);
    kl_err err = kl_fs_mkdirs(kl_fs_dirname(scratch, path).ptr, e);
    if (err) kl_hint(e, "use another journal: --store PATH");
    if (!err) err = open_prepared(s, e);
    if (err) kl_store_close(s);
    else *out = s;
    kl_arena_free(scratch);
    return err;
}

void kl_store_close(kl_store *s) {
    if (!s) return;
    kl_store_pause(s);
    free(s->path);
    free(s);
}

void kl_store_pause(kl_store *s) {
    for (int i = 0; i < KLI_STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
    KL_ASSERT(sqlite3_close(s->db) == SQLITE_OK);
    s->db = NULL;
}

kl_err kl_store_resume(kl_store *s, kl_error *e) {
    if (s->db) return KL_OK;
    kl_err err = open_prepared(s, e);
    if (err) kl_store_pause(s);
    return err;
}

kl_str kl_store_default_path(kl_arena *a) {
    const char *own = getenv("KLINEAGE_STORE"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (own && own[0]) return kl_arena_copy(a, kl_str_of(own));
    if (state && state[0] == '/') return kl_fs_join(a, state, "klineage/klineage.db");
    if (home && home[0]) return kl_fs_join(a, home, ".local/state/klineage/klineage.db");
    return kl_arena_copy(a, KL_S("klineage.db"));
}
