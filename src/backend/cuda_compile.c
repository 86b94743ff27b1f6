/* cuda_compile.c - CUDA C++ to a cubin for one device, device code only.
 *
 *   1. NVRTC in a confined klineage-worker   0.1 s; skipped where there is no library or no header folder
 *   2. nvcc                                  0.5 s; also asked when NVRTC refuses: only nvcc has the C++ library
 *
 * The artefact is a cubin for exactly this device: no PTX that a driver would compile later, so what is inspected is
 * what runs. Nothing of a source is ever host code: NVRTC has none, and of nvcc's output only the device half is kept.
 * A launch that names a kernel which is not in the cubin is refused here, with the kernels that are.
 * Not here: what the code contains (cuda_inspect.c).  SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include "cuda_cubin.h"
#include "cuda_toolkit.h"
#include "base/fs.h"
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 512
#define MAX_CUBIN_BYTES ((size_t)256 << 20)

typedef struct {
    const char *words[MAX_ARGUMENTS];
    int n;
} command;

static void add(command *c, const char *word) {
    if (c->n < MAX_ARGUMENTS - 1) c->words[c->n++] = word;
}

/* "-std=" also stands for "--std=". */
static bool has_flag(const kl_kernel *k, const char *prefix) {
    for (int i = 0; i < k->n_flags; i++) {
        kl_str flag = k->flags[i];
        if (kl_str_starts(flag, KL_S("--"))) flag.ptr++, flag.len--;
        if (kl_str_starts(flag, kl_str_of(prefix))) return true;
    }
    return false;
}

static void add_defines(command *c, const char *const *defines) {
    for (; defines && *defines; defines++) add(c, *defines);
}

/* ---- the two compilers ----------------------------------------------------------------------------------------------
 */

/* nvcc's spelling to NVRTC's.  NULL: NVRTC needs no such flag (host optimisation, what it allows anyway). */
static const char *nvrtc_flag(kl_arena *a, const char *flag) {
    if (strncmp(flag, "-Xptxas=-v", 10) == 0 || strncmp(flag, "-O", 2) == 0) return NULL;
    if (strncmp(flag, "-Xptxas=", 8) == 0) return kl_arena_printf(a, "--ptxas-options=%s", flag + 8).ptr;
    if (strstr(flag, "expt-relaxed-constexpr") || strstr(flag, "extended-lambda")) return NULL;
    return flag;
}

static void nvrtc_command(command *c, kl_arena *a, const kl_cuda_toolkit *t, const kl_device *d, const kl_kernel *k,
                          const char *const *defines) {
    add(c, kli_worker_path(a).ptr);
    add(c, "build-cuda");
    add(c, t->nvrtc.len ? t->nvrtc.ptr : "-");
    add(c, "kernel.cu");
    add(c, "kernel.cubin");
    add(c, "kernel.ptx");
    add(c, kl_arena_printf(a, "-arch=%.*s", KL_STR_ARG(d->arch)).ptr);
    if (!has_flag(k, "-std=")) add(c, "-std=c++17");
    add(c, "--ptxas-options=-v");
    add(c, "--pre-include=klineage_prelude.h"); /* from cuda_build.c */
    add(c, kl_arena_printf(a, "-I%s", t->include.ptr).ptr);
    kl_str cccl = kl_fs_join(a, t->include.ptr, "cccl");
    if (kl_fs_is_dir(cccl.ptr)) add(c, kl_arena_printf(a, "-I%s", cccl.ptr).ptr);
    for (int i = 0; i < k->n_flags; i++) {
        const char *flag = nvrtc_flag(a, kl_arena_copy(a, k->flags[i]).ptr);
        if (flag) add(c, flag);
    }
    add_defines(c, defines);
}

static void nvcc_command(command *c, kl_arena *a, const kl_cuda_toolkit *t, const kl_device *d, const kl_kernel *k,
                         const char *const *defines) {
    const char *code = d->arch.ptr + (kl_str_starts(d->arch, KL_S("sm_")) ? 3 : 0);
    add(c, t->nvcc.ptr);
    add(c, kl_arena_printf(a, "-gencode=arch=compute_%s,code=sm_%s", code, code).ptr);
    if (!has_flag(k, "-std=")) add(c, "-std=c++17");
    if (!has_flag(k, "-O")) add(c, "-O3");
    add(c, "-Xptxas=-v");
    add(c, "--keep"); /* the PTX, for inspection */
    add(c, "-cubin");
    for (int i = 0; i < k->n_flags; i++) add(c, kl_arena_copy(a, k->flags[i]).ptr);
    add_defines(c, defines);
    add(c, "-o");
    add(c, "kernel.cubin");
    add(c, "kernel.cu");
}

/* ---- entry points ---------------------------------------------------------------------------------------------------
 */

static bool has_kernel(kl_str cubin, kl_str name) {
    kli_cubin_walk walk;
    kli_cubin_symbol s;
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

static int line_of(const kl_kernel *k, size_t offset) {
    int line = 1;
    for (size_t i = 0; i < offset && i < k->source.len; i++) line += k->source.ptr[i] == '\n';
    return line;
}

/* C++ gives a function without extern "C" a name that no directive can spell. */
static void check_entries(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_str cubin) {
    for (int i = 0; i < k->n_launches; i++) {
        const kl_launch *l = &k->launches[i];
        if (has_kernel(cubin, l->entry)) continue;
        kl_buf text = {0};
        kl_buf_printf(&text, "kernel.cu:%d: error: there is no kernel named '%.*s'; the compiled kernels are:",
                      line_of(k, l->offset), KL_STR_ARG(l->entry));
        list_kernels(&text, cubin);
        kl_buf_printf(&text, "\nhint: declare it  extern \"C\" __global__ void %.*s(...)\n", KL_STR_ARG(l->entry));
        out->ok = false;
        out->log = kl_arena_copy(a, kl_buf_str(&text));
        kl_buf_fini(&text);
        return;
    }
}

/* ---- compile --------------------------------------------------------------------------------------------------------
 */

typedef struct {
    kl_artefact *out;
    kl_arena *arena;
    kl_cuda_toolkit toolkit;
    const kl_device *device;
    const kl_kernel *kernel;
    const char *const *defines;
    const char *dir;
} job;

static kl_err run(job *j, const command *c, bool with_worker, kl_proc_result *r, kl_error *e) {
    const char *readable[4] = {0};
    int n = 0;
    if (j->toolkit.root.len) readable[n++] = j->toolkit.root.ptr;
    if (with_worker) readable[n++] = kl_fs_dirname(j->arena, c->words[0]).ptr;
    kl_err code = kli_compile_run(r, j->arena, c->words, j->dir, readable, 0, e);
    if (code) return code;
    j->out->path = kl_fs_join(j->arena, j->dir, "kernel.cubin");
    j->out->ok = r->exit_code == 0 && !r->timed_out && kl_fs_exists(j->out->path.ptr);
    j->out->log = kli_compile_log(j->arena, r, j->dir);
    if (!j->out->ok && !j->out->log.len)
        j->out->log = kl_arena_printf(j->arena, "the compiler failed with status %d and no message\n", r->exit_code);
    return KL_OK;
}

/* `*tried` stays false where there is no NVRTC: whoever calls must have another compiler. */
static kl_err try_nvrtc(job *j, bool *tried, kl_error *e) {
    command c = {0};
    kl_proc_result r;
    *tried = false;
    if (!j->toolkit.include.len || kl_str_starts(j->device->toolchain, KL_S("nvcc")) ||
        !kl_fs_exists(kli_worker_path(j->arena).ptr))
        return KL_OK;
    nvrtc_command(&c, j->arena, &j->toolkit, j->device, j->kernel, j->defines);
    kl_err code = run(j, &c, true, &r, e);
    *tried = !code && r.exit_code != 2;
    if (!code && j->out->ok && !kl_str_starts(j->out->toolchain, KL_S("nvrtc"))) j->out->toolchain = KL_S("nvrtc");
    return code;
}

static kl_err try_nvcc(job *j, kl_error *e) {
    command c = {0};
    kl_proc_result r;
    nvcc_command(&c, j->arena, &j->toolkit, j->device, j->kernel, j->defines);
    kl_err code = run(j, &c, false, &r, e);
    kl_str version = code ? (kl_str){0} : kl_cuda_nvcc_version(j->arena, &j->toolkit);
    if (version.len) j->out->toolchain = version;
    return code;
}

kl_err kl_cuda_compile(kl_artefact *out, kl_arena *a, const kl_device *d, const kl_kernel *k, const char **defines,
                       const char *dir, const kl_compile_opts *o, kl_error *e) {
    job j = {.out = out, .arena = a, .device = d, .kernel = k, .defines = defines, .dir = dir};
    bool tried = false;
    kl_str cubin;
    (void)o;
    if (k->surface->id != KL_SURFACE_CUDA)
        return kl_fail(e, KL_ENODEV, k->surface->name, "this surface is not compiled by the CUDA back end");
    kl_cuda_toolkit_find(&j.toolkit, a);
    out->kind = KL_ARTEFACT_CUBIN;
    kl_err code = kl_fs_write(kl_fs_join(a, dir, "kernel.cu").ptr, k->source, e);
    if (!code) code = try_nvrtc(&j, &tried, e);
    if (!code && !out->ok && j.toolkit.nvcc.len)
        code = try_nvcc(&j, e);
    else if (!code && !tried) {
        kl_fail(e, KL_ENODEV, "CUDA", "neither NVRTC nor nvcc was found");
        return kl_hint(e, "install the CUDA toolkit, or set CUDA_HOME to its folder");
    }
    if (code || !out->ok) return code;
    code = kl_fs_read(&cubin, a, out->path.ptr, MAX_CUBIN_BYTES, e);
    if (!code) check_entries(out, a, k, cubin);
    return code;
}
