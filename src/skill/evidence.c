/* evidence.c - evidence.json of a card: every trial, good or bad, the counts, the patch, and the SKILL.md they speak of.
 *
 * Fields of a trial are listed once, in a table, for both directions.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/json.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum { TEXT, REAL, BOOL, INT, INT64 } field_type;
typedef struct {
    const char *name;
    field_type type;
    size_t at;
} field;

#define FIELD(type, name)                                                                                              \
    { #name, type, offsetof(kl_trial_record, name) }

static const field trial_fields[] = {
    FIELD(TEXT, kind),
    FIELD(TEXT, task),
    FIELD(TEXT, workload),
    FIELD(TEXT, surface),
    FIELD(TEXT, platform),
    FIELD(TEXT, model),
    FIELD(TEXT, start_hash),
    FIELD(TEXT, start_name),
    FIELD(TEXT, result_hash),
    FIELD(TEXT, verdict_key),
    FIELD(TEXT, receipt),
    FIELD(BOOL, held_out),
    FIELD(BOOL, accepted),
    FIELD(TEXT, outcome),
    FIELD(TEXT, why),
    FIELD(REAL, gain),
    FIELD(REAL, low),
    FIELD(REAL, high),
    FIELD(REAL, floor),
    FIELD(TEXT, call),
    FIELD(REAL, expected),
    FIELD(INT, tries),
    FIELD(INT64, spent_microusd),
    FIELD(BOOL, estimated),
    FIELD(TEXT, created),
    FIELD(TEXT, run),
};

static json_t *field_json(const void *base, const field *f) {
    const char *at = (const char *)base + f->at;
    switch (f->type) {
    case TEXT:
        return kl_json_str(*(const kl_str *)(const void *)at);
    case REAL:
        return kl_json_real(*(const double *)(const void *)at);
    case BOOL:
        return json_boolean(*(const bool *)at);
    case INT:
        return json_integer(*(const int *)(const void *)at);
    case INT64:
        return json_integer(*(const int64_t *)(const void *)at);
    }
    return NULL;
}

static void field_read(void *base, const field *f, kl_arena *a, const json_t *o) {
    char *at = (char *)base + f->at;
    switch (f->type) {
    case TEXT:
        *(kl_str *)(void *)at = kl_arena_copy(a, kl_json_text_or(o, f->name, KL_S("")));
        break;
    case REAL:
        *(double *)(void *)at = kl_json_real_or(o, f->name, 0);
        break;
    case BOOL:
        *(bool *)at = kl_json_bool_or(o, f->name, false);
        break;
    case INT:
        *(int *)(void *)at = (int)kl_json_int_or(o, f->name, 0);
        break;
    case INT64:
        *(int64_t *)(void *)at = kl_json_int_or(o, f->name, 0);
        break;
    }
}

static json_t *trial_json(const kl_trial_record *r) {
    json_t *o = json_object();
    for (size_t i = 0; i < KL_COUNT(trial_fields); i++)
        json_object_set_new(o, trial_fields[i].name, field_json(r, &trial_fields[i]));
    return o;
}

/* ---- what a trial says ---------------------------------------------------------------------------------------------------- */

static bool timed(const kl_trial_record *r) { return r->gain > 0; }
static bool outcome_is(const kl_trial_record *r, kl_outcome o) {
    return kl_str_eq(r->outcome, kl_str_of(kl_outcome_name(o)));
}

kl_call kl_trial_call(const kl_trial_record *r) {
    return timed(r) ? kl_decide(r->low, r->high, r->floor, outcome_is(r, KL_PASS)) : KL_UNDECIDED;
}

bool kl_trial_decided(const kl_trial_record *r) {
    return r->accepted || !(outcome_is(r, KL_UNSTABLE) || kl_str_eq(r->outcome, KL_S(KLI_NO_VOTE)));
}


/* What became of the attempts to apply the card: a sum over its trials for whoever reads the file, never read back. */
static json_t *counts_json(const kl_card *c) {
    int attempted = 0, correct = 0, improved = 0, undecided = 0;
    double sum = 0;
    int64_t spent = 0;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (!r->held_out) continue;
        attempted++;
        correct += r->result_hash.len != 0;
        improved += kl_trial_call(r) == KL_FASTER;
        undecided += !kl_trial_decided(r);
        sum += timed(r) && kl_trial_decided(r) ? log(r->gain) : 0;
        spent += r->spent_microusd;
    }
    return json_pack("{si si si si so sI}", "attempted", attempted, "correct", correct, "improved", improved,
                     "undecided", undecided, "sum_log_gain", kl_json_real(sum), "spent_microusd", (json_int_t)spent);
}

json_t *kli_evidence_json(const kl_card *c) {
    json_t *trials = json_array(), *o = json_object();
    for (int i = 0; i < c->n_trials; i++) json_array_append_new(trials, trial_json(&c->trials[i]));
    json_object_set_new(o, "schema", json_string("klineage/card-evidence"));
    json_object_set_new(o, "version", json_integer(1));
    json_object_set_new(o, "card", kl_json_str(c->name));
    json_object_set_new(o, "card_sha256", json_string(c->body_hash));
    json_object_set_new(o, "lineages", kl_json_str(c->lineages));
    json_object_set_new(o, "counts", counts_json(c));
    json_object_set_new(o, "patch", kl_json_str(c->patch));
    json_object_set_new(o, "before", kl_traits_json(&c->before));
    json_object_set_new(o, "trials", trials);
    return o;
}

/* A record that names no call was written without a floor too. */
static void read_trial(kl_trial_record *r, kl_arena *a, const json_t *o) {
    for (size_t j = 0; j < KL_COUNT(trial_fields); j++) field_read(r, &trial_fields[j], a, o);
    if (!r->call.len && timed(r)) r->call = kl_str_of(kl_call_name(kl_trial_call(r)));
}

static void fill(kl_card *c, kl_arena *a, const json_t *o) {
    const json_t *trials = json_object_get(o, "trials"), *one;
    size_t i;
    kl_str hash = kl_json_text_or(o, "card_sha256", KL_S(""));
    if (hash.len == 64) memcpy(c->body_hash, hash.ptr, 64);
    c->lineages = kl_arena_copy(a, kl_json_text_or(o, "lineages", KL_S("")));
    c->patch = kl_arena_copy(a, kl_json_text_or(o, "patch", KL_S("")));
    kl_traits_parse(&c->before, a, json_object_get(o, "before"));
    c->trials = KL_ARRAY(a, kl_trial_record, json_array_size(trials) + 1);
    json_array_foreach(trials, i, one) read_trial(&c->trials[i], a, one);
    c->n_trials = (int)json_array_size(trials);
}

kl_err kli_evidence_parse(kl_card *c, kl_arena *a, kl_str json, kl_str file, kl_error *e) {
    json_t *o = NULL;
    kl_str schema;
    kl_err err = kl_json_parse(&o, json, file, e);
    if (!err) err = kl_json_text(&schema, o, "schema", file, e);
    if (!err && !kl_str_eq(schema, KL_S("klineage/card-evidence")))
        err = kl_fail(e, KL_EPARSE, file.ptr, "this is %.*s, not the evidence of a card", KL_STR_ARG(schema));
    if (!err && kl_json_int_or(o, "version", 0) != 1)
        err = kl_fail(e, KL_EPARSE, file.ptr, "evidence of another version than 1; a newer klineage wrote it");
    if (!err) fill(c, a, o);
    json_decref(o);
    return err;
}

void kl_card_keep_trials(kl_card *c, kl_arena *a, const kl_card *before) {
    for (int i = 0; i < before->n_trials; i++)
        if (before->trials[i].held_out) kli_card_add_trial(c, a, &before->trials[i]);
}

void kli_card_add_trial(kl_card *c, kl_arena *a, const kl_trial_record *r) {
    kl_trial_record *longer = KL_ARRAY(a, kl_trial_record, c->n_trials + 1);
    if (c->n_trials) memcpy(longer, c->trials, (size_t)c->n_trials * sizeof *longer);
    longer[c->n_trials++] = *r;
    c->trials = longer;
}
