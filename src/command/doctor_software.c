/* doctor_software.c - compilers, Python and the libraries behind baselines.
 *
 * Libraries are looked for, not loaded: loading a vendor's library starts threads and drivers, and
 * this process does neither.  That a library is there does not mean that it works; the gate says so
 * when a baseline does not. SPDX-License-Identifier: Apache-2.0 */
#include "command/doctor.h"
#include "base/fs.h"
#include "base/proc.h"
#include <stdlib.h>
#include <string.h>

#define DOCTOR_SOFTWARE_PROBE_NS                                                                   \
    10000000000 /* a compiler on a cold network file system takes seconds to say its version */

static const char cuda_mend[] = "install CUDA 12.4 or newer (developer.nvidia.com/cuda-downloads), "
                                "then put its bin folder on PATH";

void kli_doctor_add(kli_doctor *d, const char *group, const char *name, kli_doctor_state state,
                    kl_str found, const char *mend) {
    KL_ASSERT(d->n_rows < KL_DOCTOR_MAX_ROWS);
    d->rows[d->n_rows++] =
        (kli_doctor_row){group, name, state, found, state == KL_DOCTOR_OK ? NULL : mend};
}

/* ---- programs ---------------------------------------------------------------------------- */

static kl_str run_for_text(kl_arena *a, const char *const *argv) {
    kli_proc_result r = {0};
    kli_proc_spec spec = {.argv = argv, .timeout_ns = DOCTOR_SOFTWARE_PROBE_NS};
    if (kli_proc_run(&r, a, &spec, kl_ignored()) || r.exit_code != 0) return (kl_str){0};
    return kl_str_trim(r.out);
}

/* The line of a version text that holds a number; nvcc and cuobjdump begin with a copyright. */
static kl_str version_line(kl_str text) {
    const char *release = text.len ? memmem(text.ptr, text.len, "release ", 8) : NULL;
    if (release) text = (kl_str){release, text.len - (size_t)(release - text.ptr)};
    const char *newline = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    return newline ? (kl_str){text.ptr, (size_t)(newline - text.ptr)} : text;
}

/* On PATH, or where CUDA installs itself. */
static kl_str find_program(kl_arena *a, const char *name) {
    kl_str path = kli_fs_find_program(a, name);
    const char *home = getenv("CUDA_HOME");
    const char *places[] = {home && *home ? home : "/usr/local/cuda", "/usr/local/cuda"};
    for (size_t i = 0; i < KL_COUNT(places) && !path.len; i++) {
        kl_str candidate = kl_arena_printf(a, "%s/bin/%s", places[i], name);
        if (kli_fs_exists(candidate.ptr)) path = candidate;
    }
    return path;
}

static bool doctor_software_program(kli_doctor *d, const char *group, const char *name,
                                    const char *mend) {
    kl_str path = find_program(d->arena, name);
    if (!path.len)
        return kli_doctor_add(d, group, name, KL_DOCTOR_MISSING, KL_S("not found"), mend), false;
    const char *argv[] = {path.ptr, "--version", NULL};
    kl_str version = version_line(run_for_text(d->arena, argv));
    if (!version.len)
        return kli_doctor_add(d, group, name, KL_DOCTOR_MISSING,
                              kl_arena_printf(d->arena, "%s does not run", path.ptr), mend),
               false;
    kli_doctor_add(d, group, name, KL_DOCTOR_OK, version, NULL);
    return true;
}

/* ---- libraries --------------------------------------------------------------------------- */

static void read_loader_cache(kli_doctor *d) {
    const char *const places[] = {"/sbin/ldconfig", "/usr/sbin/ldconfig"};
    for (size_t i = 0; i < KL_COUNT(places) && !d->loader_cache.len; i++) {
        const char *argv[] = {places[i], "-p", NULL};
        if (kli_fs_exists(places[i])) d->loader_cache = run_for_text(d->arena, argv);
    }
}

static kl_str find_in_cache(const kli_doctor *d, const char *prefix) {
    kl_str rest = d->loader_cache;
    const char *hit;
    while (rest.len && (hit = memmem(rest.ptr, rest.len, prefix, strlen(prefix)))) {
        const char *line_end = memchr(hit, '\n', rest.len - (size_t)(hit - rest.ptr));
        size_t line = line_end ? (size_t)(line_end - hit) : rest.len - (size_t)(hit - rest.ptr);
        const char *arrow = memmem(hit, line, "=> ", 3);
        bool starts = hit == d->loader_cache.ptr || strchr("\t ", hit[-1]);
        if (starts && arrow) return (kl_str){arrow + 3, line - (size_t)(arrow + 3 - hit)};
        rest = (kl_str){hit + line, rest.len - (size_t)(hit + line - rest.ptr)};
    }
    return (kl_str){0};
}

static kl_str find_in_folder(kl_arena *a, const char *dir, const char *prefix) {
    kl_str *names;
    size_t n = 0;
    if (!kli_fs_is_dir(dir) || kli_fs_list(&names, &n, a, dir, kl_ignored())) return (kl_str){0};
    for (size_t i = 0; i < n; i++)
        if (kl_str_starts(names[i], kl_str_of(prefix))) return kli_fs_join(a, dir, names[i].ptr);
    return (kl_str){0};
}

static kl_str doctor_software_find_library(kli_doctor *d, const char *prefix) {
    kl_str found = find_in_cache(d, prefix);
    const char *home = getenv("CUDA_HOME"), *path = getenv("LD_LIBRARY_PATH");
    kl_str folders = kl_arena_printf(d->arena, "%s:%s/lib64:/usr/local/cuda/lib64",
                                     path ? path : "", home ? home : "/usr/local/cuda");
    for (char *save = NULL, *dir = strtok_r((char *)folders.ptr, ":", &save); dir && !found.len;
         dir = strtok_r(NULL, ":", &save))
        found = find_in_folder(d->arena, dir, prefix);
    return found;
}

static bool library(kli_doctor *d, const char *group, const char *name, const char *prefix,
                    const char *mend) {
    kl_str path = doctor_software_find_library(d, prefix);
    kli_doctor_add(d, group, name, path.len ? KL_DOCTOR_OK : KL_DOCTOR_MISSING,
                   path.len ? path : KL_S("not found"), mend);
    return path.len != 0;
}

/* ---- groups ------------------------------------------------------------------------------ */

void kli_doctor_compilers(kli_doctor *d) {
    read_loader_cache(d);
    bool gcc = doctor_software_program(d, "compilers", "gcc", "apt-get install gcc libc6-dev");
    bool clang = doctor_software_program(d, "compilers", "clang",
                                         "apt-get install clang (optional: gcc is enough)");
    doctor_software_program(d, "compilers", "objdump", "apt-get install binutils");
    doctor_software_program(d, "compilers", "nvcc", cuda_mend);
    library(d, "compilers", "NVRTC", "libnvrtc.so", cuda_mend);
    doctor_software_program(
        d, "compilers", "cuobjdump",
        "optional, package cuda-cuobjdump; without it features of CUDA kernels are read from PTX");
    library(d, "compilers", "libclang", "libclang-1",
            "optional, for klineage init: apt-get install libclang-dev");
    d->has_compiler = gcc || clang;
}

static void torch(kli_doctor *d) {
    /* Importing torch takes seconds; its metadata says as much. */
    static const char script[] = "import importlib.metadata as m; print(m.version('torch'))";
    const char *chosen = getenv("KLINEAGE_PYTHON");
    kl_str python = kli_fs_find_program(d->arena, chosen && *chosen ? chosen : "python3");
    const char *argv[] = {python.ptr, "-c", script, NULL};
    kl_str version = python.len ? run_for_text(d->arena, argv) : (kl_str){0};
    kli_doctor_add(d, "libraries", "torch", version.len ? KL_DOCTOR_OK : KL_DOCTOR_MISSING,
                   version.len ? version : KL_S("not found"),
                   "python3 -m pip install torch (for script baselines, and tasks whose only "
                   "oracle is Python)");
}

void kli_doctor_libraries(kli_doctor *d) {
    library(d, "libraries", "OpenBLAS", "libopenblas.so", "apt-get install libopenblas0-pthread");
    library(d, "libraries", "oneDNN", "libdnnl.so",
            "apt-get install libdnnl2 (Debian 12) or libdnnl3 (Ubuntu 24.04)");
    library(d, "libraries", "cuBLAS", "libcublas.so", cuda_mend);
    library(d, "libraries", "cuDNN", "libcudnn.so",
            "install cuDNN 9 (developer.nvidia.com/cudnn-downloads)");
    doctor_software_program(d, "libraries", "python3", "apt-get install python3");
    torch(d);
}
