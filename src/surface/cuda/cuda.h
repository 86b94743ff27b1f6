/* cuda.h - the slots of the cuda surface that have a file of their own.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_SURFACE_CUDA_H
#define KL_SURFACE_CUDA_H
#include "backend/compile.h"
#include "kernel/surface.h"

extern const kl_surface kli_surface_cuda;

/* CUDA C++ that is not the kernel's own file: a compiler wrote it.  `headers`: a folder that it may
 * read, NULL for none; `nvrtc`: options that nvcc does not know, NULL-terminated or NULL. */
typedef struct {
    kl_str source;
    const char *headers;
    const char *const *nvrtc;
} kli_cuda_text;

/* To a cubin; which kernels it holds is the caller's business. */
kl_err kli_cuda_compile_text(kl_artefact *out, const kl_compile_job *job, const kli_cuda_text *text,
                             kl_error *e);
/* kernel.ptx of the job's folder to kernel.cubin, by the ptxas at `program`; its report is added to
 * out->log. */
kl_err kli_cuda_assemble(kl_artefact *out, const kl_compile_job *job, const char *program,
                         kl_error *e);
kl_err kli_cuda_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e);
kl_err kli_cuda_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e);
kl_err kli_cuda_describe(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e);

#endif
