//! launch rmsnorm_oracle args(x, weight, eps, output, rows, hidden)
/* RMSNorm in float64.  Four partial sums let the reduction overlap its additions.
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

static double sum_of_squares(const kl_t_x *in, int n)
{
    double partial[4] = {0};
    for (int i = 0; i < n; i++) {
        double value = LOAD(x, in[i]);
        partial[i & 3] += value * value;
    }
    return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

void rmsnorm_oracle(const kl_t_x *x, const kl_t_weight *weight, float eps, double *output, int rows, int hidden)
{
    for (int row = 0; row < rows; row++) {
        const kl_t_x *in = x + (size_t)row * (size_t)hidden;
        double       *out = output + (size_t)row * (size_t)hidden;
        double        scale = 1.0 / sqrt(sum_of_squares(in, hidden) / hidden + (double)eps);
        for (int i = 0; i < hidden; i++)
            out[i] = LOAD(x, in[i]) * scale * LOAD(weight, weight[i]);
    }
}
