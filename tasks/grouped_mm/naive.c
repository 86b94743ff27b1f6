//! launch grouped_mm args(x, weight, offsets, output, G, T, N, K)
/* Rows offsets[g] .. offsets[g+1] of x are multiplied by weight g: one dot product an element.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

/* Read and write one element in float32, whatever the tensor's type; bfloat16 travels as its 16
 * bits in C. */
static inline float float_of_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t bf16_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); // stays a NaN
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16); // to nearest, ties to even
}

#define LOAD(tensor, value)                                                                        \
    (KL_DTYPE_##tensor == KL_BF16 ? float_of_bf16((uint16_t)(value)) : (float)(value))
#define STORE(tensor, value)                                                                       \
    ((kl_t_##tensor)(KL_DTYPE_##tensor == KL_BF16 ? bf16_of_float(value) : (value)))

static float dot(const kl_t_x *row, const kl_t_weight *column, int N, int K) {
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += LOAD(x, row[k]) * LOAD(weight, column[(size_t)k * (size_t)N]);
    return sum;
}

void grouped_mm(const kl_t_x *x, const kl_t_weight *weight, const int32_t *offsets,
                kl_t_output *output, int G, int T, int N, int K) {
    (void)T; // offsets[G]
    for (int g = 0; g < G; g++)
        for (int t = offsets[g]; t < offsets[g + 1]; t++)
            for (int n = 0; n < N; n++) {
                const kl_t_weight *column = weight + (size_t)g * (size_t)K * (size_t)N + (size_t)n;
                float sum = dot(x + (size_t)t * (size_t)K, column, N, K);
                output[(size_t)t * (size_t)N + (size_t)n] = STORE(output, sum);
            }
}
