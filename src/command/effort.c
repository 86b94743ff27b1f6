/* effort.c - see effort.h.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "base/fs.h"
#include "base/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_BUDGET INT64_C(10000000) /* ten dollars a track, as in the paper's experiments */
#define EFFORT_MAX_DOLLARS 1e6
#define MAX_JOBS 256

kl_err kli_effort_real(double *out, const kli_args *args, kli_option_id id, double otherwise,
                       kl_error *e) {
    const char *text = args->values[id];
    char *end = NULL;
    *out = text ? strtod(text, &end) : otherwise;
    if (text && (end == text || *end || !isfinite(*out) || *out < 0))
        return kl_fail(e, KL_EINVAL, NULL, "--%s takes a number of 0 or more, not %s",
                       kli_options[id].name, text);
    return KL_OK;
}

kl_err kli_effort_dollars(int64_t *microusd, const kli_args *args, kli_option_id id,
                          int64_t otherwise, kl_error *e) {
    const char *text = args->values[id];
    char *end = NULL;
    const double dollars = text ? strtod(text, &end) : (double)otherwise / 1e6;
    *microusd = 0;
    if (text &&
        (end == text || *end || isnan(dollars) || dollars < 0 || dollars > EFFORT_MAX_DOLLARS)) {
        kl_fail(e, KL_EINVAL, NULL, "--%s %s is not an amount between 0 and 1000000 dollars",
                kli_options[id].name, text);
        return kl_hint(e, "a number without a sign or a unit: --%s 5 or --%s 0.25",
                       kli_options[id].name, kli_options[id].name);
    }
    *microusd = (int64_t)llround(dollars * 1e6);
    KL_ASSERT(*microusd >= 0); /* law 6: no cap is below nothing */
    return KL_OK;
}

kl_err kli_effort_one_executor(const kli_args *args, kl_error *e) {
    if (!args->values[KL_OPTION_SPOOL] || !args->values[KL_OPTION_EXECUTOR]) return KL_OK;
    return kl_fail(e, KL_EINVAL, NULL, "use either --spool or --executor");
}

kl_err kli_effort_jobs(const kli_args *args, kl_error *e) {
    if (!kli_args_has(args, KL_OPTION_JOBS) || kli_args_number(args, KL_OPTION_JOBS, 1) > 0)
        return KL_OK;
    return kl_fail(e, KL_EINVAL, NULL, "--%s is at least 1", kli_options[KL_OPTION_JOBS].name);
}

const char *kli_effort_executor(kl_arena *a, const kli_args *args) {
    const char *spool = args->values[KL_OPTION_SPOOL], *spec = args->values[KL_OPTION_EXECUTOR];
    return spec ? spec : spool ? kl_arena_printf(a, "spool:%s", spool).ptr : "local";
}

bool kli_effort_elsewhere(const kli_args *args) {
    const char *spec = args->values[KL_OPTION_EXECUTOR];
    return args->values[KL_OPTION_SPOOL] || (spec && strcmp(spec, "local") != 0);
}

kl_err kli_effort_gates(kl_run_opts *out, kl_arena *a, const kli_args *args, const char *command,
                        kl_error *e) {
    *out = (kl_run_opts){.command = command,
                         .store = args->values[KL_OPTION_STORE],
                         .trial = kli_args_number(args, KL_OPTION_TRIAL, 1),
                         .executor = kli_effort_executor(a, args),
                         .gate = {.quick = kli_args_has(args, KL_OPTION_QUICK),
                                  .arch = args->values[KL_OPTION_ARCH]}};
    const kl_err err = kli_effort_one_executor(args, e);
    return err ? err : kli_effort_jobs(args, e);
}

kl_err kli_effort_run(kl_run_opts *out, kl_arena *a, const kli_args *args, const char *command,
                      kl_error *e) {
    kl_err err = kli_effort_gates(out, a, args, command, e);
    out->model = args->values[KL_OPTION_MODEL];
    out->priced_as = args->values[KL_OPTION_PRICED_AS];
    if (!err)
        err = kli_effort_dollars(&out->budget_microusd, args, KL_OPTION_BUDGET, DEFAULT_BUDGET, e);
    if (!err) err = kli_effort_dollars(&out->total_microusd, args, KL_OPTION_BUDGET_TOTAL, 0, e);
    if (!err && kli_args_has(args, KL_OPTION_BUDGET_TOTAL) &&
        out->total_microusd <= 0) /* 0 would be no cap at all */
        err = kl_fail(e, KL_EINVAL, NULL,
                      "--budget-total must be above 0; without it each track has its own --budget");
    if (!err && !out->model) {
        kl_fail(e, KL_EINVAL, NULL, "no model given");
        kl_hint(e, "--model anthropic:MODEL, openai:MODEL, gemini:MODEL, openrouter:VENDOR/MODEL, "
                   "vertex:REGION/MODEL, bedrock:REGION/MODEL, local:MODEL, command:PROGRAM, "
                   "mailbox:DIR, replay:FILE, builtin or mutate:SEED; klineage help models");
        err = KL_EINVAL;
    }
    return err;
}

/* ---- a quiet machine --------------------------------------------------------------------- */

#define WAIT_SECONDS 3600
#define BETWEEN_NS INT64_C(5000000000) /* of two looks: a look is a load of its own */
#define NAP_NS INT64_C(100000000)

/* What cannot be measured here (no compiler, say) is said by the command itself, with more to go
 * on. */
static kl_err look(kl_noise *out, kl_arena *a, kl_error *e) {
    kl_error own = {0};
    const kl_err err = kl_gate_noise(out, a, &own);
    if (err == KL_EINTR) return *e = own, err;
    if (err) kli_debug("the noise of this machine was not measured: %s", own.message);
    return KL_OK;
}

static kl_err pause_between(kl_error *e) {
    const int64_t end = kli_now_ns() + BETWEEN_NS;
    while (kli_now_ns() < end && !kli_interrupted())
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    if (!kli_interrupted()) return KL_OK;
    kl_fail(e, KL_EINTR, NULL, "interrupted while waiting for a quiet machine");
    return kl_hint(e, "nothing was spent; without --wait-quiet the command starts at once");
}

static kl_err wait_quiet(kl_noise *n, kl_arena *a, int64_t seconds, kl_error *e) {
    const int64_t begin = kli_now_ns();
    char text[160];
    kl_err err = KL_OK;
    for (bool said = false;
         !err && n->noisy && kli_now_ns() - begin < seconds * INT64_C(1000000000); said = true) {
        kl_noise_text(n, text, sizeof text);
        if (!said && !isatty(STDERR_FILENO))
            kli_say("klineage: waiting for a quiet machine: %s", text);
        kli_base_progress("waiting for a quiet machine, %lld s: %s",
                          (long long)((kli_now_ns() - begin) / 1000000000), text);
        err = pause_between(e);
        if (!err) err = look(n, a, e);
    }
    kli_base_progress("%s", "");
    return err;
}

/* A look; with --wait-quiet more of them, until it is quiet. */
static kl_err look_until_quiet(kl_noise *n, kl_arena *a, const kli_args *args, kl_error *e) {
    const char *seconds = args->values[KL_OPTION_WAIT_QUIET];
    char text[160];
    kl_err err = look(n, a, e);
    if (!err && seconds)
        err = wait_quiet(
            n, a, *seconds ? (int64_t)kli_args_number(args, KL_OPTION_WAIT_QUIET, 0) : WAIT_SECONDS,
            e);
    if (!err && n->noisy)
        kli_warn("this machine is noisy: %s; many comparisons will be undecided%s",
                 kl_noise_text(n, text, sizeof text), seconds ? "" : "; --wait-quiet waits");
    return err;
}

/* Before the first pair. */
static void warn_of_record(const kl_noise_record *r) {
    if (r->fresh && r->noise > KL_NOISY)
        kli_warn(
            "the A/A noise of this host is %.2g %% today (%d measurement%s): differences below "
            "%.2g %% may stay undecided",
            100 * r->noise, r->fresh, r->fresh == 1 ? "" : "s", 100 * kl_decide_margin(r->noise));
}

kl_err kli_effort_host(kl_noise_record *out, kl_arena *a, const kli_args *args, kl_store *journal,
                       kl_error *e) {
    kl_noise n = {0};
    *out = (kl_noise_record){0};
    if (kli_effort_elsewhere(args)) return KL_OK;
    const kl_err err =
        kli_args_has(args, KL_OPTION_WAIT_QUIET) ? look_until_quiet(&n, a, args, e) : KL_OK;
    if (err || !journal) return err;
    /* What a journal cannot keep or tell now is missed by nobody; a verdict says so of itself. */
    (void)!kl_noise_keep(journal, a, &n, kl_ignored());
    (void)!kl_noise_recall(out, journal, a, kl_ignored());
    if (!n.noisy) warn_of_record(out);
    return KL_OK;
}

kl_err kli_effort_quiet(const kli_args *args, kl_run *run, kl_error *e) {
    const bool waits = args->values[KL_OPTION_WAIT_QUIET] != NULL;
    kl_noise n = {0};
    if (kli_effort_elsewhere(args) || (!waits && kl_run_resumed(run))) return KL_OK;
    kl_arena *a = kl_arena_new();
    kl_err err = look_until_quiet(&n, a, args, e);
    if (!err) err = kl_run_keep_noise(run, &n, e);
    if (!err && !n.noisy) warn_of_record(kl_run_noise(run));
    kl_arena_free(a);
    return err;
}

kl_err kli_effort_count(int *out, const kli_args *args, kli_option_id id, int otherwise, int most,
                        kl_error *e) {
    KL_ASSERT(otherwise >= 0 && otherwise <= most);
    uint64_t n = kli_args_number(args, id, (uint64_t)otherwise);
    *out = (int)n;
    if (kli_args_has(args, id) && (n < 1 || n > (uint64_t)most))
        return kl_fail(e, KL_EINVAL, NULL, "--%s must be from 1 to %d", kli_options[id].name, most);
    return KL_OK;
}

bool kli_effort_replays(const char *model) { return model && strncmp(model, "replay:", 7) == 0; }

kl_track_opts kli_effort_tracks(const kli_args *args) {
    uint64_t jobs = kli_args_number(args, KL_OPTION_JOBS, 1);
    return (kl_track_opts){.jobs = jobs < MAX_JOBS ? (int)jobs : MAX_JOBS,
                           .once = kli_args_has(args, KL_OPTION_ONCE)};
}

kl_err kli_effort_estimated(bool *out, kl_run *r, kl_arena *a, kl_error *e) {
    kl_store_charge *rows;
    size_t n;
    kl_err err = kl_store_charge_list(&rows, &n, kl_run_store(r), a, kl_run_id(r), e);
    *out = false;
    for (size_t i = 0; !err && i < n; i++) *out |= rows[i].estimated;
    return err;
}

void kli_effort_spent(kl_buf *out, const kl_run *r, int64_t microusd, bool estimated) {
    kl_buf_printf(out, "spent $%.4f%s; klineage cost %.12s\n", (double)microusd / 1e6,
                  estimated ? " (estimated)" : "", kl_run_id(r));
}
