/* fit.c - does a shape fit into this machine's memory?  Asked before anything is allocated, said
 * with the sizes.
 *
 *   inputs     every input set                    answers   the oracle's pages, and a private copy
 * for every set outputs    every output slot                  scratch   the kernel's own buffers,
 * for every slot
 *
 * What never fits is a shape for another machine, or a kernel that wants too much; what does not
 * fit now is a busy machine. Not here: memory of a device (kernel/plan.c), what a script takes for
 * itself (backend/spawn.c).  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

static const double FIT_SHARE =
    0.9; /* of what there is: compilers, runners and the rest of the machine live too */

kli_needs kli_needs_of(const kl_plan *p, uint32_t copies, bool shared) {
    KL_ASSERT(copies >= 1);
    kli_needs n = {0};
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        const kl_plan_tensor *t = &p->tensors[i];
        const double bytes = (double)t->bytes,
                     elements = bytes / (double)kl_dtype_bytes((kl_dtype)t->dtype);
        if (kli_is_input(p, i)) n.inputs += bytes * copies;
        if (kli_is_output(p, i)) {
            n.outputs += bytes * copies;
            n.answers +=
                (copies + 1) * (kl_dtype_is_float((kl_dtype)t->dtype) ? 8 * elements : bytes);
        }
        if (kli_is_mutable(p, i)) n.answers += bytes * copies; /* as drawn, to restore it from */
    }
    for (uint32_t i = 0; shared && i < p->n_buffers; i++)
        n.scratch += (double)p->buffers[i].bytes * copies;
    return n;
}

static double of_task(const kli_needs *n) { return n->inputs + n->outputs + n->answers; }

static kl_str fit_sizes(kl_arena *a, const kli_needs *n) {
    const double gib = 1 << 30;
    return kl_arena_printf(a, "inputs %.3g, outputs %.3g, answers %.3g, scratch %.3g GiB",
                           n->inputs / gib, n->outputs / gib, n->answers / gib, n->scratch / gib);
}

kl_err kli_needs_fit(const kli_needs *n, const kli_memory_room *room, kl_arena *a,
                     const char *where, kl_str *refused, kl_error *e) {
    KL_ASSERT(n->inputs >= 0 && n->outputs >= 0 && n->answers >= n->outputs && n->scratch >= 0);
    const double gib = 1 << 30, all = of_task(n) + n->scratch;
    *refused = (kl_str){0};
    if (of_task(n) > FIT_SHARE * (double)room->total) {
        kl_fail(
            e, KL_ELIMIT, where,
            "this shape needs %.3g GiB of memory, and there are %.3g GiB, of which %.0f %% may be "
            "taken: %s",
            of_task(n) / gib, (double)room->total / gib, 100 * FIT_SHARE, fit_sizes(a, n).ptr);
        return kl_hint(e, "a smaller shape: --workload M=64,N=64; or a machine with more memory: "
                          "klineage help spool");
    }
    if (all > FIT_SHARE * (double)room->total) {
        *refused = kl_arena_printf(
            a, "its scratch buffers do not fit: %.3g GiB are needed, and there are %.3g GiB: %s",
            all / gib, (double)room->total / gib, fit_sizes(a, n).ptr);
        return KL_OK;
    }
    if (all <= FIT_SHARE * (double)room->available) return KL_OK;
    kl_fail(
        e, KL_EBUSY, where,
        "this shape needs %.3g GiB of memory, and %.3g GiB are free now, of which %.0f %% may be "
        "taken: %s",
        all / gib, (double)room->available / gib, 100 * FIT_SHARE, fit_sizes(a, n).ptr);
    return kl_hint(e, "the same command goes on when other programs have ended: free -h");
}

kl_err kli_evaluation_fit(kli_evaluation *c, const kl_plan *plan, kl_str *refused, kl_error *e) {
    const kli_memory_room room = kli_memory_room_now();
    const uint32_t stress =
        c->task->n_stress > 0; /* a set under a stress scale, beside the others */
    const kli_needs n =
        kli_needs_of(plan, (c->opts->quick ? 1 : REAL_COPIES) + stress, c->backend->shared_memory);
    return kli_needs_fit(&n, &room, c->arena, c->workload->label.ptr, refused, e);
}
