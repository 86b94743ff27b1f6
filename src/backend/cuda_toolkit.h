/* cuda_toolkit.h - where the CUDA compilers and headers are on this machine; looks at files, loads
 * nothing. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CUDA_TOOLKIT_H
#define KL_BACKEND_CUDA_TOOLKIT_H
#include <klineage/base.h>

typedef struct {
    kl_str nvcc;    /* program; empty when there is none */
    kl_str root;    /* folder that holds bin/, include/; empty when unknown */
    kl_str include; /* folder of cuda_fp16.h; empty when unknown */
    kl_str nvrtc;   /* libnvrtc beside the headers; empty: leave it to the loader */
} kli_cuda_toolkit;

/* $CUDA_HOME, then nvcc on PATH (links followed), then /usr/local/cuda.  Everything lives in the
 * arena. */
void kli_cuda_toolkit_find(kli_cuda_toolkit *out, kl_arena *a);
/* "nvcc 13.0.88" of `nvcc --version`; empty when it does not run. */
kl_str kli_cuda_nvcc_version(kl_arena *a, const kli_cuda_toolkit *t);

#endif
