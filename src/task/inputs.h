/* inputs.h - how an input is drawn, for whoever draws it elsewhere: on a device, bit for bit as
 * kl_task_fill does it here.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TASK_INPUTS_H
#define KL_TASK_INPUTS_H
#include "base/draw.h"
#include "task/task.h"

/* The draw of input `tensor`, without its keys.  False, and kind KLI_DRAW_NONE, where draw.h cannot
 * say it: sigmoids, rows of length 1, offsets, files, scalars. */
bool kli_task_draw(kli_draw *out, const kl_task *t, const kl_workload *w, int tensor, double scale);
/* The keys of a tensor in the input set of this seed. */
void kli_draw_seed(kli_draw *d, uint64_t seed, kl_str tensor);

#endif
