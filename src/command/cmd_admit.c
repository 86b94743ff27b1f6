/* cmd_admit.c - `klineage admit CARD...`: what candidates add on held-out kernels decides
 * whether they become SkillCards.
 *
 * Starts are the states of the lineages that lie in the library, the plain kernels of all tasks,
 * and with --starts DIR the kernels of DIR/TASK/SURFACE/ (a ladder that a person wrote is a row of
 * states that no card was born from), named by their path within DIR: a recording answers wherever
 * DIR lies.  One track a card. The run's identity holds no list of cards: those that are done fall
 * out of --all, and the rest goes on where it was.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "command/starts.h"
#include "base/fs.h"
#include "base/json.h"
#include <klineage/skill.h>

typedef struct {
    kl_card card;
    const char *dir;
    const kl_start *starts;
    int n_starts;
    kl_admit_opts opts;
    kl_error error; /* of its track */
} admit_job;

/* ---- cards ------------------------------------------------------------------------------- */

static bool waits(const kl_card *c) {
    return (c->status == KL_CARD_LIFTED || c->status == KL_CARD_TRIAL) && !c->flags.len;
}

static bool chosen(const admit_job *jobs, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(jobs[i].card.name, kl_str_of(name))) return true;
    return false;
}

static kl_err cmd_admit_choose(admit_job *jobs, int *n, const kl_library *l, const kli_args *args,
                               kl_error *e) {
    *n = 0;
    for (int i = 0; kli_args_has(args, KL_OPTION_ALL) && i < l->n_cards; i++)
        if (waits(&l->cards[i])) jobs[(*n)++].card = l->cards[i];
    for (int i = 0; i < args->n_words; i++) {
        if (chosen(jobs, *n, args->words[i])) continue;
        const kl_card *c = kl_library_card(l, kl_str_of(args->words[i]));
        if (!c)
            return kl_fail(e, KL_ENOENT, l->dir.ptr, "no card named %s", args->words[i]),
                   kl_hint(e, "klineage library list"), KL_ENOENT;
        KL_ASSERT(*n < l->n_cards + KL_MAX_WORDS);
        jobs[(*n)++].card = *c;
    }
    if (*n) return KL_OK;
    kl_fail(e, KL_EINVAL, l->dir.ptr, "no card was named, and none is waiting for admission");
    return kl_hint(e, "klineage admit CARD, or --all for every lifted one; klineage library list"),
           KL_EINVAL;
}

/* ---- run --------------------------------------------------------------------------------- */

static kl_err cmd_admit_body(kl_track *t, void *ctx, kl_error *e) {
    admit_job *job = ctx;
    kl_card card = job->card; /* the line runs again from its beginning: the card it was given stays
                                 as it was */
    kl_err err = kl_skill_admit(&card, t, job->dir, job->starts, job->n_starts, &job->opts, e);
    if (!err) job->card = card;
    return err;
}

static void show_card(kl_buf *out, const admit_job *j) {
    const kl_card *c = &j->card;
    const kl_trial_record *last = c->n_trials ? &c->trials[c->n_trials - 1] : NULL;
    kl_buf_printf(out, "%-9s %-34.*s", kl_card_status_name(c->status), KL_STR_ARG(c->name));
    if (j->error.code) {
        kl_buf_printf(out, " not decided: %s%s%s\n", j->error.where, j->error.where[0] ? ": " : "",
                      j->error.message);
        return;
    }
    if (last && last->held_out && last->gain > 0)
        kl_buf_printf(out, " %.3gx [%.3g, %.3g], %.*s, expected %.3gx, on %.*s", last->gain,
                      last->low, last->high, KL_STR_ARG(last->call), last->expected,
                      KL_STR_ARG(last->start_name));
    kl_buf_printf(out, " %.*s\n          %.*s\n", last && !last->accepted ? (int)last->why.len : 0,
                  last ? last->why.ptr : "", KL_STR_ARG(c->verification));
    if (last && last->also.len)
        kl_buf_printf(out, "          also came along: %.*s\n", KL_STR_ARG(last->also));
}

static json_t *difference_json(const kl_difference *d) {
    return json_pack("{so so so}", "mean", kli_json_real(d->mean), "low", kli_json_real(d->low),
                     "high", kli_json_real(d->high));
}

static json_t *uplifts_json(const kl_card *c) {
    json_t *all = json_object();
    for (int over = 0; over < KL_CONTROLS; over++) {
        kl_uplift u;
        kl_card_uplift(&u, c, (kl_control)over);
        if (!u.pairs) continue;
        json_object_set_new(all, kl_control_name((kl_control)over),
                            json_pack("{si si si so so so}", "pairs", u.pairs, "starts", u.starts,
                                      "foreign", u.foreign, "success", difference_json(&u.success),
                                      "log_gain", difference_json(&u.log_gain), "dollars",
                                      difference_json(&u.dollars)));
    }
    return all;
}

static int show_cards(kli_command_result *out, json_t *rows, const admit_job *jobs, int n) {
    int admitted = 0;
    for (int i = 0; i < n; i++) {
        const kl_card *c = &jobs[i].card;
        admitted += c->status == KL_CARD_ADMITTED;
        show_card(&out->text, &jobs[i]);
        json_array_append_new(rows, json_pack("{so ss si so so}", "name", kli_json_str(c->name),
                                              "status", kl_card_status_name(c->status), "trials",
                                              c->n_trials, "uplift", uplifts_json(c), "error",
                                              jobs[i].error.code
                                                  ? kli_json_str(kl_str_of(jobs[i].error.message))
                                                  : json_null()));
    }
    return admitted;
}

/* A replay that came to its end has shown what it can, whatever this machine could measure of it.
 */
static void cmd_admit_show(kli_command_result *out, const admit_job *jobs, int n, bool replays) {
    json_t *rows = json_array();
    int admitted = show_cards(out, rows, jobs, n);
    kl_buf_printf(&out->text, "%d of %d admitted\n", admitted, n);
    if (replays && admitted < n)
        kl_buf_printf(&out->text, "replay finished; continue with a live model: klineage admit "
                                  "CARD --model MODEL\n");
    out->json = json_pack("{ss si si so}", "schema", "klineage/admitted", "version", 1, "admitted",
                          admitted, "cards", rows);
    out->exit_code = admitted == n || replays ? 0 : 1;
}

/* Cards that an earlier pass of this run decided on are shown and left alone. */
static kl_err cmd_admit_run_tracks(kl_run *run, admit_job *jobs, int n, kl_arena *a,
                                   const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_track_opts how = kli_effort_tracks(args);
    kl_track_spec *tracks = KL_ARRAY(a, kl_track_spec, n + 1);
    int open = 0;
    for (int i = 0; i < n; i++) {
        if (kl_card_decided(&jobs[i].card, kl_run_id(run))) continue;
        tracks[open++] = (kl_track_spec){
            .name = kl_arena_printf(a, "admit/%.*s", KL_STR_ARG(jobs[i].card.name)).ptr,
            .workload = kl_arena_copy(a, jobs[i].card.n_trials ? jobs[i].card.trials[0].task
                                                               : KL_S("imported"))
                            .ptr,
            .policy = "admit",
            .body = cmd_admit_body,
            .ctx = &jobs[i],
            .result = &jobs[i].error};
    }
    KL_ASSERT(open <= n);
    kl_err err = kl_run_tracks(run, tracks, open, &how, e);
    if (err && err != KL_EINTR && err != KL_PENDING) {
        out->trouble = *e; /* what was decided of the others stands */
        err = KL_OK;
    }
    if (!err) cmd_admit_show(out, jobs, n, kli_effort_replays(args->values[KL_OPTION_MODEL]));
    if (!err && open < n)
        kl_buf_printf(&out->text, "%d already decided by this run; --trial N tests them again\n",
                      n - open);
    return err;
}

kl_err kli_cmd_admit(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_run_opts o;
    kl_library *l;
    int n = 0;
    const char *ladders = args->values[KL_OPTION_STARTS];
    kli_starts g = {.arena = c->arena, .workload = args->values[KL_OPTION_WORKLOAD]};
    kl_admit_opts opts = {0};
    kl_err err = kli_effort_run(&o, c->arena, args, "admit", e);
    o.identity = (const kl_str[]){KL_S("quick")};
    o.n_identity = o.gate.quick; /* other verdicts, other words to the model */
    if (!err) err = kli_effort_count(&opts.trials, args, KL_OPTION_TRIALS, 0, KLI_MAX_STARTS, e);
    if (!err) err = kli_effort_count(&opts.tries, args, KL_OPTION_TRIES, 0, KL_MAX_TRIES, e);
    if (!err) err = kli_effort_real(&opts.reproduce, args, KL_OPTION_REPRODUCE, 0.9, e);
    if (!err) err = kli_request_library(&l, c->arena, args, e);
    if (!err && ladders) err = kli_starts_of_ladders(&g, ladders, e);
    if (!err) err = kli_starts_of_library(&g, l->dir.ptr, e);
    if (!err) err = kli_starts_of_tasks(&g, e);
    if (err) return err;
    admit_job *jobs = KL_ARRAY(c->arena, admit_job, l->n_cards + KL_MAX_WORDS);
    err = cmd_admit_choose(jobs, &n, l, args, e);
    if (err) return err;
    kl_run *run = NULL;
    err = kl_run_open(&run, &o, e);
    if (err) return err;
    opts.run = kl_run_id(run);
    for (int i = 0; i < n; i++) {
        jobs[i].dir = l->dir.ptr;
        jobs[i].starts = g.starts;
        jobs[i].n_starts = g.n;
        jobs[i].opts = opts;
        jobs[i].opts.placebo = kl_card_placebo(l, c->arena, &jobs[i].card);
    }
    err = kli_effort_quiet(args, run, e);
    if (!err) err = cmd_admit_run_tracks(run, jobs, n, c->arena, args, out, e);
    kl_run_close(run);
    return err;
}
