/* uplift.c - what a card adds: differences between trials with it and the same without it, or with
 * a placebo in its place.
 *
 * A pair is a start at which all of them were tried; one that could not be measured is none.  The
 * intervals hold at every look, so trials may stop when they say enough.  Not here: who tries
 * (admit.c).  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/sequential.h"
#include <math.h>

#define UPLIFT_ALPHA 0.05
#define AS_GOOD 0.02 /* of log gain: what may be given up for less money */

static const char *const control_names[KL_CONTROLS] = {"none", "placebo"};

const char *kl_control_name(kl_control over) {
    KL_ASSERT(over < KL_CONTROLS);
    return control_names[over];
}

/* What did not prove to be faster gained nothing. */
static double uplift_log_gain(const kl_trial_record *r) {
    return kl_trial_call(r) == KL_DECISION_FASTER ? log(r->gain) : 0;
}

static const kl_trial_record *control_of(const kl_card *c, const kl_trial_record *r,
                                         kl_control over) {
    for (int i = 0; i < c->n_controls; i++) {
        const kl_trial_record *x = &c->controls[i];
        if (x->pair == r->pair && kl_str_eq(x->kind, kl_str_of(control_names[over])) &&
            kl_trial_decided(x))
            return x;
    }
    return NULL;
}

static bool seen_before(const kl_card *c, int i, kl_control over) {
    const kl_trial_record *r = &c->trials[i];
    for (int k = 0; k < i; k++)
        if (c->trials[k].pair && kl_str_eq(c->trials[k].start_hash, r->start_hash) &&
            kl_trial_decided(&c->trials[k]) && control_of(c, &c->trials[k], over))
            return true;
    return false;
}

static kl_difference difference_of(const kli_sequence *s) {
    const kli_bounds b = kli_sequence_bounds(s, UPLIFT_ALPHA);
    return (kl_difference){s->mean, b.low, b.high};
}

typedef struct {
    kli_sequence success, gain, dollars;
    double best_gain, best_dollars; /* of any pair */
} sums;

static void add_pair(sums *s, double success, double gain, double dollars) {
    const bool first = s->gain.n == 0;
    kli_sequence_add(&s->success, success);
    kli_sequence_add(&s->gain, gain);
    kli_sequence_add(&s->dollars, dollars);
    s->best_gain = first ? gain : fmax(s->best_gain, gain);
    s->best_dollars = first ? dollars : fmin(s->best_dollars, dollars);
}

static void take_differences(kl_uplift *u, const sums *s) {
    u->success = difference_of(&s->success);
    u->log_gain = difference_of(&s->gain);
    u->dollars = difference_of(&s->dollars);
}

static sums uplift_sums(kl_uplift *out, const kl_card *c, kl_control over) {
    sums s = {0};
    *out = (kl_uplift){0};
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        const kl_trial_record *x = r->pair && kl_trial_decided(r) ? control_of(c, r, over) : NULL;
        if (!x) continue;
        const bool again = seen_before(c, i, over);
        out->pairs++;
        out->starts += !again;
        out->foreign += !again && r->foreign;
        add_pair(&s, (double)r->accepted - x->accepted, uplift_log_gain(r) - uplift_log_gain(x),
                 (double)(r->spent_microusd - x->spent_microusd) / 1e6);
    }
    KL_ASSERT(out->foreign <= out->starts && out->starts <= out->pairs);
    return s;
}

void kl_card_uplift(kl_uplift *out, const kl_card *c, kl_control over) {
    const sums s = uplift_sums(out, c, over);
    take_differences(out, &s);
}

bool kl_card_uplift_in_reach(const kl_card *c, kl_control over, int more) {
    kl_uplift u;
    sums s = uplift_sums(&u, c, over);
    for (int i = 0; u.pairs && i < more; i++) add_pair(&s, 1, s.best_gain, s.best_dollars);
    take_differences(&u, &s);
    return !u.pairs || kl_uplift_pays(&u);
}

bool kl_uplift_pays(const kl_uplift *u) {
    return u->log_gain.low > 0 || (u->log_gain.low > -AS_GOOD && u->dollars.high < 0);
}

bool kl_uplift_futile(const kl_uplift *u) {
    return u->log_gain.high < kl_decide_margin(0) && u->dollars.low >= 0;
}

kl_str kl_uplift_text(kl_arena *a, const kl_uplift *u, kl_control over) {
    return kl_arena_printf(
        a,
        "over %s, %d pairs on %d starts (%d of other work): log gain %+.3f [%.3g, %.3g], success "
        "%+.2f [%.2g, %.2g], dollars %+.3f [%.3g, %.3g]",
        over == KL_OVER_NONE ? "no card" : "a placebo", u->pairs, u->starts, u->foreign,
        u->log_gain.mean, u->log_gain.low, u->log_gain.high, u->success.mean, u->success.low,
        u->success.high, u->dollars.mean, u->dollars.low, u->dollars.high);
}
