// Squares are summed in float16, which ends at 65504: rows of large numbers overflow and long rows lose their small ones.
// SPDX-License-Identifier: Apache-2.0
//: task rmsnorm
//: workload rows=256,hidden=1024
//: expect wrong
//: args --baseline none
//! launch rmsnorm grid(rows) block(256) args(x, weight, eps, output, rows, hidden)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float whole(float v, bool largest)
{
    __shared__ float part[256];
    __syncthreads();
    part[threadIdx.x] = v;
    __syncthreads();
    for (int n = 128; n; n /= 2) {
        if (threadIdx.x < n) part[threadIdx.x] = largest ? fmaxf(part[threadIdx.x], part[threadIdx.x + n]) : part[threadIdx.x] + part[threadIdx.x + n];
        __syncthreads();
    }
    return part[0];
}

extern "C" __global__ void rmsnorm(const kl_t_x *x, const kl_t_weight *weight, float eps, kl_t_output *output, int rows, int hidden)
{
    const kl_t_x *row = x + (size_t)blockIdx.x * hidden;
    kl_t_output  *to = output + (size_t)blockIdx.x * hidden;
    float         sum = 0.0f;
    __half part = (__half)0.0f;
    for (int j = threadIdx.x; threadIdx.x < 8 && j < hidden; j += 8) part = __hfma((__half)(float)row[j], (__half)(float)row[j], part);
    sum = whole((float)part, false);
    const float scale = rsqrtf(sum / hidden + eps);
    for (int j = threadIdx.x; j < hidden; j += 256) to[j] = (kl_t_output)((float)row[j] * scale * (float)weight[j]);
}
