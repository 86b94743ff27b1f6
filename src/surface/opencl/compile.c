/* compile.c - OpenCL C to the driver's program binary.
 *
 * The driver is a library, so its compiler runs in a worker process that confines itself before it
 * opens the source.  The binary holds the program and code for any work-group size; code for the
 * size of a plan is made when a runner loads it. Not here: the build itself
 * (backend/opencl_build.c).  SPDX-License-Identifier: Apache-2.0 */
#include "opencl.h"
#include "base/fs.h"
#include <string.h>

static kl_str compile_options_of(kl_arena *a, const kl_kernel *k, const char *const *defines) {
    kl_buf text = {0};
    bool standard = false;
    for (int i = 0; i < k->n_flags; i++) {
        standard = standard || kl_str_starts(k->flags[i], KL_S("-cl-std="));
        kl_buf_printf(&text, "%.*s ", KL_STR_ARG(k->flags[i]));
    }
    if (!standard) kl_buf_add(&text, KL_S("-cl-std=CL1.2 "));
    for (; defines && *defines; defines++) kl_buf_printf(&text, "%s ", *defines);
    kl_str copy = kl_arena_copy(a, kl_buf_str(&text));
    kl_buf_fini(&text);
    return copy;
}

/* On a CPU a program is native code, and these words would write parts of it that no reader of
 * instructions sees.  The compiler refuses them however they are spelled, pasted together from
 * pieces too. */
static const char REFUSED[] = "#pragma GCC poison asm __asm __asm__ ifunc __ifunc__ constructor "
                              "__constructor__ destructor __destructor__\n"
                              "#line 1\n";

static kl_str compile_source_of(kl_arena *a, const kl_kernel *k) {
    return k->trusted ? k->source : kl_arena_printf(a, "%s%.*s", REFUSED, KL_STR_ARG(k->source));
}

static kl_str without_our_trap(kl_arena *a, kl_str log) {
    if (!log.len || !strstr(log.ptr, "poisoned identifier")) return log;
    return kl_arena_printf(
        a,
        "error: a kernel has no inline assembly, no ifunc, no constructor and no destructor\n%.*s",
        KL_STR_ARG(log));
}

kl_err kli_opencl_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    kl_arena *a = job->arena;
    kli_proc_result r;
    const char *argv[] = {kli_worker_path(a).ptr,
                          "build-opencl",
                          "kernel.cl",
                          "kernel.bin",
                          compile_options_of(a, job->kernel, job->defines).ptr,
                          NULL};
    KL_ASSERT(job->dir && job->kernel);
    out->kind = KL_ARTEFACT_OPENCL;
    kl_err code = kli_fs_write(kli_fs_join(a, job->dir, "kernel.cl").ptr,
                               compile_source_of(a, job->kernel), e);
    if (!code) code = kli_compile_run_worker(&r, a, argv, job->dir, e);
    if (code) return code;
    if (r.exit_code == 2)
        return kl_fail(e, KL_ENODEV, "opencl", "%.*s", KL_STR_ARG(kl_str_trim(r.err)));
    kli_compile_took(out, a, &r, job->dir, "kernel.bin");
    out->log = without_our_trap(a, out->log);
    return KL_OK;
}
