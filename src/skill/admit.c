/* admit.c - what a card adds decides whether a candidate becomes a SkillCard: the only writer of an
 * admitted card (laws 5 and 12).
 *
 * A start is held out when it is none of the states that the card was born from.  It is given to a
 * model with the card, without it, and with a placebo of the same length; all three are asked the
 * same.  Differences within these pairs, with intervals that hold at every look, say when it is
 * enough.  A card is admitted that surely adds gain, or as much for less money, over both controls,
 * and that did what it promises on two starts, one of them of other work; what model and machine do
 * by themselves admits nothing.  Every trial stays in the card.  One that could not be measured is
 * no pair: the card waits for a quieter machine.  Source of the round trip: KLineage paper, section
 * 3.3, "Roundtrip admission"; of the controls: its lack of any.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PAIRS 3 /* before an interval over pairs says anything (base/sequential.h) */

typedef struct {
    const kl_start *start;
    kl_kernel *kernel;
    kl_traits traits;
    kl_facts facts;
    kl_fit fit;
    bool room; /* nothing that the card would raise is higher than where it was born */
    bool same_case, foreign; /* foreign: of a task, or of a lineage, that it was not lifted from */
    bool bad;                /* does not pass the gate here */
    double distance;         /* of its traits from those of the state that the card was born from */
    int place;               /* as it was given */
} candidate;

typedef struct {
    kl_card *card;
    kl_track *track;
    kl_arena *arena;
    kl_admit_opts opts;  /* defaults filled */
    kl_str card_text;    /* as the run began: what one pair shows changes no other's question */
    kl_str placebo_text; /* of the same length; empty without a placebo */
    double reach;
    int pair;          /* that is tried now */
    int left;          /* pairs that this run may still try */
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

/* Of another task than any birth, or a state of another lineage. */
static bool is_foreign(const kl_card *c, const kl_start *start) {
    if (start->lineage.len) return true; /* is_held_out: it is none of the card's */
    for (int i = 0; i < c->n_trials; i++)
        if (is_birth(&c->trials[i]) && kl_str_eq(c->trials[i].task, start->task->name))
            return false;
    return true;
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
    if (!supports_surface(m->card, kl_str_of(start->surface->name))) return false;
    if (kl_kernel_parse(&x->kernel, m->arena, start->source, start->name, start->surface, NULL,
                        kl_ignored()))
        return false;
    kl_traits_of(&x->traits, m->arena, x->kernel, NULL);
    x->facts = *kl_facts_of(m->arena, x->kernel, start->task, start->workload, NULL);
    kl_target t = admit_target_of(x, m->card);
    x->fit = kli_card_fits(m->card, &t, m->arena, &why);
    x->room = has_room(m->card, &x->traits);
    x->distance = admit_distance(&m->card->before, &x->traits);
    x->foreign = is_foreign(m->card, start);
    x->same_case = kli_names_have(&m->card->verified.cases, t.case_name);
    return x->fit != KL_FIT_VIOLATED && is_held_out(m->card, start, x->kernel->hash);
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

/* The nearest of other work second, so that two pairs say what two kinds of starts do. */
static void foreign_early(candidate *x, int n) {
    int at = 1;
    if (n < 2 || x[0].foreign != x[1].foreign) return;
    while (at < n && x[at].foreign == x[0].foreign) at++;
    if (at == n) return;
    const candidate found = x[at];
    memmove(&x[2], &x[1], (size_t)(at - 1) * sizeof *x);
    x[1] = found;
}

/* The same kernel may lie in a ladder and in a lineage. */
static bool is_among(const candidate *x, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(x[i].kernel->hash, x[n].kernel->hash) == 0) return true;
    return false;
}

static int admit_choose(admit_ctx *m, candidate **out, const kl_start *starts, int n) {
    int found = 0;
    *out = KL_ARRAY(m->arena, candidate, n + 1);
    for (int i = 0; i < n; i++)
        found += consider(m, &(*out)[found], &starts[i], i) && !is_among(*out, found);
    qsort(*out, (size_t)found, sizeof **out, nearest_first);
    foreign_early(*out, found);
    return found;
}

/* ---- what is handed down ------------------------------------------------------------------ */

#define CARD_WORDS                                                                                 \
    "One SkillCard. It was proven on other code: write its intent into this code, in this "        \
    "language; the carrier is a sketch to imitate, not text to paste. Name it in `CARD:`. Where "  \
    "it does not apply here, leave it and use what you know.\n\n"

static bool shares_surface(const kl_card *x, const kl_card *y) {
    for (int i = 0; i < x->verified.surfaces.n; i++)
        if (kli_names_have(&y->verified.surfaces, x->verified.surfaces.at[i])) return true;
    return false;
}

/* By what no trial changes: the same while its run decides on other cards. */
const kl_card *kl_card_placebo(const kl_library *l, kl_arena *a, const kl_card *c) {
    const kl_card *best = NULL;
    double least = INFINITY;
    const double length = (double)kl_card_prompt(a, c).len;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *x = &l->cards[i];
        if (kl_str_eq(x->action, c->action)) continue;
        const double longer = (double)kl_card_lesson(a, x).len - length;
        const double apart = fabs(longer) / length + shares_surface(x, c);
        if (apart < least) least = apart, best = x;
    }
    return best;
}

static kl_str handed_down(const admit_ctx *m, kl_str kind) {
    if (kl_str_eq(kind, kl_str_of(kl_control_name(KL_OVER_NONE))))
        return KL_S("Nothing: use what you know.\n");
    const kl_str card = kl_str_eq(kind, KL_S("admit")) ? m->card_text : m->placebo_text;
    return kl_arena_printf(m->arena, CARD_WORDS "%.*s", KL_STR_ARG(card));
}

/* ---- one trial --------------------------------------------------------------------------- */

static kl_str admit_outcome_of(const kl_materialized *made) {
    const kl_verdict *v = &made->verdict;
    const bool open = made->undecided || made->ended;
    if (open && v->outcome != KL_OUTCOME_UNSTABLE) return KL_S(KLI_NO_VOTE);
    return made->kernel || open || v->why.len ? kl_str_of(kl_outcome_name(v->outcome))
                                              : KL_S("no_edit");
}

static kl_trial_record admit_record_of(const admit_ctx *m, const candidate *x, kl_str kind,
                                       const kl_materialized *made, int64_t spent) {
    const kl_verdict *v = &made->verdict;
    kl_trial_record r = {.kind = kind,
                         .pair = m->pair,
                         .foreign = x->foreign,
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

/* Did it reach what the card promises?  The control has to as well, by whatever means. */
static bool succeeded(const admit_ctx *m, const kl_materialized *made, kl_str *why) {
    if (!made->kernel || made->undecided) return *why = made->why, false;
    if (made->call != KL_DECISION_FASTER)
        return *why = kl_arena_printf(m->arena, "not faster: the gate calls it %s",
                                      kl_decision_name(made->call)),
               false;
    if (made->gain < m->reach)
        return *why = kl_arena_printf(m->arena, "gained %.3gx of the %.3gx that was needed",
                                      made->gain, m->reach),
               false;
    return *why = KL_S(""), true;
}

/* Witnesses of actions that rose and are none of the card's. */
static kl_str what_else(const admit_ctx *m, const kl_traits *start, const kl_traits *result) {
    const kl_action *action = kl_action_find(m->card->action);
    const kl_str own = kl_str_of(action ? action->witness : "");
    kl_str raised = kl_traits_raised(m->arena, start, result), also = {0};
    for (kl_str w, promised; kli_next_word(&w, &raised);) {
        bool known = kli_words_have(own, w);
        promised = m->card->provides;
        for (kl_str p; !known && kli_next_word(&p, &promised);)
            known = kl_str_eq(kli_trait_name_of(p), w);
        if (!known) also = kli_words_with(m->arena, also, w);
    }
    return also;
}

/* The same run again tells its trials again, from the journal. */
static int without_run(kl_trial_record **out, kl_arena *a, const kl_trial_record *all, int n,
                       const char *run) {
    int kept = 0;
    *out = NULL;
    for (int i = 0; i < n; i++)
        if (!run || !kl_str_eq(all[i].run, kl_str_of(run))) *KL_PUSH(a, *out, kept) = all[i];
    return kept;
}

static void forget_run(kl_card *c, kl_arena *a, const char *run) {
    c->n_trials = without_run(&c->trials, a, c->trials, c->n_trials, run);
    c->n_controls = without_run(&c->controls, a, c->controls, c->n_controls, run);
}

typedef enum { NO_TRIAL, UNDECIDED, DECIDED } admit_fate;

static void admit_keep(admit_ctx *m, const candidate *x, kl_trial_record *r,
                       const kl_materialized *made) {
    kl_traits result;
    kl_card *c = m->card;
    r->accepted = succeeded(m, made, &r->why);
    if (!r->accepted && made->ended) r->why = made->why;
    if (!kl_str_eq(r->kind, KL_S("admit")))
        return (void)(*KL_PUSH(m->arena, c->controls, c->n_controls) = *r);
    if (made->kernel) {
        kl_traits_of(&result, m->arena, made->kernel, &made->verdict);
        r->also = what_else(m, &x->traits, &result);
        if (r->accepted && !kli_card_provided(c, &x->traits, &result)) {
            r->accepted = false;
            r->why = KL_S("faster, but without what the card provides");
        }
    }
    kli_card_add_trial(c, m->arena, r);
}

/* A start that is none, and a question that nobody answers, are no trial. */
static kl_err admit_attempt(admit_ctx *m, candidate *x, const char *kind, admit_fate *out,
                            kl_error *e) {
    kl_materialized made;
    const int64_t before = kl_track_spent(m->track);
    const bool with_card = strcmp(kind, "admit") == 0;
    const kl_str name = x->start->name;
    const kli_attempt attempt = {
        .start = x->start,
        .handed_down = handed_down(m, kl_str_of(kind)),
        .label = with_card ? m->card->name : kl_str_of(kind),
        .place = with_card ? kl_arena_copy(m->arena, name).ptr
                           : kl_arena_printf(m->arena, "%.*s %s", KL_STR_ARG(name), kind).ptr};
    *out = NO_TRIAL;
    kl_err err = kli_skill_attempt(&made, m->track, &attempt, m->opts.tries, m->reach, e);
    if (err) return err;
    if (made.bad_start)
        kl_track_log(m->track, "%.*s: %.*s", KL_STR_ARG(name), KL_STR_ARG(made.why));
    x->bad = made.bad_start;
    m->ended |= made.ended;
    if (made.bad_start || !made.tries) return KL_OK;
    kl_trial_record r =
        admit_record_of(m, x, kl_str_of(kind), &made, kl_track_spent(m->track) - before);
    admit_keep(m, x, &r, &made);
    *out = kl_trial_decided(&r) ? DECIDED : UNDECIDED;
    return KL_OK;
}

/* The card, then what it is compared with; what cannot be told of one makes the others useless.
 * None waits for another: where an answer takes a visit to another host, all are asked for in one.
 * Errors: KL_PENDING when one of them is missing. */
static kl_err admit_pair(admit_ctx *m, candidate *x, admit_fate *out, kl_error *e) {
    const char *const kinds[] = {"admit", kl_control_name(KL_OVER_NONE),
                                 kl_control_name(KL_OVER_PLACEBO)};
    const int n = m->opts.placebo ? 3 : 2;
    bool waits = false;
    *out = DECIDED;
    m->pair++;
    for (int i = 0; *out == DECIDED && i < n; i++) {
        kl_error own = {0};
        const kl_err err = admit_attempt(m, x, kinds[i], out, &own);
        if (err) *e = own;
        if (err && err != KL_PENDING) return err;
        waits |= err != KL_OK;
        if (err) *out = DECIDED; /* as far as is known */
    }
    return waits ? KL_PENDING : KL_OK;
}

bool kl_card_decided(const kl_card *c, const char *run) {
    const kl_trial_record *last = c->n_trials ? &c->trials[c->n_trials - 1] : NULL;
    bool over = c->status == KL_CARD_ADMITTED || c->status == KL_CARD_REJECTED;
    return over && !c->edited && last && last->run.len && kl_str_eq(last->run, kl_str_of(run));
}

/* ---- the verdict on a card --------------------------------------------------------------- */

/* Of all pairs, of whichever run. */
static bool controls_all(const admit_ctx *m, bool (*is)(const kl_uplift *), bool all) {
    kl_uplift u;
    bool any = false;
    for (int over = 0; over < (m->opts.placebo ? 2 : 1); over++) {
        kl_card_uplift(&u, m->card, (kl_control)over);
        if (all && !is(&u)) return false;
        any |= is(&u);
    }
    return any;
}

/* Money for more pairs would be spent for nothing: over one control it could not pay at the end
 * even if they all were as good as the best.  Intervals hold at every look, so ending here admits
 * nothing that would not be. */
static bool out_of_reach(const admit_ctx *m) {
    bool any = false;
    for (int over = 0; over < (m->opts.placebo ? 2 : 1); over++) {
        kl_uplift u;
        kl_card_uplift(&u, m->card, (kl_control)over);
        any |=
            u.pairs >= LEAST_PAIRS && !kl_card_uplift_in_reach(m->card, (kl_control)over, m->left);
    }
    return any;
}

/* On two starts, one of them of other work. */
static bool did_what_it_promises(const kl_card *c) {
    const kl_trial_record *first = NULL;
    bool two = false, foreign = false;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (!r->pair || !r->accepted) continue;
        if (first) two |= !kl_str_eq(r->start_hash, first->start_hash);
        if (!first) first = r;
        foreign |= r->foreign;
    }
    return two && foreign;
}

static bool adds(const admit_ctx *m) {
    return controls_all(m, kl_uplift_pays, true) && did_what_it_promises(m->card);
}

static kl_str uplifts_text(const admit_ctx *m) {
    kl_buf b = {0};
    for (int over = 0; over < (m->opts.placebo ? 2 : 1); over++) {
        kl_uplift u;
        kl_card_uplift(&u, m->card, (kl_control)over);
        if (u.pairs)
            kl_buf_printf(&b, " Uplift %s.", kl_uplift_text(m->arena, &u, (kl_control)over).ptr);
    }
    return kl_buf_take(&b, m->arena);
}

static void widen_scope(kl_card *c, kl_arena *a, const candidate *all, int n) {
    kl_scope *s = &c->verified;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (!r->pair || !r->accepted) continue;
        kli_names_add(&s->surfaces, a, r->surface);
        kli_names_add(&s->platforms, a, r->platform);
        for (int k = 0; k < n; k++)
            if (kl_str_eq(r->start_hash, kl_str_of(all[k].kernel->hash)))
                kli_names_add(&s->cases, a, all[k].start->task->case_name);
    }
}

/* Not decided: a card that was admitted and not changed since stays what it is, any other waits. */
static void leave_open(admit_ctx *m, const char *why) {
    kl_card *c = m->card;
    c->status = m->was_admitted ? KL_CARD_ADMITTED : KL_CARD_TRIAL;
    c->verification = kl_arena_printf(
        m->arena,
        "Not decided: %s. Next, on a quiet machine: klineage admit %.*s --trial N, with an N that "
        "was not used before%s%s",
        why, KL_STR_ARG(c->name), m->was_admitted ? "; it stays admitted." : ".",
        uplifts_text(m).ptr);
}

static void admit_refuse(admit_ctx *m, kl_str why) {
    m->card->status = m->was_admitted ? KL_CARD_RETIRED : KL_CARD_REJECTED;
    m->card->verification =
        kl_arena_printf(m->arena, "%s: %.*s.%s", m->was_admitted ? "Retired" : "Rejected",
                        KL_STR_ARG(why), uplifts_text(m).ptr);
}

static void admit_conclude(admit_ctx *m, const candidate *all, int n, int undecided) {
    kl_card *c = m->card;
    const bool futile = controls_all(m, kl_uplift_futile, false);
    if (adds(m)) {
        KL_ASSERT(c->n_controls > 0 && did_what_it_promises(c)); /* laws 5 and 12 */
        c->status = KL_CARD_ADMITTED;
        widen_scope(c, m->arena, all, n);
        c->verification = kl_arena_printf(m->arena, "Admitted by uplift.%s", uplifts_text(m).ptr);
        return;
    }
    if (m->ended) return leave_open(m, "the recording has no further answer");
    if (futile) return admit_refuse(m, KL_S("it adds nothing"));
    if (m->left && out_of_reach(m))
        return admit_refuse(m,
                            KL_S("no uplift was shown, nor was one in reach of the trials left"));
    if (undecided)
        return leave_open(
            m, kl_arena_printf(m->arena, "%d of its trials could not be measured", undecided).ptr);
    admit_refuse(m, KL_S("no uplift was shown within the trials that it had"));
}

/* ---- before anybody is asked ------------------------------------------------------------- */

/* The starts are states of which the answer is known: a contract that does not tell them apart
 * costs no trial. */
static bool tells_apart(const admit_ctx *m, const kl_start *starts, int n, kl_str *why) {
    kl_error proof = {0};
    if (!kl_card_has_contract(m->card) || !kl_contract_check(m->card, m->arena, starts, n, &proof))
        return true;
    *why = kl_arena_copy(m->arena, kl_str_of(proof.message));
    return false;
}

static bool has_two_kinds(const candidate *x, int n) {
    bool foreign = false;
    int good = 0;
    for (int i = 0; i < n; i++) {
        if (x[i].bad) continue;
        good++;
        foreign |= x[i].foreign;
    }
    return good >= 2 && foreign;
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool enough(const admit_ctx *m) {
    return m->ended || adds(m) || controls_all(m, kl_uplift_futile, false) || out_of_reach(m);
}

/* While pairs are too few to say anything, the next does not wait for those before it. */
static bool wants_another(const admit_ctx *m, int tried, int waiting) {
    const int most = waiting && m->opts.trials > LEAST_PAIRS ? LEAST_PAIRS : m->opts.trials;
    return tried + waiting < most && !enough(m);
}

static kl_err try_pairs(admit_ctx *m, candidate *x, int n, int *undecided, kl_error *e) {
    int tried = 0, waiting = 0;
    for (int i = 0; has_two_kinds(x, n) && wants_another(m, tried, waiting); i = (i + 1) % n) {
        admit_fate what;
        if (x[i].bad) continue;
        const kl_err err = admit_pair(m, &x[i], &what, e);
        if (err && err != KL_PENDING) return err;
        waiting += err != KL_OK;
        tried += !err && what != NO_TRIAL;
        m->left = m->opts.trials - tried;
        *undecided += !err && what == UNDECIDED;
    }
    return waiting ? KL_PENDING : KL_OK;
}

static kl_err try_all(admit_ctx *m, const kl_start *starts, int n, kl_error *e) {
    candidate *chosen;
    kl_str why;
    int undecided = 0;
    if (!tells_apart(m, starts, n, &why)) return admit_refuse(m, why), KL_OK;
    const int found = admit_choose(m, &chosen, starts, n);
    const kl_err err = try_pairs(m, chosen, found, &undecided, e);
    if (err) return err;
    int good = 0;
    for (int i = 0; i < found; i++) good += !chosen[i].bad;
    if (!good)
        admit_refuse(m, KL_S("no held-out start fits its contract and passes the gate"));
    else if (!has_two_kinds(chosen, found))
        leave_open(m, "it takes two held-out starts, one of them of another task or lineage");
    else
        admit_conclude(m, chosen, found, undecided);
    return KL_OK;
}

static int last_pair(const kl_card *c) {
    int last = 0;
    for (int i = 0; i < c->n_trials; i++)
        if (c->trials[i].pair > last) last = c->trials[i].pair;
    return last;
}

kl_err kl_skill_admit(kl_card *c, kl_track *t, const char *dir, const kl_start *starts,
                      int n_starts, const kl_admit_opts *o, kl_error *e) {
    kl_admit_opts opts = o ? *o : (kl_admit_opts){0};
    if (!opts.trials) opts.trials = 6;
    if (!opts.tries) opts.tries = 3;
    if (!(opts.reproduce > 0)) opts.reproduce = 0.9;
    admit_ctx m = {.card = c,
                   .track = t,
                   .arena = kl_track_arena(t),
                   .opts = opts,
                   .left = opts.trials,
                   .was_admitted = c->status == KL_CARD_ADMITTED && !c->edited,
                   .reach = exp(opts.reproduce * log(fmax(c->expected_gain, 1)))};
    if (c->status == KL_CARD_RETIRED)
        return kl_fail(e, KL_EINVAL, c->name.ptr, "a retired card is not admitted again");
    kl_track_phase(t, "admit");
    c->status = KL_CARD_TRIAL;
    forget_run(c, m.arena, opts.run);
    m.pair = last_pair(c);
    m.card_text = kl_card_prompt(m.arena, c);
    if (opts.placebo)
        m.placebo_text = kli_text_cut(kl_card_lesson(m.arena, opts.placebo), m.card_text.len);
    kl_err err = try_all(&m, starts, n_starts, e);
    if (err)
        return err; /* the card on disk is as it was; the trials that were paid for are in the
                       journal */
    kl_track_log(t, "%.*s: %s", KL_STR_ARG(c->name), kl_card_status_name(c->status));
    return kli_library_write(dir, c, e);
}
