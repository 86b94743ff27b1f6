/* step.c - one gated attempt, written down for tables and figures.  A pass numbers its steps from
 * 0, so that the same line writes the same rows.  SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "base/record.h"

#define KL_RECORD kl_step
const kl_record KL_STEP = {KL_RECORD_HEAD("step", "One gated attempt of a track: table `step`."),
                           KL_ROWS{
#define KL_DEF_STEP KL_ROW
#include <klineage/run.def>
                               KL_ROWS_END}};
#undef KL_RECORD

static kl_str step_json(kli_track *t, const kl_step *given, const char *source) {
    kl_step s = *given;
    s.workload = kl_str_of(t->spec->workload);
    s.policy = kl_str_of(t->spec->policy);
    if (!s.phase.len) s.phase = kl_str_of(t->base.phase);
    s.source = kl_str_of(source);
    s.spent_microusd = t->base.spent_microusd;
    KL_ASSERT(s.spent_microusd >= 0); /* the times are a verdict's: data */
    json_t *o = kli_record_json(&KL_STEP, &s);
    const kl_str json = kli_json_dump(t->base.arena, o, false);
    json_decref(o);
    return json;
}

kl_err kli_effect_step(kl_track *base, const kl_step *s, kl_str kernel_source, kl_error *e) {
    kli_track *t = kli_of(base);
    char source[65] = "";
    const int64_t n = t->steps++;
    if (t->journal_only) return KL_OK; /* the process that did the work wrote it */
    kl_err err =
        kernel_source.len ? kl_store_blob_put(source, t->run->store, kernel_source, e) : KL_OK;
    if (err) return err;
    return kl_store_step_put(t->run->store,
                             &(kl_store_step){.run = kl_str_of(t->run->id),
                                              .track = kl_str_of(t->spec->name),
                                              .n = n,
                                              .json = step_json(t, s, source)},
                             e);
}

kl_err kli_steps_end(kli_track *t, kl_error *e) {
    return kl_store_step_cut(t->run->store, t->run->id, t->spec->name, t->steps, e);
}
