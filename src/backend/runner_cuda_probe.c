/* runner_cuda_probe.c - the first GPU as a kl_device: what it is, which compiler will serve it, and
 * what no kernel on it can exceed.
 *
 * Bounds are for refusing the impossible, so they err upward: the fastest unit that may serve a
 * data type (tensor cores, and TF32 for float32), dense, at the highest clock the driver names,
 * plus 5 %.  A chip that the table does not know has no bound. Source of the table: NVIDIA's
 * architecture white papers (operations of one multiprocessor per clock). SPDX-License-Identifier:
 * Apache-2.0 */
#include "cuda_api.h"
#include "cuda_toolkit.h"
#include "device_json.h"
#include "runner_cuda.h"
#include <stdio.h>
#include <string.h>

#define SLACK 1.05
#define L2_BYTES_PER_CLOCK 64.0 /* into one multiprocessor */

/* Multiply and add count as two. */
typedef struct {
    int major, minor;
    double f64, f32, f16, f8, i8;
} chip;

static const chip CHIPS[] = {
    {7, 5, 4, 128, 1024, 0, 2048},          /* Turing */
    {8, 0, 128, 1024, 2048, 0, 4096},       /* A100 */
    {8, 6, 4, 512, 1024, 0, 2048},          /* Ampere, desktop */
    {8, 9, 4, 512, 1024, 2048, 2048},       /* Ada */
    {9, 0, 256, 2048, 4096, 8192, 8192},    /* H100, H200 */
    {10, 0, 256, 4096, 8192, 16384, 16384}, /* B200 */
    {12, 0, 4, 1024, 2048, 4096, 4096},     /* Blackwell, desktop */
};

static void bound(kl_device *d, int major, int minor, double clocks) {
    for (size_t i = 0; i < KL_COUNT(CHIPS); i++) {
        const chip *c = &CHIPS[i];
        if (c->major != major || c->minor != minor) continue;
        const double per_clock[KL_DTYPE_END] = {
            [KL_F64] = c->f64,   [KL_F32] = c->f32,   [KL_F16] = c->f16, [KL_BF16] = c->f16,
            [KL_F8E4M3] = c->f8, [KL_F8E5M2] = c->f8, [KL_I8] = c->i8,   [KL_U8] = c->i8};
        for (int t = 0; t < KL_DTYPE_END; t++) d->peak_flops[t] = per_clock[t] * clocks * SLACK;
    }
    if (major >= 8) d->peak_bytes = L2_BYTES_PER_CLOCK * clocks * SLACK;
}

/* NVRTC needs the folder of cuda_fp16.h to be of use. */
static kl_str choose_toolchain(kl_arena *a, char *cuda, size_t cuda_bytes) {
    kli_cuda_toolkit t;
    char why[256];
    int major = 0, minor = 0;
    kli_cuda_toolkit_find(&t, a);
    const kli_nvrtc_api *nvrtc =
        t.include.len ? kli_nvrtc_api_load(t.nvrtc.len ? t.nvrtc.ptr : NULL, why, sizeof why)
                      : NULL;
    if (nvrtc && nvrtc->version(&major, &minor) == 0) {
        snprintf(cuda, cuda_bytes, "%d.%d", major, minor);
        return kl_arena_printf(a, "nvrtc %d.%d", major, minor);
    }
    kl_str version = kli_cuda_nvcc_version(a, &t);
    if (version.len && sscanf(version.ptr, "nvcc %d.%d", &major, &minor) == 2)
        snprintf(cuda, cuda_bytes, "%d.%d", major, minor);
    return version;
}

static void runner_cuda_probe_read_limits(kl_device *d, const kli_cuda_api *api) {
    size_t memory = 0;
    (void)api->device_memory(&memory, 0);
    d->limits.sms = kli_cuda_attribute(api, 0, KL_CU_ATTR_SMS);
    d->limits.cores = d->limits.sms;
    d->limits.smem_max = kli_cuda_attribute(api, 0, KL_CU_ATTR_SMEM_OPTIN);
    d->limits.max_threads = kli_cuda_attribute(api, 0, KL_CU_ATTR_MAX_THREADS);
    d->limits.memory = (int64_t)memory;
    d->l2_bytes = kli_cuda_attribute(api, 0, KL_CU_ATTR_L2_BYTES);
    d->pageable_access = kli_cuda_attribute(api, 0, KL_CU_ATTR_PAGEABLE_ACCESS) != 0;
}

static void runner_cuda_probe_describe(kl_device *d, kl_arena *a, const kli_cuda_api *api) {
    char name[128] = "", cuda[16] = "";
    int version = 0, major = kli_cuda_attribute(api, 0, KL_CU_ATTR_MAJOR),
        minor = kli_cuda_attribute(api, 0, KL_CU_ATTR_MINOR);
    (void)api->device_name(name, (int)sizeof name, 0);
    (void)api->driver_version(&version);
    snprintf(cuda, sizeof cuda, "%d.%d", version / 1000, version % 1000 / 10);
    d->driver = kl_arena_printf(a, "CUDA driver %s", cuda);
    d->toolchain = choose_toolchain(a, cuda, sizeof cuda);
    /* Hopper and newer have instructions that only their architecture-specific target compiles. */
    const char *arch = kl_arena_printf(a, "sm%d%d%s", major, minor, major >= 9 ? "a" : "").ptr;
    d->name = kl_arena_printf(a, "%s%s", api->fake ? "fake device: " : "", name);
    d->arch = kl_arena_printf(a, "sm_%s", arch + 2);
    d->platform = kl_arena_printf(a, "%s-%s/cuda-%s", api->fake ? "fake" : "nvidia", arch, cuda);
    runner_cuda_probe_read_limits(d, api);
    bound(d, major, minor,
          (double)d->limits.sms * kli_cuda_attribute(api, 0, KL_CU_ATTR_CLOCK_KHZ) * 1e3);
}

int kli_cuda_probe(void) {
    char why[256];
    kl_cu_device device;
    const kli_cuda_api *api = kli_cuda_api_load(why, sizeof why);
    if (!api) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    kl_cu_result error = api->device_get(&device, 0);
    if (error) {
        kli_cuda_error_text(api, error, why, sizeof why);
        fprintf(stderr, "no GPU: %s\n", why);
        return 1;
    }
    kl_arena *a = kl_arena_new();
    kl_device d = {.backend = KL_BACKEND_CUDA};
    runner_cuda_probe_describe(&d, a, api);
    int status = 1;
    if (d.toolchain.len)
        status = kli_device_print(&d);
    else
        fprintf(stderr, "no CUDA compiler: install nvcc or NVRTC, or set CUDA_HOME\n");
    kl_arena_free(a);
    return status;
}
