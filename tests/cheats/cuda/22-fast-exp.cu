// The exponential is a linear interpolation in the exponent's bits.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: expect wrong
//! launch softmax grid(cdiv(rows, 32)) block(32) args(x, output, rows, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float rough_exp(float v)
{
    const int bits = (int)(12102203.0f * v) + 1064866805;
    return bits > 0 ? __int_as_float(bits) : 0.0f;
}

extern "C" __global__ void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= rows) return;
    const kl_t_x *row = x + (size_t)i * cols;
    float top = (float)row[0], sum = 0;
    for (int j = 1; j < cols; j++) top = fmaxf(top, (float)row[j]);
    for (int j = 0; j < cols; j++) sum += rough_exp((float)row[j] - top);
    for (int j = 0; j < cols; j++) output[(size_t)i * cols + j] = (kl_t_output)(rough_exp((float)row[j] - top) / sum);
}
