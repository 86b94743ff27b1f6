// Largest value and sum in one pass, rescaled whenever a larger value comes.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=48,cols=384
//: control
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        const float *in = x + (size_t)i * cols;
        float top = -INFINITY, sum = 0;
        for (int32_t j = 0; j < cols; j++) {
            const float larger = fmaxf(top, in[j]);
            sum = sum * (top == larger ? 1 : expf(top - larger)) + expf(in[j] - larger);
            top = larger;
        }
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] = expf(in[j] - top) / sum;
    }
}
