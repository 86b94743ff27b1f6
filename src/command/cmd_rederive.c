/* cmd_rederive.c - `klineage lineage rederive LINEAGE`: every edge that pays derived once more,
 * each in a track of its own.
 *
 * The lineage that comes out has another id and the name of the old one; it is kept before it is
 * shown.  An edge whose track failed stays as it was: nobody has derived it, and nobody has tried
 * in vain.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "command/journal.h"
#include <klineage/lineage.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kl_task *task;
    const kl_workload *workload;
    const kl_lineage *lineage;
    kl_walk_opts opts;
    int index;
    kl_edge edge;   /* what came of it */
    kl_error error; /* of its track; code KL_OK: the edge counts */
} rederive_ctx;

static kl_err cmd_rederive_body(kl_track *t, void *ctx, kl_error *e) {
    rederive_ctx *r = ctx;
    return kl_lineage_rederive(&r->edge, t, r->task, r->workload, r->lineage, r->index, &r->opts,
                               e);
}

/* The next number of "9,10,14"; -1 for what is none. */
static bool next_number(long *n, const char **list) {
    if (!*list) return false;
    char *end;
    *n = strtol(*list, &end, 10);
    if (end == *list || (*end && *end != ',')) *n = -1;
    *list = strchr(*list, ',');
    if (*list) ++*list;
    return true;
}

static bool listed(const char *list, int number) {
    for (long n; next_number(&n, &list);)
        if (n == number) return true;
    return false;
}

static kl_err check_edges(const char *list, const kl_lineage *l, kl_error *e) {
    const char *rest = list;
    for (long n; next_number(&n, &rest);)
        if (n < 1 || n > l->n_edges || !l->edges[n - 1].pays)
            return kl_fail(e, KL_EINVAL, NULL,
                           "--edges '%.40s': no profitable edge leads to such a state", list),
                   kl_hint(e, "klineage lineage show lists them: K1 to K%d", l->n_edges);
    return KL_OK;
}

static int make_jobs(rederive_ctx *jobs, kl_track_spec *tracks, kli_context *c,
                     const rederive_ctx *base, const char *edges) {
    int n = 0;
    for (int i = 0; i < base->lineage->n_edges; i++) {
        if (!base->lineage->edges[i].pays || (edges && !listed(edges, i + 1))) continue;
        KL_ASSERT(n <= i);
        jobs[n] = *base;
        jobs[n].index = i;
        tracks[n] = (kl_track_spec){.name = kl_arena_printf(c->arena, "rederive/%d", i + 1).ptr,
                                    .workload = base->task->name.ptr,
                                    .policy = "walk",
                                    .body = cmd_rederive_body,
                                    .ctx = &jobs[n],
                                    .result = &jobs[n].error};
        n++;
    }
    return n;
}

/* The edges that were derived, in vain or not, into the lineage; those that were not tried to their
 * end are named. */
static int take_edges(kl_lineage *l, const rederive_ctx *jobs, int n, kl_buf *text) {
    int alone = 0;
    for (int i = 0; i < n; i++) {
        const rederive_ctx *j = &jobs[i];
        if (j->error.code) {
            kl_buf_printf(text, "  edge %d was not re-derived: %s%s%s\n", j->index + 1,
                          j->error.where, j->error.where[0] ? ": " : "", j->error.message);
            continue;
        }
        KL_ASSERT(j->index >= 0 && j->index < l->n_edges);
        l->edges[j->index] = j->edge;
        alone += kl_str_eq(j->edge.witness, KL_S("alone"));
    }
    return alone;
}

static bool cmd_rederive_any_ended(const rederive_ctx *jobs, int n) {
    for (int i = 0; i < n; i++)
        if (jobs[i].error.code == KL_OK) return true;
    return false;
}

static kl_err cmd_rederive_finish(kl_lineage *l, const rederive_ctx *jobs, int n, kl_run *run,
                                  kli_context *c, const kli_args *args, kli_command_result *out,
                                  kl_error *e) {
    kl_buf untried = {0};
    const int alone = take_edges(l, jobs, n, &untried);
    kl_lineage_sign(l, c->arena);
    kl_err err = kl_lineage_keep(l, kl_run_store(run), e);
    out->json = kl_lineage_json(l);
    if (!err) err = kli_journal_write_lineage(l, c->arena, args->values[KL_OPTION_OUT], e);
    kl_lineage_render(l, &out->text, c->colour);
    kl_buf_printf(&out->text,
                  "  %d of %d profitable edges were re-derived independently of the walk\n", alone,
                  n);
    kl_buf_add(&out->text, kl_buf_str(&untried));
    kl_buf_fini(&untried);
    out->exit_code = alone == n ? 0 : 1;
    return err;
}

kl_err kli_cmd_lineage_rederive(kli_context *c, const kli_args *args, kli_command_result *out,
                                kl_error *e) {
    kl_lineage *l = KL_NEW(c->arena, kl_lineage);
    rederive_ctx base = {.lineage = l};
    kl_run_opts o;
    kl_run *run = NULL;
    kl_track_opts how = kli_effort_tracks(args);
    kl_err err = kli_effort_run(&o, c->arena, args, "lineage rederive", e);
    if (!err) err = kli_effort_real(&base.opts.recover, args, KL_OPTION_RECOVER, 0, e);
    const char *edges = args->values[KL_OPTION_EDGES];
    if (!err) err = kli_request_lineage(l, &base.task, &base.workload, c->arena, args, e);
    if (!err) err = check_edges(edges, l, e);
    if (err) return err;
    kl_str identity[] = {l->id, o.gate.quick ? KL_S("quick") : KL_S("full")};
    o.identity = identity;
    o.n_identity = (int)KL_COUNT(identity);
    rederive_ctx *jobs = KL_ARRAY(c->arena, rederive_ctx, l->n_edges + 1);
    kl_track_spec *tracks = KL_ARRAY(c->arena, kl_track_spec, l->n_edges + 1);
    const int n = make_jobs(jobs, tracks, c, &base, edges);
    err = kl_run_open(&run, &o, e);
    if (!err && n) err = kl_run_tracks(run, tracks, n, &how, e);
    if (err && run && err != KL_EINTR && err != KL_PENDING && cmd_rederive_any_ended(jobs, n)) {
        out->trouble = *e; /* what the others found stands */
        err = KL_OK;
    }
    if (!err) err = cmd_rederive_finish(l, jobs, n, run, c, args, out, e);
    kl_run_close(run);
    return err;
}
