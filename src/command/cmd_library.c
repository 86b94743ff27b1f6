/* cmd_library.c - `klineage library list|check|import` and `klineage card show`: the cards as they lie in their folder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include "base/fs.h"
#include "base/json.h"
#include <klineage/skill.h>

static kl_err load(kl_library *out, kl_arena *a, const kl_args *args, kl_error *e) {
    kl_str dir;
    kl_err err = kl_library_find(&dir, a, args->values[KL_OPTION_LIBRARY], e);
    return err ? err : kl_library_load(out, a, dir.ptr, e);
}

static int trials_of(const kl_card *c, bool accepted) {
    int n = 0;
    for (int i = 0; i < c->n_trials; i++) n += c->trials[i].held_out && c->trials[i].accepted == accepted;
    return n;
}

static json_t *row_json(const kl_card *c) {
    return json_pack("{so so so ss sf si si sb so}", "name", kl_json_str(c->name), "action", kl_json_str(c->action),
                     "description", kl_json_str(c->description), "status", kl_card_status_name(c->status),
                     "expected_gain", c->expected_gain, "held_out_accepted", trials_of(c, true), "held_out_failed",
                     trials_of(c, false), "edited", c->edited, "folder", kl_json_str(c->folder));
}

static json_t *broken_json(const kl_library *l) {
    json_t *rows = json_array();
    for (int i = 0; i < l->n_broken; i++)
        json_array_append_new(rows, json_pack("{so so}", "folder", kl_json_str(l->broken[i].folder), "why",
                                              kl_json_str(l->broken[i].why)));
    return rows;
}

static void show_rows(kl_result *out, const kl_library *l) {
    json_t *rows = json_array();
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        kl_buf_printf(&out->text, "%-9s %-34.*s %6.3gx  held out %d of %d%s\n", kl_card_status_name(c->status),
                      KL_STR_ARG(c->name), c->expected_gain, trials_of(c, true),
                      trials_of(c, true) + trials_of(c, false),
                      c->edited ? "  edited by hand: not used until klineage admit has it again" : "");
        json_array_append_new(rows, row_json(c));
    }
    for (int i = 0; i < l->n_broken; i++)
        kl_buf_printf(&out->text, "broken    %.*s: %.*s\n", KL_STR_ARG(l->broken[i].folder),
                      KL_STR_ARG(l->broken[i].why));
    out->json = json_pack("{ss si so so so}", "schema", "klineage/library", "version", 1, "dir", kl_json_str(l->dir),
                          "cards", rows, "broken", broken_json(l));
}

kl_err kl_cmd_library_list(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    kl_library l;
    kl_err err = load(&l, c->arena, args, e);
    if (err) return err;
    show_rows(out, &l);
    if (!l.n_cards && !l.n_broken) kl_buf_add(&out->text, KL_S("no cards; klineage lift LINEAGE makes some\n"));
    return KL_OK;
}

kl_err kl_cmd_library_check(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    kl_library l;
    kl_err err = load(&l, c->arena, args, e);
    if (err) return err;
    int edited = 0;
    for (int i = 0; i < l.n_cards; i++) edited += l.cards[i].edited && l.cards[i].status == KL_CARD_ADMITTED;
    const bool good = l.n_broken == 0 && edited == 0;
    show_rows(out, &l);
    kl_buf_printf(&out->text, "%d cards: %d unreadable, %d admitted and then edited by hand%s\n", l.n_cards + l.n_broken, l.n_broken,
                  edited, edited ? "; klineage admit NAME tries an edited card again" : "");
    json_object_set_new(out->json, "good", json_boolean(good));
    out->exit_code = good ? 0 : 1;
    return KL_OK;
}

kl_err kl_cmd_library_import(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    kl_card card;
    kl_str dir;
    kl_error unused = {0};
    if (kl_library_find(&dir, c->arena, args->values[KL_OPTION_LIBRARY], &unused)) dir = KL_S("library");
    kl_err err = kl_card_import(&card, c->arena, args->words[0], e);
    if (!err) err = kl_library_put(dir.ptr, &card, e);
    if (err) return err;
    kl_buf_printf(&out->text,
                  "%.*s is in %.*s/lifted; it has no verified scope until it is admitted:\n  klineage admit %.*s\n",
                  KL_STR_ARG(card.name), KL_STR_ARG(dir), KL_STR_ARG(card.name));
    out->json = json_pack("{ss si so}", "schema", "klineage/card", "version", 1, "card", row_json(&card));
    return KL_OK;
}

/* ---- card show ---------------------------------------------------------------------------------------------------------------- */

/* As it lies there, byte for byte: what it would look like if it were written again is another thing. */
kl_err kl_cmd_card_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e) {
    kl_library l;
    kl_str text, evidence;
    json_t *proof = NULL;
    kl_err err = load(&l, c->arena, args, e);
    if (err) return err;
    const kl_card *card = kl_library_card(&l, kl_str_of(args->words[0]));
    if (!card) {
        kl_suggestion s;
        kl_suggest_start(&s, kl_str_of(args->words[0]));
        for (int i = 0; i < l.n_cards; i++) kl_suggest_offer(&s, l.cards[i].name);
        kl_fail(e, KL_ENOENT, l.dir.ptr, "no card named %s", args->words[0]);
        if (s.best.ptr) return kl_hint(e, "did you mean %.*s? klineage library list shows all", KL_STR_ARG(s.best));
        return kl_hint(e, "klineage library list shows their names");
    }
    err = kl_fs_read(&text, c->arena, kl_fs_join(c->arena, card->folder.ptr, "SKILL.md").ptr, KL_MAX_CARD_BYTES, e);
    if (!err)
        err = kl_fs_read(&evidence, c->arena, kl_fs_join(c->arena, card->folder.ptr, "evidence.json").ptr,
                         KL_MAX_JSON_BYTES, e);
    if (!err) err = kl_json_parse(&proof, evidence, card->folder, e);
    if (err) return err;
    kl_buf_add(&out->text, text);
    out->json = json_pack("{ss si so so so}", "schema", "klineage/card", "version", 1, "card", row_json(card), "text",
                          kl_json_str(text), "evidence", proof);
    return KL_OK;
}
