/* results.c - what one track of a search came to, out of its rows and its charges.
 *
 * Ratios are read from rows, never computed anew; only a recovery, and a gain that nobody timed
 * side by side, are quotients of two of them, and their intervals take the worst of both.  Not
 * here: anything about several tracks (compare.c), JSON (document.c).  SPDX-License-Identifier:
 * Apache-2.0 */
#include "report_impl.h"
#include "base/json.h"
#include <stdlib.h>
#include <string.h>

static const char *const fate_names[KLI_STEP_OUTCOMES] = {
    "pass",     "wrong", "no_compile", "crash",   "hang",
    "unstable", "cheat", "refused",    "no_edit", "other"};

const char *kli_step_outcome_name(kli_step_outcome f) {
    KL_ASSERT(f < KLI_STEP_OUTCOMES);
    return fate_names[f];
}

kli_step_outcome kli_step_outcome_of(kl_str outcome) {
    for (int i = 0; i < KLI_OTHER; i++)
        if (kl_str_eq(outcome, kl_str_of(fate_names[i]))) return (kli_step_outcome)i;
    return KLI_OTHER;
}

/* ---- money ------------------------------------------------------------------------------- */

static void add_bill(kli_bill *to, const kli_bill *from) {
    to->calls += from->calls;
    to->microusd += from->microusd;
    to->input += from->input;
    to->cache_read += from->cache_read;
    to->cache_write_5m += from->cache_write_5m;
    to->cache_write_1h += from->cache_write_1h;
    to->output += from->output;
    to->estimated |= from->estimated;
}

static void add_phase(kli_money *m, const kli_bill *b) {
    for (int i = 0; i < m->n_phases; i++)
        if (kl_str_eq(m->phases[i].phase, b->phase)) {
            add_bill(&m->phases[i], b);
            return;
        }
    m->phases[m->n_phases++] = *b;
}

void kli_money_add(kli_money *to, kl_arena *a, const kli_money *from) {
    kli_bill *phases = KL_ARRAY(a, kli_bill, to->n_phases + from->n_phases + 1);
    if (to->n_phases) memcpy(phases, to->phases, (size_t)to->n_phases * sizeof *phases);
    to->phases = phases;
    for (int i = 0; i < from->n_phases; i++) add_phase(to, &from->phases[i]);
    add_bill(&to->sum, &from->sum);
    to->unanswered_microusd += from->unanswered_microusd;
}

/* A released reservation was no call. */
static void results_add_charge(kli_money *m, kl_arena *a, const kl_store_charge *c) {
    if (kl_str_eq(c->state, KL_S("released"))) return;
    kli_bill b = {.phase = c->phase,
                  .calls = 1,
                  .microusd = kli_cost_of(c),
                  .input = c->input,
                  .cache_read = c->cache_read,
                  .cache_write_5m = c->cache_write_5m,
                  .cache_write_1h = c->cache_write_1h,
                  .output = c->output,
                  .estimated = c->estimated};
    kli_money one = {.sum = b, .phases = &b, .n_phases = 1};
    if (!kl_str_eq(c->state, KL_S("settled"))) one.unanswered_microusd = b.microusd;
    kli_money_add(m, a, &one);
}

static void fill_money(kli_result *r, kl_arena *a, const kli_facts *f) {
    for (int i = 0; i < f->n_charges; i++) {
        const kl_store_charge *c = &f->charges[i];
        if (kl_str_eq(c->run, r->rows->run) && kl_str_eq(c->track, r->rows->name))
            results_add_charge(&r->money, a, c);
    }
}

kl_str kli_dollars(kl_arena *a, int64_t microusd, bool estimated) {
    return kl_arena_printf(a, "%s$%.4f", estimated ? "~" : "", (double)microusd / 1e6);
}

/* ---- ratios ------------------------------------------------------------------------------ */

static kli_span over(const kli_row *of, const kli_row *by) {
    if (!of || !by || !(of->ratio > 0) || !(by->low > 0)) return (kli_span){0};
    return (kli_span){of->ratio / by->ratio, of->low / by->high, of->high / by->low};
}

kl_decision kli_row_call(const kli_facts *f, const kli_row *r, double times) {
    KL_ASSERT(times > 0);
    const kl_verdict *v = kli_facts_verdict(f, r->verdict);
    const double noise = v && v->n_comparisons ? v->comparisons[0].noise : 0;
    return kl_decide(r->low / times, r->high / times, noise, !v || v->outcome == KL_OUTCOME_PASS);
}

/* Could a row stand for the best?  What did not prove to be faster than the start in the end never
 * was. */
static bool results_holds(const kli_result *r, const kli_row *row) {
    return row->best && (r->solved || row == r->start);
}

/* As a search decides it (search.c: kli_search_over), so that a run which stopped because it had
 * recovered is one that has. */
static const kli_row *first_recovered(const kli_result *r) {
    const kli_track_rows *t = r->rows;
    if (!r->reference || !(r->reference->ratio > 0) ||
        !kl_str_eq(r->reference->outcome, KL_S("pass")))
        return NULL;
    for (int i = 0; i < t->n_rows; i++)
        if (results_holds(r, &t->rows[i]) && t->rows[i].low >= KLI_RECOVERED * r->reference->ratio)
            return &t->rows[i];
    return NULL;
}

static bool apart(kli_span x, kli_span y) {
    return x.ratio > 0 && y.ratio > 0 && (x.low > y.high || x.high < y.low);
}

/* The best is what the end says of it: timed against the start, side by side.  Without that, the
 * quotient of two ratios to a baseline that drifts, which is far from 1 or says nothing. */
static void decide_gain(kli_result *r, const kli_facts *f) {
    const kli_span quotient = over(r->best, r->start);
    r->timed = r->end && r->end->ratio > 0;
    r->gain = r->timed ? (kli_span){r->end->ratio, r->end->low, r->end->high} : quotient;
    r->call =
        r->timed ? kli_row_call(f, r->end, 1) : kl_search_far_apart(quotient.low, quotient.high);
    if (!r->best || r->best == r->start)
        r->gain = (kli_span){1, 1, 1}, r->call = KL_DECISION_SAME, r->timed = false;
    r->solved = r->call == KL_DECISION_FASTER;
    KL_ASSERT(!r->solved || (r->best && r->best != r->start)); /* law 11 */
    r->disagrees = r->timed && apart(quotient, r->gain);
    r->shown = r->solved || !r->start ? r->best : r->start;
}

static void fill_ratios(kli_result *r, const kli_facts *f) {
    r->start = kli_track_row(r->rows, "start");
    r->reference = kli_track_row(r->rows, "reference");
    r->best = kli_track_best(r->rows);
    r->end = kli_track_row(r->rows, "end");
    decide_gain(r, f);
    r->reached = first_recovered(r);
    r->recovered = over(r->shown, r->reference);
}

/* ---- the running best -------------------------------------------------------------------- */

static void fill_curve(kli_result *r, kl_arena *a) {
    const kli_track_rows *t = r->rows;
    double best = 0;
    int64_t spent = 0, step = 0;
    r->curve = KL_ARRAY(a, kli_curve_point, t->n_rows + 1);
    for (int i = 0; i < t->n_rows; i++) {
        const kli_row *row = &t->rows[i];
        if (row->spent_microusd > spent) spent = row->spent_microusd;
        step = row->n;
        if (!results_holds(r, row) || !(row->ratio > 0)) continue;
        if (row->ratio > best)
            best = row->ratio; /* one that won against the best may have a lower ratio to a baseline
                                  that drifted */
        r->curve[r->n_curve++] = (kli_curve_point){spent, best, step};
    }
    if (r->money.sum.microusd > spent) spent = r->money.sum.microusd; /* calls after the last row */
    KL_ASSERT(r->n_curve <= t->n_rows);
    if (r->n_curve) r->curve[r->n_curve++] = (kli_curve_point){spent, best, step};
}

/* ---- how the best came about ------------------------------------------------------------- */

static const kli_row *row_that_made(const kli_track_rows *t, const kli_row *before) {
    for (int i = (int)(before - t->rows) - 1; i >= 0; i--)
        if (before->parent.len && kl_str_eq(t->rows[i].kernel, before->parent)) return &t->rows[i];
    return NULL;
}

static void fill_path(kli_result *r, kl_arena *a) {
    r->path = KL_ARRAY(a, const kli_row *, r->rows->n_rows + 1);
    for (const kli_row *at = r->shown; at && at != r->start; at = row_that_made(r->rows, at)) {
        KL_ASSERT(r->n_path < r->rows->n_rows); /* a row was made by an earlier one */
        r->path[r->n_path++] = at;
    }
    for (int i = 0; i < r->n_path / 2; i++) {
        const kli_row *swap = r->path[i];
        r->path[i] = r->path[r->n_path - 1 - i];
        r->path[r->n_path - 1 - i] = swap;
    }
}

/* ---- one track --------------------------------------------------------------------------- */

static void count_proposals(kli_result *r) {
    for (int i = 0; i < r->rows->n_rows; i++) {
        const kli_row *row = &r->rows->rows[i];
        if (!kli_is_proposal(row)) continue;
        KL_ASSERT(row->parent.len); /* the start and the end are none */
        r->proposals++;
        r->outcomes[kli_step_outcome_of(row->outcome)]++;
    }
}

/* WORKLOAD/.../TRIAL */
static int trial_of(kl_str name) {
    size_t at = name.len;
    while (at && name.ptr[at - 1] >= '0' && name.ptr[at - 1] <= '9') at--;
    bool there = at && at < name.len && name.ptr[at - 1] == '/' && name.len - at < 9;
    return there ? atoi(kl_str_of(name.ptr + at).ptr) : 0;
}

/* Empty where the start was timed against itself: nothing that the task names could run, and ratios
 * are over the start. */
static kl_str baseline_of(const kli_facts *f, const kli_row *start, const kli_row *best) {
    const kl_verdict *v = start ? kli_facts_verdict(f, start->verdict) : NULL;
    if (!v && best) v = kli_facts_verdict(f, best->verdict);
    if (!v || !v->n_comparisons || kl_str_eq(v->comparisons[0].baseline, KL_S("candidate")))
        return KL_S("");
    return v->comparisons[0].baseline;
}

static kl_str model_of(const kli_facts *f, kl_arena *a, kl_str run) {
    for (int i = 0; i < f->n_runs; i++) {
        if (!kl_str_eq(f->runs[i].id, run)) continue;
        json_t *o = json_loads(f->runs[i].json.ptr, 0, NULL);
        kl_str model = kl_arena_copy(a, kli_json_text_or(o, "model", KL_S("")));
        json_decref(o);
        return model;
    }
    return KL_S("");
}

void kli_result_of(kli_result *out, kl_arena *a, const kli_facts *f, const kli_track_rows *t) {
    *out = (kli_result){.rows = t, .trial = trial_of(t->name), .model = model_of(f, a, t->run)};
    fill_ratios(out, f);
    out->baseline = baseline_of(f, out->start, out->best);
    count_proposals(out);
    out->never_asked = !out->proposals && out->end && kl_str_eq(out->end->why, KL_S("budget"));
    fill_money(out, a, f);
    fill_curve(out, a);
    fill_path(out, a);
}
