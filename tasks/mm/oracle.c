//! launch mm_oracle args(a, b, output, M, N, K)
/* Matrix product in float64.  Rows of b are added to the output row, so memory is read in its
 * order. SPDX-License-Identifier: Apache-2.0 */
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

static void multiply_row(double *out, const kl_t_a *a, const kl_t_b *b, int N, int K) {
    for (int n = 0; n < N; n++) out[n] = 0.0;
    for (int k = 0; k < K; k++) {
        double factor = LOAD(a, a[k]);
        const kl_t_b *row = b + (size_t)k * (size_t)N;
        for (int n = 0; n < N; n++) out[n] += factor * LOAD(b, row[n]);
    }
}

void mm_oracle(const kl_t_a *a, const kl_t_b *b, double *output, int M, int N, int K) {
    for (int m = 0; m < M; m++)
        multiply_row(output + (size_t)m * (size_t)N, a + (size_t)m * (size_t)K, b, N, K);
}
