/* import.c - cards of the authors' release, both generations, as candidates of ours.
 *
 * First generation: a JSON object with skill_id, intent, anchor, carrier, precondition[], effect[],
 * risk[], scope{}, contract{}, evidence[].  Second: a SKILL.md with YAML skill_id, intent,
 * preconditions, scope and a body (snippets.c), or the same as a JSON object.  Their evidence was
 * measured by another gate, so nothing of it becomes a trial: an imported card is lifted, has no
 * verified scope, and has to be admitted here.  What a machine can use is kept: kinds of
 * preconditions, places by our names, the change as a patch, the action by our vocabulary, and
 * where it all came from.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include <ctype.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 36000 /* of a carrier: a card has 64 KiB */

/* ---- names ------------------------------------------------------------------------------- */

static const struct {
    const char *part, *action;
} SYNONYMS[] = {
#define SYNONYM(part, action) {part, action},
#include "synonyms.def"
#undef SYNONYM
};

/* "fmha.online-softmax" -> "online_softmax" */
static kl_str id_words(kl_arena *a, kl_str id) {
    const char *dot = memchr(id.ptr, '.', id.len);
    kl_str slug = kli_slug(a, dot ? kli_between(dot + 1, id.ptr + id.len) : id);
    char *words = (char *)(uintptr_t)kl_arena_copy(a, kli_cut(slug, 40)).ptr; /* our own copy */
    for (char *p = words; *p; p++)
        if (*p == '-') *p = '_';
    return kl_str_of(words);
}

/* Does `words` have the words of `name`, one behind the other?  One word is said by the way too
 * often to mean an action: it has to be all there is. */
static bool has_words(kl_str words, const char *name) {
    const size_t len = strlen(name);
    const char *at = memmem(words.ptr, words.len, name, len);
    if (!at) return false;
    if (!strchr(name, '_')) return words.len == len;
    const char *end = at + len;
    return (at == words.ptr || at[-1] == '_') && (end == words.ptr + words.len || *end == '_');
}

static kl_str imported_action(kl_arena *a, kl_str id) {
    const kl_str words = id_words(a, id);
    const char *known = "";
    for (size_t i = 0; i < KL_COUNT(SYNONYMS); i++) {
        if (!memmem(words.ptr, words.len, SYNONYMS[i].part, strlen(SYNONYMS[i].part))) continue;
        if (*SYNONYMS[i].action) return kl_str_of(SYNONYMS[i].action);
        return kl_arena_printf(a, "other:%.*s", KL_STR_ARG(words));
    }
    for (int i = 0; kl_action_each(i); i++) {
        const char *name = kl_action_each(i)->id;
        if (strlen(name) > strlen(known) && has_words(words, name)) known = name;
    }
    return *known ? kl_str_of(known) : kl_arena_printf(a, "other:%.*s", KL_STR_ARG(words));
}

/* "*" is none: any. */
static kl_names told_names(kl_arena *a, kl_names theirs) {
    kl_names ours = {0};
    for (int i = 0; i < theirs.n; i++)
        if (!kl_str_eq(theirs.at[i], KL_S("*"))) kli_names_add(&ours, a, theirs.at[i]);
    return ours;
}

/* "nvidia-sm90a-cuda13" -> "nvidia-sm90a/cuda-13": the last part is a toolchain and its version. */
static kl_str our_platform(kl_arena *a, kl_str name) {
    size_t dash = name.len, digit = name.len;
    while (dash && name.ptr[dash - 1] != '-') dash--;
    while (digit > dash &&
           (isdigit((unsigned char)name.ptr[digit - 1]) || name.ptr[digit - 1] == '.'))
        digit--;
    if (!dash || digit == dash || digit == name.len || memchr(name.ptr, '/', name.len)) return name;
    return kl_arena_printf(a, "%.*s/%.*s-%.*s", (int)dash - 1, name.ptr, (int)(digit - dash),
                           name.ptr + dash, (int)(name.len - digit), name.ptr + digit);
}

static kl_names our_platforms(kl_arena *a, kl_names theirs) {
    kl_names ours = {0};
    for (int i = 0; i < theirs.n; i++) kli_names_add(&ours, a, our_platform(a, theirs.at[i]));
    return told_names(a, ours);
}

/* Traits that the action is known by; what else the card brings, its text says. */
static kl_str witnessed(kl_arena *a, kl_str id) {
    const kl_action *action = kl_action_find(id);
    kl_str words = kl_str_of(action ? action->witness : ""), provides = {0};
    for (kl_str w; kli_next_word(&w, &words);)
        provides = kli_words_with(a, provides, kl_arena_printf(a, "%.*s+", KL_STR_ARG(w)));
    return provides;
}

static void name_card(kl_card *c, kl_arena *a, kl_str id) {
    c->name = kli_slug(a, id);
    c->action = imported_action(a, id);
    c->provides = witnessed(a, c->action);
    c->status = KL_CARD_LIFTED;
    c->description = kl_arena_printf(a, "%.*s Imported; not admitted here yet.",
                                     KL_STR_ARG(kli_text_cut(c->intent, 900)));
    c->verification =
        KL_S("Imported from another library; its evidence was not measured by this gate.");
}

/* ---- preconditions ----------------------------------------------------------------------- */

/* Their five kinds, in our order. */
static const char *const kinds[] = {"Data types", "Layout", "Storage", "Pipeline", "Hardware"};

/* "Data types: ..." says its kind; what says none is about the pipeline. */
static void prose_predicate(kl_card *c, kl_arena *a, kl_str text) {
    kl_pre_kind kind = KL_PRE_PIPELINE;
    for (size_t i = 0; i < KL_COUNT(kinds); i++) {
        const size_t len = strlen(kinds[i]);
        if (text.len <= len || strncasecmp(text.ptr, kinds[i], len) != 0 || text.ptr[len] != ':')
            continue;
        kind = (kl_pre_kind)i;
        text = kli_from(text, len + 1);
    }
    *KL_PUSH(a, c->pre, c->n_pre) =
        (kl_predicate){.kind = kind, .prose = kli_section_clean(a, text, 500)};
}

/* The language of a carrier is a fact that can be asked. */
static void language_predicate(kl_card *c, kl_arena *a) {
    if (c->declared.surfaces.n != 1) return;
    *KL_PUSH(a, c->pre, c->n_pre) = (kl_predicate){.kind = KL_PRE_HARDWARE,
                                                   .fact = KL_S("language"),
                                                   .op = KL_S("=="),
                                                   .value = c->declared.surfaces.at[0],
                                                   .prose = KL_S("the language of the carrier")};
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
    json_array_foreach(from, i, one) if (json_is_string(one))
        kli_names_add(&names, a, kl_str_of(json_string_value(one)));
    return told_names(a, names);
}

/* What a feature of theirs is by our traits: the sign of the action that it is named after. */
static kl_str sign_of(kl_arena *a, kl_str feature) {
    const kl_action *action = kl_action_find(imported_action(a, feature));
    const kl_str witness = kl_str_of(action ? action->witness : "");
    return memchr(witness.ptr, ' ', witness.len) ? (kl_str){0} : witness;
}

/* {"locus": "mainloop", "name": "tma_load"}; what has no trait of ours is said. */
static kl_str features(kl_card *c, kl_arena *a, const json_t *list, const char *word) {
    kl_str words = {0};
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one) {
        const kl_str name = kli_json_text_or(one, "name", (kl_str){0}),
                     locus = kli_json_text_or(one, "locus", (kl_str){0}), sign = sign_of(a, name);
        if (sign.len) words = kli_words_with(a, words, sign);
        if (name.len)
            prose_predicate(c, a,
                            kl_arena_printf(a, "%s %.*s%s%.*s", word, KL_STR_ARG(name),
                                            locus.len ? " at " : "", KL_STR_ARG(locus)));
    }
    return words;
}

static void json_contract(kl_card *c, kl_arena *a, const json_t *o) {
    c->required = features(c, a, json_object_get(o, "requires"), "requires");
    c->conflicts = features(c, a, json_object_get(o, "conflicts"), "conflicts with");
}

/* Their category says better than an id what was done. */
static void json_evidence(kl_card *c, kl_arena *a, const json_t *evidence) {
    const json_t *one = json_array_get(evidence, 0);
    const kl_str category = kli_json_text_or(one, "action_category", (kl_str){0}),
                 action = category.len ? imported_action(a, category) : (kl_str){0};
    if (!kl_action_find(action)) return;
    c->action = action;
    c->provides = witnessed(a, action);
}

static void json_preconditions(kl_card *c, kl_arena *a, const json_t *list) {
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one) if (json_is_string(one))
        prose_predicate(c, a, kl_str_of(json_string_value(one)));
}

static void from_json(kl_card *c, kl_arena *a, const json_t *o) {
    const json_t *scope = json_object_get(o, "scope");
    c->intent = import_lines_of(a, json_object_get(o, "intent"));
    c->anchor = import_lines_of(a, json_object_get(o, "anchor"));
    c->carrier = import_lines_of(a, json_object_get(o, "carrier"));
    c->effect = import_lines_of(a, json_object_get(o, "effect"));
    c->risks = import_lines_of(a, json_object_get(o, "risk"));
    json_preconditions(c, a, json_object_get(o, "precondition"));
    json_preconditions(c, a, json_object_get(o, "preconditions"));
    json_contract(c, a, json_object_get(o, "contract"));
    if (kli_import_says_volatile(c->carrier)) c->flags = KL_S("undoes-volatile");
    c->declared = (kl_scope){import_names(a, json_object_get(scope, "cases")),
                             import_names(a, json_object_get(scope, "languages")),
                             our_platforms(a, import_names(a, json_object_get(scope, "platforms"))),
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
        json_evidence(c, a, json_object_get(o, "evidence"));
        const kl_str body = kli_json_text_or(o, "body", (kl_str){0});
        if (body.len) kli_import_body(c, a, kl_arena_copy(a, body), MAX_TEXT);
        c->origin = kl_arena_copy(a, id);
    }
    json_decref(o);
    return err;
}

/* ---- second generation: SKILL.md --------------------------------------------------------- */

/* A bullet of a list, with the lines that go on from it. */
static void bullets(kl_card *c, kl_arena *a, kl_str text) {
    kl_buf b = {0};
    for (kl_str line; kli_next_line(&line, &text);) {
        const bool begins = kl_str_starts(line, KL_S("- "));
        if (begins && b.len) prose_predicate(c, a, kl_buf_take(&b, a));
        if (begins || b.len)
            kl_buf_printf(&b, "%s%.*s", begins ? "" : " ",
                          KL_STR_ARG(kl_str_trim(begins ? kli_from(line, 2) : line)));
    }
    if (b.len) prose_predicate(c, a, kl_buf_take(&b, a));
}

/* A list of "Kind: text", or a mapping of the five names, or only in the body. */
static void yaml_preconditions(kl_card *c, kl_arena *a, struct fy_document *d, kl_str body) {
    for (size_t kind = 0; kind < KL_COUNT(kinds); kind++) {
        const char *path = kl_arena_printf(a, "/preconditions/%s", kinds[kind]).ptr;
        const kl_names some = kli_yaml_list(a, d, path);
        for (int i = 0; i < some.n; i++)
            prose_predicate(c, a,
                            kl_arena_printf(a, "%s: %.*s", kinds[kind], KL_STR_ARG(some.at[i])));
    }
    const kl_names all = c->n_pre ? (kl_names){0} : kli_yaml_list(a, d, "/preconditions");
    for (int i = 0; i < all.n; i++) prose_predicate(c, a, all.at[i]);
    if (!c->n_pre) bullets(c, a, kli_import_preconditions(body));
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
        c->declared =
            (kl_scope){.cases = told_names(a, kli_yaml_list(a, d, "/scope/cases")),
                       .surfaces = told_names(a, kli_yaml_list(a, d, "/scope/languages")),
                       .platforms = our_platforms(a, kli_yaml_list(a, d, "/scope/platforms"))};
        name_card(c, a, id);
        kli_import_body(c, a, body, MAX_TEXT);
        yaml_preconditions(c, a, d, body);
        c->origin = kl_arena_copy(a, id);
    }
    fy_document_destroy(d);
    return err;
}

/* ---- where from -------------------------------------------------------------------------- */

/* Of the checkout that the folder lies in; empty where it lies in none, or there is no git. */
static kl_str commit_of(kl_arena *a, const char *folder) {
    kli_proc_result r;
    const char *const argv[] = {"git", "-C", folder, "rev-parse", "HEAD", NULL};
    const kli_proc_spec spec = {.argv = argv, .timeout_ns = INT64_C(5000000000)};
    if (kli_proc_run(&r, a, &spec, kl_ignored()) || r.exit_code != 0) return (kl_str){0};
    return kl_str_trim(r.out);
}

static void note_origin(kl_card *c, kl_arena *a, kl_str text, const char *file) {
    const char *folder = kli_fs_dirname(a, file).ptr;
    const kl_str commit = commit_of(a, folder);
    c->origin =
        kl_arena_printf(a, "%.*s %s/%s sha256:%s%s%.*s", KL_STR_ARG(c->origin),
                        kli_fs_basename(folder).ptr, kli_fs_basename(file).ptr,
                        kli_hash_of(text).hex, commit.len ? " commit:" : "", KL_STR_ARG(commit));
}

/* ---- contract ---------------------------------------------------------------------------- */

/* What was learned here, of the same action and surface; admitted ones before candidates. */
static const kl_card *contract_lender(const kl_card *c, const kl_library *l) {
    const kl_card *found = NULL;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *x = &l->cards[i];
        const kl_names *own =
            x->verified.surfaces.n ? &x->verified.surfaces : &x->declared.surfaces;
        if (x->origin.len || x->edited || x->status > KL_CARD_ADMITTED ||
            !kl_card_has_contract(x) || !kl_str_eq(x->action, c->action) || !own->n ||
            !kli_names_have(&c->declared.surfaces, own->at[0]))
            continue;
        if (!found || (x->status == KL_CARD_ADMITTED && found->status != KL_CARD_ADMITTED))
            found = x;
    }
    return found;
}

static void lend(kl_card *c, kl_arena *a, const kl_card *from) {
    c->needs = from->needs, c->n_needs = from->n_needs;
    c->brings = from->brings, c->n_brings = from->n_brings;
    c->excludes = from->excludes, c->n_excludes = from->n_excludes;
    c->verification =
        kl_arena_printf(a, "%.*s Its contract is that of %.*s, which has the same action.",
                        KL_STR_ARG(c->verification), KL_STR_ARG(from->name));
}

void kl_card_lend_contract(kl_card *c, kl_arena *a, const kl_library *l) {
    const kl_action *action = kl_action_find(c->action);
    if (!action || kl_card_has_contract(c)) return;
    const kl_card *from = l ? contract_lender(c, l) : NULL;
    const kl_str operators = kl_action_operators(a, action);
    if (from) {
        lend(c, a, from);
    } else if (operators.len) {
        *KL_PUSH(a, c->needs, c->n_needs) = operators;
        c->verification =
            kl_arena_printf(a, "%.*s Its contract is of which operators its action is.",
                            KL_STR_ARG(c->verification));
    }
}

/* ---- a card, a folder of cards ----------------------------------------------------------- */

kl_err kl_card_import(kl_card **out, kl_arena *a, const char *path, kl_error *e) {
    kl_str text, file = kl_arena_copy(a, kl_str_of(path));
    kl_card *c = KL_NEW(a, kl_card);
    *out = NULL;
    if (kli_fs_is_dir(path)) file = kli_fs_join(a, path, "SKILL.md");
    kl_err err = kli_fs_read(&text, a, file.ptr, KL_MAX_CARD_BYTES * 4, e);
    if (err) return err;
    err = kl_str_starts(kl_str_trim(text), KL_S("{")) ? import_json(c, a, text, file, e)
                                                      : import_skill_md(c, a, text, file.ptr, e);
    if (err) return err;
    language_predicate(c, a);
    note_origin(c, a, text, file.ptr);
    return *out = c, KL_OK;
}

static bool may_be_card(kl_arena *a, const char *path) {
    return kl_str_ends(kl_str_of(path), KL_S(".json")) ||
           kli_fs_exists(kli_fs_join(a, path, "SKILL.md").ptr);
}

/* Six digits of what it was made of: the same whatever lies beside it. */
static kl_str told_apart(kl_arena *a, const kl_card *c) {
    const char *hash = memmem(c->origin.ptr, c->origin.len, "sha256:", 7);
    KL_ASSERT(hash);
    return kl_arena_printf(a, "%.*s-%.6s", (int)(c->name.len < 57 ? c->name.len : 57), c->name.ptr,
                           hash + 7);
}

static void tell_apart(kl_imported *all, int n, kl_arena *a) {
    bool *same = KL_ARRAY(a, bool, n + 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && !all[i].error.code; k++)
            same[i] |=
                k != i && !all[k].error.code && kl_str_eq(all[i].card->name, all[k].card->name);
    for (int i = 0; i < n; i++)
        if (same[i]) all[i].card->name = told_apart(a, all[i].card);
}

kl_err kl_cards_import(kl_imported **out, int *n, kl_arena *a, const char *path, kl_error *e) {
    kl_str *names = NULL;
    size_t found = 0;
    const bool folder = kli_fs_is_dir(path) && !may_be_card(a, path);
    *n = 0;
    kl_err err = folder ? kli_fs_list(&names, &found, a, path, e) : KL_OK;
    if (err) return err;
    *out = KL_ARRAY(a, kl_imported, found + 1);
    for (size_t i = 0; i < (folder ? found : 1); i++) {
        const char *one = folder ? kli_fs_join(a, path, names[i].ptr).ptr : path;
        if (folder && !may_be_card(a, one)) continue;
        kl_imported *x = &(*out)[(*n)++];
        x->path = kl_arena_copy(a, kl_str_of(one));
        (void)!kl_card_import(&x->card, a, one, &x->error);
    }
    if (!*n)
        return kl_fail(e, KL_ENOENT, path, "no card of the authors' release is in this folder");
    tell_apart(*out, *n, a);
    return !folder && (*out)->error.code ? (*e = (*out)->error, e->code) : KL_OK;
}
