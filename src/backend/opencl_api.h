/* opencl_api.h - the little of OpenCL 1.2 that we use, loaded at run time; types and numbers
 * declared here, so that building needs no OpenCL headers.  Names follow the standard.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_OPENCL_API_H
#define KL_BACKEND_OPENCL_API_H
#include <klineage/base.h>

typedef struct cl_object *cl_platform, *cl_device, *cl_context, *cl_queue, *cl_program, *cl_kernel,
    *cl_mem;
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_bits;

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_TYPE_CPU_BIT = 1 << 1,
    CL_PLATFORM_VERSION_ID = 0x0901,
    CL_PLATFORM_NAME_ID = 0x0902,
    CL_DEVICE_COMPUTE_UNITS_ID = 0x1002,
    CL_DEVICE_WORK_GROUP_SIZE_ID = 0x1004,
    CL_DEVICE_GLOBAL_MEM_ID = 0x101F,
    CL_DEVICE_LOCAL_MEM_ID = 0x1023,
    CL_DEVICE_NAME_ID = 0x102B,
    CL_DRIVER_VERSION_ID = 0x102D,
    CL_PROGRAM_BINARY_SIZES_ID = 0x1165,
    CL_PROGRAM_BINARIES_ID = 0x1166,
    CL_PROGRAM_BUILD_LOG_ID = 0x1183,
    CL_PROGRAM_BUILD_GLOBAL_VARIABLE_SIZE_ID = 0x1185,
    CL_KERNEL_WORK_GROUP_ID = 0x11B0,
    CL_KERNEL_LOCAL_MEM_ID = 0x11B2,
    CL_KERNEL_PRIVATE_MEM_ID = 0x11B4,
    CL_MEM_READ_WRITE_BIT = 1 << 0,
    CL_MEM_READ_ONLY_BIT = 1 << 2,
    CL_MEM_USE_HOST_PTR_BIT = 1 << 3
};

/* result, name, parameters */
#define KLI_OPENCL_FUNCTIONS(X)                                                                    \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform *, cl_uint *))                               \
    X(cl_int, clGetPlatformInfo, (cl_platform, cl_uint, size_t, void *, size_t *))                 \
    X(cl_int, clGetDeviceIDs, (cl_platform, cl_bits, cl_uint, cl_device *, cl_uint *))             \
    X(cl_int, clGetDeviceInfo, (cl_device, cl_uint, size_t, void *, size_t *))                     \
    X(cl_context, clCreateContext,                                                                 \
      (const intptr_t *, cl_uint, const cl_device *,                                               \
       void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                    \
    X(cl_queue, clCreateCommandQueue, (cl_context, cl_device, cl_bits, cl_int *))                  \
    X(cl_program, clCreateProgramWithSource,                                                       \
      (cl_context, cl_uint, const char **, const size_t *, cl_int *))                              \
    X(cl_program, clCreateProgramWithBinary,                                                       \
      (cl_context, cl_uint, const cl_device *, const size_t *, const unsigned char **, cl_int *,   \
       cl_int *))                                                                                  \
    X(cl_int, clBuildProgram,                                                                      \
      (cl_program, cl_uint, const cl_device *, const char *, void (*)(cl_program, void *),         \
       void *))                                                                                    \
    X(cl_int, clGetProgramBuildInfo, (cl_program, cl_device, cl_uint, size_t, void *, size_t *))   \
    X(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                   \
    X(cl_int, clReleaseProgram, (cl_program))                                                      \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                             \
    X(cl_int, clCreateKernelsInProgram, (cl_program, cl_uint, cl_kernel *, cl_uint *))             \
    X(cl_int, clReleaseKernel, (cl_kernel))                                                        \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                          \
    X(cl_int, clGetKernelWorkGroupInfo, (cl_kernel, cl_device, cl_uint, size_t, void *, size_t *)) \
    X(cl_mem, clCreateBuffer, (cl_context, cl_bits, size_t, void *, cl_int *))                     \
    X(cl_int, clReleaseMemObject, (cl_mem))                                                        \
    X(cl_int, clEnqueueNDRangeKernel,                                                              \
      (cl_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,      \
       const void *, void *))                                                                      \
    X(cl_int, clFinish, (cl_queue))

typedef struct {
#define KLI_OPENCL_SLOT(result, name, parameters) result(*name) parameters;
    KLI_OPENCL_FUNCTIONS(KLI_OPENCL_SLOT)
#undef KLI_OPENCL_SLOT
} kli_opencl;

/* A CPU device of the first platform that has one, with its context and an in-order queue. */
typedef struct {
    const kli_opencl *api;
    cl_platform platform;
    cl_device device;
    cl_context context;
    cl_queue queue;
} kli_opencl_device;

/* NULL after writing why; loads libOpenCL once, calls nothing in it. */
const kli_opencl *kli_opencl_load(char *why, size_t n);
/* Threads and affinity are fixed by the first call into the implementation: `threads` 0 leaves them
 * to it. */
bool kli_opencl_open(kli_opencl_device *d, int threads, bool pinned, char *why, size_t n);
const char *kli_opencl_error(cl_int code); /* "CL_OUT_OF_RESOURCES" or a number */

#endif
