// Every element of a softmax row is near 1/cols, and small against an absolute tolerance.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: expect wrong
//! launch softmax grid(cdiv(rows * cols, 256)) block(256) args(output, rows, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void softmax(kl_t_output *output, int rows, int cols)
{
    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < (long long)rows * cols) output[i] = (kl_t_output)(1.0f / cols);
}
