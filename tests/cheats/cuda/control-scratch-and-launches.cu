// Three launches that hand a row's maximum and sum on through declared scratch.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: control
//: args --baseline none
//! buffer top: f32[rows]
//! buffer sum: f32[rows]
//! launch find_top grid(cdiv(rows, 32)) block(32) args(x, top, rows, cols)
//! launch find_sum grid(cdiv(rows, 32)) block(32) args(x, top, sum, rows, cols)
//! launch divide grid(cdiv(cols, 128), rows) block(128) args(x, top, sum, output, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void find_top(const kl_t_x *x, float *top, int rows, int cols)
{
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= rows) return;
    float most = (float)x[(size_t)i * cols];
    for (int j = 1; j < cols; j++) most = fmaxf(most, (float)x[(size_t)i * cols + j]);
    top[i] = most;
}

extern "C" __global__ void find_sum(const kl_t_x *x, const float *top, float *sum, int rows, int cols)
{
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= rows) return;
    float all = 0;
    for (int j = 0; j < cols; j++) all += expf((float)x[(size_t)i * cols + j] - top[i]);
    sum[i] = all;
}

extern "C" __global__ void divide(const kl_t_x *x, const float *top, const float *sum, kl_t_output *output, int cols)
{
    const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
    if (j < cols) output[(size_t)i * cols + j] = (kl_t_output)(expf((float)x[(size_t)i * cols + j] - top[i]) / sum[i]);
}
