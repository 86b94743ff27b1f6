/* cpu_made.h - what a C kernel was made of (cpu_made.c).  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CPU_MADE_H
#define KL_BACKEND_CPU_MADE_H
#include "compile.h"

/* What cpu_compile.c leaves beside the artefact of a candidate. */
#define KLI_OBJECT_NAME "kernel.o"
#define KLI_HEADER_LIST "kernel.d"
#define KLI_ASSEMBLER_LIST "kernel.as.d"

/* Fills `suspicious` and `refused`.  Errors: KL_EIO, KL_EPARSE when what should lie there does not. */
KL_MUST_USE kl_err kli_inspect_making(kl_artefact *out, kl_arena *a, kl_error *e);

#endif
