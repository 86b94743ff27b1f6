/* generate.c - inputs that only the task's own Python makes.
 *
 * The definition's `custom_inputs_entrypoint` runs in a trusted script runner of its own, which no
 * candidate shares.  It reads the gate's seed and the sizes of the axes and writes the input
 * tensors as if they were its outputs; they are copied out of its pages into those of the problem.
 * The same seed must give the same bytes, or a verdict could not be had again: the first set of a
 * problem is made twice, and both digests must be one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "backend/compare.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

enum { SEED_BITS = 53 }; /* what a float64, and so any Python, holds exactly */
static const int64_t GENERATE_NS = 600ll * 1000000000ll; /* as any trusted code */

static bool is_made(const kli_problem *s, uint32_t i) {
    return s->workload->dists[i].kind == KL_DIST_CUSTOM;
}

bool kli_inputs_are_generated(const kli_problem *s) {
    for (int i = 0; i < s->task->n_inputs; i++)
        if (is_made(s, (uint32_t)i)) return true;
    return false;
}

static kl_plan_tensor *add(kl_plan *p, kl_str name, kl_tensor_role role, kl_dtype dtype) {
    KL_ASSERT(p->n_tensors < KL_MAX_TENSORS);
    kl_plan_tensor *t = &p->tensors[p->n_tensors++];
    *t = (kl_plan_tensor){.role = role, .dtype = dtype, .bytes = kl_dtype_bytes(dtype)};
    (void)snprintf(t->name, sizeof t->name, "%.*s", KL_STR_ARG(name));
    return t;
}

/* kl_seed[1] and every axis in; the inputs that are made out, in the task's order. */
static kl_err make_plan(kl_plan *p, const kli_problem *s, kl_error *e) {
    const kl_task *t = s->task;
    *p = (kl_plan){.magic = s->plan.magic, .version = s->plan.version, .threads = 1};
    if (1 + t->n_axes + t->n_inputs > KL_MAX_TENSORS)
        return kl_fail(e, KL_ELIMIT, t->dir.ptr,
                       "more than %d axes and inputs that the task's Python makes", KL_MAX_TENSORS);
    kl_plan_tensor *seed = add(p, KL_S("kl_seed"), KL_ROLE_INPUT, KL_I64);
    seed->ndim = 1, seed->dims[0] = 1;
    for (int i = 0; i < t->n_axes; i++)
        add(p, t->axes[i].name, KL_ROLE_SCALAR, KL_I64)->value = (double)s->workload->axes[i];
    for (int i = 0; i < t->n_inputs; i++) {
        if (!is_made(s, (uint32_t)i)) continue;
        if (t->tensors[i].is_scalar)
            return kl_fail(e, KL_EINVAL, t->dir.ptr,
                           "the scalar '%.*s' needs a value: only tensors are made by Python",
                           KL_STR_ARG(t->tensors[i].name));
        kl_plan_tensor *out = add(p, t->tensors[i].name, KL_ROLE_OUTPUT, s->workload->dtypes[i]);
        const kl_plan_tensor *like = &s->plan.tensors[i];
        out->ndim = like->ndim, out->bytes = like->bytes;
        memcpy(out->dims, like->dims, sizeof out->dims);
    }
    return KL_OK;
}

static kl_err find_generator(kli_executable **out, kli_evaluation *c, kl_error *e) {
    const kl_str entry = c->task->custom_inputs;
    kl_str why_not = {0};
    *out = c->generator;
    if (*out && (*out)->runner) return KL_OK;
    const kl_str ending =
        kl_arena_printf(c->arena, "\n\nrun = generated(%.*s)\n", KL_STR_ARG(entry));
    const kl_str file = kli_evaluation_python_script(c, ending, e);
    if (!file.len)
        return kl_fail(e, KL_EINVAL, c->task->dir.ptr,
                       "the definition has no Python that makes its inputs");
    const kl_err err =
        kli_executable_trusted(out, &why_not, c, KL_S("inputs"), file, c->workload, e);
    c->generator = *out;
    return err || *out ? err : kli_oracle_missing(c, why_not, e);
}

static kl_err enter_generator(kli_executable *a, kli_problem *s, kli_evaluation *c, kl_fault *fault,
                              kl_error *e) {
    kl_layout layout;
    if (a->problem == s->id) return KL_OK;
    kl_err err = make_plan(&a->plan, s, e);
    if (!err) err = kli_layout_make(&layout, &a->plan, 1, 1, e);
    if (s->generated.inputs_fd > 0) kli_memory_close(&s->generated);
    if (!err) err = kli_memory_open(&s->generated, &layout, e);
    if (!err) err = kli_runner_place(a->runner, -1, c->opts->threads, e);
    if (!err) err = kli_runner_load(a->runner, fault, a->resources, &a->artefact, &a->plan, e);
    if (!err && !fault->kind) err = kli_runner_bind(a->runner, fault, &s->generated, e);
    if (!err && !fault->kind) a->problem = s->id;
    return err;
}

/* Makes the inputs of one seed; `*digest` covers their bytes. */
static kl_err make_inputs(kli_executable *a, kli_problem *s, uint64_t seed, uint64_t *digest,
                          kl_fault *fault, kl_error *e) {
    const int64_t given = (int64_t)(seed >> (64 - SEED_BITS));
    int64_t wall;
    memcpy(kli_memory_input(&s->generated, &a->plan, 0, 0), &given, sizeof given);
    kl_err err = kli_runner_upload(a->runner, fault, 0, 1, e);
    if (!err && !fault->kind)
        err = kli_runner_run(a->runner, fault, 0, 0, KL_POISON_NAN, GENERATE_NS, &wall, e);
    *digest = 0;
    for (uint32_t i = 0; !err && !fault->kind && i < a->plan.n_tensors; i++)
        if (a->plan.tensors[i].role == KL_ROLE_OUTPUT)
            *digest = *digest * 31 + kli_hash_bulk(kli_memory_output(&s->generated, &a->plan, i, 0),
                                                   a->plan.tensors[i].bytes);
    return err;
}

static void take_inputs(kli_problem *s, const kli_executable *a, uint32_t set, void *const *to) {
    uint32_t from = a->plan.n_tensors;
    for (uint32_t i = (uint32_t)s->task->n_inputs; i-- > 0;) {
        if (!is_made(s, i)) continue;
        KL_ASSERT(from > 0 && a->plan.tensors[from - 1].bytes == s->plan.tensors[i].bytes);
        void *data = to[i] ? to[i] : kli_memory_input(&s->memory, &s->plan, i, set);
        memcpy(data, kli_memory_output(&s->generated, &a->plan, --from, 0),
               s->plan.tensors[i].bytes);
    }
}

kl_err kli_inputs_generate(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    kli_executable *a = NULL;
    kl_fault fault = {0};
    uint64_t digest = 0, again = 0;
    KL_ASSERT(set < s->n_sets);
    kl_err err = find_generator(&a, c, e);
    if (err) return err;
    const bool is_first = a->problem != s->id;
    err = enter_generator(a, s, c, &fault, e);
    if (!err && !fault.kind) err = make_inputs(a, s, s->seeds[set], &digest, &fault, e);
    again = digest;
    if (!err && !fault.kind && is_first) err = make_inputs(a, s, s->seeds[set], &again, &fault, e);
    if (err || fault.kind) kli_executable_stop(a);
    if (err) return err == KL_ENODEV ? kli_oracle_missing(c, kl_str_of(e->message), e) : err;
    if (fault.kind)
        return kl_fail(e, KL_EINVAL, c->task->dir.ptr, "the task's Python '%.*s' failed: %s",
                       KL_STR_ARG(c->task->custom_inputs), fault.text);
    if (again != digest)
        return kl_fail(e, KL_EINVAL, c->task->dir.ptr,
                       "the task's Python '%.*s' makes other inputs for the same seed",
                       KL_STR_ARG(c->task->custom_inputs));
    take_inputs(s, a, set, s->pristine[set]);
    return KL_OK;
}
