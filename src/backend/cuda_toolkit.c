/* cuda_toolkit.c - see cuda_toolkit.h.  A toolkit may be a folder of its own (/usr/local/cuda), or
 * spread by a package manager: each part is looked for by itself, beside the parts found before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_toolkit.h"
#include "base/fs.h"
#include "base/proc.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static kl_str existing(kl_arena *a, kl_str dir, const char *name) {
    kl_str path = dir.len ? kli_fs_join(a, dir.ptr, name) : (kl_str){0};
    return path.len && kli_fs_exists(path.ptr) ? path : (kl_str){0};
}

/* Links followed: a link on PATH says nothing about where the headers are. */
static kl_str true_path(kl_arena *a, kl_str path) {
    char real[PATH_MAX];
    return path.len && realpath(path.ptr, real) ? kl_arena_copy(a, kl_str_of(real)) : path;
}

static kl_str find_root(kl_arena *a, kl_str nvcc) {
    const char *home = getenv("CUDA_HOME");
    if (home && *home && kli_fs_is_dir(home)) return kl_arena_copy(a, kl_str_of(home));
    if (nvcc.len) return kli_fs_dirname(a, kli_fs_dirname(a, true_path(a, nvcc).ptr).ptr);
    return kli_fs_is_dir("/usr/local/cuda") ? KL_S("/usr/local/cuda") : (kl_str){0};
}

static kl_str cuda_toolkit_find_library(kl_arena *a, kl_str root) {
    static const char *const places[] = {"lib64/libnvrtc.so.13",
                                         "lib/libnvrtc.so.13",
                                         "lib64/libnvrtc.so.12",
                                         "lib/libnvrtc.so.12",
                                         "targets/x86_64-linux/lib/libnvrtc.so.13",
                                         "targets/sbsa-linux/lib/libnvrtc.so.13",
                                         NULL};
    for (int i = 0; places[i]; i++) {
        kl_str path = existing(a, root, places[i]);
        if (path.len) return path;
    }
    return (kl_str){0};
}

void kli_cuda_toolkit_find(kli_cuda_toolkit *out, kl_arena *a) {
    const char *home = getenv("CUDA_HOME");
    *out = (kli_cuda_toolkit){0};
    if (home && *home) out->nvcc = existing(a, kl_str_of(home), "bin/nvcc");
    if (!out->nvcc.len) out->nvcc = kli_fs_find_program(a, "nvcc");
    if (!out->nvcc.len) out->nvcc = existing(a, KL_S("/usr/local/cuda"), "bin/nvcc");
    out->root = find_root(a, out->nvcc);
    if (existing(a, out->root, "include/cuda_fp16.h").len)
        out->include = kli_fs_join(a, out->root.ptr, "include");
    else if (existing(a, out->root, "targets/x86_64-linux/include/cuda_fp16.h").len)
        out->include = kli_fs_join(a, out->root.ptr, "targets/x86_64-linux/include");
    else if (kli_fs_exists("/usr/include/cuda_fp16.h"))
        out->include = KL_S("/usr/include");
    out->nvrtc = cuda_toolkit_find_library(a, out->root);
}

kl_str kli_cuda_nvcc_version(kl_arena *a, const kli_cuda_toolkit *t) {
    const char *argv[] = {t->nvcc.ptr, "--version", NULL};
    kli_proc_spec spec = {.argv = argv, .timeout_ns = 20000000000ll};
    kli_proc_result r;
    if (!t->nvcc.len || kli_proc_run(&r, a, &spec, kl_ignored()) != KL_OK || r.exit_code != 0)
        return (kl_str){0};
    const char *version = strstr(r.out.ptr, ", V");
    if (!version) return KL_S("nvcc");
    size_t n = strspn(version + 3, "0123456789.");
    return kl_arena_printf(a, "nvcc %.*s", (int)n, version + 3);
}
