/* rounds.c - does a close call on a device hold in other processes too?
 *
 * How fast a kernel that waits for memory runs depends on the physical pages that its process was
 * given, by a percent or two, for as long as the process lives: pairs and control pairs know
 * nothing of it, since each side stays in its process.  On a CPU pages are renewed during a
 * comparison (benchmark.c); on a device a call that is as close as that is asked again in fresh
 * processes of both sides, a few pairs in each, and what is said of the ratio is what the medians
 * of all processes say together.
 *
 *   [ 30 pairs and controls ]   [ fresh: 8 pairs ] [ fresh: 8 pairs ] ...
 *        close, not the same      mean of the logarithms, Student's t
 *
 * A script stays where it is: its interpreter takes seconds to come up.  Then the candidate's
 * processes alone tell how far processes lie apart, and the script's one is taken to lie as far
 * from its mean as one of theirs may.  Source of the quantiles: any table of Student's t.
 * SPDX-License-Identifier: Apache-2.0 */
#include "benchmark_impl.h"

#include "base/fs.h"
#include "base/log.h"

#include <math.h>
#include <string.h>

enum { ROUND_PAIRS = 8, ROUND_PAIRS_LEAST = 4 };
static const double CLOSE = 0.05;
/* 97.5 %, from one degree of freedom on. */
static const double STUDENT[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706};
_Static_assert(KL_COUNT(STUDENT) >= ROUNDS, "a quantile for every number of processes");

typedef struct {
    double ratios[ROUNDS + 1], candidate_ns[ROUNDS + 1], baseline_ns[ROUNDS + 1];
    int n;
} rounds;

/* ---- what processes say together --------------------------------------------------------- */

static double mean_of_logs(const double *ratios, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += log(ratios[i]);
    return sum / n;
}

static double spread_of_logs(const double *ratios, int n, double mean) {
    double squares = 0;
    for (int i = 0; i < n; i++) squares += (log(ratios[i]) - mean) * (log(ratios[i]) - mean);
    return n > 1 ? sqrt(squares / (n - 1)) : 0;
}

kl_interval kli_rounds_interval(const double *ratios, int n, kl_interval first, bool one_stays) {
    KL_ASSERT(n >= 1 && n <= ROUNDS + 1 && first.low > 0 && first.low <= first.high);
    const double mean = mean_of_logs(ratios, n), share = 1.0 / n + (one_stays ? 1 : 0);
    double half = log(first.high / first.low) / 2;
    if (n > 1) half = fmax(half, STUDENT[n - 2] * spread_of_logs(ratios, n, mean) * sqrt(share));
    if (n < FEW_PROCESSES) half = fmax(half, log(1 + CLOSE)); /* it may be anywhere so close */
    return (kl_interval){exp(mean), exp(mean - half), exp(mean + half)};
}

/* ---- one round --------------------------------------------------------------------------- */

static bool script_stays(const kli_benchmark *r) {
    return r->baseline.executable->artefact.kind == KL_ARTEFACT_SCRIPT;
}

/* In every other round the baseline is the first to take memory: what the device gives first may be
 * the better part.  What is wrong with it shows where both enter. */
static void baseline_first(kli_benchmark *r) {
    kl_fault fault = {0};
    (void)!kli_executable_enter(r->baseline.executable, r->problem, r->c, 0, 1, &fault,
                                kl_ignored());
}

/* Digests are under a key of each process, and outputs that stayed on the device are gone.  Nobody
 * is timed meanwhile, and the comparison's clock stands still. */
static kl_err fresh_processes(kli_benchmark *r, int round, kli_check_outcome *f, kl_error *e) {
    const int64_t start = kli_now_ns();
    const bool stays = script_stays(r);
    r->digests.problem = NULL;
    memset(r->problem->outputs, 0, sizeof r->problem->outputs);
    kl_err err = kli_executable_restart(&r->c->candidate, r->c, e);
    if (!err && !stays) err = kli_executable_restart(r->baseline.executable, r->c, e);
    if (!err && !stays && round % 2) baseline_first(r);
    if (!err) err = kli_benchmark_enter(r, f, e);
    r->start_ns += kli_now_ns() - start;
    return err;
}

/* A batch of each side is no sample: the first of a process. */
static kl_err warm_up(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    double ns = 0;
    kl_err err = kli_benchmark_half(r, &r->candidate, 0, false, &ns, f, e);
    if (!err && f->ok) err = kli_benchmark_half(r, &r->baseline, 0, false, &ns, f, e);
    return err;
}

static kl_err time_round(kli_benchmark *r, int round, kli_check_outcome *f, kl_error *e) {
    kl_err err = fresh_processes(r, round, f, e);
    if (err || !f->ok) return err;
    r->pairs = r->left_out = 0;
    r->pair_index += r->pair_index & 1; /* each side leads as often */
    kli_next_hold(r->c);
    err = warm_up(r, f, e);
    for (int i = 1; i <= ROUND_PAIRS && !err && f->ok; i++)
        err = kli_benchmark_pair(r, i == ROUND_PAIRS, f, e);
    kli_next_go_on(r->c);
    return err;
}

/* ---- all of them ------------------------------------------------------------------------- */

/* Where hardly a pair was whole, a round has said nothing. */
static void note_round(rounds *all, const kli_benchmark *r, kl_comparison *m) {
    double steadier[ROUND_PAIRS];
    m->pairs += r->pairs;
    m->left_out += r->left_out;
    KL_ASSERT(r->pairs <= ROUND_PAIRS && all->n < (int)KL_COUNT(all->ratios));
    if (r->pairs < ROUND_PAIRS_LEAST) return;
    const size_t n = kli_steadier(steadier, r->ratios, r->led, r->pairs);
    all->ratios[all->n] = kli_median(steadier, n);
    all->candidate_ns[all->n] = kli_median(r->candidate_ns, (size_t)r->pairs);
    all->baseline_ns[all->n] = kli_median(r->baseline_ns, (size_t)r->pairs);
    kli_debug("process %d: ratio %.5g", all->n + 1, all->ratios[all->n]);
    all->n++;
}

static void conclude_rounds(const kli_benchmark *r, const rounds *all, kl_comparison *m) {
    const kl_interval first = {m->ratio, m->low, m->high},
                      ci = kli_rounds_interval(all->ratios, all->n, first, script_stays(r));
    m->ratio = ci.median;
    m->low = ci.low;
    m->high = ci.high;
    m->candidate_ns = kli_median(all->candidate_ns, (size_t)all->n);
    m->baseline_ns = kli_median(all->baseline_ns, (size_t)all->n);
    m->processes = all->n;
    m->stable = all->n >= FEW_PROCESSES;
    m->call = kl_decide(m->low, m->high, m->noise, m->stable);
    if (r->c->verdict->n_comparisons == 0) r->c->unrepeated = !m->stable;
}

static bool is_close_call(const kli_benchmark *r, const kl_comparison *m) {
    const bool differs = m->call == KL_DECISION_FASTER || m->call == KL_DECISION_SLOWER;
    return !r->c->backend->shared_memory && r->baseline.executable != &r->c->candidate &&
           m->stable && differs && fabs(log(m->ratio)) <= log(1 + CLOSE);
}

static bool no_time_is_left(const kli_benchmark *r) {
    const double asked = r->c->opts->max_seconds, cap = asked > 0 ? asked : KL_PROFILE_SECONDS;
    return (double)(kli_now_ns() - r->start_ns) * 1e-9 >= 3 * cap;
}

static void say_round(const kli_benchmark *r, int round, int most) {
    char text[64];
    if (!r->c->opts->progress) return;
    (void)snprintf(text, sizeof text, "a close call: processes %d of %d", round + 1, most + 1);
    r->c->opts->progress(r->c->opts->progress_ctx, KL_STAGE_PROFILE, text);
}

kl_err kli_rounds_repeat(kli_benchmark *r, kl_comparison *m, kli_check_outcome *f, kl_error *e) {
    if (!is_close_call(r, m)) return KL_OK;
    const int most = r->c->opts->quick ? ROUNDS_QUICK : ROUNDS;
    rounds all = {.ratios = {m->ratio},
                  .candidate_ns = {m->candidate_ns},
                  .baseline_ns = {m->baseline_ns},
                  .n = 1};
    for (int round = 1; round <= most && !no_time_is_left(r); round++) {
        say_round(r, round, most);
        const kl_err err = time_round(r, round, f, e);
        if (err || !f->ok) return err;
        note_round(&all, r, m);
    }
    conclude_rounds(r, &all, m);
    return KL_OK;
}
