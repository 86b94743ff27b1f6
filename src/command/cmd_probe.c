/* cmd_probe.c - `klineage probe export|import|show`: what cards and actions did to states, as rows
 * in a library.  SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "command/request.h"
#include "command/starts.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/parts.h"

typedef struct {
    kl_arena *arena;
    kl_library *library;
    kl_probes probes;
    kl_kept_verdicts kept; /* beside the lineages */
} probe_ctx;

static kl_err open_probes(probe_ctx *x, kli_context *c, const kli_args *args, kl_error *e) {
    x->arena = c->arena;
    kl_err err = kli_request_library(&x->library, c->arena, args, e);
    return err ? err : kl_probes_load(&x->probes, c->arena, x->library->dir.ptr, e);
}

static kl_err keep_probes(probe_ctx *x, size_t before, kli_command_result *out, kl_error *e) {
    const kl_err err = kl_probes_keep(&x->probes, x->library->dir.ptr, e);
    if (err) return err;
    kl_buf_printf(&out->text, "%zu rows, %zu of them new, of %zu states: %s\n", x->probes.n,
                  x->probes.n - before, x->probes.n_states,
                  kli_fs_join(x->arena, x->library->dir.ptr, "probes.jsonl").ptr);
    out->json =
        json_pack("{ss si sI sI sI}", "schema", "klineage/probes-kept", "version", 1, "rows",
                  (json_int_t)x->probes.n, "new", (json_int_t)(x->probes.n - before), "states",
                  (json_int_t)x->probes.n_states);
    return KL_OK;
}

/* ---- export ------------------------------------------------------------------------------ */

/* NAME.json, with the verdicts of NAME.evidence.jsonl. */
static kl_err rows_of_lineage(probe_ctx *x, const char *dir, kl_str name, kl_error *e) {
    kl_lineage l;
    kl_kept_verdicts kept = {0};
    const kl_str stem = kli_cut(name, name.len - 5);
    const kl_str beside =
        kl_arena_printf(x->arena, "%s/%.*s.evidence.jsonl", dir, KL_STR_ARG(stem));
    kl_err err = kl_lineage_load(&l, x->arena, NULL, kli_fs_join(x->arena, dir, name.ptr).ptr, e);
    if (!err && kli_fs_exists(beside.ptr))
        err = kl_kept_verdicts_read(&kept, x->arena, beside.ptr, e);
    if (err) return err;
    kl_probes_of_lineage(&x->probes, x->arena, &l, &kept, x->library);
    for (size_t i = 0; i < kept.n; i++) *KL_PUSH(x->arena, x->kept.at, x->kept.n) = kept.at[i];
    return KL_OK;
}

static kl_err rows_of_lineages(probe_ctx *x, kl_error *e) {
    kl_str *names;
    size_t n;
    const char *dir = kli_fs_join(x->arena, x->library->dir.ptr, "lineages").ptr;
    kl_err err = kli_fs_list(&names, &n, x->arena, dir, e);
    for (size_t i = 0; !err && i < n; i++)
        if (kl_str_ends(names[i], KL_S(".json"))) err = rows_of_lineage(x, dir, names[i], e);
    return err;
}

static kl_err rows_of_journal(probe_ctx *x, const kli_args *args, kl_error *e) {
    kl_store *store = NULL;
    kl_store_run *runs;
    size_t n;
    kl_err err = kli_journal_open(&store, x->arena, args, e);
    if (!err) err = kl_store_run_list(&runs, &n, store, x->arena, e);
    for (size_t i = 0; !err && i < n; i++)
        err = kl_probes_of_run(&x->probes, x->arena, store, &runs[i], x->library, e);
    kl_store_close(store);
    return err;
}

/* States of the pool that some row speaks of. */
static kl_err states_of_pool(probe_ctx *x, const kli_args *args, kl_error *e) {
    kli_starts g = {.arena = x->arena};
    kl_err err = kli_starts_of_pool(&g, x->library->dir.ptr, args->values[KL_OPTION_STARTS], e);
    for (int i = 0; !err && i < g.n; i++) {
        const kl_start *s = &g.starts[i];
        kl_kernel *k;
        kl_probe_state state;
        if (kl_kernel_parse(&k, x->arena, s->source, s->name, s->surface, NULL, kl_ignored()) ||
            !kl_probes_name(&x->probes, kl_str_of(k->hash)))
            continue;
        kl_probe_state_of(&state, x->arena, k, s->task, s->workload,
                          kl_kept_verdict_of(&x->kept, kl_str_of(k->hash)));
        kl_probes_add_state(&x->probes, x->arena, &state);
    }
    return err;
}

kl_err kli_cmd_probe_export(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    probe_ctx x = {0};
    kl_err err = open_probes(&x, c, args, e);
    const size_t before = x.probes.n;
    if (!err) err = rows_of_lineages(&x, e);
    for (int i = 0; !err && i < x.library->n_cards; i++)
        kl_probes_of_card(&x.probes, c->arena, &x.library->cards[i]);
    if (!err) err = rows_of_journal(&x, args, e);
    if (!err) err = states_of_pool(&x, args, e);
    return err ? err : keep_probes(&x, before, out, e);
}

/* ---- import ------------------------------------------------------------------------------ */

/* A card of another library is none of ours: its action still says what was done. */
static void leave_foreign_cards(probe_ctx *x, kl_buf *text) {
    for (size_t i = 0; i < x->probes.n; i++) {
        kl_probe *p = &x->probes.at[i];
        if (!p->card.len || kl_library_card(x->library, p->card)) continue;
        kl_buf_printf(text, "left out, no card of this library: %.*s in %.*s\n",
                      KL_STR_ARG(p->card), KL_STR_ARG(p->place));
        p->card = KL_S("");
    }
}

kl_err kli_cmd_probe_import(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    probe_ctx x = {0};
    kl_err err = open_probes(&x, c, args, e);
    const size_t before = x.probes.n;
    for (int i = 0; !err && i < args->n_words; i++)
        err = kl_probes_read(&x.probes, c->arena, args->words[i], e);
    if (err) return err;
    leave_foreign_cards(&x, &out->text);
    return keep_probes(&x, before, out, e);
}

/* ---- show -------------------------------------------------------------------------------- */

static json_t *cell_json(const kl_matrix_cell *m) {
    json_t *counts = json_object();
    for (int o = 0; o <= KL_PROBE_UNDECIDED; o++)
        if (m->n[o])
            json_object_set_new(counts, kl_probe_outcome_name((kl_probe_outcome)o),
                                json_integer(m->n[o]));
    return json_pack("{s:o s:b s:o s:o s:i s:o s:o}", "what", kli_json_str(m->what), "card",
                     m->card, "surface", kli_json_str(m->surface), "task", kli_json_str(m->task),
                     "n", m->tried, "outcomes", counts, "median_gain",
                     m->middle > 0 ? kli_json_real(m->middle) : json_null());
}

static void show_cell(kl_buf *out, const kl_matrix_cell *m) {
    kl_buf_printf(out, "%-8.*s %-34.*s %-14.*s n = %d, %d faster", KL_STR_ARG(m->surface),
                  KL_STR_ARG(m->what), KL_STR_ARG(m->task), m->tried, m->n[KL_PROBE_FASTER]);
    if (m->middle > 0) kl_buf_printf(out, ", median %.3gx", m->middle);
    for (int o = 0; o <= KL_PROBE_UNDECIDED; o++)
        if (m->n[o] && o != KL_PROBE_FASTER)
            kl_buf_printf(out, ", %d %s", m->n[o], kl_probe_outcome_name((kl_probe_outcome)o));
    kl_buf_printf(out, "\n");
}

kl_err kli_cmd_probe_show(kli_context *c, const kli_args *args, kli_command_result *out,
                          kl_error *e) {
    probe_ctx x = {0};
    kl_matrix_cell *cells;
    const kl_err err = open_probes(&x, c, args, e);
    if (err) return err;
    json_t *rows = json_array();
    const size_t n = kl_probes_matrix(&cells, c->arena, &x.probes);
    for (size_t i = 0; i < n; i++) {
        show_cell(&out->text, &cells[i]);
        json_array_append_new(rows, cell_json(&cells[i]));
    }
    if (!n) kl_buf_printf(&out->text, "no rows; klineage probe export collects them\n");
    out->json = json_pack("{ss si sI so}", "schema", "klineage/matrix", "version", 1, "rows",
                          (json_int_t)x.probes.n, "cells", rows);
    return KL_OK;
}
