/* cmd_doctor.c - `klineage doctor`: can kernels be judged here, how well, and what mends the rest?
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/doctor.h"
#include "base/json.h"
#include "base/record.h"
#include <klineage/model.h>
#include <string.h>

static const char *const state_names[] = {"ok", "weak", "missing"};
static const char *const state_colours[] = {"\033[32m", "\033[33m", "\033[31m"};

static void rows_text(kl_buf *out, const kli_doctor *d, bool colour) {
    const char *group = "";
    for (int i = 0; i < d->n_rows; i++) {
        const kli_doctor_row *r = &d->rows[i];
        if (strcmp(group, r->group) != 0) kl_buf_printf(out, "%s%s\n", i ? "\n" : "", r->group);
        group = r->group;
        kl_buf_printf(out, "  %s%-7s%s %-13s %.*s\n", colour ? state_colours[r->state] : "",
                      state_names[r->state], colour ? "\033[0m" : "", r->name,
                      KL_STR_ARG(r->found));
        if (r->mend) kl_buf_printf(out, "          -> %s\n", r->mend);
    }
}

static json_t *rows_json(const kli_doctor *d) {
    json_t *list = json_array();
    for (int i = 0; i < d->n_rows; i++) {
        const kli_doctor_row *r = &d->rows[i];
        json_array_append_new(list, json_pack("{ss ss ss so so}", "group", r->group, "name",
                                              r->name, "state", state_names[r->state], "found",
                                              kli_json_str(r->found), "mend",
                                              r->mend ? json_string(r->mend) : json_null()));
    }
    return list;
}

/* The first of a surface's back ends that has a device here. */
static const kl_backend *backend_here(const kli_doctor *d, const kl_surface *s) {
    const kl_backend *b;
    int i = 0;
    while ((b = kli_backend_of_surface(s, i++)) != NULL && !d->has_device[b->id]) {
    }
    return b;
}

/* Why kernels of a surface cannot be judged here; empty when they can. */
static kl_str missing(const kli_doctor *d, const kl_surface *s) {
    if (!s->backends[0]) return KL_S("files parse and plan, and nothing in this build runs them");
    if (!d->has_worker) return KL_S("klineage-worker is missing");
    const kl_str compiler = s->missing ? s->missing(d->arena) : (kl_str){0};
    if (compiler.len || backend_here(d, s)) return compiler;
    return kl_arena_printf(d->arena, "no device: %s", s->backends[0]);
}

/* Best assurance of a surface here: 'A' or 'B' as the surface allows, 'C' when the sandbox is
 * weaker. */
static char cmd_doctor_assurance_of(const kli_doctor *d, const kl_surface *s) {
    KL_ASSERT(backend_here(d, s)); /* a kernel of it can run here */
    if (s->assurance == 'A' && !backend_here(d, s)->shared_memory)
        return 'A'; /* OpenCL on a CPU is native code */
    return d->isolation.seccomp && d->isolation.landlock && d->isolation.rlimits ? 'B' : 'C';
}

static json_t *cmd_doctor_surfaces(kl_buf *out, const kli_doctor *d) {
    json_t *o = json_object();
    kl_buf_printf(out, "\nkernels that this machine can judge\n");
    for (int i = 0; kl_surface_each(i); i++) {
        const kl_surface *s = kl_surface_each(i);
        const kl_str why_not = missing(d, s);
        const char assurance = why_not.len ? 0 : cmd_doctor_assurance_of(d, s);
        if (assurance)
            kl_buf_printf(out, "  yes  %-9s assurance %c\n", s->name, assurance);
        else
            kl_buf_printf(out, "  no   %-9s %.*s\n", s->name, KL_STR_ARG(why_not));
        json_object_set_new(o, s->name, assurance ? json_stringn(&assurance, 1) : json_null());
    }
    return o;
}

/* By the name of the variable that holds a key, never by what it holds; nobody is asked. */
static json_t *cmd_doctor_models(kl_buf *out, const kli_doctor *d) {
    json_t *o = json_object();
    kl_buf_printf(out, "\nmodels that can be asked here (klineage help models)\n");
    for (int i = 0; kl_provider_each(i); i++) {
        const kl_provider *p = kl_provider_each(i);
        kl_str found = KL_S("needs nothing");
        const bool ready = !p->ready || p->ready(&found, d->arena);
        kl_buf_printf(out, "  %-3s  %-10s %.*s\n", ready ? "yes" : "no", p->name,
                      KL_STR_ARG(found));
        json_object_set_new(o, p->name,
                            json_pack("{sb so}", "ready", ready, "found", kli_json_str(found)));
    }
    return o;
}

kl_err kli_cmd_doctor(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    (void)args;
    (void)e;
    kli_doctor *d = KL_NEW(c->arena, kli_doctor);
    d->arena = c->arena;
    kli_doctor_compilers(d);
    kli_doctor_devices(d);
    kli_doctor_sandbox(d);
    kli_doctor_libraries(d);
    kli_doctor_machine(d);
    kli_doctor_environment(d);
    rows_text(&out->text, d, c->colour);
    bool works = d->has_compiler && d->has_worker && d->has_device[KL_BACKEND_CPU];
    json_t *surfaces = cmd_doctor_surfaces(&out->text, d);
    json_t *models = cmd_doctor_models(&out->text, d);
    out->json = json_pack(
        "{ss si sb so so so so so}", "schema", "klineage/doctor", "version", 1, "works", works,
        "surfaces", surfaces, "models", models, "rows", rows_json(d), "noise",
        d->noise.pairs ? kli_record_json(&KL_NOISE, &d->noise) : json_null(), "noise_record",
        d->noise_record.n ? kli_record_json(&KL_NOISE_RECORD, &d->noise_record) : json_null());
    out->exit_code = works ? 0 : 1;
    return KL_OK;
}
