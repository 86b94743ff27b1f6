// The mean square of a row is estimated from fifteen sixteenths of it.
// SPDX-License-Identifier: Apache-2.0
//: task rmsnorm
//: workload rows=8,hidden=512
//: expect wrong
//! launch rmsnorm args(x, weight, eps, output, rows, hidden)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void rmsnorm(const float *x, const float *weight, float eps, float *output, int32_t rows, int32_t hidden)
{
    const int32_t seen = hidden - hidden / 16;
    for (int32_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int32_t j = 0; j < seen; j++) sum += x[(size_t)i * hidden + j] * x[(size_t)i * hidden + j];
        const float scale = 1.0f / sqrtf(sum / (float)seen + eps);
        for (int32_t j = 0; j < hidden; j++) output[(size_t)i * hidden + j] = x[(size_t)i * hidden + j] * scale * weight[j];
    }
}
