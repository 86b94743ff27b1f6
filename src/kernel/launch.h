/* launch.h - what the `shape` slot of a surface works with: the clauses of one launch, evaluated
 * for a shape.
 *
 * Every function evaluates or checks one clause; what it refuses is KL_EINVAL with the clause's
 * line and caret. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_KERNEL_LAUNCH_H
#define KL_KERNEL_LAUNCH_H

#include "kernel/kernel.h"

extern const int64_t kli_cuda_grid_most[3]; /* blocks of a grid on NVIDIA's devices */

const kl_device_limits *
kli_plan_limits(const kli_planner *p); /* zero fields: unknown, do not check */
kl_err kli_plan_fail(kli_planner *p, kl_err code, size_t offset, const char *fmt, ...)
    KL_PRINTF(4, 5);
/* Up to three values from 1 to most[d]; dimensions that are not given become `absent`. */
KL_MUST_USE kl_err kli_plan_sizes(kli_planner *p, const kl_launch *l, kl_clause clause,
                                  const char *what, const int64_t most[3], uint32_t absent,
                                  uint32_t out[3]);
KL_MUST_USE kl_err kli_plan_one(kli_planner *p, const kl_launch *l, kl_clause clause,
                                const char *what, int64_t low, int64_t high, int64_t absent,
                                uint32_t *out);
/* No more than `most` in all (0: any number); `what` is "a block", `of` "threads". */
KL_MUST_USE kl_err kli_plan_threads(kli_planner *p, const kl_launch *l, kl_clause clause,
                                    const uint32_t size[3], int64_t most, const char *what,
                                    const char *of);
/* Each size must be a multiple of the one that it is divided into. */
KL_MUST_USE kl_err kli_plan_divides(kli_planner *p, const kl_launch *l, kl_clause part,
                                    const uint32_t whole_size[3], const uint32_t part_size[3],
                                    const char *whole_name, const char *part_name);

#endif
