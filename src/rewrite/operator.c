/* operator.c - what a task asks for, as facts: read from axes, shapes, checks and tags of its
 * definition, and from the words of its reference.  No task is known by its name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <string.h>

static bool has_axis(const kl_tensor *t, kl_str axis) {
    for (int d = 0; d < t->ndim; d++)
        if (kl_str_eq(t->dims[d], axis)) return true;
    return false;
}

static bool in_outputs(const kl_task *t, kl_str axis) {
    for (int i = t->n_inputs; i < t->n_tensors; i++)
        if (has_axis(&t->tensors[i], axis)) return true;
    return false;
}

/* Is it an axis of an input that no output has? */
bool kl_task_contracts(const kl_task *t, kl_str axis) {
    bool any = false;
    for (int i = 0; i < t->n_inputs; i++) any = any || has_axis(&t->tensors[i], axis);
    return any && !in_outputs(t, axis);
}

static bool tagged(const kl_task *t, const char *words) {
    kl_str rest = t->tags;
    for (kl_str w; kli_next_word(&w, &rest);)
        if (kli_one_of(w, words)) return true;
    return false;
}

static bool refers(const kl_task *t, const char *part) {
    return kli_contains(t->python_reference, part);
}

/* ---- one fact each ----------------------------------------------------------------------- */

static kl_fact contraction(kl_arena *a, const kl_task *t) {
    for (int x = 0; x < t->n_inputs; x++)
        for (int y = x + 1; y < t->n_inputs; y++)
            for (int d = 0; d < t->tensors[x].ndim && t->tensors[y].ndim > 1; d++) {
                const kl_str axis = t->tensors[x].dims[d];
                if (t->tensors[x].ndim > 1 && has_axis(&t->tensors[y], axis) &&
                    !in_outputs(t, axis) && kl_task_axis(t, axis) >= 0)
                    return kli_fact_truth(
                        true,
                        kl_arena_printf(a, "%.*s is an axis of %.*s and %.*s, and of no output",
                                        KL_STR_ARG(axis), KL_STR_ARG(t->tensors[x].name),
                                        KL_STR_ARG(t->tensors[y].name)));
            }
    static const char *const WORDS[] = {"matmul", "einsum", "bmm(", " @ ", "linear("};
    for (size_t i = 0; i < KL_COUNT(WORDS); i++)
        if (refers(t, WORDS[i]))
            return kli_fact_truth(true, kl_arena_printf(a, "the reference says %s", WORDS[i]));
    return kli_fact_truth(false, KL_S("no two inputs share an axis that no output has"));
}

static kl_fact window(kl_arena *a, const kl_task *t) {
    for (int i = t->n_inputs; i < t->n_tensors; i++)
        for (int d = 0; d < t->tensors[i].ndim; d++) {
            const int axis = kl_task_axis(t, t->tensors[i].dims[d]);
            if (axis >= 0 && t->axes[axis].kind == KL_AXIS_EXPR &&
                !kl_task_contracts(t, t->tensors[i].dims[d]) &&
                kli_contains(t->axes[axis].expr, "-"))
                return kli_fact_truth(true, kl_arena_printf(a, "%.*s is %.*s",
                                                            KL_STR_ARG(t->axes[axis].name),
                                                            KL_STR_ARG(t->axes[axis].expr)));
        }
    return tagged(t, "convolution stencil") ? kli_fact_truth(true, KL_S("its tags say so"))
                                            : kli_fact_truth(false, KL_S("its axes and tags"));
}

static kl_fact recurrence(const kl_task *t) {
    if (refers(t, "cumsum") || refers(t, "cumprod"))
        return kli_fact_truth(true, KL_S("the reference sums cumulatively"));
    return tagged(t, "scan recurrence linear-attention iterated")
               ? kli_fact_truth(true, KL_S("its tags say so"))
               : kli_fact_truth(false, KL_S("its reference and tags"));
}

static kl_fact selection(const kl_task *t) {
    for (int i = t->n_inputs; i < t->n_tensors; i++)
        if (t->tensors[i].check.kind == KL_CHECK_TOPK)
            return kli_fact_truth(true, KL_S("an output is checked as top-k"));
    return kli_fact_truth(false, KL_S("no output is checked as top-k"));
}

static const kl_tensor *largest_input(const kl_task *t) {
    const kl_tensor *most = NULL;
    for (int i = 0; i < t->n_inputs; i++)
        if (!t->tensors[i].is_scalar && (!most || t->tensors[i].ndim > most->ndim))
            most = &t->tensors[i];
    return most;
}

static kl_fact rowwise(const kl_facts *f, const kl_task *t) {
    static const kl_fact_id OTHERS[] = {KL_FACT_OP_CONTRACTION, KL_FACT_OP_WINDOW,
                                        KL_FACT_OP_RECURRENCE, KL_FACT_OP_SELECTION};
    const kl_tensor *in = largest_input(t);
    bool same = in != NULL && in->ndim > 1;
    for (int d = 0; same && d < in->ndim; d++) same = in_outputs(t, in->dims[d]);
    for (size_t i = 0; i < KL_COUNT(OTHERS); i++) same = same && !f->at[OTHERS[i]].number;
    return kli_fact_truth(same, KL_S("axes of the largest input and of the outputs"));
}

static kl_fact softmax(const kl_task *t) {
    if (!t->python_reference.len) return (kl_fact){0};
    return kli_fact_truth(refers(t, "softmax(") || (refers(t, "exp(") && refers(t, ".sum(")),
                          KL_S("the words of the reference"));
}

/* "HV % HQ == 0" */
static kl_fact shared(const kl_task *t) {
    for (int i = 0; i < t->n_constraints; i++)
        if (kli_contains(t->constraints[i], "%") && kli_contains(t->constraints[i], "== 0"))
            return kli_fact_truth(true, t->constraints[i]);
    return kli_fact_truth(false, KL_S("no constraint makes an axis a multiple of another"));
}

static kl_fact ragged(const kl_task *t) {
    for (int i = 0; i < t->n_inputs; i++)
        if (t->tensors[i].dist.kind == KL_DIST_OFFSETS)
            return kli_fact_truth(true, t->tensors[i].name);
    return kli_fact_truth(false, KL_S("no input holds offsets"));
}

/* How often one of `words` stands in the reference. */
static double passes(const kl_task *t) {
    static const char *const WORDS[] = {".sum(", ".mean(", ".amax(", ".max(", ".var(", "softmax("};
    double n = 1;
    for (size_t i = 0; i < KL_COUNT(WORDS); i++)
        for (kl_str rest = t->python_reference; kli_contains(rest, WORDS[i]); n++) {
            const char *at = memmem(rest.ptr, rest.len, WORDS[i], strlen(WORDS[i]));
            rest = kli_between(at + 1, t->python_reference.ptr + t->python_reference.len);
        }
    return n;
}

/* ---- work -------------------------------------------------------------------------------- */

static void work_of(kl_facts *out, const kl_task *t, const kl_workload *w) {
    double flops = 0, bytes = 0;
    if (kl_task_work(&flops, &bytes, t, w, kl_ignored())) return;
    if (bytes > 0) out->at[KL_FACT_OP_BYTES] = kli_fact_number(bytes, 0);
    if (flops > 0) out->at[KL_FACT_OP_FLOPS] = kli_fact_number(flops, 0);
    if (flops > 0 && bytes > 0) out->at[KL_FACT_OP_INTENSITY] = kli_fact_number(flops / bytes, 0);
}

static bool in_tensors(const kl_task *t, kl_str axis) {
    for (int i = 0; i < t->n_tensors; i++)
        if (has_axis(&t->tensors[i], axis)) return true;
    return false;
}

static double operator_steps(const kl_facts *f, const kl_task *t, const kl_workload *w) {
    double n = 1;
    for (int i = 0; i < t->n_axes && f->at[KL_FACT_OP_RECURRENCE].number; i++)
        if (t->axes[i].kind == KL_AXIS_VAR && !in_tensors(t, t->axes[i].name))
            n *= (double)w->axes[i];
    return n;
}

static void kept(kl_facts *out, const kl_task *t, const kl_workload *w) {
    kl_shape in, result;
    const kl_tensor *from = largest_input(t);
    if (!out->at[KL_FACT_OP_SELECTION].number || !from) return;
    if (kl_task_shape(&in, t, w, (int)(from - t->tensors), kl_ignored()) ||
        kl_task_shape(&result, t, w, t->n_inputs, kl_ignored()) || !in.elems)
        return;
    out->at[KL_FACT_OP_KEPT] = kli_fact_number((double)result.elems / (double)in.elems, 0);
}

static void element(kl_facts *out, const kl_task *t, const kl_workload *w) {
    const kl_tensor *in = largest_input(t);
    if (!in) return;
    const kl_dtype type = w ? w->dtypes[in - t->tensors] : in->dtype;
    out->at[KL_FACT_OP_BITS] = kli_fact_number(8 * (double)kl_dtype_bytes(type), 0);
    out->at[KL_FACT_OP_INTEGER] =
        kli_fact_truth(!kl_dtype_is_float(type), kl_str_of(kl_dtype_name(type)));
}

void kli_facts_of_task(kl_facts *out, kl_arena *a, const kl_task *t, const kl_workload *w) {
    KL_ASSERT(t);
    out->at[KL_FACT_OP_CONTRACTION] = contraction(a, t);
    out->at[KL_FACT_OP_WINDOW] = window(a, t);
    out->at[KL_FACT_OP_RECURRENCE] = recurrence(t);
    out->at[KL_FACT_OP_SELECTION] = selection(t);
    out->at[KL_FACT_OP_ROWWISE] = rowwise(out, t);
    out->at[KL_FACT_OP_SOFTMAX] = softmax(t);
    out->at[KL_FACT_OP_SHARED] = shared(t);
    out->at[KL_FACT_OP_RAGGED] = ragged(t);
    if (t->python_reference.len) out->at[KL_FACT_OP_PASSES] = kli_fact_number(passes(t), 0);
    element(out, t, w);
    if (!w) return;
    out->at[KL_FACT_OP_STEPS] = kli_fact_number(operator_steps(out, t, w), 0);
    work_of(out, t, w);
    kept(out, t, w);
}
