/* summary.c - the result in one sentence: what was asked, the best kernel, its ratio with the
 * interval and what it is over, dollars, what stayed undecided.
 *
 * Every "faster" here is the decision rule's (law 11); what it leaves open is called undecided, and
 * a ratio stands beside it with its interval.  Several targets and lineages have a line each below.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/json.h"

#define LEAST_DIGITS 3
#define MOST_DIGITS 5

/* ---- words ------------------------------------------------------------------------------- */

void kli_part_add(kli_report_cell *c, kl_arena *a, kl_str text, kl_str verdict) {
    kli_part *p = KL_NEW(a, kli_part);
    *p = (kli_part){.text = text, .verdict = verdict};
    *(c->last ? &c->last->next : &c->first) = p;
    c->last = p;
}

kl_str kli_summary_text(kl_arena *a, const kli_report_cell *line) {
    kl_str all = KL_S("");
    for (const kli_part *p = line->first; p; p = p->next)
        all = kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(all), KL_STR_ARG(p->text));
    return all;
}

typedef struct {
    kl_arena *a;
    const kli_results *r;
    kli_report_cell *line;
} sentence;

static void say(sentence *s, kl_str text) { kli_part_add(s->line, s->a, text, KL_S("")); }

/* With as many digits as tell the ends apart, so that an interval does not look like a number. */
kl_str kli_ratio_text(kl_arena *a, kli_span v) {
    kl_str low = KL_S(""), high = KL_S("");
    int digits = LEAST_DIGITS - 1;
    do {
        digits++;
        low = kl_arena_printf(a, "%.*g", digits, v.low);
        high = kl_arena_printf(a, "%.*g", digits, v.high);
    } while (digits < MOST_DIGITS && kl_str_eq(low, high));
    return kl_arena_printf(a, "%.*g \xc3\x97 [%.*s, %.*s]", digits, v.ratio, KL_STR_ARG(low),
                           KL_STR_ARG(high));
}

static void say_ratio(sentence *s, kli_span v, kl_str verdict) {
    kli_part_add(s->line, s->a, kli_ratio_text(s->a, v), verdict);
}

/* "faster than openblas, 1.31 x [1.3, 1.32]" */
static void say_against(sentence *s, const kli_row *row, kl_str whom) {
    static const char *const words[] = {[KL_DECISION_SAME] = "as fast as ",
                                        [KL_DECISION_FASTER] = "faster than ",
                                        [KL_DECISION_SLOWER] = "slower than ",
                                        [KL_DECISION_UNDECIDED] = "undecided against "};
    say(s, kl_str_of(words[kli_row_call(s->r->facts, row, 1)]));
    say(s, whom);
    say(s, KL_S(", "));
    say_ratio(s, (kli_span){row->ratio, row->low, row->high}, row->verdict);
}

/* ---- a trial ----------------------------------------------------------------------------- */

static void say_baseline(sentence *s, const kli_result *t, const char *before) {
    if (!t->baseline.len || !t->shown || !(t->shown->ratio > 0)) return;
    say(s, kl_str_of(before));
    say_against(s, t->shown, t->baseline);
}

static kl_str gain_verdict(const kli_result *t) {
    return t->timed ? t->end->verdict : t->best->verdict;
}

static void say_solved(sentence *s, const kli_result *t) {
    say(s, KL_S("is faster than its start, "));
    say_ratio(s, t->gain, gain_verdict(t));
    if (!t->timed) say(s, KL_S(" by the ratios of both"));
    say_baseline(s, t, ", and ");
}

static void say_unsolved(sentence *s, const kli_result *t) {
    if (t->never_asked) {
        say(s, KL_S("the budget was too small for a first call"));
    } else if (!t->best) {
        say(s, KL_S("no kernel passed the gate"));
    } else if (t->call == KL_DECISION_UNDECIDED) {
        say(s, KL_S("no kernel proved faster than the start; whether the last candidate is stays "
                    "undecided, "));
        say_ratio(s, t->gain, gain_verdict(t));
    } else {
        say(s, KL_S("no kernel was faster than the start"));
    }
    say_baseline(s, t, "; the start is ");
}

/* Of two trials the one to tell of: one that was asked, that is solved, with the higher ratio. */
static bool is_better(const kli_result *t, const kli_result *than) {
    if (t->never_asked != than->never_asked) return than->never_asked;
    if (t->solved != than->solved) return t->solved;
    return t->solved && t->shown->ratio > than->shown->ratio;
}

/* Below 0: of any target. */
static const kli_result *best_trial(const kli_results *r, int target) {
    const kli_result *best = NULL;
    for (int i = 0; i < r->n_tracks; i++) {
        const kli_result *t = &r->tracks[i];
        if ((target < 0 || t->target == target) && (!best || is_better(t, best))) best = t;
    }
    KL_ASSERT(best); /* a target is that of a track */
    return best;
}

/* Without those that had no money for a first question. */
static int trials_of(const kli_results *r, int target) {
    int n = 0;
    for (int i = 0; i < r->n_tracks; i++)
        n += (target < 0 || r->tracks[i].target == target) && !r->tracks[i].never_asked;
    return n;
}

/* "the best of 12 trials, by evolve in trial 2, " */
static void say_who(sentence *s, const kli_result *t, int n_trials) {
    if (n_trials < 2) return say(s, KL_S("the best kernel "));
    say(s, kl_arena_printf(s->a, "the best of %d trials, by %.*s", n_trials,
                           KL_STR_ARG(s->r->contenders[t->contender].label)));
    if (t->trial) say(s, kl_arena_printf(s->a, " in trial %d", t->trial));
    say(s, KL_S(", "));
}

static void say_none(sentence *s, int target, int n) {
    int undecided = 0;
    for (int i = 0; i < s->r->n_tracks; i++)
        undecided +=
            s->r->tracks[i].target == target && s->r->tracks[i].call == KL_DECISION_UNDECIDED;
    say(s, kl_arena_printf(s->a, "no kernel of %d trials proved faster than its start", n));
    if (undecided)
        say(s, kl_arena_printf(s->a, ", which stays undecided in %d of them", undecided));
}

static void say_trial(sentence *s, int target) {
    const kli_result *t = best_trial(s->r, target);
    const int n = trials_of(s->r, target);
    if (!t->solved) return n > 1 ? say_none(s, target, n) : say_unsolved(s, t);
    say_who(s, t, n);
    say_solved(s, t);
}

/* ---- what was asked ---------------------------------------------------------------------- */

static void say_target(sentence *s) {
    const kli_target *t = &s->r->targets[0];
    say(s, KL_S("Asked for a faster "));
    say(s, t->workload);
    if (t->surface.len)
        say(s, kl_arena_printf(s->a, " (%.*s, %.*s, %.*s)", KL_STR_ARG(t->shape),
                               KL_STR_ARG(t->surface), KL_STR_ARG(t->platform)));
    say(s, KL_S(": "));
    say_trial(s, 0);
}

static void say_targets(sentence *s) {
    const kli_results *r = s->r;
    const kli_result *best = best_trial(r, -1);
    int solved = 0;
    for (int i = 0; i < r->n_tracks; i++) solved += r->tracks[i].solved;
    say(s, kl_arena_printf(s->a,
                           "Asked for faster kernels of %d targets, %d trials by %d %s: %d "
                           "ended faster than their start",
                           r->n_targets, trials_of(r, -1), r->n_contenders,
                           r->n_contenders == 1 ? "policy" : "policies", solved));
    if (!solved) return;
    say(s, KL_S("; the highest ratio is that of "));
    say(s, r->targets[best->target].label);
    say(s, kl_arena_printf(s->a, " by %.*s", KL_STR_ARG(r->contenders[best->contender].label)));
    if (best->baseline.len)
        say_baseline(s, best, ", ");
    else
        say(s, KL_S(", ")), say_ratio(s, best->gain, gain_verdict(best));
}

/* ---- a lineage --------------------------------------------------------------------------- */

static void say_expert(sentence *s, const kl_lineage *l) {
    const kl_state *top = &l->states[l->n_states - 1];
    const kl_verdict *v = kli_facts_verdict(s->r->facts, top->verdict_key);
    const kli_row row = {
        .verdict = top->verdict_key, .ratio = top->ratio, .low = top->low, .high = top->high};
    if (!v || !v->n_comparisons || !(top->ratio > 0) || top->unsettled) return;
    if (kl_str_eq(v->comparisons[0].baseline, KL_S("candidate"))) return;
    say(s, KL_S("; the expert is "));
    say_against(s, &row, v->comparisons[0].baseline);
}

static void say_lineage(sentence *s, const kl_lineage *l) {
    int faster = 0, undecided = 0;
    for (int i = 0; i < l->n_edges; i++) {
        faster += l->edges[i].pays;
        undecided += !l->edges[i].pays && l->edges[i].call == KL_DECISION_UNDECIDED;
    }
    say(s, KL_S("Asked what makes "));
    say(s, l->name);
    say(s, kl_arena_printf(s->a, " fast: %d single steps lead from %s to the expert", l->n_edges,
                           kl_str_eq(kl_str_of(kli_simplest(l)), KL_S("naive"))
                               ? "naive"
                               : "the simplest kernel reached"));
    if (l->n_edges && kli_lineage_by_gain(l)) {
        say(s, KL_S(", their gains together "));
        say_ratio(s, kli_lineage_speed(l, l->n_states - 1), KL_S(""));
    }
    say(s, kl_arena_printf(s->a, "; %d of them made it faster", faster));
    if (undecided)
        say(s,
            kl_arena_printf(s->a, ", %d %s undecided", undecided, undecided == 1 ? "is" : "are"));
    say_expert(s, l);
}

/* ---- money, and what stayed open --------------------------------------------------------- */

static bool is_replayed(const kli_facts *f) {
    bool all = f->n_runs > 0;
    for (int i = 0; i < f->n_runs; i++) {
        json_t *o = json_loads(f->runs[i].json.ptr, 0, NULL);
        const kl_str model = kli_json_text_or(o, "model", KL_S(""));
        all &= !model.len || kl_str_starts(model, KL_S("replay"));
        json_decref(o);
    }
    return all;
}

static void say_money(sentence *s) {
    const kli_facts *f = s->r->facts;
    int64_t spent = 0;
    bool estimated = false;
    for (int i = 0; i < f->n_charges; i++) {
        spent += kli_cost_of(&f->charges[i]);
        estimated |= f->charges[i].estimated;
    }
    if (!spent) return say(s, KL_S("; no model call cost anything"));
    say(s, kl_arena_printf(s->a,
                           is_replayed(f) ? "; model calls, replayed so that nothing was "
                                            "paid, cost %.*s at their prices"
                                          : "; model calls cost %.*s",
                           KL_STR_ARG(kli_dollars(s->a, spent, estimated))));
}

static void say_count(sentence *s, bool *any, int n, const char *one, const char *many) {
    if (!n) return;
    say(s, kl_arena_printf(s->a, "%s%d %s", *any ? ", " : "; undecided: ", n, n == 1 ? one : many));
    *any = true;
}

static void say_undecided(sentence *s) {
    const kli_results *r = s->r;
    int over_start = 0, over_baseline = 0, unsettled = 0, steps = 0;
    bool any = false;
    for (int i = 0; i < r->n_tracks; i++) {
        const kli_result *t = &r->tracks[i];
        over_start += t->call == KL_DECISION_UNDECIDED;
        unsettled += t->outcomes[KLI_UNSTABLE];
        over_baseline += t->baseline.len && t->shown && t->shown->ratio > 0 &&
                         kli_row_call(r->facts, t->shown, 1) == KL_DECISION_UNDECIDED;
    }
    for (int i = 0; i < r->facts->n_lineages; i++)
        for (int j = 0; j < r->facts->lineages[i].n_edges; j++)
            steps += !r->facts->lineages[i].edges[j].pays &&
                     r->facts->lineages[i].edges[j].call == KL_DECISION_UNDECIDED;
    say_count(s, &any, over_start, "trial over its start", "trials over their start");
    say_count(s, &any, over_baseline, "kernel against its baseline",
              "kernels against their baseline");
    say_count(s, &any, steps, "step of a lineage", "steps of lineages");
    say_count(s, &any, unsettled, "proposal whose time did not settle",
              "proposals whose times did not settle");
    if (!any) say(s, KL_S("; nothing is undecided"));
}

/* ---- all of it --------------------------------------------------------------------------- */

int kli_summary(kli_report_cell **lines, kl_arena *a, const kli_results *r) {
    const kli_facts *f = r->facts;
    int n = 0, lineage = 0;
    *lines = KL_ARRAY(a, kli_report_cell, 1 + r->n_targets + f->n_lineages);
    sentence s = {.a = a, .r = r, .line = &(*lines)[n++]};
    if (r->n_targets == 1)
        say_target(&s);
    else if (r->n_targets)
        say_targets(&s);
    else if (f->n_lineages)
        say_lineage(&s, &f->lineages[lineage++]);
    else
        say(&s, KL_S("These runs contain no search and no lineage"));
    say_money(&s);
    say_undecided(&s);
    say(&s, KL_S("."));
    for (int i = 0; r->n_targets > 1 && i < r->n_targets; i++) {
        s.line = &(*lines)[n++];
        say(&s, r->targets[i].label);
        say(&s, KL_S(": "));
        say_trial(&s, i);
        say(&s, KL_S("."));
    }
    for (; lineage < f->n_lineages; lineage++) {
        s.line = &(*lines)[n++];
        say_lineage(&s, &f->lineages[lineage]);
        say(&s, KL_S("."));
    }
    KL_ASSERT(n <= 1 + r->n_targets + f->n_lineages);
    return n;
}
