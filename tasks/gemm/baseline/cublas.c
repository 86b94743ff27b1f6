/* cuBLAS: what a user of an NVIDIA GPU calls for a matrix product.
 *
 * One cublasGemmEx with float32 accumulation.  cuBLAS is column-major, so y^T (N x M) = weight (N x K) * x^T (K x M) is
 * asked for: a row-major matrix is its transpose to cuBLAS.  The workspace is ours, because a call that allocates its
 * own cannot be captured in a graph; 32 MiB is the size that NVIDIA recommends for sm_90.
 * The prototypes are written out here: no vendor header is needed.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>

enum { OP_N = 0, OP_T = 1, COMPUTE_32F = 68, COMPUTE_64F = 70, GEMM_DEFAULT = -1 };
enum { WORKSPACE_BYTES = 32 << 20 };

static struct {
    void *handle;
    void *workspace;
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                int compute_type, int algorithm);
    char description[128];
} cublas;

static int cuda_type(int dtype)
{
    switch (dtype) {
    case KL_PLUGIN_F32:  return 0;
    case KL_PLUGIN_F64:  return 1;
    case KL_PLUGIN_F16:  return 2;
    case KL_PLUGIN_BF16: return 14;
    default:             return -1;
    }
}

static int fail(char *why, size_t why_bytes, const char *what, int status)
{
    snprintf(why, why_bytes, "cuBLAS: %s failed with status %d", what, status);
    return 1;
}

static void *open_library(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
    void *library = open_library(names);
    if (!library) {
        snprintf(why, why_bytes, "cuBLAS is not installed: %s", dlerror());
        return 1;
    }
    int (*create)(void **) = (int (*)(void **))dlsym(library, "cublasCreate_v2");
    int (*version)(void *, int *) = (int (*)(void *, int *))dlsym(library, "cublasGetVersion_v2");
    *(void **)&cublas.set_stream = dlsym(library, "cublasSetStream_v2");
    *(void **)&cublas.set_workspace = dlsym(library, "cublasSetWorkspace_v2");
    *(void **)&cublas.gemm = dlsym(library, "cublasGemmEx");
    if (!create || !version || !cublas.set_stream || !cublas.set_workspace || !cublas.gemm) {
        snprintf(why, why_bytes, "this cuBLAS lacks a function: %s", dlerror());
        return 1;
    }
    int status = create(&cublas.handle), number = 0;
    if (status)
        return fail(why, why_bytes, "cublasCreate", status);
    version(cublas.handle, &number);
    // 120903 (12.9.3) and 130000 (13.0.0) share the form major * 10000 + minor * 100 + patch.
    snprintf(cublas.description, sizeof cublas.description, "cuBLAS %d.%d.%d, cublasGemmEx, float32 accumulation",
             number / 10000, number / 100 % 100, number % 100);
    *state = &cublas;
    return 0;
}

static int allocate_workspace(char *why, size_t why_bytes)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*allocate)(void **, size_t) = driver ? (int (*)(void **, size_t))dlsym(driver, "cuMemAlloc_v2") : NULL;
    if (!allocate) {
        snprintf(why, why_bytes, "the CUDA driver is not installed");
        return 1;
    }
    int status = allocate(&cublas.workspace, WORKSPACE_BYTES);
    return status ? fail(why, why_bytes, "cuMemAlloc of the workspace", status) : 0;
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    for (int n = 0; n < call->n_tensors; n++)
        if (cuda_type(call->tensors[n].dtype) < 0) {
            snprintf(why, why_bytes, "cublasGemmEx does not take the data type of %s", call->tensors[n].name);
            return 1;
        }
    if (!cublas.workspace && allocate_workspace(why, why_bytes))
        return 1;
    int status = kl_plugin_run(state, call);    // loads the chosen kernel, which a capture must not do
    return status ? fail(why, why_bytes, "cublasGemmEx", status) : 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    const kl_plugin_tensor *x = &call->tensors[0], *weight = &call->tensors[1], *y = &call->tensors[2];
    const int m = (int)x->dims[0], n = (int)weight->dims[0], k = (int)x->dims[1];
    static const float one = 1.0f, zero = 0.0f;
    static const double one_wide = 1.0, zero_wide = 0.0;
    const int wide = x->dtype == KL_PLUGIN_F64;
    int status = cublas.set_stream(cublas.handle, call->stream);    // resets the workspace, so that comes second
    if (!status)
        status = cublas.set_workspace(cublas.handle, cublas.workspace, WORKSPACE_BYTES);
    if (status)
        return status;
    return cublas.gemm(cublas.handle, OP_T, OP_N, n, m, k, wide ? (const void *)&one_wide : &one, weight->data,
                       cuda_type(weight->dtype), k, x->data, cuda_type(x->dtype), k,
                       wide ? (const void *)&zero_wide : &zero, y->data, cuda_type(y->dtype), n,
                       wide ? COMPUTE_64F : COMPUTE_32F, GEMM_DEFAULT);
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return cublas.description;
}
