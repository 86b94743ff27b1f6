/* compile.c - Triton to a cubin for one device, in two confined steps.
 *
 *   1. frontend.py   reads the text, runs Triton's own stages down to PTX, and says what Triton
 *                    decided of each launch (docs/formats/completion.md)
 *   2. ptxas         the package's own, run by us, so that its report reaches the log
 * SPDX-License-Identifier: Apache-2.0 */
#include "triton.h"
#include "base/fs.h"
#include "surface/cuda/cuda.h"

/* Its name comes out of a process in which a candidate's code may have run, so it is one of two. */
static kl_str assembler_of(const kl_compile_job *job, const kli_triton_toolkit *t) {
    static const kl_str NEWER = {"ptxas-blackwell", 15};
    kl_str name;
    const kl_err err = kli_fs_read(
        &name, job->arena, kli_fs_join(job->arena, job->dir, "assembler").ptr, 64, kl_ignored());
    return kli_fs_join(job->arena, t->binaries.ptr,
                       !err && kl_str_eq(name, NEWER) ? NEWER.ptr : "ptxas");
}

kl_err kli_triton_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    const kli_triton_toolkit *t = kli_triton_toolkit_find();
    out->kind = KL_ARTEFACT_CUBIN;
    kl_err code = kli_python_compile(out, job, &t->front, e);
    return code || !out->ok ? code : kli_cuda_assemble(out, job, assembler_of(job, t).ptr, e);
}
