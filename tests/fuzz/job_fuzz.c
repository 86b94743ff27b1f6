/* job_fuzz.c - any bytes as the job.json of a spool, through the function that the worker uses:
 * what it accepts names no path, asks for nothing without bound, and has an identity.
 * SPDX-License-Identifier: Apache-2.0 */
#include "executor/spool_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kernel(const carried_kernel *k) {
    size_t n = 0;
    while (k->params[n]) n++;
    KL_ASSERT(n <= KL_MAX_PARAMS && kli_spool_is_id(k->hash) && k->surface);
}

static void check_bounds(const carried_job *j) {
    const kl_gate_opts *o = &j->opts;
    KL_ASSERT(kli_spool_is_id(j->task) && kli_spool_is_id(kl_str_of(j->id)));
    check_kernel(&j->kernel);
    if (j->opponent.hash.len) check_kernel(&j->opponent);
    KL_ASSERT(o->max_seconds >= 0 && o->max_seconds <= KLI_SPOOL_JOB_SECONDS &&
              o->min_seconds >= 0 && o->min_seconds <= KLI_SPOOL_JOB_SECONDS);
    KL_ASSERT(o->half_width >= 0 && o->half_width <= 1 && o->min_pairs >= 0 &&
              o->abandon_below >= 0);
    KL_ASSERT(!o->require_assurance || o->require_assurance == 'A' || o->require_assurance == 'B');
    KL_ASSERT(!o->against && !o->compile.cache_dir && !o->progress);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    carried_job j, again;
    const kl_str text = {(const char *)data, size};
    const kl_err err = kli_spool_parse(&j, a, text, &e);
    KL_ASSERT(err == KL_OK || (err == KL_EPARSE && e.message[0]));
    if (!err) {
        check_bounds(&j);
        KL_ASSERT(kli_spool_parse(&again, a, text, &e) == KL_OK &&
                  kl_str_eq(kl_str_of(j.id), kl_str_of(again.id)));
    }
    kl_arena_free(a);
    return 0;
}
