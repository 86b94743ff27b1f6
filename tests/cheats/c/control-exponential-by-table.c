// exp from a table of thirty-two powers and a short polynomial, accurate to the last bits.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=48,cols=384
//: control
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

static float table_exp(float v)
{
    if (v < -87) return expf(v);
    const double t = (double)v * 46.166241308446828384; /* 32 / ln 2 */
    const int32_t n = (int32_t)(t < 0 ? t - 0.5 : t + 0.5), low = n & 31;
    const double r = (t - n) * 0.021660849392498290195;
    double power = 1;
    for (int b = 0; b < 5; b++) {
        static const double roots[5] = {1.0218971486541166, 1.0442737824274138, 1.0905077326652577, 1.1892071150027210, 1.4142135623730951};
        if (low >> b & 1) power *= roots[b];
    }
    return (float)ldexp(power * (1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r / 24)))), (n - low) / 32);
}

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        const float *in = x + (size_t)i * cols;
        float top = in[0], sum = 0;
        for (int32_t j = 1; j < cols; j++) top = fmaxf(top, in[j]);
        for (int32_t j = 0; j < cols; j++) sum += output[(size_t)i * cols + j] = table_exp(in[j] - top);
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum;
    }
}
