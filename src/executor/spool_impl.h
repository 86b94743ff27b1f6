/* spool_impl.h - what the spool reads from others, for its tests.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_EXECUTOR_SPOOL_IMPL_H
#define KL_EXECUTOR_SPOOL_IMPL_H
#include <klineage/executor.h>

#include "backend/backend.h"

/* A worker on another host that shows no life for so long has lost its job.  Bounds of what a job
 * may say. */
enum {
    KLI_SPOOL_SILENT_SECONDS = 900,
    KLI_SPOOL_JOB_BYTES = 1 << 20,
    KLI_SPOOL_JOB_SECONDS = 3600
};

/* What job.json says, checked: anybody may have written it. */
typedef struct {
    kl_str hash; /* empty: there is none */
    kl_str path; /* as the sender knew it; only shown */
    const kl_surface *surface;
    const char **params; /* ends with NULL */
} carried_kernel;

typedef struct {
    char id[65];
    kl_str task; /* hash */
    carried_kernel kernel, opponent;
    kl_gate_opts opts;
} carried_job;

bool kli_spool_is_id(kl_str s);
/* Errors: KL_EPARSE. */
KL_MUST_USE kl_err kli_spool_parse(carried_job *out, kl_arena *a, kl_str text, kl_error *e);

#endif
