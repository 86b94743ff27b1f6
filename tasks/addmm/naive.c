//! launch addmm args(bias, mat1, mat2, output, M, N, K)
/* output = bias + mat1 * mat2: one dot product an element, in the order of the definition.
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

static float dot(const kl_t_mat1 *row, const kl_t_mat2 *column, int N, int K) {
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += LOAD(mat1, row[k]) * LOAD(mat2, column[(size_t)k * (size_t)N]);
    return sum;
}

void addmm(const kl_t_bias *bias, const kl_t_mat1 *mat1, const kl_t_mat2 *mat2, kl_t_output *output,
           int M, int N, int K) {
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = dot(mat1 + (size_t)m * (size_t)K, mat2 + n, N, K) + LOAD(bias, bias[n]);
            output[(size_t)m * (size_t)N + (size_t)n] = STORE(output, sum);
        }
}
