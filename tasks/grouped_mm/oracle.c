//! launch grouped_mm_oracle args(x, weight, offsets, output, G, N, K)
/* Grouped matrix product in float64.  Rows of weight are added to the output row, so memory is read
 * in its order. SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
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

static void multiply_row(double *out, const kl_t_x *x, const kl_t_weight *weight, int N, int K) {
    for (int n = 0; n < N; n++) out[n] = 0.0;
    for (int k = 0; k < K; k++) {
        double factor = LOAD(x, x[k]);
        const kl_t_weight *row = weight + (size_t)k * (size_t)N;
        for (int n = 0; n < N; n++) out[n] += factor * LOAD(weight, row[n]);
    }
}

void grouped_mm_oracle(const kl_t_x *x, const kl_t_weight *weight, const int32_t *offsets,
                       double *output, int G, int N, int K) {
    for (int g = 0; g < G; g++)
        for (int t = offsets[g]; t < offsets[g + 1]; t++)
            multiply_row(output + (size_t)t * (size_t)N, x + (size_t)t * (size_t)K,
                         weight + (size_t)g * (size_t)K * (size_t)N, N, K);
}
