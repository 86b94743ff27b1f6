/* runner_cuda_plugin.c - trusted host plugins in the CUDA runner: the same tensors, as device
 * pointers, on the runner's stream.
 *
 * A plugin's library (cuBLAS, cuDNN) finds the primary context current.  It prepares once per
 * shape, on the stream's first slot, and its calls are captured into graphs like any launch.
 * Plugins are part of a task; a candidate never gets here (runner_plugin.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_cuda.h"
#include <stdio.h>

static void runner_cuda_plugin_describe(const kli_runner_ctx *c) {
    const kli_plugin *p = &kli_cuda_of(c)->plugin;
    const char *text = p->describe(p->state);
    snprintf(c->reply->text, sizeof c->reply->text, "%s", text ? text : "");
}

int kli_cuda_plugin_load(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    if (!r->is_plugin && kli_plugin_load(&r->plugin, c)) return 1;
    r->is_plugin = true;
    runner_cuda_plugin_describe(c);
    return 0;
}

static void fill_frame(kli_runner_ctx *c, kli_plugin_frame *f, uint32_t set, uint32_t slot) {
    kli_plugin_frame_init(f, c, kli_cuda_of(c)->stream);
    for (uint32_t i = 0; i < c->plan.n_tensors; i++)
        if (c->plan.tensors[i].role != KL_ROLE_SCALAR)
            f->tensors[i].data = (void *)(uintptr_t)kli_cuda_tensor(c, i, set, slot);
}

/* Algorithms are chosen on the tensors' real contents where the library tries them, so the memory
 * must hold something finite. */
int kli_cuda_plugin_prepare(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    const kli_cuda_pages *inputs = &r->pages[KLI_INPUTS];
    kli_plugin_frame frame;
    char why[256] = "";
    kl_cu_result error =
        inputs->base ? r->api->fill(inputs->base, 0, inputs->used, r->stream) : KL_CU_OK;
    if (!error) error = kli_cuda_wait(r);
    if (kli_cuda_check(c, error, "preparing a plugin")) return 1;
    fill_frame(c, &frame, 0, 0);
    if (r->plugin.prepare(r->plugin.state, &frame.call, why, sizeof why) != 0)
        return kli_fault(c, KL_FAULT_REFUSED, "%s",
                         why[0] ? why : "the plugin cannot do this shape");
    error = r->api->context_sync();
    if (kli_cuda_check(c, error, "preparing a plugin")) return 1;
    runner_cuda_plugin_describe(c);
    return 0;
}

int kli_cuda_plugin_enqueue(kli_runner_ctx *c, uint32_t set, uint32_t slot) {
    kli_cuda *r = kli_cuda_of(c);
    kli_plugin_frame frame;
    fill_frame(c, &frame, set, slot);
    int code = r->plugin.run(r->plugin.state, &frame.call);
    return code ? kli_fault(c, KL_FAULT_DEVICE, "the plugin's run failed with code %d", code) : 0;
}
