/* device_key.c - may the last answer about the GPU be given again?
 *
 *   this boot      boot_id: drivers, limits and partitions of a running machine
 *   the driver     its version, which a new module changes without a boot
 *   the GPUs       UUIDs of all, and of the partitions of each
 *   who asks       this build of the worker, what makes other GPUs visible, which compilers are
 * found
 *
 * Asking starts a process with a device context, a third of a second; this reads some files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device_key.h"
#include "compile.h"
#include "cuda_toolkit.h"
#include "base/fs.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const VARIABLES[] = {
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "CUDA_HOME",
    "LD_LIBRARY_PATH",      "KLINEAGE_LIBCUDA",  "KLINEAGE_LIBNVRTC"};

static kl_str proc_text(kl_arena *a, const char *path) {
    kl_str text = {0};
    return kli_fs_read(&text, a, path, 1 << 16, kl_ignored()) == KL_OK ? text : (kl_str){0};
}

/* "GPU UUID: GPU-1b9c..."; a GPU that nobody has opened yet shows question marks. */
static bool add_gpu(kl_buf *key, kl_arena *a, const char *path) {
    const kl_str text = proc_text(a, path);
    const char *at = text.len ? strstr(text.ptr, "GPU UUID:") : NULL;
    const size_t n = at ? strcspn(at, "\n") : 0;
    if (!at || memchr(at, '?', n)) return false;
    kl_buf_printf(key, "%.*s\n", (int)n, at);
    return true;
}

static bool add_gpus(kl_buf *key, kl_arena *a, const char *proc) {
    glob_t found = {0};
    const char *pattern = kli_fs_join(a, proc, "driver/nvidia/gpus/*/information").ptr;
    bool known = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    for (size_t i = 0; i < found.gl_pathc && known; i++) known = add_gpu(key, a, found.gl_pathv[i]);
    globfree(&found);
    return known;
}

static void add_partitions(kl_buf *key, kl_arena *a, const char *proc) {
    glob_t found = {0};
    const char *pattern = kli_fs_join(a, proc, "driver/nvidia/capabilities/gpu*/mig/gi*/ci*").ptr;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) kl_buf_printf(key, "%s\n", found.gl_pathv[i]);
    globfree(&found);
}

/* A file by its place and its last change. */
static void key_file(kl_buf *key, const char *path) {
    struct stat s = {0};
    if (!path || stat(path, &s) != 0) return;
    kl_buf_printf(key, "%s %lld %lld.%09ld\n", path, (long long)s.st_size,
                  (long long)s.st_mtim.tv_sec, (long)s.st_mtim.tv_nsec);
}

static void add_asker(kl_buf *key, kl_arena *a) {
    kli_cuda_toolkit t;
    kli_cuda_toolkit_find(&t, a);
    key_file(key, kli_worker_path(a).ptr);
    key_file(key, t.nvcc.ptr);
    key_file(key, t.include.ptr);
    key_file(key, t.nvrtc.ptr);
    for (size_t i = 0; i < KL_COUNT(VARIABLES); i++) {
        const char *value = getenv(VARIABLES[i]);
        kl_buf_printf(key, "%s=%s\n", VARIABLES[i], value ? value : "");
    }
}

kl_str kli_device_key(kl_arena *a, const char *proc) {
    const kl_str driver = proc_text(a, kli_fs_join(a, proc, "driver/nvidia/version").ptr),
                 boot = proc_text(a, kli_fs_join(a, proc, "sys/kernel/random/boot_id").ptr);
    kl_buf key = {0};
    if (!driver.len || !boot.len) return (kl_str){0};
    kl_buf_printf(&key, "%.*s\n%.*s\n", KL_STR_ARG(driver), KL_STR_ARG(boot));
    const bool known = add_gpus(&key, a, proc);
    add_partitions(&key, a, proc);
    add_asker(&key, a);
    const kl_str text = known ? kl_arena_copy(a, kl_buf_str(&key)) : (kl_str){0};
    kl_buf_fini(&key);
    return text;
}
