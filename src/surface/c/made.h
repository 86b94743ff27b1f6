/* made.h - what a C kernel was made of (made.c).  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SURFACE_C_MADE_H
#define KL_SURFACE_C_MADE_H
#include "c.h"

/* What compile.c leaves beside the artefact of a candidate. */
#define KLI_OBJECT_NAME "kernel.o"
#define KLI_HEADER_LIST "kernel.d"
#define KLI_ASSEMBLER_LIST "kernel.as.d"

/* Fills `suspicious` and `refused`.  Errors: KL_EIO, KL_EPARSE when what should lie there does not.
 */
KL_MUST_USE kl_err kli_inspect_making(kl_artefact *out, kl_arena *a, kl_error *e);

#endif
