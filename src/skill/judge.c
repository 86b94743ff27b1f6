/* judge.c - accepted trials of cards, decided again by the gate's rule: what a card rests on has to clear the noise it was measured in.
 *
 * The floor is the trial's own, else that of the verdict it names, which may lie beside the library's lineages; without one only the interval
 * speaks, and that is said.  Nothing is measured here: klineage admit does that.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include <string.h>

static kl_err add_line(kl_floors *f, kl_arena *a, kl_str line, const char *path, kl_error *e) {
    json_t *o = NULL;
    kl_err err = kl_json_parse(&o, line, kl_str_of(path), e);
    if (err) return err;
    const json_t *v = json_object_get(o, "verdict");
    const json_t *first = json_array_get(json_object_get(json_object_get(v, "time"), "vs"), 0);
    const double floor = kl_json_real_or(first, "floor", 0);
    const kl_str receipt = kl_json_text_or(v, "receipt", KL_S(""));
    if (floor > 0 && receipt.len && f->n < KL_MAX_FLOORS) {
        f->receipts[f->n] = kl_arena_copy(a, receipt);
        f->floors[f->n++] = floor;
    }
    json_decref(o);
    return KL_OK;
}

static kl_err add_file(kl_floors *f, kl_arena *a, const char *path, kl_error *e) {
    kl_str text;
    kl_err err = kl_fs_read(&text, a, path, KL_MAX_JSON_BYTES, e);
    while (!err && text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const kl_str line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        text = end ? (kl_str){end + 1, text.len - line.len - 1} : (kl_str){0};
        if (kl_str_trim(line).len) err = add_line(f, a, line, path, e);
    }
    return err;
}

kl_err kl_floors_load(kl_floors *out, kl_arena *a, const char *library, kl_error *e) {
    kl_str *names, dir = kl_fs_join(a, library, "lineages");
    size_t n = 0;
    *out = (kl_floors){.receipts = KL_ARRAY(a, kl_str, KL_MAX_FLOORS), .floors = KL_ARRAY(a, double, KL_MAX_FLOORS)};
    kl_err err = kl_fs_list(&names, &n, a, dir.ptr, e);
    for (size_t i = 0; !err && i < n; i++)
        if (kl_str_ends(names[i], KL_S(".evidence.jsonl")))
            err = add_file(out, a, kl_fs_join(a, dir.ptr, names[i].ptr).ptr, e);
    return err;
}

static double floor_of(const kl_floors *f, const kl_trial_record *r) {
    for (int i = 0; !(r->floor > 0) && r->receipt.len && i < f->n; i++)
        if (kl_str_eq(f->receipts[i], r->receipt)) return f->floors[i];
    return r->floor;
}

void kl_card_judge(kl_card_judgement *out, kl_arena *a, const kl_card *c, const kl_floors *f) {
    *out = (kl_card_judgement){.card = c, .trials = KL_ARRAY(a, kl_trial_record, c->n_trials + 1)};
    for (int i = 0; i < c->n_trials; i++) {
        kl_trial_record r = c->trials[i];
        if (!r.accepted || !(r.gain > 0)) continue;
        r.floor = floor_of(f, &r);
        const kl_call call = kl_trial_call(&r);
        r.call = kl_str_of(kl_call_name(call));
        out->stand += call == KL_FASTER;
        out->unknown += !(r.floor > 0);
        out->held_out += r.held_out;
        out->held_out_stand += r.held_out && call == KL_FASTER;
        out->trials[out->n++] = r;
    }
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
    c.verification = kl_arena_printf(
        a, "Retired: none of its %d accepted trials is faster by the gate's rule, beside the noise it was measured in.",
        j->n);
    return kl_library_put(dir, &c, e);
}
