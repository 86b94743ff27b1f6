/* facts.c - journal rows as a report needs them.  Nothing is computed here that a row does not say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/record.h"
#include <string.h>

#define MAX_VERDICTS 8192

/* ---- steps ------------------------------------------------------------------------------- */

static kli_track_rows *facts_track_of(kli_facts *f, kl_arena *a, const kl_store_step *s,
                                      const kl_step *first, size_t most) {
    for (int i = 0; i < f->n_tracks; i++)
        if (kl_str_eq(f->tracks[i].run, s->run) && kl_str_eq(f->tracks[i].name, s->track))
            return &f->tracks[i];
    kli_track_rows *t = &f->tracks[f->n_tracks++];
    *t = (kli_track_rows){.run = s->run,
                          .name = s->track,
                          .workload = first->workload,
                          .policy = first->policy,
                          .rows = KL_ARRAY(a, kli_row, most)};
    return t;
}

static kl_err load_steps(kli_facts *f, kl_arena *a, kl_store *s, const char *run, kl_error *e) {
    kl_store_step *steps;
    size_t n;
    kl_err err = kl_store_step_list(&steps, &n, s, a, run, e);
    if (err) return err;
    kli_track_rows *longer = KL_ARRAY(a, kli_track_rows, (size_t)f->n_tracks + n + 1);
    if (f->n_tracks) memcpy(longer, f->tracks, (size_t)f->n_tracks * sizeof *longer);
    f->tracks = longer;
    for (size_t i = 0; !err && i < n; i++) {
        json_t *o = NULL;
        kl_step row = {0};
        err = kli_json_parse(&o, steps[i].json, KL_S("journal: step"), e);
        if (!err) err = kli_record_read(&row, &KL_STEP, a, o, KL_S("journal: step"), e);
        json_decref(o);
        if (err) break;
        row.n = steps[i].n;
        kli_track_rows *t = facts_track_of(f, a, &steps[i], &row, n);
        KL_ASSERT((size_t)t->n_rows < n); /* a row for each step of the run */
        t->rows[t->n_rows++] = row;
    }
    return err;
}

const kli_row *kli_track_best(const kli_track_rows *t) {
    const kli_row *best = NULL;
    for (int i = 0; i < t->n_rows; i++)
        if (t->rows[i].best) best = &t->rows[i];
    return best;
}

/* A proposal has a parent: what a model calls its own edit makes it neither a start nor a
 * reference. */
const kli_row *kli_track_row(const kli_track_rows *t, const char *action) {
    for (int i = 0; i < t->n_rows; i++)
        if (!t->rows[i].parent.len && kl_str_eq(t->rows[i].action, kl_str_of(action)))
            return &t->rows[i];
    return NULL;
}

bool kli_is_proposal(const kli_row *r) {
    return r->parent.len > 0 && !kl_str_eq(r->outcome, KL_S("done"));
}

/* An experiment names its policies as it likes, so that no table says whether a track is a search;
 * its first row does. */
bool kli_is_search(const kli_track_rows *t) {
    return t->n_rows && kli_track_row(t, "start") == &t->rows[0];
}

const char *kli_simplest(const kl_lineage *l) {
    return l->termination == KL_WALK_COMPLETE ? "naive" : "simplest reached";
}

/* Text of a row's kernel; empty where the journal does not have it. */
static kl_err facts_source_of(kl_str *out, const kli_row *r, kl_arena *a, kl_store *s,
                              kl_error *e) {
    kl_error missing = {0};
    *out = KL_S("");
    if (!r || !r->source.len) return KL_OK;
    kl_err err = kl_store_blob_get(out, s, a, r->source, &missing);
    if (err == KL_ENOENT) return KL_OK;
    if (err) *e = missing;
    return err;
}

static kl_err load_sources(kli_facts *f, kl_arena *a, kl_store *s, kl_error *e) {
    kl_err err = KL_OK;
    for (int i = 0; !err && i < f->n_tracks; i++) {
        kli_track_rows *t = &f->tracks[i];
        if (!kli_is_search(t)) continue;
        err = facts_source_of(&t->start_source, kli_track_row(t, "start"), a, s, e);
        if (!err) err = facts_source_of(&t->best_source, kli_track_best(t), a, s, e);
    }
    return err;
}

/* ---- verdicts ---------------------------------------------------------------------------- */

const kl_verdict *kli_facts_verdict(const kli_facts *f, kl_str key) {
    for (int i = 0; i < f->n_verdicts; i++)
        if (kl_str_eq(f->verdict_keys[i], key)) return &f->verdicts[i];
    return NULL;
}

/* A verdict that is not in this journal (a lineage from elsewhere) is left out: its numbers then
 * carry the receipt alone. */
static kl_err want(kli_facts *f, kl_arena *a, kl_store *s, kl_str key, kl_error *e) {
    kl_str json;
    kl_error missing = {0};
    if (!key.len || kli_facts_verdict(f, key) || f->n_verdicts == MAX_VERDICTS) return KL_OK;
    key = kl_arena_copy(a, key);
    kl_err err = kl_store_verdict_get(&json, s, a, key.ptr, &missing);
    if (err == KL_ENOENT || err == KL_EINVAL) return KL_OK;
    if (err) return *e = missing, err;
    KL_ASSERT(f->n_verdicts < MAX_VERDICTS);
    err = kl_verdict_parse(&f->verdicts[f->n_verdicts], a, json, KL_S("journal"), e);
    if (!err) f->verdict_keys[f->n_verdicts++] = key;
    return err;
}

static kl_err want_edge(kli_facts *f, kl_arena *a, kl_store *s, const kl_edge *d, kl_error *e) {
    kl_err err = want(f, a, s, d->gain_verdict_key, e);
    if (!err) err = want(f, a, s, d->forward_verdict_key, e);
    if (!err) err = want(f, a, s, d->recovered_verdict_key, e);
    return err;
}

static kl_err load_verdicts(kli_facts *f, kl_arena *a, kl_store *s, kl_error *e) {
    kl_err err = KL_OK;
    f->verdicts = KL_ARRAY(a, kl_verdict, MAX_VERDICTS);
    f->verdict_keys = KL_ARRAY(a, kl_str, MAX_VERDICTS);
    for (int i = 0; i < f->n_tracks; i++)
        for (int j = 0; !err && j < f->tracks[i].n_rows; j++)
            err = want(f, a, s, f->tracks[i].rows[j].verdict, e);
    for (int i = 0; i < f->n_lineages; i++) {
        for (int j = 0; !err && j < f->lineages[i].n_states; j++)
            err = want(f, a, s, f->lineages[i].states[j].verdict_key, e);
        for (int j = 0; !err && j < f->lineages[i].n_edges; j++)
            err = want_edge(f, a, s, &f->lineages[i].edges[j], e);
    }
    return err;
}

/* ---- everything -------------------------------------------------------------------------- */

static kl_err load_charges(kli_facts *f, kl_arena *a, kl_store *s, const char *run, kl_error *e) {
    kl_store_charge *rows;
    size_t n;
    kl_err err = kl_store_charge_list(&rows, &n, s, a, run, e);
    if (err || !n) return err;
    kl_store_charge *longer = KL_ARRAY(a, kl_store_charge, (size_t)f->n_charges + n);
    if (f->n_charges) memcpy(longer, f->charges, (size_t)f->n_charges * sizeof *longer);
    memcpy(longer + f->n_charges, rows, n * sizeof *rows);
    f->charges = longer;
    f->n_charges += (int)n;
    return KL_OK;
}

int64_t kli_cost_of(const kl_store_charge *c) {
    if (kl_str_eq(c->state, KL_S("released"))) return 0;
    return kl_str_eq(c->state, KL_S("settled")) ? c->settled_microusd : c->reserved_microusd;
}

int64_t kli_track_spent(const kli_facts *f, const kli_track_rows *t, bool *estimated) {
    int64_t spent = 0;
    *estimated = false;
    for (int i = 0; i < f->n_charges; i++) {
        const kl_store_charge *c = &f->charges[i];
        if (!kl_str_eq(c->run, t->run) || !kl_str_eq(c->track, t->name)) continue;
        spent += kli_cost_of(c);
        *estimated |= c->estimated;
    }
    return spent;
}

static bool is_of(const kli_facts *f, kl_str run) {
    for (int i = 0; i < f->n_runs; i++)
        if (kl_str_eq(f->runs[i].id, run)) return true;
    return false;
}

/* Whose run a document names, without checking the rest: one that is broken, and of another run, is
 * no matter of this report. */
static bool is_ours(const kli_facts *f, kl_str json) {
    json_t *o = NULL;
    bool ours = kli_json_parse(&o, json, KL_S("journal"), kl_ignored()) == KL_OK &&
                is_of(f, kli_json_text_or(o, "run", KL_S("")));
    json_decref(o);
    return ours;
}

/* The lineages that these runs made. */
static kl_err facts_load_lineages(kli_facts *f, kl_arena *a, kl_store *s, kl_error *e) {
    kl_store_record *rows;
    size_t n;
    kl_err err = kl_store_record_list(&rows, &n, s, a, "lineage", e);
    f->lineages = KL_ARRAY(a, kl_lineage, n + 1);
    for (size_t i = 0; !err && i < n; i++) {
        if (!is_ours(f, rows[i].json)) continue;
        err = kl_lineage_parse(&f->lineages[f->n_lineages], a, rows[i].json,
                               KL_S("journal: lineage"), e);
        f->n_lineages += !err;
    }
    return err;
}

static kl_err load_run(kli_facts *f, kl_arena *a, kl_store *s, const char *prefix, kl_error *e) {
    kl_store_run *run = &f->runs[f->n_runs];
    kl_err err = kl_store_run_find(run, s, a, prefix, e);
    if (err || is_of(f, run->id)) return err; /* named twice, it is still one run */
    f->n_runs++;
    err = load_steps(f, a, s, run->id.ptr, e);
    return err ? err : load_charges(f, a, s, run->id.ptr, e);
}

kl_err kli_facts_load(kli_facts *out, kl_arena *a, kl_store *s, const kl_report_opts *o,
                      kl_error *e) {
    kl_err err = KL_OK;
    *out = (kli_facts){.runs = KL_ARRAY(a, kl_store_run, o->n_runs + 1)};
    for (int i = 0; !err && i < o->n_runs; i++) err = load_run(out, a, s, o->runs[i], e);
    if (!err) err = load_sources(out, a, s, e);
    if (!err) err = facts_load_lineages(out, a, s, e);
    if (!err) err = load_verdicts(out, a, s, e);
    if (!err && o->library) {
        err = kl_library_load(&out->library, a, o->library, e);
        out->has_library = !err;
        if (!err) err = kl_probes_load(&out->probes, a, o->library, e);
    }
    return err;
}
