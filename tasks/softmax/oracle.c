//! launch softmax_oracle args(x, output, rows, cols)
/* Softmax in float64.  The exponentials are kept in the output row and scaled in place.
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

static double largest_of(const kl_t_x *in, int n)
{
    double largest = -INFINITY;
    for (int i = 0; i < n; i++)
        if (LOAD(x, in[i]) > largest) largest = LOAD(x, in[i]);
    return largest;
}

void softmax_oracle(const kl_t_x *x, double *output, int rows, int cols)
{
    for (int row = 0; row < rows; row++) {
        const kl_t_x *in = x + (size_t)row * (size_t)cols;
        double       *out = output + (size_t)row * (size_t)cols;
        double        largest = largest_of(in, cols), sum = 0.0;
        for (int i = 0; i < cols; i++)
            sum += out[i] = exp(LOAD(x, in[i]) - largest);
        for (int i = 0; i < cols; i++)
            out[i] /= sum;
    }
}
