/* index.c - what retrieval has to know of a folder of cards, without reading them.
 *
 *   folder -> walk: whose stamp changed? -> read those -> rows in a SQLite file -> candidates
 *
 * The file lies in the user's cache and can be deleted at any time: it is brought up to date from
 * the cards, and one that cannot be read is made anew.  A folder of many cards is walked only when
 * a card was added, removed or written by klineage, which shows on five folders; what else happens
 * inside a card's folder shows when the card is chosen, because then it is read.  Everything is in
 * memory and the file closed when opening returns, so that tracks may fork and later changes do not
 * reach a run.  Not here: which candidates fit (retrieve.c).  SPDX-License-Identifier: Apache-2.0
 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WALKED 1024   /* cards; looking at more (10 us each) takes longer than all else together */
#define SETTLED_S 2   /* a file may change again without a new time of change, on coarse clocks */
#define BUSY_MS 10000 /* another process writes its index: some seconds for 100000 cards */
#define VERSION 3     /* of the tables below; a file of another one is made anew */

/* folder: every one of a card, whatever became of reading it.  candidate: what is chosen from, in a
 * table of its own because that is read whole.  scope, terms: what cards of one verified scope
 * share, and those of one contract within it.  line: the conditions that contracts are made of;
 * terms hold the numbers of their scope and their lines.  sums: kli_sum records.  packed: all
 * candidates in one piece, sorted by name, and all contracts in another, because taking rows apart
 * costs more than all else that opening does. */
static const char SCHEMA[] =
    "PRAGMA page_size = 32768;" /* of a new file: it is read in few and large pieces */
    "CREATE TABLE IF NOT EXISTS meta(stamp INTEGER, id TEXT, folders INTEGER, cards INTEGER);"
    "CREATE TABLE IF NOT EXISTS place(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
    "CREATE TABLE IF NOT EXISTS scope(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
    "CREATE TABLE IF NOT EXISTS line(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
    "CREATE TABLE IF NOT EXISTS terms(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT UNIQUE);"
    "CREATE TABLE IF NOT EXISTS folder(status INTEGER, name TEXT, stamp INTEGER, state INTEGER, "
    "hash TEXT, why TEXT, PRIMARY KEY(status, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS left_out ON folder(state) WHERE state > 1 OR why <> '';"
    "CREATE TABLE IF NOT EXISTS candidate(name TEXT PRIMARY KEY, scope INTEGER, terms INTEGER, "
    "bytes INTEGER, sums BLOB) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS packed(cards INTEGER, sums INTEGER, all_of_them BLOB, "
    "contracts BLOB);";

/* A candidate in `packed`: behind all of them stand their sums, then their names, each with an end.
 */
typedef struct {
    int64_t bytes;
    int32_t scope, terms;    /* numbers, from 1 */
    int32_t name;            /* where it begins among the names */
    int32_t first_sum, sums; /* among the sums */
    int32_t unused;
} packed_card;
/* In front of the packed contracts: behind it stand where the lines of each begin, then those
 * lines, both as numbers from 0, then the lines' texts, each with an end. */
typedef struct {
    int32_t terms, numbers, lines, unused;
} packed_contracts;
_Static_assert(sizeof(packed_card) == 32 && sizeof(kli_sum) == 16, "no byte of them is undefined");

#define NO_FILE ":memory:"

enum { UNUSED, USABLE, EDITED, BROKEN }; /* state of a card; the last two are shown as left out */

struct kl_card_index {
    kl_arena *arena;
    kl_str dir, id;
    kli_candidates found; /* sorted by name */
    kl_scope *scopes;     /* by id - 1 */
    kl_str *actions;      /* likewise */
    const int32_t *begin; /* of terms, by id - 1: among the numbers */
    const int32_t *numbers;
    kl_str *lines; /* by number */
    int n_lines;
};

/* ---- SQLite ------------------------------------------------------------------------------ */

/* An index that is being brought up to date. */
typedef struct {
    sqlite3 *db;
    kl_arena *arena;
    const char *dir;
    bool failed; /* SQLite said no; its words are in `why` */
    kl_str why;
} index_file;

static bool said_no(index_file *f) {
    if (!f->failed) f->why = kl_arena_copy(f->arena, kl_str_of(sqlite3_errmsg(f->db)));
    return f->failed = true;
}

static bool run_sql(index_file *f, const char *sql) {
    if (!f->failed && sqlite3_exec(f->db, sql, NULL, NULL, NULL) != SQLITE_OK) said_no(f);
    return !f->failed;
}

static sqlite3_stmt *prepare(index_file *f, const char *sql) {
    sqlite3_stmt *s = NULL;
    if (!f->failed && sqlite3_prepare_v2(f->db, sql, -1, &s, NULL) != SQLITE_OK) said_no(f);
    return s;
}

/* The next row; false at the end, and after a failure. */
static bool index_row(index_file *f, sqlite3_stmt *s) {
    const int code = f->failed ? SQLITE_DONE : sqlite3_step(s);
    if (code != SQLITE_ROW && code != SQLITE_DONE) said_no(f);
    return code == SQLITE_ROW;
}

static void put_row(index_file *f, sqlite3_stmt *s) {
    while (index_row(f, s)) continue;
    sqlite3_reset(s);
}

static void put_text(sqlite3_stmt *s, int at, kl_str text) {
    if (s) sqlite3_bind_text(s, at, text.ptr ? text.ptr : "", (int)text.len, SQLITE_STATIC);
}

static kl_str column(sqlite3_stmt *s, int at, kl_arena *a) {
    const char *text = (const char *)sqlite3_column_text(s, at);
    return kl_arena_copy(a, (kl_str){text ? text : "", (size_t)sqlite3_column_bytes(s, at)});
}

/* ---- stamps ------------------------------------------------------------------------------ */

/* Of one file or folder into `h`; false when it changed so recently that it may again unnoticed. */
static bool add_stamp(uint64_t *h, const char *path) {
    struct stat s = {0};
    if (stat(path, &s) != 0) return true;
    const uint64_t is[] = {*h, (uint64_t)s.st_ino, (uint64_t)s.st_size, (uint64_t)s.st_mtim.tv_sec,
                           (uint64_t)s.st_mtim.tv_nsec};
    *h = kli_hash_bulk(is, sizeof is);
    return s.st_mtim.tv_sec + SETTLED_S < time(NULL);
}

#define NO_STAMP 0    /* of nothing: to be read again */
#define EMPTY_STAMP 1 /* neither file is there */

static int64_t stamp_of_card(bool *settled, kl_arena *a, const char *folder) {
    uint64_t h = 0;
    *settled = add_stamp(&h, kli_fs_join(a, folder, "SKILL.md").ptr);
    *settled &= add_stamp(&h, kli_fs_join(a, folder, "evidence.json").ptr);
    return (int64_t)(h | 1);
}

/* Of the five folders, on which every card that is added, removed or put leaves its time. */
static int64_t stamp_of_folders(kl_arena *a, const char *dir) {
    uint64_t h = 0;
    bool settled = true;
    for (int s = KL_CARD_LIFTED; s <= KL_CARD_RETIRED; s++)
        settled &= add_stamp(&h, kli_fs_join(a, dir, kl_card_status_name((kl_card_status)s)).ptr);
    return settled ? (int64_t)(h | 1) : NO_STAMP;
}

/* ---- walk -------------------------------------------------------------------------------- */

/* A card's folder, as it is or as the index knows it. */
typedef struct {
    kl_str name;
    int64_t stamp, kept; /* kept: what the index is to know; NO_STAMP: to be read again */
    int status;
} card_place;
typedef struct {
    card_place *at;
    int n;
} card_places;

static void known_places(card_places *out, index_file *f, int status) {
    sqlite3_stmt *s = prepare(f, "SELECT name, stamp FROM folder WHERE status = ? ORDER BY name");
    if (s) sqlite3_bind_int(s, 1, status);
    while (index_row(f, s))
        *KL_PUSH(f->arena, out->at, out->n) = (card_place){
            .name = column(s, 0, f->arena), .stamp = sqlite3_column_int64(s, 1), .status = status};
    sqlite3_finalize(s);
}

static kl_err places_there(card_places *out, const index_file *f, int status, kl_error *e) {
    kl_str *names,
        folder = kli_fs_join(f->arena, f->dir, kl_card_status_name((kl_card_status)status));
    size_t n;
    kl_err err = kli_fs_list(&names, &n, f->arena, folder.ptr, e);
    for (size_t i = 0; !err && i < n; i++) {
        bool settled;
        const kl_str card = kli_fs_join(f->arena, folder.ptr, names[i].ptr);
        const int64_t stamp = stamp_of_card(&settled, f->arena, card.ptr);
        if (stamp == EMPTY_STAMP && !kli_fs_is_dir(card.ptr)) continue;
        *KL_PUSH(f->arena, out->at, out->n) = (card_place){
            .name = names[i], .stamp = stamp, .kept = settled ? stamp : NO_STAMP, .status = status};
    }
    return err;
}

/* Both are sorted by name: what is new or changed is to be read, what is gone to be dropped. */
static void compare_places(card_places *read, card_places *drop, kl_arena *a,
                           const card_places *known, const card_places *there) {
    int i = 0, j = 0;
    while (i < known->n || j < there->n) {
        const int order = i == known->n   ? 1
                          : j == there->n ? -1
                                          : strcmp(known->at[i].name.ptr, there->at[j].name.ptr);
        if (order < 0) *KL_PUSH(a, drop->at, drop->n) = known->at[i];
        if (order > 0 || (order == 0 && known->at[i].stamp != there->at[j].stamp))
            *KL_PUSH(a, read->at, read->n) = there->at[j];
        i += order <= 0;
        j += order >= 0;
    }
    KL_ASSERT(i == known->n && j == there->n); /* each was looked at */
}

/* ---- read -------------------------------------------------------------------------------- */

static void add_words(kl_buf *b, kl_str words) {
    for (kl_str w; kli_next_word(&w, &words);) kl_buf_printf(b, "%.*s ", KL_STR_ARG(w));
    kl_buf_add(b, KL_S("\n"));
}

/* The action, and one line a list: what is known of all cards without asking for terms. */
static kl_str scope_text(kl_arena *a, const kl_card *c) {
    const kl_scope *s = &c->verified;
    const kl_names *const lists[] = {&s->cases, &s->surfaces, &s->platforms, &s->prior};
    kl_buf b = {0};
    add_words(&b, c->action);
    for (size_t i = 0; i < KL_COUNT(lists); i++) add_words(&b, kli_names_text(a, lists[i]));
    return kli_buf_keep(&b, a);
}

static kl_scope scope_read(kl_str *action, kl_arena *a, kl_str text) {
    kl_scope s = {0};
    kl_str line;
    if (kli_next_line(&line, &text)) *action = kl_str_trim(line);
    kl_names *const lists[] = {&s.cases, &s.surfaces, &s.platforms, &s.prior};
    for (size_t i = 0; i < KL_COUNT(lists) && kli_next_line(&line, &text); i++)
        *lists[i] = kli_names_of(a, line);
    return s;
}

/* What a folder holds. */
typedef struct {
    const card_place *place;
    int state;
    kl_str scope, contract, hash, why;
    int64_t bytes;
    kli_sum *sums;
    int n_sums;
} card_row;

static void read_row(card_row *row, kli_candidates *places, const index_file *f,
                     const card_place *place) {
    kl_arena *scratch = kl_arena_new();
    kl_error why = {0};
    kl_card *c;
    *row = (card_row){.place = place, .state = BROKEN};
    const kl_str folder =
        kli_library_folder(scratch, f->dir, (kl_card_status)place->status, place->name);
    if (kli_library_card_in(&c, scratch, folder.ptr, (kl_card_status)place->status, &why)) {
        row->why = kl_arena_copy(f->arena, kl_str_of(why.message));
    } else {
        row->state = c->status != KL_CARD_ADMITTED ? UNUSED : c->edited ? EDITED : USABLE;
        row->scope = kl_arena_copy(f->arena, scope_text(scratch, c));
        row->contract = kl_arena_copy(f->arena, kli_contract_lines(scratch, c));
        row->hash = kl_arena_copy(f->arena, kl_str_of(c->body_hash));
        row->why = kl_arena_copy(f->arena, kl_card_faults(scratch, c));
        row->bytes = kli_card_said_bytes(c);
        row->n_sums = kli_card_sums(&row->sums, places, f->arena, c);
    }
    kl_arena_free(scratch);
}

static kl_err read_rows(card_row *rows, kli_candidates *places, const index_file *f,
                        const card_places *read, kl_error *e) {
    for (int i = 0; i < read->n; i++) {
        if (kli_interrupted()) return kl_fail(e, KL_EINTR, f->dir, "stopped while reading cards");
        if (i && i % 1000 == 0) kli_base_progress("reading card %d of %d", i, read->n);
        read_row(&rows[i], places, f, &read->at[i]);
    }
    if (read->n > 1000) kli_base_progress("%s", "");
    return KL_OK;
}

/* ---- write ------------------------------------------------------------------------------- */

/* Of a table of texts with numbers. */
static sqlite3_stmt *numbering(index_file *f, const char *table) {
    return prepare(f, kl_arena_printf(f->arena,
                                      "INSERT INTO %s(text) VALUES(?) ON CONFLICT(text) "
                                      "DO UPDATE SET text = text RETURNING id",
                                      table)
                          .ptr);
}

/* The number of a text; a new one where it is not there yet. */
static int64_t text_id(index_file *f, sqlite3_stmt *s, kl_str text) {
    int64_t id = 0;
    put_text(s, 1, text);
    while (index_row(f, s)) id = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    return id;
}

static void number_places(index_file *f, card_row *rows, int n, const kli_candidates *places) {
    int32_t *ids = KL_ARRAY(f->arena, int32_t, places->n_places + 1);
    sqlite3_stmt *s = numbering(f, "place");
    for (int i = 0; i < places->n_places; i++) ids[i] = (int32_t)text_id(f, s, places->places[i]);
    sqlite3_finalize(s);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < rows[i].n_sums; j++) {
            KL_ASSERT(rows[i].sums[j].place <= places->n_places);
            rows[i].sums[j].place = ids[rows[i].sums[j].place - 1];
        }
}

static void write_rows(index_file *f, const card_row *rows, int n) {
    sqlite3_stmt *put = prepare(f, "INSERT OR REPLACE INTO folder VALUES(?,?,?,?,?,?)");
    for (int i = 0; i < n && !f->failed; i++) {
        const card_row *r = &rows[i];
        sqlite3_bind_int(put, 1, r->place->status);
        put_text(put, 2, r->place->name);
        sqlite3_bind_int64(put, 3, r->place->kept);
        sqlite3_bind_int(put, 4, r->state);
        put_text(put, 5, r->hash);
        put_text(put, 6, r->why);
        put_row(f, put);
    }
    sqlite3_finalize(put);
}

/* Terms are of a scope: its number stands in front of those of the lines. */
static kl_str terms_text(index_file *f, sqlite3_stmt *lines, int64_t scope, kl_str contract) {
    kl_buf b = {0};
    kl_buf_printf(&b, "%lld", (long long)scope);
    for (kl_str line; kli_next_line(&line, &contract);)
        kl_buf_printf(&b, " %lld", (long long)text_id(f, lines, line));
    return kl_buf_take(&b, f->arena);
}

static void write_candidates(index_file *f, const card_row *rows, int n) {
    sqlite3_stmt *scopes = numbering(f, "scope"), *terms = numbering(f, "terms"),
                 *lines = numbering(f, "line"),
                 *put = prepare(f, "INSERT OR REPLACE INTO candidate VALUES(?,?,?,?,?)");
    for (int i = 0; i < n && !f->failed; i++) {
        const card_row *r = &rows[i];
        if (r->state != USABLE) continue;
        const int64_t scope = text_id(f, scopes, r->scope);
        put_text(put, 1, r->place->name);
        sqlite3_bind_int64(put, 2, scope);
        const kl_str contract = terms_text(f, lines, scope, r->contract);
        sqlite3_bind_int64(put, 3, text_id(f, terms, contract));
        sqlite3_bind_int64(put, 4, r->bytes);
        sqlite3_bind_blob(put, 5, r->sums, r->n_sums * (int)sizeof *r->sums, SQLITE_STATIC);
        put_row(f, put);
    }
    sqlite3_finalize(scopes);
    sqlite3_finalize(terms);
    sqlite3_finalize(lines);
    sqlite3_finalize(put);
}

/* Of `all`: each card as a record, its sums, its name. */
static void pack_cards(kl_buf *all, int *n, int *n_sums, index_file *f) {
    packed_card *cards = NULL;
    kli_sum *sums = NULL;
    kl_buf names = {0};
    sqlite3_stmt *s = prepare(f, "SELECT name, scope, terms, bytes, sums FROM candidate "
                                 "ORDER BY name");
    while (index_row(f, s)) {
        const int own = sqlite3_column_bytes(s, 4) / (int)sizeof *sums;
        *KL_PUSH(f->arena, cards, *n) = (packed_card){.bytes = sqlite3_column_int64(s, 3),
                                                      .scope = sqlite3_column_int(s, 1),
                                                      .terms = sqlite3_column_int(s, 2),
                                                      .name = (int32_t)names.len,
                                                      .first_sum = *n_sums,
                                                      .sums = own};
        kl_buf_printf(&names, "%s%c", (const char *)sqlite3_column_text(s, 0), 0);
        const kli_sum *from = sqlite3_column_blob(s, 4);
        for (int i = 0; i < own; i++) *KL_PUSH(f->arena, sums, *n_sums) = from[i];
    }
    sqlite3_finalize(s);
    kl_buf_add(all, (kl_str){(const char *)cards, (size_t)*n * sizeof *cards});
    kl_buf_add(all, (kl_str){(const char *)sums, (size_t)*n_sums * sizeof *sums});
    kl_buf_add(all, kl_buf_str(&names));
    kl_buf_fini(&names);
}

/* Numbers of lines, in the order of the terms' ids; ids that are not used have none. */
static void pack_terms(int32_t **begin, int32_t **numbers, packed_contracts *head, index_file *f) {
    sqlite3_stmt *s = prepare(f, "SELECT id, text FROM terms ORDER BY id");
    while (index_row(f, s)) {
        kl_str text = {(const char *)sqlite3_column_text(s, 1), (size_t)sqlite3_column_bytes(s, 1)},
               w;
        while (head->terms < sqlite3_column_int(s, 0))
            *KL_PUSH(f->arena, *begin, head->terms) = head->numbers;
        (void)kli_next_word(&w, &text); /* the scope */
        while (kli_next_word(&w, &text))
            *KL_PUSH(f->arena, *numbers, head->numbers) = atoi(w.ptr) - 1;
    }
    sqlite3_finalize(s);
    int end = head->terms; /* where the last one's lines end */
    *KL_PUSH(f->arena, *begin, end) = head->numbers;
}

static void pack_contracts(kl_buf *all, index_file *f) {
    packed_contracts head = {0};
    int32_t *begin = NULL, *numbers = NULL;
    kl_buf texts = {0};
    pack_terms(&begin, &numbers, &head, f);
    sqlite3_stmt *s = prepare(f, "SELECT id, text FROM line ORDER BY id");
    for (; index_row(f, s); head.lines++) {
        for (; head.lines < sqlite3_column_int(s, 0) - 1; head.lines++)
            kl_buf_add(&texts, (kl_str){"", 1});
        kl_buf_printf(&texts, "%s%c", (const char *)sqlite3_column_text(s, 1), 0);
    }
    sqlite3_finalize(s);
    kl_buf_add(all, (kl_str){(const char *)&head, sizeof head});
    kl_buf_add(all, (kl_str){(const char *)begin, (size_t)(head.terms + 1) * sizeof *begin});
    kl_buf_add(all, (kl_str){(const char *)numbers, (size_t)head.numbers * sizeof *numbers});
    kl_buf_add(all, kl_buf_str(&texts));
    kl_buf_fini(&texts);
}

static void write_packed(index_file *f) {
    kl_buf cards = {0}, contracts = {0};
    int n = 0, n_sums = 0;
    pack_cards(&cards, &n, &n_sums, f);
    pack_contracts(&contracts, f);
    run_sql(f, "DELETE FROM packed");
    sqlite3_stmt *s = prepare(f, "INSERT INTO packed VALUES(?,?,?,?)");
    if (s) sqlite3_bind_int(s, 1, n);
    if (s) sqlite3_bind_int(s, 2, n_sums);
    if (s) sqlite3_bind_blob64(s, 3, n ? cards.ptr : "", cards.len, SQLITE_STATIC);
    if (s) sqlite3_bind_blob64(s, 4, contracts.ptr, contracts.len, SQLITE_STATIC);
    put_row(f, s);
    sqlite3_finalize(s);
    kl_buf_fini(&cards);
    kl_buf_fini(&contracts);
}

static void drop_rows(index_file *f, const card_places *drop) {
    sqlite3_stmt *s = prepare(f, "DELETE FROM folder WHERE status = ? AND name = ?");
    for (int i = 0; i < drop->n && !f->failed; i++) {
        sqlite3_bind_int(s, 1, drop->at[i].status);
        put_text(s, 2, drop->at[i].name);
        put_row(f, s);
    }
    sqlite3_finalize(s);
}

static void write_meta(index_file *f, int64_t stamp) {
    kl_hasher h;
    sqlite3_stmt *s = prepare(f, "SELECT hash FROM folder WHERE state = 1 ORDER BY name");
    kli_hasher_init(&h);
    while (index_row(f, s)) kli_hasher_add(&h, column(s, 0, f->arena));
    sqlite3_finalize(s);
    const kl_hash id = kli_hasher_end(&h);
    run_sql(f, "DELETE FROM meta");
    s = prepare(f, "INSERT INTO meta SELECT ?, ?, count(*), total(state = 1) FROM folder");
    if (s) sqlite3_bind_int64(s, 1, stamp);
    put_text(s, 2, kl_str_of(id.hex));
    put_row(f, s);
    sqlite3_finalize(s);
}

static void write_changes(index_file *f, card_row *rows, int n, const card_places *drop,
                          const kli_candidates *places, int64_t stamp) {
    if (!run_sql(f, "BEGIN IMMEDIATE")) return;
    number_places(f, rows, n, places);
    drop_rows(f, drop);
    write_rows(f, rows, n);
    write_candidates(f, rows, n);
    run_sql(f, "DELETE FROM candidate WHERE name NOT IN (SELECT name FROM folder WHERE state = 1);"
               "DELETE FROM terms WHERE id NOT IN (SELECT terms FROM candidate);"
               "DELETE FROM scope WHERE id NOT IN (SELECT scope FROM candidate)");
    write_packed(f);
    write_meta(f, stamp);
    run_sql(f, "COMMIT");
}

/* What changed since, from the folder to the file. */
static kl_err walk_folders(index_file *f, int64_t recorded, int64_t stamp, kl_error *e) {
    card_places read = {0}, drop = {0};
    kli_candidates places = {0};
    kl_err err = KL_OK;
    for (int s = KL_CARD_LIFTED; !err && s <= KL_CARD_RETIRED; s++) {
        card_places before = {0}, there = {0};
        known_places(&before, f, s);
        err = places_there(&there, f, s, e);
        compare_places(&read, &drop, f->arena, &before, &there);
    }
    if (err || (recorded == stamp && !read.n && !drop.n)) return err;
    card_row *rows = KL_ARRAY(f->arena, card_row, read.n + 1);
    err = read_rows(rows, &places, f, &read, e);
    if (!err) write_changes(f, rows, read.n, &drop, &places, stamp);
    return err;
}

#define NOT_RECORDED (-2) /* neither NO_STAMP nor a stamp, which is odd */

static kl_err bring_up_to_date(index_file *f, kl_error *e) {
    int64_t recorded = NOT_RECORDED, folders = 0;
    const int64_t stamp = stamp_of_folders(f->arena, f->dir);
    if (!run_sql(f, SCHEMA)) return KL_OK;
    sqlite3_stmt *s = prepare(f, "SELECT stamp, folders FROM meta");
    while (index_row(f, s)) {
        recorded = sqlite3_column_int64(s, 0);
        folders = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    if (folders > WALKED && recorded == stamp && stamp != NO_STAMP) return KL_OK;
    return walk_folders(f, recorded, stamp, e);
}

/* ---- into memory ------------------------------------------------------------------------- */

static void take_texts(kl_str **out, int *n, index_file *f, const char *sql) {
    sqlite3_stmt *s = prepare(f, sql);
    while (index_row(f, s)) {
        const int id = sqlite3_column_int(s, 0);
        while (*n < id) (void)KL_PUSH(f->arena, *out, *n);
        (*out)[id - 1] = column(s, 1, f->arena);
    }
    sqlite3_finalize(s);
}

#define MOST_TERMS                                                                                 \
    (16 << 20) /* numbers are not used again: a file that has run out is made anew                 \
                */

static bool take_candidate(kli_candidate *out, kl_card_index *x, const packed_card *c,
                           const kli_sum *sums, kl_str names) {
    *out = (kli_candidate){.name = kl_str_of(names.ptr + c->name),
                           .scope = c->scope - 1,
                           .terms = c->terms - 1,
                           .bytes = c->bytes,
                           .n_sums = c->sums,
                           .sums = sums + c->first_sum};
    for (int i = 0; i < out->n_sums; i++)
        if (out->sums[i].place < 1 || out->sums[i].place > x->found.n_places) return false;
    if (out->terms >= x->found.n_terms) x->found.n_terms = out->terms + 1;
    return out->scope >= 0 && out->scope < x->found.n_scopes && out->terms >= 0 &&
           out->terms < MOST_TERMS;
}

/* Of `all`: are these records, and what each of them points to, within it? */
static bool take_packed(kl_card_index *x, kl_str all, int64_t cards, int64_t n_sums) {
    if (!all.ptr) return false;
    const int64_t fixed = cards * (int64_t)sizeof(packed_card) + n_sums * (int64_t)sizeof(kli_sum);
    if (n_sums < 0 || fixed > (int64_t)all.len || (cards && all.ptr[all.len - 1])) return false;
    const packed_card *c = (const void *)all.ptr;
    const kli_sum *sums = (const void *)(c + cards);
    const kl_str names = kli_from(all, (size_t)fixed);
    for (; x->found.n < cards; c++) {
        const bool within = c->name >= 0 && (size_t)c->name < names.len && c->sums >= 0 &&
                            c->first_sum >= 0 && c->first_sum <= n_sums - c->sums;
        if (!within || !take_candidate(&x->found.at[x->found.n++], x, c, sums, names)) return false;
    }
    return true;
}

/* Straight to where it stays. */
static kl_str read_packed(index_file *f, const char *which, int64_t row) {
    sqlite3_blob *b = NULL;
    if (sqlite3_blob_open(f->db, "main", "packed", which, row, 0, &b) != SQLITE_OK)
        return said_no(f), (kl_str){0};
    const int bytes = sqlite3_blob_bytes(b);
    char *all = kl_arena_alloc(f->arena, (size_t)bytes + 1, _Alignof(packed_card));
    if (sqlite3_blob_read(b, all, bytes, 0) != SQLITE_OK) said_no(f);
    sqlite3_blob_close(b);
    return (kl_str){all, (size_t)bytes};
}

/* Texts that end with a zero each; false when there are not as many. */
static bool take_lines(kl_card_index *x, kl_str texts, int n) {
    x->lines = KL_ARRAY(x->arena, kl_str, n + 1);
    while (x->n_lines < n) {
        const char *end = texts.len ? memchr(texts.ptr, 0, texts.len) : NULL;
        if (!end) return false;
        const kl_str line = kli_between(texts.ptr, end);
        x->lines[x->n_lines++] = line;
        texts = kli_from(texts, line.len + 1);
    }
    return !texts.len;
}

/* Of `all`: is what each points to within it? */
static bool take_contracts(kl_card_index *x, kl_str all) {
    const packed_contracts *head = (const void *)all.ptr;
    if (all.len < sizeof *head || head->terms < 0 || head->numbers < 0 || head->lines < 0)
        return false;
    const size_t fixed = sizeof *head + ((size_t)head->terms + 1) * sizeof *x->begin +
                         (size_t)head->numbers * sizeof *x->numbers;
    if (fixed > all.len || x->found.n_terms > head->terms) return false;
    x->begin = (const void *)(head + 1);
    x->numbers = x->begin + head->terms + 1;
    for (int i = 0; i < head->terms; i++)
        if (x->begin[i] < 0 || x->begin[i] > x->begin[i + 1]) return false;
    for (int i = 0; i < head->numbers; i++)
        if (x->numbers[i] < 0 || x->numbers[i] >= head->lines) return false;
    return x->begin[head->terms] == head->numbers &&
           take_lines(x, kli_from(all, fixed), head->lines);
}

/* `most`: as many as `meta` counts, or something is wrong with the file. */
static void take_candidates(kl_card_index *x, index_file *f, int most) {
    sqlite3_stmt *s = prepare(f, "SELECT cards, sums, rowid FROM packed");
    bool sound = false;
    x->found.at = KL_ARRAY(x->arena, kli_candidate, most + 1);
    while (index_row(f, s))
        sound = sqlite3_column_int64(s, 0) == most &&
                take_packed(x, read_packed(f, "all_of_them", sqlite3_column_int64(s, 2)), most,
                            sqlite3_column_int64(s, 1)) &&
                take_contracts(x, read_packed(f, "contracts", sqlite3_column_int64(s, 2)));
    sqlite3_finalize(s);
    if (sound && x->found.n == most) return;
    if (!f->failed) f->why = KL_S("its tables do not agree");
    f->failed = true;
}

static void take_scopes(kl_card_index *x, index_file *f) {
    kl_str *texts = NULL;
    take_texts(&texts, &x->found.n_scopes, f, "SELECT id, text FROM scope");
    x->scopes = KL_ARRAY(x->arena, kl_scope, x->found.n_scopes + 1);
    x->actions = KL_ARRAY(x->arena, kl_str, x->found.n_scopes + 1);
    for (int i = 0; i < x->found.n_scopes; i++)
        x->scopes[i] = scope_read(&x->actions[i], x->arena, texts[i]);
}

/* In the order in which kl_library_load finds them. */
static void take_left_out(kl_library *l, index_file *f) {
    sqlite3_stmt *s = prepare(f, "SELECT state, status, name, why FROM folder INDEXED BY left_out "
                                 "WHERE state > 1 OR why <> '' ORDER BY status, name");
    while (index_row(f, s)) {
        const kl_card_status status = (kl_card_status)sqlite3_column_int(s, 1);
        const kl_str name = column(s, 2, f->arena);
        const int state = sqlite3_column_int(s, 0);
        const kl_str why = column(s, 3, f->arena);
        if (state == EDITED) kli_names_add(&l->edited, f->arena, name);
        if (state == BROKEN)
            *KL_PUSH(f->arena, l->broken, l->n_broken) =
                (kl_broken_card){kli_library_folder(f->arena, f->dir, status, name), why};
        else if (why.len)
            *KL_PUSH(f->arena, l->faults, l->n_faults) = (kl_broken_card){name, why};
    }
    sqlite3_finalize(s);
}

static void take_all(kl_library *l, index_file *f) {
    kl_card_index *x = KL_NEW(f->arena, kl_card_index);
    int cards = 0;
    *x = (kl_card_index){.arena = f->arena, .dir = l->dir};
    run_sql(f, "BEGIN"); /* of one state of the file */
    take_texts(&x->found.places, &x->found.n_places, f, "SELECT id, text FROM place");
    take_scopes(x, f);
    sqlite3_stmt *s = prepare(f, "SELECT id, cards FROM meta");
    while (index_row(f, s)) {
        x->id = column(s, 0, f->arena);
        cards = sqlite3_column_int(s, 1);
    }
    sqlite3_finalize(s);
    take_candidates(x, f, cards);
    take_left_out(l, f);
    run_sql(f, "END");
    x->found.index = x;
    kli_candidates_settle(&x->found);
    l->index = x;
}

/* ---- open -------------------------------------------------------------------------------- */

/* `why` says what SQLite had against the file; empty when nothing. */
static kl_err open_at(kl_library *l, kl_str *why, kl_arena *a, const char *path, kl_error *e) {
    index_file f = {.arena = a, .dir = l->dir.ptr};
    *l = (kl_library){.dir = l->dir};
    kl_err err = KL_OK;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path, &f.db, flags, NULL) != SQLITE_OK) said_no(&f);
    sqlite3_busy_timeout(f.db, BUSY_MS);
    if (!f.failed) err = bring_up_to_date(&f, e);
    if (!err && !f.failed) take_all(l, &f);
    sqlite3_close(f.db);
    *why = f.failed ? f.why : KL_S("");
    return err;
}

/* One for each folder, and for each version of the tables. */
static kl_str index_path(kl_arena *a, const char *dir) {
    char *real = realpath(dir, NULL);
    const kl_hash h = kli_hash_of(kl_str_of(real ? real : dir));
    free(real);
    return kli_fs_join(a, kl_fs_cache_dir(a).ptr,
                       kl_arena_printf(a, "cards-%d-%.16s.db", VERSION, h.hex).ptr);
}

/* A file that SQLite has something against is made anew, once. */
static kl_err open_kept(kl_library *l, kl_str *why, kl_arena *a, const char *path, kl_error *e) {
    kl_error no_folder;
    if (kli_fs_mkdirs(kli_fs_dirname(a, path).ptr, &no_folder))
        return *why = kl_arena_copy(a, kl_str_of(no_folder.message)), KL_OK;
    const kl_err err = open_at(l, why, a, path, e);
    if (err || !why->len || unlink(path)) return err;
    return open_at(l, why, a, path, e);
}

kl_err kl_library_open(kl_library **out, kl_arena *a, const char *dir, kl_error *e) {
    kl_str why;
    kl_library *l = *out = KL_NEW(a, kl_library);
    l->dir = kl_arena_copy(a, kl_str_of(dir));
    kl_err err = kli_library_there(dir, e);
    if (err) return err;
    const kl_str path = index_path(a, dir);
    err = open_kept(l, &why, a, path.ptr, e);
    if (err || !why.len) return err;
    kli_say("no index of the cards can be kept in %s (%.*s): each is read again each time",
            path.ptr, KL_STR_ARG(why));
    err = open_at(l, &why, a, NO_FILE, e);
    KL_ASSERT(err || !why.len); /* what SQLite has against memory is that there is none */
    return err;
}

/* ---- use --------------------------------------------------------------------------------- */

const kli_candidates *kli_index_candidates(const kl_card_index *x) { return &x->found; }

kl_str kli_index_id(const kl_card_index *x) { return x->id; }

const kl_scope *kli_index_scope(const kl_card_index *x, int scope) {
    KL_ASSERT(scope >= 0 && scope < x->found.n_scopes);
    return &x->scopes[scope];
}

bool kli_index_covers(const kl_card_index *x, kl_str surface, kl_str action) {
    for (int i = 0; i < x->found.n_scopes; i++)
        if (kl_str_eq(x->actions[i], action) && kli_names_have(&x->scopes[i].surfaces, surface))
            return true;
    return false;
}

kl_str kli_index_action(const kl_card_index *x, int scope) {
    KL_ASSERT(scope >= 0 && scope < x->found.n_scopes);
    return x->actions[scope];
}

const int32_t *kli_index_contract(const kl_card_index *x, int terms, int *n) {
    KL_ASSERT(terms >= 0 && terms < x->found.n_terms);
    *n = x->begin[terms + 1] - x->begin[terms];
    KL_ASSERT(*n >= 0);
    return x->numbers + x->begin[terms];
}

int kli_index_lines(const kl_card_index *x) { return x->n_lines; }

kl_str kli_index_line(const kl_card_index *x, int line) {
    KL_ASSERT(line >= 0 && line < x->n_lines);
    return x->lines[line];
}

static const kl_card *read_card(kl_card_index *x, kl_str name) {
    kl_card *c;
    const kl_str folder = kli_library_folder(x->arena, x->dir.ptr, KL_CARD_ADMITTED, name);
    const bool usable =
        !kli_library_card_in(&c, x->arena, folder.ptr, KL_CARD_ADMITTED, kl_ignored()) &&
        !c->edited;
    return usable ? c : NULL;
}

/* The same bound as of walking: reading takes some 0.3 ms each. */
void kl_library_keep(const kl_library *l) {
    const int n = l->index ? l->index->found.n : 0;
    for (int i = 0; n <= WALKED && i < n; i++) (void)kli_index_card(l->index, i);
}

const kl_card *kli_index_card(kl_card_index *x, int at) {
    KL_ASSERT(at >= 0 && at < x->found.n);
    kli_candidate *c = &x->found.at[at];
    if (!c->card && !c->gone) c->gone = !(c->card = read_card(x, c->name));
    return c->card;
}

static int index_by_name(const void *name, const void *candidate) {
    return strcmp(name, ((const kli_candidate *)candidate)->name.ptr);
}

const kl_card *kli_index_card_named(kl_card_index *x, kl_str name) {
    const kl_str text = kl_arena_copy(x->arena, name);
    const kli_candidate *c =
        bsearch(text.ptr, x->found.at, (size_t)x->found.n, sizeof *c, index_by_name);
    return c ? kli_index_card(x, (int)(c - x->found.at)) : NULL;
}
