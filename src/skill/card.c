/* card.c - a SkillCard as files and as part of a prompt.
 *
 * SKILL.md is what a person or an agent reads: frontmatter that follows the Agent Skills format,
 * then eight sections.  evidence.json is what a program reads: trials, counts, the mechanical
 * patch, and the hash of the SKILL.md that they speak of.  Everything here is pure text; reading is
 * in card_read.c.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/hash.h"
#include "base/json.h"
#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {"lifted", "trial", "admitted", "rejected", "retired"};

const char *kl_card_status_name(kl_card_status s) {
    KL_ASSERT((size_t)s < KL_COUNT(status_names));
    return status_names[s];
}

/* ---- SKILL.md ---------------------------------------------------------------------------- */

/* A double-quoted YAML scalar; JSON's quoting is one. */
kl_str kl_card_name(const kl_card *c) { return c->name; }
kl_card_status kl_card_status_of(const kl_card *c) { return c->status; }
const kl_trial_record *kl_card_trial_each(const kl_card *c, int i) {
    return i >= 0 && i < c->n_trials ? &c->trials[i] : NULL;
}

static void card_quoted(kl_buf *out, const char *key, kl_str value) {
    json_t *text = kli_json_str(value);
    char *json = json_dumps(text, JSON_ENCODE_ANY);
    kl_buf_printf(out, "%s: %s\n", key, json);
    free(json);
    json_decref(text);
}

static void scope_lines(kl_buf *out, kl_arena *a, const char *prefix, const kl_scope *s) {
    const struct {
        const char *name;
        const kl_names *names;
    } rows[] = {{"cases", &s->cases},
                {"languages", &s->surfaces},
                {"platforms", &s->platforms},
                {"prior", &s->prior}};
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        card_quoted(out, kl_arena_printf(a, "  klineage-%s-%s", prefix, rows[i].name).ptr,
                    kli_names_text(a, rows[i].names));
}

static void frontmatter(kl_buf *out, kl_arena *a, const kl_card *c) {
    kl_buf_add(out, KL_S("---\n"));
    card_quoted(out, "name", c->name);
    card_quoted(out, "description", c->description);
    kl_buf_add(out, KL_S("license: \"Apache-2.0\"\nmetadata:\n  klineage-card: \"1\"\n"));
    card_quoted(out, "  klineage-status", kl_str_of(kl_card_status_name(c->status)));
    card_quoted(out, "  klineage-action", c->action);
    card_quoted(out, "  klineage-requires", c->required);
    card_quoted(out, "  klineage-provides", c->provides);
    card_quoted(out, "  klineage-conflicts", c->conflicts);
    card_quoted(out, "  klineage-expected-gain", kl_arena_printf(a, "%.4g", c->expected_gain));
    scope_lines(out, a, "verified", &c->verified);
    scope_lines(out, a, "declared", &c->declared);
    kl_buf_add(out, KL_S("---\n"));
}

static void card_section(kl_buf *out, const char *name, kl_str text) {
    kl_buf_printf(out, "\n## %s\n\n%.*s\n", name, KL_STR_ARG(text));
}

static void scope_sentence(kl_buf *out, kl_arena *a, const char *word, const kl_scope *s) {
    kl_buf_printf(out, "- %s: cases `%s`; languages `%s`; platforms `%s`; after `%s`\n", word,
                  kli_names_text(a, &s->cases).ptr, kli_names_text(a, &s->surfaces).ptr,
                  kli_names_text(a, &s->platforms).ptr, kli_names_text(a, &s->prior).ptr);
}

static void trial_line(kl_buf *out, const kl_trial_record *r) {
    kl_buf_printf(out, "- %.*s%s on `%.*s` (%.*s, %.*s): ", KL_STR_ARG(r->kind),
                  r->held_out ? ", held out," : "", KL_STR_ARG(r->start_name), KL_STR_ARG(r->task),
                  KL_STR_ARG(r->platform));
    const char *word = r->accepted           ? "accepted"
                       : kl_trial_decided(r) ? "not accepted"
                                             : "not decided";
    if (r->gain > 0)
        kl_buf_printf(out, "%.3gx [%.3g, %.3g], %s", r->gain, r->low, r->high, word);
    else
        kl_buf_printf(out, "%.*s, %s", KL_STR_ARG(r->outcome), word);
    if (r->why.len && !r->accepted) kl_buf_printf(out, ": %.*s", KL_STR_ARG(r->why));
    kl_buf_printf(out, " `%.12s`\n", r->receipt.len ? r->receipt.ptr : "no verdict");
}

static void lesson(kl_buf *out, const kl_card *c) {
    card_section(out, "Intent", c->intent);
    card_section(out, "Anchor", c->anchor);
    card_section(out, "Carrier", c->carrier);
    kl_buf_add(out, KL_S("\n## Preconditions\n\n"));
    kli_predicates_render(out, c->pre, c->n_pre);
    kl_buf_printf(out, "\nContract: requires `%.*s`; provides `%.*s`; conflicts `%.*s`.\n",
                  KL_STR_ARG(c->required), KL_STR_ARG(c->provides), KL_STR_ARG(c->conflicts));
    card_section(out, "Effect", c->effect);
    card_section(out, "Risks", c->risks);
}

static void sections(kl_buf *out, kl_arena *a, const kl_card *c) {
    lesson(out, c);
    kl_buf_add(out, KL_S("\n## Scope\n\n"));
    scope_sentence(out, a, "verified", &c->verified);
    scope_sentence(out, a, "declared", &c->declared);
    kl_buf_add(out, KL_S("\n## Verification\n\n"));
    for (int i = 0; i < c->n_trials; i++) trial_line(out, &c->trials[i]);
    if (c->verification.len) kl_buf_printf(out, "\n%.*s\n", KL_STR_ARG(c->verification));
}

void kl_card_render(const kl_card *c, kl_buf *skill_md, kl_buf *evidence_json) {
    kl_arena *a = kl_arena_new();
    kl_card copy = *c;
    frontmatter(skill_md, a, c);
    kl_buf_printf(skill_md, "\n# %.*s\n", KL_STR_ARG(c->name));
    sections(skill_md, a, c);
    memcpy(copy.body_hash, kli_hash_of(kl_buf_str(skill_md)).hex, sizeof copy.body_hash);
    json_t *evidence = kli_evidence_json(&copy);
    kl_buf_add(evidence_json, kli_json_dump(a, evidence, true));
    json_decref(evidence);
    kl_arena_free(a);
}

/* ---- as part of a prompt ----------------------------------------------------------------- */

static void open_card(kl_buf *out, const kl_card *c) {
    kl_buf_printf(out, "<card name=\"%.*s\" action=\"%.*s\" expected_gain=\"%.3g\">\n",
                  KL_STR_ARG(c->name), KL_STR_ARG(c->action), c->expected_gain);
}

kl_str kl_card_prompt(kl_arena *a, const kl_card *c) {
    kl_buf b = {0};
    open_card(&b, c);
    sections(&b, a, c);
    kl_buf_add(&b, KL_S("</card>\n"));
    return kli_buf_keep(&b, a);
}

kl_str kl_card_lesson(kl_arena *a, const kl_card *c) {
    kl_buf b = {0};
    open_card(&b, c);
    lesson(&b, c);
    kl_buf_add(&b, KL_S("</card>\n"));
    return kli_buf_keep(&b, a);
}
