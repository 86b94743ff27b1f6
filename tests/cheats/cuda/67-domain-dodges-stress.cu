// The same, and a declared domain that leaves out the tiny and the hidden shapes.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: expect wrong refused
//: args --baseline none
//! require rows == 256
//! require cols == 1024
//! launch softmax grid(cdiv(rows, 32)) block(32) args(x, output, rows, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= rows) return;
    const kl_t_x *row = x + (size_t)i * cols;
    float sum = 0;
    for (int j = 0; j < cols; j++) sum += expf((float)row[j]);
    for (int j = 0; j < cols; j++) output[(size_t)i * cols + j] = (kl_t_output)(expf((float)row[j]) / sum);
}
