/* record.h - one table of fields for JSON in and out, JSON Schema and documentation.
 *
 *   #define KL_RECORD kl_comparison
 *   const kl_record COMPARISON = {KL_RECORD_HEAD("comparison", "one line"), KL_ROWS{
 *   #define KL_DEF_COMPARISON KL_ROW
 *   #include <klineage/gate.def>
 *       KL_ROWS_END}};
 *   #undef KL_RECORD
 *
 * Behind the meaning a row may say more: `.when = F`: the field is there only where F(record)
 * holds; `.younger = true`: documents that were made before it lack it; `.keyed = true`: a list
 * becomes an object whose keys are the first field of its records and whose values are the second;
 * `.sparse = true`: a text that is empty, a number that is 0 and a record whose first field is so
 * are left out. An OPEN, a RECORD with `.when` is null where that does not hold.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_RECORD_H
#define KL_BASE_RECORD_H
#include "base/json.h"
#include <klineage/record.h>

typedef enum {
    KL_FIELD_CLOSE, /* ends an OPEN, and the table */
    KL_FIELD_OPEN,
    KL_FIELD_TEXT,
    KL_FIELD_HASH,
    KL_FIELD_KEY,
    KL_FIELD_DIGEST,
    KL_FIELD_REAL,
    KL_FIELD_INT,
    KL_FIELD_I64,
    KL_FIELD_U32,
    KL_FIELD_SEED,
    KL_FIELD_BOOL,
    KL_FIELD_EITHER,
    KL_FIELD_NAME,
    KL_FIELD_RECORD,
    KL_FIELD_OWN,
    KL_FIELD_LIST,
    KL_FIELD_ARRAY
} kli_field_kind;

/* The names of an enum, in its order; of a bool, false first. */
typedef struct {
    const char *const *text;
    int n;
} kli_names;
#define KL_NAMES(array)                                                                            \
    { array, (int)KL_COUNT(array) }
const char *kli_name_of(const kli_names *names, int value);
int kli_name_find(const kli_names *names, kl_str name); /* -1: none of them */

/* How a member is written and read that no kind fits.  `record`: the struct that it is a member of.
 * A strict reader refuses a value that `read` refuses. */
typedef struct {
    json_t *(*write)(const void *record);
    bool (*read)(void *record, kl_arena *a, const json_t *value);
    const char *schema;
} kli_codec;

typedef struct {
    const char *key;
    kli_field_kind kind;
    size_t at, count_at;                /* of the member, and of the number of its items */
    int most;                           /* items */
    bool younger, keyed, sparse, minus; /* minus: a whole number that may be negative */
    const kli_names *names;
    const kl_record *of; /* RECORD; LIST and ARRAY: NULL is text */
    const kli_codec *codec;
    bool (*when)(const void *record);
    const char *doc;
} kli_field;

struct kl_record {
    const char *name; /* "verdict"; a document says "schema": "klineage/<name>", "version": 1 */
    const kli_field *fields;
    size_t size;
    const void *defaults; /* what the struct holds before it is read; NULL: zero */
    bool document;        /* stands alone; else it is part of one */
    bool strict; /* a reader refuses what is missing and not `when` or BOOL, of another type, or
                    negative */
    const char *rules; /* keywords of JSON Schema that no row can say; NULL: none */
    const char *doc;   /* one line */
};

json_t *kli_record_json(const kl_record *r, const void *in); /* caller json_decref's */
/* Text and lists live in the arena.  Errors: KL_EPARSE, naming `file` and the place within it. */
KL_MUST_USE kl_err kli_record_read(void *out, const kl_record *r, kl_arena *a, const json_t *o,
                                   kl_str file, kl_error *e);

json_t *kli_record_schema(const kl_record *r);         /* draft 2020-12 */
void kli_record_page(kl_buf *out, const kl_record *r); /* tables of it and its parts, in Markdown */

/* ---- rows -------------------------------------------------------------------------------- */

#define KL_ROW(kind, ...) KL_ROW_##kind(__VA_ARGS__)
#define KL_RECORD_HEAD(name_, doc_) .name = name_, .size = sizeof(KL_RECORD), .doc = doc_
#define KL_ROWS .fields = (const kli_field[])
#define KL_ROWS_END                                                                                \
    { .kind = KL_FIELD_CLOSE }

#define KL_ROW_OF(kind_, member, key_, ...)                                                        \
    {.key = key_, .kind = KL_FIELD_##kind_, .at = offsetof(KL_RECORD, member), .doc = __VA_ARGS__},
#define KL_ROW_TEXT(...) KL_ROW_OF(TEXT, __VA_ARGS__)
#define KL_ROW_DATE(...) KL_ROW_OF(TEXT, __VA_ARGS__)
#define KL_ROW_HASH(...) KL_ROW_OF(HASH, __VA_ARGS__)
#define KL_ROW_KEY(...) KL_ROW_OF(KEY, __VA_ARGS__)
#define KL_ROW_DIGEST(...) KL_ROW_OF(DIGEST, __VA_ARGS__)
#define KL_ROW_REAL(...) KL_ROW_OF(REAL, __VA_ARGS__)
#define KL_ROW_INT(...) KL_ROW_OF(INT, __VA_ARGS__)
#define KL_ROW_I64(...) KL_ROW_OF(I64, __VA_ARGS__)
#define KL_ROW_U32(...) KL_ROW_OF(U32, __VA_ARGS__)
#define KL_ROW_SEED(...) KL_ROW_OF(SEED, __VA_ARGS__)
#define KL_ROW_BOOL(...) KL_ROW_OF(BOOL, __VA_ARGS__)
#define KL_ROW_EITHER(member, names_, ...) KL_ROW_OF(EITHER, member, __VA_ARGS__, .names = &names_)
#define KL_ROW_NAME(type, member, names_, ...)                                                     \
    KL_ROW_OF(NAME, member, __VA_ARGS__, .names = &names_)
#define KL_ROW_RECORD(type, member, record, ...)                                                   \
    KL_ROW_OF(RECORD, member, __VA_ARGS__, .of = &record)
#define KL_ROW_OWN(type, member, codec_, ...) KL_ROW_OF(OWN, member, __VA_ARGS__, .codec = &codec_)
#define KL_ROW_ITEMS(kind, member, most_, record, ...)                                             \
    KL_ROW_OF(kind, member, __VA_ARGS__, .count_at = offsetof(KL_RECORD, n_##member),              \
              .most = most_, .of = record)
#define KL_ROW_LIST(type, ...) KL_ROW_ITEMS(LIST, __VA_ARGS__)
#define KL_ROW_ARRAY(type, ...) KL_ROW_ITEMS(ARRAY, __VA_ARGS__)
#define KL_ROW_INTERVAL(ratio, low, high)                                                          \
    KL_ROW_REAL(ratio, "ratio", "above 1: faster; 0: not known")                                   \
    KL_ROW_REAL(low, "low", "where its 95 % interval begins")                                      \
    KL_ROW_REAL(high, "high", "where its 95 % interval ends")
#define KL_ROW_OPEN(key_, ...) {.key = key_, .kind = KL_FIELD_OPEN, .doc = __VA_ARGS__},
#define KL_ROW_CLOSE(key) {.kind = KL_FIELD_CLOSE},
#define KL_ROW_ONLY(type, member)
#define KL_ROW_AGAIN(kind, ...) KL_ROW_##kind(__VA_ARGS__)

#endif
