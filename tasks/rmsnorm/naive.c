//! launch rmsnorm args(x, weight, eps, output, rows, hidden)
/* RMSNorm over the last axis: one row at a time, one pass for the mean square and one for the result.
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

void rmsnorm(const kl_t_x *x, const kl_t_weight *weight, float eps, kl_t_output *output, int rows, int hidden)
{
    for (int row = 0; row < rows; row++) {
        const kl_t_x *in = x + (size_t)row * (size_t)hidden;
        kl_t_output  *out = output + (size_t)row * (size_t)hidden;
        float         sum = 0.0f;
        for (int i = 0; i < hidden; i++)
            sum += LOAD(x, in[i]) * LOAD(x, in[i]);
        float scale = 1.0f / sqrtf(sum / (float)hidden + eps);
        for (int i = 0; i < hidden; i++)
            out[i] = STORE(output, LOAD(x, in[i]) * scale * LOAD(weight, weight[i]));
    }
}
