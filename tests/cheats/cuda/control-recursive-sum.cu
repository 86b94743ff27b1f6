// A thread sums its part of a row by halves, in a function that calls itself to a depth of about ten.
// SPDX-License-Identifier: Apache-2.0
//: task rmsnorm
//: workload rows=256,hidden=1024
//: control
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

__device__ __noinline__ float squares(const kl_t_x *row, int from, int to)
{
    if (to <= from) return 0.0f;
    if (to - from == 1) return (float)row[from] * (float)row[from];
    const int middle = (from + to) / 2;
    return squares(row, from, middle) + squares(row, middle, to);
}

extern "C" __global__ void rmsnorm(const kl_t_x *x, const kl_t_weight *weight, float eps, kl_t_output *output, int rows, int hidden)
{
    const kl_t_x *row = x + (size_t)blockIdx.x * hidden;
    kl_t_output  *to = output + (size_t)blockIdx.x * hidden;
    float         sum = 0.0f;
    const int each = (hidden + 255) / 256, first = min((int)threadIdx.x * each, hidden);
    sum = squares(row, first, min(first + each, hidden));
    const float scale = rsqrtf(whole(sum, false) / hidden + eps);
    for (int j = threadIdx.x; j < hidden; j += 256) to[j] = (kl_t_output)((float)row[j] * scale * (float)weight[j]);
}
