/* triton.h - Triton's compiler as an installed Python package, driven without torch, driver or GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SURFACE_TRITON_H
#define KL_SURFACE_TRITON_H
#include "surface/python.h"

/* Lives as long as the process. */
typedef struct {
    kli_python_front front;
    kl_str binaries; /* folder of the package's own assemblers */
} kli_triton_toolkit;

/* Looked for once a process. */
const kli_triton_toolkit *kli_triton_toolkit_find(void);

/* Version and front end, for the compile key; empty where there is none. */
kl_str kli_triton_toolchain(kl_arena *a);
kl_err kli_triton_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e);

#endif
