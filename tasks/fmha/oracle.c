// The trusted attention, all in float64: one sequence's head at a time, key and value widened once into dense tables,
// then per query row all scores, softmax, weighted sum of values.  No rescaling, no blocks of keys.
// SPDX-License-Identifier: Apache-2.0
//! threads 2
//! launch oracle args(q, k, v, qo_offsets, kv_offsets, causal, output, B, H, D)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if KL_DTYPE_q == KL_BF16
static inline double widen(uint16_t value)    // bfloat16 is the upper half of a float32
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}
#else
#define widen(value) ((double)(value))
#endif

typedef struct {
    int32_t heads, width;       // H, D
    int32_t rows, keys;         // of this sequence
    int32_t causal;
} extent;

static double dot(const double *a, const double *b, int32_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

// One query row.  `scores` has room for every key, `query` for one row; a row that sees no key is zero.
static void attend(kl_t_output *output, const kl_t_q *q, const double *key_table, const double *value_table,
                   double *scores, double *query, int32_t visible, int32_t width)
{
    double largest = -INFINITY, total = 0;
    for (int32_t d = 0; d < width; d++) {
        query[d] = widen(q[d]) / sqrt((double)width);
        output[d] = 0;
    }
    for (int32_t j = 0; j < visible; j++) {
        scores[j] = dot(query, key_table + (size_t)j * width, width);
        largest = fmax(largest, scores[j]);
    }
    for (int32_t j = 0; j < visible; j++)
        total += scores[j] = exp(scores[j] - largest);
    for (int32_t j = 0; j < visible; j++) {
        const double weight = scores[j] / total, *values = value_table + (size_t)j * width;
#pragma omp simd
        for (int32_t d = 0; d < width; d++)
            output[d] += weight * values[d];
    }
}

static void attend_head(kl_t_output *output, const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, extent e)
{
    const size_t cells = (size_t)e.keys * e.width, stride = (size_t)e.heads * e.width;
    double *tables = malloc((2 * cells + e.keys + e.width) * sizeof *tables);
    if (!tables)
        abort();
    double *values = tables + cells, *scores = values + cells, *query = scores + e.keys;
    for (int32_t j = 0; j < e.keys; j++)
        for (int32_t d = 0; d < e.width; d++) {
            tables[(size_t)j * e.width + d] = widen(k[j * stride + d]);
            values[(size_t)j * e.width + d] = widen(v[j * stride + d]);
        }
    for (int32_t i = 0; i < e.rows; i++) {
        const int32_t visible = e.causal ? i + 1 + e.keys - e.rows : e.keys;
        attend(output + i * stride, q + i * stride, tables, values, scores, query, visible, e.width);
    }
    free(tables);
}

void oracle(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_qo_offsets *qo_offsets,
            const kl_t_kv_offsets *kv_offsets, int32_t causal, kl_t_output *output, int32_t B, int32_t H, int32_t D)
{
#pragma omp parallel for schedule(dynamic)
    for (int32_t n = 0; n < B * H; n++) {
        const int32_t b = n / H, h = n % H;
        const extent e = {H, D, qo_offsets[b + 1] - qo_offsets[b], kv_offsets[b + 1] - kv_offsets[b], causal};
        const size_t row = ((size_t)qo_offsets[b] * H + h) * D, key = ((size_t)kv_offsets[b] * H + h) * D;
        attend_head(output + row, q + row, k + key, v + key, e);
    }
}
