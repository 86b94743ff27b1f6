/* cc.h - driving this host's C compiler: what kernels in C and trusted plugins share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CC_H
#define KL_BACKEND_CC_H
#include "compile.h"

#define KLI_CC_SHARED "kernel.so"

const char *kli_cc(void); /* gcc, or what KLINEAGE_CC names */
/* The end of a command that makes KLI_CC_SHARED of `from`, a file in the folder. */
void kli_cc_link(kli_command *c, const char *from);
/* Run `c` in `dir`; out->path is `makes` there.  What an earlier command warned of stays when this
 * one is silent. */
KL_MUST_USE kl_err kli_cc_run(kl_artefact *out, kl_arena *a, const kli_command *c,
                              const char *makes, const char *dir, kl_error *e);

#endif
