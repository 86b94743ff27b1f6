/* card_read.c - a SkillCard out of its folder.
 *
 * The frontmatter is YAML and anybody may have written it: libfyaml reads it, and only scalars
 * under known keys are taken.  What a person changed by hand is loaded and marked `edited`; who may
 * use it is not decided here.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

/* ---- frontmatter ------------------------------------------------------------------------- */

/* Text between the two `---` lines; what follows is the body. */
kl_err kli_frontmatter_split(kl_str *front, kl_str *body, kl_str text, const char *file,
                             kl_error *e) {
    if (!kl_str_starts(text, KL_S("---\n")))
        return kl_fail(e, KL_EPARSE, file, "no frontmatter: the first line is not ---");
    const char *end = strstr(text.ptr + 3, "\n---\n");
    if (!end)
        return kl_fail(e, KL_EPARSE, file, "the frontmatter does not end: no second --- line");
    *front = kli_between(text.ptr + 4, end + 1);
    *body = kli_between(end + 5, text.ptr + text.len);
    return KL_OK;
}

kl_err kli_yaml_open(struct fy_document **out, kl_str front, const char *file, kl_error *e) {
    /* FYPCF_QUIET does not keep what it finds wrong from stderr, and that quotes the file. */
    struct fy_diag *silent = fy_diag_create(NULL);
    if (!silent) kl_oom(sizeof(struct fy_diag *));
    fy_diag_set_collect_errors(silent, true);
    const struct fy_parse_cfg quiet = {.flags = FYPCF_QUIET, .diag = silent};
    *out = fy_document_build_from_string(&quiet, front.ptr, front.len);
    fy_diag_destroy(silent);
    if (*out && fy_node_is_mapping(fy_document_root(*out))) return KL_OK;
    fy_document_destroy(*out);
    *out = NULL;
    return kl_fail(e, KL_EPARSE, file, "the frontmatter is not a YAML mapping");
}

static kl_str scalar(kl_arena *a, struct fy_node *n) {
    size_t len = 0;
    const char *text = n && fy_node_is_scalar(n) ? fy_node_get_scalar(n, &len) : NULL;
    return text ? kl_arena_copy(a, (kl_str){text, len}) : KL_S("");
}

kl_str kli_yaml_text(kl_arena *a, struct fy_document *d, const char *path) {
    return scalar(a, fy_node_by_path(fy_document_root(d), path, FY_NT, FYNWF_DONT_FOLLOW));
}

kl_names kli_yaml_list(kl_arena *a, struct fy_document *d, const char *path) {
    struct fy_node *n = fy_node_by_path(fy_document_root(d), path, FY_NT, FYNWF_DONT_FOLLOW);
    kl_names names = {0};
    if (n && fy_node_is_scalar(n)) kli_names_add(&names, a, scalar(a, n));
    const int most = n && fy_node_is_sequence(n) ? fy_node_sequence_item_count(n) : 0;
    for (int i = 0; i < most; i++)
        kli_names_add(&names, a, scalar(a, fy_node_sequence_get_by_index(n, i)));
    return names;
}

static kl_names names_of(kl_arena *a, struct fy_document *d, const char *prefix, const char *what) {
    const kl_str path = kl_arena_printf(a, "/metadata/klineage-%s-%s", prefix, what);
    return kli_names_of(a, kli_yaml_text(a, d, path.ptr));
}

static kl_scope scope_of(kl_arena *a, struct fy_document *d, const char *prefix) {
    return (kl_scope){.cases = names_of(a, d, prefix, "cases"),
                      .surfaces = names_of(a, d, prefix, "languages"),
                      .platforms = names_of(a, d, prefix, "platforms"),
                      .prior = names_of(a, d, prefix, "prior")};
}

static bool parse_status(kl_card_status *out, kl_str name) {
    for (int s = KL_CARD_LIFTED; s <= KL_CARD_RETIRED; s++)
        if (kl_str_eq(name, kl_str_of(kl_card_status_name((kl_card_status)s))))
            return *out = (kl_card_status)s, true;
    return false;
}

static kl_err read_frontmatter(kl_card *c, kl_arena *a, struct fy_document *d, const char *file,
                               kl_error *e) {
    c->name = kli_yaml_text(a, d, "/name");
    c->description = kli_yaml_text(a, d, "/description");
    c->action = kli_yaml_text(a, d, "/metadata/klineage-action");
    c->required = kli_yaml_text(a, d, "/metadata/klineage-requires");
    c->provides = kli_yaml_text(a, d, "/metadata/klineage-provides");
    c->conflicts = kli_yaml_text(a, d, "/metadata/klineage-conflicts");
    c->expected_gain = strtod(kli_yaml_text(a, d, "/metadata/klineage-expected-gain").ptr, NULL);
    c->verified = scope_of(a, d, "verified");
    c->declared = scope_of(a, d, "declared");
    if (!c->name.len || !kl_str_eq(c->name, kli_slug(a, c->name)))
        return kl_fail(e, KL_EPARSE, file,
                       "`name` is missing or not lower-case letters, digits and single hyphens");
    if (!kl_action_valid(c->action))
        return kl_fail(e, KL_EPARSE, file, "klineage-action is no action of the vocabulary");
    if (!parse_status(&c->status, kli_yaml_text(a, d, "/metadata/klineage-status")))
        return kl_fail(e, KL_EPARSE, file,
                       "klineage-status is none of lifted, trial, admitted, rejected, retired");
    return KL_OK;
}

/* ---- body -------------------------------------------------------------------------------- */

static void read_body(kl_card *c, kl_arena *a, kl_str body) {
    c->intent = kl_arena_copy(a, kli_section(body, "Intent"));
    c->anchor = kl_arena_copy(a, kli_section(body, "Anchor"));
    c->carrier = kl_arena_copy(a, kli_section(body, "Carrier"));
    c->effect = kl_arena_copy(a, kli_section(body, "Effect"));
    c->risks = kl_arena_copy(a, kli_section(body, "Risks"));
    c->n_pre = kli_predicates_parse(&c->pre, a, kli_section(body, "Preconditions"));
}

static kl_err read_skill_md(kl_card *c, kl_arena *a, kl_str text, const char *file, kl_error *e) {
    kl_str front, body;
    struct fy_document *d = NULL;
    kl_err err = kli_frontmatter_split(&front, &body, text, file, e);
    if (!err) err = kli_yaml_open(&d, front, file, e);
    if (!err) err = read_frontmatter(c, a, d, file, e);
    if (!err) read_body(c, a, body);
    fy_document_destroy(d);
    return err;
}

kl_err kl_card_load(kl_card **out, kl_arena *a, const char *folder, kl_error *e) {
    kl_str text, json, skill = kli_fs_join(a, folder, "SKILL.md"),
                       evidence = kli_fs_join(a, folder, "evidence.json");
    kl_card *c = *out = KL_NEW(a, kl_card);
    c->folder = kl_arena_copy(a, kl_str_of(folder));
    kl_err err = kli_fs_read(&text, a, skill.ptr, KL_MAX_CARD_BYTES, e);
    if (!err) err = read_skill_md(c, a, text, skill.ptr, e);
    if (!err) err = kli_fs_read(&json, a, evidence.ptr, KL_MAX_JSON_BYTES, e);
    if (!err) err = kli_evidence_parse(c, a, json, evidence, e);
    if (!err) c->edited = strcmp(c->body_hash, kli_hash_of(text).hex) != 0;
    if (!err && !kl_str_eq(kli_fs_basename(folder), c->name))
        err = kl_fail(e, KL_EPARSE, skill.ptr, "the folder is not named like the card, `%.*s`",
                      KL_STR_ARG(c->name));
    return err;
}
