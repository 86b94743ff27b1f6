/* lineage.c - the document: a lineage as JSON, its identity, and its place in the store.
 *
 * Self-contained: sources, traits and every measured number with its interval and the key and receipt of the
 * verdict that it was read from, so that a lineage can be checked, lifted and exported where no journal is.  The id
 * is the hash of the document, so the same walk over the same journal is the same lineage.
 * Not here: reading one back (parse.c), showing it (render.c, export.c).  Format: docs/formats/lineage.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lineage_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include <string.h>

static const char *const TERMINATIONS[] = {
    [KL_WALK_COMPLETE] = "complete",
    [KL_WALK_STEP_LIMIT] = "step_limit",
    [KL_WALK_REJECTION_LIMIT] = "rejection_limit",
    [KL_WALK_BUDGET] = "budget",
    [KL_WALK_STOPPED] = "stopped",
    [KL_WALK_UNSETTLED] = "unsettled",
    [KL_WALK_INTERRUPTED] = "interrupted",
};

const char *kl_termination_name(kl_termination t) {
    KL_ASSERT((size_t)t < KL_COUNT(TERMINATIONS));
    return TERMINATIONS[t];
}

/* ---- text ---------------------------------------------------------------------------------------------------- */

static kl_str shown(kl_arena *a, kl_str text, size_t max, bool lines) {
    size_t n = text.len < max ? text.len : max;
    while (n < text.len && n > 0 && ((unsigned char)text.ptr[n] & 0xc0) == 0x80) n--; /* not within a character */
    char *out = KL_ARRAY(a, char, n + 1);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool control = c < 0x20 || c == 0x7f;
        out[i] = control && !(lines && (c == '\n' || c == '\t')) ? ' ' : (char)c;
        /* U+0080 to U+009F are control characters too; some terminals obey them. */
        if (c == 0xc2 && i + 1 < n && (unsigned char)text.ptr[i + 1] < 0xa0) out[i] = out[i + 1] = ' ', i++;
    }
    return (kl_str){out, n};
}

kl_str kli_shown_line(kl_arena *a, kl_str text, size_t max) { return kl_str_trim(shown(a, text, max, false)); }

kl_str kli_shown_lines(kl_arena *a, kl_str text) { return shown(a, text, text.len, true); }

bool kli_list_has(kl_str list, kl_str word) {
    for (size_t at = 0; at < list.len;) {
        const char *gap = memchr(list.ptr + at, ' ', list.len - at);
        const size_t len = gap ? (size_t)(gap - list.ptr) - at : list.len - at;
        if (len && kl_str_eq((kl_str){list.ptr + at, len}, word)) return true;
        at += len + 1;
    }
    return false;
}

/* ---- to JSON ------------------------------------------------------------------------------------------------- */

static void put_text(json_t *o, const char *key, kl_str text) { json_object_set_new(o, key, kl_json_str(text)); }

static void put_interval(json_t *o, double ratio, double low, double high) {
    json_object_set_new(o, "ratio", kl_json_real(ratio));
    json_object_set_new(o, "low", kl_json_real(low));
    json_object_set_new(o, "high", kl_json_real(high));
}

static json_t *state_json(const kl_state *s) {
    json_t *o = json_object();
    put_text(o, "name", s->name);
    put_text(o, "hash", s->hash);
    put_interval(o, s->ratio, s->low, s->high);
    json_object_set_new(o, "median_ns", json_integer(s->median_ns));
    if (s->unsettled) json_object_set_new(o, "unsettled", json_true());
    put_text(o, "verdict", s->verdict_key);
    put_text(o, "receipt", s->receipt);
    json_object_set_new(o, "traits", kl_traits_json(&s->traits));
    put_text(o, "source", s->source);
    return o;
}

static json_t *rejections_json(const kl_rejection *r, int n) {
    json_t *all = json_array();
    for (int i = 0; i < n; i++) {
        json_t *o = json_object();
        put_text(o, "stage", r[i].stage);
        put_text(o, "action", r[i].action);
        put_text(o, "locus", r[i].locus);
        put_text(o, "why", r[i].why);
        put_text(o, "symptom", r[i].symptom);
        put_text(o, "verdict", r[i].verdict_key);
        put_text(o, "edit", r[i].edit);
        json_array_append_new(all, o);
    }
    return all;
}

/* A comparison that was not made is null, never a number. */
static json_t *comparison_json(double ratio, double low, double high, kl_str key, kl_str receipt) {
    if (!key.len) return json_null();
    json_t *o = json_object();
    put_interval(o, ratio, low, high);
    put_text(o, "verdict", key);
    put_text(o, "receipt", receipt);
    return o;
}

static json_t *forward_json(const kl_edge *d) {
    if (!d->forward.len) return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "mechanical", json_boolean(d->mechanical));
    if (d->witness.len) json_object_set_new(o, "witness", kl_json_str(d->witness));
    put_text(o, "hash", d->forward_hash);
    put_interval(o, d->forward_ratio, d->forward_low, d->forward_high);
    put_text(o, "verdict", d->forward_verdict_key);
    put_text(o, "receipt", d->forward_receipt);
    json_object_set_new(o, "recovered",
                        comparison_json(d->recovered, d->recovered_low, d->recovered_high, d->recovered_verdict_key,
                                        d->recovered_receipt));
    put_text(o, "edits", d->forward);
    put_text(o, "source", d->forward_source);
    return o;
}

/* A document that was made without floor and call stays as it is, for its id. */
static json_t *gain_json(const kl_edge *d) {
    json_t *o = comparison_json(d->gain, d->gain_low, d->gain_high, d->gain_verdict_key, d->gain_receipt);
    if (!d->has_call || !json_is_object(o)) return o;
    json_object_set_new(o, "floor", kl_json_real(d->floor));
    json_object_set_new(o, "call", json_string(kl_call_name(d->call)));
    return o;
}

static json_t *edge_json(const kl_edge *d) {
    json_t *o = json_object();
    json_object_set_new(o, "from", json_integer(d->from));
    json_object_set_new(o, "to", json_integer(d->to));
    put_text(o, "action", d->action);
    put_text(o, "bundle", d->bundle);
    put_text(o, "locus", d->locus);
    put_text(o, "why", d->why);
    json_object_set_new(o, "pays", json_boolean(d->pays));
    json_object_set_new(o, "gain", gain_json(d));
    if (d->decided.len) {
        put_text(o, "decided", d->decided);
        put_text(o, "here", d->here);
    }
    put_text(o, "raised", d->raised);
    put_text(o, "backward", d->backward);
    json_object_set_new(o, "forward", forward_json(d));
    if (!d->forward.len && d->witness.len) json_object_set_new(o, "witness", kl_json_str(d->witness));
    json_object_set_new(o, "rejections", rejections_json(d->rejections, d->n_rejections));
    return o;
}

static void put_identity(json_t *o, const kl_lineage *l) {
    put_text(o, "name", l->name);
    put_text(o, "created", l->created);
    json_t *task = json_object();
    put_text(task, "name", l->task);
    put_text(task, "hash", l->task_hash);
    put_text(task, "case", l->case_name);
    json_object_set_new(o, "task", task);
    put_text(o, "surface", l->surface);
    put_text(o, "workload", l->workload);
    put_text(o, "dtype", l->dtype);
    put_text(o, "platform", l->platform);
    put_text(o, "toolchain", l->toolchain);
    put_text(o, "model", l->model);
    put_text(o, "run", l->run);
    put_text(o, "expert", l->expert);
    json_t *end = json_object();
    json_object_set_new(end, "how", json_string(kl_termination_name(l->termination)));
    put_text(end, "why", l->termination_why);
    json_object_set_new(o, "termination", end);
    json_object_set_new(o, "spent_microusd", json_integer(l->spent_microusd));
    json_object_set_new(o, "estimated", json_boolean(l->estimated));
}

json_t *kl_lineage_json(const kl_lineage *l) {
    json_t *o = json_object(), *states = json_array(), *edges = json_array();
    json_object_set_new(o, "schema", json_string("klineage/lineage"));
    json_object_set_new(o, "version", json_integer(1));
    put_text(o, "id", l->id);
    put_identity(o, l);
    for (int i = 0; i < l->n_states; i++) json_array_append_new(states, state_json(&l->states[i]));
    for (int i = 0; i < l->n_edges; i++) json_array_append_new(edges, edge_json(&l->edges[i]));
    json_object_set_new(o, "states", states);
    json_object_set_new(o, "edges", edges);
    json_object_set_new(o, "rejections", rejections_json(l->rejections, l->n_rejections));
    json_object_set_new(o, "naive", l->naive.hash.len ? state_json(&l->naive) : json_null());
    return o;
}

kl_str kli_lineage_id(kl_arena *a, const json_t *document) {
    json_t *bare = json_copy((json_t *)document); /* jansson takes no const, and a shallow copy changes nothing */
    json_object_del(bare, "id");
    const kl_hash h = kl_hash_of(kl_json_dump(a, bare, false));
    json_decref(bare);
    return kl_arena_copy(a, kl_str_of(h.hex));
}

/* ---- the store ----------------------------------------------------------------------------------------------- */

kl_err kl_lineage_keep(const kl_lineage *l, kl_store *s, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    json_t *o = kl_lineage_json(l);
    kl_err err = KL_OK;
    if (!kl_str_eq(l->id, kli_lineage_id(scratch, o)))
        err = kl_fail(e, KL_EINVAL, "lineage", "its id is not that of the document: it was changed after it was made");
    const kl_store_record row = {.kind = KL_S("lineage"),
                                 .id = l->id,
                                 .name = l->name,
                                 .task = l->task,
                                 .json = kl_json_dump(scratch, o, false)};
    if (!err) err = kl_store_record_put(s, &row, e);
    json_decref(o);
    kl_arena_free(scratch);
    return err;
}

static kl_err load_record(kl_lineage *out, kl_arena *a, kl_store *s, const char *what, kl_error *e) {
    kl_store_record row;
    const kl_err err = kl_store_record_find(&row, s, a, "lineage", what, e);
    if (err == KL_ENOENT) kl_hint(e, "klineage lineage list shows the lineages in the journal; a file path works too");
    return err ? err : kl_lineage_parse(out, a, row.json, kl_str_of(what), e);
}

kl_err kl_lineage_load(kl_lineage *out, kl_arena *a, kl_store *s, const char *what, kl_error *e) {
    const bool path = strchr(what, '/') || kl_str_ends(kl_str_of(what), KL_S(".json"));
    if (path && !kl_fs_exists(what)) {
        kl_fail(e, KL_ENOENT, what, "no such file");
        return kl_hint(
            e, "klineage walk ... --out FILE writes a lineage; klineage lineage list shows those in the journal");
    }
    if (!kl_fs_exists(what) || kl_fs_is_dir(what)) return load_record(out, a, s, what, e);
    kl_str text;
    const kl_err err = kl_fs_read(&text, a, what, KL_MAX_JSON_BYTES, e);
    return err ? err : kl_lineage_parse(out, a, text, kl_str_of(what), e);
}
