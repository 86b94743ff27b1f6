/* opencl.h - the slots of the opencl surface that have a file of their own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SURFACE_OPENCL_H
#define KL_SURFACE_OPENCL_H
#include "backend/compile.h"

kl_err kli_opencl_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e);
kl_err kli_opencl_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e);

#endif
