/* admit.c - held-out round trips decide whether a candidate becomes a SkillCard: the only writer of
 * an admitted card (law 5).
 *
 * A start is held out when it is none of the states that the card was born from.  An agent gets the
 * card and the start; what it makes has to be correct, to have what the card provides, and to
 * reproduce the share of the expected log-gain.  One success admits; every trial stays in the card.
 * A trial that could not be measured is no vote: the card waits for a quieter machine, and its
 * start may be tried again.  Source: KLineage paper, section 3.3, "Roundtrip admission".
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const kl_start *start;
    kl_kernel *kernel;
    kl_traits traits;
    kl_facts facts;
    kl_fit fit;
    bool room; /* nothing that the card would raise is higher than where it was born */
    bool same_case;
    double distance; /* of its traits from those of the state that the card was born from */
    int place;       /* as it was given */
} candidate;

typedef struct {
    kl_card *card;
    kl_track *track;
    kl_arena *arena;
    kl_admit_opts opts; /* defaults filled */
    double reach;
    bool was_admitted; /* and is as it was then */
    bool ended;        /* a recording has no further answer */
} admit_ctx;

/* ---- which starts ------------------------------------------------------------------------ */

static bool is_birth(const kl_trial_record *r) { return kl_str_eq(r->kind, KL_S("birth")); }

static bool born_from(const kl_card *c, kl_str hash) {
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (is_birth(r) && (kl_str_eq(r->start_hash, hash) || kl_str_eq(r->result_hash, hash)))
            return true;
    }
    return false;
}

static kl_target admit_target_of(const candidate *x, const kl_card *c) {
    return (kl_target){.case_name = x->start->task->case_name,
                       .surface = kl_str_of(x->start->surface->name),
                       .platform = c->verified.platforms.n ? c->verified.platforms.at[0] : KL_S(""),
                       .dtype = kl_str_of(kl_dtype_name(x->start->workload->dtypes[0])),
                       .traits = &x->traits,
                       .facts = &x->facts};
}

/* How differently two kernels are built: sum over source traits of |log of their ratio|, each
 * counted from one. */
static double admit_distance(const kl_traits *a, const kl_traits *b) {
    double sum = 0;
    for (int i = 0; i < a->n; i++)
        if (kl_str_starts(a->at[i].name, KL_S("source.")))
            sum += fabs(log((1 + a->at[i].value) / (1 + kl_trait(b, a->at[i].name))));
    for (int i = 0; i < b->n; i++)
        if (kl_str_starts(b->at[i].name, KL_S("source.")) && !(kl_trait(a, b->at[i].name) > 0))
            sum += log(1 + b->at[i].value);
    return sum;
}

/* What was verified, else what is declared: an imported card comes with no verified scope. */
static bool supports_surface(const kl_card *c, kl_str surface) {
    const kl_scope *s = c->verified.surfaces.n ? &c->verified : &c->declared;
    return !s->surfaces.n || kli_names_have(&s->surfaces, surface);
}

/* A start that was tried already gives no second vote, unless the card says something else now. */
static bool was_tried(const kl_card *c, const char *hash) {
    for (int i = 0; i < c->n_trials && !c->edited; i++)
        if (c->trials[i].held_out && kl_trial_decided(&c->trials[i]) &&
            kl_str_eq(c->trials[i].start_hash, kl_str_of(hash)))
            return true;
    return false;
}

/* "gemm-c" of "gemm-c/K3". */
static kl_str lineage_name(kl_str state) { return kli_before(state, '/'); }

/* Any state of a lineage that the card was lifted from has seen the expert that it is to lead to;
 * by name too, since edges that were derived anew give the lineage another id. */
static bool is_held_out(const kl_card *c, const kl_start *start, const char *hash) {
    if (born_from(c, kl_str_of(hash))) return false;
    if (!start->lineage.len) return true;
    for (int i = 0; i < c->n_trials; i++)
        if (is_birth(&c->trials[i]) &&
            kl_str_eq(lineage_name(c->trials[i].start_name), lineage_name(start->name)))
            return false;
    return !kli_words_have(c->lineages, start->lineage);
}

/* A start that has what the card brings would only show that the model notices. */
static bool has_room(const kl_card *c, const kl_traits *t) {
    kl_str words = c->provides;
    for (kl_str w; kli_next_word(&w, &words);) {
        const kl_str name = kli_trait_name_of(w);
        if (kl_trait(t, name) > kl_trait(&c->before, name)) return false;
    }
    return true;
}

/* Is the start one that the card could be tried on? */
static bool consider(admit_ctx *m, candidate *x, const kl_start *start, int place) {
    kl_str why;
    *x = (candidate){.start = start, .place = place};
    if (kl_kernel_parse(&x->kernel, m->arena, start->source, start->name, start->surface, NULL,
                        kl_ignored()))
        return false;
    kl_traits_of(&x->traits, m->arena, x->kernel, NULL);
    x->facts = *kl_facts_of(m->arena, x->kernel, start->task, start->workload, NULL);
    kl_target t = admit_target_of(x, m->card);
    x->fit = kli_card_fits(m->card, &t, m->arena, &why);
    x->room = has_room(m->card, &x->traits);
    x->distance = admit_distance(&m->card->before, &x->traits);
    x->same_case = kli_names_have(&m->card->verified.cases, t.case_name);
    return supports_surface(m->card, t.surface) && x->fit != KL_FIT_VIOLATED &&
           is_held_out(m->card, start, x->kernel->hash) && !was_tried(m->card, x->kernel->hash);
}

/* Kernels of the case that the card comes from have what it is about; of those, the ones that lack
 * what it brings. */
static int promise(const candidate *x) { return 2 * x->same_case + x->room; }

static int nearest_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->fit != y->fit) return (int)x->fit - (int)y->fit;
    if (promise(x) != promise(y)) return promise(y) - promise(x);
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return x->place - y->place;
}

static int admit_choose(admit_ctx *m, candidate **out, const kl_start *starts, int n) {
    int found = 0;
    *out = KL_ARRAY(m->arena, candidate, n + 1);
    for (int i = 0; i < n; i++) found += consider(m, &(*out)[found], &starts[i], i);
    qsort(*out, (size_t)found, sizeof **out, nearest_first);
    return found;
}

/* ---- one trial --------------------------------------------------------------------------- */

static kl_str admit_outcome_of(const kl_materialized *made) {
    const kl_verdict *v = &made->verdict;
    const bool open = made->undecided || made->ended;
    if (open && v->outcome != KL_OUTCOME_UNSTABLE) return KL_S(KLI_NO_VOTE);
    return made->kernel || open || v->why.len ? kl_str_of(kl_outcome_name(v->outcome))
                                              : KL_S("no_edit");
}

static kl_trial_record admit_record_of(const admit_ctx *m, const candidate *x,
                                       const kl_materialized *made, int64_t spent) {
    const kl_verdict *v = &made->verdict;
    kl_trial_record r = {.kind = KL_S("admit"),
                         .task = x->start->task->name,
                         .workload = x->start->workload->label,
                         .surface = kl_str_of(x->start->surface->name),
                         .platform = v->platform,
                         .start_hash = kl_str_of(x->kernel->hash),
                         .start_name = x->start->name,
                         .model = kl_str_of(kl_track_model(m->track)),
                         .held_out = true,
                         .outcome = admit_outcome_of(made),
                         .why = made->why,
                         .gain = made->gain,
                         .low = made->low,
                         .high = made->high,
                         .noise = made->noise,
                         .call =
                             made->gain > 0 ? kl_str_of(kl_decision_name(made->call)) : KL_S(""),
                         .expected = m->card->expected_gain,
                         .tries = made->tries,
                         .spent_microusd = spent,
                         .estimated = made->estimated,
                         .created = v->created,
                         .run = kl_arena_copy(m->arena, kl_str_of(m->opts.run))};
    if (!made->kernel) return r;
    r.result_hash = kl_str_of(made->kernel->hash);
    r.verdict_key = kl_arena_copy(m->arena, kl_str_of(made->verdict_key));
    r.receipt = kl_arena_copy(m->arena, kl_str_of(v->receipt));
    return r;
}

static bool succeeded(const admit_ctx *m, const candidate *x, const kl_materialized *made,
                      kl_str *why) {
    kl_traits result;
    if (!made->kernel || made->undecided) return *why = made->why, false;
    kl_traits_of(&result, m->arena, made->kernel, &made->verdict);
    if (made->call != KL_DECISION_FASTER)
        return *why = kl_arena_printf(m->arena, "not faster: the gate calls it %s",
                                      kl_decision_name(made->call)),
               false;
    if (made->gain < m->reach)
        return *why = kl_arena_printf(m->arena, "gained %.3gx of the %.3gx that was needed",
                                      made->gain, m->reach),
               false;
    if (!kli_card_provided(m->card, &x->traits, &result))
        return *why = KL_S("faster, but without what the card provides"), false;
    return *why = KL_S(""), true;
}

/* The same run again tries the same start from the journal: what it left open is one trial, however
 * often it is told. */
static void forget_same(kl_card *c, kl_arena *a, const kl_trial_record *r) {
    kl_trial_record *kept = KL_ARRAY(a, kl_trial_record, c->n_trials + 1);
    int n = 0;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *t = &c->trials[i];
        bool same =
            r->run.len && kl_str_eq(t->run, r->run) && kl_str_eq(t->start_hash, r->start_hash);
        if (!same || kl_trial_decided(t)) kept[n++] = *t;
    }
    KL_ASSERT(n <= c->n_trials);
    c->trials = kept;
    c->n_trials = n;
}

typedef enum { NO_TRIAL, FAILED, UNDECIDED, SUCCEEDED } admit_fate;

/* What the trial showed.  A start that is none, and a question that nobody answers, are no trial of
 * the card. */
static kl_err admit_trial(admit_ctx *m, const candidate *x, admit_fate *out, kl_error *e) {
    kl_materialized made;
    int64_t before = kl_track_spent(m->track);
    *out = NO_TRIAL;
    kl_err err =
        kl_skill_materialize(&made, m->track, m->card, x->start, m->opts.tries, m->reach, e);
    if (err) return err;
    if (made.bad_start)
        kl_track_log(m->track, "%.*s: %.*s", KL_STR_ARG(x->start->name), KL_STR_ARG(made.why));
    m->ended = made.ended;
    if (made.bad_start || !made.tries) return KL_OK;
    kl_trial_record r = admit_record_of(m, x, &made, kl_track_spent(m->track) - before);
    r.accepted = succeeded(m, x, &made, &r.why);
    if (r.accepted) r.outcome = kl_str_of(kl_outcome_name(made.verdict.outcome));
    if (!r.accepted && made.ended) r.why = made.why;
    *out = r.accepted ? SUCCEEDED : kl_trial_decided(&r) ? FAILED : UNDECIDED;
    forget_same(m->card, m->arena, &r);
    kli_card_add_trial(m->card, m->arena, &r);
    return KL_OK;
}

bool kl_card_decided(const kl_card *c, const char *run) {
    const kl_trial_record *last = c->n_trials ? &c->trials[c->n_trials - 1] : NULL;
    bool over = c->status == KL_CARD_ADMITTED || c->status == KL_CARD_REJECTED;
    return over && !c->edited && last && last->run.len && kl_str_eq(last->run, kl_str_of(run));
}

/* ---- the verdict on a card --------------------------------------------------------------- */

static void widen_scope(admit_ctx *m, const candidate *x, kl_str platform) {
    kl_scope *s = &m->card->verified;
    kli_names_add(&s->cases, m->arena, x->start->task->case_name);
    kli_names_add(&s->surfaces, m->arena, kl_str_of(x->start->surface->name));
    kli_names_add(&s->platforms, m->arena, platform);
}

/* Not decided: a card that was admitted and not changed since stays what it is, any other waits. */
static void leave_open(admit_ctx *m, int open) {
    kl_card *c = m->card;
    c->status = m->was_admitted ? KL_CARD_ADMITTED : KL_CARD_TRIAL;
    const char *untimed =
        open ? kl_arena_printf(m->arena, "%d of its trials could not be measured", open).ptr : "";
    const char *ended = m->ended ? "the recording has no further answer" : "";
    c->verification = kl_arena_printf(
        m->arena,
        "Not decided: %s%s%s. Next, on a quiet machine: klineage admit %.*s --trial N, "
        "with an N that was not used before%s",
        untimed, open && m->ended ? ", and " : "", ended, KL_STR_ARG(c->name),
        m->was_admitted ? "; it stays admitted." : ".");
}

static void admit_conclude(admit_ctx *m, bool success, int failed, int open) {
    kl_card *c = m->card;
    if (!success && (open || m->ended)) return leave_open(m, open);
    KL_ASSERT(!success || c->trials[c->n_trials - 1].accepted); /* law 5 */
    c->status = success ? KL_CARD_ADMITTED : KL_CARD_REJECTED;
    c->verification =
        success  ? KL_S("Admitted by a held-out round trip.")
        : failed ? KL_S("Rejected: no held-out round trip reproduced its effect.")
                 : KL_S("Rejected: no held-out start fits its contract and passes the gate.");
}

static kl_err try_all(admit_ctx *m, const kl_start *starts, int n, kl_error *e) {
    candidate *chosen;
    const int found = admit_choose(m, &chosen, starts, n);
    int counts[SUCCEEDED + 1] = {0};
    kl_err err = KL_OK;
    for (int i = 0; !err && !counts[SUCCEEDED] && !m->ended && i < found &&
                    counts[FAILED] + counts[UNDECIDED] < m->opts.trials;
         i++) {
        admit_fate what;
        err = admit_trial(m, &chosen[i], &what, e);
        if (err) return err;
        counts[what]++;
        if (what == SUCCEEDED)
            widen_scope(m, &chosen[i], m->card->trials[m->card->n_trials - 1].platform);
    }
    admit_conclude(m, counts[SUCCEEDED] > 0, counts[FAILED], counts[UNDECIDED]);
    return KL_OK;
}

kl_err kl_skill_admit(kl_card *c, kl_track *t, const char *dir, const kl_start *starts,
                      int n_starts, const kl_admit_opts *o, kl_error *e) {
    kl_admit_opts opts = o ? *o : (kl_admit_opts){0};
    if (!opts.trials) opts.trials = 3;
    if (!opts.tries) opts.tries = 3;
    if (!(opts.reproduce > 0)) opts.reproduce = 0.9;
    admit_ctx m = {.card = c,
                   .track = t,
                   .arena = kl_track_arena(t),
                   .opts = opts,
                   .was_admitted = c->status == KL_CARD_ADMITTED && !c->edited,
                   .reach = exp(opts.reproduce * log(fmax(c->expected_gain, 1)))};
    if (c->status == KL_CARD_RETIRED)
        return kl_fail(e, KL_EINVAL, c->name.ptr, "a retired card is not admitted again");
    kl_track_phase(t, "admit");
    c->status = KL_CARD_TRIAL;
    kl_err err = try_all(&m, starts, n_starts, e);
    if (err)
        return err; /* the card on disk is as it was; the trials that were paid for are in the
                       journal */
    kl_track_log(t, "%.*s: %s", KL_STR_ARG(c->name), kl_card_status_name(c->status));
    return kli_library_write(dir, c, e);
}
