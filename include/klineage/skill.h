/* skill.h - what lineages teach: SkillCards, how they are lifted, admitted, kept and found again.
 *
 * Owns the card format and the library folder.  Only kl_skill_admit writes an admitted card (law
 * 5); a life is LIFTED -> TRIAL -> ADMITTED | REJECTED -> RETIRED.  A card that was edited by hand
 * after its admission is not used until it is admitted again. Formats: docs/formats/card.md.
 * Source: KLineage paper, sections 3.3 and 3.4.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_SKILL_H
#define KLINEAGE_SKILL_H

#include <klineage/lineage.h>

KL_API_BEGIN

typedef enum {
    KL_CARD_LIFTED,
    KL_CARD_TRIAL,
    KL_CARD_ADMITTED,
    KL_CARD_REJECTED,
    KL_CARD_RETIRED
} kl_card_status;
const char *
kl_card_status_name(kl_card_status s); /* also the folder of the library in which it lies */

/* One attempt to apply the card: the edge that it was lifted from, or a held-out start.  Declared
 * in skill.def. */
typedef struct {
#define KL_DEF_TRIAL KL_MEMBER
#include <klineage/skill.def>
} kl_trial_record;
extern const kl_record KL_CARD_EVIDENCE;

/* A parsed card, in the arena that it was made in. */
typedef struct kl_card kl_card;

kl_str kl_card_name(const kl_card *c);
kl_card_status kl_card_status_of(const kl_card *c);
/* The i-th attempt, the births first; NULL past the last. */
const kl_trial_record *kl_card_trial_each(const kl_card *c, int i);
bool kl_card_has_contract(const kl_card *c);
/* Clauses of the contract that cannot be asked, a line each: which, and why.  They are left out. */
kl_str kl_card_faults(kl_arena *a, const kl_card *c);
/* What the gate's rule says of a trial's interval beside its floor; a floor that was not recorded
 * counts as 0.  Computed, whatever `call` says. */
kl_decision kl_trial_call(const kl_trial_record *r);
/* Did it show anything?  A trial that could not be measured is neither a success nor a failure. */
bool kl_trial_decided(const kl_trial_record *r);
/* Every held-out trial of `before` stays with a card that takes its place. */
void kl_card_keep_trials(kl_card *c, kl_arena *a, const kl_card *before);
/* SKILL.md and evidence.json. */
void kl_card_render(const kl_card *c, kl_buf *skill_md, kl_buf *evidence_json);
KL_MUST_USE kl_err kl_card_load(kl_card **out, kl_arena *a, const char *folder, kl_error *e);
/* The card as a prompt holds it: all nine fields, carrier verbatim, stable bytes. */
kl_str kl_card_prompt(kl_arena *a, const kl_card *c);
/* The same without scope and verification: what no trial changes. */
kl_str kl_card_lesson(kl_arena *a, const kl_card *c);
/* Cards of the authors' release, both generations (a JSON with skill_id, intent, ...; a SKILL.md
 * with YAML skill_id): status lifted. */
KL_MUST_USE kl_err kl_card_import(kl_card **out, kl_arena *a, const char *path, kl_error *e);
/* One, or all of a folder that holds them; two with one id stay two.  A card that cannot be read
 * has its error.  Errors: as kl_card_import where `path` is one card, KL_ENOENT where it holds
 * none. */
typedef struct {
    kl_str path;
    kl_card *card; /* NULL where it could not be read */
    kl_error error;
} kl_imported;
KL_MUST_USE kl_err kl_cards_import(kl_imported **out, int *n, kl_arena *a, const char *path,
                                   kl_error *e);

/* ---- library ----------------------------------------------------------------------------- */

typedef struct kl_library kl_library;

/* $KLINEAGE_LIBRARY, else library/ above the program or here. */
KL_MUST_USE kl_err kl_library_find(kl_str *dir, kl_arena *a, const char *requested, kl_error *e);
/* All cards, read. */
KL_MUST_USE kl_err kl_library_load(kl_library **out, kl_arena *a, const char *dir, kl_error *e);
/* For retrieval: `cards` stays empty, and of each admitted, unedited card is known what an index in
 * the user's cache says, which is brought up to date here.  Errors: as kl_library_load; KL_EINTR.
 */
KL_MUST_USE kl_err kl_library_open(kl_library **out, kl_arena *a, const char *dir, kl_error *e);
/* Reads the cards of an opened library now, unless it has very many: who changes one of them later
 * does not reach a run whose tracks have forked. */
void kl_library_keep(const kl_library *l);
/* The i-th card by name, broken ones left out; NULL past the last, and of an opened library. */
const kl_card *kl_library_card_each(const kl_library *l, int i);
/* NULL when there is none; of an opened library, when there is none that retrieval may use. */
const kl_card *kl_library_card(const kl_library *l, kl_str name);
/* A contract for an imported card that has none: that of a card of `l` (NULL: none is there) with
 * the same action on the same surface, else of which operators the action is of use.  It was not
 * tested for this card; `verification` says where it is from. */
void kl_card_lend_contract(kl_card *c, kl_arena *a, const kl_library *l);
/* Names of cards that wait for each other: each requires what only the next provides.  Empty where
 * there are none. */
kl_str kl_library_cycle(kl_arena *a, const kl_library *l);
/* One hash of all cards that retrieval may use. */
kl_str kl_library_id(const kl_library *l, kl_arena *a);
/* Into the folder of its status, out of any other.  Errors: KL_EINVAL for an admitted card, and for
 * one that would take an admitted one's place (law 5); KL_ELIMIT for one that would be too long to
 * be read again. */
KL_MUST_USE kl_err kl_library_put(const char *dir, kl_card *c, kl_error *e);

/* ---- judge: accepted trials decided again by the gate's rule ----------------------------- */

/* A/A noise of verdicts that lie beside the lineages of a library, by receipt. */
typedef struct kl_noise_records kl_noise_records;
/* Errors: KL_EPARSE, KL_EIO; a library without lineages has none. */
KL_MUST_USE kl_err kl_noise_records_load(kl_noise_records **out, kl_arena *a, const char *library,
                                         kl_error *e);

typedef struct {
    const kl_card *card;
    kl_trial_record *trials;
    int n; /* the accepted ones that have an interval, each with the floor and the call it was
              decided by now */
    int stand,
        unknown; /* faster still; without a floor anywhere, decided by their interval alone */
    int held_out, held_out_stand;
    bool falls; /* alive, and none of them stands */
} kl_card_judgement;
void kl_card_judge(kl_card_judgement *out, kl_arena *a, const kl_card *c,
                   const kl_noise_records *f);
/* A card that falls goes to the retired ones, with its floors.  Errors: as kl_library_put. */
KL_MUST_USE kl_err kl_card_retire(const char *dir, kl_arena *a, const kl_card_judgement *j,
                                  kl_error *e);

/* ---- lift -------------------------------------------------------------------------------- */

/* Edges that teach the same: one action, one surface, the same visible rise. */
typedef struct {
    const kl_action *action;    /* NULL for other:<slug> */
    kl_str id, surface, raised; /* action id; traits that rose in all of them */
    struct {
        const kl_lineage *lineage;
        int edge;
    } * births;
    int n_births;
    kl_str name; /* of the card it would become, unique among the groups */
} kl_group;

/* Group the edges that are profitable and re-derived.  Borrows the lineages; the array lives in the
 * arena. */
void kl_skill_group(kl_group **out, int *n, kl_arena *a, const kl_lineage *lineages,
                    int n_lineages);
/* Have a group written up as a candidate card.  The machine part (contract, scope, evidence, patch)
 * is computed, never asked for; prose comes from the model, and from the text of the walk where the
 * model gives none.  The card lives in the track's arena.  Errors: as kl_ask. */
KL_MUST_USE kl_err kl_skill_lift(kl_card **out, kl_track *t, const kl_group *g, kl_error *e);

/* ---- coverage ---------------------------------------------------------------------------- */

/* An edge that pays; the card that it is a birth of, NULL: none; and where that is not an admitted
 * one, why not. */
typedef struct {
    const kl_lineage *lineage;
    int edge;
    const kl_card *card;
    kl_str why;
} kl_coverage;
/* Borrows the lineages; the array lives in the arena. */
void kl_library_coverage(kl_coverage **out, int *n, kl_arena *a, const kl_library *l,
                         const kl_lineage *lineages, int n_lineages);

/* ---- materialize ------------------------------------------------------------------------- */

/* A kernel to try a card on. */
typedef struct {
    const kl_task *task;
    const kl_workload *workload;
    kl_str name;
    kl_str source;
    const kl_surface *surface;
    kl_str lineage; /* id of the one it is a state of; empty: of none */
} kl_start;

/* Apply one card to `start`: the model sees the card and the start alone, and has up to `tries`
 * proposals and the gate's words in one append-only conversation. */
typedef struct {
    kl_kernel *kernel;  /* the last correct one; NULL when none passed */
    kl_verdict verdict; /* of it, or of the last attempt */
    char verdict_key[65];
    double gain, low, high; /* over the start, interleaved; 0 when none passed */
    double noise;           /* A/A noise of that comparison */
    kl_decision call;       /* what it means */
    int tries;
    bool undecided; /* a correct kernel was made, and its time over the start's could not be told:
                       asking on would not help */
    bool ended;     /* a recording has no further answer */
    bool bad_start; /* the start itself does not pass the gate: nothing was tried, and nothing says
                       anything of the card */
    bool estimated; /* a call's tokens were counted from bytes */
    kl_str why;     /* of the last failure */
} kl_materialized;

/* `tries`: at most KL_MAX_TRIES.  `reach`: stop trying when the gain is at least this and the gate
 * calls it faster (0: anything faster). Errors: as kl_ask and kl_judge; the end of a recording is
 * none. */
KL_MUST_USE kl_err kl_skill_materialize(kl_materialized *out, kl_track *t, const kl_card *card,
                                        const kl_start *start, int tries, double reach,
                                        kl_error *e);

/* ---- admit ------------------------------------------------------------------------------- */

typedef struct {
    int trials;       /* pairs at most; 0: 6 */
    int tries;        /* proposals per attempt; 0: 3 */
    double reproduce; /* share of the expected log-gain; 0: 0.9 */
    const char *run;  /* id of the run, for the records; NULL: none */
    const kl_card
        *placebo; /* shown in the card's place, cut to its length; NULL: no such control */
} kl_admit_opts;

/* ---- uplift: what a card adds ------------------------------------------------------------ */

typedef enum { KL_OVER_NONE, KL_OVER_PLACEBO, KL_CONTROLS } kl_control;
const char *kl_control_name(kl_control over); /* kind of its records */

/* With an interval of 95 % that holds at every look; infinite while nothing can be said. */
typedef struct {
    double mean, low, high;
} kl_difference;
typedef struct {
    int pairs, starts, foreign; /* starts of another task or lineage than the card's own */
    kl_difference success, log_gain, dollars;
} kl_uplift;
void kl_card_uplift(kl_uplift *out, const kl_card *c, kl_control over);
/* Surely more gain, or surely as good for less money. */
bool kl_uplift_pays(const kl_uplift *u);
/* Surely neither. */
bool kl_uplift_futile(const kl_uplift *u);
/* Would it pay if each of `more` further pairs were as good as the best so far? true without any.
 */
bool kl_card_uplift_in_reach(const kl_card *c, kl_control over, int more);
kl_str kl_uplift_text(kl_arena *a, const kl_uplift *u, kl_control over);
/* The card that is least like `c` and about as long: another action, where there is one on another
 * surface; NULL: there is none. */
const kl_card *kl_card_placebo(const kl_library *l, kl_arena *a, const kl_card *c);

/* Did this run decide on the card already?  The same command again then leaves it as it is: what it
 * asked once it does not ask again. */
bool kl_card_decided(const kl_card *c, const char *run);

/* Uplift on held-out starts: the model sees a start that the card was not lifted from, with the
 * card, without it, and with a placebo, each in a conversation of its own, until the differences
 * say enough.  Every trial is logged in the card, failures too; the card ends ADMITTED or REJECTED
 * in `dir`, or RETIRED when it was admitted before, or TRIAL when a trial could not be measured, a
 * recording ended, or starts of other work are missing (one that was admitted stays so then). KL_OK
 * with REJECTED, no model asked, when no start fits its contract or the contract does not tell the
 * starts apart (says so).  The card is shown as it was at the call: no trial is told of another.
 * Errors: KL_PENDING when answers or verdicts are missing (all that is open of the first three
 * pairs was asked for then; `dir` is untouched), and those of the gate and the model. */
KL_MUST_USE kl_err kl_skill_admit(kl_card *c, kl_track *t, const char *dir, const kl_start *starts,
                                  int n_starts, const kl_admit_opts *o, kl_error *e);

/* ---- retrieve ---------------------------------------------------------------------------- */

typedef struct {
    kl_str case_name, surface, platform, dtype;
    kl_str prior;             /* action ids already applied, separated by spaces */
    const kl_traits *traits;  /* of the current kernel */
    const kl_facts *facts;    /* of the same; NULL: contracts that ask for facts are unknown */
    int64_t simd_bits, cores; /* of the device; 0 unknown */
} kl_target;

typedef enum { KL_FIT_MET, KL_FIT_UNKNOWN, KL_FIT_VIOLATED } kl_fit;

/* What is expected of an action on a state. */
typedef struct {
    double p;                   /* it passes and is faster */
    double log_gain, deviation; /* where it is: of a normal distribution */
    int n;                      /* applications of that action that the model has seen */
} kl_expectation;

typedef struct {
    const kl_card *card;
    double similarity[4];     /* case, language, platform, prior actions: 0..1 */
    kl_fit fit;               /* of contract and predicates */
    bool intent;              /* of another surface: what it is about applies, its code does not */
    kl_str why;               /* what is unknown or violated */
    double expected_log_gain; /* empirical Bayes, shrunk across scope, failures in it */
    double cost_usd;          /* of one attempt, estimated */
    double score;             /* expected log-gain per dollar */
    bool predicted;           /* `expected` is the gain model's, here; see kl_gain_predict */
    kl_expectation expected;
    double bound; /* log of the most that the device allows from here; infinity: not known */
} kl_match;

typedef struct {
    int top;  /* per dimension; 0: 4 */
    bool all; /* violated ones too, last */
} kl_retrieve_opts;

/* Union of the top-k of each dimension over verified scope, contracts applied, best score first.
 * Admitted, unedited cards only. */
void kl_library_retrieve(kl_match **out, int *n, kl_arena *a, const kl_library *l,
                         const kl_target *target, const kl_retrieve_opts *o);

/* The cards of a surface, sorted by name; of more than `most` those that gained most.  The array
 * lives in the arena. */
int kl_library_of_surface(const kl_card ***out, kl_arena *a, const kl_library *l, kl_str surface,
                          int most);

/* ---- a card in few words ----------------------------------------------------------------- */

/* `name | action | what it does | where it applies`, so many words of the last two: the same bytes
 * whatever the target. */
kl_str kl_card_line(kl_arena *a, const kl_card *c, int words);
/* One line: does it fit, and what did trials show?  No number rests on fewer than five of them. */
kl_str kl_card_standing(kl_arena *a, const kl_match *m);
/* Intent, preconditions with their values on the target, the beginning of the sketch, risks. */
kl_str kl_card_brief(kl_arena *a, const kl_match *m, const kl_target *t);

/* ---- prove: does a contract tell states apart? ------------------------------------------- */

/* A state that a contract is held against. */
typedef struct {
    kl_str hash, name;
    kl_target target; /* with its facts; the platform is the card's own */
    bool alone;       /* the only kernel of its task and surface: what works on it is not known */
    bool twin;        /* another one before it has the same facts */
} kl_pool_state;
/* A line in `left_out` for each start that cannot be parsed; how many others. */
int kl_contract_pool(kl_pool_state **out, kl_str *left_out, kl_arena *a, const kl_start *starts,
                     int n);

/* A contract has to hold on what the card was lifted from and worked on, to refuse what its births
 * led to, and to refuse nine of ten foreign states: those of another surface, and those of tasks on
 * which other cards worked and this one never did; twins count once. */
typedef struct {
    int starts, starts_met, results, results_refused, foreign, foreign_refused;
    bool good;
    kl_str why; /* the first state that tells against it, and what was answered; empty when good */
} kl_contract_proof;
#define KL_FOREIGN_SHARE 0.9

/* States that are not in the pool are not asked for. */
void kl_contract_prove(kl_contract_proof *out, kl_arena *a, const kl_card *c,
                       const kl_pool_state *pool, int n);
/* Cells of LIBRARY/labels.tsv: kernels of the pool, by their hash, and the cards that a reader said
 * apply to them; borderline ones are left out, ideas of other surfaces are no offers. */
typedef struct {
    int kernels, offered, applicable, hits;
} kl_label_score;
/* No labels: no kernels.  Errors: KL_EIO, KL_ELIMIT. */
KL_MUST_USE kl_err kl_labels_score(kl_label_score *out, kl_arena *a, const kl_library *l,
                                   const kl_pool_state *pool, int n, kl_error *e);
/* May a card with this contract enter?  Errors: KL_EINVAL with what tells against it. */
KL_MUST_USE kl_err kl_contract_check(const kl_card *c, kl_arena *a, const kl_start *starts, int n,
                                     kl_error *e);

/* ---- probes: what cards and actions did to states ---------------------------------------- */

typedef enum {
#define KL_DEF_PROBE_OUTCOME(id, name, meaning) id,
#include <klineage/skill.def>
} kl_probe_outcome;
const char *kl_probe_outcome_name(kl_probe_outcome o);

/* One application of a card or an action to a state, however many proposals it took. */
typedef struct {
#define KL_DEF_PROBE KL_MEMBER
#include <klineage/skill.def>
} kl_probe;
/* What a state is, for who learns from probes. */
typedef struct {
#define KL_DEF_PROBE_STATE KL_MEMBER
#include <klineage/skill.def>
} kl_probe_state;
extern const kl_record KL_PROBE;
extern const kl_record KL_PROBE_STATE;

typedef struct {
    kl_probe *at; /* sorted by place, once they were kept or loaded */
    kl_probe_state *states;
    size_t n, n_states;
} kl_probes;

#define KL_MAX_PROBES 200000 /* of one library; a search of a day makes some hundred */

/* Takes the place of the row that is there already, if any. */
void kl_probes_add(kl_probes *p, kl_arena *a, const kl_probe *row);
void kl_probes_add_state(kl_probes *p, kl_arena *a, const kl_probe_state *s);
const kl_probe_state *kl_probes_state(const kl_probes *p, kl_str hash); /* NULL: not there */
/* Verdicts that lie beside a lineage, NAME.evidence.jsonl. */
typedef struct {
    kl_str key;
    kl_verdict verdict;
} kl_kept_verdict;
typedef struct {
    kl_kept_verdict *at;
    size_t n;
} kl_kept_verdicts;
/* Adds those of a file.  Errors: KL_EPARSE, KL_EIO. */
KL_MUST_USE kl_err kl_kept_verdicts_read(kl_kept_verdicts *k, kl_arena *a, const char *path,
                                         kl_error *e);
/* One in which that kernel was timed; NULL: none. */
const kl_verdict *kl_kept_verdict_of(const kl_kept_verdicts *k, kl_str kernel);

/* Does a row speak of that kernel, as the state or as what came out? */
bool kl_probes_name(const kl_probes *p, kl_str hash);

/* Every edge, as the application of its action to the state that it leads from, and every forward
 * attempt that was rejected there, as far as its verdict is kept.  `l` tells which edge is whose
 * birth. */
void kl_probes_of_lineage(kl_probes *p, kl_arena *a, const kl_lineage *from,
                          const kl_kept_verdicts *kept, const kl_library *l);
/* The held-out trials. */
void kl_probes_of_card(kl_probes *p, kl_arena *a, const kl_card *c);
/* Every gated proposal of a run that names a card or an action.  Errors: those of the store. */
KL_MUST_USE kl_err kl_probes_of_run(kl_probes *p, kl_arena *a, kl_store *s, const kl_store_run *run,
                                    const kl_library *l, kl_error *e);
/* probes.jsonl and states.jsonl of a library; none there: none.  A row that cannot be read is
 * named in `e` and ends it: KL_EPARSE. */
KL_MUST_USE kl_err kl_probes_load(kl_probes *out, kl_arena *a, const char *dir, kl_error *e);
/* Adds the rows of one file, of either kind. */
KL_MUST_USE kl_err kl_probes_read(kl_probes *p, kl_arena *a, const char *path, kl_error *e);
KL_MUST_USE kl_err kl_probes_keep(kl_probes *p, const char *dir, kl_error *e);
/* What the state is: its facts that are numbers, and its features.  `v` NULL: it was not timed. */
void kl_probe_state_of(kl_probe_state *out, kl_arena *a, const kl_kernel *k, const kl_task *t,
                       const kl_workload *w, const kl_verdict *v);

/* A cell of the matrix: a card, or an action that no card was named for, on a task. */
typedef struct {
    kl_str what, surface, task;
    bool card;
    int n[KL_PROBE_UNDECIDED + 1]; /* by outcome */
    int tried;                     /* all but undecided ones */
    double middle;                 /* median gain of those that got faster; 0: none */
} kl_matrix_cell;
/* Sorted by surface, what and task; the array lives in the arena. */
size_t kl_probes_matrix(kl_matrix_cell **out, kl_arena *a, const kl_probes *p);

/* ---- gain: what is a card expected to do here? ------------------------------------------- */

typedef enum {
#define KL_DEF_FEATURE(id, ...) KL_GAIN_##id,
#include <klineage/skill.def>
    KL_GAIN_FEATURES
} kl_gain_feature;
const char *kl_gain_feature_name(kl_gain_feature f);
/* NaN: unknown. */
void kl_gain_features(double out[KL_GAIN_FEATURES], const kl_facts *f);

#define KL_GAIN_LEAST 5 /* applications of an action below which no number is given for it */

/* How well the model told what it had not seen, a whole task at a time. */
typedef struct {
    double brier, brier_base; /* of P(faster), and of the share of the other tasks */
    double slope;             /* of log gain over its prediction; 1 is right */
    double coverage;          /* of intervals that ought to hold 80 of 100 */
} kl_gain_figures;

typedef struct kl_gain_model kl_gain_model;
/* gain.txt of a library, which bench/gain.py writes; `*out` NULL where there is none.  Errors:
 * KL_EPARSE with its line. */
KL_MUST_USE kl_err kl_gain_load(kl_gain_model **out, kl_arena *a, const char *dir, kl_error *e);
const kl_gain_figures *kl_gain_figures_of(const kl_gain_model *m);
int kl_gain_rows(const kl_gain_model *m);
/* Were these the rows that it was fitted on? */
bool kl_gain_rests_on(const kl_gain_model *m, const kl_probes *p);

void kl_gain_expect(kl_expectation *out, const kl_gain_model *m, kl_str action,
                    const double features[KL_GAIN_FEATURES]);
/* Expected log-gain, failures in it, where nothing gains more than `bound`; infinity: none known.
 */
double kl_gain_value(const kl_expectation *x, double bound);
/* Of each match what the model expects on a state, and the score that follows: expected log-gain,
 * with failures and under the roofline, per dollar of prompt, answer, repairs and gate.  Their
 * order stays. */
void kl_gain_predict(kl_match *m, int n, const kl_gain_model *model, const kl_facts *f);
double kl_match_price(const kl_match *m); /* dollars, repairs and gate included */
/* Those that fit before those that may, ideas last; within these the best score first. */
void kl_matches_sort(kl_match *m, int n);
/* Log of the most that the device allows from here; infinity where that is not known. */
double kl_gain_bound(const double features[KL_GAIN_FEATURES]);

/* ---- plan: what to probe next ------------------------------------------------------------ */

typedef struct {
    const kl_card *card;
    const kl_start *start;
    kl_fit fit;
    int rows; /* of the card on that task, before */
    kl_expectation expected;
    double worth; /* how much is to be learned of what is how often met */
} kl_probe_cell;
/* Cards on starts of their surface on which they were neither born nor tried, most worth first; the
 * array lives in the arena and borrows cards and starts.  `model` NULL: none.  `across` NULL: no
 * more; a library: also as ideas on starts of another surface, where their contract does not refuse
 * and no card of the library that is of that surface and not rejected has their action. */
int kl_probe_plan(kl_probe_cell **out, kl_arena *a, const kl_card *const *cards, int n_cards,
                  const kl_start *starts, int n_starts, const kl_probes *known,
                  const kl_gain_model *model, const kl_library *across);

KL_API_END
#endif
