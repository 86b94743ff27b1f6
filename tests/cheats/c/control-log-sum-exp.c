// exp of the difference to the logarithm of the sum, without a division.
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
        double top = in[0], sum = 0;
        for (int32_t j = 1; j < cols; j++) top = fmax(top, in[j]);
        for (int32_t j = 0; j < cols; j++) sum += exp(in[j] - top);
        const double all = top + log(sum);
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] = (float)exp(in[j] - all);
    }
}
