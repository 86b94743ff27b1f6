/* lineage.c - the document: a lineage as JSON, its identity, and its place in the store.
 *
 * Self-contained: sources, traits and every measured number with its interval and the key and
 * receipt of the verdict that it was read from, so that a lineage can be checked, lifted and
 * exported where no journal is.  The id is the hash of the document, so the same walk over the same
 * journal is the same lineage. Not here: reading one back (parse.c), showing it (render.c,
 * export.c).  Format: docs/formats/lineage.md. SPDX-License-Identifier: Apache-2.0 */
#include "lineage_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/record.h"
#include <klineage/limits.h>
#include <string.h>

static const char *const TERMINATION_NAMES[] = {
#define KL_DEF_TERMINATION(id, name, meaning) [id] = name,
#include <klineage/lineage.def>
};
static const char *const LINEAGE_CALL_NAMES[] = {
#define KL_DEF_CALL(id, name) [id] = name,
#include <klineage/gate.def>
};
static const kli_names TERMINATIONS = KL_NAMES(TERMINATION_NAMES),
                       EDGE_CALLS = KL_NAMES(LINEAGE_CALL_NAMES);

_Static_assert(KL_COUNT(LINEAGE_CALL_NAMES) == KL_DECISION_UNDECIDED + 1, "a name for each call");

const char *kl_termination_name(kl_termination t) { return kli_name_of(&TERMINATIONS, (int)t); }

/* ---- text -------------------------------------------------------------------------------- */

static kl_str lineage_shown(kl_arena *a, kl_str text, size_t max) {
    size_t n = text.len < max ? text.len : max;
    while (n < text.len && n > 0 && ((unsigned char)text.ptr[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    KL_ASSERT(n <= text.len);
    char *out = KL_ARRAY(a, char, n + 1);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool control = c < 0x20 || c == 0x7f;
        out[i] = control ? ' ' : (char)c;
        /* U+0080 to U+009F are control characters too; some terminals obey them. */
        if (c == 0xc2 && i + 1 < n && (unsigned char)text.ptr[i + 1] < 0xa0)
            out[i] = out[i + 1] = ' ', i++;
    }
    return (kl_str){out, n};
}

kl_str kli_shown_line(kl_arena *a, kl_str text, size_t max) {
    return kl_arena_copy(a, kl_str_trim(lineage_shown(a, text, max)));
}

/* ---- the record -------------------------------------------------------------------------- */

enum { MAX_REJECTIONS = 4096 }; /* of one list; a walk of 64 steps with 8 rejections each has 512 */

static bool is_unsettled(const void *state) { return ((const kl_state *)state)->unsettled; }
static bool has_naive(const void *lineage) {
    return ((const kl_lineage *)lineage)->naive.hash.len != 0;
}

#define OF_EDGE(name, condition)                                                                   \
    static bool name(const void *edge) {                                                           \
        const kl_edge *d = edge;                                                                   \
        return condition;                                                                          \
    }
/* A comparison that was not made is null, never a number. */
OF_EDGE(has_gain, d->gain_verdict_key.len)
OF_EDGE(is_recovered, d->recovered_verdict_key.len)
/* A document that was made without floor and call stays as it is, for its id. */
OF_EDGE(has_call, d->has_call)
OF_EDGE(is_decided, d->decided.len)
OF_EDGE(has_forward, d->forward.len)
OF_EDGE(has_witness, d->witness.len)
OF_EDGE(has_witness_alone, d->witness.len && !d->forward.len)

static json_t *traits_json(const void *state) {
    return kl_traits_json(&((const kl_state *)state)->traits);
}

static bool read_traits(void *state, kl_arena *a, const json_t *value) {
    kl_traits_parse(&((kl_state *)state)->traits, a, value);
    return json_is_object(value);
}

static const kli_codec STATE_TRAITS = {
    traits_json, read_traits,
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}}"};

#define KL_RECORD kl_state
static const kl_record STATE_RECORD = {KL_RECORD_HEAD("state", "One kernel of the chain."),
                                       KL_ROWS{
#define KL_DEF_STATE KL_ROW
#include <klineage/lineage.def>
                                           KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_rejection
static const kl_record REJECTION_RECORD = {KL_RECORD_HEAD("rejection", "An attempt that failed."),
                                           KL_ROWS{
#define KL_DEF_REJECTION KL_ROW
#include <klineage/lineage.def>
                                               KL_ROWS_END}};
#undef KL_RECORD

/* How parse.c sees that a document has neither floor nor call. */
const kl_edge KLI_EDGE_DEFAULTS = {.noise = -1, .call = (kl_decision)-1};
#define KL_RECORD kl_edge
static const kl_record EDGE_RECORD = {
    KL_RECORD_HEAD("edge", "A step of the chain, from one state to the next, with its evidence."),
    .defaults = &KLI_EDGE_DEFAULTS,
    KL_ROWS{
#define KL_DEF_EDGE KL_ROW
#include <klineage/lineage.def>
        KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_lineage
const kl_record KL_LINEAGE = {
    KL_RECORD_HEAD("lineage", "The proven chain from a simple kernel to an expert's."),
    .document = true, .strict = true,
    KL_ROWS{
#define KL_DEF_LINEAGE KL_ROW
#include <klineage/lineage.def>
        KL_ROWS_END}};
#undef KL_RECORD

json_t *kl_lineage_json(const kl_lineage *l) { return kli_record_json(&KL_LINEAGE, l); }

kl_str kli_lineage_id(kl_arena *a, const json_t *document) {
    json_t *bare = json_copy(
        (json_t *)document); /* jansson takes no const, and a shallow copy changes nothing */
    json_object_del(bare, "id");
    const kl_hash h = kli_hash_of(kli_json_dump(a, bare, false));
    json_decref(bare);
    return kl_arena_copy(a, kl_str_of(h.hex));
}

/* ---- the store --------------------------------------------------------------------------- */

kl_err kl_lineage_keep(const kl_lineage *l, kl_store *s, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    json_t *o = kl_lineage_json(l);
    kl_err err = KL_OK;
    if (!kl_str_eq(l->id, kli_lineage_id(scratch, o)))
        err = kl_fail(e, KL_EINVAL, "lineage",
                      "its id is not that of the document: it was changed after it was made");
    const kl_store_record row = {.kind = KL_S("lineage"),
                                 .id = l->id,
                                 .name = l->name,
                                 .task = l->task,
                                 .json = kli_json_dump(scratch, o, false)};
    if (!err) err = kl_store_record_put(s, &row, e);
    json_decref(o);
    kl_arena_free(scratch);
    return err;
}

static kl_err load_record(kl_lineage *out, kl_arena *a, kl_store *s, const char *what,
                          kl_error *e) {
    kl_store_record row;
    const kl_err err = kl_store_record_find(&row, s, a, "lineage", what, e);
    if (err == KL_ENOENT)
        kl_hint(e,
                "klineage lineage list shows the lineages in the journal; a file path works too");
    return err ? err : kl_lineage_parse(out, a, row.json, kl_str_of(what), e);
}

kl_err kl_lineage_load(kl_lineage *out, kl_arena *a, kl_store *s, const char *what, kl_error *e) {
    const bool path = strchr(what, '/') || kl_str_ends(kl_str_of(what), KL_S(".json"));
    if (path && !kli_fs_exists(what)) {
        kl_fail(e, KL_ENOENT, what, "no such file");
        return kl_hint(e, "klineage walk ... --out FILE writes a lineage; klineage lineage list "
                          "shows those in the journal");
    }
    if (!kli_fs_exists(what) || kli_fs_is_dir(what)) return load_record(out, a, s, what, e);
    kl_str text;
    const kl_err err = kli_fs_read(&text, a, what, KL_MAX_JSON_BYTES, e);
    return err ? err : kl_lineage_parse(out, a, text, kl_str_of(what), e);
}
