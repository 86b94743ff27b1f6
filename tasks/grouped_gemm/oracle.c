//! launch grouped_gemm_oracle args(x, weight, offsets, output, G, T, N, K)
/* Grouped matrix product in float64.  Four partial sums let a dot product overlap its additions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

/* Read one element as float64, whatever the tensor's type; bfloat16 travels as its 16 bits in C. */
static inline double double_of_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float    value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define LOAD(tensor, value) (KL_DTYPE_##tensor == KL_BF16 ? double_of_bf16((uint16_t)(value)) : (double)(value))

static double dot(const kl_t_x *row, const kl_t_weight *column, int K)
{
    double partial[4] = {0};
    int    k = 0;
    for (; k + 4 <= K; k += 4)
        for (int lane = 0; lane < 4; lane++)
            partial[lane] += LOAD(x, row[k + lane]) * LOAD(weight, column[k + lane]);
    for (; k < K; k++)
        partial[0] += LOAD(x, row[k]) * LOAD(weight, column[k]);
    return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

void grouped_gemm_oracle(const kl_t_x *x, const kl_t_weight *weight, const int32_t *offsets, double *output, int G,
                         int T, int N, int K)
{
    (void)T;   // offsets[G]
    for (int g = 0; g < G; g++)
        for (int t = offsets[g]; t < offsets[g + 1]; t++)
            for (int n = 0; n < N; n++) {
                size_t column = (size_t)g * (size_t)N + (size_t)n;
                output[(size_t)t * (size_t)N + (size_t)n] =
                    dot(x + (size_t)t * (size_t)K, weight + column * (size_t)K, K);
            }
}
