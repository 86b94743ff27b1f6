/* openblas.c - grouped_gemm as a user of OpenBLAS writes it.
 *
 * One cblas_sgemm a group, with the weight transposed; an empty group is skipped.
 * Only float32; a wider type or bfloat16 is refused, and the next baseline takes its place.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>

/* Written from CBLAS's published interface, so that no OpenBLAS header has to be installed. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);

typedef struct {
    sgemm_fn *sgemm;
    void (*set_num_threads)(int);
    char *(*get_config)(void);
    char *(*get_corename)(void);
    int  threads;
    char description[160];
} openblas;

static int say(char *why, size_t why_bytes, const char *text)
{
    snprintf(why, why_bytes, "%s", text);
    return 1;
}

static void *load_library(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    void                    *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    /* OpenBLAS reads this while it is loaded and then ignores the processor; a baseline must not be crippled so. */
    unsetenv("OPENBLAS_CORETYPE");
    void *library = load_library();
    if (!library) return say(why, why_bytes, "libopenblas.so.0 is not installed");
    openblas *self = calloc(1, sizeof *self);
    if (!self) return say(why, why_bytes, "out of memory");
    *(void **)&self->sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&self->set_num_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&self->get_config = dlsym(library, "openblas_get_config");
    *(void **)&self->get_corename = dlsym(library, "openblas_get_corename");
    if (!self->sgemm || !self->set_num_threads || !self->get_config || !self->get_corename) {
        free(self);
        return say(why, why_bytes, "libopenblas lacks cblas_sgemm or its openblas_ functions");
    }
    *state = self;
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    openblas *self = state;
    snprintf(self->description, sizeof self->description, "%s, core %s, %d thread%s", self->get_config(),
             self->get_corename(), self->threads, self->threads == 1 ? "" : "s");
    return self->description;
}

static void use_threads(openblas *self, int threads)
{
    if (threads < 1) threads = 1;
    if (threads != self->threads) self->set_num_threads(threads);
    self->threads = threads;
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    if (call->n_tensors != 4) return say(why, why_bytes, "expects the tensors x, weight, offsets, output");
    for (int i = 0; i < 4; i++)
        if (call->tensors[i].dtype != (i == 2 ? KL_PLUGIN_I32 : KL_PLUGIN_F32))
            return say(why, why_bytes, "cblas_sgemm takes float32 only, and offsets are int32");
    use_threads(state, call->threads);
    return 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    openblas      *self = state;
    const float   *x = call->tensors[0].data, *weight = call->tensors[1].data;
    const int32_t *offsets = call->tensors[2].data;
    float         *output = call->tensors[3].data;
    int64_t        G = call->tensors[1].dims[0], N = call->tensors[1].dims[1], K = call->tensors[1].dims[2];
    use_threads(self, call->threads);
    for (int64_t g = 0; g < G; g++) {
        int64_t first = offsets[g], rows = offsets[g + 1] - first;
        if (rows == 0) continue;
        self->sgemm(ROW_MAJOR, NO_TRANS, TRANS, (int)rows, (int)N, (int)K, 1.0f, x + first * K, (int)K,
                    weight + g * N * K, (int)K, 0.0f, output + first * N, (int)N);
    }
    return 0;
}
