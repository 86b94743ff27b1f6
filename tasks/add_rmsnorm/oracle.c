//! launch add_rmsnorm_oracle args(x, residual, weight, eps, output, new_residual, rows, hidden)
/* Residual add and RMSNorm in float64; the unrounded sum is normalised.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
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

/* Writes one row of sums and returns the sum of their squares. */
static double add_row(double *sums, const kl_t_x *x, const kl_t_residual *residual, int n)
{
    double partial[4] = {0};
    for (int i = 0; i < n; i++) {
        double sum = LOAD(x, x[i]) + LOAD(residual, residual[i]);
        sums[i] = sum;
        partial[i & 3] += sum * sum;
    }
    return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

void add_rmsnorm_oracle(const kl_t_x *x, const kl_t_residual *residual, const kl_t_weight *weight, float eps,
                        double *output, double *new_residual, int rows, int hidden)
{
    for (int row = 0; row < rows; row++) {
        size_t base = (size_t)row * (size_t)hidden;
        double squares = add_row(new_residual + base, x + base, residual + base, hidden);
        double scale = 1.0 / sqrt(squares / hidden + (double)eps);
        for (int i = 0; i < hidden; i++)
            output[base + i] = new_residual[base + i] * scale * LOAD(weight, weight[i]);
    }
}
