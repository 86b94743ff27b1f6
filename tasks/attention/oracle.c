//! launch attention_oracle args(query, key, value, is_causal, output, B, HQ, HKV, S, D)
/* Attention in float64, a query row at a time: all its scores, softmax, weighted sum of values.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Read one element as float64, whatever the tensor's type; bfloat16 travels as its 16 bits in C. */
static inline double double_of_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define LOAD(tensor, value)                                                                        \
    (KL_DTYPE_##tensor == KL_BF16 ? double_of_bf16((uint16_t)(value)) : (double)(value))

static double score_of(const kl_t_query *query, const kl_t_key *key, int D) {
    double sum = 0.0;
    for (int d = 0; d < D; d++) sum += LOAD(query, query[d]) * LOAD(key, key[d]);
    return sum / sqrt((double)D);
}

/* One query row over the first `visible` keys; `scores` has room for them. */
static void attend(double *out, const kl_t_query *query, const kl_t_key *keys,
                   const kl_t_value *values, double *scores, int visible, int D) {
    double largest = -INFINITY, total = 0.0;
    for (int j = 0; j < visible; j++) {
        scores[j] = score_of(query, keys + (size_t)j * (size_t)D, D);
        largest = fmax(largest, scores[j]);
    }
    for (int j = 0; j < visible; j++) total += scores[j] = exp(scores[j] - largest);
    for (int d = 0; d < D; d++) out[d] = 0.0;
    for (int j = 0; j < visible; j++)
        for (int d = 0; d < D; d++)
            out[d] += scores[j] / total * LOAD(value, values[(size_t)j * (size_t)D + (size_t)d]);
}

void attention_oracle(const kl_t_query *query, const kl_t_key *key, const kl_t_value *value,
                      int is_causal, double *output, int B, int HQ, int HKV, int S, int D) {
    double *scores = malloc((size_t)S * sizeof *scores);
    if (!scores) abort();
    for (int n = 0; n < B * HQ; n++) {
        size_t head = (size_t)n * (size_t)S * (size_t)D;
        size_t shared =
            (size_t)(n / (HQ / HKV)) * (size_t)S * (size_t)D; // heads of all sequences in one row
        for (int i = 0; i < S; i++) {
            size_t row = head + (size_t)i * (size_t)D;
            attend(output + row, query + row, key + shared, value + shared, scores,
                   is_causal ? i + 1 : S, D);
        }
    }
    free(scores);
}
