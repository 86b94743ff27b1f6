/* import.c - cards of the authors' release, both generations, as candidates of ours.
 *
 * First generation: a JSON object with skill_id, intent, anchor, carrier, precondition[], effect[],
 * risk[], scope{}.  Second: a SKILL.md with YAML skill_id, intent, preconditions, scope and a body.
 * Their evidence was measured by another gate, so nothing of it becomes a trial: an imported card
 * is lifted, has no verified scope, and has to be admitted here.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include <libfyaml.h>
#include <string.h>

#define MAX_TEXT 12000

/* ---- shared ------------------------------------------------------------------------------ */

static kl_str slug_action(kl_arena *a, kl_str id) {
    const kl_action *known = NULL;
    for (int i = 0; kl_action_each(i); i++) {
        const char *name = kl_action_each(i)->id;
        bool longer = !known || strlen(name) > strlen(known->id);
        if (longer && memmem(id.ptr, id.len, name, strlen(name))) known = kl_action_each(i);
    }
    if (known) return kl_str_of(known->id);
    kl_str slug = kli_slug(a, id), word = kl_arena_copy(a, kli_cut(slug, 40));
    for (char *p = (char *)word.ptr; *p; p++)
        if (*p == '-') *p = '_';
    return kl_arena_printf(a, "other:%.*s", KL_STR_ARG(word));
}

static void name_card(kl_card *c, kl_arena *a, kl_str id) {
    c->name = kli_slug(a, id);
    c->action = slug_action(a, id);
    c->status = KL_CARD_LIFTED;
    c->description = kl_arena_printf(a, "%.*s Imported; not admitted here yet.",
                                     KL_STR_ARG(kli_text_cut(c->intent, 900)));
    c->verification =
        KL_S("Imported from another library; its evidence was not measured by this gate.");
}

static void prose_predicate(kl_card *c, kl_arena *a, kl_pre_kind kind, kl_str prose) {
    *KL_PUSH(a, c->pre, c->n_pre) =
        (kl_predicate){.kind = kind, .prose = kli_section_clean(a, prose, 500)};
}

/* ---- first generation: JSON -------------------------------------------------------------- */

static kl_str import_lines_of(kl_arena *a, const json_t *list) {
    kl_buf b = {0};
    size_t i;
    const json_t *one;
    if (json_is_string(list)) kl_buf_printf(&b, "%s", json_string_value(list));
    json_array_foreach(list, i, one) if (json_is_string(one))
        kl_buf_printf(&b, "- %s\n", json_string_value(one));
    const kl_str text = kli_section_clean(a, kl_buf_str(&b), MAX_TEXT);
    kl_buf_fini(&b);
    return text;
}

static kl_names import_names(kl_arena *a, const json_t *from) {
    kl_names names = {0};
    size_t i;
    const json_t *one;
    json_array_foreach(from, i, one) kli_names_add(&names, a, kl_str_of(json_string_value(one)));
    return names;
}

static void from_json(kl_card *c, kl_arena *a, const json_t *o) {
    const json_t *scope = json_object_get(o, "scope"), *pre = json_object_get(o, "precondition"),
                 *one;
    size_t i;
    c->intent = import_lines_of(a, json_object_get(o, "intent"));
    c->anchor = import_lines_of(a, json_object_get(o, "anchor"));
    c->carrier = import_lines_of(a, json_object_get(o, "carrier"));
    c->effect = import_lines_of(a, json_object_get(o, "effect"));
    c->risks = import_lines_of(a, json_object_get(o, "risk"));
    json_array_foreach(pre, i, one) if (json_is_string(one))
        prose_predicate(c, a, KL_PRE_PIPELINE, kl_str_of(json_string_value(one)));
    c->declared = (kl_scope){import_names(a, json_object_get(scope, "cases")),
                             import_names(a, json_object_get(scope, "languages")),
                             import_names(a, json_object_get(scope, "platforms")),
                             import_names(a, json_object_get(scope, "prior_actions"))};
}

static kl_err import_json(kl_card *c, kl_arena *a, kl_str text, kl_str file, kl_error *e) {
    json_t *o = NULL;
    kl_str id;
    kl_err err = kli_json_parse(&o, text, file, e);
    if (!err) err = kli_json_text(&id, o, "skill_id", file, e);
    if (!err) {
        from_json(c, a, o);
        name_card(c, a, id);
    }
    json_decref(o);
    return err;
}

/* ---- second generation: SKILL.md --------------------------------------------------------- */

/* Their preconditions come as a mapping or list under the five names that ours have too. */
static void yaml_preconditions(kl_card *c, kl_arena *a, struct fy_document *d) {
    static const char *const theirs[] = {"/preconditions/Data types", "/preconditions/Layout",
                                         "/preconditions/Storage", "/preconditions/Pipeline",
                                         "/preconditions/Hardware"};
    kl_names all;
    for (int kind = 0; kind < (int)KL_COUNT(theirs); kind++) {
        all = kli_yaml_list(a, d, theirs[kind]);
        for (int i = 0; i < all.n; i++) prose_predicate(c, a, (kl_pre_kind)kind, all.at[i]);
    }
    all = c->n_pre ? (kl_names){0} : kli_yaml_list(a, d, "/preconditions");
    for (int i = 0; i < all.n; i++) prose_predicate(c, a, KL_PRE_PIPELINE, all.at[i]);
}

static kl_err import_skill_md(kl_card *c, kl_arena *a, kl_str text, const char *file, kl_error *e) {
    kl_str front, body;
    struct fy_document *d = NULL;
    kl_err err = kli_frontmatter_split(&front, &body, text, file, e);
    if (!err) err = kli_yaml_open(&d, front, file, e);
    kl_str id = err ? KL_S("") : kli_yaml_text(a, d, "/skill_id");
    if (!err && !id.len)
        err = kl_fail(e, KL_EPARSE, file,
                      "no skill_id in the frontmatter: this is no card of the authors' release");
    if (!err) {
        c->intent = kli_section_clean(a, kli_yaml_text(a, d, "/intent"), 1000);
        c->anchor = KL_S("See the carrier.");
        c->carrier = kli_section_clean(a, body, MAX_TEXT);
        yaml_preconditions(c, a, d);
        c->declared = (kl_scope){.cases = kli_yaml_list(a, d, "/scope/cases"),
                                 .surfaces = kli_yaml_list(a, d, "/scope/languages"),
                                 .platforms = kli_yaml_list(a, d, "/scope/platforms")};
        name_card(c, a, id);
    }
    fy_document_destroy(d);
    return err;
}

kl_err kl_card_import(kl_card **out, kl_arena *a, const char *path, kl_error *e) {
    kl_str text, file = kl_arena_copy(a, kl_str_of(path));
    kl_card *c = *out = KL_NEW(a, kl_card);
    if (kli_fs_is_dir(path)) file = kli_fs_join(a, path, "SKILL.md");
    kl_err err = kli_fs_read(&text, a, file.ptr, KL_MAX_CARD_BYTES * 4, e);
    if (err) return err;
    return kl_str_starts(kl_str_trim(text), KL_S("{")) ? import_json(c, a, text, file, e)
                                                       : import_skill_md(c, a, text, file.ptr, e);
}
