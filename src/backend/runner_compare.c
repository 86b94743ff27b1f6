/* runner_compare.c - asks an oracle's runner how far an output is from its answer, and about
 * outputs that stay on a device; see wire.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"
#include "runner_impl.h"
#include <string.h>

#define COMPARE_NS (120 * 1000000000ll) /* gigabytes a second at the least, like an upload */

void kli_runner_keep(kl_runner *r, bool stays) { r->stays = stays; }

bool kli_runner_shares(const kl_runner *r) { return r->bound && r->shares; }

uint64_t kli_runner_print(const kl_runner *r, uint32_t i) {
    KL_ASSERT(i < KL_FETCH_SLOTS);
    return r->reply.prints[i];
}

kl_err kli_runner_look(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                       uint8_t poison, kl_error *e) {
    kl_msg_fetch m = {{KL_MSG_FETCH, KL_WIRE_VERSION}, poison, n, true, {0}};
    const kli_request q = {&m, sizeof m, NULL, 0, KL_MSG_DONE, COMPARE_NS};
    const kl_err code = kli_runner_usable(r, fault, e);
    if (code) return code;
    KL_ASSERT(kli_runner_shares(r) && n <= KL_FETCH_SLOTS);
    memcpy(m.slots, slots, n * sizeof *slots);
    return kli_runner_ask(r, fault, &q, e);
}

kl_err kli_runner_compare(kl_runner *r, kl_fault *fault, const kli_compare_request *q,
                          kli_compare_found *out, int64_t *runs_ns, bool *compared, kl_error *e) {
    kl_msg_compare m = {.head = {KL_MSG_COMPARE, KL_WIRE_VERSION},
                        .tensor = q->tensor,
                        .got_type = (uint32_t)q->got_type,
                        .grows = q->grows,
                        .n = q->n,
                        .atol = q->atol,
                        .rtol = q->rtol,
                        .has_handle = q->made_by != NULL};
    kl_err code = kli_runner_usable(r, fault, e);
    *compared = false;
    *runs_ns = 0;
    if (code || r->opts.script || r->opts.backend != KL_BACKEND_CUDA) return code;
    KL_ASSERT(r->bound && r->opts.trusted && q->n >= 1 && q->n <= KL_FETCH_SLOTS);
    memcpy(m.sets, q->sets, sizeof m.sets);
    memcpy(m.slots, q->slots, sizeof m.slots);
    memcpy(m.offsets, q->offsets, sizeof m.offsets);
    if (q->made_by) memcpy(m.handle, q->made_by->handle, sizeof m.handle);
    const kli_request request = {&m, sizeof m, &q->pages_fd, !q->made_by, KL_MSG_DONE, COMPARE_NS};
    code = kli_runner_ask(r, fault, &request, e);
    *compared = !code && fault->kind == KL_FAULT_NONE;
    if (*compared) memcpy(out, r->reply.found, q->n * sizeof *out);
    if (*compared && r->reply.wall_ns > 0) *runs_ns = r->reply.wall_ns;
    if (fault->kind == KL_FAULT_REFUSED) *fault = (kl_fault){0};
    return code;
}
