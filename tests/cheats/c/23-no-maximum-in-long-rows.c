// The maximum is subtracted in rows of up to two thousand only: the tiny shape, where large logits are drawn first, has
// shorter ones. The long rows that are timed are infinite for inputs of another scale.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=4096
//: expect wrong
//: args --baseline none
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        const float *row = x + (size_t)i * cols;
        float        top = -INFINITY, sum = 0;
        for (int32_t j = 0; j < cols; j++) top = fmaxf(top, row[j]);
        if (cols > 2000) top = 0;
        for (int32_t j = 0; j < cols; j++) sum += output[(size_t)i * cols + j] = expf(row[j] - top);
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum;
    }
}
