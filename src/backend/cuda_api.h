/* cuda_api.h - the part of the CUDA driver that a runner uses, found at run time with dlopen.
 *
 * No vendor header is needed to build.  The few types below have the driver's layout (its ABI is
 * stable: a function whose signature changes gets a new suffix), and every function is asked for by
 * its suffixed name, so that one binary serves CUDA 12 and 13.  $KLINEAGE_LIBCUDA names another
 * library than libcuda.so.1: the tests' fake.  Whatever is loaded that way is called "fake" in the
 * platform's name, so that none of its numbers can pass for a measurement.
 *
 * Deliberately not here: the runtime API (cudaMalloc and so on), contexts of our own (vendor
 * libraries share the primary one), managed memory, peer access.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BACKEND_CUDA_API_H
#define KL_BACKEND_CUDA_API_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int kl_cu_result;
typedef int kl_cu_device;
typedef uint64_t kl_cu_ptr;
typedef struct kl_cu_context_st *kl_cu_context;
typedef struct kl_cu_module_st *kl_cu_module;
typedef struct kl_cu_function_st *kl_cu_function;
typedef struct kl_cu_stream_st *kl_cu_stream;
typedef struct kl_cu_event_st *kl_cu_event;
typedef struct kl_cu_graph_st *kl_cu_graph;
typedef struct kl_cu_exec_st *kl_cu_exec;

typedef struct {
    _Alignas(64) uint64_t opaque[16];
} kli_cu_tensormap;

/* Passed by value. */
typedef struct {
    char bytes[64];
} kli_cu_handle;

typedef struct {
    unsigned int id;
    char pad[4];
    union {
        char bytes[64];
        uint64_t align;
        struct {
            unsigned int x, y, z;
        } cluster;
    } value;
} kli_cu_launch_attribute;

typedef struct {
    unsigned int grid[3], block[3], shared_bytes;
    kl_cu_stream stream;
    kli_cu_launch_attribute *attributes;
    unsigned int n_attributes;
} kli_cu_launch_config;

// clang-format off
enum {
    KL_CU_OK = 0, KL_CU_INVALID_VALUE = 1, KL_CU_OUT_OF_MEMORY = 2, KL_CU_NO_DEVICE = 100,
    KL_CU_NO_BINARY = 209,
    KL_CU_NOT_FOUND = 500, KL_CU_ILLEGAL_ADDRESS = 700, KL_CU_OUT_OF_RESOURCES = 701,
    KL_CU_LAUNCH_FAILED = 719,
    KL_CU_NOT_SUPPORTED = 801, KL_CU_INVALID_CLUSTER = 912
};

enum {
    KL_CU_ATTR_MAX_THREADS = 1, KL_CU_ATTR_MAX_GRID_X = 5, KL_CU_ATTR_MAX_GRID_Y = 6,
    KL_CU_ATTR_MAX_GRID_Z = 7,
    KL_CU_ATTR_CLOCK_KHZ = 13, KL_CU_ATTR_SMS = 16, KL_CU_ATTR_L2_BYTES = 38,
    KL_CU_ATTR_SM_THREADS = 39, KL_CU_ATTR_MAJOR = 75, KL_CU_ATTR_MINOR = 76,
    KL_CU_ATTR_PAGEABLE_ACCESS = 88, KL_CU_ATTR_SMEM_OPTIN = 97
};

enum {
    KL_CU_FUNC_MAX_THREADS = 0, KL_CU_FUNC_STATIC_SMEM = 1, KL_CU_FUNC_LOCAL_BYTES = 3,
    KL_CU_FUNC_REGISTERS = 4,
    KL_CU_FUNC_MAX_DYNAMIC_SMEM = 8, KL_CU_FUNC_LARGE_CLUSTERS = 14
};

enum { KL_CU_LIMIT_PRINTF_FIFO = 1, KL_CU_LIMIT_MALLOC_HEAP = 2, KL_CU_LIMIT_PERSISTING_L2 = 6 };
enum { KL_CU_SCHED_SPIN = 1, KL_CU_STREAM_NON_BLOCKING = 1, KL_CU_CAPTURE_RELAXED = 2,
    KL_CU_HOST_MAPPED = 2, KL_CU_HANDLE_LAZY_PEERS = 1,
    KL_CU_LAUNCH_CLUSTER = 4 };

/* One row per function: field, symbol, parameters.  All are required; all return kl_cu_result. */
#define KL_CUDA_FUNCTIONS(X) \
    X(init, "cuInit", (unsigned int flags)) \
    X(driver_version, "cuDriverGetVersion", (int *version)) \
    X(error_name, "cuGetErrorName", (kl_cu_result error, const char **name)) \
    X(error_text, "cuGetErrorString", (kl_cu_result error, const char **text)) \
    X(device_get, "cuDeviceGet", (kl_cu_device * device, int ordinal)) \
    X(device_name, "cuDeviceGetName", (char *name, int bytes, kl_cu_device device)) \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, kl_cu_device device)) \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, kl_cu_device device)) \
    X(primary_flags, "cuDevicePrimaryCtxSetFlags_v2", (kl_cu_device device, unsigned int flags)) \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (kl_cu_context * context, kl_cu_device device)) \
    X(context_use, "cuCtxSetCurrent", (kl_cu_context context)) \
    X(context_limit, "cuCtxSetLimit", (int limit, size_t value)) \
    X(context_sync, "cuCtxSynchronize", (void)) \
    X(context_reset_l2, "cuCtxResetPersistingL2Cache", (void)) \
    X(module_load, "cuModuleLoadData", (kl_cu_module * module, const void *image)) \
    X(module_unload, "cuModuleUnload", (kl_cu_module module)) \
    X(module_function, "cuModuleGetFunction", (kl_cu_function * function, kl_cu_module module, \
    const char *name)) \
    X(module_global, "cuModuleGetGlobal_v2", (kl_cu_ptr * data, size_t *bytes, \
    kl_cu_module module, const char *name)) \
    X(function_get, "cuFuncGetAttribute", (int *value, int attribute, kl_cu_function function)) \
    X(function_set, "cuFuncSetAttribute", (kl_cu_function function, int attribute, int value)) \
    X(function_parameter, "cuFuncGetParamInfo", (kl_cu_function function, size_t i, \
    size_t * offset, size_t * bytes)) \
    X(memory_info, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *total_bytes)) \
    X(memory_alloc, "cuMemAlloc_v2", (kl_cu_ptr * data, size_t bytes)) \
    X(memory_free, "cuMemFree_v2", (kl_cu_ptr data)) \
    X(host_alloc, "cuMemHostAlloc", (void **data, size_t bytes, unsigned int flags)) \
    X(host_free, "cuMemFreeHost", (void *data)) \
    X(handle_get, "cuIpcGetMemHandle", (kli_cu_handle * handle, kl_cu_ptr data)) \
    X(handle_open, "cuIpcOpenMemHandle_v2", (kl_cu_ptr * data, kli_cu_handle handle, \
    unsigned int flags)) \
    X(handle_close, "cuIpcCloseMemHandle", (kl_cu_ptr data)) \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (kl_cu_ptr to, const void *from, size_t bytes, \
    kl_cu_stream stream)) \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, kl_cu_ptr from, size_t bytes, \
    kl_cu_stream stream)) \
    X(fill_rows, "cuMemsetD2D8Async", \
      (kl_cu_ptr to, size_t pitch, unsigned char byte, size_t width, size_t height, \
      kl_cu_stream stream)) \
    X(fill, "cuMemsetD8Async", (kl_cu_ptr to, unsigned char byte, size_t bytes, \
    kl_cu_stream stream)) \
    X(stream_new, "cuStreamCreate", (kl_cu_stream * stream, unsigned int flags)) \
    X(stream_sync, "cuStreamSynchronize", (kl_cu_stream stream)) \
    X(capture_begin, "cuStreamBeginCapture_v2", (kl_cu_stream stream, int mode)) \
    X(capture_end, "cuStreamEndCapture", (kl_cu_stream stream, kl_cu_graph * graph)) \
    X(event_new, "cuEventCreate", (kl_cu_event * event, unsigned int flags)) \
    X(event_record, "cuEventRecord", (kl_cu_event event, kl_cu_stream stream)) \
    X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, kl_cu_event first, \
    kl_cu_event second)) \
    X(graph_nodes, "cuGraphGetNodes", (kl_cu_graph graph, void **nodes, size_t *n)) \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (kl_cu_exec * exec, kl_cu_graph graph, \
    unsigned long long flags)) \
    X(graph_upload, "cuGraphUpload", (kl_cu_exec exec, kl_cu_stream stream)) \
    X(graph_launch, "cuGraphLaunch", (kl_cu_exec exec, kl_cu_stream stream)) \
    X(graph_free, "cuGraphDestroy", (kl_cu_graph graph)) \
    X(exec_free, "cuGraphExecDestroy", (kl_cu_exec exec)) \
    X(launch, "cuLaunchKernelEx", \
      (const kli_cu_launch_config *config, kl_cu_function function, void **arguments, \
      void **extra)) \
    X(tensormap_encode, "cuTensorMapEncodeTiled", \
      (kli_cu_tensormap * map, int dtype, uint32_t rank, kl_cu_ptr base, const uint64_t *dims, \
      const uint64_t *strides, \
       const uint32_t *box, const uint32_t *element_strides, int interleave, int swizzle, int l2, \
       int oob_fill))
// clang-format on

typedef struct {
    void *library;
    bool fake; /* came through $KLINEAGE_LIBCUDA */
#define X(field, symbol, parameters) kl_cu_result(*field) parameters;
    KL_CUDA_FUNCTIONS(X)
#undef X
} kli_cuda_api;

/* Load once per process; later calls return the same table.  NULL with a reason in `why` when there
 * is no usable driver. */
const kli_cuda_api *kli_cuda_api_load(char *why, size_t why_bytes);
/* 0 where the driver does not say. */
int kli_cuda_attribute(const kli_cuda_api *api, kl_cu_device device, int which);
/* "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" into `text`. */
void kli_cuda_error_text(const kli_cuda_api *api, kl_cu_result error, char *text,
                         size_t text_bytes);

/* ---- NVRTC, the compiler as a library ---------------------------------------------------- */

typedef struct kl_nvrtc_program_st *kl_nvrtc_program;

#define KL_NVRTC_FUNCTIONS(X)                                                                      \
    X(version, "nvrtcVersion", (int *major, int *minor))                                           \
    X(program_new, "nvrtcCreateProgram",                                                           \
      (kl_nvrtc_program * program, const char *source, const char *name, int n_headers,            \
       const char *const *headers, const char *const *header_names))                               \
    X(program_free, "nvrtcDestroyProgram", (kl_nvrtc_program * program))                           \
    X(compile, "nvrtcCompileProgram",                                                              \
      (kl_nvrtc_program program, int n_options, const char *const *options))                       \
    X(log_bytes, "nvrtcGetProgramLogSize", (kl_nvrtc_program program, size_t * bytes))             \
    X(log, "nvrtcGetProgramLog", (kl_nvrtc_program program, char *log))                            \
    X(cubin_bytes, "nvrtcGetCUBINSize", (kl_nvrtc_program program, size_t * bytes))                \
    X(cubin, "nvrtcGetCUBIN", (kl_nvrtc_program program, char *cubin))                             \
    X(ptx_bytes, "nvrtcGetPTXSize", (kl_nvrtc_program program, size_t * bytes))                    \
    X(ptx, "nvrtcGetPTX", (kl_nvrtc_program program, char *ptx))

typedef struct {
    void *library;
#define X(field, symbol, parameters) int(*field) parameters;
    KL_NVRTC_FUNCTIONS(X)
#undef X
} kli_nvrtc_api;

/* As above.  $KLINEAGE_LIBNVRTC names a file, or "none" to do without; else `path` unless it is
 * NULL, else the loader's own search. */
const kli_nvrtc_api *kli_nvrtc_api_load(const char *path, char *why, size_t why_bytes);

#endif
