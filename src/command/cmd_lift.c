/* cmd_lift.c - `klineage lift LINEAGE...`: what the edges of lineages teach, as candidate cards.
 *
 * One track a group of edges, so that groups are written up side by side.  A name that an admitted
 * card has already is left alone: only admit touches those.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/journal.h"
#include "base/json.h"
#include "base/fs.h"
#include <klineage/skill.h>

typedef struct {
    const kl_group *group;
    const char *dir;
    kl_card *card;
    const kl_card *before; /* a candidate of that name that was lifted earlier; NULL: none */
    bool kept_out;         /* an admitted card has the name */
    kl_error error;        /* of its track */
} lift_job;

static kl_err cmd_lift_body(kl_track *t, void *ctx, kl_error *e) {
    lift_job *job = ctx;
    if (job->kept_out) return KL_OK;
    kl_err err = kl_skill_lift(&job->card, t, job->group, e);
    if (!err && job->before) kl_card_keep_trials(job->card, kl_track_arena(t), job->before);
    return err ? err : kl_library_put(job->dir, job->card, e);
}

/* A lineage that was named twice is no second witness. */
static bool is_new(const kl_lineage *all, int n) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(all[i].id, all[n].id)) return false;
    return true;
}

static kl_err cmd_lift_load_lineages(kl_lineage *out, int *n, kl_arena *a, const kli_args *args,
                                     kl_error *e) {
    kl_store *store = NULL;
    kl_err err = kli_journal_open(&store, a, args, e);
    for (int i = 0; !err && i < args->n_words; i++) {
        KL_ASSERT(*n < KL_MAX_WORDS);
        err = kli_journal_lineage(&out[*n], a, store, args->words[i], e);
        if (!err && is_new(out, *n)) ++*n;
    }
    kl_store_close(store);
    return err;
}

static void cmd_lift_show(kli_command_result *out, const lift_job *jobs, int n, const char *dir) {
    json_t *rows = json_array();
    for (int i = 0; i < n; i++) {
        const kl_group *g = jobs[i].group;
        kl_buf_printf(&out->text, "%-34.*s from %d transition%s, expected %.3gx%s\n",
                      KL_STR_ARG(g->name), g->n_births, g->n_births == 1 ? "" : "s",
                      jobs[i].card->expected_gain,
                      jobs[i].kept_out ? "  already admitted: unchanged" : "");
        json_array_append_new(rows, json_pack("{so so si sb sf}", "name", kli_json_str(g->name),
                                              "action", kli_json_str(g->id), "births", g->n_births,
                                              "kept_out", jobs[i].kept_out, "expected_gain",
                                              jobs[i].card->expected_gain));
    }
    kl_buf_printf(&out->text,
                  n ? "in %s/lifted; next: klineage admit --all\n"
                    : "no edge is both profitable and re-derived: nothing to lift%.0s\n",
                  dir);
    out->json = json_pack("{ss si so}", "schema", "klineage/lifted", "version", 1, "cards", rows);
}

static kl_err cmd_lift_run_tracks(kl_run_opts *o, lift_job *jobs, int n, kl_arena *a,
                                  const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_run *run = NULL;
    kl_track_opts how = kli_effort_tracks(args);
    kl_track_spec *tracks = KL_ARRAY(a, kl_track_spec, n + 1);
    for (int i = 0; i < n; i++)
        tracks[i] = (kl_track_spec){
            .name = kl_arena_printf(a, "lift/%.*s", KL_STR_ARG(jobs[i].group->name)).ptr,
            .workload = jobs[i].group->births[0].lineage->task.ptr,
            .policy = "lift",
            .body = cmd_lift_body,
            .ctx = &jobs[i],
            .result = &jobs[i].error};
    kl_err err = kl_run_open(&run, o, e);
    if (!err) err = kl_run_tracks(run, tracks, n, &how, e);
    if (!err) cmd_lift_show(out, jobs, n, jobs[0].dir);
    kl_run_close(run);
    return err;
}

static kl_err keep_out_admitted(lift_job *jobs, int n, kl_arena *a, const char *dir, kl_error *e) {
    kl_library *l;
    if (!kli_fs_is_dir(dir)) return KL_OK;
    kl_err err = kl_library_load(&l, a, dir, e);
    for (int i = 0; !err && i < n; i++) {
        const kl_card *c = kl_library_card(l, jobs[i].group->name);
        jobs[i].kept_out = c && c->status == KL_CARD_ADMITTED;
        jobs[i].before = c;
        if (jobs[i].kept_out) jobs[i].card = KL_NEW(a, kl_card), *jobs[i].card = *c;
    }
    return err;
}

kl_err kli_cmd_lift(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_lineage lineages[KL_MAX_WORDS];
    kl_str dir;
    kl_run_opts o;
    kl_group *groups;
    int n, n_lineages = 0;
    kl_err err = kli_effort_run(&o, c->arena, args, "lift", e);
    if (!err) err = cmd_lift_load_lineages(lineages, &n_lineages, c->arena, args, e);
    if (err) return err;
    if (kl_library_find(&dir, c->arena, args->values[KL_OPTION_LIBRARY], kl_ignored()))
        dir = KL_S("library");
    kl_skill_group(&groups, &n, c->arena, lineages, n_lineages);
    lift_job *jobs = KL_ARRAY(c->arena, lift_job, n + 1);
    for (int i = 0; i < n; i++) jobs[i] = (lift_job){.group = &groups[i], .dir = dir.ptr};
    err = keep_out_admitted(jobs, n, c->arena, dir.ptr, e);
    if (!err && !n) return cmd_lift_show(out, jobs, 0, dir.ptr), KL_OK;
    return err ? err : cmd_lift_run_tracks(&o, jobs, n, c->arena, args, out, e);
}
