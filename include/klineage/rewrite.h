/* rewrite.h - changing a kernel's text: the words for a change, what a change does to a kernel, and
 * how a model says it.
 *
 * Owns the vocabulary of actions, the traits that show whether one is there, the format of a
 * proposal, the exact application of edits, mechanical undoing without a model, and the prompts.
 * Never calls a model, never runs a kernel, never touches a file: a proposal is data (law 7).
 * Formats: docs/formats/proposal.md. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_REWRITE_H
#define KLINEAGE_REWRITE_H

#include <klineage/gate.h>

KL_API_BEGIN

/* ---- actions: the vocabulary of optimizations (src/rewrite/actions.def) ------------------ */

/* One optimization.  A forward edge applies it, a backward step undoes it. */
typedef struct {
    const char *id;       /* "pack_b"; unknown ones are written "other:<slug>" */
    const char *forward;  /* what applying it does, one line */
    const char *backward; /* what undoing it leaves, one line */
    const char *needs;    /* its precondition, one line */
    uint32_t families;    /* kl_family: it makes sense on a surface that is of any of them */
    const char *witness;  /* traits, separated by spaces, any one of which rises when it is applied;
                             "" when none shows it */
    const char *after;    /* soft order: ids that usually come before, separated by spaces */
    const char *risks;    /* codes of docs/method.md: "R3 R8" */
    const char *follows;  /* traits that may vanish together with it without being named: what only
                             it made possible */
} kl_action;

const kl_action *kl_action_each(int i);     /* NULL past the end */
const kl_action *kl_action_find(kl_str id); /* NULL when it is not in the table */
/* As a predicate over facts: of which operators it is of use; empty: of any. */
kl_str kl_action_operators(kl_arena *a, const kl_action *x);
bool kl_action_valid(kl_str id); /* in the table, or other:<a-z 0-9 _, at most 40> */

/* ---- traits: what is there in a kernel --------------------------------------------------- */

/* Numbers by name, sorted by name.  "code.*" were read from compiled code by the gate
 * (verdict.features); "source.*" from the parsed source and the directives, for what compiled code
 * cannot show: loop nests, blocking, buffers, launches.  Comments, strings and unused names do not
 * count.  Names: docs/formats/traits.md. */
typedef struct {
    kl_feature at[96];
    int n;
} kl_traits;

/* `v` NULL: source traits alone.  Names live in the arena. */
void kl_traits_of(kl_traits *out, kl_arena *a, const kl_kernel *k, const kl_verdict *v);
double kl_trait(const kl_traits *t, kl_str name); /* 0 when absent */
json_t *kl_traits_json(const kl_traits *t);       /* {"code.fma": 12, ...} */
void kl_traits_parse(kl_traits *out, kl_arena *a,
                     const json_t *o); /* anything that is no number is skipped */
/* Traits that are witnesses of actions and that are higher in `b` than in `a` ("source.buffers"),
 * separated by spaces. */
kl_str kl_traits_raised(kl_arena *arena, const kl_traits *a, const kl_traits *b);
/* Is every witness trait of `k` at or below that of the task's naive kernel?  Then nothing visible
 * is left to undo. `why` (may be NULL): the first that is not. */
bool kl_traits_naive(const kl_traits *k, const kl_traits *naive, kl_str *why, kl_arena *a);
/* What undoing `action` did, given the traits on both sides: KL_OK, or KL_EINVAL with one line for
 * the model: the action's witness did not fall, another action's witness vanished that the action
 * (and `bundle`) does not name, the text grew (tokens > 1.25 x + 20), or volatile, asm or a call
 * that can only waste time appeared. */
KL_MUST_USE kl_err kl_rewrite_check_undo(kl_str action, kl_str bundle, const kl_kernel *before,
                                         const kl_traits *t_before, const kl_kernel *after,
                                         const kl_traits *t_after, kl_error *e);

/* ---- facts: what a kernel's state is ----------------------------------------------------- */

typedef enum { KL_FACT_TRUTH, KL_FACT_NUMBER, KL_FACT_TEXT } kl_fact_kind;
typedef enum { KL_FACT_OF_STATE, KL_FACT_OF_LOOP, KL_FACT_OF_BUFFER, KL_FACT_SCOPES } kl_fact_scope;

/* One fact as it is declared in rewrite.def. */
typedef struct {
    const char *name;
    kl_fact_kind kind;
    const char *unit, *doc;
} kl_fact_row;

typedef struct {
    bool known;
    double number; /* of a truth: 0 or 1 */
    kl_str text;
    int line;    /* of the source; 0: of none */
    kl_str from; /* what else it was read from; may be empty */
} kl_fact;

/* Of one kernel, in the arena. */
typedef struct kl_facts kl_facts;

/* Computed from the parsed source, the task, and, where there is one, the verdict; the same numbers
 * on every machine but for those of the verdict.  `t`, `w` and `v` may be NULL: what they would
 * tell is unknown then. */
const kl_facts *kl_facts_of(kl_arena *a, const kl_kernel *k, const kl_task *t, const kl_workload *w,
                            const kl_verdict *v);
/* In the order of rewrite.def; NULL past the end. */
const kl_fact_row *kl_fact_each(kl_fact_scope scope, int i);
int kl_fact_find(kl_fact_scope scope, kl_str name); /* -1: none */
/* Could a kernel of this surface have it?  Loops are not read of Python, stages are of grids. */
bool kl_fact_given(kl_fact_scope scope, kl_str name, const kl_surface *s);
/* Of the state: a fact of rewrite.def, or a trait; unknown where there is none of that name. */
kl_fact kl_fact_of(const kl_facts *f, kl_str name);
json_t *kl_facts_json(const kl_facts *f);
void kl_facts_page(kl_buf *out); /* docs/formats/facts.md: all facts, in Markdown */
json_t *kl_facts_schema(void);   /* of what kl_facts_json writes, JSON Schema draft 2020-12 */
/* Is it an axis of an input that no output has? */
bool kl_task_contracts(const kl_task *t, kl_str axis);

/* ---- proposals: what a model answers ----------------------------------------------------- */

typedef struct {
    kl_str search, replace;
    size_t offset; /* in the reply */
} kl_edit;

typedef enum { KL_PROPOSAL_EDITS, KL_PROPOSAL_FILE, KL_PROPOSAL_DONE } kl_proposal_kind;

typedef struct {
    kl_proposal_kind kind;
    kl_str action, locus, why; /* header lines ACTION: LOCUS: WHY:; empty when absent */
    kl_str bundle;             /* BUNDLE: further action ids that had to go with it */
    kl_str card;               /* CARD: name of the SkillCard that was applied */
    kl_str fetch; /* FETCH: name of a SkillCard to be shown whole.  A reply that says nothing else
                     is none of the kinds (KL_EPARSE), with this set. */
    kl_edit *edits;
    int n_edits; /* SEARCH/REPLACE blocks in order */
    kl_str file; /* whole file: the last fenced block with the surface's tag */
} kl_proposal;

/* Header lines, then SEARCH/REPLACE blocks, or one fenced file, or DONE: reason.  Everything else
 * in the reply is talk and ignored. Errors, all with a message that can be sent back to the model:
 * KL_EPARSE (nothing usable, a block that does not end, a block that names a path), KL_ELIMIT
 * (above KL_MAX_REPLY_BYTES, more than 64 blocks). */
KL_MUST_USE kl_err kl_proposal_parse(kl_proposal *out, kl_arena *a, kl_str reply,
                                     const kl_surface *surface, kl_error *e);
/* All or nothing: exact and unique, else without trailing white space, else shifted by one uniform
 * indent; never fuzzy.  Errors: KL_EINVAL: not found (detail shows the nearest region), several
 * places (their lines), nothing would change. */
KL_MUST_USE kl_err kl_edits_apply(kl_str *out, kl_arena *a, kl_str source, const kl_edit *edits,
                                  int n, kl_error *e);
/* The proposal's text for `source`: edits applied or the file itself.  Errors as above; KL_EINVAL
 * when it equals `source` up to white space. */
KL_MUST_USE kl_err kl_proposal_apply(kl_str *out, kl_arena *a, kl_str source, const kl_proposal *p,
                                     kl_error *e);
/* SEARCH/REPLACE blocks that turn `from` into `to` (whole lines, enough context to be unique): a
 * carrier that can be applied as a patch. */
kl_str kl_edits_between(kl_arena *a, kl_str from, kl_str to);

/* What a model is told of a verdict: outcome, the compiler's words or the first wrong element,
 * ratio with its interval, resources.  At most 4 KiB; no host paths. */
kl_str kl_rewrite_feedback(kl_arena *a, const kl_verdict *v);

/* ---- mechanical: undoing without a model ------------------------------------------------- */

typedef struct {
    kl_str action, locus, source;
} kl_undoing;

/* Every mechanical simplification that applies to `k`, the last-applied optimization first; at most
 * `max`.  Pure text; each result still has to pass the gate. */
int kl_rewrite_undo(kl_undoing *out, int max, kl_arena *a, const kl_kernel *k);
/* Every mechanical variation of `k` by one step, undoings included: params, flags, hints before
 * loops, order and tiles of loops, promises of no aliasing; at most `max`.  `action` is autotune,
 * other:flags, unroll, simd_pragma, loop_order, restrict_alias, cache_block or that of the undoing.
 * Some of them are wrong or do not compile: that is for the gate to say. */
int kl_rewrite_mutate(kl_undoing *out, int max, kl_arena *a, const kl_kernel *k);

/* ---- prompts (src/rewrite/prompts/NAME.md) ----------------------------------------------- */

typedef struct {
    const char *name;
    kl_str value;
} kl_prompt_value;

/* The text with every {{name}} replaced; values are never expanded again.  An unknown prompt, or a
 * placeholder without a value, is a bug.  docs/formats/proposal.md lists prompts and their values;
 * those of one policy alone:
 *   adaexplore_large (task platform tag pitfalls pool), _small (task platform pitfalls rounds
 *   guidance), _pitfalls (rules), _review (task platform kernel), _rule (kernel); _fix,
 *   _review_rules, _rule_rules: none
 *   accelopt_plan_rules (memory), _plan (task platform tag kernel profile limits), _execute (task
 * tag kernel profile plan), _fix (task tag kernel feedback), _summarize (tag slow fast speedup);
 *   _summarize_rules: none
 *   evolve_system (task), evolve (goal tag kernel state feedback limits failed others card),
 * evolve_card (name text) search_blocks: none */
kl_str kl_prompt(kl_arena *a, const char *name, const kl_prompt_value *values, int n);
/* "rules", filled for a surface: the same bytes every time. */
kl_str kl_prompt_rules(kl_arena *a, const kl_surface *s);
/* "actions", what goes behind the rules: the vocabulary, with what undoing each leaves where steps
 * are undone. */
kl_str kl_prompt_vocabulary(kl_arena *a, const kl_surface *s, bool undoing);
kl_str kl_prompt_system(kl_arena *a, const kl_surface *s); /* both, for who undoes */
const char *kl_prompt_tag(const kl_surface *s); /* of a fence around its source: "c", "python" */
/* The vocabulary for a surface, one line each: what is of use on any operator; with facts, what is
 * of use on operators of their kind alone. */
kl_str kl_prompt_actions(kl_arena *a, const kl_surface *s, const kl_facts *f, bool undoing);
/* The machine in words and numbers: a section of a prompt, the same bytes on every machine of the
 * kind.  What is not known of it is left out. */
kl_str kl_prompt_machine(kl_arena *a, const kl_device *d);
/* Where a verdict stands under the bounds of the machine, and which of them is nearer; empty where
 * that is not known. */
kl_str kl_prompt_limits(kl_arena *a, const kl_device *d, const kl_task *t, const kl_workload *w,
                        const kl_verdict *v);
/* What the compiler made of `k`, with how its innermost loops touch their operands: in some 500
 * tokens. */
kl_str kl_prompt_compiled(kl_arena *a, const kl_compiled *made, const kl_kernel *k,
                          const kl_task *t, const kl_workload *w);
/* The task as a model is told of it: definition, shapes of the workload, dtypes, tolerance, calling
 * convention, the naive kernel unless it is `shown`, the source of a kernel that the prompt holds
 * anyway, and the actions that are of use on operators of its kind alone. */
kl_str kl_prompt_task(kl_arena *a, const kl_task *t, const kl_workload *w, const kl_surface *s,
                      kl_str shown, bool undoing);

KL_API_END
#endif
