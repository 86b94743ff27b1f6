//! launch layernorm_oracle args(x, weight, bias, eps, output, rows, hidden)
/* LayerNorm in float64, two-pass variance.  Four partial sums let the reductions overlap their additions.
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

static double mean_of(const kl_t_x *in, int n)
{
    double partial[4] = {0};
    for (int i = 0; i < n; i++)
        partial[i & 3] += LOAD(x, in[i]);
    return ((partial[0] + partial[1]) + (partial[2] + partial[3])) / n;
}

static double variance_of(const kl_t_x *in, int n, double mean)
{
    double partial[4] = {0};
    for (int i = 0; i < n; i++) {
        double distance = LOAD(x, in[i]) - mean;
        partial[i & 3] += distance * distance;
    }
    return ((partial[0] + partial[1]) + (partial[2] + partial[3])) / n;
}

void layernorm_oracle(const kl_t_x *x, const kl_t_weight *weight, const kl_t_bias *bias, float eps, double *output,
                      int rows, int hidden)
{
    for (int row = 0; row < rows; row++) {
        const kl_t_x *in = x + (size_t)row * (size_t)hidden;
        double       *out = output + (size_t)row * (size_t)hidden;
        double        mean = mean_of(in, hidden);
        double        scale = 1.0 / sqrt(variance_of(in, hidden, mean) + (double)eps);
        for (int i = 0; i < hidden; i++)
            out[i] = (LOAD(x, in[i]) - mean) * scale * LOAD(weight, weight[i]) + LOAD(bias, bias[i]);
    }
}
