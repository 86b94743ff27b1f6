//! launch softmax args(x, output, rows, cols)
/* Softmax over the last axis: three passes a row (largest value, sum of exponentials, result).
 * The largest value is subtracted first, so that no exponential overflows.
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

void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    for (int row = 0; row < rows; row++) {
        const kl_t_x *in = x + (size_t)row * (size_t)cols;
        kl_t_output  *out = output + (size_t)row * (size_t)cols;
        float         largest = -INFINITY, sum = 0.0f;
        for (int i = 0; i < cols; i++)
            largest = fmaxf(largest, LOAD(x, in[i]));
        for (int i = 0; i < cols; i++)
            sum += expf(LOAD(x, in[i]) - largest);
        for (int i = 0; i < cols; i++)
            out[i] = STORE(output, expf(LOAD(x, in[i]) - largest) / sum);
    }
}
