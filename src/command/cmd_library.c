/* cmd_library.c - `klineage library list|check|coverage|judge|import` and `klineage card show`: the
 * cards as they lie in their folder. SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "command/starts.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/parts.h"
#include <klineage/skill.h>

static int trials_of(const kl_card *c, bool accepted) {
    int n = 0;
    for (int i = 0; i < c->n_trials; i++)
        n += c->trials[i].held_out && c->trials[i].accepted == accepted;
    return n;
}

static json_t *cmd_library_row_json(const kl_card *c) {
    return json_pack("{so so so ss sf si si sb so}", "name", kli_json_str(c->name), "action",
                     kli_json_str(c->action), "description", kli_json_str(c->description), "status",
                     kl_card_status_name(c->status), "expected_gain", c->expected_gain,
                     "held_out_accepted", trials_of(c, true), "held_out_failed",
                     trials_of(c, false), "edited", c->edited, "folder", kli_json_str(c->folder));
}

static json_t *broken_json(const kl_library *l) {
    json_t *rows = json_array();
    for (int i = 0; i < l->n_broken; i++)
        json_array_append_new(rows,
                              json_pack("{so so}", "folder", kli_json_str(l->broken[i].folder),
                                        "why", kli_json_str(l->broken[i].why)));
    return rows;
}

static void show_rows(kli_command_result *out, const kl_library *l) {
    json_t *rows = json_array();
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        kl_buf_printf(&out->text, "%-9s %-34.*s %6.3gx  held out %d of %d%s\n",
                      kl_card_status_name(c->status), KL_STR_ARG(c->name), c->expected_gain,
                      trials_of(c, true), trials_of(c, true) + trials_of(c, false),
                      c->edited ? "  edited by hand: not used until klineage admit accepts it again"
                                : "");
        json_array_append_new(rows, cmd_library_row_json(c));
    }
    for (int i = 0; i < l->n_broken; i++)
        kl_buf_printf(&out->text, "broken    %.*s: %.*s\n", KL_STR_ARG(l->broken[i].folder),
                      KL_STR_ARG(l->broken[i].why));
    out->json = json_pack("{ss si so so so}", "schema", "klineage/library", "version", 1, "dir",
                          kli_json_str(l->dir), "cards", rows, "broken", broken_json(l));
}

kl_err kli_cmd_library_list(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    kl_library *l;
    kl_err err = kli_request_library(&l, c->arena, args, e);
    if (err) return err;
    show_rows(out, l);
    if (!l->n_cards && !l->n_broken)
        kl_buf_printf(&out->text, "no cards; create some with klineage lift LINEAGE\n");
    return KL_OK;
}

/* ---- coverage ---------------------------------------------------------------------------- */

typedef struct {
    kl_coverage *rows;
    int n, taught;
} cmd_library_covered;

static kl_err covered_by(cmd_library_covered *x, kl_arena *a, const kl_library *l, kl_error *e) {
    kl_lineage *lineages;
    int n;
    const kl_err err = kli_lineages_of_library(&lineages, &n, a, l->dir.ptr, e);
    if (err) return err;
    kl_library_coverage(&x->rows, &x->n, a, l, lineages, n);
    for (int i = 0; i < x->n; i++) x->taught += !x->rows[i].why.len;
    KL_ASSERT(x->taught <= x->n);
    return KL_OK;
}

static void show_taught(kl_buf *out, const cmd_library_covered *x, const char *more) {
    kl_buf_printf(out, "%d of %d transitions that pay teach an admitted card%s\n", x->taught, x->n,
                  more);
}

static json_t *coverage_json(const kl_coverage *x) {
    const kl_edge *e = &x->lineage->edges[x->edge];
    return json_pack("{so si so sf so so}", "lineage", kli_json_str(x->lineage->name), "edge",
                     x->edge, "action", kli_json_str(e->action), "gain", e->gain, "card",
                     x->card ? kli_json_str(x->card->name) : json_null(), "why",
                     kli_json_str(x->why));
}

static void show_coverage(kl_buf *out, const kl_coverage *x) {
    const kl_edge *e = &x->lineage->edges[x->edge];
    kl_buf_printf(out, "%-12.*s %3d  %-29.*s %6.3gx  %.*s%s%.*s\n", KL_STR_ARG(x->lineage->name),
                  x->edge, KL_STR_ARG(e->action), e->gain,
                  KL_STR_ARG(x->card ? x->card->name : KL_S("no card")), x->why.len ? ": " : "",
                  KL_STR_ARG(x->why));
}

kl_err kli_cmd_library_coverage(kli_context *c, const kli_args *args, kli_command_result *out,
                                kl_error *e) {
    kl_library *l;
    cmd_library_covered x = {0};
    kl_err err = kli_request_library(&l, c->arena, args, e);
    if (!err) err = covered_by(&x, c->arena, l, e);
    if (err) return err;
    json_t *list = json_array();
    for (int i = 0; i < x.n; i++) {
        show_coverage(&out->text, &x.rows[i]);
        json_array_append_new(list, coverage_json(&x.rows[i]));
    }
    show_taught(&out->text, &x, "");
    out->json = json_pack("{ss si si so}", "schema", "klineage/coverage", "version", 1, "taught",
                          x.taught, "edges", list);
    return KL_OK;
}

/* ---- check ------------------------------------------------------------------------------- */

static json_t *proof_json(const kl_card *c, const kl_contract_proof *p, kl_str faults) {
    return json_pack("{so sb si si si si si si so so}", "card", kli_json_str(c->name), "good",
                     p->good, "starts", p->starts, "starts_met", p->starts_met, "results",
                     p->results, "results_refused", p->results_refused, "foreign", p->foreign,
                     "foreign_refused", p->foreign_refused, "why", kli_json_str(p->why), "faults",
                     kli_json_str(faults));
}

/* One line for each card with a contract over facts; how many admitted ones do not tell states
 * apart. */
static int prove_cards(kli_command_result *out, kl_arena *a, const kl_library *l,
                       const kl_pool_state *pool, int n, kl_str ring) {
    json_t *rows = json_array();
    int bad = 0;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        kl_contract_proof p;
        const kl_str faults = kl_card_faults(a, c);
        if (!kl_card_has_contract(c) || kli_words_have(ring, c->name)) continue;
        kl_contract_prove(&p, a, c, pool, n);
        bad += c->status == KL_CARD_ADMITTED && (!p.good || faults.len);
        kl_buf_printf(&out->text,
                      "%-9s %-34.*s holds on %d of %d starts, refuses %d of %d results, %d of %d "
                      "foreign states\n",
                      p.good && !faults.len ? "tells" : "fails", KL_STR_ARG(c->name), p.starts_met,
                      p.starts, p.results_refused, p.results, p.foreign_refused, p.foreign);
        if (p.why.len) kl_buf_printf(&out->text, "  %.*s\n", KL_STR_ARG(p.why));
        if (faults.len) kl_buf_printf(&out->text, "  left out: %.*s", KL_STR_ARG(faults));
        json_array_append_new(rows, proof_json(c, &p, faults));
    }
    json_object_set_new(out->json, "contracts", rows);
    return bad;
}

/* How many offers a reader agrees with, where the library holds labels. */
static kl_err show_labels(kli_command_result *out, kl_arena *a, const kl_library *l,
                          const kl_pool_state *pool, int n, kl_error *e) {
    kl_label_score s;
    const kl_err err = kl_labels_score(&s, a, l, pool, n, e);
    if (err || !s.kernels) return err;
    const double precision = s.offered ? (double)s.hits / s.offered : 1,
                 recall = s.applicable ? (double)s.hits / s.applicable : 1;
    kl_buf_printf(
        &out->text,
        "labels of %d kernels: precision %.3f of %d offers, recall %.3f of %d that apply\n",
        s.kernels, precision, s.offered, recall, s.applicable);
    json_object_set_new(out->json, "labels",
                        json_pack("{si si si si sf sf}", "kernels", s.kernels, "offered", s.offered,
                                  "applicable", s.applicable, "hits", s.hits, "precision",
                                  precision, "recall", recall));
    return KL_OK;
}

static kl_err check_contracts(kli_context *c, const kli_args *args, const kl_library *l,
                              kli_command_result *out, int *bad, kl_error *e) {
    kli_starts g = {.arena = c->arena};
    kl_err err = kli_starts_of_pool(&g, l->dir.ptr, args->values[KL_OPTION_STARTS], e);
    if (err) return err;
    kl_pool_state *pool;
    kl_str left_out;
    const int n = kl_contract_pool(&pool, &left_out, c->arena, g.starts, g.n);
    kl_buf_add(&out->text, left_out);
    const kl_str ring = kl_library_cycle(c->arena, l);
    if (ring.len)
        kl_buf_printf(&out->text, "left out, they wait for each other: %.*s\n", KL_STR_ARG(ring));
    *bad = prove_cards(out, c->arena, l, pool, n, ring) + (ring.len > 0);
    return show_labels(out, c->arena, l, pool, n, e);
}

/* How the numbers that cards give came about, and how good they were where they had not looked. */
static void show_gain(kli_command_result *out, const kl_gain_model *m, const kl_probes *p) {
    const kl_gain_figures *f = kl_gain_figures_of(m);
    const bool current = kl_gain_rests_on(m, p);
    kl_buf_printf(
        &out->text,
        "gain model: %d rows; on tasks that it had not seen: Brier %.3f (%.3f by the share "
        "alone), slope of log gain %.2f, 80 %% intervals hold %.0f %%%s\n",
        kl_gain_rows(m), f->brier, f->brier_base, f->slope, f->coverage * 100,
        current ? "" : "; rows have changed since: bench/gain.py fits it again");
    json_object_set_new(out->json, "gain",
                        json_pack("{si sf sf sf sf sb}", "rows", kl_gain_rows(m), "brier", f->brier,
                                  "brier_base", f->brier_base, "slope", f->slope, "coverage",
                                  f->coverage, "current", current));
}

static kl_err check_expected(kli_context *c, const kl_library *l, kli_command_result *out,
                             kl_error *e) {
    kl_probes p;
    kl_gain_model *m;
    kl_err err = kl_probes_load(&p, c->arena, l->dir.ptr, e);
    if (!err) err = kl_gain_load(&m, c->arena, l->dir.ptr, e);
    if (err) return err;
    kl_buf_printf(&out->text, "probes: %zu rows, %zu states\n", p.n, p.n_states);
    if (m) show_gain(out, m, &p);
    return KL_OK;
}

static kl_err check_coverage(kli_context *c, const kl_library *l, kli_command_result *out,
                             kl_error *e) {
    cmd_library_covered x = {0};
    const kl_err err = covered_by(&x, c->arena, l, e);
    if (err || !x.n) return err;
    show_taught(&out->text, &x, "; klineage library coverage says why the others do not");
    json_object_set_new(out->json, "coverage",
                        json_pack("{si si}", "taught", x.taught, "pay", x.n));
    return KL_OK;
}

kl_err kli_cmd_library_check(kli_context *c, const kli_args *args, kli_command_result *out,
                             kl_error *e) {
    kl_library *l;
    int edited = 0, bad = 0;
    kl_err err = kli_request_library(&l, c->arena, args, e);
    if (err) return err;
    for (int i = 0; i < l->n_cards; i++)
        edited += l->cards[i].edited && l->cards[i].status == KL_CARD_ADMITTED;
    show_rows(out, l);
    err = check_contracts(c, args, l, out, &bad, e);
    if (!err) err = check_expected(c, l, out, e);
    if (!err) err = check_coverage(c, l, out, e);
    if (err) return err;
    const bool good = l->n_broken == 0 && edited == 0 && bad == 0;
    kl_buf_printf(&out->text, "%d cards: %d unreadable, %d edited by hand after admission%s\n",
                  l->n_cards + l->n_broken, l->n_broken, edited,
                  edited ? "; klineage admit NAME tests an edited card again" : "");
    json_object_set_new(out->json, "good", json_boolean(good));
    out->exit_code = good ? 0 : 1;
    return KL_OK;
}

/* ---- judge ------------------------------------------------------------------------------- */

static json_t *judged_json(const kl_card_judgement *j, bool retired) {
    json_t *trials = json_array();
    for (int i = 0; i < j->n; i++) {
        const kl_trial_record *r = &j->trials[i];
        json_array_append_new(
            trials,
            json_pack("{so so sf sf sf so so sb}", "kind", kli_json_str(r->kind), "start",
                      kli_json_str(r->start_name), "gain", r->gain, "low", r->low, "high", r->high,
                      "floor", r->noise > 0 ? kli_json_real(r->noise) : json_null(), "call",
                      kli_json_str(r->call), "stands", kl_str_eq(r->call, KL_S("faster"))));
    }
    return json_pack("{so ss sb sb so}", "card", kli_json_str(j->card->name), "status",
                     kl_card_status_name(retired ? KL_CARD_RETIRED : j->card->status), "falls",
                     j->falls, "retired", retired, "trials", trials);
}

static void show_judged(kl_buf *out, kl_arena *a, const kl_card_judgement *j, bool retired) {
    const char *word = retired    ? ": retired"
                       : j->falls ? ": falls"
                       : j->held_out && !j->held_out_stand
                           ? ": no held-out trial holds; klineage admit tests it again"
                           : "";
    kl_buf_printf(out, "%-9s %-34.*s %d of %d accepted trials hold%s\n",
                  kl_card_status_name(j->card->status), KL_STR_ARG(j->card->name), j->stand, j->n,
                  word);
    for (int i = 0; i < j->n; i++) {
        const kl_trial_record *r = &j->trials[i];
        const char *noise = r->noise > 0 ? kl_arena_printf(a, "floor %.1f %%", r->noise * 100).ptr
                                         : "floor not recorded";
        kl_buf_printf(out, "  %-6s  %-6.*s %-32.*s %.3gx [%.4g, %.4g], %s: %.*s\n",
                      kl_str_eq(r->call, KL_S("faster")) ? "stands" : "falls", KL_STR_ARG(r->kind),
                      KL_STR_ARG(r->start_name), r->gain, r->low, r->high, noise,
                      KL_STR_ARG(r->call));
    }
}

typedef struct {
    kl_library *library;
    kl_noise_records *noises;
    bool retire;
    json_t *rows;
    int cards, fallen, retired, trials, stand, unknown;
} cmd_library_judge_ctx;

static kl_err judge_card(cmd_library_judge_ctx *x, kli_context *c, const kl_card *card,
                         kli_command_result *out, kl_error *e) {
    kl_card_judgement j;
    kl_card_judge(&j, c->arena, card, x->noises);
    const bool retire = x->retire && j.falls && !card->edited;
    kl_err err = retire ? kl_card_retire(x->library->dir.ptr, c->arena, &j, e) : KL_OK;
    if (err || !j.n) return err;
    show_judged(&out->text, c->arena, &j, retire);
    json_array_append_new(x->rows, judged_json(&j, retire));
    x->cards++;
    x->fallen += j.falls;
    x->retired += retire;
    x->trials += j.n;
    KL_ASSERT(j.stand <= j.n && j.held_out_stand <= j.held_out);
    x->stand += j.stand;
    x->unknown += j.unknown;
    return KL_OK;
}

static bool asked_for(const kli_args *args, kl_str name) {
    for (int i = 0; i < args->n_words; i++)
        if (kl_str_eq(name, kl_str_of(args->words[i]))) return true;
    return args->n_words == 0;
}

static kl_err cmd_library_check_names(const cmd_library_judge_ctx *x, const kli_args *args,
                                      kl_error *e) {
    for (int i = 0; i < args->n_words; i++)
        if (!kl_library_card(x->library, kl_str_of(args->words[i]))) {
            kl_fail(e, KL_ENOENT, x->library->dir.ptr, "no card named %s", args->words[i]);
            return kl_hint(e, "klineage library list shows their names"), KL_ENOENT;
        }
    return KL_OK;
}

kl_err kli_cmd_library_judge(kli_context *c, const kli_args *args, kli_command_result *out,
                             kl_error *e) {
    cmd_library_judge_ctx x = {.retire = kli_args_has(args, KL_OPTION_RETIRE)};
    kl_err err = kli_request_library(&x.library, c->arena, args, e);
    if (!err) err = cmd_library_check_names(&x, args, e);
    if (!err) err = kl_noise_records_load(&x.noises, c->arena, x.library->dir.ptr, e);
    if (err) return err;
    x.rows = json_array();
    for (int i = 0; !err && i < x.library->n_cards; i++)
        if (asked_for(args, x.library->cards[i].name))
            err = judge_card(&x, c, &x.library->cards[i], out, e);
    kl_buf_printf(&out->text,
                  "%d cards, %d without a valid trial, %d retired; %d of %d accepted trials hold, "
                  "%d of them without a noise floor\n",
                  x.cards, x.fallen, x.retired, x.stand, x.trials, x.unknown);
    if (x.fallen > x.retired && !x.retire)
        kl_buf_printf(&out->text,
                      "klineage library judge --retire retires cards without a valid trial\n");
    out->json = json_pack("{ss si so si si}", "schema", "klineage/judgement", "version", 1, "cards",
                          x.rows, "fall", x.fallen, "retired", x.retired);
    out->exit_code = x.fallen > x.retired ? 1 : 0;
    return err;
}

/* ---- import ------------------------------------------------------------------------------ */

/* What was tried of a card stays with it when it is imported again. */
static kl_err import_one(kl_imported *x, kl_arena *a, const kl_library *l, const char *dir) {
    if (x->error.code) return x->error.code;
    const kl_card *there = l ? kl_library_card(l, x->card->name) : NULL;
    if (there && !kl_str_eq(there->origin, x->card->origin))
        return kl_fail(&x->error, KL_EINVAL, x->path.ptr, "the library has another card named %.*s",
                       KL_STR_ARG(x->card->name));
    if (there) kl_card_keep_trials(x->card, a, there);
    kl_card_lend_contract(x->card, a, l);
    return kl_library_put(dir, x->card, &x->error);
}

static json_t *imported_json(const kl_imported *x) {
    const kl_card *c = x->card;
    if (!c)
        return json_pack("{so so}", "path", kli_json_str(x->path), "error",
                         kli_json_str(kl_str_of(x->error.message)));
    return json_pack("{so so so so si sb sb so}", "path", kli_json_str(x->path), "name",
                     kli_json_str(c->name), "action", kli_json_str(c->action), "flags",
                     kli_json_str(c->flags), "preconditions", c->n_pre, "patch", c->patch.len > 0,
                     "contract", kl_card_has_contract(c), "error",
                     x->error.code ? kli_json_str(kl_str_of(x->error.message)) : json_null());
}

static void show_imported(kl_buf *out, const kl_imported *x) {
    if (x->error.code)
        kl_buf_printf(out, "failed  %s: %s\n", x->path.ptr, x->error.message);
    else
        kl_buf_printf(out, "%-7s %-58.*s %-24.*s %.*s\n", x->card->flags.len ? "flagged" : "lifted",
                      KL_STR_ARG(x->card->name), KL_STR_ARG(x->card->action),
                      KL_STR_ARG(x->card->flags));
}

kl_err kli_cmd_library_import(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    kl_imported *all;
    kl_library *l = NULL;
    kl_str dir;
    int n, failed = 0;
    json_t *rows = json_array();
    if (kl_library_find(&dir, c->arena, args->values[KL_OPTION_LIBRARY], kl_ignored()))
        dir = KL_S("library");
    if (kl_library_load(&l, c->arena, dir.ptr, kl_ignored())) l = NULL; /* not there yet */
    kl_err err = kl_cards_import(&all, &n, c->arena, args->words[0], e);
    for (int i = 0; !err && i < n; i++) {
        failed += import_one(&all[i], c->arena, l, dir.ptr) != KL_OK;
        show_imported(&out->text, &all[i]);
        json_array_append_new(rows, imported_json(&all[i]));
    }
    if (err) return json_decref(rows), err;
    kl_buf_printf(&out->text,
                  "%d of %d cards are in %.*s/lifted, without verified scope until they are "
                  "admitted:\n  klineage admit CARD\n",
                  n - failed, n, KL_STR_ARG(dir));
    out->json = json_pack("{ss si so si}", "schema", "klineage/imported", "version", 1, "cards",
                          rows, "failed", failed);
    if (failed == n) return *e = all[0].error, e->code;
    out->exit_code = failed ? 1 : 0;
    return KL_OK;
}

/* ---- card show --------------------------------------------------------------------------- */

/* As it lies there, byte for byte: what it would look like if it were written again is another
 * thing. */
kl_err kli_cmd_card_show(kli_context *c, const kli_args *args, kli_command_result *out,
                         kl_error *e) {
    kl_library *l;
    kl_str text, evidence;
    json_t *proof = NULL;
    kl_err err = kli_request_library(&l, c->arena, args, e);
    if (err) return err;
    const kl_card *card = kl_library_card(l, kl_str_of(args->words[0]));
    if (!card) {
        kli_suggestion s;
        kli_suggest_start(&s, kl_str_of(args->words[0]));
        for (int i = 0; i < l->n_cards; i++) kli_suggest_offer(&s, l->cards[i].name);
        kl_fail(e, KL_ENOENT, l->dir.ptr, "no card named %s", args->words[0]);
        if (s.best.ptr)
            return kl_hint(e, "did you mean %.*s? klineage library list shows all",
                           KL_STR_ARG(s.best));
        return kl_hint(e, "klineage library list shows their names");
    }
    err = kli_fs_read(&text, c->arena, kli_fs_join(c->arena, card->folder.ptr, "SKILL.md").ptr,
                      KL_MAX_CARD_BYTES, e);
    if (!err)
        err = kli_fs_read(&evidence, c->arena,
                          kli_fs_join(c->arena, card->folder.ptr, "evidence.json").ptr,
                          KL_MAX_JSON_BYTES, e);
    if (!err) err = kli_json_parse(&proof, evidence, card->folder, e);
    if (err) return err;
    kl_buf_add(&out->text, text);
    out->json =
        json_pack("{ss si so so so}", "schema", "klineage/card", "version", 1, "card",
                  cmd_library_row_json(card), "text", kli_json_str(text), "evidence", proof);
    return KL_OK;
}
