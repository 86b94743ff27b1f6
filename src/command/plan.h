/* plan.h - what a kernel launches at a shape, for people and for programs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_PLAN_H
#define KL_COMMAND_PLAN_H
#include <jansson.h>
#include "kernel/kernel.h"

/* Launches and buffers, as lines added to `text` and as a new object. */
json_t *kli_plan_json(kl_buf *text, const kl_plan *p, kl_str workload);

#endif
