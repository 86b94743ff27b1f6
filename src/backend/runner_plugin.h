/* runner_plugin.h - load and call a trusted host plugin (klineage/plugin.h) in a runner.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_RUNNER_PLUGIN_H
#define KL_BACKEND_RUNNER_PLUGIN_H
#include <klineage/plugin.h>
#include "runner_ops.h"

typedef struct {
    void *library, *state;
    int (*open)(void **, char *, size_t);
    int (*prepare)(void *, const kl_plugin_call *, char *, size_t);
    int (*run)(void *, const kl_plugin_call *);
    const char *(*describe)(void *);
} kli_plugin;

/* One call's view of the tensors; `scalars` holds the values that scalar inputs point to. */
typedef struct {
    kl_plugin_call call;
    kl_plugin_tensor tensors[KL_MAX_TENSORS];
    _Alignas(16) char scalars[KL_MAX_TENSORS][16];
} kli_plugin_frame;

/* dlopen of a descriptor under a name that was not used before (the loader knows libraries by
 * name); NULL and dlerror(). */
void *kli_dlopen_fd(int fd, bool global);
/* Nonzero after filling the reply: KL_FAULT_REFUSED when the library behind the plugin is not
 * installed. */
int kli_plugin_load(kli_plugin *p, const kli_runner_ctx *c);
/* Shapes, types and scalar values of the plan; `data` of every tensor is the caller's to set. */
void kli_plugin_frame_init(kli_plugin_frame *f, const kli_runner_ctx *c, void *stream);
void kli_plugin_close(kli_plugin *p);

#endif
