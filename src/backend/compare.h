/* compare.h - the gate's side of COMPARE: answers of an oracle that runs on a device stay there,
 * and outputs are compared where the answers are.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_COMPARE_H
#define KL_BACKEND_COMPARE_H
#include "compare_job.h"
#include "backend/backend.h"

typedef struct {
    uint32_t tensor;
    kl_dtype got_type;
    const kl_runner *made_by; /* on whose device the outputs stayed, */
    int pages_fd;             /* or, without one, the pages that hold them */
    double atol, rtol;
    bool grows;                       /* atol grows with answers whose RMS is above 1 */
    uint32_t n;                       /* outputs, from 1 to KL_FETCH_SLOTS */
    uint32_t sets[KL_FETCH_SLOTS];    /* the runner gives the answer to this set first, unless it is
                                         KLI_NO_SET: then it has it */
    uint32_t slots[KL_FETCH_SLOTS];   /* of the answers, in the runner that gives them */
    uint64_t offsets[KL_FETCH_SLOTS]; /* of the outputs, in their pages or on the device */
} kli_compare_request;

/* Into `out`, one for each output; `*runs_ns` is how long the answers took that were given.
 * `*compared` is false where the runner has no kernel for it, or
 * no memory of its own: then nothing was done. */
KL_MUST_USE kl_err kli_runner_compare(kl_runner *r, kl_fault *fault, const kli_compare_request *q,
                                      kli_compare_found *out, int64_t *runs_ns, bool *compared,
                                      kl_error *e);
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
