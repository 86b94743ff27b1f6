/* cmd_kernel.c - `klineage kernel show|facts|source|diff`: what a kernel file says, without
 * running it. SPDX-License-Identifier: Apache-2.0 */
#include "command/plan.h"
#include "command/request.h"
#include "base/json.h"
#include <klineage/rewrite.h>
#include <string.h>

static void cmd_kernel_put(json_t *o, const char *key, json_t *value) {
    json_object_set_new(o, key, value);
}

/* ---- directives -------------------------------------------------------------------------- */

static json_t *params_json(kl_buf *text, const kl_kernel *k) {
    json_t *list = json_array();
    for (int i = 0; i < k->n_params; i++) {
        const kl_param *p = &k->params[i];
        json_t *values = json_array();
        kl_buf_printf(text, "  param     %.*s = %lld of", KL_STR_ARG(p->name), (long long)p->value);
        for (int j = 0; j < p->n_values; j++) {
            kl_buf_printf(text, " %lld", (long long)p->values[j]);
            json_array_append_new(values, json_integer(p->values[j]));
        }
        kl_buf_printf(text, "\n");
        json_array_append_new(list, json_pack("{so so so}", "name", kli_json_str(p->name), "value",
                                              json_integer(p->value), "values", values));
    }
    return list;
}

static void lets_text(kl_buf *text, const kl_kernel *k) {
    for (int i = 0; i < k->n_lets; i++)
        kl_buf_printf(text, "  let       %.*s%s%s = %.*s\n", KL_STR_ARG(k->lets[i].name),
                      k->lets[i].real ? ": " : "",
                      k->lets[i].real ? kl_dtype_name(k->lets[i].type) : "",
                      KL_STR_ARG(k->lets[i].expr.text));
    for (int i = 0; i < k->n_required; i++)
        kl_buf_printf(text, "  require   %.*s\n", KL_STR_ARG(k->required[i].text));
    for (int i = 0; i < k->n_buffers; i++)
        kl_buf_printf(text, "  buffer    %.*s: %s%s\n", KL_STR_ARG(k->buffers[i].name),
                      kl_dtype_name(k->buffers[i].dtype),
                      k->buffers[i].zero ? ", cleared before every run" : "");
    for (int i = 0; i < k->n_tensormaps; i++)
        kl_buf_printf(text, "  tensormap %.*s of %.*s\n", KL_STR_ARG(k->tensormaps[i].name),
                      KL_STR_ARG(k->tensormaps[i].tensor));
    for (int i = 0; i < k->n_launches; i++)
        kl_buf_printf(text, "  launch    %.*s, %d arguments\n", KL_STR_ARG(k->launches[i].entry),
                      k->launches[i].n_args);
    if (k->nondeterministic) kl_buf_printf(text, "  nondeterministic\n");
}

static json_t *flags_json(kl_buf *text, const kl_kernel *k) {
    json_t *list = json_array();
    if (k->n_flags) kl_buf_printf(text, "  flags    ");
    for (int i = 0; i < k->n_flags; i++) {
        kl_buf_printf(text, " %.*s", KL_STR_ARG(k->flags[i]));
        json_array_append_new(list, kli_json_str(k->flags[i]));
    }
    if (k->n_flags) kl_buf_printf(text, "\n");
    return list;
}

static json_t *directives_json(kl_buf *text, const kl_kernel *k) {
    json_t *o = json_object(), *launches = json_array();
    cmd_kernel_put(o, "schema", json_string("klineage/kernel"));
    cmd_kernel_put(o, "version", json_integer(1));
    cmd_kernel_put(o, "path", kli_json_str(k->path));
    cmd_kernel_put(o, "surface", json_string(k->surface->name));
    cmd_kernel_put(o, "hash", json_string(k->hash));
    cmd_kernel_put(o, "best_assurance", json_stringn(&k->surface->assurance, 1));
    cmd_kernel_put(o, "source_bytes", json_integer((json_int_t)k->source.len));
    kl_buf_printf(text, "%.*s\n  surface   %s, assurance %c at best\n  identity  %.16s\n",
                  KL_STR_ARG(k->path), k->surface->name, k->surface->assurance, k->hash);
    cmd_kernel_put(o, "params", params_json(text, k));
    cmd_kernel_put(o, "flags", flags_json(text, k));
    lets_text(text, k);
    for (int i = 0; i < k->n_launches; i++)
        json_array_append_new(launches, kli_json_str(k->launches[i].entry));
    cmd_kernel_put(o, "launches", launches);
    return o;
}

/* ---- plan -------------------------------------------------------------------------------- */

static json_t *defines_json(kl_buf *text, const char **defines) {
    json_t *list = json_array();
    kl_buf_printf(text, "macros for the compiler\n ");
    for (; *defines; defines++) {
        kl_buf_printf(text, " %s", *defines);
        json_array_append_new(list, json_string(*defines));
    }
    kl_buf_printf(text, "\n");
    return list;
}

/* The limits of the device that is here; none when there is none, so that a plan can be read
 * anywhere. */
static kl_device_limits limits_here(kl_arena *a, const kl_kernel *k) {
    kl_device device = {0};
    if (kl_device_of_surface(&device, a, k->surface, 0, kl_ignored())) return (kl_device_limits){0};
    return device.limits;
}

static kl_err add_plan(kli_context *c, const kli_args *args, const kl_kernel *k,
                       kli_command_result *out, kl_error *e) {
    kl_task *t;
    const kl_workload *w;
    kl_err err = kli_request_task(&t, c->arena, args->values[KL_OPTION_TASK], e);
    if (!err)
        err = kli_request_workload(&w, c->arena, t, k->surface->on,
                                   args->values[KL_OPTION_WORKLOAD], e);
    if (err) return err;
    kl_device_limits limits = limits_here(c->arena, k);
    kl_plan *plan = KL_NEW(c->arena, kl_plan);
    err = kli_kernel_plan(plan, k, t, w, &limits, e);
    if (err) return err;
    cmd_kernel_put(out->json, "plan",
                   kli_plan_json(&out->text, plan, w->label.len ? w->label : w->uuid));
    cmd_kernel_put(out->json, "defines",
                   defines_json(&out->text, kli_kernel_defines(c->arena, k, t, w)));
    return KL_OK;
}

/* ---- commands ---------------------------------------------------------------------------- */

kl_err kli_cmd_kernel_show(kli_context *c, const kli_args *args, kli_command_result *out,
                           kl_error *e) {
    kl_kernel *k;
    if (kli_args_has(args, KL_OPTION_WORKLOAD) && !kli_args_has(args, KL_OPTION_TASK))
        return kl_fail(e, KL_EINVAL, NULL, "--workload needs --task TASK");
    kl_err err = kli_request_sound_kernel(&k, c->arena, args->words[0], args->params, e);
    if (err) return err;
    out->json = directives_json(&out->text, k);
    return kli_args_has(args, KL_OPTION_TASK) ? add_plan(c, args, k, out, e) : KL_OK;
}

/* ---- facts ------------------------------------------------------------------------------- */

static void fact_text(kl_buf *text, const kl_fact_row *row, const kl_fact *f) {
    if (row->kind == KL_FACT_TEXT)
        kl_buf_printf(text, "%.*s", KL_STR_ARG(f->text));
    else if (row->kind == KL_FACT_TRUTH)
        kl_buf_printf(text, "%s", f->number ? "true" : "false");
    else
        kl_buf_printf(text, "%.6g", f->number);
}

/* One line for each fact that is known, with what it was read from. */
static void state_text(kl_buf *text, const kl_facts *f) {
    for (int i = 0; kl_fact_each(KL_FACT_OF_STATE, i); i++) {
        const kl_fact_row *row = kl_fact_each(KL_FACT_OF_STATE, i);
        const kl_fact *fact = &f->at[i];
        if (!fact->known) continue;
        kl_buf_printf(text, "  %-18s ", row->name);
        fact_text(text, row, fact);
        if (fact->line) kl_buf_printf(text, "; line %d", fact->line);
        if (fact->from.len) kl_buf_printf(text, "; %.*s", KL_STR_ARG(fact->from));
        kl_buf_printf(text, "\n");
    }
}

/* One line for each loop or memory: what is neither unknown, nor false, nor zero. */
static void part_text(kl_buf *text, kl_fact_scope scope, const kl_fact *at) {
    kl_buf_printf(text, "  line %d:", at[0].line);
    for (int i = 1; kl_fact_each(scope, i); i++) {
        const kl_fact_row *row = kl_fact_each(scope, i);
        if (!at[i].known || (row->kind != KL_FACT_TEXT && !at[i].number)) continue;
        kl_buf_printf(text, " %s", row->name);
        if (row->kind == KL_FACT_TRUTH) continue;
        kl_buf_printf(text, "=");
        fact_text(text, row, &at[i]);
    }
    kl_buf_printf(text, "\n");
}

/* What does not follow its format has the facts that its words give. */
static kl_err kernel_of_words(kl_kernel **out, kl_arena *a, const char *file, kl_error *e) {
    kl_str text, path = kl_arena_copy(a, kl_str_of(file));
    kl_err err = kl_kernel_read(&text, &path, a, e);
    if (err) return err;
    const kl_surface *s = kl_surface_of_path(path, 0);
    if (!s) return kl_fail(e, KL_EINVAL, file, "no surface has files that end like this");
    *out = KL_NEW(a, kl_kernel);
    **out = (kl_kernel){.surface = s, .path = path, .source = text};
    return KL_OK;
}

static void show_facts(kl_buf *out, const kl_facts *f) {
    state_text(out, f);
    if (!f->nests) kl_buf_printf(out, "  loops and memories are not known: the text shows none\n");
    if (f->n_loops) kl_buf_printf(out, "loops\n");
    for (int i = 0; i < f->n_loops; i++) part_text(out, KL_FACT_OF_LOOP, f->loops[i].at);
    if (f->n_buffers) kl_buf_printf(out, "memories\n");
    for (int i = 0; i < f->n_buffers; i++) part_text(out, KL_FACT_OF_BUFFER, f->buffers[i].at);
}

/* What stops it is said in one line: facts of the text do not need a compiler. */
static kl_str compiled_facts(kl_arena *a, const kl_kernel *k, const kl_task *t,
                             const kl_workload *w) {
    kl_device device;
    kl_compiled made;
    kl_error e = {0};
    kl_err err = kl_device_of_surface(&device, a, k->surface, 0, &e);
    if (err && (k->surface->families & KL_FAMILY_NVIDIA))
        err = kl_device_target(&device, a, KL_BACKEND_CUDA, NULL, &e);
    if (!err) err = kl_compiled_of(&made, a, &device, k, t, w, NULL, &e);
    if (err) return kl_arena_printf(a, "not known: %s\n", e.message);
    const kl_str bounds = kl_prompt_limits(a, &device, t, w, &(kl_verdict){0});
    return kl_arena_printf(a, "for %.*s\n%.*s%.*s", KL_STR_ARG(device.platform), KL_STR_ARG(bounds),
                           KL_STR_ARG(kl_prompt_compiled(a, &made, k, t, w)));
}

kl_err kli_cmd_kernel_facts(kli_context *c, const kli_args *args, kli_command_result *out,
                            kl_error *e) {
    kl_kernel *k;
    kl_task *t;
    const kl_workload *w = NULL;
    kl_error refusal = {0};
    kl_err err = kli_request_kernel(&k, &refusal, c->arena, args->words[0], args->params, e);
    if (!err && !k) err = kernel_of_words(&k, c->arena, args->words[0], e);
    if (!err) err = kli_request_task(&t, c->arena, args->values[KL_OPTION_TASK], e);
    if (!err)
        err = kli_request_workload(&w, c->arena, t, k->surface->on,
                                   args->values[KL_OPTION_WORKLOAD], e);
    if (err) return err;
    if (!w) w = kl_task_workload(t, KL_S(""), k->surface->on);
    const kl_facts *f = kl_facts_of(c->arena, k, t, w, NULL);
    if (refusal.code)
        kl_buf_printf(&out->text, "%.*s does not parse: %s; what its words give:\n",
                      KL_STR_ARG(k->path), refusal.message);
    show_facts(&out->text, f);
    out->json = kl_facts_json(f);
    cmd_kernel_put(out->json, "refusal",
                   refusal.code ? kli_json_str(kl_str_of(refusal.message)) : json_null());
    if (refusal.code) return KL_OK;
    const kl_str compiled = compiled_facts(c->arena, k, t, w);
    kl_buf_printf(&out->text, "compiled\n%.*s", KL_STR_ARG(compiled));
    cmd_kernel_put(out->json, "compiled", kli_json_str(compiled));
    return KL_OK;
}

/* ---- text -------------------------------------------------------------------------------- */

kl_err kli_cmd_kernel_source(kli_context *c, const kli_args *args, kli_command_result *out,
                             kl_error *e) {
    kl_kernel *k;
    kl_err err = kli_request_sound_kernel(&k, c->arena, args->words[0], NULL, e);
    if (err) return err;
    kl_buf_add(&out->text, k->source);
    out->json =
        json_pack("{ss si so ss so}", "schema", "klineage/kernel-source", "version", 1, "path",
                  kli_json_str(k->path), "hash", k->hash, "source", kli_json_str(k->source));
    return KL_OK;
}

kl_err kli_cmd_kernel_diff(kli_context *c, const kli_args *args, kli_command_result *out,
                           kl_error *e) {
    kl_kernel *from, *to;
    kl_err err = kli_request_sound_kernel(&from, c->arena, args->words[0], NULL, e);
    if (!err) err = kli_request_sound_kernel(&to, c->arena, args->words[1], NULL, e);
    if (err) return err;
    bool same = strcmp(from->hash, to->hash) == 0;
    kl_str diff = kl_kernel_diff(c->arena, from, to);
    kl_buf_add(&out->text, diff);
    out->json =
        json_pack("{ss si sb ss ss so}", "schema", "klineage/kernel-diff", "version", 1, "same",
                  same, "from", from->hash, "to", to->hash, "diff", kli_json_str(diff));
    out->exit_code = same ? 0 : 1;
    return KL_OK;
}
