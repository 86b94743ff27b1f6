/* triton.h - Triton's compiler as an installed Python package, driven without torch, driver or GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SURFACE_TRITON_H
#define KL_SURFACE_TRITON_H
#include "backend/backend.h"

/* Where it is; strings live as long as the process.  `version` empty: `missing` says what to do. */
typedef struct {
    kl_str version;  /* "3.6.0" */
    kl_str python;   /* program */
    kl_str prefix;   /* folder that holds it and its standard library */
    kl_str site;     /* folder that holds the package */
    kl_str binaries; /* folder of the package's own assemblers */
    kl_str missing;
} kli_triton_toolkit;

/* Asked once a process of $KLINEAGE_PYTHON, else python3: it looks for the package and does not
 * import it. */
const kli_triton_toolkit *kli_triton_toolkit_find(void);

#define KLI_TRITON_FRONTEND "triton_frontend.py" /* beside the programs */

/* Version and front end, for the compile key; empty where there is none. */
kl_str kli_triton_toolchain(kl_arena *a);
kl_str kli_triton_specialize(kl_arena *a, const kl_kernel *k, const kl_plan *plan);
kl_err kli_triton_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e);

#endif
