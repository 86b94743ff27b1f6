/* cmd_compile.c - `klineage kernel compile`: what the compiler makes of a kernel and says about it,
 * for a device that need not be here.  Runs nothing.  SPDX-License-Identifier: Apache-2.0 */
#include "command/plan.h"
#include "command/request.h"
#include "base/json.h"

typedef struct {
    kl_kernel *kernel;
    kl_task *task;
    const kl_workload *workload;
    kl_device device;
    kl_artefact artefact;
} compiled;

/* The device that is here, unless another architecture is asked for or none is here. */
static kl_err compile_find_device(compiled *m, kl_arena *a, const char *arch, kl_error *e) {
    const kl_backend *b = kli_backend_of_surface(m->kernel->surface, 0);
    if (!b)
        return kl_fail(e, KL_ENODEV, m->kernel->surface->name,
                       "nothing here compiles this surface");
    if (!arch && !kl_device_probe(&m->device, a, b->id, kl_ignored())) return KL_OK;
    return kl_device_target(&m->device, a, b->id, arch, e);
}

static void compiled_features(json_t *o, kl_buf *text, const kl_artefact *made) {
    json_t *features = json_object();
    kl_buf_printf(text, "features\n ");
    for (int i = 0; i < made->n_features; i++) {
        const kl_feature *f = &made->features[i];
        json_object_set_new(features, f->name.ptr, kli_json_real(f->value));
        if (f->value) kl_buf_printf(text, " %s=%g", f->name.ptr, f->value);
    }
    kl_buf_printf(text, "\n");
    json_object_set_new(o, "features", features);
}

/* The plan with what the compiler decided. */
static kl_err compiled_plan(json_t *o, kl_buf *text, kl_arena *a, const compiled *m, kl_error *e) {
    kl_plan *plan = KL_NEW(a, kl_plan);
    kl_err err = kli_kernel_plan(plan, m->kernel, m->task, m->workload, &m->device.limits, e);
    if (!err)
        err = kli_plan_complete(plan, m->artefact.completion, m->kernel, m->task, m->workload,
                                &m->device.limits, e);
    if (!err) json_object_set_new(o, "plan", kli_plan_json(text, plan, m->workload->label));
    return err;
}

static kl_err show_compiled(kli_command_result *out, kl_arena *a, const compiled *m, kl_error *e) {
    const kl_artefact *made = &m->artefact;
    const kl_str bad = made->suspicious.len ? made->suspicious : made->refused;
    out->json = json_pack("{ss si sb so so so so so}", "schema", "klineage/kernel-compile",
                          "version", 1, "ok", made->ok, "arch", kli_json_str(m->device.arch),
                          "toolchain", kli_json_str(made->toolchain), "hash",
                          made->ok ? json_string(made->hash) : json_null(), "log",
                          kli_json_str(made->log), "refused", kli_json_str(bad));
    out->exit_code = made->ok ? 0 : 3;
    kl_buf_printf(&out->text, "%s  %.*s  for %.*s by %.*s, %lld ms%s\n",
                  made->ok ? "compiled" : "no_compile", KL_STR_ARG(m->kernel->path),
                  KL_STR_ARG(m->device.arch), KL_STR_ARG(made->toolchain),
                  (long long)(made->wall_ns / 1000000), made->cached ? ", from the cache" : "");
    kl_err err = KL_OK;
    if (made->ok) {
        compiled_features(out->json, &out->text, made);
        err = compiled_plan(out->json, &out->text, a, m, e);
    }
    if (bad.len) kl_buf_printf(&out->text, "the gate would refuse it: %.*s\n", KL_STR_ARG(bad));
    kl_buf_printf(&out->text, "%.*s", KL_STR_ARG(made->log));
    return err;
}

kl_err kli_cmd_kernel_compile(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    compiled *m = KL_NEW(c->arena, compiled);
    kl_err err = kli_request_sound_kernel(&m->kernel, c->arena, args->words[0], args->params, e);
    if (!err) err = kli_request_task(&m->task, c->arena, args->values[KL_OPTION_TASK], e);
    if (!err)
        err = kli_request_workload(&m->workload, c->arena, m->task, m->kernel->surface->on,
                                   args->values[KL_OPTION_WORKLOAD], e);
    if (!err && !m->workload)
        m->workload = kl_task_workload(m->task, (kl_str){0}, m->kernel->surface->on);
    if (!err) err = compile_find_device(m, c->arena, args->values[KL_OPTION_ARCH], e);
    if (!err)
        err = kli_compile(&m->artefact, c->arena, &m->device, m->kernel, m->task, m->workload, NULL,
                          e);
    return err ? err : show_compiled(out, c->arena, m, e);
}
