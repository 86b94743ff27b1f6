/* skill_impl.h - what the files of skill share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SKILL_SKILL_IMPL_H
#define KL_SKILL_SKILL_IMPL_H
#include "kernel/kernel.h"
#include "base/parts.h"
#include "skill/skill.h"

/* ---- words: lists that are kept as text separated by spaces ------------------------------ */

/* `words` with `word` behind it, unless it is there. */
kl_str kli_words_with(kl_arena *a, kl_str words, kl_str word);

/* ---- names: lists in the arena ----------------------------------------------------------- */

kl_names kli_names_of(kl_arena *a, kl_str words);
kl_str kli_names_text(kl_arena *a, const kl_names *names); /* separated by blanks */
bool kli_names_have(const kl_names *names, kl_str name);
/* Unless it is empty or there; to a list that this and kli_names_of alone made. */
void kli_names_add(kl_names *names, kl_arena *a, kl_str name);

/* ---- text of a card ---------------------------------------------------------------------- */

extern const char *const kli_pre_names[5]; /* by kl_pre_kind */

/* "- data: [dtype == float32] - prose" lines; anything else is skipped. */
int kli_predicates_parse(kl_predicate **out, kl_arena *a, kl_str text);
void kli_predicates_render(kl_buf *out, const kl_predicate *p, int n);
/* The text below the heading `## name`, up to the next of the eight; fences are respected.  Empty
 * when it is not there. */
kl_str kli_section(kl_str body, const char *name);
/* Lower-case letters, digits and single hyphens, at most 64: an Agent Skills name. */
kl_str kli_slug(kl_arena *a, kl_str text);
/* The beginning of `s`, at most `max` bytes, cut between characters. */
kl_str kli_text_cut(kl_str s, size_t max);
/* Model text made safe to stand in a section: cut at `max`, control characters gone, headings
 * escaped outside of fences, fences closed. */
kl_str kli_section_clean(kl_arena *a, kl_str text, size_t max);

/* ---- evidence ---------------------------------------------------------------------------- */

json_t *kli_evidence_json(const kl_card *c);
KL_MUST_USE kl_err kli_evidence_parse(kl_card *c, kl_arena *a, kl_str json, kl_str file,
                                      kl_error *e);
void kli_card_add_trial(kl_card *c, kl_arena *a, const kl_trial_record *r);
#define KLI_NO_VOTE "undecided" /* outcome of a trial that shows nothing */

/* ---- import ------------------------------------------------------------------------------ */

/* Anchor, carrier (at most `most` bytes), patch and flags of a card that has action and intent. */
void kli_import_body(kl_card *c, kl_arena *a, kl_str body, size_t most);
/* Does it speak of the qualifier?  A kernel that was made slower for a lineage has it. */
bool kli_import_says_volatile(kl_str line);
/* The list in the body, for a frontmatter that has none. */
kl_str kli_import_preconditions(kl_str body);

/* ---- attempts ---------------------------------------------------------------------------- */

/* kl_skill_materialize of whatever was handed down, perhaps nothing: all are asked the same. */
typedef struct {
    const kl_start *start;
    kl_str label, handed_down;
    const char *place; /* of its slots */
} kli_attempt;
KL_MUST_USE kl_err kli_skill_attempt(kl_materialized *out, kl_track *t, const kli_attempt *x,
                                     int tries, double reach, kl_error *e);

/* ---- frontmatter ------------------------------------------------------------------------- */

struct fy_document;
KL_MUST_USE kl_err kli_frontmatter_split(kl_str *front, kl_str *body, kl_str text, const char *file,
                                         kl_error *e);
/* The caller destroys it. */
KL_MUST_USE kl_err kli_yaml_open(struct fy_document **out, kl_str front, const char *file,
                                 kl_error *e);
kl_str kli_yaml_text(kl_arena *a, struct fy_document *d,
                     const char *path); /* empty unless a scalar is there */
kl_names kli_yaml_list(kl_arena *a, struct fy_document *d,
                       const char *path); /* of a sequence, or of one scalar */

/* ---- contract ---------------------------------------------------------------------------- */

/* "NAME" of "NAME+". */
kl_str kli_trait_name_of(kl_str word);
/* Does the contract hold?  Then, does the card fit: its preconditions hold as well, such as the
 * language of its carrier.  `why`: the first thing that is violated, else the first that is
 * unknown. */
kl_fit kli_contract_fits(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why);
kl_fit kli_card_fits(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why);
/* What of the contract can be told of the target, a line each, with the values there. */
void kli_card_conditions(kl_buf *out, kl_arena *a, const kl_card *c, const kl_target *t);
/* What facts show of all births of a group: requires, provides, conflicts.  Nothing where they show
 * no change. */
void kli_contract_of_births(kl_card *c, kl_arena *a, const kl_group *g);
/* Is one of the traits that the card promises higher than in the start?  True as well for a card
 * that promises nothing visible. */
bool kli_card_provided(const kl_card *c, const kl_traits *start, const kl_traits *result);

/* ---- library ----------------------------------------------------------------------------- */

/* Is there such a folder?  Errors: KL_ENOENT. */
KL_MUST_USE kl_err kli_library_there(const char *dir, kl_error *e);
/* Where a card of this status and name lies. */
kl_str kli_library_folder(kl_arena *a, const char *dir, kl_card_status status, kl_str name);
/* kl_card_load of a card that lies among those of `status`; KL_EINVAL when it says otherwise. */
KL_MUST_USE kl_err kli_library_card_in(kl_card **out, kl_arena *a, const char *folder,
                                       kl_card_status status, kl_error *e);
/* kl_library_put without law 5's refusal: for admit alone. */
KL_MUST_USE kl_err kli_library_write(const char *dir, kl_card *c, kl_error *e);

/* ---- candidates: what is known of a card before it is read (candidates.c, index.c) --------- */

/* Decided trials at one place, a surface and a platform. */
typedef struct {
    int32_t place, n; /* place: from 1 */
    double log_gain;  /* their sum */
} kli_sum;
typedef struct {
    kl_str name;
    int scope,
        terms; /* of its verified scope, and of its contract within it: others may share them */
    int n_sums;
    const kli_sum *sums;
    int64_t bytes;       /* of what a model is told of it */
    const kl_card *card; /* once it was read */
    bool gone;           /* when it was to be read it was not there, or not to be used any more */
} kli_candidate;
/* Admitted, unedited cards. */
typedef struct kli_candidates {
    kli_candidate *at;
    int n;
    kl_str *places; /* "SURFACE PLATFORM", by place - 1 */
    int n_places;
    int n_scopes, n_terms;
    double mean;          /* log-gain of all their trials */
    kl_card_index *index; /* NULL: each has its card, and scope and terms of its own */
} kli_candidates;

void kli_candidates_of(kli_candidates *out, kl_arena *a, const kl_library *l);
/* The place of that name; 0 when it is not there. */
int kli_candidates_place(const kli_candidates *c, kl_str name);
const kl_scope *kli_candidate_scope(const kli_candidates *c, int at);
/* Is there a card of that surface with that action? */
bool kli_candidates_cover(const kli_candidates *c, kl_str surface, kl_str action);
/* The card itself; NULL when it is gone. */
const kl_card *kli_candidate_card(const kli_candidates *c, int at);

/* For the index: one sum a place, places that are new go to `places`; how many. */
int kli_card_sums(kli_sum **out, kli_candidates *places, kl_arena *a, const kl_card *c);
int64_t kli_card_said_bytes(const kl_card *c);
bool kli_card_usable(const kl_card *c);
void kli_candidates_settle(kli_candidates *c); /* the mean */

const kli_candidates *kli_index_candidates(const kl_card_index *x);
const kl_scope *kli_index_scope(const kl_card_index *x, int scope);
bool kli_index_covers(const kl_card_index *x, kl_str surface, kl_str action);
kl_str kli_index_action(const kl_card_index *x, int scope);
/* Of a contract: the numbers of its lines. */
const int32_t *kli_index_contract(const kl_card_index *x, int terms, int *n);
int kli_index_lines(const kl_card_index *x); /* of all contracts */
kl_str kli_index_line(const kl_card_index *x, int line);
const kl_card *kli_index_card(kl_card_index *x, int at);
const kl_card *kli_index_card_named(kl_card_index *x, kl_str name);
kl_str kli_index_id(const kl_card_index *x);

/* ---- screen.c ---------------------------------------------------------------------------- */

/* What of a card decides whether it fits, a condition a line, without prose. */
kl_str kli_contract_lines(kl_arena *a, const kl_card *c);

typedef struct kli_screen kli_screen;
/* Of candidates that have an index; keeps what it was asked. */
kli_screen *kli_screen_new(kl_arena *a, const kli_candidates *from, const kl_target *target);
/* Would the card be refused, as far as the index knows it? */
bool kli_screen_refuses(kli_screen *s, int at);

#endif
