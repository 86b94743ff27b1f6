/* cmd_probe_recorded.c - `klineage probe recorded PLAN`: the proposals that an experiment's
 * recording holds, each gated once more against the kernel that it changes.
 *
 *   reply -> parsed -> applied to the kernel of its track that its edits fit -> one verdict, timed
 *   against that kernel -> a step, of which `probe export` makes a row
 *
 * A replay of the experiment gates too, but follows what is measured now: on another day another
 * kernel is the best, and an edit no longer fits.  Here every proposal is judged, whatever became
 * of the others.  A reply with a whole file is a change of the newest kernel that got faster, or of
 * the start where the policy's attempts say nothing of each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/request.h"
#include "base/parts.h"
#include <fnmatch.h>
#include <klineage/experiment.h>
#include <string.h>

#define RECORDED_HALF_WIDTH 0.03
#define RECORDED_SECONDS 2

typedef struct {
    const kl_experiment_track *of;
    kl_error error;
    int gated, faster, unusable;
} recorded_track;

typedef struct {
    kl_track *track;
    kl_arena *arena;
    recorded_track *out;
    const kl_search_opts *o;
    const kl_kernel **known; /* the start, and what came out correct, oldest first */
    int n_known;
    const kl_kernel *current;
} recorded_line;

/* ---- one proposal ------------------------------------------------------------------------ */

/* The newest kernel that the edits fit; NULL: none of this track. */
static const kl_kernel *base_of(recorded_line *x, kl_str *source, const kl_proposal *p) {
    const bool alone = !x->out->of->policy->policy->patience && p->kind == KL_PROPOSAL_FILE;
    const kl_kernel *first = alone ? x->o->start : x->current;
    if (!kl_proposal_apply(source, x->arena, first->source, p, kl_ignored())) return first;
    for (int i = x->n_known - 1; i >= 0; i--)
        if (!kl_proposal_apply(source, x->arena, x->known[i]->source, p, kl_ignored()))
            return x->known[i];
    return NULL;
}

/* A proposal counts for the card that it names only where the card's own text was shown; for its
 * action elsewhere. */
static kl_str applied_of(const recorded_line *x, const kl_proposal *p) {
    const kli_arm arm = x->out->of->policy->arm;
    const bool shown = arm == KLI_ARM_NONE || arm == KLI_ARM_OURS || arm == KLI_ARM_ALL;
    return p->card.len && (shown || !p->action.len) ? p->card : p->action;
}

static kl_err write_row(recorded_line *x, const kl_verdict *v, const kl_kernel *k,
                        const kl_kernel *base, const kl_proposal *p, kl_str source, kl_error *e) {
    const kl_comparison *c = v->n_comparisons ? &v->comparisons[0] : NULL;
    kl_step row = {.phase = KL_S("recorded"),
                   .action = applied_of(x, p),
                   .locus = p->locus,
                   .parent = kl_str_of(base->hash),
                   .kernel = kl_str_of(k ? k->hash : ""),
                   .verdict = kl_str_of(kl_track_verdict_key(x->track)),
                   .outcome = kl_str_of(kl_outcome_name(v->outcome)),
                   .median_ns = v->median_ns,
                   .why = v->why};
    if (!c) return kl_track_step(x->track, &row, source, e);
    row.gain = c->ratio, row.gain_low = c->low, row.gain_high = c->high;
    row.gain_noise = c->noise;
    row.call = kl_str_of(kl_decision_name(c->call));
    return kl_track_step(x->track, &row, source, e);
}

/* A base that cannot be timed here is the machine's doing. */
static kl_err judge_proposal(recorded_line *x, kl_verdict *v, kl_kernel **k, const kl_kernel *base,
                             kl_str source, kl_error *e) {
    kl_gate_opts o = *kl_track_gate_opts(x->track);
    kl_error own = {0};
    o.workload = x->o->workload->label.ptr;
    o.against = base;
    o.half_width = RECORDED_HALF_WIDTH;
    o.max_seconds = RECORDED_SECONDS;
    const kl_err err =
        kl_judge_text(v, k, x->track, x->arena, x->o->task, source, x->o->start->surface, &o, &own);
    if (err == KL_EBASELINE) return *v = (kl_verdict){.outcome = KL_OUTCOME_UNSTABLE}, KL_OK;
    if (err && e) *e = own;
    return err;
}

static kl_err gate_reply(recorded_line *x, const kl_reply *reply, kl_error *e) {
    kl_proposal p;
    kl_str source;
    kl_verdict v;
    kl_kernel *k = NULL;
    if (kl_proposal_parse(&p, x->arena, reply->text, x->o->start->surface, kl_ignored()) ||
        p.kind == KL_PROPOSAL_DONE || !(p.card.len || p.action.len))
        return KL_OK;
    const kl_kernel *base = base_of(x, &source, &p);
    if (!base) return x->out->unusable++, KL_OK;
    kl_track_log(x->track, "gating %.*s", KL_STR_ARG(p.card.len ? p.card : p.action));
    kl_err err = judge_proposal(x, &v, &k, base, source, e);
    if (!err) err = write_row(x, &v, k, base, &p, source, e);
    if (err) return err;
    x->out->gated++;
    const bool correct = v.outcome == KL_OUTCOME_PASS || v.outcome == KL_OUTCOME_UNSTABLE;
    const bool faster = v.n_comparisons && v.comparisons[0].call == KL_DECISION_FASTER;
    x->out->faster += k && correct && faster;
    if (k && correct) *KL_PUSH(x->arena, x->known, x->n_known) = k;
    if (k && correct && faster && base == x->current) x->current = k;
    return KL_OK;
}

/* ---- the line of a track ----------------------------------------------------------------- */

/* The call that the recording holds for that purpose next; false at its end. */
static kl_err ask_recording(recorded_line *x, kl_reply *reply, const char *purpose, bool *there,
                            kl_error *e) {
    kl_error own = {0};
    kl_message nothing = {.role = KL_ROLE_USER, .text = KL_S("recorded")};
    const kl_request q = {.messages = &nothing, .n = 1, .purpose = purpose};
    const kl_err err = kl_ask(reply, x->track, x->arena, &q, &own);
    *there = !err;
    if (!err || kl_model_recording_ended(&own)) return KL_OK;
    return *e = own, err;
}

/* A search begins with one of these; afterwards the recording says what came next. */
static kl_err ask_first(recorded_line *x, kl_reply *reply, bool *there, kl_error *e) {
    static const char *const FIRST[] = {"materialize", "generate", "plan", "large_step", "review"};
    kl_err err = KL_OK;
    *there = false;
    for (size_t i = 0; !err && !*there && i < KL_COUNT(FIRST); i++)
        err = ask_recording(x, reply, FIRST[i], there, e);
    return err;
}

static kl_err ask_next(recorded_line *x, kl_reply *reply, bool *there, kl_error *e) {
    const char *slot = kl_track_recorded_next(x->track, NULL);
    if (!slot || !*slot) return *there = false, KL_OK;
    const size_t n = strcspn(slot, " /");
    const char *purpose = kl_arena_copy(x->arena, (kl_str){slot, n}).ptr;
    return ask_recording(x, reply, purpose, there, e);
}

static kl_err recorded_body(kl_track *t, void *ctx, kl_error *e) {
    recorded_track *out = ctx;
    kl_reply reply;
    bool there;
    recorded_line x = {.track = t,
                       .arena = kl_track_arena(t),
                       .out = out,
                       .o = &out->of->opts,
                       .current = out->of->opts.start};
    out->gated = out->faster = out->unusable = 0;
    *KL_PUSH(x.arena, x.known, x.n_known) = x.current;
    kl_track_phase(t, "recorded");
    kl_err err = ask_first(&x, &reply, &there, e);
    while (!err && there) {
        err = gate_reply(&x, &reply, e);
        if (!err) err = ask_next(&x, &reply, &there, e);
    }
    return err;
}

/* ---- the command ------------------------------------------------------------------------- */

static int recorded_tracks(kl_track_spec *out, recorded_track *jobs,
                           const kl_experiment_track *tracks, int n, const char *glob) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (glob && fnmatch(glob, tracks[i].name, 0)) continue;
        jobs[kept] = (recorded_track){.of = &tracks[i]};
        out[kept] = (kl_track_spec){.name = tracks[i].name,
                                    .workload = tracks[i].workload->name.ptr,
                                    .policy = tracks[i].policy->name.ptr,
                                    .body = recorded_body,
                                    .ctx = &jobs[kept],
                                    .result = &jobs[kept].error};
        kept++;
    }
    return kept;
}

static void show_recorded(kli_command_result *out, const kl_track_spec *specs,
                          const recorded_track *jobs, int n) {
    json_t *rows = json_array();
    for (int i = 0; i < n; i++) {
        const recorded_track *j = &jobs[i];
        kl_buf_printf(&out->text, "%-36s gated %d, faster %d, no longer usable %d%s%s\n",
                      specs[i].name, j->gated, j->faster, j->unusable, j->error.code ? "; " : "",
                      j->error.code ? j->error.message : "");
        json_array_append_new(rows,
                              json_pack("{ss si si si}", "track", specs[i].name, "gated", j->gated,
                                        "faster", j->faster, "unusable", j->unusable));
    }
    out->json =
        json_pack("{ss si so}", "schema", "klineage/probed-recorded", "version", 1, "tracks", rows);
}

kl_err kli_cmd_probe_recorded(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    kl_experiment *x;
    kl_experiment_track *tracks;
    kl_run_opts o;
    kl_str *identity;
    kl_run *run = NULL;
    int n, n_identity;
    kl_err err = kl_experiment_load(&x, c->arena, args->words[0], e);
    if (!err) err = kl_experiment_cards(x, c->arena, e);
    if (!err) err = kl_experiment_tracks(&tracks, &n, c->arena, x, e);
    if (!err) err = kli_effort_run(&o, c->arena, args, "probe recorded", e);
    if (err) return err;
    if (!kli_effort_replays(o.model))
        return kl_fail(e, KL_EINVAL, "--model", "a recording: --model replay:FILE");
    kl_experiment_identity(&identity, &n_identity, c->arena, x);
    o.identity = identity, o.n_identity = n_identity;
    o.gate.quick = true;
    recorded_track *jobs = KL_ARRAY(c->arena, recorded_track, n + 1);
    kl_track_spec *specs = KL_ARRAY(c->arena, kl_track_spec, n + 1);
    const kl_track_opts how = kli_effort_tracks(args);
    n = recorded_tracks(specs, jobs, tracks, n, args->values[KL_OPTION_ONLY]);
    err = kl_run_open(&run, &o, e);
    if (!err) err = kl_run_tracks(run, specs, n, &how, e);
    kl_run_close(run);
    if (!err) show_recorded(out, specs, jobs, n);
    return err;
}
