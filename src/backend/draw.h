/* draw.h - the gate's side of DRAW: input sets of a device are drawn there instead of being brought
 * there.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_DRAW_H
#define KL_BACKEND_DRAW_H
#include "base/draw.h"
#include "backend/backend.h"

typedef struct {
    uint32_t first, n; /* sets */
    uint32_t proof; /* of this set the shared pages hold the ends of each drawn tensor, too: their
                       bytes must be the device's */
    uint32_t in_pages; /* the shared pages hold all n, and can say which input was written to */
    kli_draw draws[KL_MAX_TENSORS]; /* without keys; KLI_DRAW_NONE: brought from the pages */
    uint64_t seeds[KL_MAX_SETS];    /* of these sets; 0 for every other */
} kli_draw_request;
enum {
    KLI_NO_PROOF = KL_MAX_SETS,
    KLI_PROOF_ELEMS = 1 << 18 /* at either end: all of a tensor that is not large */
};

/* In place of kli_runner_upload.  `*drawn` is false where the runner has no kernel for it, or no
 * memory of its own: then nothing was done.  Errors: KL_EIO where the device drew other bytes than
 * the host. */
KL_MUST_USE kl_err kli_runner_draw(kl_runner *r, kl_fault *fault, const kli_draw_request *q,
                                   bool *drawn, kl_error *e);

#endif
