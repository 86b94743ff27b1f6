/* skill_impl.h - what the files of skill share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SKILL_SKILL_IMPL_H
#define KL_SKILL_SKILL_IMPL_H
#include "base/parts.h"
#include <klineage/skill.h>

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
/* What facts show of all births of a group: requires, provides, conflicts.  Nothing where they show
 * no change. */
void kli_contract_of_births(kl_card *c, kl_arena *a, const kl_group *g);
/* Is one of the traits that the card promises higher than in the start?  True as well for a card
 * that promises nothing visible. */
bool kli_card_provided(const kl_card *c, const kl_traits *start, const kl_traits *result);

/* ---- library ----------------------------------------------------------------------------- */

/* kl_library_put without law 5's refusal: for admit alone. */
KL_MUST_USE kl_err kli_library_write(const char *dir, kl_card *c, kl_error *e);

#endif
