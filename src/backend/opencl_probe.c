/* opencl_probe.c - the OpenCL CPU device as the worker's probe prints it.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "opencl_probe.h"
#include "cpu_probe.h"
#include "device_json.h"
#include "opencl_api.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static kl_str text_of_device(const kli_opencl_device *d, kl_arena *a, cl_uint what) {
    char text[512] = "";
    if (d->api->clGetDeviceInfo(d->device, what, sizeof text - 1, text, NULL) != CL_SUCCESS)
        return (kl_str){0};
    return kl_arena_copy(a, kl_str_trim(kl_str_of(text)));
}

static int64_t number_of_device(const kli_opencl_device *d, cl_uint what, size_t bytes) {
    int64_t value = 0; /* little-endian hosts only: a cl_uint fills the low half */
    return d->api->clGetDeviceInfo(d->device, what, bytes, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* "OpenCL 3.0 PoCL 3.1+debian  Linux, ..." -> "pocl-3.1" */
static kl_str short_platform(const kli_opencl_device *d, kl_arena *a) {
    char version[256] = "";
    (void)d->api->clGetPlatformInfo(d->platform, CL_PLATFORM_VERSION_ID, sizeof version - 1,
                                    version, NULL);
    const char *pocl = strcasestr(version, "pocl ");
    if (!pocl) return KL_S("opencl");
    size_t n = 5;
    while (isdigit((unsigned char)pocl[n]) || pocl[n] == '.') n++;
    return kl_arena_printf(a, "pocl-%.*s", (int)(n - 5), pocl + 5);
}

int kli_opencl_probe(void) {
    char why[256] = "";
    kli_opencl_device d;
    kl_arena *a = kl_arena_new();
    kl_device out = {.backend = KL_BACKEND_OPENCL};
    int status = 1;
    if (kli_opencl_open(&d, 0, false, why, sizeof why)) {
        kli_cpu_describe(&out, a);
        kl_str platform = short_platform(&d, a), name = text_of_device(&d, a, CL_DEVICE_NAME_ID);
        out.name = kl_arena_printf(a, "%.*s (%.*s)", KL_STR_ARG(name), KL_STR_ARG(platform));
        out.platform = kl_arena_printf(a, "%.*s/%.*s", KL_STR_ARG(platform), KL_STR_ARG(out.arch));
        out.driver = text_of_device(&d, a, CL_DRIVER_VERSION_ID);
        out.toolchain = platform;
        out.limits.sms = number_of_device(&d, CL_DEVICE_COMPUTE_UNITS_ID, sizeof(cl_uint));
        out.limits.max_threads = number_of_device(&d, CL_DEVICE_WORK_GROUP_SIZE_ID, sizeof(size_t));
        out.limits.smem_max = number_of_device(&d, CL_DEVICE_LOCAL_MEM_ID, sizeof(uint64_t));
        status = kli_device_print(&out);
    } else {
        fprintf(stderr, "%s\n", why);
    }
    kl_arena_free(a);
    return status;
}
