/* OpenBLAS sgemm: what a user of a CPU calls for a float32 matrix product.
 *
 * y = x * weight^T is one cblas_sgemm with the second operand transposed; nothing is copied or packed outside the call.
 * OPENBLAS_CORETYPE can force kernels of an older core, so it is cleared before the library is loaded.
 * Not here: other data types.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>

int unsetenv(const char *name);    // POSIX; hidden by strict C17

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    sgemm_fn *sgemm;
    void    (*set_threads)(int);
    char      description[256];
} openblas;

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    unsetenv("OPENBLAS_CORETYPE");
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, why_bytes, "OpenBLAS is not installed: %s", dlerror());
        return 1;
    }
    char *(*config)(void) = (char *(*)(void))dlsym(library, "openblas_get_config");
    char *(*core)(void) = (char *(*)(void))dlsym(library, "openblas_get_corename");
    openblas.sgemm = (sgemm_fn *)dlsym(library, "cblas_sgemm");
    openblas.set_threads = (void (*)(int))dlsym(library, "openblas_set_num_threads");
    if (!openblas.sgemm || !openblas.set_threads) {
        snprintf(why, why_bytes, "this OpenBLAS lacks cblas_sgemm or openblas_set_num_threads");
        return 1;
    }
    snprintf(openblas.description, sizeof openblas.description, "%s, core %s", config ? config() : "OpenBLAS",
             core ? core() : "unknown");
    *state = &openblas;
    return 0;
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    (void)state;
    for (int n = 0; n < call->n_tensors; n++)
        if (call->tensors[n].dtype != KL_PLUGIN_F32) {
            snprintf(why, why_bytes, "cblas_sgemm takes float32 only, and %s is not", call->tensors[n].name);
            return 1;
        }
    openblas.set_threads(call->threads);
    return 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    const kl_plugin_tensor *x = &call->tensors[0], *weight = &call->tensors[1], *y = &call->tensors[2];
    const int m = (int)x->dims[0], n = (int)weight->dims[0], k = (int)x->dims[1];
    openblas.sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, m, n, k, 1.0f, x->data, k, weight->data, k, 0.0f, y->data, n);
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return openblas.description;
}
