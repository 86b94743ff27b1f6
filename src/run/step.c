/* step.c - one gated attempt, written down for tables and figures.  A pass numbers its steps from
 * 0, so that the same line writes the same rows.  SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "base/json.h"

static json_t *step_json(const kli_track *t, const kl_step *s, const char *source) {
    json_t *o = json_object();
    json_object_set_new(o, "workload", kli_json_str(kl_str_of(t->spec->workload)));
    json_object_set_new(o, "policy", kli_json_str(kl_str_of(t->spec->policy)));
    json_object_set_new(o, "phase", kli_json_str(kl_str_of(s->phase ? s->phase : t->base.phase)));
    json_object_set_new(o, "action", kli_json_str(s->action));
    json_object_set_new(o, "locus", kli_json_str(s->locus));
    json_object_set_new(o, "parent", kli_json_str(s->parent));
    json_object_set_new(o, "kernel", kli_json_str(s->kernel));
    json_object_set_new(o, "source", json_string(source));
    json_object_set_new(o, "verdict", kli_json_str(s->verdict_key));
    json_object_set_new(o, "outcome", kli_json_str(s->outcome));
    json_object_set_new(o, "ratio", kli_json_real(s->ratio));
    json_object_set_new(o, "low", kli_json_real(s->low));
    json_object_set_new(o, "high", kli_json_real(s->high));
    json_object_set_new(o, "median_ns", json_integer(s->median_ns));
    json_object_set_new(o, "accepted", json_boolean(s->accepted));
    json_object_set_new(o, "best", json_boolean(s->best));
    json_object_set_new(o, "spent_microusd", json_integer(t->base.spent_microusd));
    json_object_set_new(o, "why", kli_json_str(s->why));
    return o;
}

kl_err kli_effect_step(kl_track *base, const kl_step *s, kl_str kernel_source, kl_error *e) {
    kli_track *t = kli_of(base);
    char source[65] = "";
    int64_t n = t->steps++;
    if (t->journal_only) return KL_OK; /* the process that did the work wrote it */
    kl_err err =
        kernel_source.len ? kl_store_blob_put(source, t->run->store, kernel_source, e) : KL_OK;
    if (err) return err;
    json_t *o = step_json(t, s, source);
    kl_store_step row = {.run = kl_str_of(t->run->id),
                         .track = kl_str_of(t->spec->name),
                         .n = n,
                         .json = kli_json_dump(t->base.arena, o, false)};
    json_decref(o);
    return kl_store_step_put(t->run->store, &row, e);
}

kl_err kli_steps_end(kli_track *t, kl_error *e) {
    return kl_store_step_cut(t->run->store, t->run->id, t->spec->name, t->steps, e);
}
