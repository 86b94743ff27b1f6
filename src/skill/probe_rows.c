/* probe_rows.c - what stands recorded already, as rows of evidence: edges of lineages, attempts
 * that were rejected there, held-out trials of cards, and the gated proposals of runs.
 *
 * A row is about one direction, the card or action applied: the backward steps of a walk are none.
 * Where an application was timed against the state itself, that interval counts; else the quotient
 * of two ratios to one baseline, beside the noise that such a baseline has between two
 * measurements.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/record.h"
#include <math.h>
#include <string.h>

#define DRIFT_NOISE 0.25 /* of a baseline between two measurements: on a shared machine a half */
#define MAX_WHY 240      /* bytes: a line of evidence, not a log */

static kl_str one_line(kl_arena *a, kl_str text) {
    const kl_str line = kli_text_cut(kli_before(text, '\n'), MAX_WHY);
    return kl_arena_copy(a, line);
}

static kl_probe_outcome outcome_of_call(kl_decision call) {
    static const kl_probe_outcome OUTCOMES[] = {[KL_DECISION_SAME] = KL_PROBE_NO_CHANGE,
                                                [KL_DECISION_FASTER] = KL_PROBE_FASTER,
                                                [KL_DECISION_SLOWER] = KL_PROBE_SLOWER,
                                                [KL_DECISION_UNDECIDED] = KL_PROBE_UNDECIDED};
    KL_ASSERT((size_t)call < KL_COUNT(OUTCOMES));
    return OUTCOMES[call];
}

/* Of a word for what the gate said; `call` is asked where it passed. */
static kl_probe_outcome outcome_of(kl_str word, kl_decision call) {
    if (kl_str_eq(word, KL_S("done"))) return KL_PROBE_DECLINED;
    if (kl_str_eq(word, KL_S("no_edit"))) return KL_PROBE_NO_EDIT;
    if (kli_one_of(word, "no_compile refused")) return KL_PROBE_NO_COMPILE;
    if (kli_one_of(word, "wrong crash hang cheat")) return KL_PROBE_WRONG;
    return outcome_of_call(call);
}

/* ---- verdicts that lie beside lineages --------------------------------------------------- */

static kl_err keep_line(kl_kept_verdicts *k, kl_arena *a, kl_str line, kl_str path, kl_error *e) {
    json_t *o = NULL;
    kl_err err = kli_json_parse(&o, line, path, e);
    if (err) return err;
    kl_kept_verdict v = {.key = kl_arena_copy(a, kli_json_text_or(o, "key", KL_S("")))};
    const kl_str json = kli_json_dump(a, json_object_get(o, "verdict"), false);
    json_decref(o);
    err = kl_verdict_parse(&v.verdict, a, json, path, e);
    if (!err) *KL_PUSH(a, k->at, k->n) = v;
    return err;
}

kl_err kl_kept_verdicts_read(kl_kept_verdicts *k, kl_arena *a, const char *path, kl_error *e) {
    kl_str text;
    kl_err err = kli_fs_read(&text, a, path, KL_MAX_JSON_BYTES, e);
    for (kl_str line; !err && kli_next_line(&line, &text);)
        if (kl_str_trim(line).len) err = keep_line(k, a, line, kl_str_of(path), e);
    return err;
}

static const kl_verdict *kept_under(const kl_kept_verdicts *k, kl_str key) {
    for (size_t i = 0; key.len && i < k->n; i++)
        if (kl_str_eq(k->at[i].key, key)) return &k->at[i].verdict;
    return NULL;
}

const kl_verdict *kl_kept_verdict_of(const kl_kept_verdicts *k, kl_str kernel) {
    for (size_t i = 0; i < k->n; i++)
        if (kl_str_eq(k->at[i].verdict.kernel_hash, kernel) && k->at[i].verdict.median_ns > 0)
            return &k->at[i].verdict;
    return NULL;
}

/* ---- states ------------------------------------------------------------------------------ */

/* In order of names, which is how traits are kept; both end with a zero. */
static void add_fact(kl_traits *t, kl_str name, double value) {
    if (!isfinite(value)) return;
    KL_ASSERT(t->n < (int)KL_COUNT(t->at)); /* asserted below: each has room */
    int at = t->n++;
    for (; at > 0 && strcmp(t->at[at - 1].name.ptr, name.ptr) > 0; at--) t->at[at] = t->at[at - 1];
    t->at[at] = (kl_feature){name, value};
}
_Static_assert((int)KL_FACT_COUNT + (int)KL_GAIN_FEATURES <= (int)KL_COUNT(((kl_traits *)0)->at),
               "room for every fact and feature");

void kl_probe_state_of(kl_probe_state *out, kl_arena *a, const kl_kernel *k, const kl_task *t,
                       const kl_workload *w, const kl_verdict *v) {
    double features[KL_GAIN_FEATURES];
    *out = (kl_probe_state){.hash = kl_arena_copy(a, kl_str_of(k->hash)),
                            .task = t->name,
                            .workload = w->label,
                            .surface = kl_str_of(k->surface->name)};
    const kl_facts *f = kl_facts_of(a, k, t, w, v);
    kl_gain_features(features, f);
    for (int i = 0; i < KL_FACT_COUNT; i++) {
        const kl_fact_row *row = kl_fact_each(KL_FACT_OF_STATE, i);
        if (f->at[i].known && row->kind != KL_FACT_TEXT)
            add_fact(&out->facts, kl_str_of(row->name), f->at[i].number);
    }
    for (int i = 0; i < KL_GAIN_FEATURES; i++)
        add_fact(&out->facts, kl_arena_printf(a, "gain.%s", kl_gain_feature_name(i)), features[i]);
}

/* ---- lineages ---------------------------------------------------------------------------- */

static const kl_card *card_born_of(const kl_library *l, const kl_lineage *from, const kl_edge *d) {
    const kl_str start = from->states[d->from].hash;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        for (int k = 0; k < c->n_trials && kl_str_eq(c->action, d->action); k++)
            if (!c->trials[k].held_out && kl_str_eq(c->trials[k].start_hash, start)) return c;
    }
    return NULL;
}

static kl_probe row_of_lineage(const kl_lineage *from, const kl_edge *d, const kl_library *l) {
    const kl_card *card = card_born_of(l, from, d);
    return (kl_probe){.card = card ? card->name : KL_S(""),
                      .action = d->action,
                      .surface = from->surface,
                      .task = from->task,
                      .workload = from->workload,
                      .platform = from->platform,
                      .state = from->states[d->from].hash,
                      .model = from->model,
                      .tries = 1};
}

static void add_edge_row(kl_probes *p, kl_arena *a, const kl_lineage *from, const kl_edge *d,
                         const kl_library *l) {
    kl_probe row = row_of_lineage(from, d, l);
    row.place = kl_arena_printf(a, "%.*s/%.*s", KL_STR_ARG(from->name),
                                KL_STR_ARG(from->states[d->to].name));
    row.origin = KL_S("edge");
    row.result = from->states[d->to].hash;
    row.outcome = outcome_of_call(d->call);
    row.gain = d->gain, row.low = d->gain_low, row.high = d->gain_high;
    row.noise = d->noise;
    row.verdict = d->gain_verdict_key;
    kl_probes_add(p, a, &row);
}

/* Over the state, by the ratios of both to the baseline of the lineage. */
static void gain_by_ratios(kl_probe *row, const kl_verdict *v, const kl_state *from) {
    const kl_comparison *c = v->n_comparisons ? &v->comparisons[0] : NULL;
    kl_decision call = KL_DECISION_UNDECIDED;
    if (c && c->low > 0 && from->low > 0) {
        row->gain = c->ratio / from->ratio;
        row->low = c->low / from->high, row->high = c->high / from->low;
        row->noise = DRIFT_NOISE;
        call = kl_decide(row->low, row->high, row->noise, false);
    }
    row->outcome = outcome_of(kl_str_of(kl_outcome_name(v->outcome)), call);
    row->result = c ? v->kernel_hash : KL_S("");
}

static void add_rejection(kl_probes *p, kl_arena *a, const kl_lineage *from, const kl_edge *d,
                          int n, const kl_library *l, const kl_kept_verdicts *kept) {
    const kl_rejection *r = &d->rejections[n];
    const kl_verdict *v = kept_under(kept, r->verdict_key);
    kl_probe row = row_of_lineage(from, d, l);
    row.place = kl_arena_printf(a, "%.*s/%.*s/rejected %d", KL_STR_ARG(from->name),
                                KL_STR_ARG(from->states[d->to].name), n);
    row.origin = KL_S("rederive");
    row.why = one_line(a, r->symptom);
    row.verdict = r->verdict_key;
    row.outcome = KL_PROBE_NO_EDIT;
    if (v) gain_by_ratios(&row, v, &from->states[d->from]);
    if (v || !r->verdict_key.len) kl_probes_add(p, a, &row);
}

void kl_probes_of_lineage(kl_probes *p, kl_arena *a, const kl_lineage *from,
                          const kl_kept_verdicts *kept, const kl_library *l) {
    KL_ASSERT(from->n_states == from->n_edges + 1); /* law 4 */
    for (int i = 0; i < from->n_edges; i++) {
        const kl_edge *d = &from->edges[i];
        add_edge_row(p, a, from, d, l);
        for (int k = 0; k < d->n_rejections; k++)
            if (kl_str_eq(d->rejections[k].stage, KL_S("rederive")))
                add_rejection(p, a, from, d, k, l, kept);
    }
}

/* ---- cards ------------------------------------------------------------------------------- */

static bool declined(const kl_trial_record *r) {
    return kl_str_starts(r->why, KL_S("the model declined"));
}

static kl_probe row_of_trial(const kl_card *c, const kl_trial_record *r) {
    return (kl_probe){.origin = KL_S("admit"),
                      .card = c->name,
                      .action = c->action,
                      .surface = r->surface,
                      .task = r->task,
                      .workload = r->workload,
                      .platform = r->platform,
                      .state = r->start_hash,
                      .result = r->result_hash,
                      .model = r->model,
                      .outcome = declined(r) ? KL_PROBE_DECLINED
                                             : outcome_of(r->outcome, kl_trial_call(r)),
                      .gain = r->gain,
                      .low = r->low,
                      .high = r->high,
                      .noise = r->noise,
                      .tries = r->tries,
                      .spent_microusd = r->spent_microusd,
                      .verdict = r->verdict_key};
}

void kl_probes_of_card(kl_probes *p, kl_arena *a, const kl_card *c) {
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (!r->held_out || !r->start_hash.len || !kl_str_eq(r->kind, KL_S("admit"))) continue;
        kl_probe row = row_of_trial(c, r);
        row.place = kl_arena_printf(a, "card %.*s/%.12s/%.*s", KL_STR_ARG(c->name),
                                    r->start_hash.ptr, KL_STR_ARG(kli_cut(r->run, 12)));
        row.why = one_line(a, r->why);
        kl_probes_add(p, a, &row);
    }
}

/* ---- runs -------------------------------------------------------------------------------- */

typedef struct {
    kl_probes *out;
    kl_arena *arena;
    kl_store *store;
    const kl_store_run *run;
    const kl_library *library;
    kl_str model;
    kl_step *steps;
    kl_str *tracks;
    size_t n;
    kl_task *task; /* the one that was asked for last */
} run_rows;

static kl_err read_run_steps(run_rows *x, kl_error *e) {
    kl_store_step *rows;
    const kl_str where = KL_S("journal: step");
    kl_err err = kl_store_step_list(&rows, &x->n, x->store, x->arena, x->run->id.ptr, e);
    x->steps = KL_ARRAY(x->arena, kl_step, x->n + 1);
    x->tracks = KL_ARRAY(x->arena, kl_str, x->n + 1);
    for (size_t i = 0; !err && i < x->n; i++) {
        json_t *o = NULL;
        err = kli_json_parse(&o, rows[i].json, where, e);
        if (!err) err = kli_record_read(&x->steps[i], &KL_STEP, x->arena, o, where, e);
        json_decref(o);
        x->steps[i].n = rows[i].n;
        x->tracks[i] = rows[i].track;
    }
    return err;
}

/* The card that a step names, and its action; what names none is an action, where it is one. */
static void name_what(kl_probe *row, const run_rows *x, kl_str named) {
    const kl_card *c = kl_library_card(x->library, named);
    row->card = c ? c->name : KL_S("");
    row->action = c ? c->action : named;
}

static int64_t spent_before(const run_rows *x, size_t i) {
    const bool first = i == 0 || !kl_str_eq(x->tracks[i - 1], x->tracks[i]);
    return first ? 0 : x->steps[i - 1].spent_microusd;
}

static kl_decision call_named(kl_str word) {
    for (int c = KL_DECISION_SAME; c < KL_DECISION_UNDECIDED; c++)
        if (kl_str_eq(word, kl_str_of(kl_decision_name((kl_decision)c)))) return (kl_decision)c;
    return KL_DECISION_UNDECIDED;
}

/* False: it is not in this journal. */
static bool verdict_of(kl_verdict *out, const run_rows *x, kl_str key) {
    kl_str json;
    return key.len && !kl_store_verdict_get(&json, x->store, x->arena, key.ptr, kl_ignored()) &&
           !kl_verdict_parse(out, x->arena, json, KL_S("journal"), kl_ignored());
}

/* Task, shape and platform stand in the verdict. */
static bool take_verdict(kl_probe *row, const run_rows *x, kl_str key) {
    kl_verdict v;
    if (!verdict_of(&v, x, key)) return false;
    row->task = v.task, row->surface = v.surface;
    row->workload = v.workload, row->platform = v.platform;
    return true;
}

/* What was gated before in the same track: a proposal that nothing was gated of was made there. */
static kl_str verdict_near(const run_rows *x, size_t i) {
    for (size_t k = i + 1; k-- > 0 && kl_str_eq(x->tracks[k], x->tracks[i]);)
        if (x->steps[k].verdict.len) return x->steps[k].verdict;
    return KL_S("");
}

/* Controls of an admission apply nothing. */
static bool is_application(const kl_step *s) {
    return s->parent.len && s->action.len && !kli_one_of(s->action, "edit done none placebo") &&
           kli_one_of(s->phase, "search materialize recorded");
}

/* Proposals of one conversation about one card on one state are one application. */
static bool goes_on(const run_rows *x, size_t i) {
    const kl_step *s = &x->steps[i], *next = &x->steps[i + 1];
    return i + 1 < x->n && kl_str_eq(s->phase, KL_S("materialize")) &&
           kl_str_eq(next->phase, s->phase) && kl_str_eq(x->tracks[i + 1], x->tracks[i]) &&
           kl_str_eq(next->action, s->action) && kl_str_eq(next->parent, s->parent);
}

static void take_step(kl_probe *row, const run_rows *x, const kl_step *s) {
    const kl_probe_outcome outcome = outcome_of(s->outcome, call_named(s->call));
    const bool better = outcome > row->outcome && outcome != KL_PROBE_UNDECIDED;
    row->tries++;
    if (row->tries > 1 && !better) return;
    row->outcome = outcome;
    row->gain = s->gain, row->low = s->gain_low, row->high = s->gain_high;
    row->noise = s->gain_noise;
    row->result = outcome >= KL_PROBE_SLOWER ? s->kernel : KL_S("");
    row->verdict = outcome > KL_PROBE_NO_EDIT ? s->verdict : KL_S("");
    row->why = one_line(x->arena, s->why);
}

/* The application that begins with step `i`; returns its last step. */
static size_t add_application(run_rows *x, size_t i) {
    const kl_step *s = &x->steps[i];
    kl_probe row = {.origin = s->phase, .state = s->parent, .model = x->model};
    row.place = kl_arena_printf(x->arena, "%.12s/%.*s/%lld", x->run->id.ptr,
                                KL_STR_ARG(x->tracks[i]), (long long)s->n);
    const int64_t before = spent_before(x, i);
    const bool known = take_verdict(&row, x, verdict_near(x, i));
    name_what(&row, x, s->action);
    for (take_step(&row, x, s); goes_on(x, i); take_step(&row, x, &x->steps[i])) i++;
    row.spent_microusd = x->steps[i].spent_microusd - before;
    KL_ASSERT(row.tries > 0);
    if (known) kl_probes_add(x->out, x->arena, &row);
    return i;
}

/* A task that is not here, or another version of it, leaves the state out: its row stays. */
static const kl_task *task_of(run_rows *x, const kl_verdict *v) {
    kl_str path;
    if (x->task && kl_str_eq(x->task->name, v->task)) return x->task;
    x->task = NULL;
    if (kl_task_find(&path, x->arena, kl_arena_copy(x->arena, v->task).ptr, kl_ignored()) ||
        kl_task_load(&x->task, x->arena, path.ptr, kl_ignored()))
        return NULL;
    return kl_str_eq(kl_str_of(x->task->hash), v->task_hash) ? x->task : NULL;
}

/* What the step's kernel is, where its text was kept. */
static void add_step_state(run_rows *x, const kl_step *s) {
    kl_verdict v;
    kl_str source;
    kl_kernel *k;
    kl_probe_state state;
    const kl_surface *surface;
    if (!s->source.len || !s->kernel.len || !verdict_of(&v, x, s->verdict)) return;
    const kl_task *t = task_of(x, &v);
    if (!t || !(surface = kl_surface_by_name(v.surface)) ||
        kl_store_blob_get(&source, x->store, x->arena, s->source, kl_ignored()) ||
        kl_kernel_parse(&k, x->arena, source, KL_S("step"), surface, NULL, kl_ignored()))
        return;
    const kl_workload *w = kl_task_workload(t, v.workload, surface->on);
    if (!w || !kl_str_eq(kl_str_of(k->hash), s->kernel)) return;
    kl_probe_state_of(&state, x->arena, k, t, w, &v);
    kl_probes_add_state(x->out, x->arena, &state);
}

static kl_str run_model(kl_arena *a, const kl_store_run *run) {
    json_t *o = NULL;
    kl_str model = KL_S("");
    if (!kli_json_parse(&o, run->json, KL_S("journal"), kl_ignored()))
        model = kl_arena_copy(a, kli_json_text_or(o, "model", model));
    json_decref(o);
    return model;
}

kl_err kl_probes_of_run(kl_probes *p, kl_arena *a, kl_store *s, const kl_store_run *run,
                        const kl_library *l, kl_error *e) {
    run_rows x = {
        .out = p, .arena = a, .store = s, .run = run, .library = l, .model = run_model(a, run)};
    const kl_err err = read_run_steps(&x, e);
    for (size_t i = 0; !err && i < x.n; i++) add_step_state(&x, &x.steps[i]);
    for (size_t i = 0; !err && i < x.n; i++)
        if (is_application(&x.steps[i])) i = add_application(&x, i);
    return err;
}
