/* Attention composed from OpenBLAS: scores = Q K' by sgemm, softmax, output = P V by sgemm.
 *
 * A block of 128 query rows of one head is carried through all three steps, so its scores stay in a near cache.
 * Tokens of a head lie H*D apart in the packed tensors, which sgemm takes as a leading dimension: nothing is copied.
 * The softmax uses a polynomial exponential that a compiler can vectorise, as a library would.
 * With `causal` a block multiplies only the keys that its last row sees; the rest of the triangle is cleared.
 * Not here: other data types than float32.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int unsetenv(const char *name);    // POSIX; hidden by strict C17

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112, BLOCK = 128 };

typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    sgemm_fn *sgemm;
    void    (*set_threads)(int);
    float    *scores;      // BLOCK rows of as many keys as the longest sequence can have
    int64_t   keys_max;
    char      description[256];
} openblas;

typedef struct {    // one head of one sequence; pointers at its first token
    const float *q, *k, *v;
    float       *output;
    int          rows, keys, width, stride, causal;
} head;

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    unsetenv("OPENBLAS_CORETYPE");    // it can force the kernels of an older core
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
    snprintf(openblas.description, sizeof openblas.description, "sgemm and softmax in blocks of %d rows: %s, core %s",
             BLOCK, config ? config() : "OpenBLAS", core ? core() : "unknown");
    *state = &openblas;
    return 0;
}

// Tensors are q, k, v, qo_offsets, kv_offsets, causal (a scalar), output.
int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    (void)state;
    if (call->tensors[0].dtype != KL_PLUGIN_F32) {
        snprintf(why, why_bytes, "cblas_sgemm takes float32 only");
        return 1;
    }
    free(openblas.scores);
    openblas.keys_max = call->tensors[1].dims[0];
    openblas.scores = malloc((size_t)openblas.keys_max * BLOCK * sizeof(float));
    if (!openblas.scores) {
        snprintf(why, why_bytes, "no memory for a block of scores");
        return 1;
    }
    openblas.set_threads(call->threads);
    return 0;
}

// exp(x) for x <= 0 without a branch or a call: 2^n from the exponent bits, times a Taylor series on |r| <= ln(2)/2.
static inline float exponential(float x)
{
    const float clamped = x < -87.0f ? -87.0f : x;
    const float shifted = clamped * 1.44269504f + 12582912.0f;    // 1.5 * 2^23: rounds to an integer in the low bits
    const float n = shifted - 12582912.0f;
    const float r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
    float series = 1.0f / 5040;
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : series * power;
}

#define LANES 16    // independent partial results, so that the reductions vectorise without reordering by the compiler

static float largest_of(const float *scores, int count)
{
    float lane[LANES], top = scores[0];
    for (int n = 0; n < LANES; n++)
        lane[n] = top;
    int j = 0;
    for (; j + LANES <= count; j += LANES)
        for (int n = 0; n < LANES; n++)
            lane[n] = scores[j + n] > lane[n] ? scores[j + n] : lane[n];
    for (; j < count; j++)
        top = scores[j] > top ? scores[j] : top;
    for (int n = 0; n < LANES; n++)
        top = lane[n] > top ? lane[n] : top;
    return top;
}

static float sum_of(const float *scores, int count)
{
    float lane[LANES] = {0}, total = 0;
    int j = 0;
    for (; j + LANES <= count; j += LANES)
        for (int n = 0; n < LANES; n++)
            lane[n] += scores[j + n];
    for (; j < count; j++)
        total += scores[j];
    for (int n = 0; n < LANES; n++)
        total += lane[n];
    return total;
}

// The first `seen` scores become weights that sum to one, the others zero.
static void softmax(float *scores, int seen, int count)
{
    if (seen > 0) {
        const float top = largest_of(scores, seen);
        for (int j = 0; j < seen; j++)
            scores[j] = exponential(scores[j] - top);
        const float inverse = 1.0f / sum_of(scores, seen);
        for (int j = 0; j < seen; j++)
            scores[j] *= inverse;
    }
    for (int j = seen > 0 ? seen : 0; j < count; j++)
        scores[j] = 0;
}

static int seen_by(const head *h, int row)
{
    return h->causal ? row + 1 + h->keys - h->rows : h->keys;
}

static void attend_block(const head *h, int first, float scale)
{
    const int rows = h->rows - first < BLOCK ? h->rows - first : BLOCK;
    const int keys = seen_by(h, first + rows - 1);
    const size_t start = (size_t)first * (size_t)h->stride;
    if (keys <= 0) {
        for (int i = 0; i < rows; i++)
            memset(h->output + start + (size_t)i * (size_t)h->stride, 0, (size_t)h->width * sizeof(float));
        return;
    }
    openblas.sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, rows, keys, h->width, scale, h->q + start, h->stride, h->k,
                   h->stride, 0.0f, openblas.scores, keys);
    for (int i = 0; i < rows; i++)
        softmax(openblas.scores + (size_t)i * (size_t)keys, seen_by(h, first + i), keys);
    openblas.sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, rows, h->width, keys, 1.0f, openblas.scores, keys, h->v,
                   h->stride, 0.0f, h->output + start, h->stride);
}

// 1 / sqrt(value) by Newton's method: a plugin links libc alone, and the square root lives in libm.
static float inverse_root(double value)
{
    double root = value;
    for (int n = 0; n < 64; n++)
        root = 0.5 * (root + value / root);
    return (float)(1.0 / root);
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    const kl_plugin_tensor *t = call->tensors;
    const int32_t *rows = t[3].data, *keys = t[4].data;
    const int heads = (int)t[0].dims[1], width = (int)t[0].dims[2], stride = heads * width;
    const float scale = inverse_root((double)width);
    if (t[1].dims[0] > openblas.keys_max)
        return 1;
    for (int64_t b = 0; b + 1 < t[3].dims[0]; b++)
        for (int n = 0; n < heads; n++) {
            const int64_t row = (int64_t)rows[b] * stride + n * width, key = (int64_t)keys[b] * stride + n * width;
            const head h = {(const float *)t[0].data + row, (const float *)t[1].data + key,
                            (const float *)t[2].data + key, (float *)t[6].data + row, rows[b + 1] - rows[b],
                            keys[b + 1] - keys[b], width, stride, *(const int32_t *)t[5].data};
            for (int first = 0; first < h.rows; first += BLOCK)
                attend_block(&h, first, scale);
        }
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return openblas.description;
}
