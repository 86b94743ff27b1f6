/* cmd_probe_fill.c - `klineage probe`: cards on kernels that they were not tried on.
 *
 *   cards x kernels -> cells, the most telling first -> as many as the budget buys -> a track each:
 *   one card, one kernel, a fresh conversation, the gate -> rows in the library
 *
 * Cells are planned from the rows of the library alone, which this run adds to when all of them
 * have ended: so a run that waits for answers plans the same cells when it goes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "command/starts.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/parts.h"
#include <stdlib.h>
#include <string.h>

#define PROBE_TRIES 2
#define CELL_MICROUSD                                                                              \
    80000              /* of a cell where none was paid for yet: 36 trials cost .078 on average */
#define MAX_CELLS 4096 /* tracks of one run */

typedef struct {
    kl_arena *arena;
    const kli_args *args;
    kl_library *library;
    kl_probes known;
    kl_gain_model *model;
    kli_starts starts;
    kl_probe_cell *cells;
    int n; /* that are planned */
    int possible, tries;
    int64_t price_microusd; /* of a cell */
} fill_ctx;

typedef struct {
    const fill_ctx *of;
    const kl_probe_cell *cell;
    kl_materialized made;
    int64_t spent_microusd;
    kl_error error;
} fill_track;

/* ---- the plan ---------------------------------------------------------------------------- */

static void keep_surface(kli_starts *g, const char *surface) {
    int kept = 0;
    for (int i = 0; i < g->n; i++)
        if (!surface || strcmp(g->starts[i].surface->name, surface) == 0)
            g->starts[kept++] = g->starts[i];
    g->n = kept;
}

/* The next of a list separated by commas. */
static bool next_item(kl_str *item, kl_str *rest) {
    if (!rest->len) return false;
    *item = kli_before(*rest, ',');
    *rest = kli_from(*rest, item->len < rest->len ? item->len + 1 : item->len);
    return true;
}

static kl_err chosen_cards(const kl_card ***out, int *n, const fill_ctx *x, kl_error *e) {
    kl_str item, rest = kl_str_of(x->args->values[KL_OPTION_CARDS]);
    const kl_library *l = x->library;
    *out = KL_ARRAY(x->arena, const kl_card *, l->n_cards + 1);
    *n = 0;
    for (int i = 0; !rest.len && i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        const bool candidate = c->status == KL_CARD_LIFTED && !c->flags.len;
        if (candidate || c->status == KL_CARD_ADMITTED) (*out)[(*n)++] = c;
    }
    while (next_item(&item, &rest)) {
        const kl_card *c = kl_library_card(l, item);
        if (!c) {
            kl_fail(e, KL_ENOENT, l->dir.ptr, "no card named %.*s", KL_STR_ARG(item));
            return kl_hint(e, "klineage library list shows their names"), KL_ENOENT;
        }
        if (*n < l->n_cards) (*out)[(*n)++] = c;
    }
    return KL_OK;
}

static kl_err chosen_states(fill_ctx *x, kl_error *e) {
    const char *told = x->args->values[KL_OPTION_STATES], *dir = x->library->dir.ptr;
    kl_str item, rest = kl_str_of(told ? told : "lineages");
    kl_err err = KL_OK;
    while (!err && next_item(&item, &rest)) {
        if (kl_str_eq(item, KL_S("lineages")))
            err = kli_starts_of_library(&x->starts, dir, e);
        else if (kl_str_eq(item, KL_S("naive")))
            err = kli_starts_of_tasks(&x->starts, e);
        else if (kl_str_eq(item, KL_S("experts")))
            err = kli_starts_of_experts(&x->starts, dir, x->args->values[KL_OPTION_STARTS], e);
        else
            err = kl_fail(e, KL_EINVAL, "--states", "lineages, experts or naive, not '%.*s'",
                          KL_STR_ARG(item));
    }
    return err;
}

static int by_number(const void *x, const void *y) {
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* What a card's application cost in the middle. */
static int64_t middle_price(const fill_ctx *x) {
    int64_t *paid = KL_ARRAY(x->arena, int64_t, x->known.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < x->known.n; i++) {
        const kl_probe *p = &x->known.at[i];
        if (p->spent_microusd > 0 && kli_one_of(p->origin, "admit materialize"))
            paid[n++] = p->spent_microusd;
    }
    if (n) qsort(paid, n, sizeof *paid, by_number);
    return n ? paid[n / 2] : CELL_MICROUSD;
}

/* As many as the budget buys; calls that cost nothing buy all. */
static void cut_to_budget(fill_ctx *x, const kl_run_opts *o) {
    const int64_t total = o->total_microusd,
                  most = total > 0 ? total / x->price_microusd : MAX_CELLS;
    KL_ASSERT(x->price_microusd > 0 && total >= 0);
    x->n = x->possible < most ? x->possible : (int)most;
    if (x->n > MAX_CELLS) x->n = MAX_CELLS;
}

static kl_err plan_cells(fill_ctx *x, const kl_run_opts *o, kl_error *e) {
    const kl_card **cards;
    int n_cards;
    kl_err err = kli_request_library(&x->library, x->arena, x->args, e);
    if (!err) err = kl_probes_load(&x->known, x->arena, x->library->dir.ptr, e);
    if (!err) err = kl_gain_load(&x->model, x->arena, x->library->dir.ptr, e);
    if (!err) err = chosen_cards(&cards, &n_cards, x, e);
    if (!err) err = chosen_states(x, e);
    if (err) return err;
    keep_surface(&x->starts, x->args->values[KL_OPTION_SURFACE]);
    x->possible =
        kl_probe_plan(&x->cells, x->arena, cards, n_cards, x->starts.starts, x->starts.n, &x->known,
                      x->model, kli_args_has(x->args, KL_OPTION_ACROSS) ? x->library : NULL);
    x->price_microusd = middle_price(x);
    cut_to_budget(x, o);
    return KL_OK;
}

static const char *const FITS[] = {"fits", "unknown", "refused"};

static json_t *planned_cell(const kl_probe_cell *c) {
    return json_pack("{so so ss si sf sf}", "card", kli_json_str(c->card->name), "state",
                     kli_json_str(c->start->name), "fit", FITS[c->fit], "rows", c->rows, "p",
                     c->expected.p, "worth", c->worth);
}

static void show_cells(const fill_ctx *x, kli_command_result *out) {
    json_t *rows = json_array();
    for (int i = 0; i < x->n; i++) {
        const kl_probe_cell *c = &x->cells[i];
        kl_buf_printf(&out->text, "%-34.*s %-40.*s %-8s n = %d, worth %.3g\n",
                      KL_STR_ARG(c->card->name), KL_STR_ARG(c->start->name), FITS[c->fit], c->rows,
                      c->worth);
        json_array_append_new(rows, planned_cell(c));
    }
    const double price = (double)x->price_microusd * x->n / 1e6;
    kl_buf_printf(&out->text, "%d of %d cells, about $%.2f\n", x->n, x->possible, price);
    out->json = json_pack("{ss si si so sf}", "schema", "klineage/probe-plan", "version", 1,
                          "possible", x->possible, "cells", rows, "dollars", price);
}

/* ---- the run ----------------------------------------------------------------------------- */

static kl_err fill_body(kl_track *t, void *ctx, kl_error *e) {
    fill_track *f = ctx;
    kl_track_phase(t, "materialize");
    const kl_err err =
        kl_skill_materialize(&f->made, t, f->cell->card, f->cell->start, f->of->tries, 0, e);
    f->spent_microusd = kl_track_spent(t);
    return err;
}

/* A path means nothing on another machine. */
static kl_str name_of_state(kl_arena *a, const kl_start *s) {
    return s->name.ptr[0] == '/' ? kl_arena_printf(a, "%.*s/%s", KL_STR_ARG(s->task->name),
                                                   kli_fs_basename(s->name.ptr).ptr)
                                 : s->name;
}

static kl_track_spec *cell_tracks(const fill_ctx *x, fill_track *jobs) {
    kl_track_spec *specs = KL_ARRAY(x->arena, kl_track_spec, x->n + 1);
    for (int i = 0; i < x->n; i++) {
        const kl_probe_cell *c = &x->cells[i];
        jobs[i] = (fill_track){.of = x, .cell = c};
        specs[i] = (kl_track_spec){
            .name = kl_arena_printf(x->arena, "%.*s/%.*s", KL_STR_ARG(c->card->name),
                                    KL_STR_ARG(name_of_state(x->arena, c->start)))
                        .ptr,
            .workload = kl_arena_copy(x->arena, c->start->task->name).ptr,
            .policy = "probe",
            .body = fill_body,
            .ctx = &jobs[i],
            .result = &jobs[i].error};
    }
    return specs;
}

/* Rows of what ended; a track that failed left those that it had come to. */
static kl_err keep_rows(fill_ctx *x, kl_run *run, size_t *added, kl_error *e) {
    kl_store_run found;
    const size_t before = x->known.n;
    kl_err err = kl_store_run_find(&found, kl_run_store(run), x->arena, kl_run_id(run), e);
    if (!err) err = kl_probes_of_run(&x->known, x->arena, kl_run_store(run), &found, x->library, e);
    *added = x->known.n - before;
    return err ? err : kl_probes_keep(&x->known, x->library->dir.ptr, e);
}

static void show_track(kl_buf *out, const fill_track *f) {
    kl_buf_printf(out, "%-34.*s %-40.*s ", KL_STR_ARG(f->cell->card->name),
                  KL_STR_ARG(f->cell->start->name));
    if (f->error.code)
        kl_buf_printf(out, "not ended: %s\n", f->error.message);
    else if (f->made.gain > 0)
        kl_buf_printf(out, "%s %.3gx [%.3g, %.3g], tries %d\n", kl_decision_name(f->made.call),
                      f->made.gain, f->made.low, f->made.high, f->made.tries);
    else
        kl_buf_printf(out, "%.*s\n", KL_STR_ARG(f->made.why));
}

static void show_filled(kli_command_result *out, const fill_ctx *x, const fill_track *jobs,
                        size_t added) {
    int64_t spent = 0;
    for (int i = 0; i < x->n; i++) {
        show_track(&out->text, &jobs[i]);
        spent += jobs[i].spent_microusd;
    }
    kl_buf_printf(&out->text, "%d cells, %zu new rows, $%.4f\n", x->n, added, (double)spent / 1e6);
    out->json = json_pack("{ss si si sI sI}", "schema", "klineage/probed", "version", 1, "cells",
                          x->n, "new", (json_int_t)added, "spent_microusd", (json_int_t)spent);
}

static kl_err fill_cells(fill_ctx *x, const kl_run_opts *o, kli_command_result *out, kl_error *e) {
    kl_run *run = NULL;
    size_t added = 0;
    fill_track *jobs = KL_ARRAY(x->arena, fill_track, x->n + 1);
    const kl_track_opts how = kli_effort_tracks(x->args);
    kl_err err = kl_run_open(&run, o, e);
    if (err) return err;
    err = kli_effort_quiet(x->args, run, e);
    if (!err) err = kl_run_tracks(run, cell_tracks(x, jobs), x->n, &how, e);
    if (err && err != KL_EINTR && err != KL_PENDING) {
        out->trouble = *e; /* what ended of the others stands */
        err = KL_OK;
    }
    if (!err) err = keep_rows(x, run, &added, e);
    if (!err) show_filled(out, x, jobs, added);
    kl_run_close(run);
    return err;
}

kl_err kli_cmd_probe_fill(kli_context *c, const kli_args *args, kli_command_result *out,
                          kl_error *e) {
    kl_run_opts o = {0};
    fill_ctx x = {.arena = c->arena, .args = args, .starts = {.arena = c->arena}};
    const bool dry = kli_args_has(args, KL_OPTION_DRY_RUN);
    kl_err err = dry ? kli_effort_dollars(&o.total_microusd, args, KL_OPTION_BUDGET_TOTAL, 0, e)
                     : kli_effort_run(&o, c->arena, args, "probe", e);
    if (!err) err = kli_effort_count(&x.tries, args, KL_OPTION_TRIES, PROBE_TRIES, KL_MAX_TRIES, e);
    if (!err) err = plan_cells(&x, &o, e);
    if (err) return err;
    o.identity = (const kl_str[]){KL_S("quick")};
    o.n_identity = o.gate.quick; /* other verdicts, other words to the model */
    if (dry) return show_cells(&x, out), KL_OK;
    return fill_cells(&x, &o, out, e);
}
