/* compare_job.h - what the kernel that compares outputs with answers is given and finds; one text
 * for hosts and devices, as base/draw.h.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_COMPARE_JOB_H
#define KL_BACKEND_COMPARE_JOB_H
#include "base/draw.h"

/* Numbers of kl_dtype, which a device's compiler does not read; runner_cuda_compare.c holds them
 * together. */
enum { KLI_COMPARE_F64 = 1, KLI_COMPARE_F32 = 2, KLI_COMPARE_F16 = 3, KLI_COMPARE_BF16 = 4 };

/* Of one thread, and of all: sums over finite pairs, and how many elements are not certainly right
 * (beyond atol + rtol |want|, or not finite). */
typedef struct {
    double square; /* of what is wanted */
    double sum;    /* of squared differences */
    double max_abs, unsure;
} kli_compare_found;

typedef struct {
    uint64_t got, want, found; /* device addresses; `found` has a place for every thread */
    int64_t n;
    int32_t got_type, want_type;
    double atol, rtol;
} kli_compare_job;

#endif
