/* oneDNN gemm_s8s8s32: the int8 matrix product that a user of a CPU finds packaged, and a pass for the scales.
 *
 * One dnnl_gemm_s8s8s32 call (row-major, second operand transposed, no offsets) into int32 sums; versions 2 and 3 share
 * its signature.  On processors without VNNI the library may saturate pairs of products; there the time still stands.
 * oneDNN takes its threads from OpenMP, so the count is set there, where the library is built on OpenMP.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>

typedef int gemm_fn(char trans_a, char trans_b, char offset_c, int64_t m, int64_t n, int64_t k, float alpha,
                    const int8_t *a, int64_t lda, int8_t ao, const int8_t *b, int64_t ldb, int8_t bo, float beta,
                    int32_t *c, int64_t ldc, const int32_t *co);

typedef struct {    // the head of dnnl_version_t
    int         major, minor, patch;
    const char *hash;
} version;

static struct {
    gemm_fn *gemm;
    void   (*set_threads)(int);
    int32_t *sums;
    char     description[128];
} onednn;

static int say(char *why, size_t why_bytes, const char *text)
{
    snprintf(why, why_bytes, "%s", text);
    return 1;
}

static void *open_library(void)
{
    void *library = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
}

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    unsetenv("ONEDNN_MAX_CPU_ISA");    // would hide the processor's vector units from the baseline
    unsetenv("DNNL_MAX_CPU_ISA");
    void *library = open_library();
    if (!library)
        return say(why, why_bytes, "oneDNN is not installed");
    const version *(*get_version)(void) = (const version *(*)(void))dlsym(library, "dnnl_version");
    int (*get_isa)(void) = (int (*)(void))dlsym(library, "dnnl_get_effective_cpu_isa");
    onednn.gemm = (gemm_fn *)dlsym(library, "dnnl_gemm_s8s8s32");
    onednn.set_threads = (void (*)(int))dlsym(library, "omp_set_num_threads");    // found through its dependencies
    if (!onednn.gemm || !get_version)
        return say(why, why_bytes, "this oneDNN lacks dnnl_gemm_s8s8s32");
    const version *v = get_version();
    snprintf(onednn.description, sizeof onednn.description, "oneDNN %d.%d.%d gemm_s8s8s32, effective ISA mask 0x%x%s",
             v->major, v->minor, v->patch, get_isa ? (unsigned)get_isa() : 0u,
             onednn.set_threads ? "" : ", thread count not settable");
    *state = &onednn;
    return 0;
}

// Tensors are x, weight, x_scale, weight_scale, y.
int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    (void)state;
    const kl_plugin_tensor *y = &call->tensors[4];
    if (call->tensors[0].dtype != KL_PLUGIN_I8 || call->tensors[1].dtype != KL_PLUGIN_I8 || y->dtype != KL_PLUGIN_F32)
        return say(why, why_bytes, "gemm_s8s8s32 takes int8 operands, and the scales give float32");
    free(onednn.sums);
    onednn.sums = malloc((size_t)y->dims[0] * (size_t)y->dims[1] * sizeof *onednn.sums);
    if (!onednn.sums)
        return say(why, why_bytes, "no memory for the int32 sums");
    if (onednn.set_threads)
        onednn.set_threads(call->threads);
    return 0;
}

static void scale(float *restrict y, const int32_t *restrict sums, float row, const float *restrict columns, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        y[j] = (float)sums[j] * row * columns[j];
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    const kl_plugin_tensor *x = &call->tensors[0], *weight = &call->tensors[1];
    const float *x_scale = call->tensors[2].data, *weight_scale = call->tensors[3].data;
    float *y = call->tensors[4].data;
    const int64_t m = x->dims[0], n = weight->dims[0], k = x->dims[1];
    const int32_t no_offset = 0;
    if (onednn.gemm('N', 'T', 'F', m, n, k, 1.0f, x->data, k, 0, weight->data, k, 0, 0.0f, onednn.sums, n, &no_offset))
        return 1;
    for (int64_t i = 0; i < m; i++)
        scale(y + i * n, onednn.sums + i * n, x_scale[i], weight_scale, n);
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return onednn.description;
}
