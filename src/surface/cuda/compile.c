/* compile.c - CUDA C++ to a cubin for one device, device code only.
 *
 *   1. NVRTC in a confined klineage-worker   0.1 s; skipped where there is no library or no header
 * folder
 *   2. nvcc                                  0.5 s; also asked when NVRTC refuses: only nvcc has
 * the C++ library
 *
 * The artefact is a cubin for exactly this device: no PTX that a driver would compile later, so
 * what is inspected is what runs. Nothing of a source is ever host code: NVRTC has none, and of
 * nvcc's output only the device half is kept. A launch that names a kernel which is not in the
 * cubin is refused here, with the kernels that are. Not here: what the code contains (inspect.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"
#include "backend/cuda_cubin.h"
#include "backend/cuda_toolkit.h"
#include "base/fs.h"
#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

#define CUBIN "kernel.cubin"
#define MAX_CUBIN_BYTES ((size_t)256 << 20)

/* "-std=" also stands for "--std=". */
static bool cuda_compile_has_flag(const kl_kernel *k, const char *prefix) {
    for (int i = 0; i < k->n_flags; i++) {
        kl_str flag = k->flags[i];
        if (kl_str_starts(flag, KL_S("--"))) flag.ptr++, flag.len--;
        if (kl_str_starts(flag, kl_str_of(prefix))) return true;
    }
    return false;
}

/* ---- the two compilers ------------------------------------------------------------------- */

/* nvcc's spelling to NVRTC's.  NULL: NVRTC needs no such flag (host optimisation, what it allows
 * anyway). */
static const char *nvrtc_flag(kl_arena *a, const char *flag) {
    if (strncmp(flag, "-Xptxas=-v", 10) == 0 || strncmp(flag, "-O", 2) == 0) return NULL;
    if (strncmp(flag, "-Xptxas=", 8) == 0)
        return kl_arena_printf(a, "--ptxas-options=%s", flag + 8).ptr;
    if (strstr(flag, "expt-relaxed-constexpr") || strstr(flag, "extended-lambda")) return NULL;
    return flag;
}

static kli_command nvrtc_command(const kl_compile_job *job, const kli_cuda_text *text,
                                 const kli_cuda_toolkit *t) {
    kl_arena *a = job->arena;
    const kl_kernel *k = job->kernel;
    const char *const words[] = {
        kli_worker_path(a).ptr,
        "build-cuda",
        t->nvrtc.len ? t->nvrtc.ptr : "-",
        "kernel.cu",
        CUBIN,
        "kernel.ptx",
        kl_arena_printf(a, "-arch=%.*s", KL_STR_ARG(job->device->arch)).ptr,
        NULL};
    kli_command c = {0};
    kli_command_add_all(&c, words);
    if (!cuda_compile_has_flag(k, "-std=")) kli_command_add(&c, "-std=c++17");
    kli_command_add(&c, "--ptxas-options=-v");
    kli_command_add(&c, "--pre-include=klineage_prelude.h"); /* from cuda_build.c */
    /* A lambda inside a kernel has no annotation, and nvcc takes it for what is around it. */
    kli_command_add(&c, "--device-as-default-execution-space");
    kli_command_add(&c, kl_arena_printf(a, "-I%s", t->include.ptr).ptr);
    const kl_str cccl = kli_fs_join(a, t->include.ptr, "cccl");
    if (kli_fs_is_dir(cccl.ptr)) kli_command_add(&c, kl_arena_printf(a, "-I%s", cccl.ptr).ptr);
    for (int i = 0; i < k->n_flags; i++) {
        const char *flag = nvrtc_flag(a, kl_arena_copy(a, k->flags[i]).ptr);
        if (flag) kli_command_add(&c, flag);
    }
    kli_command_add_all(&c, text->nvrtc);
    kli_command_add_all(&c, job->defines);
    return c;
}

static kli_command nvcc_command(const kl_compile_job *job, const kli_cuda_toolkit *t) {
    static const char *const MAKE[] = {"-Xptxas=-v", "--keep" /* the PTX, for inspection */,
                                       "-cubin", NULL};
    static const char *const FILES[] = {"-o", CUBIN, "kernel.cu", NULL};
    kl_arena *a = job->arena;
    const kl_kernel *k = job->kernel;
    const kl_str arch = job->device->arch;
    const char *code = arch.ptr + (kl_str_starts(arch, KL_S("sm_")) ? 3 : 0);
    kli_command c = {0};
    kli_command_add(&c, t->nvcc.ptr);
    kli_command_add(&c, kl_arena_printf(a, "-gencode=arch=compute_%s,code=sm_%s", code, code).ptr);
    if (!cuda_compile_has_flag(k, "-std=")) kli_command_add(&c, "-std=c++17");
    if (!cuda_compile_has_flag(k, "-O")) kli_command_add(&c, "-O3");
    kli_command_add_all(&c, MAKE);
    for (int i = 0; i < k->n_flags; i++) kli_command_add(&c, kl_arena_copy(a, k->flags[i]).ptr);
    kli_command_add_all(&c, job->defines);
    kli_command_add_all(&c, FILES);
    return c;
}

/* ---- entry points ------------------------------------------------------------------------ */

static bool has_kernel(kl_arena *a, const kl_kernel *k, kl_str cubin, kl_str name) {
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    if (k->cubin.len)
        return kli_cubin_entry(cubin.ptr, cubin.len, kl_arena_copy(a, name).ptr) != NULL;
    kli_cubin_begin(&walk, cubin.ptr, cubin.len);
    while (kli_cubin_next(&walk, &s))
        if (s.kind == KLI_CUBIN_KERNEL && kl_str_eq(kl_str_of(s.name), name)) return true;
    return false;
}

static void list_kernels(kl_buf *to, kl_str cubin) {
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    int n = 0;
    kli_cubin_begin(&walk, cubin.ptr, cubin.len);
    while (kli_cubin_next(&walk, &s))
        if (s.kind == KLI_CUBIN_KERNEL && n++ < 16) kl_buf_printf(to, " %s", s.name);
    if (n == 0) kl_buf_printf(to, " none");
}

static int compile_line_of(const kl_kernel *k, size_t offset) {
    int line = 1;
    for (size_t i = 0; i < offset && i < k->source.len; i++) line += k->source.ptr[i] == '\n';
    return line;
}

/* C++ gives a function without extern "C" a name that no directive can spell. */
static void check_entries(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_str cubin) {
    for (int i = 0; i < k->n_launches; i++) {
        const kl_launch *l = &k->launches[i];
        if (has_kernel(a, k, cubin, l->entry)) continue;
        kl_buf text = {0};
        kl_buf_printf(
            &text,
            "kernel.cu:%d: error: there is no kernel named '%.*s'; the compiled kernels are:",
            compile_line_of(k, l->offset), KL_STR_ARG(l->entry));
        list_kernels(&text, cubin);
        kl_buf_printf(&text, "\nhint: declare it  extern \"C\" __global__ void %.*s(...)\n",
                      KL_STR_ARG(l->entry));
        out->ok = false;
        out->log = kl_arena_copy(a, kl_buf_str(&text));
        kl_buf_fini(&text);
        return;
    }
}

/* ---- compile ----------------------------------------------------------------------------- */

static kl_err compile_run(kl_artefact *out, const kl_compile_job *job, const kli_cuda_text *text,
                          const kli_cuda_toolkit *t, const kli_command *c, kli_proc_result *r,
                          kl_error *e) {
    const bool with_worker = c->words[0] != t->nvcc.ptr;
    const char *readable[4] = {0};
    int n = 0;
    if (text->headers) readable[n++] = text->headers;
    if (t->root.len) readable[n++] = t->root.ptr;
    if (with_worker) readable[n++] = kli_fs_dirname(job->arena, c->words[0]).ptr;
    KL_ASSERT(n < (int)KL_COUNT(readable) && c->n > 1);
    kl_err code = kli_compile_run(r, job->arena, c->words, job->dir, readable, 0, e);
    if (!code) kli_compile_took(out, job->arena, r, job->dir, CUBIN);
    return code;
}

/* `*tried` stays false where there is no NVRTC: whoever calls must have another compiler. */
static kl_err try_nvrtc(kl_artefact *out, const kl_compile_job *job, const kli_cuda_text *text,
                        const kli_cuda_toolkit *t, bool *tried, kl_error *e) {
    kli_proc_result r;
    *tried = false;
    if (!t->include.len || kl_str_starts(job->device->toolchain, KL_S("nvcc")) ||
        !kli_fs_exists(kli_worker_path(job->arena).ptr))
        return KL_OK;
    const kli_command c = nvrtc_command(job, text, t);
    kl_err code = compile_run(out, job, text, t, &c, &r, e);
    *tried = !code && r.exit_code != 2;
    if (!code && out->ok && !kl_str_starts(out->toolchain, KL_S("nvrtc")))
        out->toolchain = KL_S("nvrtc");
    return code;
}

static kl_err try_nvcc(kl_artefact *out, const kl_compile_job *job, const kli_cuda_text *text,
                       const kli_cuda_toolkit *t, kl_error *e) {
    kli_proc_result r;
    const kli_command c = nvcc_command(job, t);
    kl_err code = compile_run(out, job, text, t, &c, &r, e);
    kl_str version = code ? (kl_str){0} : kli_cuda_nvcc_version(job->arena, t);
    if (version.len) out->toolchain = version;
    return code;
}

static kl_err make_cubin(kl_artefact *out, const kl_compile_job *job, const kli_cuda_text *text,
                         kl_error *e) {
    kli_cuda_toolkit toolkit;
    bool tried = false;
    kli_cuda_toolkit_find(&toolkit, job->arena);
    kl_err code = try_nvrtc(out, job, text, &toolkit, &tried, e);
    if (!code && !out->ok && toolkit.nvcc.len) return try_nvcc(out, job, text, &toolkit, e);
    if (code || tried) return code;
    kl_fail(e, KL_ENODEV, "CUDA", "neither NVRTC nor nvcc was found");
    return kl_hint(e, "install the CUDA toolkit, or set CUDA_HOME to its folder");
}

kl_err kli_cuda_compile_text(kl_artefact *out, const kl_compile_job *job, const kli_cuda_text *text,
                             kl_error *e) {
    KL_ASSERT(job->dir && job->kernel && job->device->arch.len);
    out->kind = KL_ARTEFACT_CUBIN;
    kl_err code = kli_fs_write(kli_fs_join(job->arena, job->dir, "kernel.cu").ptr, text->source, e);
    return code ? code : make_cubin(out, job, text, e);
}

kl_err kli_cuda_assemble(kl_artefact *out, const kl_compile_job *job, const char *program,
                         kl_error *e) {
    kl_arena *a = job->arena;
    const char *arch = kl_arena_printf(a, "--gpu-name=%.*s", KL_STR_ARG(job->device->arch)).ptr;
    const char *argv[] = {program, "-v", arch, "kernel.ptx", "-o", CUBIN, NULL};
    const char *readable[] = {kli_fs_dirname(a, program).ptr, NULL};
    const kl_str said = out->log;
    KL_ASSERT(out->ok); /* there is PTX */
    kli_proc_result r;
    kl_err code = kli_compile_run(&r, a, argv, job->dir, readable, 0, e);
    if (code) return code;
    kli_compile_took(out, a, &r, job->dir, CUBIN);
    out->log = kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(said), KL_STR_ARG(out->log));
    return KL_OK;
}

/* Code that was compiled elsewhere, as a captured kernel is: the very bytes that its directive
 * says. It lies beside the kernel's file; a spool's worker finds it among what was carried instead.
 */
static kl_err take_cubin(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    const kl_kernel *k = job->kernel;
    kl_arena *a = job->arena;
    const kl_str name = kl_arena_copy(a, k->cubin);
    const kl_str from = kli_fs_join(a, kli_fs_dirname(a, k->path.ptr).ptr, name.ptr);
    kl_str bytes;
    KL_ASSERT(k->may_be_code && !strchr(name.ptr, '/'));
    out->kind = KL_ARTEFACT_CUBIN;
    out->toolchain = KL_S("captured");
    out->path = kli_fs_join(a, job->dir, CUBIN);
    if (kli_fs_read(&bytes, a, from.ptr, MAX_CUBIN_BYTES, kl_ignored()))
        out->log = kl_arena_printf(a, "error: the code %s is not there\n", from.ptr);
    else if (!kl_str_eq(kl_str_of(kli_hash_of(bytes).hex), k->cubin_hash))
        out->log = kl_arena_printf(a, "error: %s is not the code that was captured\n", from.ptr);
    else if (!kli_cubin_valid(bytes.ptr, bytes.len))
        out->log = kl_arena_printf(a, "error: %s is no cubin\n", from.ptr);
    else
        out->ok = true;
    return out->ok ? kli_fs_write(out->path.ptr, bytes, e) : KL_OK;
}

kl_err kli_cuda_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    const kli_cuda_text text = {.source = job->kernel->source};
    kl_str cubin;
    kl_err code = job->kernel->cubin.len ? take_cubin(out, job, e)
                                         : kli_cuda_compile_text(out, job, &text, e);
    if (code || !out->ok) return code;
    code = kli_fs_read(&cubin, job->arena, out->path.ptr, MAX_CUBIN_BYTES, e);
    if (!code) check_entries(out, job->arena, job->kernel, cubin);
    return code;
}
