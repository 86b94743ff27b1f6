/* gain.c - what an action is expected to do to a state: how likely it passes and gains, and how
 * much.
 *
 *   P(faster)            logistic:  intercept + weights * features + effect of the action
 *   log gain | faster    normal:    the same form; its variance is that of the weights, of the
 *                                   effect, and of what is left over, widened
 *
 * Weights and covariances are numbers of a text file, which bench/gain.py fits to the rows of a
 * library; here they are only evaluated.  A feature that is unknown counts as the mean of what was
 * seen, an action that was never seen has the effect of none, and the spread of all.  Not here: who
 * ranks by it (search), and any opinion on whether to apply.  SPDX-License-Identifier: Apache-2.0
 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const FEATURE_NAMES[] = {
#define KL_DEF_FEATURE(id, name, meaning) name,
#include <klineage/skill.def>
};
_Static_assert(KL_COUNT(FEATURE_NAMES) == KL_GAIN_FEATURES, "a name for each feature");

const char *kl_gain_feature_name(kl_gain_feature f) {
    KL_ASSERT(f < KL_GAIN_FEATURES);
    return FEATURE_NAMES[f];
}

/* ---- features ---------------------------------------------------------------------------- */

#define REGISTER_REUSE 8 /* products a load that a register tile of a CPU or GPU reaches */

static double number_of(const kl_facts *f, kl_fact_id id) {
    return f->at[id].known ? f->at[id].number : NAN;
}

static double log_of(double v) { return v > 0 ? log(v) : NAN; }

static double loop_number(const kl_loop_facts *l, kl_loop_fact_id id) {
    return l->at[id].known ? l->at[id].number : NAN;
}

/* The longest of the loops that are no other's home; whether one of them reads far. */
static void loop_features(double out[KL_GAIN_FEATURES], const kl_facts *f) {
    double turns = NAN, sums = NAN;
    bool far = false;
    for (int i = 0; i < f->n_loops; i++) {
        const kl_loop_facts *l = &f->loops[i];
        if (!(loop_number(l, KL_LOOP_INNERMOST) > 0)) continue;
        turns = fmax(turns, loop_number(l, KL_LOOP_TURNS)); /* fmax passes over NaN */
        sums = fmax(sums, loop_number(l, KL_LOOP_SUMS));
        far = far || loop_number(l, KL_LOOP_FAR) > 0 || loop_number(l, KL_LOOP_GATHERS) > 0;
    }
    out[KL_GAIN_TRIPS] = log_of(turns);
    out[KL_GAIN_CHAINS] = sums >= 0 ? log1p(sums) : NAN;
    out[KL_GAIN_FAR] = f->nests ? far : NAN;
}

static bool has_text(const kl_fact *f, const char *words) {
    return f->known && kli_one_of(f->text, words);
}

static double stage_of(const kl_facts *f) {
    const kl_fact *at = f->at;
    int n = 0;
    n += number_of(f, KL_FACT_STAGE_SHARED) > 0;
    n += has_text(&at[KL_FACT_STAGE_COPY], "async engine");
    n += has_text(&at[KL_FACT_STAGE_MMA], "warp warpgroup");
    n += has_text(&at[KL_FACT_STAGE_MMA], "warpgroup");
    n += number_of(f, KL_FACT_STAGE_PIPELINE) > 1;
    n += number_of(f, KL_FACT_STAGE_SWIZZLE) > 0;
    n += number_of(f, KL_FACT_STAGE_ROLES) > 0;
    for (int i = 0; i < f->n_buffers; i++)
        n += has_text(&f->buffers[i].at[KL_BUFFER_ROLE], "packed cached");
    return n;
}

void kl_gain_features(double out[KL_GAIN_FEATURES], const kl_facts *f) {
    const double reuse = number_of(f, KL_FACT_TILE_REUSE),
                 vector = number_of(f, KL_FACT_STAGE_VECTOR);
    loop_features(out, f);
    out[KL_GAIN_HEADROOM] = -log_of(number_of(f, KL_FACT_ROOF_SHARE));
    out[KL_GAIN_INTENSITY] = log_of(number_of(f, KL_FACT_OP_INTENSITY));
    out[KL_GAIN_REUSE] = reuse > 0 ? fmax(0, log(REGISTER_REUSE / reuse)) : NAN;
    out[KL_GAIN_SCALAR] = isnan(vector) ? NAN : !(vector > 0);
    out[KL_GAIN_STAGE] = stage_of(f);
}

double kl_gain_bound(const double features[KL_GAIN_FEATURES]) {
    const double headroom = features[KL_GAIN_HEADROOM];
    return isnan(headroom) ? INFINITY : fmax(0, headroom);
}

/* ---- the file ---------------------------------------------------------------------------- */

#define GAIN_FILE "gain.txt"
#define MAX_GAIN_BYTES (4u << 20) /* a hundred numbers an action */
#define WIDE KL_GAIN_FEATURES

typedef struct {
    double mean, scale, p, gain, covariance[WIDE];
    bool there;
} gain_weight;
typedef struct {
    kl_str action;
    int n;
    double p, gain, variance, covariance[WIDE]; /* of the gain's effect with the weights */
} gain_effect;

struct kl_gain_model {
    int rows;
    kl_str digest;
    kl_gain_figures figures;
    double p, gain; /* intercepts */
    double noise, effects, widen;
    gain_weight weights[WIDE];
    gain_effect *of;
    int n_effects;
};

/* One line of the file. */
typedef struct {
    kl_str rest;
    bool good;
} gain_line;

static kl_str take_gain_word(gain_line *l) {
    kl_str word = {0};
    l->good = kli_next_word(&word, &l->rest) && l->good;
    return word;
}

static double take_number(gain_line *l) {
    char *end = NULL, text[64] = "";
    const kl_str word = take_gain_word(l);
    if (word.len && word.len < sizeof text) memcpy(text, word.ptr, word.len);
    const double v = strtod(text, &end);
    l->good = l->good && end != text && !*end && isfinite(v);
    return l->good ? v : 0;
}

static void take_named(gain_line *l, const char *name, double *out) {
    l->good = kl_str_eq(take_gain_word(l), kl_str_of(name)) && l->good;
    *out = take_number(l);
}

static void take_covariance(gain_line *l, double out[WIDE]) {
    for (int i = 0; i < WIDE; i++) out[i] = take_number(l);
}

static int feature_named(kl_str name) {
    for (int i = 0; i < WIDE; i++)
        if (kl_str_eq(name, kl_str_of(FEATURE_NAMES[i]))) return i;
    return -1;
}

static void take_feature(kl_gain_model *m, gain_line *l) {
    const int at = feature_named(take_gain_word(l));
    gain_weight w = {.mean = take_number(l), .there = true};
    w.scale = take_number(l);
    w.p = take_number(l), w.gain = take_number(l);
    take_covariance(l, w.covariance);
    l->good = l->good && at >= 0 && w.scale > 0;
    if (l->good) m->weights[at] = w;
}

static void take_effect(kl_gain_model *m, kl_arena *a, gain_line *l) {
    gain_effect x = {.action = take_gain_word(l), .n = (int)take_number(l)};
    x.p = take_number(l), x.gain = take_number(l);
    x.variance = take_number(l);
    take_covariance(l, x.covariance);
    l->good = l->good && x.n >= 0 && x.variance >= 0;
    if (l->good) *KL_PUSH(a, m->of, m->n_effects) = x;
}

static void take_rows(kl_gain_model *m, gain_line *l) {
    double tasks;
    m->rows = (int)take_number(l);
    take_named(l, "tasks", &tasks);
    l->good = kl_str_eq(take_gain_word(l), KL_S("sha256")) && l->good;
    m->digest = take_gain_word(l);
}

static void take_figures(kl_gain_model *m, gain_line *l) {
    take_named(l, "brier", &m->figures.brier);
    take_named(l, "brier_base", &m->figures.brier_base);
    take_named(l, "slope", &m->figures.slope);
    take_named(l, "coverage", &m->figures.coverage);
}

static void take_spread(kl_gain_model *m, gain_line *l) {
    m->noise = take_number(l);
    take_named(l, "effects", &m->effects);
    take_named(l, "widen", &m->widen);
    l->good = l->good && m->noise > 0 && m->effects >= 0 && m->widen > 0;
}

static bool take_model_line(kl_gain_model *m, kl_arena *a, kl_str text) {
    gain_line l = {.rest = text, .good = true};
    const kl_str what = take_gain_word(&l);
    if (kl_str_eq(what, KL_S("rows")))
        take_rows(m, &l);
    else if (kl_str_eq(what, KL_S("held_out")))
        take_figures(m, &l);
    else if (kl_str_eq(what, KL_S("intercept")))
        m->p = take_number(&l), m->gain = take_number(&l);
    else if (kl_str_eq(what, KL_S("noise")))
        take_spread(m, &l);
    else if (kl_str_eq(what, KL_S("feature")))
        take_feature(m, &l);
    else if (kl_str_eq(what, KL_S("effect")))
        take_effect(m, a, &l);
    else
        return false;
    return l.good && !kl_str_trim(l.rest).len;
}

/* A model of other features than these says nothing here. */
static kl_err whole_model(const kl_gain_model *m, const char *path, kl_error *e) {
    for (int i = 0; i < WIDE; i++)
        if (!m->weights[i].there)
            return kl_fail(e, KL_EPARSE, path, "it has no feature %s", FEATURE_NAMES[i]);
    if (!(m->widen > 0)) return kl_fail(e, KL_EPARSE, path, "it has no noise");
    return KL_OK;
}

kl_err kl_gain_load(kl_gain_model **out, kl_arena *a, const char *dir, kl_error *e) {
    const kl_str path = kli_fs_join(a, dir, GAIN_FILE);
    kl_gain_model *m = KL_NEW(a, kl_gain_model);
    kl_str text, line;
    *out = NULL;
    if (!kli_fs_exists(path.ptr)) return KL_OK;
    kl_err err = kli_fs_read(&text, a, path.ptr, MAX_GAIN_BYTES, e);
    if (err) return err;
    if (!kli_next_line(&line, &text) || !kl_str_eq(line, KL_S("klineage gain model 1")))
        return kl_fail(e, KL_EPARSE, path.ptr,
                       "no gain model of version 1; bench/gain.py writes one");
    for (int n = 2; kli_next_line(&line, &text); n++)
        if (!take_model_line(m, a, line))
            return kl_fail(e, KL_EPARSE, kl_arena_printf(a, "%s:%d", path.ptr, n).ptr,
                           "no line of a gain model");
    err = whole_model(m, path.ptr, e);
    if (!err) *out = m;
    return err;
}

const kl_gain_figures *kl_gain_figures_of(const kl_gain_model *m) { return &m->figures; }
int kl_gain_rows(const kl_gain_model *m) { return m->rows; }

/* The rows are in the order of their places. */
bool kl_gain_rests_on(const kl_gain_model *m, const kl_probes *p) {
    kl_buf text = {0};
    for (size_t i = 0; i < p->n; i++) {
        const kl_probe *row = &p->at[i];
        if (row->outcome != KL_PROBE_UNDECIDED && row->action.len && kl_probes_state(p, row->state))
            kl_buf_printf(&text, "%.*s %s\n", KL_STR_ARG(row->place),
                          kl_probe_outcome_name(row->outcome));
    }
    const kl_hash h = kli_hash_of(kl_buf_str(&text));
    kl_buf_fini(&text);
    return kl_str_eq(m->digest, kl_str_of(h.hex));
}

/* ---- what is expected -------------------------------------------------------------------- */

static const gain_effect *effect_of(const kl_gain_model *m, kl_str action) {
    for (int i = 0; i < m->n_effects; i++)
        if (kl_str_eq(m->of[i].action, action)) return &m->of[i];
    return NULL;
}

/* Of the mean: of the weights, of the effect, and of both together. */
static double variance_of(const kl_gain_model *m, const gain_effect *own, const double z[WIDE]) {
    double v = own ? own->variance : m->effects;
    for (int i = 0; i < WIDE; i++) {
        if (own) v += 2 * z[i] * own->covariance[i];
        for (int k = 0; k < WIDE; k++) v += z[i] * z[k] * m->weights[i].covariance[k];
    }
    return fmax(0, v);
}

void kl_gain_expect(kl_expectation *out, const kl_gain_model *m, kl_str action,
                    const double features[KL_GAIN_FEATURES]) {
    const gain_effect *own = effect_of(m, action);
    double p = m->p + (own ? own->p : 0), gain = m->gain + (own ? own->gain : 0), z[WIDE];
    for (int i = 0; i < WIDE; i++) {
        const gain_weight *w = &m->weights[i];
        z[i] = isnan(features[i]) ? 0 : (features[i] - w->mean) / w->scale;
        p += w->p * z[i];
        gain += w->gain * z[i];
    }
    *out = (kl_expectation){.p = 1 / (1 + exp(-p)),
                            .log_gain = gain,
                            .deviation = m->widen * sqrt(m->noise + variance_of(m, own, z)),
                            .n = own ? own->n : 0};
    KL_ASSERT(out->p >= 0 && out->p <= 1 && out->deviation > 0);
}

/* E[min(X, bound)] of a normal X. */
static double mean_below(double mean, double deviation, double bound) {
    const double z = (bound - mean) / deviation;
    const double below = erfc(-z / sqrt(2)) / 2;
    const double density = exp(-z * z / 2) / sqrt(2 * acos(-1));
    return mean * below + bound * (1 - below) - deviation * density;
}

double kl_gain_value(const kl_expectation *x, double bound) {
    const double gain = isinf(bound) ? x->log_gain : mean_below(x->log_gain, x->deviation, bound);
    KL_ASSERT(!(gain > bound + 1e-9));
    return x->p * fmax(0, gain);
}

/* ---- matches ----------------------------------------------------------------------------- */

#define GATE_DOLLARS 0.003 /* of a verdict: three seconds of a rented GPU at $3.50 an hour */

/* Who fails once is asked once more. */
double kl_match_price(const kl_match *m) {
    const double repairs = m->predicted ? 1 - m->expected.p : 0;
    KL_ASSERT(m->cost_usd > 0 && repairs >= 0);
    return (m->cost_usd + GATE_DOLLARS) * (1 + repairs);
}

void kl_gain_predict(kl_match *m, int n, const kl_gain_model *model, const kl_facts *f) {
    double features[KL_GAIN_FEATURES];
    kl_gain_features(features, f);
    for (int i = 0; i < n; i++) {
        kl_gain_expect(&m[i].expected, model, m[i].card->action, features);
        m[i].predicted = true;
        m[i].bound = kl_gain_bound(features);
        m[i].score = kl_gain_value(&m[i].expected, m[i].bound) / kl_match_price(&m[i]);
    }
}
