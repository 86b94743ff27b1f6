/* look.h - one look at a spool.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXECUTOR_LOOK_H
#define KL_EXECUTOR_LOOK_H
#include <klineage/executor.h>

typedef struct {
    kl_str id, host;
    int64_t pid;
    kl_str slurm;     /* the number of its job there; empty: Slurm did not start it */
    int64_t silent_s; /* since its last sign of life */
} kli_spool_taken;
typedef struct {
    kl_str name; /* "NVIDIA H100 80GB HBM3" */
    int64_t verdicts;
} kli_spool_device;
typedef struct {
    kl_str dir;
    size_t waiting, done, failed, of_last_minute; /* failed: of those done, without a verdict */
    kli_spool_taken *workers;
    size_t n_workers;
    kli_spool_device *devices; /* of the newest verdicts */
    size_t n_devices;
} kli_spool_state;
/* Errors: KL_ENOENT. */
KL_MUST_USE kl_err kli_spool_look(kli_spool_state *out, kl_arena *a, const char *dir, kl_error *e);

#endif
