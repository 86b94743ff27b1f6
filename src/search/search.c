/* search.c - the part that every policy shares: one proposal through the gate, best by verdict
 * alone, when to stop.
 *
 * A kernel is better when the gate calls it faster than the best.  Ratios to a baseline tell only
 * what is worth a closer look: that baseline drifts, on a shared machine by a half, so unless the
 * ratios are further apart the two are timed against each other.  Where that stays open, so does
 * the proposal: correct, not timed, and no new best. Proposals that do not parse, do not apply, do
 * not pass or are slower are results and cost what they cost.  What to propose next is a policy's
 * business.  SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include <math.h>
#include <string.h>

#define DRIFT                                                                                      \
    1.5 /* of a baseline between two measurements; ratios further apart are decided by themselves  \
         */
#define QUICK_HALF_WIDTH 0.03
#define SEARCH_QUICK_SECONDS                                                                       \
    2 /* on a busy machine nothing settles: each question then costs its cap, twice */
#define END_HALF_WIDTH 0.005 /* finer than what chose the best, so that it is measured anew */
#define QUICK_END_HALF_WIDTH 0.02
#define START_HALF_WIDTH 0.05
#define START_SECONDS 30
#define QUICK_START_SECONDS 4
#define DEFAULT_ROOF 0.9

kl_decision kl_search_far_apart(double low, double high) {
    if (!(low > 0) || !(low <= high) || !isfinite(high)) return KL_DECISION_UNDECIDED;
    return low > DRIFT        ? KL_DECISION_FASTER
           : high < 1 / DRIFT ? KL_DECISION_SLOWER
                              : KL_DECISION_UNDECIDED;
}

/* ---- conversations ----------------------------------------------------------------------- */

void kli_search_dialog_add(kli_search_dialog *talk, kl_arena *a, kl_role role, kl_str text) {
    *KL_PUSH(a, talk->at, talk->n) = (kl_message){.role = role, .text = text};
}

/* Cache breakpoints: behind the library, behind the task, and behind the last turn. */
kl_err kli_search_ask(kl_search *s, kl_reply *reply, const kli_search_dialog *talk,
                      const char *purpose, const kl_kernel *subject, kl_error *e) {
    for (int i = 0; i < talk->n; i++) talk->at[i].cache = i < 2 || i == talk->n - 1;
    kl_request q = {.messages = talk->at, .n = talk->n, .purpose = purpose, .subject = subject};
    return kl_ask(reply, s->track, s->arena, &q, e);
}

kl_str kli_search_rules(const kl_search *s) {
    const kl_surface *surface = s->o.start->surface;
    const kl_str rules = kl_prompt_rules(s->arena, surface),
                 actions = kl_prompt_vocabulary(s->arena, surface, false),
                 machine = kl_prompt_machine(s->arena, &s->device);
    return kl_arena_printf(s->arena, "%.*s%.*s%.*s", KL_STR_ARG(rules), KL_STR_ARG(actions),
                           KL_STR_ARG(machine));
}

/* "nvidia-sm90a/cuda-13.0": a device that is elsewhere, which code can be compiled for here. */
static kl_device device_elsewhere(const kl_search *s) {
    const kl_verdict *v = &s->start.verdict;
    const char *arch = memmem(v->platform.ptr, v->platform.len, "nvidia-sm", 9);
    kl_device d = {0};
    if (arch) {
        const kl_str name =
            kl_arena_printf(s->arena, "sm_%.*s", (int)strcspn(arch + 9, "/"), arch + 9);
        if (kl_device_target(&d, s->arena, KL_BACKEND_CUDA, name.ptr, kl_ignored()))
            d = (kl_device){0};
    }
    if (!d.arch.len) d.arch = v->platform;
    d.limits = (kl_device_limits){0}; /* a prompt says what a verdict says of its device */
    d.name = v->device;
    d.platform = v->platform;
    return d;
}

/* The one here, where it is that which judged; else what the verdict says of it. */
static void find_device(kl_search *s) {
    const kl_verdict *v = &s->start.verdict;
    kl_err err = KL_OK;
    for (int i = 0; err != KL_ENOENT; i++) {
        err = kl_device_of_surface(&s->device, s->arena, s->o.start->surface, i, kl_ignored());
        if (!err && kl_str_eq(s->device.platform, v->platform) &&
            kl_str_eq(s->device.name, v->device))
            return;
    }
    s->device = device_elsewhere(s);
}

kl_str kli_search_tag(const kl_search *s) { return kl_str_of(kl_prompt_tag(s->o.start->surface)); }

static kl_str search_task_text(const kl_search *s) {
    kl_str task = kl_prompt_task(s->arena, s->o.task, s->o.workload, s->o.start->surface,
                                 s->o.start->source, false);
    if (!kli_blocks_any(s->o.start->source)) return task;
    kl_str blocks = kl_prompt(s->arena, "search_blocks", NULL, 0);
    return kl_arena_printf(s->arena, "%.*s\n%.*s", KL_STR_ARG(task), KL_STR_ARG(blocks));
}

/* Out of the compiler's cache, where the gate that judged it was here. */
static kl_str compiled_text(const kl_search *s, const kl_kernel *k) {
    kl_compiled made;
    if (!s->device.backend ||
        kl_compiled_of(&made, s->arena, &s->device, k, s->o.task, s->o.workload,
                       &kl_track_gate_opts(s->track)->compile, kl_ignored()))
        return KL_S("");
    return kl_prompt_compiled(s->arena, &made, k, s->o.task, s->o.workload);
}

kl_str kli_search_limits(const kl_search *s, const kli_point *p) {
    if (!p->kernel) return KL_S("");
    const kl_str bounds =
        kl_prompt_limits(s->arena, &s->device, s->o.task, s->o.workload, &p->verdict);
    return kl_arena_printf(s->arena, "%.*s%.*s", KL_STR_ARG(bounds),
                           KL_STR_ARG(compiled_text(s, p->kernel)));
}

enum { MAX_OWN_VALUES = 8, COMMON_VALUES = 7 };

kl_str kli_search_prompt(const kl_search *s, const char *name, const kli_point *about,
                         const kl_prompt_value *own, size_t n) {
    kl_prompt_value values[MAX_OWN_VALUES + COMMON_VALUES];
    KL_ASSERT(n <= MAX_OWN_VALUES && about->kernel);
    const kl_prompt_value common[COMMON_VALUES] = {
        {"task", s->task},
        {"tag", kli_search_tag(s)},
        {"platform", s->start.verdict.platform},
        {"kernel", about->kernel->source},
        {"profile", kli_search_describe(s, about)},
        {"feedback", kl_rewrite_feedback(s->arena, &about->verdict)},
        {"limits", kli_search_limits(s, about)}};
    if (n) memcpy(values, own, n * sizeof *own);
    memcpy(values + n, common, sizeof common);
    return kl_prompt(s->arena, name, values, (int)n + COMMON_VALUES);
}

const char *kli_step_result_words(kli_step_result ended) {
    switch (ended) {
    case KLI_NO_EDIT:
        return "not gated: nothing could be applied";
    case KLI_FAILED:
        return "rejected by the gate";
    case KLI_UNDECIDED:
        return "correct, and its time could not be told from that of the best on this machine";
    case KLI_SLOWER:
        return "correct, and not a new best";
    case KLI_BETTER:
        return "correct, and the new best";
    }
    return "";
}

/* ---- settings ---------------------------------------------------------------------------- */

double kli_search_param(const kl_search *s, const char *name) {
    const kl_policy_param *p = kli_policy_param_find(s->policy, kl_str_of(name));
    KL_ASSERT(p && p->least <= p->otherwise && p->otherwise <= p->most);
    double value = p->otherwise;
    for (int i = 0; i < s->o.n_settings; i++)
        if (kl_str_eq(s->o.settings[i].name, kl_str_of(name))) value = s->o.settings[i].value;
    return value < p->least ? p->least : value > p->most ? p->most : value;
}

/* ---- points ------------------------------------------------------------------------------ */

static kl_gate_opts search_options(const kl_search *s) {
    kl_gate_opts o = *kl_track_gate_opts(s->track);
    o.workload = s->o.workload->label.ptr;
    if (o.quick) {
        o.half_width = QUICK_HALF_WIDTH;
        o.max_seconds = SEARCH_QUICK_SECONDS;
    }
    if (s->against_start) o.against = s->start.kernel;
    return o;
}

/* Timed against what the start was timed against?  A baseline that fails for once leaves a verdict
 * with another one, or with the kernel against itself; its ratio says nothing here. */
static bool comparable(const kl_search *s, const kl_verdict *v) {
    const kl_verdict *start = &s->out->start_verdict;
    if (!v->n_comparisons) return false;
    return s->against_start || !start->n_comparisons ||
           kl_str_eq(v->comparisons[0].baseline, start->comparisons[0].baseline);
}

static void fill_point(kl_search *s, kli_point *p, kl_kernel *k, const kl_verdict *v) {
    *p = (kli_point){.kernel = k, .verdict = *v};
    kl_traits_of(&p->traits, s->arena, k, v);
    if (!comparable(s, v)) return;
    p->ratio = v->comparisons[0].ratio;
    p->low = v->comparisons[0].low;
    p->high = v->comparisons[0].high;
}

kl_str kli_search_describe(const kl_search *s, const kli_point *p) {
    const kl_verdict *v = &p->verdict;
    kl_str opponent = s->against_start   ? KL_S("the start")
                      : v->n_comparisons ? v->comparisons[0].baseline
                                         : KL_S("nothing");
    if (!(p->ratio > 0)) return KL_S("correct, not timed against the baseline");
    return kl_arena_printf(s->arena, "%.4g x %.*s [%.4g, %.4g], %.4g us a run", p->ratio,
                           KL_STR_ARG(opponent), p->low, p->high, (double)v->median_ns / 1e3);
}

static kl_str last_key(const kl_search *s) {
    return kl_arena_copy(s->arena, kl_str_of(kl_track_verdict_key(s->track)));
}

/* Every check passed; a time that did not settle is the machine's doing. */
static bool is_correct(const kl_verdict *v) {
    return v->outcome == KL_OUTCOME_PASS || v->outcome == KL_OUTCOME_UNSTABLE;
}

static void say_untimed(const kl_search *s, const char *what, const kl_verdict *v) {
    if (v->outcome == KL_OUTCOME_UNSTABLE)
        kl_track_log(s->track, "%s is correct, not timed: %.*s", what, KL_STR_ARG(v->why));
}

static bool lacks_baseline(const kl_verdict *v) {
    return !v->n_comparisons || kl_str_eq(v->comparisons[0].baseline, KL_S("candidate"));
}

/* What was given.  A naive kernel may be too slow for many pairs: how slow exactly does not matter.
 */
static kl_err judge_given(kl_search *s, kl_verdict *v, const kl_kernel *k, kl_error *e) {
    kl_gate_opts o = search_options(s);
    kl_err err = kl_judge(v, s->track, s->arena, s->o.task, k, &o, e);
    if (err || v->outcome != KL_OUTCOME_UNSTABLE) return err;
    o.half_width = START_HALF_WIDTH;
    o.max_seconds = o.quick ? QUICK_START_SECONDS : START_SECONDS;
    return kl_judge(v, s->track, s->arena, s->o.task, k, &o, e);
}

static kl_err search_judge_start(kl_search *s, kl_verdict *v, kl_error *e) {
    kl_kernel *start =
        (kl_kernel *)
            s->o.start; /* points hold kernels of the search and this one; none is changed */
    kl_err err = judge_given(s, v, start, e);
    if (err || !is_correct(v) || !lacks_baseline(v)) return err;
    s->start.kernel = start;
    s->against_start = true;
    return KL_OK;
}

static kl_err search_step(kl_search *s, const kli_outcome *o, kl_str source, kl_str parent,
                          kl_str action, kl_error *e);

/* What others reached, in a row of its own: never a best of this search. */
static kl_err judge_reference(kl_search *s, kl_error *e) {
    kl_kernel *target_kernel = (kl_kernel *)s->o.target_kernel;
    kli_outcome out = {.ended = KLI_FAILED};
    kl_err err = judge_given(s, &out.verdict, target_kernel, e);
    if (err) return err;
    if (!is_correct(&out.verdict))
        return kl_fail(e, KL_EINVAL, target_kernel->path.ptr,
                       "the reference kernel does not pass the gate: %s: %.*s",
                       kl_outcome_name(out.verdict.outcome), KL_STR_ARG(out.verdict.why));
    fill_point(s, &out.point, target_kernel, &out.verdict);
    out.verdict_key = last_key(s);
    say_untimed(s, "the reference", &out.verdict);
    s->out->target_ratio = out.verdict.outcome == KL_OUTCOME_PASS ? out.point.ratio : 0;
    return search_step(s, &out, target_kernel->source, KL_S(""), KL_S("reference"), e);
}

/* What was not set is the policy's; what it has no use for is not there. */
static kl_search_opts options_for(const kl_policy *p, const kl_search_opts *given) {
    kl_search_opts o = *given;
    if (!p->uses_library) o.library = NULL;
    if (o.max_steps <= 0) o.max_steps = p->max_steps;
    if (o.patience <= 0) o.patience = p->patience;
    if (!p->patience) o.patience = KL_MAX_PROPOSALS;
    if (!(o.roof > 0)) o.roof = DEFAULT_ROOF;
    KL_ASSERT(o.task && o.workload && o.start && o.patience > 0);
    return o;
}

static kl_err refuse_start(const kl_search *s, const kl_verdict *v, kl_error *e) {
    const kl_kernel *start = s->o.start;
    kl_fail(e, KL_EINVAL, start->path.ptr, "the start kernel does not pass the gate: %s: %.*s",
            kl_outcome_name(v->outcome), KL_STR_ARG(v->why));
    return kl_hint(e, "klineage gate %.*s %.*s", KL_STR_ARG(s->o.task->name),
                   KL_STR_ARG(start->path));
}

static kl_err search_begin(kl_search *s, kl_error *e) {
    kl_verdict v;
    const kl_kernel *start = s->o.start;
    kl_track_phase(s->track, "start");
    kl_track_log(s->track, "judging the start");
    kl_err err = kli_blocks_valid(start->source, start->path, e);
    if (!err) err = search_judge_start(s, &v, e);
    if (err) return err;
    if (!is_correct(&v)) return refuse_start(s, &v, e);
    say_untimed(s, "the start", &v);
    fill_point(s, &s->start, (kl_kernel *)start, &v);
    if (s->against_start) s->start.ratio = s->start.low = s->start.high = 1;
    s->best = s->start;
    find_device(s);
    s->out->start_verdict = s->out->verdict = v;
    s->out->best = s->start.kernel;
    s->task = search_task_text(s);
    const kli_outcome begun = {.ended = KLI_BETTER,
                               .verdict = v,
                               .verdict_key = last_key(s),
                               .point = s->start,
                               .proposal.locus = s->o.arm ? s->o.arm->note : KL_S("")};
    err = search_step(s, &begun, start->source, KL_S(""), KL_S("start"), e);
    return err || !s->o.target_kernel ? err : judge_reference(s, e);
}

/* ---- one proposal ------------------------------------------------------------------------ */

static kl_err search_step(kl_search *s, const kli_outcome *o, kl_str source, kl_str parent,
                          kl_str action, kl_error *e) {
    const kl_verdict *v = &o->verdict;
    bool gated = o->ended != KLI_NO_EDIT, open = o->ended == KLI_UNDECIDED && !v->why.len;
    kl_step row = {.phase = KL_S("search"),
                   .action = action,
                   .locus = o->proposal.locus,
                   .parent = parent,
                   .kernel = o->point.kernel ? kl_str_of(o->point.kernel->hash) : KL_S(""),
                   .verdict = o->verdict_key,
                   .outcome = gated     ? kl_str_of(kl_outcome_name(v->outcome))
                              : o->done ? KL_S("done")
                                        : KL_S("no_edit"),
                   .ratio = o->point.ratio,
                   .low = o->point.low,
                   .high = o->point.high,
                   .median_ns = v->median_ns,
                   .accepted = o->ended == KLI_BETTER,
                   .best = o->ended == KLI_BETTER,
                   .gain = o->over.ratio,
                   .gain_low = o->over.low,
                   .gain_high = o->over.high,
                   .gain_noise = o->over.noise,
                   .call = o->over.ratio > 0 ? kl_str_of(kl_decision_name(o->over.call)) : KL_S(""),
                   .why = !gated ? o->feedback
                          : open ? KL_S("undecided: could not be told from the best")
                                 : v->why};
    return kl_track_step(s->track, &row, source, e);
}

static kl_gate_opts rival_options(const kl_search *s) {
    kl_gate_opts o = search_options(s);
    o.against = s->best.kernel;
    return o;
}

/* Through a spool both questions go at once. */
static void prefetch_comparison(kl_search *s, kl_str source) {
    const kl_surface *surface = s->o.start->surface;
    kl_gate_opts *o = KL_NEW(s->arena, kl_gate_opts);
    kl_kernel *k;
    *o = rival_options(s);
    if (kl_kernel_parse(&k, s->arena, source,
                        kl_arena_printf(s->arena, "candidate%s", surface->suffix), surface, NULL,
                        kl_ignored()))
        return; /* the gate will say why */
    if (strcmp(k->hash, s->best.kernel->hash) != 0) kl_prefetch(s->track, s->o.task, k, o);
}

static const kl_comparison *compared(const kl_verdict *v) {
    return is_correct(v) && v->n_comparisons > 0 ? &v->comparisons[0] : NULL;
}

static kl_decision by_ratios(const kli_point *p, const kli_point *best) {
    if (!(p->low > 0) || !(best->low > 0)) return KL_DECISION_UNDECIDED;
    return kl_search_far_apart(p->low / best->high, p->high / best->low);
}

/* Timed against the best, in `timed`.  A comparison that cannot be held leaves it undecided. */
static kl_err compare_with_best(kl_search *s, kl_decision *call, kl_comparison *timed,
                                const kli_point *p, kl_error *e) {
    kl_verdict v;
    kl_error own = {0};
    kl_gate_opts o = rival_options(s);
    *call = KL_DECISION_UNDECIDED;
    kl_err err = kl_judge(&v, s->track, s->arena, s->o.task, p->kernel, &o, &own);
    if (err == KL_EBASELINE) {
        kl_track_log(s->track, "not timed against the best: %s", own.message);
        return KL_OK;
    }
    if (err && e) *e = own;
    const kl_comparison *c = err ? NULL : compared(&v);
    const bool passed = p->verdict.outcome == KL_OUTCOME_PASS ||
                        (c && v.outcome == KL_OUTCOME_PASS); /* a best has passed once at least */
    if (c && passed) *timed = *c, *call = c->call;
    if (c && *call == KL_DECISION_UNDECIDED)
        kl_track_log(s->track,
                     "undecided: %.3gx of the best [%.3g, %.3g] with A/A noise of %.1f %%",
                     c->ratio, c->low, c->high, c->noise * 100);
    return err;
}

static kl_err against_best(kl_search *s, kli_step_result *out, kl_comparison *timed,
                           const kli_point *p, kl_error *e) {
    kl_err err = KL_OK;
    *out = KLI_SLOWER;
    if (strcmp(p->kernel->hash, s->best.kernel->hash) == 0) return KL_OK;
    kl_decision call =
        p->verdict.outcome == KL_OUTCOME_PASS ? by_ratios(p, &s->best) : KL_DECISION_UNDECIDED;
    if (call == KL_DECISION_UNDECIDED) err = compare_with_best(s, &call, timed, p, e);
    *out = call == KL_DECISION_FASTER      ? KLI_BETTER
           : call == KL_DECISION_UNDECIDED ? KLI_UNDECIDED
                                           : KLI_SLOWER;
    return err;
}

/* A quotient of ratios beside the noise of the baseline: kl_decide then says what
 * kl_search_far_apart does. */
static kl_comparison over_base(const kli_point *p, const kli_point *base,
                               const kl_comparison *timed) {
    if (timed->ratio > 0) return *timed;
    if (!(p->low > 0) || !(base->low > 0)) return (kl_comparison){0};
    return (kl_comparison){.ratio = p->ratio / base->ratio,
                           .low = p->low / base->high,
                           .high = p->high / base->low,
                           .noise = (DRIFT - 1) / 2,
                           .call = by_ratios(p, base)};
}

static void new_best(kl_search *s, const kli_point *p) {
    s->best = *p;
    s->since_best = 0;
    s->out->best = p->kernel;
    s->out->verdict = p->verdict;
    s->out->improved++;
    kl_track_best(s->track, p->ratio);
}

static bool replays(const kl_search *s) {
    return kl_model_replayed(kl_str_of(kl_track_model(s->track))).len > 0;
}

/* Nothing could be gated: says why, to the model and in the journal. */
static kl_err no_edit(kl_search *s, kli_outcome *out, const kli_point *base, const kl_error *why,
                      kl_error *e) {
    out->ended = KLI_NO_EDIT;
    out->feedback =
        kl_arena_printf(s->arena, "%s%s%s", why->message, *why->detail ? "\n" : "", why->detail);
    return search_step(s, out, KL_S(""), kl_str_of(base->kernel->hash), out->proposal.action, e);
}

kl_err kli_search_gate(kl_search *s, kli_outcome *out, kl_str source, const kli_point *base,
                       kl_str action, kl_error *e) {
    kl_gate_opts o = search_options(s);
    kl_kernel *k = NULL;
    kl_error refused = {0};
    if (kli_blocks_check(s->o.start->source, source, &refused))
        return no_edit(s, out, base, &refused, e);
    kl_track_log(s->track, "gating %.*s", KL_STR_ARG(action));
    prefetch_comparison(s, source);
    kl_err err = kl_judge_text(&out->verdict, &k, s->track, s->arena, s->o.task, source,
                               s->o.start->surface, &o, e);
    if (err) return err;
    s->out->gated++;
    out->verdict_key = last_key(s);
    out->ended = KLI_FAILED;
    out->feedback = kl_rewrite_feedback(s->arena, &out->verdict);
    if (k && is_correct(&out->verdict)) {
        s->out->passed += out->verdict.outcome == KL_OUTCOME_PASS;
        fill_point(s, &out->point, k, &out->verdict);
        *KL_PUSH(s->arena, s->correct, s->n_correct) = k;
        kl_comparison timed = {0};
        err = against_best(s, &out->ended, &timed, &out->point, e);
        if (err) return err;
        if (base->kernel != s->best.kernel) timed = (kl_comparison){0};
        out->over = over_base(&out->point, base, &timed);
    }
    if (out->ended == KLI_BETTER) new_best(s, &out->point);
    if (out->point.ratio > 0)
        kl_track_log(s->track, "%.*s: %s, %.4gx", KL_STR_ARG(action),
                     kl_outcome_name(out->verdict.outcome), out->point.ratio);
    else
        kl_track_log(s->track, "%.*s: %s", KL_STR_ARG(action),
                     kl_outcome_name(out->verdict.outcome));
    return search_step(s, out, source, kl_str_of(base->kernel->hash), action, e);
}

/* To `base`.  A recorded edit that does not fit it was made for a kernel that was current then:
 * where it fits one of this line, that one is what it changes.  Returns what it was applied to. */
static const kli_point *search_apply(kl_search *s, kl_str *source, kli_point *elsewhere,
                                     const kli_outcome *o, const kli_point *base,
                                     kl_error *refused) {
    kl_err err = kl_proposal_apply(source, s->arena, base->kernel->source, &o->proposal, refused);
    for (int i = s->n_correct - 1; err && replays(s) && i >= -1; i--) {
        kl_kernel *k = i < 0 ? s->start.kernel : s->correct[i];
        if (kl_proposal_apply(source, s->arena, k->source, &o->proposal, kl_ignored())) continue;
        kl_track_log(
            s->track,
            "the recording went on from another kernel of this line, which was decided otherwise "
            "now: its edit is applied to that");
        *refused = (kl_error){0};
        *elsewhere = (kli_point){.kernel = k};
        return elsewhere;
    }
    return base;
}

/* Does the reply ask for a card, and propose nothing?  As often as there are cards, and no more. */
static bool asks_for_card(kl_search *s, kli_outcome *out, const kl_reply *reply) {
    kl_proposal *p = &out->proposal;
    if (reply->stop != KL_STOP_END || !s->may_fetch || s->fetches >= KLI_MAX_FETCHES ||
        kl_proposal_parse(p, s->arena, reply->text, s->o.start->surface, kl_ignored()) == KL_OK ||
        p->n_edits || !p->fetch.len)
        return false;
    s->fetches++;
    out->fetch = p->fetch;
    return true;
}

/* Why a reply is used in no part; KL_OK where its edits made `*source` out of `*base`. */
static kl_err read_reply(kl_search *s, kl_str *source, kli_outcome *out, const kl_reply *reply,
                         const kli_point **base, kli_point *elsewhere, kl_error *refused) {
    if (reply->stop == KL_STOP_TRUNCATED)
        return kl_fail(refused, KL_EPARSE, "reply",
                       "your reply was cut off at the token limit, so nothing of it was used; "
                       "answer with fewer, smaller edits");
    if (reply->stop == KL_STOP_REFUSED)
        return kl_fail(refused, KL_EPARSE, "reply", "the reply was refused by the provider");
    kl_err err =
        kl_proposal_parse(&out->proposal, s->arena, reply->text, s->o.start->surface, refused);
    if (err) return err;
    out->done = out->proposal.kind == KL_PROPOSAL_DONE;
    if (!out->done) *base = search_apply(s, source, elsewhere, out, *base, refused);
    if (!out->done) return refused->code;
    out->proposal.action = KL_S("done");
    return kl_fail(refused, KL_EPARSE, "reply", "the model says that there is nothing left to do");
}

/* A reply becomes a step: parse, apply, gate, write down. */
static kl_err search_take(kl_search *s, kli_outcome *out, const kl_reply *reply,
                          const kli_point *base, kl_error *e) {
    kl_error refused = {0};
    kl_str source = {0};
    kli_point elsewhere;
    *out = (kli_outcome){.reply = reply->text};
    if (asks_for_card(s, out, reply)) return KL_OK;
    s->out->proposals++;
    const bool unused = read_reply(s, &source, out, reply, &base, &elsewhere, &refused) != KL_OK;
    kl_str label = out->proposal.card.len ? out->proposal.card : out->proposal.action;
    kl_err err = unused
                     ? no_edit(s, out, base, &refused, e)
                     : kli_search_gate(s, out, source, base, label.len ? label : KL_S("edit"), e);
    if (!err) kli_rank_learn(s, out);
    if (!err && out->ended != KLI_BETTER && !out->done)
        s->since_best++; /* a card's patch costs nothing and is no proposal */
    return err;
}

kl_err kli_search_propose(kl_search *s, kli_outcome *out, const kli_search_dialog *talk,
                          const char *purpose, const kli_point *base, kl_error *e) {
    kl_reply reply;
    const kl_err err = kli_search_ask(s, &reply, talk, purpose, base->kernel, e);
    return err ? err : search_take(s, out, &reply, base, e);
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool stop(kl_search *s, const char *why) { return s->out->stopped = kl_str_of(why), true; }

/* By a time that settled alone. */
static bool fast_enough(kl_search *s) {
    const kl_search_opts *o = &s->o;
    const kl_verdict *v = &s->best.verdict;
    const double recovered = o->recover * s->out->target_ratio;
    if (v->outcome != KL_OUTCOME_PASS) return false;
    if (v->roofline_ns > 0 && v->median_ns > 0 &&
        (double)v->roofline_ns >= o->roof * (double)v->median_ns)
        return stop(s, "roof");
    if (o->goal > 0 && s->best.low >= o->goal) return stop(s, "goal");
    return recovered > 0 && s->best.low >= recovered && stop(s, "recovered");
}

bool kli_search_over(kl_search *s) {
    if (fast_enough(s)) return true;
    if (s->out->proposals >= s->o.max_steps) return stop(s, "steps");
    return s->since_best >= s->o.patience && stop(s, "patience");
}

/* What the two verdicts against the same baseline say: wider than a comparison, and there also
 * where that cannot be held. */
static void bound_gain(kl_search *s) {
    const kli_point *from = &s->start, *to = &s->best;
    s->out->call = by_ratios(to, from);
    if (!(from->low > 0) || !(to->low > 0)) return;
    s->out->gain = to->ratio / from->ratio;
    s->out->gain_low = to->low / from->high;
    s->out->gain_high = to->high / from->low;
}

static void take_gain(kl_search *s, kl_step *row, const kl_comparison *c) {
    row->verdict = last_key(s);
    s->out->gain = row->ratio = c->ratio;
    s->out->gain_low = row->low = c->low;
    s->out->gain_high = row->high = c->high;
    s->out->call = c->call;
    s->out->gain_timed = true;
}

/* The best and the start side by side; `row` gets what was measured, and stays without a ratio
 * where that could not be. */
static kl_err measure_gain(kl_search *s, kl_step *row, kl_error *e) {
    kl_verdict v;
    kl_error own = {0};
    kl_gate_opts o = search_options(s);
    if (s->best.kernel == s->start.kernel) return KL_OK;
    bound_gain(s);
    o.against = s->start.kernel;
    o.half_width = o.quick ? QUICK_END_HALF_WIDTH : END_HALF_WIDTH;
    kl_err err = kl_judge(&v, s->track, s->arena, s->o.task, s->best.kernel, &o, &own);
    if (err == KL_EBASELINE) {
        kl_track_log(s->track, "the best was not timed against the start: %s", own.message);
        return KL_OK;
    }
    if (err && e) *e = own;
    if (!err && compared(&v)) take_gain(s, row, compared(&v));
    return err;
}

/* What does not prove to be faster than the start in the end is none: comparison on a busy machine
 * add up their luck. */
static void settle_best(kl_search *s) {
    kl_search_result *out = s->out;
    if (s->best.kernel == s->start.kernel || out->call == KL_DECISION_FASTER ||
        out->call == KL_DECISION_UNDECIDED)
        return;
    kl_track_log(
        s->track,
        "the best is not measurably faster than the start: %.3gx [%.3g, %.3g]; keeping the start",
        out->gain, out->gain_low, out->gain_high);
    out->best = s->start.kernel;
    out->verdict = s->start.verdict;
    out->gain = out->gain_low = out->gain_high = 1;
    out->call = KL_DECISION_SAME;
    out->cards = KL_S("");
}

static kl_err journal_end(kl_search *s, kl_error *e) {
    kl_step row = {.phase = KL_S("end"),
                   .action = KL_S("end"),
                   .kernel = kl_str_of(s->best.kernel->hash),
                   .outcome = KL_S("pass"),
                   .median_ns = s->best.verdict.median_ns,
                   .why = s->out->stopped};
    kl_err err = measure_gain(s, &row, e);
    row.accepted = row.ratio > 0 && s->out->call == KL_DECISION_FASTER;
    if (!err) settle_best(s);
    return err ? err : kl_track_step(s->track, &row, KL_S(""), e);
}

/* A recording is over in order, also one that holds nothing for this line: whoever replays sees
 * what it holds. */
static bool search_recording_ended(kl_search *s, kl_err err, const kl_error *e) {
    if (err != KL_ENOENT || !kl_model_recording_ended(e)) return false;
    kl_track_log(s->track, "replay finished after %d proposals", s->out->proposals);
    return stop(s, "recording ended");
}

static kl_err search_end(kl_search *s, kl_err err, kl_error *e) {
    if (err == KL_EBUDGET) err = (stop(s, "budget"), KL_OK);
    if (search_recording_ended(s, err, e)) err = KL_OK;
    if (!err) kl_track_phase(s->track, "end");
    if (!err) err = journal_end(s, e);
    s->out->spent_microusd = kl_track_spent(s->track);
    if (err) return err;
    KL_ASSERT(s->out->stopped.len && s->out->passed <= s->out->gated);
    kl_track_log(s->track, "ended, %.*s: %.4gx after %d proposals", KL_STR_ARG(s->out->stopped),
                 s->best.ratio, s->out->proposals);
    *e = (kl_error){0};
    return KL_OK;
}

kl_err kl_policy_run(const kl_policy *p, kl_search_result *out, kl_track *t,
                     const kl_search_opts *o, kl_error *e) {
    kl_search s = {
        .o = options_for(p, o), .track = t, .arena = kl_track_arena(t), .out = out, .policy = p};
    *out = (kl_search_result){.gain = 1, .gain_low = 1, .gain_high = 1, .call = KL_DECISION_SAME};
    if (p->uses_library && !o->library)
        return kl_fail(e, KL_EINVAL, kl_arena_printf(s.arena, "policy %s", p->name).ptr,
                       "it needs a library of cards; --library DIR");
    kl_err err = kli_rank_open(&s, e);
    if (!err) err = search_begin(&s, e);
    return err ? err : search_end(&s, p->line(&s, e), e);
}
