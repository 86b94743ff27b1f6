/* searched.c - see searched.h.  SPDX-License-Identifier: Apache-2.0 */
#include "command/searched.h"
#include "base/json.h"
#include <string.h>

static double searched_ratio_of(const kl_verdict *v) {
    return v->n_comparisons ? v->comparisons[0].ratio : 0;
}
static kl_str searched_rival_of(const kl_verdict *v) {
    return v->n_comparisons ? v->comparisons[0].baseline : KL_S("");
}

/* "1.85x [1.8, 1.9]"; a kernel that did not prove to be faster is none. */
static kl_str searched_gain_of(kl_arena *a, const kl_search_result *r) {
    const char *far = r->gain_timed ? "" : " by ratios";
    if (r->call == KL_DECISION_FASTER)
        return kl_arena_printf(a, "%.3gx [%.3g, %.3g]%s", r->gain, r->gain_low, r->gain_high, far);
    if (r->call == KL_DECISION_UNDECIDED)
        return kl_arena_printf(a, "not measurable [%.3g, %.3g]", r->gain_low, r->gain_high);
    return KL_S("1x");
}

/* Ratio of what may be called the best. */
static double best_of(const kl_search_result *r) {
    return searched_ratio_of(r->call == KL_DECISION_FASTER ? &r->verdict : &r->start_verdict);
}

static json_t *ended_json(const kl_experiment_track *t) {
    const kl_search_result *r = &t->result;
    return json_pack(
        "{ss so ss si sf so sf sf s[ff] ss sb so si si si si sI so so}", "track", t->name, "task",
        kli_json_str(t->opts.task->name), "policy", t->policy->name.ptr, "trial", t->trial,
        "start_ratio", searched_ratio_of(&r->start_verdict), "baseline",
        kli_json_str(searched_rival_of(&r->verdict)), "ratio", searched_ratio_of(&r->verdict),
        "gain", r->gain, "gain_ci", r->gain_low, r->gain_high, "call", kl_decision_name(r->call),
        "gain_timed", r->gain_timed, "stopped", kli_json_str(r->stopped), "proposals", r->proposals,
        "gated", r->gated, "passed", r->passed, "improved", r->improved, "spent_microusd",
        (json_int_t)r->spent_microusd, "cards", kli_json_str(r->cards), "kernel",
        kli_json_str(kl_str_of(r->best ? r->best->hash : "")));
}

static json_t *failed_json(const kl_experiment_track *t, int64_t spent) {
    return json_pack("{ss so ss si s{ss so so so} sI}", "track", t->name, "task",
                     kli_json_str(t->opts.task->name), "policy", t->policy->name.ptr, "trial",
                     t->trial, "error", "error", kl_err_name(t->error.code), "where",
                     kli_json_str(kl_str_of(t->error.where)), "message",
                     kli_json_str(kl_str_of(t->error.message)), "hint",
                     kli_json_str(kl_str_of(t->error.hint)), "spent_microusd", (json_int_t)spent);
}

static void ended_line(kl_buf *text, kl_arena *a, const kl_experiment_track *t) {
    const kl_search_result *r = &t->result;
    kl_buf_printf(text, "%-30s %8.4gx %8.4gx %26s %9d %9.4f  %.*s\n", t->name,
                  searched_ratio_of(&r->start_verdict), best_of(r), searched_gain_of(a, r).ptr,
                  r->proposals, (double)r->spent_microusd / 1e6, KL_STR_ARG(r->stopped));
    if (r->start_verdict.outcome == KL_OUTCOME_UNSTABLE)
        kl_buf_printf(text, "    the start is correct; its time against the baseline did not "
                            "converge on this machine\n");
    if (r->call == KL_DECISION_UNDECIDED)
        kl_buf_printf(text, "    the best candidate is correct, but not measurably different "
                            "from the start; repeat on a quiet machine with another --trial\n");
    if (r->cards.len) kl_buf_printf(text, "    cards: %.*s\n", KL_STR_ARG(r->cards));
}

static void failed_line(kl_buf *text, const kl_experiment_track *t) {
    kl_buf_printf(text, "%-30s %s: %s%s%s\n", t->name,
                  t->error.code == KL_PENDING ? "waits" : "failed", t->error.where,
                  t->error.where[0] ? ": " : "",
                  t->error.message[0] ? t->error.message : kl_err_name(t->error.code));
    if (t->error.hint[0] && t->error.code != KL_PENDING)
        kl_buf_printf(text, "    %s\n", t->error.hint);
}

/* A line that ended in an error leaves no result behind, but the ledger knows. */
static int64_t committed_by(const kl_store_charge *charges, size_t n, const char *track) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!kl_str_eq(charges[i].track, kl_str_of(track)) ||
            kl_str_eq(charges[i].state, KL_S("released")))
            continue;
        sum += kl_str_eq(charges[i].state, KL_S("settled")) ? charges[i].settled_microusd
                                                            : charges[i].reserved_microusd;
    }
    return sum;
}

static void show_one(kli_searched *out, kl_buf *text, kl_arena *a, const kl_experiment_track *t,
                     const kl_store_charge *charges, size_t n) {
    bool ended = t->error.code == KL_OK;
    int64_t spent = ended ? t->result.spent_microusd : committed_by(charges, n, t->name);
    ended ? ended_line(text, a, t) : failed_line(text, t);
    json_array_append_new(out->rows, ended ? ended_json(t) : failed_json(t, spent));
    out->spent_microusd += spent;
    out->improved |= ended && t->result.call == KL_DECISION_FASTER;
    out->ended += ended;
    out->waiting += t->error.code == KL_PENDING;
    out->failed += !ended && t->error.code != KL_PENDING;
}

kl_err kli_searched_show(kli_searched *out, kl_buf *text, kl_arena *a, kl_run *run,
                         const kl_experiment_track *tracks, int n, kl_error *e) {
    kl_store_charge *charges;
    size_t n_charges;
    kl_err err =
        kl_store_charge_list(&charges, &n_charges, kl_run_store(run), a, kl_run_id(run), e);
    if (err) return err;
    *out = (kli_searched){.rows = json_array()};
    for (size_t i = 0; i < n_charges; i++) out->estimated |= charges[i].estimated;
    kl_buf_printf(text, "%-30s %9s %9s %26s %9s %9s  %s\n", "track", "start", "best",
                  "over the start", "proposals", "spent", "stopped");
    for (int i = 0; i < n; i++) show_one(out, text, a, &tracks[i], charges, n_charges);
    KL_ASSERT(out->ended + out->failed + out->waiting == n);
    return KL_OK;
}

kl_str kli_searched_file(kl_arena *a, const kl_experiment_track *t) {
    kl_str name = kl_arena_printf(a, "%s%s", t->name, t->opts.start->surface->suffix);
    char *bytes = kl_arena_alloc(a, name.len + 1, 1);
    for (size_t i = 0; i < name.len; i++) bytes[i] = name.ptr[i];
    for (size_t i = 0; i < name.len; i++)
        if (bytes[i] == '/') bytes[i] = '-';
    return (kl_str){bytes, name.len};
}
