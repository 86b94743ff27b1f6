//! buffer scores: f32[S]
//! launch attention args(query, key, value, is_causal, output, scores, B, HQ, HKV, S, D)
/* Attention by its definition, one query row at a time: its scores, softmax, weighted sum of
 * values. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_query == KL_BF16
#error "this kernel has no bfloat16 arithmetic"
#endif

/* The row's scores become the weights of the keys; they sum to one. */
static void softmax(float *scores, int count) {
    float largest = -INFINITY, sum = 0.0f;
    for (int j = 0; j < count; j++) largest = scores[j] > largest ? scores[j] : largest;
    for (int j = 0; j < count; j++) {
        scores[j] = expf(scores[j] - largest);
        sum += scores[j];
    }
    for (int j = 0; j < count; j++) scores[j] /= sum;
}

static void attend(kl_t_output *out, const kl_t_query *query, const kl_t_key *keys,
                   const kl_t_value *values, float *scores, int visible, int D) {
    for (int j = 0; j < visible; j++) {
        float dot = 0.0f;
        for (int d = 0; d < D; d++)
            dot += (float)query[d] * (float)keys[(size_t)j * (size_t)D + (size_t)d];
        scores[j] = dot / sqrtf((float)D);
    }
    softmax(scores, visible);
    for (int d = 0; d < D; d++) {
        float sum = 0.0f;
        for (int j = 0; j < visible; j++)
            sum += scores[j] * (float)values[(size_t)j * (size_t)D + (size_t)d];
        out[d] = (kl_t_output)sum;
    }
}

void attention(const kl_t_query *query, const kl_t_key *key, const kl_t_value *value, int is_causal,
               kl_t_output *output, float *scores, int B, int HQ, int HKV, int S, int D) {
    for (int b = 0; b < B; b++)
        for (int h = 0; h < HQ; h++)
            for (int i = 0; i < S; i++) {
                size_t row =
                    (((size_t)b * (size_t)HQ + (size_t)h) * (size_t)S + (size_t)i) * (size_t)D;
                size_t head =
                    ((size_t)b * (size_t)HKV + (size_t)(h / (HQ / HKV))) * (size_t)S * (size_t)D;
                attend(output + row, query + row, key + head, value + head, scores,
                       is_causal ? i + 1 : S, D);
            }
}
