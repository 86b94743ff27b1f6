/* cmd_retrieve.c - `klineage retrieve TASK KERNEL`: which cards fit a kernel, best expected gain
 * per dollar first.
 *
 * Costs nothing: the kernel is parsed, neither compiled nor run, so what only compiled code shows
 * stays unknown. SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "base/json.h"
#include "base/parts.h"
#include <klineage/skill.h>
#include <limits.h>
#include <math.h>

static const char *const fit_names[] = {"fits", "unknown", "violated"};

static json_t *match_json(const kl_match *m) {
    return json_pack("{so so ss sb so sf sf sf s[ffff]}", "card", kli_json_str(m->card->name),
                     "action", kli_json_str(m->card->action), "fit", fit_names[m->fit], "intent",
                     m->intent, "why", kli_json_str(m->why), "expected_gain",
                     exp(m->expected_log_gain), "cost_usd", m->cost_usd, "score", m->score,
                     "similarity", m->similarity[0], m->similarity[1], m->similarity[2],
                     m->similarity[3]);
}

/* n, below which nothing is said but the count. */
static kl_str prediction(kl_arena *a, const kl_match *m) {
    const kl_expectation *x = &m->expected;
    if (!m->predicted || m->fit == KL_FIT_VIOLATED) return KL_S("");
    if (x->n < KL_GAIN_LEAST) return kl_arena_printf(a, "; model: n = %d", x->n);
    const double spread = 1.2815515655446004 * x->deviation; /* 80 of 100 */
    return kl_arena_printf(a, "; model: p %.2f, %.2gx [%.2g, %.2g], n = %d", x->p, exp(x->log_gain),
                           exp(x->log_gain - spread), exp(x->log_gain + spread), x->n);
}

static void cmd_retrieve_show(kli_command_result *out, kl_arena *a, const kl_match *m, int n) {
    json_t *rows = json_array();
    for (int i = 0; i < n; i++) {
        kl_buf_printf(&out->text, "%-8s %-34.*s expected %.3gx, about $%.2f per try%.*s%s%.*s\n",
                      m[i].intent && m[i].fit != KL_FIT_VIOLATED ? "idea" : fit_names[m[i].fit],
                      KL_STR_ARG(m[i].card->name), exp(m[i].expected_log_gain), m[i].cost_usd,
                      KL_STR_ARG(prediction(a, &m[i])), m[i].why.len ? "; " : "",
                      KL_STR_ARG(m[i].why));
        json_array_append_new(rows, match_json(&m[i]));
    }
    if (!n)
        kl_buf_printf(
            &out->text,
            "no admitted card fits; --all also shows cards whose preconditions are not met\n");
    out->json =
        json_pack("{ss si so}", "schema", "klineage/matches", "version", 1, "matches", rows);
}

static void leave_out(kli_command_result *out, json_t *rows, kl_str card, kl_str why) {
    kl_buf_printf(&out->text, "skipped %.*s: %.*s\n", KL_STR_ARG(card), KL_STR_ARG(why));
    json_array_append_new(
        rows, json_pack("{so so}", "card", kli_json_str(card), "why", kli_json_str(why)));
}

/* What the library holds and retrieval passes over. */
static void show_left_out(kli_command_result *out, const kl_library *l) {
    json_t *rows = json_array();
    for (int i = 0; i < l->n_faults; i++) {
        kl_str faults = l->faults[i].why;
        for (kl_str line; kli_next_line(&line, &faults);)
            leave_out(out, rows, l->faults[i].folder, line);
    }
    for (int i = 0; i < l->edited.n; i++)
        leave_out(out, rows, l->edited.at[i],
                  KL_S("edited by hand after admission; klineage admit tests it again"));
    for (int i = 0; i < l->n_broken; i++)
        leave_out(out, rows, l->broken[i].folder, l->broken[i].why);
    json_object_set_new(out->json, "left_out", rows);
}

/* As told, else that of this machine where it runs such kernels; empty: nobody knows. */
static kl_str platform_for(kl_arena *a, const kl_kernel *k, const char *told) {
    kl_device device = {0};
    if (told) return kl_str_of(told);
    if (kl_device_of_surface(&device, a, k->surface, 0, kl_ignored())) return KL_S("");
    return kl_arena_copy(a, device.platform);
}

kl_err kli_cmd_retrieve(kli_context *c, const kli_args *args, kli_command_result *out,
                        kl_error *e) {
    kl_task *task;
    kl_kernel *kernel;
    kl_library *library;
    kl_traits traits;
    const kl_workload *w;
    kl_err err = kli_request_task(&task, c->arena, args->words[0], e);
    if (!err) err = kli_request_sound_kernel(&kernel, c->arena, args->words[1], NULL, e);
    if (!err)
        err = kli_request_workload(&w, c->arena, task, kernel->surface->on,
                                   args->values[KL_OPTION_WORKLOAD], e);
    kl_str dir;
    kl_gain_model *gain;
    if (!err) err = kl_library_find(&dir, c->arena, args->values[KL_OPTION_LIBRARY], e);
    if (!err) err = kl_library_open(&library, c->arena, dir.ptr, e);
    if (!err) err = kl_gain_load(&gain, c->arena, dir.ptr, e);
    if (err) return err;
    if (!w) w = kl_task_workload(task, KL_S(""), kernel->surface->on);
    kl_traits_of(&traits, c->arena, kernel, NULL);
    kl_target target = {.case_name = task->case_name,
                        .surface = kl_str_of(kernel->surface->name),
                        .platform =
                            platform_for(c->arena, kernel, args->values[KL_OPTION_PLATFORM]),
                        .dtype = w ? kl_str_of(kl_dtype_name(w->dtypes[0])) : KL_S(""),
                        .prior = kl_str_of(args->values[KL_OPTION_PRIOR]),
                        .traits = &traits,
                        .facts = kl_facts_of(c->arena, kernel, task, w, NULL)};
    kl_match *m;
    int n;
    uint64_t top = kli_args_number(args, KL_OPTION_TOP, 0);
    kl_retrieve_opts o = {.top = top < INT_MAX ? (int)top : INT_MAX,
                          .all = kli_args_has(args, KL_OPTION_ALL)};
    kl_library_retrieve(&m, &n, c->arena, library, &target, &o);
    if (gain) kl_gain_predict(m, n, gain, target.facts);
    cmd_retrieve_show(out, c->arena, m, n);
    show_left_out(out, library);
    out->exit_code = n ? 0 : 1;
    return KL_OK;
}
