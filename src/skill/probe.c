/* probe.c - rows of evidence: what a card or an action did to a state, good or bad, kept as lines
 * that git can merge.
 *
 * Who makes the rows is probe_rows.c; what is learned from them is gain.c.  A row is known by the
 * place where it stands recorded, so that reading the same evidence twice adds nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/record.h"
#include <stdlib.h>
#include <string.h>

#define PROBES_FILE "probes.jsonl"
#define STATES_FILE "states.jsonl"

static const char *const PROBE_OUTCOME_NAMES[] = {
#define KL_DEF_PROBE_OUTCOME(id, name, meaning) [id] = name,
#include <klineage/skill.def>
};
static const kli_names PROBE_OUTCOMES = KL_NAMES(PROBE_OUTCOME_NAMES);
_Static_assert(KL_COUNT(PROBE_OUTCOME_NAMES) == KL_PROBE_UNDECIDED + 1, "a name for each outcome");

const char *kl_probe_outcome_name(kl_probe_outcome o) {
    return kli_name_of(&PROBE_OUTCOMES, (int)o);
}

static json_t *state_facts_json(const void *state) {
    return kl_traits_json(&((const kl_probe_state *)state)->facts);
}

static bool read_state_facts(void *state, kl_arena *a, const json_t *value) {
    kl_traits_parse(&((kl_probe_state *)state)->facts, a, value);
    return true;
}

static const kli_codec PROBE_FACTS = {
    state_facts_json, read_state_facts,
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}}"};

#define KL_RECORD kl_probe
static const kli_field PROBE_FIELDS[] = {
#define KL_DEF_PROBE KL_ROW
#include <klineage/skill.def>
    KL_ROWS_END};
#undef KL_RECORD
const kl_record KL_PROBE = {.name = "probe",
                            .fields = PROBE_FIELDS,
                            .size = sizeof(kl_probe),
                            .strict = true,
                            .doc = "What a card or an action did to a state: a line of "
                                   "probes.jsonl beside the cards."};

#define KL_RECORD kl_probe_state
static const kli_field PROBE_STATE_FIELDS[] = {
#define KL_DEF_PROBE_STATE KL_ROW
#include <klineage/skill.def>
    KL_ROWS_END};
#undef KL_RECORD
const kl_record KL_PROBE_STATE = {.name = "probe-state",
                                  .fields = PROBE_STATE_FIELDS,
                                  .size = sizeof(kl_probe_state),
                                  .strict = true,
                                  .doc = "What a state is that was probed, or that came out: a "
                                         "line of states.jsonl beside the cards."};

/* ---- a set of rows ----------------------------------------------------------------------- */

void kl_probes_add(kl_probes *p, kl_arena *a, const kl_probe *row) {
    KL_ASSERT(row->place.len && row->state.len);
    for (size_t i = 0; i < p->n; i++)
        if (kl_str_eq(p->at[i].place, row->place)) {
            p->at[i] = *row;
            return;
        }
    if (p->n < KL_MAX_PROBES) *KL_PUSH(a, p->at, p->n) = *row;
}

static kl_probe_state *probes_state(const kl_probes *p, kl_str hash) {
    for (size_t i = 0; i < p->n_states; i++)
        if (kl_str_eq(p->states[i].hash, hash)) return &p->states[i];
    return NULL;
}

const kl_probe_state *kl_probes_state(const kl_probes *p, kl_str hash) {
    return probes_state(p, hash);
}

bool kl_probes_name(const kl_probes *p, kl_str hash) {
    for (size_t i = 0; i < p->n; i++)
        if (kl_str_eq(p->at[i].state, hash) || kl_str_eq(p->at[i].result, hash)) return true;
    return false;
}

/* A state that was timed tells more than one that was not. */
void kl_probes_add_state(kl_probes *p, kl_arena *a, const kl_probe_state *s) {
    kl_probe_state *known = probes_state(p, s->hash);
    KL_ASSERT(s->hash.len);
    if (known && known->facts.n <= s->facts.n) *known = *s;
    if (!known && p->n_states < KL_MAX_PROBES) *KL_PUSH(a, p->states, p->n_states) = *s;
}

/* ---- files ------------------------------------------------------------------------------- */

/* A line of either kind: a state has a hash, a probe a place. */
static kl_err read_probe_line(kl_probes *p, kl_arena *a, kl_str line, kl_str where, kl_error *e) {
    json_t *o = NULL;
    kl_probe row = {0};
    kl_probe_state state = {0};
    kl_err err = kli_json_parse(&o, line, where, e);
    const bool is_state = !err && json_object_get(o, "hash");
    if (!err && is_state) err = kli_record_read(&state, &KL_PROBE_STATE, a, o, where, e);
    if (!err && !is_state) err = kli_record_read(&row, &KL_PROBE, a, o, where, e);
    json_decref(o);
    if (!err && !(is_state ? state.hash.len : row.place.len && row.state.len))
        err = kl_fail(e, KL_EPARSE, where.ptr, "a row has a place and a state, a state a hash");
    if (err) return err;
    if (is_state)
        kl_probes_add_state(p, a, &state);
    else
        kl_probes_add(p, a, &row);
    return KL_OK;
}

kl_err kl_probes_read(kl_probes *p, kl_arena *a, const char *path, kl_error *e) {
    kl_str text;
    kl_err err = kli_fs_read(&text, a, path, KL_MAX_JSON_BYTES, e);
    int n = 1;
    for (kl_str line; !err && kli_next_line(&line, &text); n++)
        if (kl_str_trim(line).len)
            err = read_probe_line(p, a, line, kl_arena_printf(a, "%s, line %d", path, n), e);
    return err;
}

kl_err kl_probes_load(kl_probes *out, kl_arena *a, const char *dir, kl_error *e) {
    static const char *const FILES[] = {PROBES_FILE, STATES_FILE};
    kl_err err = KL_OK;
    *out = (kl_probes){0};
    for (size_t i = 0; !err && i < KL_COUNT(FILES); i++) {
        const kl_str path = kli_fs_join(a, dir, FILES[i]);
        if (kli_fs_exists(path.ptr)) err = kl_probes_read(out, a, path.ptr, e);
    }
    return err;
}

static int by_row_place(const void *x, const void *y) {
    return strcmp(((const kl_probe *)x)->place.ptr, ((const kl_probe *)y)->place.ptr);
}
static int by_hash(const void *x, const void *y) {
    return strcmp(((const kl_probe_state *)x)->hash.ptr, ((const kl_probe_state *)y)->hash.ptr);
}

static void add_record(kl_buf *out, kl_arena *a, const kl_record *r, const void *row) {
    json_t *o = kli_record_json(r, row);
    kl_buf_add(out, kli_json_dump(a, o, false));
    kl_buf_add(out, KL_S("\n"));
    json_decref(o);
}

static kl_err write_lines(const char *dir, const char *name, kl_buf *lines, kl_error *e) {
    kl_arena *a = kl_arena_new();
    const kl_err err = kli_fs_write(kli_fs_join(a, dir, name).ptr, kl_buf_str(lines), e);
    kl_buf_fini(lines);
    kl_arena_free(a);
    return err;
}

kl_err kl_probes_keep(kl_probes *p, const char *dir, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_buf rows = {0}, states = {0};
    if (p->n) qsort(p->at, p->n, sizeof *p->at, by_row_place);
    if (p->n_states) qsort(p->states, p->n_states, sizeof *p->states, by_hash);
    for (size_t i = 0; i < p->n; i++) add_record(&rows, a, &KL_PROBE, &p->at[i]);
    for (size_t i = 0; i < p->n_states; i++) add_record(&states, a, &KL_PROBE_STATE, &p->states[i]);
    kl_arena_free(a);
    kl_err err = kli_fs_mkdirs(dir, e);
    if (!err)
        err = write_lines(dir, PROBES_FILE, &rows, e);
    else
        kl_buf_fini(&rows);
    if (!err) return write_lines(dir, STATES_FILE, &states, e);
    kl_buf_fini(&states);
    return err;
}
