/* compare.h - the gate's side of COMPARE: answers of an oracle that runs on a device stay there,
 * and outputs are compared where the answers are.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_COMPARE_H
#define KL_BACKEND_COMPARE_H
#include "compare_job.h"
#include "backend/backend.h"

typedef struct {
    uint32_t tensor, slot; /* of the answer, in the runner that gave it */
    kl_dtype got_type;
    int pages_fd;    /* what holds the output, */
    uint64_t offset; /* and where */
    double atol, rtol;
    bool grows; /* atol grows with answers whose RMS is above 1 */
} kli_compare_request;

/* `*compared` is false where the runner has no kernel for it, or no memory of its own: then nothing
 * was done. */
KL_MUST_USE kl_err kli_runner_compare(kl_runner *r, kl_fault *fault, const kli_compare_request *q,
                                      kli_compare_found *out, bool *compared, kl_error *e);
/* Outputs of the runs that follow stay on the device until they are fetched; nothing changes on
 * shared memory. */
void kli_runner_keep(kl_runner *r, bool stays);

#endif
