/* document.c - results as JSON: docs/formats/results.md says what every key means.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/json.h"
#include <string.h>

static void document_put(json_t *o, const char *key, json_t *value) {
    json_object_set_new(o, key, value);
}
static void document_put_text(json_t *o, const char *key, kl_str s) {
    document_put(o, key, kli_json_str(s));
}
static void put_int(json_t *o, const char *key, int64_t n) {
    document_put(o, key, json_integer(n));
}
static void put_real(json_t *o, const char *key, double v) {
    document_put(o, key, kli_json_real(v));
}
/* Below 0: cannot be said. */
static json_t *document_known(double v) { return v < 0 ? json_null() : kli_json_real(v); }

static json_t *document_text_or_null(kl_str s) { return s.len ? kli_json_str(s) : json_null(); }
static double usd(int64_t microusd) { return (double)microusd / 1e6; }

/* ---- parts ------------------------------------------------------------------------------- */

static json_t *span_json(kli_span s) {
    if (!(s.ratio > 0)) return json_null();
    return json_pack("{so so so}", "ratio", kli_json_real(s.ratio), "low", kli_json_real(s.low),
                     "high", kli_json_real(s.high));
}

/* A ratio with what it was read from. */
static json_t *document_row_json(const kli_row *r) {
    if (!r) return json_null();
    return json_pack("{sI so so so so so sI}", "step", (json_int_t)r->n, "kernel",
                     kli_json_str(r->kernel), "verdict", kli_json_str(r->verdict), "ratio",
                     kli_json_real(r->ratio), "low", kli_json_real(r->low), "high",
                     kli_json_real(r->high), "median_ns", (json_int_t)r->median_ns);
}

static json_t *spread_json(kli_spread s) {
    if (!(s.median > 0)) return json_null();
    return json_pack("{so so so}", "median", kli_json_real(s.median), "min", kli_json_real(s.low),
                     "max", kli_json_real(s.high));
}

static json_t *bill_json(const kli_bill *b) {
    int64_t told = b->input + b->cache_read + b->cache_write_5m + b->cache_write_1h;
    return json_pack(
        "{si sI sb sI sI sI sI sI so}", "calls", b->calls, "microusd", (json_int_t)b->microusd,
        "estimated", b->estimated, "input", (json_int_t)b->input, "cache_read",
        (json_int_t)b->cache_read, "cache_write_5m", (json_int_t)b->cache_write_5m,
        "cache_write_1h", (json_int_t)b->cache_write_1h, "output", (json_int_t)b->output,
        "cache_hit_rate", document_known(told ? (double)b->cache_read / (double)told : -1));
}

static json_t *phases_json(const kli_money *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->n_phases; i++) {
        json_t *o = bill_json(&m->phases[i]);
        document_put_text(o, "phase", m->phases[i].phase);
        json_array_append_new(list, o);
    }
    return list;
}

static void put_money(json_t *o, const kli_money *m) {
    put_int(o, "spent_microusd", m->sum.microusd);
    put_int(o, "unanswered_microusd", m->unanswered_microusd);
    document_put(o, "estimated", json_boolean(m->sum.estimated));
    document_put(o, "tokens", bill_json(&m->sum));
    document_put(o, "phases", phases_json(m));
}

static json_t *fates_json(const int *outcomes) {
    json_t *o = json_object();
    for (int i = 0; i < KLI_STEP_OUTCOMES; i++)
        if (i != KLI_OTHER || outcomes[i])
            put_int(o, kli_step_outcome_name((kli_step_outcome)i), outcomes[i]);
    return o;
}

/* ---- a track ----------------------------------------------------------------------------- */

static json_t *path_json(const kli_result *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->n_path; i++) {
        json_t *o = document_row_json(t->path[i]);
        document_put_text(o, "action", t->path[i]->action);
        json_array_append_new(list, o);
    }
    return list;
}

/* A row names a card and an action in the same field; only the library knows which it is. */
static json_t *cards_json(const kli_facts *f, const kli_result *t) {
    if (!f->has_library) return json_null();
    json_t *list = json_array();
    for (int i = 0; i < t->n_path; i++)
        if (kl_library_card(f->library, t->path[i]->action))
            json_array_append_new(list, kli_json_str(t->path[i]->action));
    return list;
}

static json_t *curve_json(const kli_result *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->n_curve; i++)
        json_array_append_new(list, json_pack("[f o I]", usd(t->curve[i].microusd),
                                              kli_json_real(t->curve[i].ratio),
                                              (json_int_t)t->curve[i].step));
    return list;
}

static json_t *reached_json(const kli_row *r) {
    return r ? json_pack("{sI sI so}", "step", (json_int_t)r->n, "microusd",
                         (json_int_t)r->spent_microusd, "verdict", kli_json_str(r->verdict))
             : json_null();
}

static json_t *track_json(const kli_results *r, const kli_result *t) {
    KL_ASSERT(t->target < r->n_targets && t->contender < r->n_contenders);
    json_t *o = json_object();
    document_put_text(o, "run", t->rows->run);
    document_put_text(o, "track", t->rows->name);
    document_put_text(o, "workload", t->rows->workload);
    document_put_text(o, "policy", t->rows->policy);
    document_put(o, "trial", t->trial ? json_integer(t->trial) : json_null());
    put_int(o, "target", t->target);
    put_int(o, "contender", t->contender);
    document_put(o, "baseline", document_text_or_null(t->baseline));
    document_put(o, "start", document_row_json(t->start));
    document_put(o, "reference", document_row_json(t->reference));
    document_put(o, "best", document_row_json(t->best));
    document_put(o, "shown", document_row_json(t->shown));
    document_put(o, "end", document_row_json(t->end && t->end->ratio > 0 ? t->end : NULL));
    document_put(o, "gain", span_json(t->gain));
    document_put(o, "gain_timed", json_boolean(t->timed));
    document_put_text(o, "call", kl_str_of(kl_decision_name(t->call)));
    document_put(o, "disagrees", json_boolean(t->disagrees));
    document_put(o, "never_asked", json_boolean(t->never_asked));
    document_put(o, "stopped", t->end ? kli_json_str(t->end->why) : json_null());
    document_put(o, "solved", json_boolean(t->solved));
    document_put(o, "recovered", span_json(t->recovered));
    document_put(o, "reached", reached_json(t->reached));
    put_int(o, "proposals", t->proposals);
    document_put(o, "outcomes", fates_json(t->outcomes));
    put_int(o, "cheating", t->outcomes[KLI_CHEAT]);
    put_int(o, "no_kernel", t->outcomes[KLI_REFUSED] + t->outcomes[KLI_NOTHING]);
    document_put(o, "path", path_json(t));
    document_put(o, "cards", cards_json(r->facts, t));
    document_put(o, "arm", document_text_or_null(t->start ? t->start->locus : KL_S("")));
    put_money(o, &t->money);
    document_put(o, "curve", curve_json(t));
    return o;
}

/* ---- groups and contenders --------------------------------------------------------------- */

static json_t *band_json(const kli_group *g) {
    json_t *list = json_array();
    for (int i = 0; i < g->n_band; i++)
        json_array_append_new(list, json_pack("[f o o o]", usd(g->band[i].microusd),
                                              kli_json_real(g->band[i].best.median),
                                              kli_json_real(g->band[i].best.low),
                                              kli_json_real(g->band[i].best.high)));
    return list;
}

static json_t *group_json(const kli_group *g) {
    KL_ASSERT(g->middle < 0 || g->n > 0);
    json_t *tracks = json_array();
    for (int i = 0; i < g->n; i++) json_array_append_new(tracks, json_integer(g->tracks[i]));
    return json_pack("{si si so so si si si si so so si si so so}", "target", g->target,
                     "contender", g->contender, "tracks", tracks, "middle",
                     g->middle < 0 ? json_null() : json_integer(g->middle), "trials", g->n,
                     "solved", g->solved, "undecided", g->undecided, "never_asked", g->never_asked,
                     "best", spread_json(g->best), "gain", spread_json(g->gain), "referenced",
                     g->referenced, "recovered", g->recovered, "recovery", spread_json(g->recovery),
                     "band", band_json(g));
}

static json_t *mean_json(double share, double geomean) {
    return json_pack("{so so so}", "share", kli_json_real(share), "geomean",
                     geomean > 0 ? kli_json_real(geomean) : json_null(), "fail_as_zero",
                     kli_json_real(share * geomean));
}

static json_t *contender_json(const kli_contender *c, const kli_overall *v) {
    json_t *o = json_object();
    document_put_text(o, "label", c->label);
    document_put_text(o, "policy", c->policy);
    document_put_text(o, "model", c->model);
    document_put(o, "run", document_text_or_null(c->run));
    put_int(o, "targets", v->targets);
    put_int(o, "trials", v->trials);
    put_int(o, "solved", v->solved);
    put_int(o, "undecided", v->undecided);
    put_int(o, "never_asked", v->never_asked);
    document_put(o, "gain", mean_json(v->share, v->gain_geomean));
    document_put(o, "best", v->baselined ? mean_json(v->baselined_share, v->geomean) : json_null());
    put_int(o, "with_baseline", v->baselined);
    document_put(o, "fast_1", document_known(v->fast_1));
    document_put(o, "fast_2", document_known(v->fast_2));
    document_put(o, "amsr", document_known(v->amsr));
    document_put(o, "correct", document_known(v->correct));
    put_int(o, "referenced", v->referenced);
    put_int(o, "recovered", v->recovered);
    put_int(o, "proposals", v->proposals);
    put_int(o, "gated", v->gated);
    document_put(o, "outcomes", fates_json(v->outcomes));
    put_money(o, &v->money);
    return o;
}

static json_t *target_json(const kli_target *t) {
    return json_pack("{so so so so so}", "label", kli_json_str(t->label), "workload",
                     kli_json_str(t->workload), "shape", document_text_or_null(t->shape), "surface",
                     document_text_or_null(t->surface), "platform",
                     document_text_or_null(t->platform));
}

static json_t *document_run_json(const kl_store_run *r) {
    json_t *o = json_object(), *said = json_loads(r->json.ptr, 0, NULL);
    document_put_text(o, "id", r->id);
    document_put_text(o, "command", r->command);
    document_put(o, "model", document_text_or_null(kli_json_text_or(said, "model", KL_S(""))));
    document_put_text(o, "created", r->created);
    json_decref(said);
    return o;
}

/* ---- the document ------------------------------------------------------------------------ */

static json_t *list_in(json_t *o, const char *key) {
    json_t *list = json_array();
    document_put(o, key, list);
    return list;
}

static json_t *summary_json(const kli_results *r) {
    kl_arena *a = kl_arena_new();
    kli_report_cell *lines;
    json_t *list = json_array();
    const int n = kli_summary(&lines, a, r);
    for (int i = 0; i < n; i++)
        json_array_append_new(list, kli_json_str(kli_summary_text(a, &lines[i])));
    kl_arena_free(a);
    return list;
}

json_t *kli_results_json(const kli_results *r) {
    json_t *o = json_object(), *list;
    document_put(o, "schema", json_string("klineage/results"));
    put_int(o, "version", 1);
    document_put(o, "summary", summary_json(r));
    put_real(o, "solved_above", 1 + kl_decide_margin(0));
    put_real(o, "recovered_at", KLI_RECOVERED);
    list = list_in(o, "runs");
    for (int i = 0; i < r->facts->n_runs; i++)
        json_array_append_new(list, document_run_json(&r->facts->runs[i]));
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
