/* cublas.c - batched_gemm as a user of cuBLAS writes it: one cublasGemmStridedBatchedEx with float32 accumulation.
 *
 * cuBLAS counts columns first, so the row-major product a*b is asked for as b'*a'.  The workspace is ours: with one
 * set, a call can be captured in a graph without allocating.  TF32 is not used for float32 tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>

/* Written from the published interfaces of cuBLAS and of the CUDA driver; no header of theirs has to be installed. */
enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum { CUBLAS_OP_N = 0, CUBLAS_COMPUTE_32F = 68, CUBLAS_GEMM_DEFAULT = -1 };
typedef int gemm_fn(void *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *a,
                    int a_type, int lda, long long a_stride, const void *b, int b_type, int ldb, long long b_stride,
                    const void *beta, void *c, int c_type, int ldc, long long c_stride, int batches, int compute,
                    int algorithm);

#define WORKSPACE_BYTES ((size_t)32 << 20)   // what cuBLAS itself takes on the largest devices

typedef struct {
    int (*create)(void **handle);
    int (*get_version)(void *handle, int *version);
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    int (*allocate)(unsigned long long *pointer, size_t bytes);   // the driver's cuMemAlloc
    gemm_fn           *gemm;
    void              *handle, *stream;
    unsigned long long workspace;
    char               description[64];
} cublas;

static int say(char *why, size_t why_bytes, const char *text)
{
    snprintf(why, why_bytes, "%s", text);
    return 1;
}

static void *load_library(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    void                    *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int load_functions(cublas *self, void *library, void *driver)
{
    *(void **)&self->create = dlsym(library, "cublasCreate_v2");
    *(void **)&self->get_version = dlsym(library, "cublasGetVersion_v2");
    *(void **)&self->set_stream = dlsym(library, "cublasSetStream_v2");
    *(void **)&self->set_workspace = dlsym(library, "cublasSetWorkspace_v2");
    *(void **)&self->gemm = dlsym(library, "cublasGemmStridedBatchedEx");
    *(void **)&self->allocate = dlsym(driver, "cuMemAlloc_v2");
    return !self->create || !self->get_version || !self->set_stream || !self->set_workspace || !self->gemm ||
           !self->allocate;
}

/* The handle is made on the caller's current context, in prepare: when the library is opened there may be none yet. */
int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    void *library = load_library(), *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return say(why, why_bytes, "libcublas.so.13 is not installed");
    if (!driver) return say(why, why_bytes, "libcuda.so.1 is not installed");
    cublas *self = calloc(1, sizeof *self);
    if (!self) return say(why, why_bytes, "out of memory");
    if (load_functions(self, library, driver)) {
        free(self);
        return say(why, why_bytes, "libcublas lacks a function that this baseline calls");
    }
    *state = self;
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    cublas *self = state;
    int     version = 0;
    if (self->handle) self->get_version(self->handle, &version);
    snprintf(self->description, sizeof self->description, "cuBLAS %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    return self->description;
}

static int type_of(int dtype)
{
    switch (dtype) {
    case KL_PLUGIN_F32:  return CUDA_R_32F;
    case KL_PLUGIN_F16:  return CUDA_R_16F;
    case KL_PLUGIN_BF16: return CUDA_R_16BF;
    default:             return -1;
    }
}

static int use_stream(cublas *self, void *stream)
{
    if (self->stream == stream && self->workspace) return 0;
    if (self->set_stream(self->handle, stream)) return 1;   // forgets the workspace, so it is set again
    if (!self->workspace && self->allocate(&self->workspace, WORKSPACE_BYTES)) return 1;
    self->stream = stream;
    return self->set_workspace(self->handle, (void *)(uintptr_t)self->workspace, WORKSPACE_BYTES);
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    cublas                 *self = state;
    const kl_plugin_tensor *a = &call->tensors[0], *b = &call->tensors[1], *output = &call->tensors[2];
    const float             one = 1.0f, zero = 0.0f;
    int                     type = type_of(a->dtype);
    int64_t                 B = a->dims[0], M = a->dims[1], K = a->dims[2], N = b->dims[2];
    if (use_stream(self, call->stream)) return 1;
    return self->gemm(self->handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)N, (int)M, (int)K, &one, b->data, type, (int)N,
                      K * N, a->data, type, (int)K, M * K, &zero, output->data, type, (int)N, M * N, (int)B,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

/* Ends with one run, so that cuBLAS loads its kernels here and not while a graph is captured. */
int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    cublas *self = state;
    if (call->n_tensors != 3) return say(why, why_bytes, "expects the tensors a, b, output");
    for (int i = 0; i < 3; i++)
        if (type_of(call->tensors[i].dtype) < 0 || call->tensors[i].dtype != call->tensors[0].dtype)
            return say(why, why_bytes, "takes float32, float16 or bfloat16, the same for all three tensors");
    if (!self->handle && self->create(&self->handle)) return say(why, why_bytes, "cublasCreate failed");
    if (kl_plugin_run(state, call)) return say(why, why_bytes, "cublasGemmStridedBatchedEx refused this shape");
    return 0;
}
