/* steps.c - the steps of runs, each with the prompt, the reply, the texts and the verdict that
 * belong to it.  Nothing is computed here that the journal does not say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"
#include "base/json.h"
#include "base/record.h"
#include "task/task.h"
#include <string.h>

typedef struct {
    kl_str text;
    kl_str hash;
} kept_blob;

enum { N_KEPT = 4096 }; /* texts that are shown again and again: rules, parents */

typedef struct {
    kl_arena *arena;
    kl_store *store;
    kli_samples *out;
    kl_str run;
    bool replayed;
    kl_str asked; /* the model, as the ledger names it */
    kept_blob *kept;
    kl_store_effect *effects;
    size_t n_effects;
} loading;

/* ---- texts ------------------------------------------------------------------------------- */

/* Text of a blob; empty where the journal does not have it. */
static kl_err steps_text(kl_str *out, loading *l, kl_str hash, kl_error *e) {
    kl_error own = {0};
    *out = KL_S("");
    if (!hash.len) return KL_OK;
    uint64_t at = 0;
    for (size_t i = 0; i < hash.len && i < 8; i++) at = at * 31 + (unsigned char)hash.ptr[i];
    kept_blob *k = &l->kept[at % N_KEPT];
    if (kl_str_eq(k->hash, hash)) return *out = k->text, KL_OK;
    const kl_err err = kl_store_blob_get(out, l->store, l->arena, hash, &own);
    if (err == KL_ENOENT) return *out = KL_S(""), KL_OK;
    if (err) return *e = own, err;
    *k = (kept_blob){.text = *out, .hash = kl_arena_copy(l->arena, hash)};
    return KL_OK;
}

/* The text of an identity, out of the steps that made it: of this run or one before. */
static kl_str step_source(const kli_samples *s, kl_str kernel) {
    for (int i = s->n - 1; kernel.len && i >= 0; i--)
        if (kl_str_eq(s->at[i].kernel, kernel) && s->at[i].source.len) return s->at[i].source;
    return KL_S("");
}

/* ---- verdicts ---------------------------------------------------------------------------- */

static void verdict_into(kl_dataset_step *s, const kl_verdict *v) {
    s->task = v->task;
    s->task_hash = v->task_hash;
    s->workload = v->workload;
    if (v->surface.len) s->surface = v->surface;
    if (v->platform.len) s->platform = v->platform;
    s->features = v->features;
    s->n_features = v->n_features;
}

/* A verdict that this journal does not have leaves what the track's first step says. */
static kl_err load_verdict(kl_dataset_step *s, loading *l, kl_error *e) {
    kl_str json;
    kl_error own = {0};
    kl_verdict *v = KL_NEW(l->arena, kl_verdict);
    if (!s->verdict.len) return KL_OK;
    const char *key = kl_arena_copy(l->arena, s->verdict).ptr;
    kl_err err = kl_store_verdict_get(&json, l->store, l->arena, key, &own);
    if (err == KL_ENOENT || err == KL_EINVAL) return s->verdict = KL_S(""), KL_OK;
    if (err) return *e = own, err;
    err = kl_verdict_parse(v, l->arena, json, KL_S("journal"), e);
    if (err) return err;
    verdict_into(s, v);
    const bool gated = kl_str_eq(kl_str_of(kl_outcome_name(v->outcome)), s->outcome);
    if (gated && v->assurance) s->assurance = kl_arena_copy(l->arena, (kl_str){&v->assurance, 1});
    if (!gated) s->verdict = KL_S(""), s->n_features = 0; /* of the step before */
    return KL_OK;
}

/* ---- one step ---------------------------------------------------------------------------- */

static kl_dataset_step sample_of(const kl_step *p, const kl_store_step *row, const loading *l) {
    return (kl_dataset_step){.run = l->run,
                             .track = row->track,
                             .n = row->n,
                             .task = p->workload,
                             .workload = p->workload,
                             .policy = p->policy,
                             .phase = p->phase,
                             .action = p->action,
                             .replayed = l->replayed,
                             .parent = p->parent,
                             .kernel = p->kernel,
                             .outcome = p->outcome,
                             .why = p->why,
                             .gain = p->gain,
                             .gain_low = p->gain_low,
                             .gain_high = p->gain_high,
                             .gain_noise = p->gain_noise,
                             .call = p->call,
                             .best = p->best,
                             .verdict = p->verdict,
                             .ratio = p->ratio,
                             .accepted = p->accepted};
}

/* A step without a verdict is about what the track's others are about; the prompt's kernel has to
 * be known before its reply is. */
static void fill_track(kl_dataset_step *steps, int n) {
    const kl_dataset_step *known = NULL;
    for (int i = n - 1; i >= 0; i--)
        if (steps[i].task_hash.len && steps[i].surface.len && steps[i].platform.len)
            known = &steps[i];
    for (int i = 0; known && i < n; i++) {
        kl_dataset_step *s = &steps[i];
        if (!s->task_hash.len) {
            s->task = known->task;
            s->task_hash = known->task_hash;
            s->workload = known->workload;
        }
        if (!s->surface.len) s->surface = known->surface;
        if (!s->platform.len) s->platform = known->platform;
    }
}

static kl_err add_step(loading *l, const kl_store_step *row, kl_error *e) {
    json_t *o = NULL;
    kl_step p = {0};
    const kl_str where = KL_S("journal: step");
    kl_err err = kli_json_parse(&o, row->json, where, e);
    if (!err) err = kli_record_read(&p, &KL_STEP, l->arena, o, where, e);
    json_decref(o);
    if (err) return err;
    kl_dataset_step s = sample_of(&p, row, l);
    err = steps_text(&s.source, l, p.source, e);
    if (!err) err = load_verdict(&s, l, e);
    if (err) return err;
    s.parent_source = step_source(l->out, s.parent);
    *KL_PUSH(l->arena, l->out->at, l->out->n) = s;
    return KL_OK;
}

/* ---- what was asked ---------------------------------------------------------------------- */

/* Requests for words, not for a kernel: their answers are no proposals. */
static bool is_prose(kl_str purpose) {
    static const char *const PROSE[] = {"plan", "summarize", "rule", "review", "lift"};
    for (size_t i = 0; i < KL_COUNT(PROSE); i++)
        if (kl_str_starts(purpose, kl_str_of(PROSE[i]))) return true;
    return false;
}

static kl_err ask_row(kli_question *q, loading *l, const kl_store_effect *f, kl_error *e) {
    json_t *answer;
    kl_err err = kli_json_parse(&answer, f->answer, KL_S("journal: effect"), e);
    if (err) return err;
    *q = (kli_question){.request = f->request,
                        .prose = is_prose(f->purpose),
                        .cost_microusd = kli_json_int_or(answer, "cost_microusd", 0),
                        .step = -1};
    const kl_str named = kli_json_text_or(answer, "model", KL_S(""));
    q->model = !named.len ? l->asked
                          : kl_arena_printf(l->arena, "%s%.*s", l->replayed ? "replay of " : "",
                                            KL_STR_ARG(named));
    err = steps_text(&q->reply, l, kli_json_text_or(answer, "text", KL_S("")), e);
    json_decref(answer);
    return err;
}

static kl_err read_prompt(kl_dataset_step *s, loading *l, const kli_question *q, kl_error *e) {
    json_t *o;
    kl_err err = kli_json_parse(&o, q->request, KL_S("journal: effect"), e);
    if (err) return err;
    const json_t *messages = json_object_get(o, "messages");
    const size_t n = json_array_size(messages);
    s->prompt = KL_ARRAY(l->arena, kl_dataset_turn, n + 1);
    for (size_t i = 0; !err && i < n; i++) {
        const json_t *m = json_array_get(messages, i);
        kl_dataset_turn *t = &s->prompt[s->n_prompt++];
        t->role = kl_arena_copy(l->arena, kli_json_text_or(m, "role", KL_S("user")));
        err = steps_text(&t->content, l, kli_json_text_or(m, "text", KL_S("")), e);
    }
    json_decref(o);
    s->model = q->model;
    s->completion = KL_NEW(l->arena, kl_dataset_turn);
    s->completion[0] = (kl_dataset_turn){.role = KL_S("assistant"), .content = s->reply};
    s->n_completion = 1;
    return err;
}

/* ---- tracks and runs --------------------------------------------------------------------- */

static kl_err end_track(loading *l, int from, kl_error *e) {
    kl_dataset_step *steps = &l->out->at[from];
    const int n = l->out->n - from;
    kli_question *asked = KL_ARRAY(l->arena, kli_question, l->n_effects + 1);
    int n_asked = 0, *which = KL_ARRAY(l->arena, int, n + 1);
    kl_err err = KL_OK;
    for (size_t i = 0; !err && i < l->n_effects; i++)
        if (kl_str_eq(l->effects[i].kind, KL_S("ask")) &&
            kl_str_eq(l->effects[i].track, steps[0].track))
            err = ask_row(&asked[n_asked++], l, &l->effects[i], e);
    if (err) return err;
    fill_track(steps, n);
    kli_link(steps, n, asked, n_asked, which);
    for (int i = 0; !err && i < n; i++)
        if (which[i] >= 0) err = read_prompt(&steps[i], l, &asked[which[i]], e);
    return err;
}

static kl_err load_steps_of(loading *l, kl_error *e) {
    kl_store_step *rows;
    size_t n;
    kl_err err = kl_store_step_list(&rows, &n, l->store, l->arena, l->run.ptr, e);
    if (!err && n > KL_MAX_DATASET_ROWS)
        err = kl_fail(e, KL_ELIMIT, l->run.ptr, "more than %d steps", KL_MAX_DATASET_ROWS);
    int from = l->out->n;
    for (size_t i = 0; !err && i < n; i++) {
        const bool same = i && kl_str_eq(rows[i].track, rows[i - 1].track);
        if (i && !same) err = end_track(l, from, e);
        if (!same) from = l->out->n;
        if (!err) err = add_step(l, &rows[i], e);
    }
    return err || !n ? err : end_track(l, from, e);
}

static bool is_run_loaded(const kli_samples *s, kl_str run) {
    for (int i = 0; i < s->n_runs; i++)
        if (kl_str_eq(s->runs[i], run)) return true;
    return false;
}

/* Of the run; its ledger begins with the first question. */
static kl_err find_model(loading *l, kl_error *e) {
    kl_store_charge *charges;
    size_t n;
    const kl_err err = kl_store_charge_list(&charges, &n, l->store, l->arena, l->run.ptr, e);
    l->asked = !err && n ? charges[0].model : KL_S("");
    return err;
}

static kl_err load_run_of(loading *l, const char *prefix, kl_error *e) {
    kl_store_run run;
    json_t *o = NULL;
    kl_err err = kl_store_run_find(&run, l->store, l->arena, prefix, e);
    if (err || is_run_loaded(l->out, run.id)) return err; /* named twice, it is still one run */
    l->run = run.id;
    l->replayed = false;
    if (kli_json_parse(&o, run.json, KL_S("journal: run"), kl_ignored()) == KL_OK)
        l->replayed = kl_str_starts(kli_json_text_or(o, "model", KL_S("")), KL_S("replay:"));
    json_decref(o);
    l->out->runs[l->out->n_runs++] = run.id;
    err = find_model(l, e);
    if (!err)
        err = kl_store_effect_list(&l->effects, &l->n_effects, l->store, l->arena, run.id.ptr, NULL,
                                   e);
    return err ? err : load_steps_of(l, e);
}

/* ---- families ---------------------------------------------------------------------------- */

/* The task's own word; its name where the task is not here, or where it is no plain name: what a
 * journal says is never a path (law 7). */
static kl_str family_of(kl_arena *a, kl_str name) {
    kl_str path;
    kl_task *task;
    const char *text = kl_arena_copy(a, name).ptr;
    if (!name.len || memchr(name.ptr, '/', name.len) || *name.ptr == '.' ||
        kl_task_find(&path, a, text, kl_ignored()) ||
        kl_task_load(&task, a, path.ptr, kl_ignored()) || !kl_str_eq(task->name, name))
        return name;
    return kl_arena_copy(a, task->case_name.len ? task->case_name : name);
}

static void fill_families(kli_samples *s, kl_arena *a) {
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < i && !s->at[i].family.len; j++)
            if (kl_str_eq(s->at[j].task, s->at[i].task)) s->at[i].family = s->at[j].family;
        if (!s->at[i].family.len) s->at[i].family = family_of(a, s->at[i].task);
    }
}

kl_err kli_samples_load(kli_samples *out, kl_arena *a, kl_store *s, const kl_dataset_opts *o,
                        kl_error *e) {
    loading l = {.arena = a, .store = s, .out = out, .kept = KL_ARRAY(a, kept_blob, N_KEPT)};
    *out = (kli_samples){.runs = KL_ARRAY(a, kl_str, o->n_runs + 1)};
    kl_err err = KL_OK;
    for (int i = 0; !err && i < o->n_runs; i++) err = load_run_of(&l, o->runs[i], e);
    if (!err && !out->n) {
        kl_fail(e, KL_EINVAL, o->n_runs ? o->runs[0] : NULL, "there is no step in these runs");
        return kl_hint(e, "klineage run list shows the runs of the journal");
    }
    if (!err) fill_families(out, a);
    return err;
}
