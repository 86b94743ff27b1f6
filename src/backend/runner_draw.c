/* runner_draw.c - asks a runner to draw input sets on its device; see wire.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"
#include "runner_impl.h"
#include <string.h>

#define DRAW_NS (120 * 1000000000ll) /* gigabytes a second at the least, like an upload */

/* A word that makes no sense is the runner's answer when the bytes differ; see runner_cuda_draw.c
 * and runner_script.py. */
static kl_err other_bytes(const kl_runner *r, const kl_fault *fault, kl_error *e) {
    kl_fail(e, KL_EIO, r->backend->name, "inputs that a device draws must be the host's: %s",
            fault->text);
    return kl_hint(e, "no verdict of this device can be trusted: update its driver, and look at "
                      "`klineage doctor`");
}

kl_err kli_runner_draw(kl_runner *r, kl_fault *fault, const kli_draw_request *q, bool *drawn,
                       kl_error *e) {
    const kl_msg_draw m = {{KL_MSG_DRAW, KL_WIRE_VERSION}, *q};
    kl_err code = kli_runner_usable(r, fault, e);
    *drawn = false;
    if (code || r->opts.backend != KL_BACKEND_CUDA) return code;
    KL_ASSERT(r->bound && q->n >= 1 && q->first + q->n <= r->layout.n_sets);
    const kli_request request = {&m, sizeof m, NULL, 0, KL_MSG_DONE, DRAW_NS};
    code = kli_runner_ask(r, fault, &request, e);
    if (!code && fault->kind == KL_FAULT_PROTOCOL) return other_bytes(r, fault, e);
    *drawn = fault->kind != KL_FAULT_REFUSED;
    if (!*drawn) *fault = (kl_fault){0};
    return code;
}
