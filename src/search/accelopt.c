/* accelopt.c - policy accelopt: a beam of candidates, plans written out several times each, and a
 * memory of slow and fast pairs.
 *
 * Source: AccelOpt (arXiv 2511.15915) and its release; defaults of its H100 setting.
 *
 *   candidate -- planner --> plan --> executor --> sample      `plans` plans a candidate, `samples`
 * samples a plan ^                      | memory <-- summarizer -- pairs that gained more than
 * t_pos or lost more than t_neg
 *
 * Of every plan the best sample counts; where all lost, the worst is what its summary is about,
 * slow and fast swapped.  The next candidates are the fastest samples of this round alone, so a
 * lost lead stays lost: the best of all is kept apart, by the search.
 *
 * Deviations.  The release's 2 candidates x 4 plans x 2 samples are 44 calls in two rounds, more
 * than small budgets hold: what is not set is derived, so that two rounds fit into the money and
 * the steps that are left.  Rounds go on until an end of the search instead of 16.  The summarizer
 * is told the measured speed-up (the release's template has a place for it that is never filled).
 * Speed is compared by ratios to the same baseline, not by latencies of different minutes.  Samples
 * that did not pass have no speed and teach nothing.  A plan that never came is an empty one, and
 * is executed. No temperature, no thinking budget.  A recording of a run with derived numbers is
 * replayed with those numbers set. SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"
#include "base/rng.h"
#include <string.h>

#define BEAM 2
#define PLANS 4
#define SAMPLES 2

/* Before the first call its cost is not known: that of a large model, so that the first round is
 * rather too small.  Constants, not the price table: a resumed line must take the same way after
 * the table changed. */
#define NOMINAL_INPUT_MICROUSD 5.0 /* a token */
#define NOMINAL_OUTPUT_MICROUSD 25.0
#define NOMINAL_REPLY_TOKENS 3000
#define BYTES_PER_TOKEN 4.0
#define RESERVED_CALLS                                                                             \
    (KL_MODEL_MAX_TOKENS /                                                                         \
     NOMINAL_REPLY_TOKENS) /* a call leaves only when its longest reply could be paid */

const kl_policy_param kli_accelopt_params[] = {
    {"beam", 0, 0, 16, "candidates; 0: 2, fewer where money or steps are short"},
    {"plans", 0, 0, 32, "plans for each candidate; 0: 4, fewer likewise"},
    {"samples", 0, 0, 16, "times that a plan is written out; 0: 2, fewer likewise"},
    {"t_pos", 1.04, 1, 100, "gain above which a pair is worth a summary"},
    {"t_neg", 1.15, 1, 100, "loss above which one is"},
    {"topk", 8, 1, 64, "summaries in a round, half of them at most of gains"},
    {"exp_n", 16, 1, 64, "experiences kept"},
    {"fixer_steps", 0, 0, 8, "repairs of a sample that was rejected"},
    {NULL, 0, 0, 0, NULL}};

/* What came of one plan for one candidate: its correct samples. */
typedef struct {
    const kli_point *from, *best, *worst; /* NULL: none was correct */
} accelopt_trial;

/* How wide a round is. */
typedef struct {
    int beam, plans, samples;
} width;

typedef struct {
    kl_search *s;
    const kli_point **candidates; /* fastest first; a round takes as many as its beam is wide */
    int n_candidates;
    accelopt_trial *trials;
    int n_trials;
    kl_str *memory;
    int n_memory, rounds, calls;
} accelopt;

static int accelopt_param(const accelopt *x, const char *name) {
    return (int)kli_search_param(x->s, name);
}
static int least(int a, int b) { return a < b ? a : b; }

/* ---- how wide a round may be ------------------------------------------------------------- */

static int samples_of(const accelopt *x, int candidates, width w) {
    return candidates * w.plans * w.samples * (1 + accelopt_param(x, "fixer_steps"));
}

static int calls_of(const accelopt *x, int candidates, width w) {
    const int plans = candidates * w.plans;
    return plans + samples_of(x, candidates, w) + least(plans, accelopt_param(x, "topk"));
}

/* Of a call, in micro-dollars. */
static double expected_cost(const accelopt *x) {
    const kl_search *s = x->s;
    const size_t bytes = kli_search_rules(s).len + s->task.len + 2 * s->start.kernel->source.len;
    if (x->calls) return (double)kl_track_spent(s->track) / x->calls;
    return (double)bytes / BYTES_PER_TOKEN * NOMINAL_INPUT_MICROUSD +
           NOMINAL_REPLY_TOKENS * NOMINAL_OUTPUT_MICROUSD;
}

static int steps_left(const accelopt *x) { return x->s->o.max_steps - x->s->out->proposals; }

/* Two rounds at first, then the one that comes. */
static bool fits(const accelopt *x, width w) {
    const int64_t budget = kl_track_budget(x->s->track);
    const int now = least(x->n_candidates, w.beam), then = least(now * w.plans, w.beam);
    int calls = calls_of(x, now, w), samples = samples_of(x, now, w);
    if (!x->rounds) {
        calls += calls_of(x, then, w);
        samples += samples_of(x, then, w);
    }
    if (samples > steps_left(x)) return false;
    const double left = (double)(budget - kl_track_spent(x->s->track));
    return !budget || (calls + RESERVED_CALLS) * expected_cost(x) <= left;
}

/* A second sample says least that is new, then further plans; a beam of one is a plain climb. */
static width narrower(width w, width noise) {
    if (w.samples > noise.samples)
        w.samples--;
    else if (w.plans > noise.plans && (w.plans > 2 || w.beam == noise.beam))
        w.plans--;
    else
        w.beam--;
    return w;
}

static width derive(const accelopt *x) {
    const width set = {accelopt_param(x, "beam"), accelopt_param(x, "plans"),
                       accelopt_param(x, "samples")};
    const width noise = {set.beam ? set.beam : 1, set.plans ? set.plans : 1,
                         set.samples ? set.samples : 1};
    width w = {set.beam ? set.beam : BEAM, set.plans ? set.plans : PLANS,
               set.samples ? set.samples : SAMPLES};
    while (!fits(x, w) &&
           (w.beam > noise.beam || w.plans > noise.plans || w.samples > noise.samples))
        w = narrower(w, noise);
    return w;
}

/* ---- plans ------------------------------------------------------------------------------- */

static kl_str accelopt_memory_text(const accelopt *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->n_memory; i++)
        kl_buf_printf(&b, "%s%.*s\n", i ? "\n" : "", KL_STR_ARG(x->memory[i]));
    return b.len ? kl_str_trim(kl_buf_take(&b, x->s->arena)) : KL_S("None so far.");
}

static kl_err plan(accelopt *x, kl_str *out, const kli_point *from, kl_error *e) {
    kl_prompt_value memory[] = {{"memory", accelopt_memory_text(x)}};
    kl_str text;
    kl_err err = kli_prose_ask(x->s, &text, "plan", "accelopt_plan", from, memory, 1, e);
    x->calls += !err;
    *out = text.len ? kli_prose_quote(x->s->arena, text)
                    : KL_S("None was given: choose one step yourself.");
    return err;
}

/* ---- samples ----------------------------------------------------------------------------- */

static kl_err propose(accelopt *x, kli_outcome *o, const char *purpose, kl_str question,
                      const kli_point *base, kl_error *e) {
    const kl_err err = kli_code_propose(x->s, o, purpose, question, base, e);
    x->calls += !err;
    return err;
}

/* Of a rejected kernel, or of one whose edit did not apply; each repair goes on from the last. */
static kl_err fix(accelopt *x, kli_outcome *o, const kli_point *from, kl_error *e) {
    kli_point base = *from, failed;
    kl_err err = KL_OK;
    for (int i = accelopt_param(x, "fixer_steps"); i > 0 && !err; i--) {
        if (o->done || o->ended >= KLI_UNDECIDED || kli_search_over(x->s)) return KL_OK;
        if (kli_point_failed(x->s, &failed, o, &base)) base = failed;
        kl_prompt_value values[] = {{"feedback", o->feedback}};
        const kl_str question = kli_search_prompt(x->s, "accelopt_fix", &base, values, 1);
        err = propose(x, o, "fix", question, &base, e);
    }
    return err;
}

static void count_sample(accelopt *x, accelopt_trial *t, const kli_outcome *o) {
    if (!kli_point_timed(o)) return;
    kli_point *p = KL_NEW(x->s->arena, kli_point);
    *p = o->point;
    if (!t->best || p->ratio > t->best->ratio) t->best = p;
    if (!t->worst || p->ratio < t->worst->ratio) t->worst = p;
}

static kl_err accelopt_sample(accelopt *x, accelopt_trial *t, kl_str planned, kl_error *e) {
    kli_outcome o;
    kl_prompt_value values[] = {{"plan", planned}};
    const kl_str question = kli_search_prompt(x->s, "accelopt_execute", t->from, values, 1);
    kl_err err = propose(x, &o, "execute", question, t->from, e);
    if (!err) err = fix(x, &o, t->from, e);
    if (!err) count_sample(x, t, &o);
    return err;
}

/* One plan and its samples. */
static kl_err accelopt_attempt(accelopt *x, const kli_point *from, int samples, kl_error *e) {
    kl_str planned;
    accelopt_trial *t = &x->trials[x->n_trials++];
    *t = (accelopt_trial){.from = from};
    kl_err err = plan(x, &planned, from, e);
    for (int k = 0; k < samples && !err && !kli_search_over(x->s); k++)
        err = accelopt_sample(x, t, planned, e);
    return err;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* The sample that a trial is remembered by: the best where one gained, the worst where all lost. */
static const kli_point *telling(const accelopt_trial *t) {
    if (!t->best) return NULL;
    return t->best->ratio > t->from->ratio   ? t->best
           : t->best->ratio < t->from->ratio ? t->worst
                                             : NULL;
}

static double speedup(const accelopt_trial *t) {
    return telling(t) ? telling(t)->ratio / t->from->ratio : 1;
}

/* The trial that gained most (or lost most) among those not taken yet and beyond the threshold;
 * NULL: none is left. */
static const accelopt_trial *next_telling(const accelopt *x, const bool *taken, bool gained) {
    const double t_pos = kli_search_param(x->s, "t_pos"), t_neg = kli_search_param(x->s, "t_neg");
    const accelopt_trial *found = NULL;
    for (int i = 0; i < x->n_trials; i++) {
        const accelopt_trial *t = &x->trials[i];
        const double s = speedup(t);
        const bool beyond = gained ? s > t_pos : s < 1 / t_neg;
        const bool further = !found || (gained ? s > speedup(found) : s < speedup(found));
        if (!taken[i] && beyond && further) found = t;
    }
    return found;
}

/* Puts one more experience behind the `*n` that there are; one that explains nothing is none. */
static kl_err summarize(accelopt *x, kl_str *items, int *n, const accelopt_trial *t, kl_error *e) {
    const kli_point *to = telling(t), *slow = to->ratio < t->from->ratio ? to : t->from;
    const kli_point *fast = slow == to ? t->from : to;
    const kl_str speedup = kl_arena_printf(x->s->arena, "%.3g", fast->ratio / slow->ratio);
    kl_prompt_value values[] = {
        {"slow", slow->kernel->source}, {"fast", fast->kernel->source}, {"speedup", speedup}};
    kl_str text;
    kl_err err = kli_prose_ask(x->s, &text, "summarize", "accelopt_summarize", fast, values,
                               KL_COUNT(values), e);
    x->calls += !err;
    if (err || !text.len || strcasestr(text.ptr, "no optimization found")) return err;
    items[(*n)++] = kl_arena_printf(x->s->arena, "A difference of %s times:\n%.*s", speedup.ptr,
                                    KL_STR_ARG(kli_prose_quote(x->s->arena, text)));
    return KL_OK;
}

/* Of the old ones a random choice survives, in its order (Knuth's algorithm S). */
static void retain(accelopt *x, kl_str *items, int n) {
    const kl_stream stream =
        kli_stream_of(kl_track_seed(x->s->track, "accelopt"),
                      kl_arena_printf(x->s->arena, "memory %d", x->rounds).ptr);
    int room = accelopt_param(x, "exp_n") - n, kept = 0;
    for (int i = 0; i < x->n_memory && kept < room; i++)
        if (kli_stream_uniform(stream, (uint64_t)i) * (x->n_memory - i) < room - kept)
            items[n + kept++] = x->memory[i];
    x->memory = items;
    x->n_memory = n + kept;
}

static kl_err accelopt_learn(accelopt *x, kl_error *e) {
    const int topk = accelopt_param(x, "topk"), keep = accelopt_param(x, "exp_n");
    bool *taken = KL_ARRAY(x->s->arena, bool, x->n_trials);
    kl_str *items = KL_ARRAY(x->s->arena, kl_str, topk + keep);
    int n = 0, asked = 0;
    kl_err err = KL_OK;
    for (int gained = 1; gained >= 0; gained--) {
        const int most = gained ? topk / 2 : topk;
        const accelopt_trial *t;
        while (!err && asked < most && (t = next_telling(x, taken, gained != 0))) {
            taken[t - x->trials] = true;
            asked++;
            err = summarize(x, items, &n, t, e);
        }
    }
    if (!err) retain(x, items, n);
    return err;
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* The best of every trial, fastest first; behind them, for each that failed, its candidate. */
static void select_candidates(accelopt *x) {
    const kli_point **next = KL_ARRAY(x->s->arena, const kli_point *, x->n_trials);
    int n = 0;
    for (int i = 0; i < x->n_trials; i++) {
        const kli_point *p = x->trials[i].best;
        if (!p) continue;
        int at = n++;
        for (; at > 0 && next[at - 1]->ratio < p->ratio; at--) next[at] = next[at - 1];
        next[at] = p;
    }
    for (int i = 0; i < x->n_trials; i++)
        if (!x->trials[i].best) next[n++] = x->trials[i].from;
    KL_ASSERT(n == x->n_trials); /* each trial leaves one */
    x->candidates = next;
    x->n_candidates = n;
}

static kl_err make_round(accelopt *x, kl_error *e) {
    const width w = derive(x);
    const int n = least(x->n_candidates, w.beam);
    kl_err err = KL_OK;
    x->trials = KL_ARRAY(x->s->arena, accelopt_trial, n * w.plans);
    x->n_trials = 0;
    for (int c = 0; c < n; c++)
        for (int i = 0; i < w.plans && !err && !kli_search_over(x->s); i++) {
            kl_track_log(x->s->track, "round %d, candidate %d of %d, plan %d of %d", x->rounds + 1,
                         c + 1, n, i + 1, w.plans);
            err = accelopt_attempt(x, x->candidates[c], w.samples, e);
        }
    if (err || kli_search_over(x->s)) return err;
    err = accelopt_learn(x, e);
    select_candidates(x);
    x->rounds++;
    return err;
}

kl_err kli_policy_accelopt(kl_search *s, kl_error *e) {
    const kli_point *start = &s->start;
    accelopt x = {.s = s, .candidates = &start, .n_candidates = 1};
    kl_err err = KL_OK;
    while (!err && !kli_search_over(s)) err = make_round(&x, e);
    return err;
}
