/* judge.c - accepted trials of cards, decided again by the gate's rule: what a card rests on has to
 * clear the noise it was measured in.
 *
 * The floor is the trial's own, else that of the verdict it names, which may lie beside the
 * library's lineages; without one only the interval speaks, and that is said.  Nothing is measured
 * here: klineage admit does that.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include <string.h>

static kl_err judge_add_line(kl_noise_records *f, kl_arena *a, kl_str line, const char *path,
                             kl_error *e) {
    json_t *o = NULL;
    kl_err err = kli_json_parse(&o, line, kl_str_of(path), e);
    if (err) return err;
    const json_t *v = json_object_get(o, "verdict");
    const json_t *first = json_array_get(json_object_get(json_object_get(v, "time"), "vs"), 0);
    const double noise = kli_json_real_or(first, "floor", 0);
    const kl_str receipt = kli_json_text_or(v, "receipt", KL_S(""));
    if (noise > 0 && receipt.len && f->n < KL_MAX_NOISE_RECORDS) {
        f->receipts[f->n] = kl_arena_copy(a, receipt);
        f->noises[f->n++] = noise;
    }
    json_decref(o);
    return KL_OK;
}

static kl_err add_file(kl_noise_records *f, kl_arena *a, const char *path, kl_error *e) {
    kl_str text;
    kl_err err = kli_fs_read(&text, a, path, KL_MAX_JSON_BYTES, e);
    for (kl_str line; !err && kli_next_line(&line, &text);)
        if (kl_str_trim(line).len) err = judge_add_line(f, a, line, path, e);
    return err;
}

kl_err kl_noise_records_load(kl_noise_records **out, kl_arena *a, const char *library,
                             kl_error *e) {
    kl_str *names, dir = kli_fs_join(a, library, "lineages");
    size_t n = 0;
    kl_noise_records *f = *out = KL_NEW(a, kl_noise_records);
    *f = (kl_noise_records){.receipts = KL_ARRAY(a, kl_str, KL_MAX_NOISE_RECORDS),
                            .noises = KL_ARRAY(a, double, KL_MAX_NOISE_RECORDS)};
    kl_err err = kli_fs_list(&names, &n, a, dir.ptr, e);
    for (size_t i = 0; !err && i < n; i++)
        if (kl_str_ends(names[i], KL_S(".evidence.jsonl")))
            err = add_file(f, a, kli_fs_join(a, dir.ptr, names[i].ptr).ptr, e);
    return err;
}

static double floor_of(const kl_noise_records *f, const kl_trial_record *r) {
    for (int i = 0; !(r->noise > 0) && r->receipt.len && i < f->n; i++)
        if (kl_str_eq(f->receipts[i], r->receipt)) return f->noises[i];
    return r->noise;
}

void kl_card_judge(kl_card_judgement *out, kl_arena *a, const kl_card *c,
                   const kl_noise_records *f) {
    *out = (kl_card_judgement){.card = c, .trials = KL_ARRAY(a, kl_trial_record, c->n_trials + 1)};
    for (int i = 0; i < c->n_trials; i++) {
        kl_trial_record r = c->trials[i];
        if (!r.accepted || !(r.gain > 0)) continue;
        r.noise = floor_of(f, &r);
        const kl_decision call = kl_trial_call(&r);
        r.call = kl_str_of(kl_decision_name(call));
        out->stand += call == KL_DECISION_FASTER;
        out->unknown += !(r.noise > 0);
        out->held_out += r.held_out;
        out->held_out_stand += r.held_out && call == KL_DECISION_FASTER;
        out->trials[out->n++] = r;
    }
    KL_ASSERT(out->stand <= out->n && out->held_out_stand <= out->held_out);
    const bool alive = c->status != KL_CARD_REJECTED && c->status != KL_CARD_RETIRED;
    out->falls = alive && out->n > 0 && out->stand == 0;
}

/* What was judged goes into the record with the floor that it was judged by. */
static void keep_floors(kl_card *c, kl_arena *a, const kl_card_judgement *j) {
    kl_trial_record *trials = KL_ARRAY(a, kl_trial_record, c->n_trials + 1);
    memcpy(trials, c->trials, (size_t)c->n_trials * sizeof *trials);
    for (int i = 0, k = 0; i < c->n_trials && k < j->n; i++)
        if (trials[i].accepted && trials[i].gain > 0) trials[i] = j->trials[k++];
    c->trials = trials;
}

kl_err kl_card_retire(const char *dir, kl_arena *a, const kl_card_judgement *j, kl_error *e) {
    kl_card c = *j->card;
    KL_ASSERT(j->falls);
    keep_floors(&c, a, j);
    c.status = KL_CARD_RETIRED;
    c.verification = kl_arena_printf(a,
                                     "Retired: none of its %d accepted trials is faster by the "
                                     "gate's rule, beside the noise it was measured in.",
                                     j->n);
    return kl_library_put(dir, &c, e);
}
