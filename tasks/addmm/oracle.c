//! launch addmm_oracle args(bias, mat1, mat2, output, M, N, K)
/* Matrix product in float64, on top of the bias.  Rows of mat2 are added to the output row, so
 * memory is read in its order. SPDX-License-Identifier: Apache-2.0 */
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

static void multiply_row(double *out, const kl_t_bias *bias, const kl_t_mat1 *left,
                         const kl_t_mat2 *right, int N, int K) {
    for (int n = 0; n < N; n++) out[n] = LOAD(bias, bias[n]);
    for (int k = 0; k < K; k++) {
        double factor = LOAD(mat1, left[k]);
        const kl_t_mat2 *row = right + (size_t)k * (size_t)N;
        for (int n = 0; n < N; n++) out[n] += factor * LOAD(mat2, row[n]);
    }
}

void addmm_oracle(const kl_t_bias *bias, const kl_t_mat1 *mat1, const kl_t_mat2 *mat2,
                  double *output, int M, int N, int K) {
    for (int m = 0; m < M; m++)
        multiply_row(output + (size_t)m * (size_t)N, bias, mat1 + (size_t)m * (size_t)K, mat2, N,
                     K);
}
