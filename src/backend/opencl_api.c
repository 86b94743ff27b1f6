/* opencl_api.c - load OpenCL, find its CPU, open it the same way everywhere.
 *
 * PoCL reads its settings at the first call: how many threads, where they are pinned (without it,
 * times of one kernel differ by a third from process to process) and where it caches.  A process
 * that forked after that call has lost the threads. Not here: GPUs (their surface is cuda; an
 * OpenCL GPU would be another row with its own memory). SPDX-License-Identifier: Apache-2.0 */
#include "opencl_api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PLATFORMS 16

const kli_opencl *kli_opencl_load(char *why, size_t n) {
    static kli_opencl api;
    static bool loaded;
    if (loaded) return &api;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return snprintf(why, n, "OpenCL is not installed: %s", dlerror()), NULL;
    void *symbol;
#define TAKE(result, name, parameters)                                                             \
    symbol = dlsym(library, #name);                                                                \
    if (!symbol) return snprintf(why, n, "this libOpenCL.so.1 lacks %s", #name), NULL;             \
    memcpy(&api.name, &symbol, sizeof symbol);
    KLI_OPENCL_FUNCTIONS(TAKE)
#undef TAKE
    loaded = true;
    return &api;
}

static void settle_environment(int threads, bool pinned) {
    char number[16];
    const char *scratch = getenv("KLINEAGE_SCRATCH");
    if (scratch) {
        setenv("POCL_CACHE_DIR", scratch, 1);
        setenv("TMPDIR", scratch, 1);
        setenv("HOME", scratch, 1);
    }
    setenv("POCL_DEVICES", "pthread", 1);
    setenv("POCL_SIGFPE_HANDLER", "0", 1);
    if (threads < 1) return;
    snprintf(number, sizeof number, "%d", threads);
    setenv("POCL_MAX_PTHREAD_COUNT", number, 1);
    setenv("POCL_AFFINITY", pinned ? "0" : "1", 1); /* pinned: its threads inherit our core */
}

static bool find_cpu(kli_opencl_device *d, char *why, size_t n) {
    cl_platform platforms[MAX_PLATFORMS];
    cl_uint n_platforms = 0, n_devices = 0;
    if (d->api->clGetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms) != CL_SUCCESS)
        n_platforms = 0;
    for (cl_uint i = 0; i < n_platforms && i < MAX_PLATFORMS; i++) {
        d->platform = platforms[i];
        if (d->api->clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU_BIT, 1, &d->device,
                                   &n_devices) == CL_SUCCESS &&
            n_devices)
            return true;
    }
    snprintf(why, n, "no OpenCL CPU device among %u platforms", n_platforms);
    return false;
}

bool kli_opencl_open(kli_opencl_device *d, int threads, bool pinned, char *why, size_t n) {
    cl_int code = CL_SUCCESS;
    *d = (kli_opencl_device){.api = kli_opencl_load(why, n)};
    if (!d->api) return false;
    settle_environment(threads, pinned);
    if (!find_cpu(d, why, n)) return false;
    d->context = d->api->clCreateContext(NULL, 1, &d->device, NULL, NULL, &code);
    if (code == CL_SUCCESS)
        d->queue = d->api->clCreateCommandQueue(d->context, d->device, 0, &code);
    if (code != CL_SUCCESS)
        snprintf(why, n, "the OpenCL device does not open: %s", kli_opencl_error(code));
    return code == CL_SUCCESS;
}

const char *kli_opencl_error(cl_int code) {
    static const struct {
        cl_int code;
        const char *name;
    } NAMES[] = {{-1, "CL_DEVICE_NOT_FOUND"},
                 {-2, "CL_DEVICE_NOT_AVAILABLE"},
                 {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
                 {-5, "CL_OUT_OF_RESOURCES"},
                 {-6, "CL_OUT_OF_HOST_MEMORY"},
                 {-11, "CL_BUILD_PROGRAM_FAILURE"},
                 {-42, "CL_INVALID_BINARY"},
                 {-43, "CL_INVALID_BUILD_OPTIONS"},
                 {-46, "CL_INVALID_KERNEL_NAME"},
                 {-49, "CL_INVALID_ARG_INDEX"},
                 {-50, "CL_INVALID_ARG_VALUE"},
                 {-51, "CL_INVALID_ARG_SIZE"},
                 {-52, "CL_INVALID_KERNEL_ARGS"},
                 {-53, "CL_INVALID_WORK_DIMENSION"},
                 {-54, "CL_INVALID_WORK_GROUP_SIZE"},
                 {-55, "CL_INVALID_WORK_ITEM_SIZE"},
                 {-63, "CL_INVALID_GLOBAL_WORK_SIZE"}};
    static char number[32];
    for (size_t i = 0; i < KL_COUNT(NAMES); i++)
        if (NAMES[i].code == code) return NAMES[i].name;
    snprintf(number, sizeof number, "OpenCL error %d", code);
    return number;
}
