/* compare.h - the gate's side of COMPARE: answers of an oracle that runs on a device stay there,
 * and outputs are compared where the answers are.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_COMPARE_H
#define KL_BACKEND_COMPARE_H
#include "compare_job.h"
#include "backend/backend.h"

typedef struct {
    uint32_t tensor, slot; /* of the answer, in the runner that gave it */
    kl_dtype got_type;
    const kl_runner *made_by; /* on whose device the output stayed, */
    int pages_fd;             /* or, without one, the pages that hold it; */
    uint64_t offset;          /* and where, in both */
    double atol, rtol;
    bool grows; /* atol grows with answers whose RMS is above 1 */
} kli_compare_request;

/* `*compared` is false where the runner has no kernel for it, or no memory of its own: then nothing
 * was done. */
KL_MUST_USE kl_err kli_runner_compare(kl_runner *r, kl_fault *fault, const kli_compare_request *q,
                                      kli_compare_found *out, bool *compared, kl_error *e);
/* Outputs of the runs that follow stay on the device until they are fetched, as long as the runner
 * is bound as it is; nothing changes on shared memory. */
void kli_runner_keep(kl_runner *r, bool stays);
/* Can outputs that stay be compared by another runner? */
bool kli_runner_shares(const kl_runner *r);
/* Of a candidate's outputs that stay: those of the i-th slot of the last request, which ran or
 * looked.  Equal for equal bits, whatever lies in the guards. */
uint64_t kli_runner_print(const kl_runner *r, uint32_t i);
/* kli_runner_fetch, for outputs that stay. */
KL_MUST_USE kl_err kli_runner_look(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                                   uint8_t poison, kl_error *e);

#endif
