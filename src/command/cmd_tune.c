/* cmd_tune.c - `klineage tune`: which values of its params make a kernel fastest?
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/journal.h"
#include "command/request.h"
#include "base/json.h"
#include "base/log.h"
#include <string.h>

static void cmd_tune_row(kl_buf *out, const kl_variant *t, bool best) {
    kl_buf_printf(out, "%s %-40.*s %-10s ", best ? "*" : " ", KL_STR_ARG(t->params),
                  kl_outcome_name(t->outcome));
    if (t->ratio > 0)
        kl_buf_printf(out, "%7.3fx", t->ratio);
    else
        kl_buf_printf(out, "%8s", "-");
    kl_buf_printf(out, " %6.1f s  %s%.*s\n", t->seconds,
                  t->abandoned ? "abandoned: slower than the best so far" : "", KL_STR_ARG(t->why));
}

static json_t *trial_json(const kl_variant *t) {
    return json_pack("{so ss so sb so so}", "params", kli_json_str(t->params), "outcome",
                     kl_outcome_name(t->outcome), "ratio", kli_json_real(t->ratio), "abandoned",
                     t->abandoned, "seconds", kli_json_real(t->seconds), "why",
                     kli_json_str(t->why));
}

/* "BM=64 BN=8" as words; NULL at the end. */
static const char *const *cmd_tune_words_of(kl_arena *a, kl_str params) {
    const char **words = KL_ARRAY(a, const char *, KL_MAX_PARAMS + 1);
    size_t n = 0, at = 0;
    while (at < params.len && n < KL_MAX_PARAMS) {
        const char *gap = memchr(params.ptr + at, ' ', params.len - at);
        size_t len = gap ? (size_t)(gap - params.ptr) - at : params.len - at;
        words[n++] = kl_arena_copy(a, (kl_str){params.ptr + at, len}).ptr;
        at += len + 1;
    }
    KL_ASSERT(n <= KL_MAX_PARAMS);
    return words;
}

/* What to type to have the winner. */
static void show_winner(kli_command_result *out, const kl_tuning *t, const kli_args *args,
                        kl_arena *a) {
    kl_buf_printf(&out->text, "\nbest: %.*s", KL_STR_ARG(t->best));
    if (t->over_default > 0)
        kl_buf_printf(&out->text, ", %.3gx the values in the file", t->over_default);
    kl_buf_printf(&out->text, "\n  klineage gate %s %s", args->words[0], args->words[1]);
    for (const char *const *w = cmd_tune_words_of(a, t->best); *w; w++)
        kl_buf_printf(&out->text, " -p %s", *w);
    kl_buf_printf(&out->text, "\n");
}

static void cmd_tune_show(kli_command_result *out, const kl_tuning *t, const kli_args *args,
                          const kli_context *c) {
    kl_buf_printf(
        &out->text,
        "%d of %lld variants tried in %.1f s; speed over the primary baseline, * is the best\n",
        t->n_trials, (long long)t->grid, t->seconds);
    json_t *trials = json_array();
    for (int i = 0; i < t->n_trials; i++) {
        cmd_tune_row(&out->text, &t->trials[i], kl_str_eq(t->trials[i].params, t->best));
        json_array_append_new(trials, trial_json(&t->trials[i]));
    }
    show_winner(out, t, args, c->arena);
    kli_request_show(out, &t->verdict, c->colour);
    json_t *o = json_pack("{ss si so so so so so so}", "schema", "klineage/tuning", "version", 1,
                          "best", kli_json_str(t->best), "over_default",
                          kli_json_real(t->over_default), "grid", json_integer(t->grid), "seconds",
                          kli_json_real(t->seconds), "trials", trials, "verdict", out->json);
    out->json = o;
}

/* The winner's verdict is one like any other: `klineage gate` with the same values answers from the
 * journal. */
static kl_err cmd_tune_keep(const kli_context *c, const kli_args *args, kl_gate *gate,
                            const kl_task *t, const kl_gate_opts *opts, const kl_tuning *tuning,
                            kl_error *e) {
    kl_store *journal = NULL;
    kl_kernel *winner;
    char key[65];
    const kl_kernel_opts with = {.params = cmd_tune_words_of(c->arena, tuning->best)};
    kl_err err = kl_kernel_load(&winner, c->arena, args->words[1], &with, e);
    if (!err) err = kl_gate_key(key, gate, c->arena, t, winner, opts, e);
    if (!err) err = kli_journal_open(&journal, c->arena, args, e);
    if (!err) err = kli_verdicts_keep(key, journal, c->arena, &tuning->verdict, e);
    kl_store_close(journal);
    if (err) kl_hint(e, "the verdict above could not be stored; use another --store PATH");
    return err;
}

/* A line for each trial as it ends, on stderr, so that results can go elsewhere. */
static void say_trial(void *ctx, const kl_variant *t, int n, int most) {
    (void)ctx;
    char ratio[24] = "";
    if (t->ratio > 0) (void)snprintf(ratio, sizeof ratio, " %.3fx", t->ratio);
    kli_say("variant %d of at most %d: %.*s %s%s%s, %.1f s", n, most, KL_STR_ARG(t->params),
            kl_outcome_name(t->outcome), ratio, t->abandoned ? " (abandoned)" : "", t->seconds);
}

static kl_err tune(kli_context *c, const kli_args *args, const kl_task *t, const kl_gate_opts *opts,
                   kli_command_result *out, kl_error *e) {
    kl_gate *gate = NULL;
    kl_err err = kl_gate_open(&gate, e);
    if (err) return err;
    kl_tuning tuning = {0};
    uint64_t trials = kli_args_number(args, KL_OPTION_MAX_TRIALS, 0);
    err = kl_gate_tune(&tuning, gate, c->arena, t, args->words[1], args->params, opts,
                       trials > 100000 ? 100000 : (int)trials, e);
    if (!err) (void)cmd_tune_keep(c, args, gate, t, opts, &tuning, &out->trouble);
    if (!err) cmd_tune_show(out, &tuning, args, c);
    kl_gate_close(gate);
    return err;
}

/* A journal that cannot be opened is said where the verdict is kept. */
static kl_err host_of(kl_noise_record *out, kl_arena *a, const kli_args *args, kl_error *e) {
    kl_store *journal = NULL;
    (void)!kli_journal_open(&journal, a, args, kl_ignored());
    const kl_err err = kli_effort_host(out, a, args, journal, e);
    kl_store_close(journal);
    return err;
}

kl_err kli_cmd_tune(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_task *task;
    kl_kernel *kernel;
    kl_gate_opts opts;
    kl_noise_record noise;
    kl_err err = kli_request_task(&task, c->arena, args->words[0], e);
    if (!err) err = kli_request_sound_kernel(&kernel, c->arena, args->words[1], args->params, e);
    if (err) return err;
    if (kernel->n_params == 0) {
        kl_fail(e, KL_EINVAL, args->words[1],
                "the kernel has no param directive, so there is nothing to tune");
        return kl_hint(
            e, "add a line such as `%s param BM = 64 {32, 64, 128}` and use KL_BM in the source",
            kernel->surface->comment);
    }
    err = kli_request_options(&opts, c->arena, args, task, kernel->surface->on, e);
    opts.tried = say_trial;
    opts.noise = &noise;
    if (!err) err = host_of(&noise, c->arena, args, e);
    return err ? err : tune(c, args, task, &opts, out, e);
}
