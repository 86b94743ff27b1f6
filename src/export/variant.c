/* variant.c - what a kernel is compiled into: one code for every shape, or one for each class of
 * shapes that its compiler tells apart.
 *
 * A compiler that specializes is told of a plan as text (kl_surface.specialize).  What of that text
 * depends on the shape is a list of numbers, the keys: whether an integer is 1 or divided by 16,
 * the value of what is compiled in, the box of a descriptor, Triton's options.  A launcher computes
 * the keys of a shape and looks for them among those of the shapes that the gate has admitted; a
 * class that none of them has was never judged, and is not admitted.  SPDX-License-Identifier:
 * Apache-2.0
 */
#include "export_impl.h"

#include <string.h>

/* ---- keys -------------------------------------------------------------------------------- */

/* Does it say the same for every shape? */
static bool is_fixed(const kli_export *x, kl_str text) {
    const kl_str c = kli_expression(x, text);
    return !strstr(c.ptr, "p->axis_") && !strstr(c.ptr, "p->let_") && !strstr(c.ptr, "p->device_");
}

static void add_key(kli_keys *k, kli_key key) {
    KL_ASSERT(k->n < KLI_EXPORT_KEYS);
    k->at[k->n++] = key;
}

static void add_clause_keys(kli_keys *k, const kli_export *x, int launch) {
    static const struct {
        kl_clause clause;
        kli_key_kind kind;
    } OPTIONS[] = {{KL_CLAUSE_WARPS, KLI_KEY_WARPS},
                   {KL_CLAUSE_STAGES, KLI_KEY_STAGES},
                   {KL_CLAUSE_CTAS, KLI_KEY_CTAS},
                   {KL_CLAUSE_MAXNREG, KLI_KEY_REGISTERS}};
    const kl_launch *l = &x->kernel->launches[launch];
    for (size_t i = 0; i < KL_COUNT(OPTIONS); i++) {
        if (!l->n_clauses[OPTIONS[i].clause]) continue;
        const kl_str text = l->clauses[OPTIONS[i].clause][0].text;
        if (!is_fixed(x, text))
            add_key(k, (kli_key){.kind = OPTIONS[i].kind, .launch = launch, .text = text});
    }
}

static void add_box_keys(kli_keys *k, const kli_export *x, int launch, int arg, kl_str name) {
    for (int i = 0; i < x->kernel->n_tensormaps; i++) {
        const kl_tensormap *m = &x->kernel->tensormaps[i];
        if (!kl_str_eq(m->name, name)) continue;
        for (int d = 0; d < m->n_options[KL_OPT_BOX]; d++)
            if (!is_fixed(x, m->options[KL_OPT_BOX][d].text))
                add_key(k, (kli_key){.kind = KLI_KEY_BOX,
                                     .launch = launch,
                                     .arg = arg,
                                     .dim = d,
                                     .text = m->options[KL_OPT_BOX][d].text});
    }
}

/* Integers alone: of a real number only the type is told, or it is the same for every shape. */
static void add_argument_key(kli_keys *k, const kli_export *x, int launch, int j) {
    const kl_arg *arg = &x->kernel->launches[launch].args[j];
    const kl_str name = arg->expr.text;
    const kl_str type = kli_argument_type(x, arg);
    const bool integer =
        arg->kind == KL_ARG_NAME || arg->kind == KL_ARG_EXPR || arg->kind == KL_ARG_I64;
    if (arg->kind == KL_ARG_NAME && kl_str_eq(type, KL_S("CUtensorMap")))
        add_box_keys(k, x, launch, j, name);
    if (!integer || !kl_str_starts(type, KL_S("int"))) return;
    const int tensor = arg->kind == KL_ARG_NAME ? kl_task_tensor(x->task, name) : -1;
    if (tensor < 0 && is_fixed(x, name)) return;
    add_key(k, (kli_key){.kind = arg->name.len ? KLI_KEY_VALUE : KLI_KEY_CLASS,
                         .launch = launch,
                         .arg = j,
                         .text = name,
                         .scalar = tensor >= 0});
}

kli_keys kli_export_keys(const kli_export *x) {
    kli_keys k = {0};
    if (!x->kernel->surface->specialize) return k;
    for (int i = 0; i < x->kernel->n_launches; i++) {
        add_clause_keys(&k, x, i);
        for (int j = 0; j < x->kernel->launches[i].n_args; j++) add_argument_key(&k, x, i, j);
    }
    return k;
}

static int64_t key_of_plan(const kli_key *key, const kl_plan *p) {
    const kl_plan_launch *l = &p->launches[key->launch];
    const kl_value *v = &kli_launch_args(p, l)[key->arg];
    switch (key->kind) {
    case KLI_KEY_CLASS:
        return v->i == 1 ? 1 : v->i % 16 ? 0 : 16;
    case KLI_KEY_VALUE:
        return v->i;
    case KLI_KEY_BOX:
        return p->tensormaps[v->index].box[key->dim];
    case KLI_KEY_WARPS:
        return l->warps;
    case KLI_KEY_STAGES:
        return l->stages;
    case KLI_KEY_CTAS:
        return l->cluster[0];
    case KLI_KEY_REGISTERS:
        return l->registers;
    }
    kl_bug("a key of a kind that is known", __FILE__, __LINE__);
}

/* ---- compiling --------------------------------------------------------------------------- */

static kl_err compile_one(kli_export_variant *out, const kli_export *x, const kl_device *device,
                          const kl_workload *w, kl_error *e) {
    const kl_err err =
        kli_compile(&out->artefact, x->arena, device, x->kernel, x->task, w, NULL, e);
    if (err || out->artefact.ok) return err;
    return kl_fail(e, KL_EINVAL, x->kernel->path.ptr, "does not compile for %.*s at %.*s: %.*s",
                   KL_STR_ARG(device->arch), KL_STR_ARG(w->label),
                   KL_STR_ARG(kl_first_error(x->arena, out->artefact.log)));
}

static kli_export_variant *compiled_for(kli_export *x, kl_str classes) {
    for (int i = 0; i < x->n_variants; i++)
        if (kl_str_eq(x->variants[i].classes, classes)) return &x->variants[i];
    return NULL;
}

static bool is_known(const kli_export *x, const kli_keys *keys, const int64_t *wanted) {
    for (int i = 0; i < x->n_variants; i++)
        if (memcmp(x->variants[i].keys, wanted, (size_t)keys->n * sizeof *wanted) == 0) return true;
    return false;
}

/* What its compiler decided is held against each shape's plan: it is written into a launcher. */
static kl_err check_decided(const kli_export *x, const kli_export_variant *v, kl_plan *plan,
                            const kl_device *device, const kl_workload *w, kl_error *e) {
    if (!v->artefact.completion.len)
        return kl_fail(e, KL_EINVAL, x->kernel->path.ptr,
                       "its compiler does not say how to launch it");
    return kli_plan_complete(plan, v->artefact.completion, x->kernel, x->task, w, &device->limits,
                             e);
}

static kl_err add_variant(kli_export *x, const kli_keys *keys, const kl_plan *plan, kl_str classes,
                          const kl_device *device, const kl_workload *w, kl_error *e) {
    if (x->n_variants == KLI_EXPORT_VARIANTS)
        return kl_fail(e, KL_ELIMIT, x->kernel->path.ptr,
                       "the shapes of the task need more than %d codes", KLI_EXPORT_VARIANTS);
    kli_export_variant *v = &x->variants[x->n_variants];
    v->classes = classes;
    for (int i = 0; i < keys->n; i++) v->keys[i] = key_of_plan(&keys->at[i], plan);
    if (is_known(x, keys, v->keys))
        return kl_fail(e, KL_EINVAL, x->kernel->path.ptr,
                       "a real number that depends on the shape is compiled into it");
    const kl_err err = compile_one(v, x, device, w, e);
    x->n_variants += !err;
    return err;
}

static kl_err compile_class(kli_export *x, const kli_keys *keys, const kl_device *device,
                            const kl_workload *w, kl_error *e) {
    kl_plan *plan = KL_NEW(x->arena, kl_plan);
    kl_err err = kli_kernel_plan(plan, x->kernel, x->task, w, &device->limits, e);
    if (err) return err;
    const kl_str classes = x->kernel->surface->specialize(x->arena, x->kernel, plan);
    if (!compiled_for(x, classes)) err = add_variant(x, keys, plan, classes, device, w, e);
    return err ? err : check_decided(x, compiled_for(x, classes), plan, device, w, e);
}

kl_err kli_export_compile(kli_export *x, const kl_device *device, kl_error *e) {
    const kli_keys keys = kli_export_keys(x);
    const kl_workload *shapes[KL_MAX_WORKLOADS];
    const int n = kli_export_shapes(shapes, x->task, x->kernel, x->workload, &device->limits);
    kl_err err = KL_OK;
    KL_ASSERT(n >= 1 && shapes[0] == x->workload);
    if (!x->kernel->surface->specialize) {
        err = compile_one(&x->variants[0], x, device, x->workload, e);
        x->n_variants = !err;
    }
    for (int i = 0; !err && i < n && x->kernel->surface->specialize; i++)
        err = compile_class(x, &keys, device, shapes[i], e);
    if (err) return err;
    x->artefact = x->variants[0].artefact;
    x->arch = device->arch;
    return KL_OK;
}
