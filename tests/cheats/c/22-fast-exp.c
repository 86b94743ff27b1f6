// The exponential is a linear interpolation in the exponent's bits, good to some percent.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: expect wrong
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

static float rough_exp(float v)
{
    const int32_t bits = (int32_t)(12102203.0f * v) + 1064866805;
    float         value;
    memcpy(&value, &bits, sizeof value);
    return bits > 0 ? value : 0;
}

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        float top = x[(size_t)i * cols], sum = 0;
        for (int32_t j = 1; j < cols; j++) top = fmaxf(top, x[(size_t)i * cols + j]);
        for (int32_t j = 0; j < cols; j++) sum += output[(size_t)i * cols + j] = rough_exp(x[(size_t)i * cols + j] - top);
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum;
    }
}
