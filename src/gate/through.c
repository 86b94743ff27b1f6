/* through.c - the kernel once more, through what was made of it for its users.
 *
 * A plugin or script that wraps the kernel (klineage export) is judged beside it: its outputs at
 * every shape and input set at which the kernel's were found right, and its time in the place of a
 * baseline.  It is trusted, since its host code is ours; so it has no guards of its own, and what
 * it leaves is compared like any output.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

enum { THROUGH_SECONDS = 120 };

kl_err kli_through_start(kli_evaluation *c, kl_error *e) {
    kl_str why_not;
    const kl_str file = kl_str_of(c->opts->through);
    if (!file.len) return KL_OK;
    const kl_err err = kli_executable_trusted(&c->through, &why_not, c, KL_S(KLI_THROUGH_NAME),
                                              file, c->workload, e);
    if (err || c->through) return err;
    return kl_fail(e, KL_EBASELINE, c->opts->through, "the export cannot be loaded: %.*s",
                   KL_STR_ARG(why_not));
}

static void say_where(kli_evaluation *c, const kli_problem *s, kli_check_outcome *f) {
    f->why = kl_arena_printf(c->arena, "through the export, at %s: %.*s",
                             s->workload->hidden ? "a hidden shape" : s->workload->label.ptr,
                             KL_STR_ARG(f->why));
}

kl_err kli_through_check(kli_evaluation *c, kli_problem *s, uint32_t set, kli_check_outcome *f,
                         kl_error *e) {
    const uint32_t slot = set % s->n_slots;
    const kli_run run = {set, slot, KL_POISON_NAN, THROUGH_SECONDS * 1000000000ll};
    kl_fault fault = {0};
    int64_t wall = 0;
    if (!c->through) return KL_OK;
    KL_ASSERT(f->ok && c->through->trusted);
    kl_err err = kli_executable_enter(c->through, s, c, set, 1, &fault, e);
    kli_problem_ready_slot(s, set, slot, KL_POISON_NAN);
    if (!err && !fault.kind) err = kli_output_run(s, c->through, &run, &fault, &wall, e);
    c->run_ns += wall;
    if (err) return err;
    if (fault.kind)
        *f = (kli_check_outcome){.outcome = KL_OUTCOME_CRASH,
                                 .why = kl_arena_copy(c->arena, kl_str_of(fault.text))};
    else
        err = kli_check_slot(c, s, set, slot, KL_POISON_NAN, false, f, e);
    if (!err && !f->ok) say_where(c, s, f);
    return err;
}
