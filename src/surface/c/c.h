/* c.h - the slots of the c surface that have a file of their own.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_SURFACE_C_H
#define KL_SURFACE_C_H
#include "backend/compile.h"

kl_err kli_c_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e);
const char *const *kli_c_build_flags(kl_arena *a, const kl_kernel *k);
kl_err kli_c_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e);

#endif
