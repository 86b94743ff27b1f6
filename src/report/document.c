/* document.c - results as JSON: docs/formats/results.md says what every key means.  SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/json.h"
#include <string.h>

static void put(json_t *o, const char *key, json_t *value) { json_object_set_new(o, key, value); }
static void put_text(json_t *o, const char *key, kl_str s) { put(o, key, kl_json_str(s)); }
static void put_int(json_t *o, const char *key, int64_t n) { put(o, key, json_integer(n)); }
static void put_real(json_t *o, const char *key, double v) { put(o, key, kl_json_real(v)); }
/* Below 0: cannot be said. */
static void put_known(json_t *o, const char *key, double v) { put(o, key, v < 0 ? json_null() : kl_json_real(v)); }

static json_t *text_or_null(kl_str s) { return s.len ? kl_json_str(s) : json_null(); }
static double usd(int64_t microusd) { return (double)microusd / 1e6; }

/* ---- parts ------------------------------------------------------------------------------------------------------------------ */

static json_t *span_json(kli_span s) {
    json_t *o = json_object();
    if (!(s.ratio > 0)) return json_decref(o), json_null();
    put_real(o, "ratio", s.ratio);
    put_real(o, "low", s.low);
    put_real(o, "high", s.high);
    return o;
}

/* A ratio with what it was read from. */
static json_t *row_json(const kli_row *r) {
    if (!r) return json_null();
    json_t *o = json_object();
    put_int(o, "step", r->n);
    put_text(o, "kernel", r->kernel);
    put_text(o, "verdict", r->verdict);
    put_real(o, "ratio", r->ratio);
    put_real(o, "low", r->low);
    put_real(o, "high", r->high);
    put_int(o, "median_ns", r->median_ns);
    return o;
}

static json_t *spread_json(kli_spread s) {
    json_t *o = json_object();
    if (!(s.median > 0)) return json_decref(o), json_null();
    put_real(o, "median", s.median);
    put_real(o, "min", s.low);
    put_real(o, "max", s.high);
    return o;
}

static json_t *bill_json(const kli_bill *b) {
    json_t *o = json_object();
    int64_t told = b->input + b->cache_read + b->cache_write_5m + b->cache_write_1h;
    put_int(o, "calls", b->calls);
    put_int(o, "microusd", b->microusd);
    put(o, "estimated", json_boolean(b->estimated));
    put_int(o, "input", b->input);
    put_int(o, "cache_read", b->cache_read);
    put_int(o, "cache_write_5m", b->cache_write_5m);
    put_int(o, "cache_write_1h", b->cache_write_1h);
    put_int(o, "output", b->output);
    put_known(o, "cache_hit_rate", told ? (double)b->cache_read / (double)told : -1);
    return o;
}

static json_t *phases_json(const kli_money *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->n_phases; i++) {
        json_t *o = bill_json(&m->phases[i]);
        put_text(o, "phase", m->phases[i].phase);
        json_array_append_new(list, o);
    }
    return list;
}

static void put_money(json_t *o, const kli_money *m) {
    put_int(o, "spent_microusd", m->sum.microusd);
    put_int(o, "unanswered_microusd", m->unanswered_microusd);
    put(o, "estimated", json_boolean(m->sum.estimated));
    put(o, "tokens", bill_json(&m->sum));
    put(o, "phases", phases_json(m));
}

static json_t *fates_json(const int *fates) {
    json_t *o = json_object();
    for (int i = 0; i < KLI_FATES; i++)
        if (i != KLI_OTHER || fates[i]) put_int(o, kli_fate_name((kli_fate)i), fates[i]);
    return o;
}

/* ---- a track ------------------------------------------------------------------------------------------------------------------ */

static json_t *path_json(const kli_result *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->n_path; i++) {
        json_t *o = row_json(t->path[i]);
        put_text(o, "action", t->path[i]->action);
        json_array_append_new(list, o);
    }
    return list;
}

/* A row names a card and an action in the same field; only the library knows which it is. */
static json_t *cards_json(const kli_facts *f, const kli_result *t) {
    if (!f->has_library) return json_null();
    json_t *list = json_array();
    for (int i = 0; i < t->n_path; i++)
        if (kl_library_card(&f->library, t->path[i]->action))
            json_array_append_new(list, kl_json_str(t->path[i]->action));
    return list;
}

static json_t *curve_json(const kli_result *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->n_curve; i++)
        json_array_append_new(list, json_pack("[f o I]", usd(t->curve[i].microusd), kl_json_real(t->curve[i].ratio),
                                              (json_int_t)t->curve[i].step));
    return list;
}

static json_t *reached_json(const kli_row *r) {
    return r ? json_pack("{sI sI so}", "step", (json_int_t)r->n, "microusd", (json_int_t)r->spent_microusd, "verdict",
                         kl_json_str(r->verdict))
             : json_null();
}

static json_t *track_json(const kli_results *r, const kli_result *t) {
    json_t *o = json_object();
    put_text(o, "run", t->rows->run);
    put_text(o, "track", t->rows->name);
    put_text(o, "workload", t->rows->workload);
    put_text(o, "policy", t->rows->policy);
    put(o, "trial", t->trial ? json_integer(t->trial) : json_null());
    put_int(o, "target", t->target);
    put_int(o, "contender", t->contender);
    put(o, "baseline", text_or_null(t->baseline));
    put(o, "start", row_json(t->start));
    put(o, "reference", row_json(t->reference));
    put(o, "best", row_json(t->best));
    put(o, "shown", row_json(t->shown));
    put(o, "end", row_json(t->end && t->end->ratio > 0 ? t->end : NULL));
    put(o, "gain", span_json(t->gain));
    put(o, "gain_timed", json_boolean(t->timed));
    put_text(o, "call", kl_str_of(kl_call_name(t->call)));
    put(o, "disagrees", json_boolean(t->disagrees));
    put(o, "never_asked", json_boolean(t->never_asked));
    put(o, "stopped", t->end ? kl_json_str(t->end->why) : json_null());
    put(o, "solved", json_boolean(t->solved));
    put(o, "recovered", span_json(t->recovered));
    put(o, "reached", reached_json(t->reached));
    put_int(o, "proposals", t->proposals);
    put(o, "outcomes", fates_json(t->fates));
    put_int(o, "cheating", t->fates[KLI_CHEAT]);
    put_int(o, "no_kernel", t->fates[KLI_REFUSED] + t->fates[KLI_NOTHING]);
    put(o, "path", path_json(t));
    put(o, "cards", cards_json(r->facts, t));
    put_money(o, &t->money);
    put(o, "curve", curve_json(t));
    return o;
}

/* ---- groups and contenders ------------------------------------------------------------------------------------------------------- */

static json_t *band_json(const kli_group *g) {
    json_t *list = json_array();
    for (int i = 0; i < g->n_band; i++)
        json_array_append_new(list,
                              json_pack("[f o o o]", usd(g->band[i].microusd), kl_json_real(g->band[i].best.median),
                                        kl_json_real(g->band[i].best.low), kl_json_real(g->band[i].best.high)));
    return list;
}

static json_t *group_json(const kli_group *g) {
    json_t *o = json_object(), *tracks = json_array();
    for (int i = 0; i < g->n; i++) json_array_append_new(tracks, json_integer(g->tracks[i]));
    put_int(o, "target", g->target);
    put_int(o, "contender", g->contender);
    put(o, "tracks", tracks);
    put(o, "middle", g->middle < 0 ? json_null() : json_integer(g->middle));
    put_int(o, "trials", g->n);
    put_int(o, "solved", g->solved);
    put_int(o, "undecided", g->undecided);
    put_int(o, "never_asked", g->never_asked);
    put(o, "best", spread_json(g->best));
    put(o, "gain", spread_json(g->gain));
    put_int(o, "referenced", g->referenced);
    put_int(o, "recovered", g->recovered);
    put(o, "recovery", spread_json(g->recovery));
    put(o, "band", band_json(g));
    return o;
}

static json_t *mean_json(double share, double geomean) {
    return json_pack("{so so so}", "share", kl_json_real(share), "geomean",
                     geomean > 0 ? kl_json_real(geomean) : json_null(), "fail_as_zero", kl_json_real(share * geomean));
}

static json_t *contender_json(const kli_contender *c, const kli_overall *v) {
    json_t *o = json_object();
    put_text(o, "label", c->label);
    put_text(o, "policy", c->policy);
    put_text(o, "model", c->model);
    put(o, "run", text_or_null(c->run));
    put_int(o, "targets", v->targets);
    put_int(o, "trials", v->trials);
    put_int(o, "solved", v->solved);
    put_int(o, "undecided", v->undecided);
    put_int(o, "never_asked", v->never_asked);
    put(o, "gain", mean_json(v->share, v->gain_geomean));
    put(o, "best", v->baselined ? mean_json(v->baselined_share, v->geomean) : json_null());
    put_int(o, "with_baseline", v->baselined);
    put_known(o, "fast_1", v->fast_1);
    put_known(o, "fast_2", v->fast_2);
    put_known(o, "amsr", v->amsr);
    put_known(o, "correct", v->correct);
    put_int(o, "referenced", v->referenced);
    put_int(o, "recovered", v->recovered);
    put_int(o, "proposals", v->proposals);
    put_int(o, "gated", v->gated);
    put(o, "outcomes", fates_json(v->fates));
    put_money(o, &v->money);
    return o;
}

static json_t *target_json(const kli_target *t) {
    return json_pack("{so so so so so}", "label", kl_json_str(t->label), "workload", kl_json_str(t->workload), "shape",
                     text_or_null(t->shape), "surface", text_or_null(t->surface), "platform",
                     text_or_null(t->platform));
}

static json_t *run_json(const kl_store_run *r) {
    json_t *o = json_object(), *said = json_loads(r->json.ptr, 0, NULL);
    put_text(o, "id", r->id);
    put_text(o, "command", r->command);
    put(o, "model", text_or_null(kl_json_text_or(said, "model", KL_S(""))));
    put_text(o, "created", r->created);
    json_decref(said);
    return o;
}

/* ---- the document ------------------------------------------------------------------------------------------------------------------ */

static json_t *list_in(json_t *o, const char *key) {
    json_t *list = json_array();
    put(o, key, list);
    return list;
}

json_t *kli_results_json(const kli_results *r) {
    json_t *o = json_object(), *list;
    put(o, "schema", json_string("klineage/results"));
    put_int(o, "version", 1);
    put_real(o, "solved_above", 1 + kl_decide_margin(0));
    put_real(o, "recovered_at", KLI_RECOVERED);
    list = list_in(o, "runs");
    for (int i = 0; i < r->facts->n_runs; i++) json_array_append_new(list, run_json(&r->facts->runs[i]));
    list = list_in(o, "targets");
    for (int i = 0; i < r->n_targets; i++) json_array_append_new(list, target_json(&r->targets[i]));
    list = list_in(o, "contenders");
    for (int i = 0; i < r->n_contenders; i++)
        json_array_append_new(list, contender_json(&r->contenders[i], &r->overall[i]));
    list = list_in(o, "groups");
    for (int i = 0; i < r->n_groups; i++) json_array_append_new(list, group_json(&r->groups[i]));
    list = list_in(o, "tracks");
    for (int i = 0; i < r->n_tracks; i++) json_array_append_new(list, track_json(r, &r->tracks[i]));
    return o;
}

kl_err kl_report_results(json_t **out, kl_store *s, const kl_report_opts *o, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kli_facts *f = KL_NEW(a, kli_facts);
    kli_results r;
    kl_err err = kli_facts_load(f, a, s, o, e);
    if (!err) kli_results_of(&r, a, f);
    if (!err) *out = kli_results_json(&r);
    kl_arena_free(a);
    return err;
}
