/* runner_plugin.c - trusted host plugins: the part that does not care where the data is.
 *
 * A plugin links libc alone and finds its library with dlopen in `open`; failing there means "not
 * installed", which the gate reports as a skipped baseline.  Scalar inputs have no page of their
 * own: their values come with the plan. Not here: device pointers and streams (the CUDA row sets
 * them).  SPDX-License-Identifier: Apache-2.0 */
#include "runner_plugin.h"
#include "layout.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAME(dtype)                                                                                \
    _Static_assert((int)KL_PLUGIN_##dtype == (int)KL_##dtype, "plugin.h has the values of "        \
                                                              "kl_dtype")
SAME(F64);
SAME(F32);
SAME(F16);
SAME(BF16);
SAME(F8E4M3);
SAME(F8E5M2);
SAME(I64);
SAME(I32);
SAME(I16);
SAME(I8);
SAME(U8);
SAME(BOOL);
_Static_assert(KL_PLUGIN_MAX_DIMS == KL_MAX_DIMS, "plugin.h has as many dimensions");

void *kli_dlopen_fd(int fd, bool global) {
    static int next = 64;
    char path[64];
    int own = fcntl(fd, F_DUPFD_CLOEXEC, next);
    if (own < 0) own = fcntl(fd, F_DUPFD_CLOEXEC, 5);
    next = next < 200 ? own + 1 : 64;
    snprintf(path, sizeof path, "/proc/self/fd/%d", own);
    void *library = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    close(own);
    return library;
}

static int runner_plugin_find(const kli_runner_ctx *c, const kli_plugin *p, void *slot,
                              const char *name) {
    void *symbol = dlsym(p->library, name);
    if (!symbol) return kli_fault(c, KL_FAULT_REFUSED, "the plugin does not export %s", name);
    memcpy(slot, &symbol, sizeof symbol);
    return 0;
}

int kli_plugin_load(kli_plugin *p, const kli_runner_ctx *c) {
    char why[256] = "";
    *p = (kli_plugin){0};
    if (!c->trusted)
        return kli_fault(c, KL_FAULT_REFUSED, "plugins are for tasks, not for candidates");
    p->library = kli_dlopen_fd(c->artefact_fd, false);
    if (!p->library) return kli_fault(c, KL_FAULT_REFUSED, "%s", dlerror());
    if (runner_plugin_find(c, p, &p->open, "kl_plugin_open") ||
        runner_plugin_find(c, p, &p->prepare, "kl_plugin_prepare") ||
        runner_plugin_find(c, p, &p->run, "kl_plugin_run") ||
        runner_plugin_find(c, p, &p->describe, "kl_plugin_describe"))
        return 1;
    if (p->open(&p->state, why, sizeof why) != 0)
        return kli_fault(c, KL_FAULT_REFUSED, "%s",
                         why[0] ? why : "the plugin's library is not installed");
    return 0;
}

void kli_plugin_frame_init(kli_plugin_frame *f, const kli_runner_ctx *c, void *stream) {
    *f = (kli_plugin_frame){
        .call = {.n_tensors = (int)c->plan.n_tensors, .stream = stream, .threads = c->threads}};
    f->call.tensors = f->tensors;
    for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        kl_plugin_tensor *out = &f->tensors[i];
        *out = (kl_plugin_tensor){.name = t->name, .dtype = (int)t->dtype, .ndim = t->ndim};
        memcpy(out->dims, t->dims, sizeof out->dims);
        if (t->role != KL_ROLE_SCALAR) continue;
        out->data = f->scalars[i];
        kl_dtype_store((kl_dtype)t->dtype, out->data, 0, t->value);
    }
}

void kli_plugin_close(kli_plugin *p) {
    if (p->library) dlclose(p->library);
    *p = (kli_plugin){0};
}
