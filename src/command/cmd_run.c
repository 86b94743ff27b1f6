/* cmd_run.c - `klineage run list|show|record`: what the journal holds of runs.
 *
 * Words of a model (why, action, locus) are shown as data: no control character of theirs reaches a
 * terminal. SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/json.h"
#include <klineage/model.h>

static kl_str cmd_run_tame(kl_arena *a, kl_str s, size_t most) {
    size_t n = s.len < most ? s.len : most;
    char *out = KL_ARRAY(a, char, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f ? ' ' : s.ptr[i];
    return (kl_str){out, n};
}

/* ---- list -------------------------------------------------------------------------------- */

typedef struct {
    int64_t calls, microusd;
    bool estimated;
} budget_ctx;

static budget_ctx spent_by(const kl_store_charge *rows, size_t n, kl_str run) {
    budget_ctx s = {0};
    for (size_t i = 0; i < n; i++) {
        if (!kl_str_eq(rows[i].run, run) || !kl_str_eq(rows[i].state, KL_S("settled"))) continue;
        s.calls++;
        s.microusd += rows[i].settled_microusd;
        s.estimated |= rows[i].estimated;
    }
    return s;
}

static json_t *cmd_run_run_json(kl_arena *a, const kl_store_run *r, const budget_ctx *s,
                                kl_str *model) {
    json_t *o = json_object(), *what = NULL;
    *model = (kl_str){0};
    json_object_set_new(o, "id", kli_json_str(r->id));
    json_object_set_new(o, "command", kli_json_str(r->command));
    json_object_set_new(o, "created", kli_json_str(r->created));
    json_object_set_new(o, "calls", json_integer(s->calls));
    json_object_set_new(o, "microusd", json_integer(s->microusd));
    json_object_set_new(o, "estimated", json_boolean(s->estimated));
    if (kli_json_parse(&what, r->json, KL_S("journal"), kl_ignored()) == KL_OK) {
        *model = kl_arena_copy(a, kli_json_text_or(what, "model", (kl_str){0}));
        json_object_set_new(o, "run", what);
    }
    return o;
}

kl_err kli_cmd_run_list(kli_context *c, const kli_args *args, kli_command_result *out,
                        kl_error *e) {
    kl_store *store = NULL;
    kl_store_run *runs = NULL;
    kl_store_charge *charges = NULL;
    size_t n = 0, n_charges = 0;
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_store_run_list(&runs, &n, store, c->arena, e);
    if (!err) err = kl_store_charge_list(&charges, &n_charges, store, c->arena, NULL, e);
    kl_store_close(store);
    if (err) return err;
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        kl_str model;
        budget_ctx s = spent_by(charges, n_charges, runs[i].id);
        json_array_append_new(rows, cmd_run_run_json(c->arena, &runs[i], &s, &model));
        kl_buf_printf(&out->text, "%.12s  %.*s  %-9.*s %5lld calls  %s$%.4f  %.*s\n",
                      runs[i].id.ptr, KL_STR_ARG(runs[i].created), KL_STR_ARG(runs[i].command),
                      (long long)s.calls, s.estimated ? "~" : "", (double)s.microusd * 1e-6,
                      KL_STR_ARG(cmd_run_tame(c->arena, model, 60)));
    }
    if (!n)
        kl_buf_printf(&out->text, "no runs; klineage walk, lift, admit and optimize create them\n");
    out->json = json_pack("{s:s, s:i, s:o}", "schema", "klineage/runs", "version", 1, "runs", rows);
    return KL_OK;
}

/* ---- show -------------------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    kl_store *store;
    kl_store_run run;
    kl_store_step *steps;
    kl_store_charge *charges;
    kl_store_effect *effects;
    size_t n_steps, n_charges, n_effects;
} dossier;

static kl_err cmd_run_collect(dossier *d, kli_context *c, const kli_args *args, kl_error *e) {
    d->arena = c->arena;
    kl_err err = kli_journal_open(&d->store, c->arena, args, e);
    if (!err) err = kl_store_run_find(&d->run, d->store, c->arena, args->words[0], e);
    if (!err)
        err = kl_store_step_list(&d->steps, &d->n_steps, d->store, c->arena, d->run.id.ptr, e);
    if (!err)
        err =
            kl_store_charge_list(&d->charges, &d->n_charges, d->store, c->arena, d->run.id.ptr, e);
    if (!err)
        err = kl_store_effect_list(&d->effects, &d->n_effects, d->store, c->arena, d->run.id.ptr,
                                   NULL, e);
    return err;
}

static void step_text(kl_buf *out, kl_arena *a, const kl_store_step *row, const json_t *s) {
    double ratio = kli_json_real_or(s, "ratio", 0);
    bool best = kli_json_bool_or(s, "best", false),
         accepted = kli_json_bool_or(s, "accepted", false);
    kl_buf_printf(out, "%s %3lld  %-12.*s %-22.*s %-10.*s",
                  best       ? "*"
                  : accepted ? "+"
                             : " ",
                  (long long)row->n,
                  KL_STR_ARG(cmd_run_tame(a, kli_json_text_or(s, "phase", (kl_str){0}), 12)),
                  KL_STR_ARG(cmd_run_tame(a, kli_json_text_or(s, "action", (kl_str){0}), 22)),
                  KL_STR_ARG(cmd_run_tame(a, kli_json_text_or(s, "outcome", (kl_str){0}), 10)));
    if (ratio > 0)
        kl_buf_printf(out, " %8.3fx", ratio);
    else
        kl_buf_printf(out, " %9s", "-");
    kl_buf_printf(out, "  $%.4f  %-12.12s  %.*s\n",
                  (double)kli_json_int_or(s, "spent_microusd", 0) * 1e-6,
                  kl_arena_copy(a, kli_json_text_or(s, "verdict", KL_S("-"))).ptr,
                  KL_STR_ARG(cmd_run_tame(a, kli_json_text_or(s, "why", (kl_str){0}), 100)));
}

static json_t *show_steps(kl_buf *out, const dossier *d) {
    json_t *rows = json_array();
    kl_str track = {0};
    for (size_t i = 0; i < d->n_steps; i++) {
        json_t *s = NULL;
        if (kli_json_parse(&s, d->steps[i].json, KL_S("journal"), kl_ignored())) continue;
        if (!kl_str_eq(track, d->steps[i].track))
            kl_buf_printf(out, "\n%.*s\n", KL_STR_ARG(d->steps[i].track));
        track = d->steps[i].track;
        step_text(out, d->arena, &d->steps[i], s);
        json_object_set_new(s, "track", kli_json_str(track));
        json_object_set_new(s, "n", json_integer(d->steps[i].n));
        json_array_append_new(rows, s);
    }
    if (d->n_steps)
        kl_buf_printf(out, "\n* best so far, + accepted; klineage verdict show KEY says why\n");
    return rows;
}

static const char *cmd_run_standing(kl_str state) {
    if (kl_str_eq(state, KL_S("reserved"))) return "in progress, or interrupted by a crash";
    return kl_str_eq(state, KL_S("lost")) ? "lost in transit" : "to be repeated";
}

/* Questions without an answer: in a mailbox, at a provider, or left by a crash. */
static json_t *show_open(kl_buf *out, const dossier *d) {
    json_t *rows = json_array();
    for (size_t i = 0; i < d->n_charges; i++) {
        const kl_store_charge *c = &d->charges[i];
        bool last = true;
        for (size_t j = 0; j < d->n_charges; j++)
            if (kl_str_eq(d->charges[j].effect, c->effect) && d->charges[j].attempt > c->attempt)
                last = false;
        if (!last || kl_str_eq(c->state, KL_S("settled"))) continue;
        kl_buf_printf(out, "no answer yet: question %.12s of %.*s (%.*s) to %.*s, %s\n",
                      c->effect.ptr, KL_STR_ARG(c->track), KL_STR_ARG(c->phase),
                      KL_STR_ARG(cmd_run_tame(d->arena, c->model, 60)), cmd_run_standing(c->state));
        json_array_append_new(
            rows, json_pack("{so so so so so}", "track", kli_json_str(c->track), "phase",
                            kli_json_str(c->phase), "model", kli_json_str(c->model), "state",
                            kli_json_str(c->state), "effect", kli_json_str(c->effect)));
    }
    return rows;
}

static void show_run(kli_command_result *out, const dossier *d) {
    kl_str model;
    budget_ctx s = spent_by(d->charges, d->n_charges, d->run.id);
    int64_t judged = 0;
    out->json = json_pack("{ss si}", "schema", "klineage/run-steps", "version", 1);
    for (size_t i = 0; i < d->n_effects; i++)
        judged += kl_str_eq(d->effects[i].kind, KL_S("judge"));
    json_object_set_new(out->json, "run", cmd_run_run_json(d->arena, &d->run, &s, &model));
    json_object_set_new(out->json, "judged", json_integer(judged));
    kl_buf_printf(
        &out->text,
        "run %.12s: %.*s with %.*s, %.*s\n%lld model calls for %s$%.4f, %lld verdicts, %zu steps\n",
        d->run.id.ptr, KL_STR_ARG(d->run.command), KL_STR_ARG(cmd_run_tame(d->arena, model, 80)),
        KL_STR_ARG(d->run.created), (long long)s.calls, s.estimated ? "~" : "",
        (double)s.microusd * 1e-6, (long long)judged, d->n_steps);
    json_object_set_new(out->json, "open", show_open(&out->text, d));
    json_object_set_new(out->json, "steps", show_steps(&out->text, d));
}

kl_err kli_cmd_run_show(kli_context *c, const kli_args *args, kli_command_result *out,
                        kl_error *e) {
    dossier d = {0};
    kl_err err = cmd_run_collect(&d, c, args, e);
    kl_store_close(d.store);
    if (!err) show_run(out, &d);
    return err;
}

/* ---- record ------------------------------------------------------------------------------ */

static kl_err recorded(kl_recorded *out, const dossier *d, const kl_store_effect *f, kl_error *e) {
    json_t *answer;
    kl_str hash;
    kl_err err = kli_json_parse(&answer, f->answer, KL_S("journal"), e);
    if (err) return err;
    *out = (kl_recorded){
        .slot = kl_arena_printf(d->arena, "%.*s/%.*s/%lld", KL_STR_ARG(f->track),
                                KL_STR_ARG(f->purpose), (long long)f->ordinal),
        .key = f->key,
        .purpose = f->purpose,
        .model = kl_arena_copy(d->arena, kli_json_text_or(answer, "model", (kl_str){0})),
        .billed_microusd = kli_json_int_or(answer, "billed_microusd", -1)};
    kl_usage_parse(&out->usage, json_object_get(answer, "usage"));
    if (!kl_stop_parse(&out->stop, kli_json_text_or(answer, "stop", (kl_str){0})))
        err =
            kl_fail(e, KL_EPARSE, "journal", "effect %.12s has no stop that is known", f->key.ptr);
    if (!err) err = kli_json_text(&hash, answer, "text", KL_S("journal"), e);
    if (!err) err = kl_store_blob_get(&out->text, d->store, d->arena, hash, e);
    json_decref(answer);
    return err;
}

/* In the same place another question was answered later: the compiler is another one since, so
 * verdicts say something else.  What a replay follows is the newest. */
static bool replaced(const dossier *d, size_t i) {
    const kl_store_effect *f = &d->effects[i];
    for (size_t j = i + 1; j < d->n_effects; j++) {
        const kl_store_effect *g = &d->effects[j];
        if (kl_str_eq(g->kind, f->kind) && kl_str_eq(g->track, f->track) &&
            kl_str_eq(g->purpose, f->purpose) && g->ordinal == f->ordinal)
            return true;
    }
    return false;
}

static kl_err write_recording(const dossier *d, const char *path, int *n, kl_error *e) {
    kl_recorded *calls = KL_ARRAY(d->arena, kl_recorded, d->n_effects + 1);
    kl_err err = KL_OK;
    for (size_t i = 0; !err && i < d->n_effects; i++)
        if (kl_str_eq(d->effects[i].kind, KL_S("ask")) && !replaced(d, i))
            err = recorded(&calls[(*n)++], d, &d->effects[i], e);
    if (err) return err;
    if (!*n) {
        kl_fail(e, KL_ENOENT, path, "run %.12s made no model calls, so there is nothing to record",
                d->run.id.ptr);
        return kl_hint(e, "klineage run list shows the calls of each run");
    }
    KL_ASSERT((size_t)*n <= d->n_effects);
    const char *model = d->n_charges ? d->charges[0].model.ptr : "";
    return kl_recording_write(path, model, d->run.command.ptr,
                              kl_arena_printf(d->arena, "run %s", d->run.id.ptr).ptr, calls, *n, e);
}

kl_err kli_cmd_run_record(kli_context *c, const kli_args *args, kli_command_result *out,
                          kl_error *e) {
    const char *path = args->values[KL_OPTION_OUT];
    dossier d = {0};
    int n = 0;
    if (!path) {
        kl_fail(e, KL_EINVAL, NULL, "no output file was named");
        return kl_hint(e, "klineage run record %s --out FILE", args->words[0]);
    }
    kl_err err = cmd_run_collect(&d, c, args, e);
    if (!err) err = write_recording(&d, path, &n, e);
    kl_store_close(d.store);
    if (err) return err;
    kl_buf_printf(&out->text, "%d calls of run %.12s in %s; repeat it with --model replay:%s\n", n,
                  d.run.id.ptr, path, path);
    out->json = json_pack("{s:s, s:i, s:s, s:o, s:i}", "schema", "klineage/recorded", "version", 1,
                          "run", d.run.id.ptr, "path", kli_json_str(kl_str_of(path)), "calls", n);
    return KL_OK;
}
