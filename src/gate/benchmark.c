/* benchmark.c - the candidate against one baseline: how fast?
 *
 * One comparison is a sequence of pairs.  In a pair, candidate and baseline run right after each
 * other on the same input sets and the same pages, in balanced random order; the result is the
 * median, with a bootstrap interval, of the ratios, each that of a pair which one side led and one
 * which the other did.  Drift of clocks, heat and neighbours
 * hits both halves of a pair and cancels.  Between them, control pairs time the faster side against
 * itself: their interval around 1 is this run's A/A noise, and a difference inside twice the floor
 * is called "same".
 *
 *   pair:  [ C B ] [ B C ] [ F F' ] [ B C ] [ C B ] [ F F' ] ...        now and then: fresh
 * physical pages (CPU)
 *
 * A pair in which the scheduler took a core away from the batch or from the clock is left out as a
 * whole, by the scheduler's word alone (backend/runner_watch.c), and counted.  Where most are left
 * out the batches become shorter, so that more fit between two switches. Stop: half-width <= 0.5 %
 * after at least 30 pairs and 0.3 s, or from the fourth pair on where an interval that holds at
 * every look (base/sequential.h) lies outside [1/1.5, 1.5]; cap 10 s. Timed batches are checked
 * like any other run, every one of them (digest.c).  Now and then, outside the clock, a batch of
 * the candidate ends early: calls that were made must have their answers, slots of calls that were
 * not must be untouched. Sources: the pairing and its measured effect are in docs/gate.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "benchmark_impl.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/sequential.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHAPE_PAIRS = 6, /* pairs on one set of physical pages: 5 allocations in the first 30 pairs */
    LATER_PAIRS =
        30, /* after those, pages change the median no more and cost more than they tell */
    CONTROL_EVERY = 2, /* one control pair after so many pairs; after each on a host that is noisy:
                          soon they are enough to speak for themselves */
    EARLY_PAIRS = 5,
    CLEAR_PAIRS = 4, /* of a difference that is clear */
    MAX_EVENTS = 64,
    FEW_EVENTS = 8,    /* on a device whose inputs are restored from the host before every call */
    FEW_LAUNCHES = 64, /* likewise, in a graph */
    AUDIT_ONE_IN = 12, /* a timed batch in so many has all its guards and inputs looked at on a
                          device, at random; the last always has */
    SHORTER = 4,
    FEW_CALLS = 8, /* of a batch that is no longer than BATCH_NS: a kernel that leaves out every so
                      manieth call is caught by those that follow one another in a process */
    ESTIMATES = 3, /* whole samples */
    MOST_ESTIMATES = 9, /* whole or not */
    ENOUGH_SETS =
        64, /* a kernel that works by what it is given leaves out one of so many, at least */
    MANY_SETS = 32,   /* so many copies of the inputs lie on pages enough of their own */
    FEW_COUPLES = 5,  /* below this single pairs say more */
    FEW_CONTROLS = 5, /* below this their median has no interval worth the name */
    SHORT_EVERY = 8   /* pairs from one to the next, at most */
};

static const uint64_t SHORT_CALLS = 1ull << 40, SHORT_PLACE = 1ull << 41,
                      SHORT_MOMENT = 1ull << 42; /* draws */
/* A batch is so long that a handshake which was subtracted by mistake would be a fifth of a percent
 * of it, within bounds, and no longer: what others take of the memory bus does not average out over
 * milliseconds, so more pairs tell more than longer ones.  A tick of the clock of a runner that
 * shares its process with the kernel fits in the longest. */
static const double BATCH_HANDSHAKES = 500;
static const double SHORT_BATCH_NS = 2e5;
static const double BATCH_NS = 5e6;
static const double LONG_BATCH_NS = 1.3e7; /* of one, with every input set; no sample */
static const uint64_t BATCH_BYTES =
    8ull << 20; /* poisoned, mapped, read and hashed around every batch */
static const double GRAPH_BELOW_NS =
    50e3; /* shorter kernels drown in launch latency when timed one by one */
static const double WARM_BELOW_NS =
    5e5; /* in a longer batch cold instruction caches are noise, and a warm call costs a process */
static const double MOST_EXCHANGE =
    0.75; /* of a single call's sample: it would make a batch three times too short */
static const double SLOW_NS = 1e7; /* a call that finds its caches and clocks as it leaves them */
static const double CAP_HALF_WIDTH = 0.01;
static const double FAR = 1.5;            /* beyond this factor nobody needs half a percent */
static const double FAR_WIDTH = 0.2;      /* of the logarithm's interval */
static const double FAR_WIDTH_SLOW = 0.5; /* after a third of the time that there is */
static const double FAR_SHARE = 0.15;     /* of the distance: of a tenth nobody needs a tenth */
/* Share of comparisons whose early end is wrong, at most: one in twenty.  With these the median's
 * interval is there after eight pairs, and wild ones do not keep the mean's from ending after four
 * where there are none. */
static const double MISSES_OF_MEAN = 0.01, MISSES_OF_MEDIAN = 0.04;
static const uint64_t DRAWN_BYTES = 2ull << 30, /* of input sets on a device, at most, ... */
    DEVICE_BYTES = 8ull << 30;                  /* ... and of slots; both sides have their own */
enum { PATIENCE_TIMES = 100 };
enum { DRAWN_PART = 32, DEVICE_PART = 8 }; /* so much of its memory is less on a small one */

static uint32_t more_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

static double real_or(double v, double otherwise) { return v > 0 ? v : otherwise; }

/* ---- one sample -------------------------------------------------------------------------- */

/* Inputs that are updated in place are restored from the shared pages, to which a fetch brought the
 * last results. */
static bool has_mutable(const kl_plan *p) {
    for (uint32_t i = 0; i < p->n_tensors; i++)
        if (kli_is_mutable(p, i)) return true;
    return false;
}

static void ready_slots(kli_benchmark *r, uint32_t calls, uint32_t first, uint32_t warm,
                        uint8_t poison) {
    if (!r->c->backend->shared_memory && !has_mutable(&r->problem->plan))
        return; /* the runner poisons device memory itself */
    const uint32_t total = calls + warm < r->problem->n_slots ? calls + warm : r->problem->n_slots;
    for (uint32_t j = 0; j < total; j++)
        kli_problem_ready_slot(r->problem, (first + j) % r->problem->n_sets,
                               (first + j) % r->problem->n_slots, poison);
}

static uint32_t warm_calls(const kli_benchmark *r, const kli_side *s) {
    return r->method == KL_TIME_BATCH ? s->estimate_ns * s->calls < WARM_BELOW_NS
                                      : s->estimate_ns <= SLOW_NS;
}

/* So many times what its calls took before; the most of a kernel that is not known yet.  Who ran
 * and does not end when it is timed hangs. */
static int64_t patience_for(const kli_benchmark *r, const kli_side *s, uint32_t calls) {
    const bool own = s->executable == &r->c->candidate;
    const double one_ns = fmax(s->estimate_ns, own ? (double)r->c->checked_ns : 0);
    const double limit_ns = one_ns > 0 ? PATIENCE_TIMES * one_ns * calls : PROFILE_PATIENCE_NS;
    return (int64_t)fmin(fmax(limit_ns, PROFILE_PATIENCE_LEAST_NS), PROFILE_PATIENCE_NS);
}

static kl_err time_sample(kli_benchmark *r, const kli_side *s, uint32_t first, uint8_t poison,
                          double *ns, kl_fault *fault, kl_error *e) {
    const uint32_t warm = warm_calls(r, s);
    kl_time_request q = {.method = r->method,
                         .first = first,
                         .calls = s->calls,
                         .warm = warm,
                         .poison = poison,
                         .flush = r->method == KL_TIME_EVENTS,
                         .freeze = !s->executable->trusted}; /* and its outputs are read */
    KL_ASSERT(s->calls >= 1 && (s->calls <= MAX_EVENTS || r->method != KL_TIME_EVENTS));
    double values[MAX_EVENTS];
    ready_slots(r, s->calls, first, warm, poison);
    const int64_t start = kli_now_ns();
    const kl_err err = kli_runner_time(s->executable->runner, fault, values, &q,
                                       patience_for(r, s, s->calls + warm), e);
    if (err || fault->kind) return err;
    const kl_sample clock = kli_runner_sample(s->executable->runner);
    r->disturbed |= clock.preempted || clock.late || clock.stolen;
    *ns = r->method == KL_TIME_EVENTS ? kli_median(values, s->calls) : values[0];
    if (!clock.late && (!(*ns > 0) || !isfinite(*ns))) {
        fault->kind = KL_FAULT_PROTOCOL;
        snprintf(fault->text, sizeof fault->text, "it reported a time of %g ns", *ns);
    }
    kli_debug("%.*s: %u calls of %.4f us, %.2f ms around them", KL_STR_ARG(s->executable->name),
              s->calls, *ns * 1e-3, ((double)(kli_now_ns() - start) - *ns * s->calls) * 1e-6);
    r->timed_ns += *ns * s->calls;
    r->c->run_ns += (int64_t)(*ns * s->calls);
    return KL_OK;
}

/* A device that gives no digests: all outputs come back. */
static kl_err bring_all(kli_benchmark *r, kli_batch *b, kl_fault *fault, kl_error *e) {
    const uint32_t n_slots = r->problem->n_slots, n = b->calls < n_slots ? b->calls : n_slots;
    kl_err err = KL_OK;
    for (uint32_t j = 0; j < n && !err && !fault->kind; j += KL_FETCH_SLOTS) {
        uint32_t slots[KL_FETCH_SLOTS], k = 0;
        for (; k < KL_FETCH_SLOTS && j + k < n; k++) slots[k] = (b->first + j + k) % n_slots;
        err = kli_runner_fetch(r->c->candidate.runner, fault, slots, k, b->poison, e);
    }
    b->here = true;
    return err;
}

/* Guards and inputs of a whole batch on a device, which was not told that they would be looked at.
 */
static kl_err audit_batch(kli_benchmark *r, kli_batch *b, kli_check_outcome *f, kl_error *e) {
    kl_fault fault = {0};
    kl_err err = kli_runner_audit(r->c->candidate.runner, &fault, b->first, b->calls, b->poison, e);
    if (!err && !fault.kind && !b->digests) err = bring_all(r, b, &fault, e);
    if (!err) kli_check_outcome_of_fault(f, r->c, &fault, "while it was timed");
    return err;
}

/* Every call of the candidate's batch that just ran.  What is looked at here is no part of the
 * comparison, and its clock stands still. */
static kl_err check_batch(kli_benchmark *r, uint32_t first, uint32_t calls, uint8_t poison,
                          bool audit, kli_check_outcome *f, kl_error *e) {
    const int64_t start = kli_now_ns();
    kli_batch b = {.first = first,
                   .calls = calls,
                   .poison = poison,
                   .here = r->c->backend->shared_memory,
                   .digests = kli_runner_digests(r->c->candidate.runner, calls),
                   .blank = kli_runner_blank_digest(r->c->candidate.runner)};
    r->undigested = !b.here && !b.digests;
    kl_err err = audit && !b.here ? audit_batch(r, &b, f, e) : KL_OK;
    if (!err && f->ok && (b.here || b.digests))
        err = kli_digests_judge(&r->digests, r->c, r->problem, &b, f, e);
    r->start_ns += kli_now_ns() - start;
    return err;
}

/* ---- pairs ------------------------------------------------------------------------------- */

static kl_err baseline_fault(const kli_benchmark *r, const kl_fault *fault, kl_error *e) {
    kli_executable_stop(r->baseline.executable); /* the next verdict starts it afresh */
    return kl_fail(e, KL_EBASELINE, r->baseline.executable->name.ptr,
                   "the baseline failed while it was timed: %s", fault->text);
}

kl_err kli_benchmark_half(kli_benchmark *r, const kli_side *s, uint32_t first, bool check,
                          double *ns, kli_check_outcome *f, kl_error *e) {
    const uint8_t poison =
        kli_stream_u64(r->order, 500000u + r->pair_index) & 1 ? KL_POISON_BITS : KL_POISON_NAN;
    const bool own = s->executable == &r->c->candidate;
    kl_fault fault = {0};
    kl_err err = time_sample(r, s, first, poison, ns, &fault, e);
    if (err) return err;
    if (fault.kind && !own) return baseline_fault(r, &fault, e);
    kli_check_outcome_of_fault(f, r->c, &fault, "while it was timed");
    return f->ok && own ? check_batch(r, first, s->calls, poison, check, f, e) : KL_OK;
}

/* Batches begin anywhere in the rotation, except graphs: those use nearly every slot, and a new
 * beginning is a new graph to build. */
static uint32_t first_call(const kli_benchmark *r) {
    if (r->method == KL_TIME_GRAPH) return 0;
    return (uint32_t)kli_stream_below(r->order, 2000000u + r->pair_index,
                                      r->problem->n_slots * r->problem->n_sets);
}

/* One slot for every call from here on, so that each can be compared. */
static void one_slot_a_call(kli_benchmark *r) {
    const uint32_t most = r->problem->n_slots;
    if (!r->digests.differs) return;
    if (r->candidate.calls > most) r->candidate.calls = most;
    if (r->baseline.calls > most) r->baseline.calls = most;
}

static void record_pair(kli_benchmark *r, bool candidate_led, double candidate_ns,
                        double baseline_ns) {
    const bool left = r->disturbed && r->left_out < MAX_PAIRS;
    KL_ASSERT(candidate_ns >= 0 && baseline_ns >= 0);
    KL_ASSERT(r->pairs < MAX_PAIRS + 2);
    const int at = left ? r->left_out++ : r->pairs++;
    if (!left) r->led[at] = candidate_led;
    (left ? r->left_ratios : r->ratios)[at] = candidate_ns > 0 ? baseline_ns / candidate_ns : 1;
    (left ? r->left_candidate_ns : r->candidate_ns)[at] = candidate_ns;
    (left ? r->left_baseline_ns : r->baseline_ns)[at] = baseline_ns;
}

kl_err kli_benchmark_pair(kli_benchmark *r, bool last, kli_check_outcome *f, kl_error *e) {
    const uint32_t first = first_call(r);
    const bool check =
        last || r->candidate.estimate_ns > SLOW_NS || /* a look costs less than such a call */
        kli_stream_below(r->digests.draws, ~(uint64_t)r->pair_index, AUDIT_ONE_IN) == 0;
    /* Balanced: of two consecutive pairs one begins with each side; which one is drawn. */
    const bool flip = kli_stream_u64(r->order, 4000000u + r->pair_index / 2) & 1;
    const bool candidate_leads = (r->pair_index % 2 == 0) != flip;
    double a = 0, b = 0;
    kl_err err = KL_OK;
    r->disturbed = false;
    for (int half = 0; half < 2 && !err && f->ok; half++) {
        if ((half == 0) == candidate_leads)
            err = kli_benchmark_half(r, &r->candidate, first, check, &a, f, e);
        else
            err = kli_benchmark_half(r, &r->baseline, first, false, &b, f, e);
    }
    r->pair_index++;
    r->checked_last = check;
    one_slot_a_call(r);
    if (err || !f->ok) return err;
    record_pair(r, candidate_leads, a, b);
    return KL_OK;
}

static kl_err run_control(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    const kli_side *s =
        r->candidate.estimate_ns * r->candidate.calls < r->baseline.estimate_ns * r->baseline.calls
            ? &r->candidate
            : &r->baseline;
    const uint32_t first = first_call(r);
    double a = 0, b = 0;
    r->disturbed = false;
    kl_err err = kli_benchmark_half(r, s, first, false, &a, f, e);
    if (!err && f->ok) err = kli_benchmark_half(r, s, first, false, &b, f, e);
    r->pair_index += 2; /* keep the parity that balances the order */
    if (err || !f->ok || !(a > 0 && b > 0)) return err;
    KL_ASSERT(r->n_controls < MAX_PAIRS + 2);
    if (!r->disturbed) { /* of two in a row each half leads once, as in pairs */
        r->control_led[r->n_controls] = r->n_controls % 2 == 0;
        r->controls[r->n_controls] = r->n_controls % 2 == 0 ? a / b : b / a;
        r->n_controls++;
    } else if (r->n_left_controls < MAX_PAIRS)
        r->left_controls[r->n_left_controls++] = a / b;
    return err;
}

/* ---- batches that end early -------------------------------------------------------------- */

/* Two in a row differ by one call: work that is done in groups of calls, ahead or late, cannot end
 * with a group in both. */
static uint32_t short_calls(const kli_benchmark *r) {
    KL_ASSERT(r->candidate.calls > 1);
    const uint32_t most = r->candidate.calls - 1;
    const uint32_t calls =
        1 + (uint32_t)kli_stream_below(r->digests.draws, SHORT_CALLS + r->shorts / 2, most);
    return r->shorts % 2 == 0 ? calls : calls < most ? calls + 1 : calls > 1 ? calls - 1 : 1;
}

/* In pages that both sides see: slots of the whole batch whose calls were not made. */
static void check_idle_slots(kli_benchmark *r, uint32_t first, uint32_t from, uint32_t to,
                             uint8_t poison, kli_check_outcome *f) {
    for (uint32_t j = from; j < to && f->ok; j++)
        if (!kli_slot_is_ready(r->problem, (first + j) % r->problem->n_sets,
                               (first + j) % r->problem->n_slots, poison))
            *f = (kli_check_outcome){
                .outcome = KL_OUTCOME_WRONG,
                .why =
                    KL_S("while it was timed: it wrote to the output of a call that was not made")};
}

/* The slots are those of a whole batch, and so is all that the kernel can see, except that it ends
 * after `calls`: before a batch does, or long after.  No sample. */
static kl_err time_other(kli_benchmark *r, uint32_t calls, kli_check_outcome *f, kl_error *e) {
    const bool shared = r->c->backend->shared_memory, audit = r->undigested;
    const uint64_t draw = kli_stream_u64(r->digests.draws, SHORT_PLACE + r->shorts);
    const uint32_t n_slots = r->problem->n_slots, slots = more_of(calls, r->candidate.calls),
                   whole = slots < n_slots ? slots : n_slots;
    const uint32_t first =
        r->method == KL_TIME_GRAPH ? 0 : (uint32_t)(draw >> 1) % (n_slots * r->problem->n_sets);
    const uint8_t poison = draw & 1 ? KL_POISON_BITS : KL_POISON_NAN;
    const kl_time_request q = {.method = r->method,
                               .first = first,
                               .calls = calls,
                               .warm = warm_calls(r, &r->candidate),
                               .poison = poison,
                               .alone = true,
                               .freeze = shared};
    double values[MAX_EVENTS];
    kl_fault fault = {0};
    ready_slots(r, slots, first, q.warm, poison);
    kl_err err = kli_runner_time(r->c->candidate.runner, &fault, values, &q,
                                 patience_for(r, &r->candidate, calls + q.warm), e);
    if (err) return err;
    if (!fault.kind) r->c->run_ns += (int64_t)(values[0] * calls);
    kli_check_outcome_of_fault(f, r->c, &fault, "while it was timed");
    if (f->ok && shared) check_idle_slots(r, first, calls, whole, poison, f);
    return f->ok ? check_batch(r, first, calls, poison, audit, f, e) : KL_OK;
}

/* Launches that are timed one by one need none: each is looked at before the next begins. */
kl_err kli_benchmark_short(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    const int64_t benchmark_start = r->start_ns, begin = kli_now_ns();
    kl_err err = KL_OK;
    if (r->method != KL_TIME_EVENTS && r->candidate.calls > 1)
        err = time_other(r, short_calls(r), f, e);
    r->shorts++;
    r->next_short +=
        1 + (int)kli_stream_below(r->digests.draws, SHORT_MOMENT + r->shorts, SHORT_EVERY);
    r->start_ns = benchmark_start + (kli_now_ns() - begin); /* no part of the comparison */
    return err;
}

/* Where timed batches have fewer calls than there are input sets, one that has them all: what a
 * kernel does on one set in so many, or on its so manieth call, it does there. */
kl_err kli_benchmark_long(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    const uint32_t sets = r->problem->n_sets;
    const bool drawn_for_batches = sets < r->problem->n_slots; /* else those of the checked runs */
    if (!r->c->backend->shared_memory || !drawn_for_batches || sets <= r->candidate.calls)
        return KL_OK;
    return time_other(r, sets, f, e);
}

static uint32_t shorts_wanted(const kli_benchmark *r) {
    return r->c->opts->quick ? SHORT_BATCHES_QUICK : SHORT_BATCHES;
}

/* The last one is kept for the end. */
static bool short_is_due(const kli_benchmark *r) {
    return r->shorts + 1 < shorts_wanted(r) && r->pairs + r->left_out >= r->next_short;
}

/* ---- stop rule and result ---------------------------------------------------------------- */

size_t kli_couples(double *out, const double *ratios, const bool *led, int n) {
    size_t found = 0;
    KL_ASSERT(n >= 0 && n <= MAX_PAIRS + 2);
    for (int a = 0, b = 0; a < n && b < n; a++, b++) {
        while (a < n && !led[a]) a++;
        while (b < n && led[b]) b++;
        if (a < n && b < n) out[found++] = sqrt(ratios[a] * ratios[b]);
    }
    KL_ASSERT(2 * found <= (size_t)n); /* no pair is in two */
    return found;
}

size_t kli_steadier(double *out, const double *ratios, const bool *led, int n) {
    const size_t couples = kli_couples(out, ratios, led, n);
    if (couples >= FEW_COUPLES && kli_mad(out, couples) * sqrt(2) <= kli_mad(ratios, (size_t)n))
        return couples;
    memcpy(out, ratios, (size_t)n * sizeof *out);
    return (size_t)n;
}

static kl_interval interval_of(const kli_benchmark *r, const double *ratios, const bool *led,
                               int n) {
    double steadier[MAX_PAIRS + 2];
    KL_ASSERT(n <= (int)KL_COUNT(steadier));
    return kli_bootstrap_median(steadier, kli_steadier(steadier, ratios, led, n), 1000, 0.95,
                                r->order);
}

static kl_interval benchmark_interval(const kli_benchmark *r) {
    return interval_of(r, r->ratios, r->led, r->pairs);
}

/* Of the logarithm of the ratio, at any look: the mean's tell after four pairs, the median's not
 * before eight, and single wild pairs do not widen them. */
static kli_bounds sequential_bounds(const kli_benchmark *r) {
    double logs[MAX_PAIRS + 2];
    kli_sequence q = {0};
    KL_ASSERT(r->pairs <= (int)KL_COUNT(logs));
    for (int i = 0; i < r->pairs; i++) {
        if (!(r->ratios[i] > 0)) continue;
        logs[q.n] = log(r->ratios[i]);
        kli_sequence_add(&q, logs[q.n]);
    }
    const kli_bounds mean = kli_sequence_bounds(&q, MISSES_OF_MEAN),
                     median = kli_median_bounds(logs, q.n, MISSES_OF_MEDIAN);
    return median.high - median.low < mean.high - mean.low ? median : mean;
}

static void widen_noise(kl_comparison *m, const double *controls, int n) {
    for (int i = 0; i < n; i++) {
        m->aa_low = fmin(m->aa_low, controls[i]);
        m->aa_high = fmax(m->aa_high, controls[i]);
    }
}

/* The A/A noise.  Of a few controls an interval would promise too much, so there the widest counts:
 * among them those that were left out, unless the ratio itself settled; and what is known of this
 * host from before, where that is wider still.  Where controls told nothing, it decides nothing. */
static void measure_noise(const kli_benchmark *r, kl_comparison *m, bool stable) {
    const bool all = !stable || r->n_controls < 2;
    if (r->n_controls >= FEW_CONTROLS) {
        const kl_interval aa = interval_of(r, r->controls, r->control_led, r->n_controls);
        m->aa_low = aa.low;
        m->aa_high = aa.high;
    } else if (r->n_controls + r->n_left_controls > 1) {
        m->aa_low = m->aa_high = 1;
        widen_noise(m, r->controls, r->n_controls);
        if (all) widen_noise(m, r->left_controls, r->n_left_controls);
    } else {
        return; /* unknown */
    }
    m->noise = fmax(fabs(m->aa_low - 1), fabs(m->aa_high - 1));
    if (r->n_controls < FEW_CONTROLS && r->recorded > m->noise)
        m->noise = m->recorded = r->recorded;
}

static void describe_controls(const kli_benchmark *r, kl_comparison *m) {
    if (r->n_controls < 2) return;
    m->aa_spread = kli_relative_spread(r->controls, (size_t)r->n_controls);
    m->aa_cv = kli_cv(r->controls, (size_t)r->n_controls);
}

/* Lost, or so far from 1 that a few pairs tell: by an interval that may be looked at all the time,
 * where the bootstrap's would be wrong more often the more often it is asked.  One bad control
 * among few is noise enough to hide the difference; then it is not clear yet. */
static bool is_clear(const kli_benchmark *r, const kl_gate_opts *o, bool slow) {
    const kli_bounds b = sequential_bounds(r);
    if (o->abandon_below > 0 && b.high < log(o->abandon_below)) return true;
    const double distance = fmax(b.low, -b.high), /* of 1 from the interval */
        width = fmax(slow ? FAR_WIDTH_SLOW : FAR_WIDTH, FAR_SHARE * distance);
    if (!(distance > log(FAR)) || b.high - b.low > width) return false;
    kl_comparison m = {0};
    measure_noise(r, &m, true);
    const kl_decision call = kl_decide(exp(b.low), exp(b.high), m.noise, true);
    return call == KL_DECISION_FASTER || call == KL_DECISION_SLOWER;
}

kli_advice kli_benchmark_advice(const kli_benchmark *r, const kl_gate_opts *o) {
    const double elapsed_s = (double)(kli_now_ns() - r->start_ns) * 1e-9;
    const double cap = real_or(o->max_seconds, KL_PROFILE_SECONDS);
    const double min_pairs = real_or(o->min_pairs, o->quick ? 10 : 30);
    const int tried = r->pairs + r->left_out;
    const bool over = elapsed_s >= cap || r->pairs == MAX_PAIRS || r->left_out == MAX_PAIRS,
               late = elapsed_s >= 3 * cap;
    if (over && (late || tried >= CAP_PAIRS) && tried >= 3 && r->pairs < 3) return GIVE_UP;
    const bool slow = elapsed_s > cap / 3, balanced = r->pairs % 2 == 0;
    if (r->pairs >= CLEAR_PAIRS && balanced && r->n_controls > 1 && is_clear(r, o, slow))
        return CLEAR;
    if (r->pairs < EARLY_PAIRS && !(late && r->pairs >= 3)) return GO_ON;
    if (!balanced && !late) return GO_ON;
    if (r->pairs % 10 && r->pairs > 64 && !over) return GO_ON; /* the bootstrap is not free */
    if (r->n_controls == 0)
        return over ? GIVE_UP : GO_ON; /* without its noise a ratio decides nothing */
    const kl_interval ci = benchmark_interval(r);
    const double half = (ci.high - ci.low) / 2 / ci.median;
    /* Batches of nanosecond kernels are mostly preparation: for them three times as much wall time
     * counts as much. */
    const double min_s = real_or(o->min_seconds, o->quick ? 0.05 : 0.3);
    const bool steady = r->pairs >= min_pairs &&
                        (r->timed_ns >= min_s * 1e9 || elapsed_s >= 3 * min_s) &&
                        half <= real_or(o->half_width, o->quick ? 0.01 : 0.005);
    if (over && r->pairs >= CAP_PAIRS && half <= CAP_HALF_WIDTH) return ENOUGH;
    if (over && tried < CAP_PAIRS && !late)
        return GO_ON; /* kernels of a second get as far as that */
    return steady ? ENOUGH : over ? GIVE_UP : GO_ON;
}

/* Where hardly a pair was whole, those that were left out are what is known; the verdict is
 * unstable then. */
static void take_back(kli_benchmark *r) {
    for (int i = 0; i < r->left_out && r->pairs < MAX_PAIRS; i++) {
        if (!(r->left_candidate_ns[i] > 0 && r->left_baseline_ns[i] > 0)) continue;
        r->ratios[r->pairs] = r->left_ratios[i];
        r->candidate_ns[r->pairs] = r->left_candidate_ns[i];
        r->baseline_ns[r->pairs++] = r->left_baseline_ns[i];
    }
}

/* What ended early is as wide as what ended it. */
static kl_interval clear_interval(const kli_benchmark *r) {
    const kli_bounds b = sequential_bounds(r);
    const double median = kli_median(r->ratios, (size_t)r->pairs);
    return (kl_interval){median, fmin(exp(b.low), median), fmax(exp(b.high), median)};
}

/* What one half gains from the other is no speed of the kernel's own. */
static bool falls_in_two(const kli_benchmark *r) {
    double steadier[MAX_PAIRS + 2];
    return kli_bimodal(steadier, kli_steadier(steadier, r->ratios, r->led, r->pairs), 0.02);
}

void kli_benchmark_conclude(kli_benchmark *r, kl_comparison *m, bool stable) {
    if (r->pairs < EARLY_PAIRS && !stable) take_back(r);
    m->baseline = kl_arena_copy(r->c->arena, r->baseline.executable->name);
    m->described =
        kl_arena_copy(r->c->arena, kl_str_of(kli_runner_describe(r->baseline.executable->runner)));
    m->left_out = r->left_out;
    if (r->pairs == 0) return; /* the clock never saw one */
    const kl_interval ci = r->clear ? clear_interval(r) : benchmark_interval(r);
    m->ratio = ci.median;
    m->low = ci.low;
    m->high = ci.high;
    m->baseline_ns = kli_median(r->baseline_ns, (size_t)r->pairs);
    m->candidate_ns = kli_median(r->candidate_ns, (size_t)r->pairs);
    m->pairs = r->pairs;
    m->processes = 1;
    m->controls = r->n_controls;
    m->handshake = kli_runner_handshake_ns(r->candidate.executable->runner) /
                   (m->candidate_ns * r->candidate.calls);
    measure_noise(r, m, stable);
    describe_controls(r, m);
    m->stable = stable;
    m->bimodal = falls_in_two(r);
    m->call = kl_decide(m->low, m->high, m->noise, stable);
}

/* ---- one comparison ---------------------------------------------------------------------- */

kl_err kli_benchmark_enter(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    kl_fault fault = {0};
    const uint32_t sets = r->problem->n_sets;
    kl_err err = kli_executable_enter(&r->c->candidate, r->problem, r->c, 0, sets, &fault, e);
    kli_check_outcome_of_fault(f, r->c, &fault, "on loading for the profile");
    if (err || !f->ok || r->baseline.executable == &r->c->candidate) return err;
    err = kli_executable_enter(r->baseline.executable, r->problem, r->c, 0, sets, &fault, e);
    return !err && fault.kind ? baseline_fault(r, &fault, e) : err;
}

bool kli_pages_are_due(int tried, uint32_t n_sets) {
    const int every = tried < LATER_PAIRS ? SHAPE_PAIRS : LATER_PAIRS;
    return n_sets < MANY_SETS && tried > 0 && (tried == CLEAR_PAIRS / 2 || tried % every == 0);
}

static kl_err fresh_pages(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    if (!r->c->backend->shared_memory ||
        !kli_pages_are_due(r->pairs + r->left_out, r->problem->n_sets))
        return KL_OK;
    const kl_err err = kli_problem_renew(r->problem, r->c, e);
    return err ? err : kli_benchmark_enter(r, f, e);
}

static bool shorten(kli_side *s) {
    const uint32_t part = s->calls / SHORTER, calls = part > 2 ? part : 2; /* as for FEW_CALLS */
    if (calls >= s->calls || calls * s->estimate_ns < SHORTEST_BATCH_NS) return false;
    KL_ASSERT(calls < s->calls);
    s->calls = calls;
    return true;
}

/* Beside other programs a batch lasts longer than a core is left to anybody: shorter ones fit
 * between.  Another batch is another measurement, so it begins again. */
void kli_benchmark_make_way(kli_benchmark *r) {
    if (r->method != KL_TIME_BATCH || r->pairs + r->left_out != CROWDED_PAIRS ||
        4 * r->left_out < 3 * CROWDED_PAIRS)
        return;
    const bool one = shorten(&r->candidate), other = shorten(&r->baseline);
    if (!one && !other) return;
    r->pairs = r->left_out = r->n_controls = r->n_left_controls = 0;
    r->timed_ns = 0;
}

static void say_pairs(const kli_benchmark *r) {
    char text[96];
    snprintf(text, sizeof text,
             r->left_out ? "%d pairs, %d left out (the machine is busy)" : "%d pairs", r->pairs,
             r->left_out);
    r->c->opts->progress(r->c->opts->progress_ctx, KL_STAGE_PROFILE, text);
}

static bool control_is_due(const kli_benchmark *r) {
    return r->recorded > KL_NOISY || (r->pairs + r->left_out) % CONTROL_EVERY == 0;
}

/* Pairs and what lies between them, until the stop rule has had enough. */
static kl_err run_pairs(kli_benchmark *r, kli_advice *a, kli_check_outcome *f, kl_error *e) {
    kl_err err = KL_OK;
    while (!err && f->ok && (*a = kli_benchmark_advice(r, r->c->opts)) == GO_ON) {
        err = fresh_pages(r, f, e);
        if (!err && f->ok) err = kli_benchmark_pair(r, false, f, e);
        const int tried = r->pairs + r->left_out;
        if (!err && f->ok && control_is_due(r)) err = run_control(r, f, e);
        if (!err && f->ok && short_is_due(r)) err = kli_benchmark_short(r, f, e);
        if (!err && r->c->opts->progress && tried % 8 == 0) say_pairs(r);
        if (!err && f->ok) kli_benchmark_make_way(r);
        if (kli_interrupted()) return kl_fail(e, KL_EINTR, "profile", "interrupted");
    }
    return err;
}

/* The last timed batch is always checked; where a difference was clear before it and is no more, it
 * was not the last. */
kl_err kli_benchmark_run(kli_benchmark *r, bool *stable, kli_check_outcome *f, kl_error *e) {
    kl_err err = KL_OK;
    kli_advice a = GO_ON;
    KL_ASSERT(r->pairs == 0 && r->candidate.calls >= 1 && r->baseline.calls >= 1);
    err = kli_benchmark_long(r, f, e);
    r->start_ns = kli_now_ns();
    if (err || !f->ok) return err;
    do {
        err = run_pairs(r, &a, f, e);
        while (!err && f->ok && r->shorts < shorts_wanted(r)) err = kli_benchmark_short(r, f, e);
        if (!err && f->ok && !r->checked_last) err = kli_benchmark_pair(r, true, f, e);
    } while (!err && f->ok && a == CLEAR && !is_clear(r, r->c->opts, true));
    *stable = a == ENOUGH || a == CLEAR;
    r->clear = a == CLEAR;
    return err;
}

/* The floor that this host's record says of the device; 0: none of the last day. */
static double recorded_noise(const kli_evaluation *c) {
    const kl_noise_record *n = c->opts->noise;
    return n && n->fresh > 0 && kl_str_eq(n->device, c->device->name) ? n->noise : 0;
}

kli_benchmark kli_benchmark_new(kli_evaluation *c, kli_problem *problem, kli_executable *baseline,
                                kl_time_method method) {
    kli_benchmark r = {.c = c,
                       .problem = problem,
                       .method = method,
                       .recorded = recorded_noise(c),
                       .order = {kli_seed_derive(c->schedule.key, baseline->name.ptr, 0)}};
    kli_digests_begin(&r.digests, c, baseline->name.ptr);
    r.next_short = 1 + (int)kli_stream_below(r.digests.draws, SHORT_MOMENT, SHORT_EVERY);
    r.candidate.executable = &c->candidate;
    r.baseline.executable = baseline;
    r.ratios = KL_ARRAY(c->arena, double, MAX_PAIRS + 2);
    r.controls = KL_ARRAY(c->arena, double, MAX_PAIRS + 2);
    r.led = KL_ARRAY(c->arena, bool, MAX_PAIRS + 2);
    r.control_led = KL_ARRAY(c->arena, bool, MAX_PAIRS + 2);
    r.candidate_ns = KL_ARRAY(c->arena, double, MAX_PAIRS + 2);
    r.baseline_ns = KL_ARRAY(c->arena, double, MAX_PAIRS + 2);
    r.left_ratios = KL_ARRAY(c->arena, double, MAX_PAIRS);
    r.left_controls = KL_ARRAY(c->arena, double, MAX_PAIRS);
    r.left_candidate_ns = KL_ARRAY(c->arena, double, MAX_PAIRS);
    r.left_baseline_ns = KL_ARRAY(c->arena, double, MAX_PAIRS);
    return r;
}

/* ---- how to time ------------------------------------------------------------------------- */

/* A few unrecorded samples, to choose the method and the batch: the first of one call, which is
 * enough of a slow kernel.  One that was slow in its checked runs needs none.  Samples that lost
 * their core do not count: of a kernel of microseconds they would make a batch of one call.  Where
 * none kept it, a checked run is the better word: too small, it makes a batch longer.  Of native
 * code the first is all: the next would find its inputs in the cache, where those of a batch
 * are not. */
kl_err kli_benchmark_estimate(kli_benchmark *r, kli_side *s, kli_check_outcome *f, kl_error *e) {
    const double checked_ns = (double)r->c->checked_ns;
    const bool own = s->executable == &r->c->candidate;
    if (own && !r->c->backend->parent_clock && checked_ns > SLOW_NS) s->estimate_ns = checked_ns;
    r->disturbed = false;
    const bool native = r->c->backend->id == KL_BACKEND_CPU; /* whose core is exactly known */
    const int wanted = native ? 1 : ESTIMATES;
    int whole = 0;
    for (int i = 0; i < MOST_ESTIMATES && whole < wanted && f->ok; i++) {
        double ns = 0;
        if (s->estimate_ns > (r->disturbed ? 10 * SLOW_NS : SLOW_NS)) break;
        r->disturbed = false;
        s->calls = r->method == KL_TIME_EVENTS && i > 0 ? 3 : 1;
        const kl_err err = kli_benchmark_half(r, s, 0, false, &ns, f, e);
        if (err) return err;
        ns *= 1 - fmin(kli_runner_sample(s->executable->runner).handshake_share, MOST_EXCHANGE);
        if (f->ok && (i == 0 || ns < s->estimate_ns)) s->estimate_ns = ns;
        whole += !native || !r->disturbed;
    }
    if (own && native && !whole && checked_ns > 0)
        s->estimate_ns = fmin(s->estimate_ns, checked_ns);
    return KL_OK;
}

double kli_batch_ns(const kl_backend *b, double handshake_ns) {
    KL_ASSERT(handshake_ns >= 0);
    if (b->id != KL_BACKEND_CPU) return BATCH_NS;
    return fmin(fmax(BATCH_HANDSHAKES * handshake_ns, SHORT_BATCH_NS), BATCH_NS);
}

uint32_t kli_calls_for(double batch_ns, double one_ns, uint32_t most) {
    const double one = one_ns > 1 ? one_ns : 1,
                 n = fmax(ceil(batch_ns / one), fmin(ceil(BATCH_NS / one), FEW_CALLS));
    KL_ASSERT(most >= 1 && n >= 0);
    return n < 1 ? 1 : n > most ? most : (uint32_t)n;
}

uint64_t kli_device_room(int64_t memory, uint64_t most, int part) {
    KL_ASSERT(part > 0);
    return memory > 0 && (uint64_t)memory / (unsigned)part < most
               ? (uint64_t)memory / (unsigned)part
               : most;
}

uint32_t kli_copies_that_fit(const kl_plan *p, bool inputs, uint64_t room, uint32_t most) {
    uint64_t bytes = 2 * KL_GUARD_BYTES;
    for (uint32_t i = 0; i < p->n_tensors; i++)
        if (kli_is_input(p, i) == inputs) bytes += p->tensors[i].bytes + 2 * KL_GUARD_BYTES;
    for (uint32_t i = 0; !inputs && i < p->n_buffers; i++)
        bytes += p->buffers[i].bytes + 2 * KL_GUARD_BYTES;
    const uint64_t fit = room / bytes;
    return fit < 4 ? 4 : most < fit ? most : (uint32_t)fit;
}

/* Every call of a batch has its own inputs and its own slot: with a set used twice, the second call
 * could look the answer up. */
static uint32_t most_calls(const kli_benchmark *r) {
    const bool shared = r->c->backend->shared_memory;
    const int64_t memory = r->c->device->limits.memory;
    const uint64_t of_sets = kli_device_room(memory, DRAWN_BYTES, DRAWN_PART),
                   of_slots = kli_device_room(memory, DEVICE_BYTES, DEVICE_PART);
    const kl_plan *p = &r->problem->plan;
    const uint32_t sets =
                       kli_copies_that_fit(p, true, shared ? SHARED_BYTES : of_sets, KL_MAX_SETS),
                   slots = kli_copies_that_fit(p, false, shared ? SHARED_BYTES : of_slots,
                                               KL_MAX_SETS + 1) -
                           1;
    return sets < slots ? sets : slots;
}

void kli_even_out(uint32_t *one, uint32_t *other) {
    const uint32_t more = more_of(*one, *other);
    KL_ASSERT(*one >= 1 && *other >= 1);
    if (2ull * *one >= more && 2ull * *other >= more) *one = *other = more;
}

uint32_t kli_calls_within(uint32_t calls, uint64_t bytes) {
    const uint64_t fit = bytes ? BATCH_BYTES / bytes : calls,
                   most = fit > FEW_CALLS ? fit : FEW_CALLS;
    KL_ASSERT(calls >= 1);
    return calls < most ? calls : (uint32_t)most;
}

/* Of native code, whose data lie where the other side and the gate have them too. */
static void bound_data(kli_benchmark *r) {
    const kl_layout *l = &r->problem->memory.layout;
    if (r->c->backend->id != KL_BACKEND_CPU) return;
    r->candidate.calls = kli_calls_within(r->candidate.calls, l->set_bytes + l->slot_bytes);
    r->baseline.calls = kli_calls_within(r->baseline.calls, l->set_bytes + l->slot_bytes);
    kli_even_out(&r->candidate.calls, &r->baseline.calls);
}

static void choose_batches(kli_benchmark *r) {
    const double least = fmin(r->candidate.estimate_ns, r->baseline.estimate_ns);
    if (!r->c->backend->parent_clock)
        r->method = least < GRAPH_BELOW_NS ? KL_TIME_GRAPH : KL_TIME_EVENTS;
    const bool events = r->method == KL_TIME_EVENTS;
    const uint32_t all = events ? MAX_EVENTS : most_calls(r),
                   few = events ? FEW_EVENTS : FEW_LAUNCHES;
    const uint32_t most =
        has_mutable(&r->problem->plan) && few < all && !r->c->backend->shared_memory ? few : all;
    const double batch_ns =
        kli_batch_ns(r->c->backend, kli_runner_handshake_ns(r->candidate.executable->runner));
    r->candidate.calls = kli_calls_for(batch_ns, r->candidate.estimate_ns, most);
    r->baseline.calls = kli_calls_for(batch_ns, r->baseline.estimate_ns, most);
    bound_data(r);
}

/* One for every call of a batch.  Those of a short batch are few, and what a kernel does on one set
 * in eight, by a digest of it say, it might do on none: as many then as the longest would have.  */
uint32_t kli_sets_for(double longest_ns, double one_ns, uint32_t calls, uint32_t most) {
    const uint32_t longest = kli_calls_for(longest_ns, one_ns, most);
    return more_of(calls, longest < ENOUGH_SETS ? longest : ENOUGH_SETS);
}

static uint32_t sets_for(const kli_benchmark *r, uint32_t calls) {
    const double one_ns = fmin(r->candidate.estimate_ns, r->baseline.estimate_ns);
    const double longest_ns = r->c->backend->shared_memory ? LONG_BATCH_NS : BATCH_NS;
    return kli_sets_for(longest_ns, one_ns, calls, most_calls(r));
}

/* A problem with a slot for every call of a batch; the real shape's own where three are enough. */
static kl_err scene_for(kli_benchmark *r, kli_problem *real, kli_problem *own, kl_error *e) {
    const uint32_t calls = more_of(r->candidate.calls, r->baseline.calls),
                   sets = sets_for(r, calls);
    if (r->method == KL_TIME_EVENTS || calls + 1 <= real->n_slots) return KL_OK;
    kl_err err = kli_problem_open(own, r->c, r->c->workload, sets, sets + 1, 1, e);
    if (!err) err = kli_problem_expect(own, r->c, 0, e);
    KL_ASSERT(err || (own->n_sets >= calls && own->n_slots > calls)); /* a slot for every call */
    if (!err) r->problem = own;
    return err;
}

static void describe_method(kli_evaluation *c, const kli_benchmark *r) {
    kl_verdict *v = c->verdict;
    const double set_bytes =
        (double)r->problem->memory.layout.set_bytes + (double)r->problem->memory.layout.slot_bytes;
    v->n_sets = (int)r->problem->n_sets;
    v->n_slots = (int)r->problem->n_slots;
    v->calls = (int)r->candidate.calls;
    v->cache_cold = r->method == KL_TIME_EVENTS ||
                    (c->device->l2_bytes > 0 &&
                     set_bytes * r->problem->n_sets >= 3.0 * (double)c->device->l2_bytes);
    if (r->method == KL_TIME_BATCH)
        v->method = kl_arena_printf(
            c->arena,
            "interleaved batches of %u/%u calls, parent clock, fresh process state per batch%s",
            r->candidate.calls, r->baseline.calls,
            r->problem->memory.huge ? ", inputs in huge pages" : "");
    else if (r->method == KL_TIME_EVENTS)
        v->method = kl_arena_printf(
            c->arena, "interleaved, device events around one launch, cache flushed before each");
    else
        v->method =
            kl_arena_printf(c->arena, "interleaved, device events around graphs of %u/%u launches",
                            r->candidate.calls, r->baseline.calls);
}

/* The baseline first: a library's exchanges tell the handshake without a fork for each. */
static kl_err estimate_both(kli_benchmark *r, kli_check_outcome *f, kl_error *e) {
    kli_next_hold(r->c);
    kl_err err = kli_benchmark_estimate(r, &r->baseline, f, e);
    if (!err && f->ok) err = kli_benchmark_estimate(r, &r->candidate, f, e);
    kli_next_go_on(r->c);
    return err;
}

kl_err kli_benchmark_compare(kli_evaluation *c, kli_problem *real, kli_executable *baseline,
                             kl_comparison *m, kli_check_outcome *f, kl_error *e) {
    kli_benchmark r = kli_benchmark_new(c, real, baseline,
                                        c->backend->parent_clock ? KL_TIME_BATCH : KL_TIME_EVENTS);
    kli_problem own = {.memory.inputs_fd = -1, .oracle_memory.inputs_fd = -1};
    bool stable = false;
    kl_err err = kli_benchmark_enter(&r, f, e);
    if (!err && f->ok) err = estimate_both(&r, f, e);
    if (!err && f->ok) {
        choose_batches(&r);
        err = scene_for(&r, real, &own, e);
    }
    if (!err && f->ok) err = kli_benchmark_enter(&r, f, e);
    r.timed_ns = 0;
    r.pair_index = 0;
    kli_next_hold(c);
    if (!err && f->ok) err = kli_benchmark_run(&r, &stable, f, e);
    kli_next_go_on(c);
    if (!err && f->ok) {
        kli_benchmark_conclude(&r, m, stable);
        describe_method(c, &r);
        err = kli_rounds_repeat(&r, m, f, e);
    }
    kli_problem_close(&own);
    return err;
}
