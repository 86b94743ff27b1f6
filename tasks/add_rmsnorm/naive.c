//! launch add_rmsnorm args(x, residual, weight, eps, output, new_residual, rows, hidden)
/* new_residual = x + residual, output = RMSNorm(x + residual) * weight: one row at a time, two passes.
 * The norm takes the float32 sum, not the rounded one that is stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Read and write one element in float32, whatever the tensor's type; bfloat16 travels as its 16 bits in C. */
static inline float float_of_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float    value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t bf16_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);   // stays a NaN
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);                   // to nearest, ties to even
}

#define LOAD(tensor, value)  (KL_DTYPE_##tensor == KL_BF16 ? float_of_bf16((uint16_t)(value)) : (float)(value))
#define STORE(tensor, value) ((kl_t_##tensor)(KL_DTYPE_##tensor == KL_BF16 ? bf16_of_float(value) : (value)))

void add_rmsnorm(const kl_t_x *x, const kl_t_residual *residual, const kl_t_weight *weight, float eps,
                 kl_t_output *output, kl_t_new_residual *new_residual, int rows, int hidden)
{
    for (int row = 0; row < rows; row++) {
        size_t base = (size_t)row * (size_t)hidden;
        float  squares = 0.0f;
        for (int i = 0; i < hidden; i++) {
            float sum = LOAD(x, x[base + i]) + LOAD(residual, residual[base + i]);
            new_residual[base + i] = STORE(new_residual, sum);
            squares += sum * sum;
        }
        float scale = 1.0f / sqrtf(squares / (float)hidden + eps);
        for (int i = 0; i < hidden; i++) {
            float sum = LOAD(x, x[base + i]) + LOAD(residual, residual[base + i]);
            output[base + i] = STORE(output, sum * scale * LOAD(weight, weight[i]));
        }
    }
}
