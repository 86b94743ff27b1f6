/* cmd_top.c - `klineage top`: tracks, queues, hosts and devices, dollars, on one screen.
 *
 * Read from the journal and the spools alone; whoever looks disturbs nobody.  Shown are the runs
 * that a process works on, and the newest one where there is none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/fs.h"
#include "base/json.h"
#include "executor/look.h"
#include "store/leases.h"
#include <string.h>

enum { AGAIN_MS = 2000, MOST_RUNS = 8, MOST_TRACKS_SHOWN = 24 };

typedef struct {
    kl_str name, owner, last; /* owner: empty where nobody works on it */
    int64_t steps, judged;
    double best;
} top_track;

typedef struct {
    kl_store_run run;
    top_track *tracks;
    size_t n_tracks;
    int64_t calls, settled, reserved, lost;
} top_run;

typedef struct {
    kl_arena *arena;
    kl_store *store;
    top_run *runs;
    size_t n_runs;
    kli_spool_state *spools;
    size_t n_spools;
} top;

/* ---- runs -------------------------------------------------------------------------------- */

static top_track *top_track_named(top *t, top_run *r, kl_str name) {
    for (size_t i = 0; i < r->n_tracks; i++)
        if (kl_str_eq(r->tracks[i].name, name)) return &r->tracks[i];
    top_track *track = KL_PUSH(t->arena, r->tracks, r->n_tracks);
    *track = (top_track){.name = name};
    return track;
}

static kl_err top_add_steps(top *t, top_run *r, kl_error *e) {
    kl_store_step *steps;
    size_t n;
    const kl_err err = kl_store_step_list(&steps, &n, t->store, t->arena, r->run.id.ptr, e);
    for (size_t i = 0; !err && i < n; i++) {
        top_track *track = top_track_named(t, r, steps[i].track);
        json_t *o = NULL;
        if (kli_json_parse(&o, steps[i].json, KL_S("journal"), kl_ignored())) continue;
        const double ratio = kli_json_real_or(o, "ratio", 0);
        track->steps++;
        if (kli_json_bool_or(o, "best", false)) track->best = ratio;
        track->last = kl_arena_copy(t->arena, kli_json_text_or(o, "outcome", (kl_str){0}));
        json_decref(o);
    }
    return err;
}

static kl_err top_add_effects(top *t, top_run *r, kl_error *e) {
    kl_store_effect *effects;
    size_t n;
    const kl_err err =
        kl_store_effect_list(&effects, &n, t->store, t->arena, r->run.id.ptr, NULL, e);
    for (size_t i = 0; !err && i < n; i++)
        top_track_named(t, r, effects[i].track)->judged +=
            kl_str_eq(effects[i].kind, KL_S("judge"));
    return err;
}

static kl_err top_add_charges(top *t, top_run *r, kl_error *e) {
    kl_store_charge *charges;
    size_t n;
    const kl_err err = kl_store_charge_list(&charges, &n, t->store, t->arena, r->run.id.ptr, e);
    for (size_t i = 0; !err && i < n; i++) {
        const kl_store_charge *c = &charges[i];
        const bool settled = kl_str_eq(c->state, KL_S("settled"));
        r->calls += settled;
        r->settled += settled ? c->settled_microusd : 0;
        r->reserved += kl_str_eq(c->state, KL_S("reserved")) ? c->reserved_microusd : 0;
        r->lost += kl_str_eq(c->state, KL_S("lost")) ? c->reserved_microusd : 0;
    }
    return err;
}

/* A lease of a track is called RUN/TRACK. */
static bool top_is_of(const kli_known_lease *l, const kl_store_run *run) {
    return l->held && kl_str_starts(l->name, run->id) && l->name.ptr[run->id.len] == '/';
}

static kl_err top_add_run(top *t, const kl_store_run *run, const kli_known_lease *leases, size_t n,
                          kl_error *e) {
    top_run *r = KL_PUSH(t->arena, t->runs, t->n_runs);
    *r = (top_run){.run = *run};
    kl_err err = top_add_steps(t, r, e);
    if (!err) err = top_add_effects(t, r, e);
    if (!err) err = top_add_charges(t, r, e);
    for (size_t i = 0; !err && i < n; i++) {
        if (!top_is_of(&leases[i], run)) continue;
        const size_t skip = run->id.len + 1;
        const kl_str name = {leases[i].name.ptr + skip, leases[i].name.len - skip};
        top_track_named(t, r, name)->owner = leases[i].owner;
    }
    return err;
}

static kl_err look_at_runs(top *t, kl_error *e) {
    kl_store_run *runs;
    kli_known_lease *leases;
    size_t n, n_leases;
    kl_err err = kl_store_run_list(&runs, &n, t->store, t->arena, e);
    if (!err) err = kli_lease_list(&leases, &n_leases, t->store, t->arena, e);
    for (size_t i = 0; !err && i < n && t->n_runs < MOST_RUNS; i++) {
        bool worked_on = false;
        for (size_t k = 0; k < n_leases; k++) worked_on |= top_is_of(&leases[k], &runs[i]);
        if (worked_on) err = top_add_run(t, &runs[i], leases, n_leases, e);
    }
    if (!err && !t->n_runs && n) err = top_add_run(t, &runs[0], leases, n_leases, e);
    return err;
}

/* ---- spools ------------------------------------------------------------------------------ */

/* The folder of executor slurm holds two. */
static kl_err look_at_spool(top *t, const char *dir, kl_error *e) {
    static const char *const parts[] = {"cpu", "gpu"};
    bool parted = false;
    kl_err err = KL_OK;
    for (size_t i = 0; !err && i < KL_COUNT(parts); i++) {
        const char *part = kli_fs_join(t->arena, dir, parts[i]).ptr;
        if (!kli_fs_is_dir(kli_fs_join(t->arena, part, "todo").ptr)) continue;
        parted = true;
        err = kli_spool_look(KL_PUSH(t->arena, t->spools, t->n_spools), t->arena, part, e);
    }
    if (err || parted) return err;
    return kli_spool_look(KL_PUSH(t->arena, t->spools, t->n_spools), t->arena, dir, e);
}

/* ---- for programs ------------------------------------------------------------------------ */

static json_t *top_run_json(const top_run *r) {
    json_t *tracks = json_array();
    for (size_t i = 0; i < r->n_tracks; i++) {
        const top_track *k = &r->tracks[i];
        json_array_append_new(tracks,
                              json_pack("{so so sI sI sf so}", "track", kli_json_str(k->name),
                                        "owner", kli_json_str(k->owner), "steps",
                                        (json_int_t)k->steps, "judged", (json_int_t)k->judged,
                                        "best", k->best, "last", kli_json_str(k->last)));
    }
    return json_pack("{so so so sI sI sI sI so}", "id", kli_json_str(r->run.id), "command",
                     kli_json_str(r->run.command), "created", kli_json_str(r->run.created), "calls",
                     (json_int_t)r->calls, "settled_microusd", (json_int_t)r->settled,
                     "reserved_microusd", (json_int_t)r->reserved, "lost_microusd",
                     (json_int_t)r->lost, "tracks", tracks);
}

static json_t *top_spool_json(const kli_spool_state *s) {
    json_t *workers = json_array(), *devices = json_array();
    for (size_t i = 0; i < s->n_workers; i++)
        json_array_append_new(workers,
                              json_pack("{so so sI so sI}", "id", kli_json_str(s->workers[i].id),
                                        "host", kli_json_str(s->workers[i].host), "pid",
                                        (json_int_t)s->workers[i].pid, "slurm",
                                        kli_json_str(s->workers[i].slurm), "silent_s",
                                        (json_int_t)s->workers[i].silent_s));
    for (size_t i = 0; i < s->n_devices; i++)
        json_array_append_new(devices,
                              json_pack("{so sI}", "device", kli_json_str(s->devices[i].name),
                                        "verdicts", (json_int_t)s->devices[i].verdicts));
    return json_pack("{so sI sI sI sI so so}", "dir", kli_json_str(s->dir), "waiting",
                     (json_int_t)s->waiting, "done", (json_int_t)s->done, "failed",
                     (json_int_t)s->failed, "of_last_minute", (json_int_t)s->of_last_minute,
                     "workers", workers, "devices", devices);
}

static json_t *top_json(const top *t) {
    json_t *runs = json_array(), *spools = json_array();
    for (size_t i = 0; i < t->n_runs; i++) json_array_append_new(runs, top_run_json(&t->runs[i]));
    for (size_t i = 0; i < t->n_spools; i++)
        json_array_append_new(spools, top_spool_json(&t->spools[i]));
    return json_pack("{ss si so so}", "schema", "klineage/top", "version", 1, "runs", runs,
                     "spools", spools);
}

/* ---- for people -------------------------------------------------------------------------- */

static void show_top_run(kl_buf *out, const top_run *r) {
    kl_buf_printf(out, "%.12s  %.*s since %.*s  %lld calls, $%.4f spent", r->run.id.ptr,
                  KL_STR_ARG(r->run.command), KL_STR_ARG(r->run.created), (long long)r->calls,
                  (double)r->settled * 1e-6);
    if (r->reserved) kl_buf_printf(out, ", $%.4f reserved", (double)r->reserved * 1e-6);
    if (r->lost) kl_buf_printf(out, ", $%.4f lost", (double)r->lost * 1e-6);
    kl_buf_printf(out, "\n");
    for (size_t i = 0; i < r->n_tracks && i < MOST_TRACKS_SHOWN; i++) {
        const top_track *k = &r->tracks[i];
        kl_buf_printf(out, "  %-32.*s %4lld steps %5lld judged  best %8.3fx  last %-10.*s %.*s\n",
                      KL_STR_ARG(k->name), (long long)k->steps, (long long)k->judged, k->best,
                      KL_STR_ARG(k->last), KL_STR_ARG(k->owner));
    }
    if (r->n_tracks > MOST_TRACKS_SHOWN)
        kl_buf_printf(out, "  and %zu more tracks\n", r->n_tracks - MOST_TRACKS_SHOWN);
}

static void top_show_spool(kl_buf *out, const kli_spool_state *s) {
    kl_buf_printf(out, "%.*s  %zu wait, %zu taken, %zu done (%zu in the last minute), %zu failed\n",
                  KL_STR_ARG(s->dir), s->waiting, s->n_workers, s->done, s->of_last_minute,
                  s->failed);
    for (size_t i = 0; i < s->n_workers && i < MOST_TRACKS_SHOWN; i++) {
        const kli_spool_taken *w = &s->workers[i];
        kl_buf_printf(out, "  %.12s  %.*s, process %lld%s%.*s, seen %lld s ago\n", w->id.ptr,
                      KL_STR_ARG(w->host), (long long)w->pid, w->slurm.len ? ", Slurm's " : "",
                      KL_STR_ARG(w->slurm), (long long)w->silent_s);
    }
    for (size_t i = 0; i < s->n_devices; i++)
        kl_buf_printf(out, "  %.*s: %lld of the newest verdicts\n", KL_STR_ARG(s->devices[i].name),
                      (long long)s->devices[i].verdicts);
}

kl_err kli_cmd_top(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    top t = {.arena = c->arena};
    kl_err err = kli_journal_open(&t.store, c->arena, args, e);
    if (!err) err = look_at_runs(&t, e);
    kl_store_close(t.store);
    for (int i = 0; !err && i < args->n_words; i++) err = look_at_spool(&t, args->words[i], e);
    if (err) return err;
    const bool once = kli_args_has(args, KL_OPTION_ONCE) || kli_args_has(args, KL_OPTION_JSON) ||
                      kli_args_has(args, KL_OPTION_JSON_PRETTY);
    out->again_ms = once ? 0 : AGAIN_MS;
    out->json = top_json(&t);
    for (size_t i = 0; i < t.n_runs; i++) show_top_run(&out->text, &t.runs[i]);
    for (size_t i = 0; i < t.n_spools; i++) top_show_spool(&out->text, &t.spools[i]);
    if (!t.n_runs) kl_buf_printf(&out->text, "no runs in this journal\n");
    return KL_OK;
}
