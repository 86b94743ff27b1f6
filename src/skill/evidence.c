/* evidence.c - evidence.json of a card: every trial, good or bad, the counts, the patch, and the
 * SKILL.md they speak of. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/record.h"
#include <math.h>
#include <string.h>

/* ---- what a trial says ------------------------------------------------------------------- */

static bool timed(const kl_trial_record *r) { return r->gain > 0; }
static bool outcome_is(const kl_trial_record *r, kl_outcome o) {
    return kl_str_eq(r->outcome, kl_str_of(kl_outcome_name(o)));
}

kl_decision kl_trial_call(const kl_trial_record *r) {
    return timed(r) ? kl_decide(r->low, r->high, r->noise, outcome_is(r, KL_OUTCOME_PASS))
                    : KL_DECISION_UNDECIDED;
}

bool kl_trial_decided(const kl_trial_record *r) {
    return r->accepted ||
           !(outcome_is(r, KL_OUTCOME_UNSTABLE) || kl_str_eq(r->outcome, KL_S(KLI_NO_VOTE)));
}

/* What became of the attempts to apply the card: a sum over its trials for whoever reads the file,
 * never read back. */
static json_t *counts_json(const void *card) {
    const kl_card *c = card;
    int attempted = 0, correct = 0, improved = 0, undecided = 0;
    double sum = 0;
    int64_t spent = 0;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (!r->held_out) continue;
        attempted++;
        correct += r->result_hash.len != 0;
        improved += kl_trial_call(r) == KL_DECISION_FASTER;
        undecided += !kl_trial_decided(r);
        sum += timed(r) && kl_trial_decided(r) ? log(r->gain) : 0;
        spent += r->spent_microusd;
    }
    KL_ASSERT(correct <= attempted && improved <= attempted && undecided <= attempted);
    return json_pack("{si si si si so sI}", "attempted", attempted, "correct", correct, "improved",
                     improved, "undecided", undecided, "sum_log_gain", kli_json_real(sum),
                     "spent_microusd", (json_int_t)spent);
}

static bool read_nothing(void *card, kl_arena *a, const json_t *value) {
    (void)card, (void)a, (void)value;
    return true;
}

static const kli_codec COUNTS = {
    counts_json, read_nothing,
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}}"};

static json_t *before_json(const void *card) {
    return kl_traits_json(&((const kl_card *)card)->before);
}

static bool read_before(void *card, kl_arena *a, const json_t *value) {
    kl_traits_parse(&((kl_card *)card)->before, a, value);
    return true;
}

static const kli_codec BEFORE = {
    before_json, read_before,
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}}"};

static bool is_paired(const void *trial) { return ((const kl_trial_record *)trial)->pair > 0; }

#define KL_RECORD kl_trial_record
static const kl_record TRIAL_RECORD = {KL_RECORD_HEAD("trial", "One attempt to apply the card."),
                                       KL_ROWS{
#define KL_DEF_TRIAL KL_ROW
#include <klineage/skill.def>
                                           KL_ROWS_END}};
#undef KL_RECORD

#define MAX_CLAUSES 32   /* of one kind: a card with more is no card */
#define MAX_TRIALS 65536 /* of one card; an admission adds a handful */
static bool was_imported(const void *card) { return ((const kl_card *)card)->origin.len > 0; }
static bool has_controls(const void *card) { return ((const kl_card *)card)->n_controls > 0; }
static bool has_contract(const void *card) { return kl_card_has_contract(card); }

#define KL_RECORD kl_card
const kl_record KL_CARD_EVIDENCE = {
    KL_RECORD_HEAD("card-evidence", "What is known of a card: evidence.json beside its SKILL.md."),
    .document = true,
    KL_ROWS{
#define KL_DEF_EVIDENCE KL_ROW
#include <klineage/skill.def>
        KL_ROWS_END}};
#undef KL_RECORD

json_t *kli_evidence_json(const kl_card *c) { return kli_record_json(&KL_CARD_EVIDENCE, c); }

/* A record that names no call was written without a floor too. */
static void name_call(kl_trial_record *r) {
    if (!r->call.len && timed(r)) r->call = kl_str_of(kl_decision_name(kl_trial_call(r)));
}

kl_err kli_evidence_parse(kl_card *c, kl_arena *a, kl_str json, kl_str file, kl_error *e) {
    json_t *o = NULL;
    kl_card *read = KL_NEW(a, kl_card);
    kl_err err = kli_json_parse(&o, json, file, e);
    if (!err) err = kli_record_read(read, &KL_CARD_EVIDENCE, a, o, file, e);
    json_decref(o);
    if (err) return err;
    for (int i = 0; i < read->n_trials; i++) name_call(&read->trials[i]);
    memcpy(c->body_hash, read->body_hash, sizeof c->body_hash);
    c->lineages = read->lineages;
    c->patch = read->patch;
    c->before = read->before;
    c->needs = read->needs, c->n_needs = read->n_needs;
    c->brings = read->brings, c->n_brings = read->n_brings;
    c->excludes = read->excludes, c->n_excludes = read->n_excludes;
    c->trials = read->trials;
    c->n_trials = read->n_trials;
    c->origin = read->origin;
    c->flags = read->flags;
    c->controls = read->controls;
    c->n_controls = read->n_controls;
    return KL_OK;
}

void kl_card_keep_trials(kl_card *c, kl_arena *a, const kl_card *before) {
    for (int i = 0; i < before->n_trials; i++)
        if (before->trials[i].held_out) kli_card_add_trial(c, a, &before->trials[i]);
    c->controls = before->controls;
    c->n_controls = before->n_controls;
}

void kli_card_add_trial(kl_card *c, kl_arena *a, const kl_trial_record *r) {
    kl_trial_record *longer = KL_ARRAY(a, kl_trial_record, c->n_trials + 1);
    if (c->n_trials) memcpy(longer, c->trials, (size_t)c->n_trials * sizeof *longer);
    longer[c->n_trials++] = *r;
    c->trials = longer;
}
