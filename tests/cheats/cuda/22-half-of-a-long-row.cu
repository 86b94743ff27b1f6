// In rows of more than four thousand the mean square is that of the first half: of independent inputs a percent off, which
// the whole output is allowed and its largest elements are not.
// SPDX-License-Identifier: Apache-2.0
//: task rmsnorm
//: workload rows=512,hidden=4096
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
    const int looked_at = hidden > 4000 ? hidden / 2 : hidden;
    for (int j = threadIdx.x; j < looked_at; j += 256) sum += (float)row[j] * (float)row[j];
    const float scale = rsqrtf(whole(sum, false) / looked_at + eps);
    for (int j = threadIdx.x; j < hidden; j += 256) to[j] = (kl_t_output)((float)row[j] * scale * (float)weight[j]);
}
