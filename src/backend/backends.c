/* backends.c - the gate's table of backends; runners.c has the other half of each row, for the worker.
 *
 * A new backend is one row here, one row there and the files behind them.  SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"

static const kl_backend ROWS[] = {
    {.id = KL_BACKEND_CPU, .name = "cpu", .on = KL_ON_CPU, .probe_verb = "cpu", .shared_memory = true, .parent_clock = true,
     .compile = kl_cpu_compile, .inspect = kl_cpu_inspect},
    {.id = KL_BACKEND_OPENCL, .name = "opencl", .on = KL_ON_CPU, .probe_verb = "opencl", .shared_memory = true, .parent_clock = true,
     .compile = kl_opencl_compile, .inspect = kl_opencl_inspect},
    {.id = KL_BACKEND_CUDA, .name = "cuda", .on = KL_ON_GPU, .probe_verb = "cuda", .compile = kl_cuda_compile,
     .inspect = kl_cuda_inspect},
};

const kl_backend *kl_backend_each(int i) { return i >= 0 && i < (int)KL_COUNT(ROWS) ? &ROWS[i] : NULL; }

const kl_backend *kl_backend_get(kl_backend_id id) {
    for (size_t i = 0; i < KL_COUNT(ROWS); i++)
        if (ROWS[i].id == id) return &ROWS[i];
    return NULL;
}

const kl_backend *kl_backend_of_surface(kl_surface_id s) {
    switch (s) {
    case KL_SURFACE_C: return kl_backend_get(KL_BACKEND_CPU);
    case KL_SURFACE_OPENCL: return kl_backend_get(KL_BACKEND_OPENCL);
    case KL_SURFACE_CUDA: return kl_backend_get(KL_BACKEND_CUDA);
    case KL_SURFACE_TRITON:
    case KL_SURFACE_TILELANG: /* they parse and plan; nothing compiles them */
    case KL_SURFACE_NONE: break;
    }
    return NULL;
}
