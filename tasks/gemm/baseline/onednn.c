/* oneDNN sgemm: the other float32 matrix product that a user of a CPU finds packaged.
 *
 * One dnnl_sgemm call (row-major, second operand transposed); versions 2 and 3 share its signature.
 * oneDNN takes its threads from OpenMP, so the count is set there, where the library is built on OpenMP.
 * Not here: other data types.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>

typedef int sgemm_fn(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

typedef struct {    // the head of dnnl_version_t
    int         major, minor, patch;
    const char *hash;
} version;

static struct {
    sgemm_fn *sgemm;
    void    (*set_threads)(int);
    char      description[128];
} onednn;

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    void *library = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, why_bytes, "oneDNN is not installed: %s", dlerror());
        return 1;
    }
    const version *(*get_version)(void) = (const version *(*)(void))dlsym(library, "dnnl_version");
    int (*get_isa)(void) = (int (*)(void))dlsym(library, "dnnl_get_effective_cpu_isa");
    onednn.sgemm = (sgemm_fn *)dlsym(library, "dnnl_sgemm");
    onednn.set_threads = (void (*)(int))dlsym(library, "omp_set_num_threads");    // found through its dependencies
    if (!onednn.sgemm || !get_version) {
        snprintf(why, why_bytes, "this oneDNN lacks dnnl_sgemm");
        return 1;
    }
    const version *v = get_version();
    snprintf(onednn.description, sizeof onednn.description, "oneDNN %d.%d.%d, effective ISA mask 0x%x%s", v->major,
             v->minor, v->patch, get_isa ? (unsigned)get_isa() : 0u,
             onednn.set_threads ? "" : ", thread count not settable");
    *state = &onednn;
    return 0;
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    (void)state;
    for (int n = 0; n < call->n_tensors; n++)
        if (call->tensors[n].dtype != KL_PLUGIN_F32) {
            snprintf(why, why_bytes, "dnnl_sgemm takes float32 only, and %s is not", call->tensors[n].name);
            return 1;
        }
    if (onednn.set_threads)
        onednn.set_threads(call->threads);
    return 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    const kl_plugin_tensor *x = &call->tensors[0], *weight = &call->tensors[1], *y = &call->tensors[2];
    const int64_t m = x->dims[0], n = weight->dims[0], k = x->dims[1];
    return onednn.sgemm('N', 'T', m, n, k, 1.0f, x->data, k, weight->data, k, 0.0f, y->data, n);
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return onednn.description;
}
