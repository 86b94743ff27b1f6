/* init_judge.c - see init.h: is the slice what the library is?
 *
 * The library is a candidate as well: checked alone, then timed beside the slice in one run, under
 * its own flags.  SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "command/init.h"
#include "command/request.h"
#include "base/json.h"
#include "task/task.h"
#include <string.h>

static double init_feature(const kl_verdict *v, kl_str name) {
    for (int i = 0; i < v->n_features; i++)
        if (kl_str_eq(v->features[i].name, name)) return v->features[i].value;
    return 0;
}

/* Kinds of instructions: what the mechanism is made of.  Counts change with every compiler. */
static void init_compare(kli_init *x) {
    static const char *const KINDS[] = {
        "vector128", "vector256",   "vector512", "fma",   "gather", "prefetch", "store_nt",
        "atomics",   "vector_bits", "mma_sync",  "wgmma", "tma",    "cp_async", "ldmatrix"};
    for (size_t i = 0; i < KL_COUNT(KINDS); i++) {
        const kl_str kind = kl_str_of(KINDS[i]);
        const double mine = init_feature(&x->verdict, kind), theirs = init_feature(&x->alone, kind);
        const bool is_width = strcmp(KINDS[i], "vector_bits") == 0;
        if (is_width ? mine == theirs : (mine > 0) == (theirs > 0)) continue;
        json_array_append_new(x->differences,
                              json_pack("{ss so so}", "feature", KINDS[i], "kernel",
                                        kli_json_real(mine), "library", kli_json_real(theirs)));
    }
}

static kl_err init_gate(kli_init *x, kl_error *e) {
    kl_arena *a = x->context->arena;
    kl_gate *gate = NULL;
    kl_gate_opts opts, alone;
    kl_noise_record noise = {0};
    kl_err err = kli_request_options(&opts, a, x->args, x->task, x->kernel->surface->on, e);
    if (!err) err = kli_effort_host(&noise, a, x->args, NULL, e);
    if (!err) err = kl_gate_open(&gate, e);
    if (err) return err;
    alone = opts;
    alone.check_only = true;
    opts.against = opts.check_only ? NULL : x->library;
    if (x->library) err = kl_gate_run(&x->alone, gate, a, x->task, x->library, &alone, e);
    if (!err && x->alone.outcome == KL_OUTCOME_PASS)
        err = kl_gate_run(&x->verdict, gate, a, x->task, x->kernel, &opts, e);
    kl_gate_close(gate);
    return err;
}

/* What compiling alone says of a kernel. */
static kl_err init_compile_one(kl_verdict *out, const kli_init *x, const kl_device *target,
                               const kl_workload *w, const kl_kernel *k, kl_error *e) {
    kl_arena *a = x->context->arena;
    kl_artefact *made = KL_NEW(a, kl_artefact);
    const kl_err err = kli_compile(made, a, target, k, x->task, w, NULL, e);
    if (err) return err;
    kli_compile_describe(made, a, k);
    const kl_str bad = made->suspicious.len ? made->suspicious : made->refused;
    out->outcome = !made->ok ? KL_OUTCOME_NO_COMPILE
                   : bad.len ? KL_OUTCOME_REFUSED
                             : KL_OUTCOME_PASS;
    out->why = made->ok ? bad : kl_first_error(a, made->log);
    out->detail = made->ok ? (kl_str){0} : made->log;
    out->features = made->features;
    out->n_features = made->n_features;
    return KL_OK;
}

static kl_err init_compile(kli_init *x, const kl_backend *b, kl_error *e) {
    kl_device *target = KL_NEW(x->context->arena, kl_device);
    const kl_workload *w = kl_task_workload(x->task, (kl_str){0}, KL_ON_GPU);
    kl_err err =
        kl_device_target(target, x->context->arena, b->id, x->args->values[KL_OPTION_ARCH], e);
    if (!err && !w)
        err = kl_fail(e, KL_EINVAL, x->asked.task.ptr, "the task has no shape for a GPU");
    if (!err && x->library) err = init_compile_one(&x->alone, x, target, w, x->library, e);
    if (!err) err = init_compile_one(&x->verdict, x, target, w, x->kernel, e);
    if (err) return err;
    x->compiled_for = target->arch;
    if (x->library) init_compare(x);
    return KL_OK;
}

kl_err kli_init_judge(kli_init *x, kl_error *e) {
    const kl_backend *b = kli_backend_of_surface(x->kernel->surface, 0);
    kl_device *here = KL_NEW(x->context->arena, kl_device);
    x->differences = json_array();
    if (b && x->kernel->surface->on == KL_ON_GPU &&
        kl_device_probe(here, x->context->arena, b->id, kl_ignored()))
        return init_compile(x, b, e);
    const kl_err err = init_gate(x, e);
    const bool both = x->alone.n_features && x->verdict.n_features; /* what ended before has none */
    if (!err && x->library && both) init_compare(x);
    return err;
}
