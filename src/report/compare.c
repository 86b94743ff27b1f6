/* compare.c - several tracks side by side: trials of one contender at one target, contenders over
 * all targets.
 *
 * A target is a workload with its shape, surface and platform; a contender is a policy with the
 * model that it asked.  Trials of two runs that have the same number are no trials of one
 * experiment (another budget, other options), so their contenders are told apart by run.
 *
 * Every target weighs the same, however many trials it has.  Over targets:
 *   share    mean of the share of trials that succeeded (the gate's rule calls the best faster than
 * the start) geomean  of each target's median over its successful trials: success only, as the
 * KLineage paper reports it fail as zero   share x geomean.  A geometric mean with a true zero in
 * it is zero, which would tell nothing fast_p   mean of the share of trials whose best is faster
 * than p x the baseline, by the same rule (KernelBench) amsr     mean of the trials' ratios to the
 * baseline, those below 1 as 0 (Kernel-Smith) A best that did not prove to be faster than its start
 * counts as the start.  A track that had no money for a first question is no trial.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- who and what ------------------------------------------------------------------------ */

static int compare_target_of(kli_results *r, const kli_facts *f, const kli_result *t) {
    const kli_row *row = t->start ? t->start : t->best;
    const kl_verdict *v = row ? kli_facts_verdict(f, row->verdict) : NULL;
    kli_target one = {.workload = t->rows->workload};
    if (v)
        one = (kli_target){.workload = one.workload,
                           .shape = v->workload,
                           .surface = v->surface,
                           .platform = v->platform};
    for (int i = 0; i < r->n_targets; i++) {
        const kli_target *x = &r->targets[i];
        if (kl_str_eq(x->workload, one.workload) && kl_str_eq(x->shape, one.shape) &&
            kl_str_eq(x->surface, one.surface) && kl_str_eq(x->platform, one.platform))
            return i;
    }
    KL_ASSERT(r->n_targets < r->n_tracks);
    r->targets[r->n_targets] = one;
    return r->n_targets++;
}

static int contender_of(kli_results *r, const kli_result *t, bool by_run) {
    kli_contender one = {
        .policy = t->rows->policy, .model = t->model, .run = by_run ? t->rows->run : KL_S("")};
    for (int i = 0; i < r->n_contenders; i++) {
        const kli_contender *x = &r->contenders[i];
        if (kl_str_eq(x->policy, one.policy) && kl_str_eq(x->model, one.model) &&
            kl_str_eq(x->run, one.run))
            return i;
    }
    KL_ASSERT(r->n_contenders < r->n_tracks);
    r->contenders[r->n_contenders] = one;
    return r->n_contenders++;
}

static bool clash(const kli_result *x, const kli_result *y) {
    return x->target == y->target && x->trial == y->trial &&
           kl_str_eq(x->rows->policy, y->rows->policy) && kl_str_eq(x->model, y->model) &&
           !kl_str_eq(x->rows->run, y->rows->run);
}

static bool runs_differ(const kli_results *r) {
    for (int i = 0; i < r->n_tracks; i++)
        for (int j = 0; j < i; j++)
            if (clash(&r->tracks[i], &r->tracks[j])) return true;
    return false;
}

static void find_contender(kli_results *r, kl_str policy, bool by_run) {
    for (int i = 0; i < r->n_tracks; i++)
        if (kl_str_eq(r->tracks[i].rows->policy, policy))
            r->tracks[i].contender = contender_of(r, &r->tracks[i], by_run);
}

/* In the order of the policies' table, then those that an experiment named otherwise: a policy has
 * its place and colour whatever else is there. */
static void find_contenders(kli_results *r) {
    bool by_run = runs_differ(r);
    const kl_policy *p;
    for (int i = 0; (p = kl_policy_each(i)); i++) find_contender(r, kl_str_of(p->name), by_run);
    for (int i = 0; i < r->n_tracks; i++) find_contender(r, r->tracks[i].rows->policy, by_run);
}

/* Platforms tell apart everywhere; a shape only the targets of one workload. */
static void label_targets(kli_results *r, kl_arena *a) {
    for (int i = 0; i < r->n_targets; i++) {
        kli_target *t = &r->targets[i];
        bool surface = false, shape = false, platform = false;
        for (int j = 0; j < r->n_targets; j++) {
            const kli_target *x = &r->targets[j];
            surface |= !kl_str_eq(x->surface, t->surface);
            platform |= !kl_str_eq(x->platform, t->platform);
            shape |= kl_str_eq(x->workload, t->workload) && !kl_str_eq(x->shape, t->shape);
        }
        t->label = kl_arena_printf(
            a, "%.*s%s%.*s%s%.*s%s%.*s", KL_STR_ARG(t->workload), shape ? " " : "",
            shape ? (int)t->shape.len : 0, t->shape.ptr ? t->shape.ptr : "", surface ? " " : "",
            surface ? (int)t->surface.len : 0, t->surface.ptr ? t->surface.ptr : "",
            platform ? " on " : "", platform ? (int)t->platform.len : 0,
            t->platform.ptr ? t->platform.ptr : "");
    }
}

static void label_contenders(kli_results *r, kl_arena *a) {
    for (int i = 0; i < r->n_contenders; i++) {
        kli_contender *c = &r->contenders[i];
        bool model = false;
        for (int j = 0; j < r->n_contenders; j++)
            model |= !kl_str_eq(r->contenders[j].model, c->model);
        c->label = kl_arena_printf(a, "%.*s%s%.*s%s%.*s", KL_STR_ARG(c->policy),
                                   model ? " by " : "", model ? (int)c->model.len : 0,
                                   c->model.ptr ? c->model.ptr : "", c->run.len ? " in " : "",
                                   c->run.len < 8 ? (int)c->run.len : 8, c->run.ptr);
    }
}

/* ---- trials of one contender at one target ----------------------------------------------- */

static kli_spread spread_of(const double *x, int n) {
    if (!n) return (kli_spread){0};
    return (kli_spread){kli_median(x, (size_t)n), kli_quantile(x, (size_t)n, 0),
                        kli_quantile(x, (size_t)n, 1)};
}

static double compare_ratio_of(const kli_result *t) { return t->shown ? t->shown->ratio : 0; }
static double compare_gain_of(const kli_result *t) { return t->solved ? t->gain.ratio : 1; }

/* The trial of the median best, the lower of two: a picture and a link need one that exists. */
static int middle_of(const kli_results *r, const kli_group *g) {
    int chosen = g->n ? g->tracks[0] : -1;
    for (int i = 0; i < g->n; i++) {
        int below = 0, candidate = g->tracks[i];
        for (int j = 0; j < g->n; j++) {
            double x = compare_ratio_of(&r->tracks[g->tracks[j]]),
                   y = compare_ratio_of(&r->tracks[candidate]);
            below += x < y || (x == y && j < i);
        }
        if (below == (g->n - 1) / 2) chosen = candidate;
    }
    return chosen;
}

static double curve_at(const kli_result *t, int64_t microusd) {
    double best = t->n_curve ? t->curve[0].ratio : 0;
    for (int i = 0; i < t->n_curve && t->curve[i].microusd <= microusd; i++)
        best = t->curve[i].ratio;
    return best;
}

static int by_money(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Between two points of any curve nothing changes, so their union is the whole grid, without
 * rounding to one of equal steps.  A trial that ended early stays at what it had reached. */
static void fill_band(const kli_results *r, kli_group *g, kl_arena *a) {
    int n = 0;
    for (int i = 0; i < g->n; i++) n += r->tracks[g->tracks[i]].n_curve;
    int64_t *grid = KL_ARRAY(a, int64_t, n + 1);
    double *values = KL_ARRAY(a, double, g->n + 1);
    g->band = KL_ARRAY(a, kli_band_point, n + 1);
    n = 0;
    for (int i = 0; i < g->n; i++) {
        const kli_result *t = &r->tracks[g->tracks[i]];
        for (int j = 0; j < t->n_curve; j++) grid[n++] = t->curve[j].microusd;
    }
    if (n) qsort(grid, (size_t)n, sizeof *grid, by_money);
    for (int i = 0; i < n; i++) {
        int m = 0;
        if (i + 1 < n && grid[i + 1] == grid[i]) continue;
        for (int j = 0; j < g->n; j++)
            if (r->tracks[g->tracks[j]].n_curve)
                values[m++] = curve_at(&r->tracks[g->tracks[j]], grid[i]);
        g->band[g->n_band++] = (kli_band_point){grid[i], spread_of(values, m)};
    }
}

static void fill_group(const kli_results *r, kli_group *g, kl_arena *a) {
    const int most = g->n + 1;
    double *best = KL_ARRAY(a, double, most), *gain = KL_ARRAY(a, double, most),
           *back = KL_ARRAY(a, double, most);
    double *solved_best = KL_ARRAY(a, double, most), *solved_gain = KL_ARRAY(a, double, most);
    int n_best = 0, n_gain = 0, n_back = 0;
    g->baseline = true;
    for (int i = 0; i < g->n; i++) {
        const kli_result *t = &r->tracks[g->tracks[i]];
        g->baseline &= t->baseline.len > 0;
        if (compare_ratio_of(t) > 0) best[n_best++] = compare_ratio_of(t);
        gain[n_gain++] = compare_gain_of(t);
        g->undecided += t->call == KL_DECISION_UNDECIDED;
        if (t->recovered.ratio > 0) back[n_back++] = t->recovered.ratio;
        if (t->solved)
            solved_best[g->solved] = compare_ratio_of(t), solved_gain[g->solved++] = t->gain.ratio;
        g->referenced += t->reference != NULL;
        g->recovered += t->reached != NULL;
    }
    KL_ASSERT(g->solved + g->undecided <= g->n && g->recovered <= g->referenced);
    g->best = spread_of(best, n_best);
    g->gain = spread_of(gain, n_gain);
    g->recovery = spread_of(back, n_back);
    g->solved_best = spread_of(solved_best, g->solved).median;
    g->solved_gain = spread_of(solved_gain, g->solved).median;
    g->middle = middle_of(r, g);
    fill_band(r, g, a);
}

static void group(kli_results *r, kl_arena *a, int target, int contender) {
    kli_group *g = &r->groups[r->n_groups];
    *g = (kli_group){.target = target, .contender = contender};
    KL_ASSERT(r->n_groups < r->n_targets * r->n_contenders);
    g->tracks = KL_ARRAY(a, int, r->n_tracks + 1);
    for (int i = 0; i < r->n_tracks; i++) {
        const kli_result *t = &r->tracks[i];
        if (t->target != target || t->contender != contender) continue;
        if (t->never_asked)
            g->never_asked++;
        else
            g->tracks[g->n++] = i;
    }
    if (!g->n && !g->never_asked) return;
    fill_group(r, g, a);
    r->n_groups++;
}

const kli_group *kli_group_of(const kli_results *r, int target, int contender) {
    for (int i = 0; i < r->n_groups; i++)
        if (r->groups[i].target == target && r->groups[i].contender == contender)
            return &r->groups[i];
    return NULL;
}

/* ---- a contender over its targets -------------------------------------------------------- */

static void add_baselined(kli_overall *o, const kli_results *r, const kli_group *g) {
    double fast_1 = 0, fast_2 = 0, amsr = 0;
    if (!g->baseline) return;
    for (int i = 0; i < g->n; i++) {
        const kli_result *t = &r->tracks[g->tracks[i]];
        fast_1 += t->shown && kli_row_call(r->facts, t->shown, 1) == KL_DECISION_FASTER;
        fast_2 += t->shown && kli_row_call(r->facts, t->shown, 2) == KL_DECISION_FASTER;
        amsr += compare_ratio_of(t) >= 1 ? compare_ratio_of(t) : 0;
    }
    o->baselined++;
    o->baselined_share += (double)g->solved / g->n;
    o->fast_1 += fast_1 / g->n;
    o->fast_2 += fast_2 / g->n;
    o->amsr += amsr / g->n;
}

static void add_submissions(kli_overall *o, kl_arena *a, const kli_results *r, const kli_group *g) {
    for (int i = 0; i < g->n; i++) {
        const kli_result *t = &r->tracks[g->tracks[i]];
        o->proposals += t->proposals;
        for (int j = 0; j < KLI_STEP_OUTCOMES; j++) o->outcomes[j] += t->outcomes[j];
        kli_money_add(&o->money, a, &t->money);
    }
    o->trials += g->n;
    o->solved += g->solved;
    o->undecided += g->undecided;
    o->referenced += g->referenced;
    o->recovered += g->recovered;
    o->gated = o->proposals - o->outcomes[KLI_NOTHING] - o->outcomes[KLI_OTHER];
}

static void fill_overall(kli_overall *o, kl_arena *a, const kli_results *r, int contender) {
    double log_best = 0, log_gain = 0;
    int n_best = 0, n_gain = 0;
    for (int i = 0; i < r->n_groups; i++) {
        const kli_group *g = &r->groups[i];
        if (g->contender != contender) continue;
        o->never_asked += g->never_asked;
        if (!g->n) continue;
        o->targets++;
        o->share += (double)g->solved / g->n;
        if (g->solved) log_gain += log(g->solved_gain), n_gain++;
        if (g->solved && g->baseline) log_best += log(g->solved_best), n_best++;
        add_baselined(o, r, g);
        add_submissions(o, a, r, g);
    }
    if (o->targets) o->share /= o->targets;
    if (n_best) o->geomean = exp(log_best / n_best);
    if (n_gain) o->gain_geomean = exp(log_gain / n_gain);
    if (o->baselined) o->baselined_share /= o->baselined;
    o->fast_1 = o->baselined ? o->fast_1 / o->baselined : -1;
    o->fast_2 = o->baselined ? o->fast_2 / o->baselined : -1;
    o->amsr = o->baselined ? o->amsr / o->baselined : -1;
    KL_ASSERT(o->solved <= o->trials && o->gated <= o->proposals);
    const int settled =
        o->gated -
        o->outcomes[KLI_UNSTABLE]; /* what did not settle is nobody's fault, and nobody's success */
    o->correct = settled ? (double)o->outcomes[KLI_PASS] / settled : -1;
}

/* ---- everything -------------------------------------------------------------------------- */

void kli_results_compare(kli_results *r, kl_arena *a) {
    r->groups = KL_ARRAY(a, kli_group, r->n_targets * r->n_contenders + 1);
    r->overall = KL_ARRAY(a, kli_overall, r->n_contenders + 1);
    for (int i = 0; i < r->n_targets; i++)
        for (int j = 0; j < r->n_contenders; j++) group(r, a, i, j);
    for (int j = 0; j < r->n_contenders; j++) fill_overall(&r->overall[j], a, r, j);
}

void kli_results_of(kli_results *out, kl_arena *a, const kli_facts *f) {
    kli_results *r = out;
    *r = (kli_results){.facts = f,
                       .tracks = KL_ARRAY(a, kli_result, f->n_tracks + 1),
                       .targets = KL_ARRAY(a, kli_target, f->n_tracks + 1),
                       .contenders = KL_ARRAY(a, kli_contender, f->n_tracks + 1)};
    for (int i = 0; i < f->n_tracks; i++)
        if (kli_is_search(&f->tracks[i])) {
            kli_result_of(&r->tracks[r->n_tracks], a, f, &f->tracks[i]);
            const kli_result *t = &r->tracks[r->n_tracks];
            r->n_tracks +=
                t->proposals > 0 || t->end; /* one that only judged its start has not begun */
        }
    for (int i = 0; i < r->n_tracks; i++)
        r->tracks[i].target = compare_target_of(r, f, &r->tracks[i]);
    find_contenders(r);
    label_targets(r, a);
    label_contenders(r, a);
    kli_results_compare(r, a);
}
