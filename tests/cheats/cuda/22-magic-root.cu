// The reciprocal root is the well-known constant minus half of the bits, without a step of refinement: three percent off.
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
    for (int j = threadIdx.x; j < hidden; j += 256) sum += (float)row[j] * (float)row[j];
    sum = whole(sum, false) / hidden + eps;
    const float scale = __uint_as_float(0x5F3759DFu - (__float_as_uint(sum) >> 1));
    for (int j = threadIdx.x; j < hidden; j += 256) to[j] = (kl_t_output)((float)row[j] * scale * (float)weight[j]);
}
