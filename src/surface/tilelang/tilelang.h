/* tilelang.h - TileLang's compiler as an installed Python package, as far as CUDA C++; the rest is
 * ours.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SURFACE_TILELANG_H
#define KL_SURFACE_TILELANG_H
#include "surface/python.h"

/* Looked for once a process; its package lives as long. */
const kli_python_front *kli_tilelang_front(void);

/* Version and front end, for the compile key; empty where there is none. */
kl_str kli_tilelang_toolchain(kl_arena *a);
kl_err kli_tilelang_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e);

/* Of lowered code: the first line that TileLang does not write; 0 where there is none. */
int kli_tilelang_foreign_line(kl_str text);
/* PTX without the variables that nothing names. */
void kli_tilelang_without_idle(kl_buf *out, kl_str ptx);

#endif
