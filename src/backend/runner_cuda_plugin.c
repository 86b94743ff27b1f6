/* runner_cuda_plugin.c - trusted host plugins in the CUDA runner: the same tensors, as device
 * pointers, on the runner's stream.
 *
 * A plugin's library (cuBLAS, cuDNN) finds the primary context current.  It prepares once per
 * shape, on the stream's first slot, and its calls are captured into graphs like any launch.
 * Plugins are part of a task; a candidate never gets here (runner_plugin.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_cuda.h"
#include "layout.h"
#include <stdio.h>

static void runner_cuda_plugin_describe(const kli_plugin *p, kl_msg_reply *reply) {
    const char *text = p->describe(p->state);
    (void)snprintf(reply->text, sizeof reply->text, "%s", text ? text : "");
}

int kli_cuda_plugin_load(kli_runner_ctx *c, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    if (kli_plugin_load(&r->plugin, c, reply)) return 1;
    r->is_plugin = true;
    runner_cuda_plugin_describe(&r->plugin, reply);
    return 0;
}

static void fill_frame(kli_runner_ctx *c, kli_plugin_frame *f, uint32_t set, uint32_t slot) {
    kli_plugin_frame_init(f, c, kli_cuda_of(c)->stream);
    for (uint32_t i = 0; i < c->plan.n_tensors; i++)
        if (c->plan.tensors[i].role != KLI_ROLE_SCALAR)
            f->tensors[i].data = (void *)(uintptr_t)kli_cuda_tensor(c, i, set, slot);
}

/* Algorithms are chosen on the tensors' real contents where the library tries them, so the memory
 * must hold something finite. */
int kli_cuda_plugin_prepare(kli_runner_ctx *c, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kli_plugin_frame frame;
    char why[256] = "";
    kl_cu_result error =
        r->inputs ? r->api->fill(r->inputs, 0, c->layout.set_bytes * c->layout.n_sets, r->stream)
                  : KL_CU_OK;
    if (!error) error = r->api->stream_sync(r->stream);
    if (error) return kli_cuda_fail(c, reply, error, "preparing a plugin");
    fill_frame(c, &frame, 0, 0);
    if (r->plugin.prepare(r->plugin.state, &frame.call, why, sizeof why) != 0)
        return kli_reply_fault(reply, KL_FAULT_REFUSED, 0, "%s",
                               why[0] ? why : "the plugin cannot do this shape");
    error = r->api->context_sync();
    if (error) return kli_cuda_fail(c, reply, error, "preparing a plugin");
    runner_cuda_plugin_describe(&r->plugin, reply);
    return 0;
}

int kli_cuda_plugin_enqueue(kli_runner_ctx *c, uint32_t set, uint32_t slot, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kli_plugin_frame frame;
    fill_frame(c, &frame, set, slot);
    int code = r->plugin.run(r->plugin.state, &frame.call);
    return code ? kli_reply_fault(reply, KL_FAULT_DEVICE, 0, "the plugin's run failed with code %d",
                                  code)
                : 0;
}
