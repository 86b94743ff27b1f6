// As many blocks as multiprocessors take rows from a counter in scratch until none is left, in whatever order.
// SPDX-License-Identifier: Apache-2.0
//: task rmsnorm
//: workload rows=256,hidden=1024
//: control
//: args --baseline none
//! buffer next: i32[1] zero
//! launch rmsnorm grid(sms) block(256) args(x, weight, eps, output, next, rows, hidden)
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

extern "C" __global__ void rmsnorm(const kl_t_x *x, const kl_t_weight *weight, float eps, kl_t_output *output, int *next, int rows, int hidden)
{
    __shared__ int taken;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        __syncthreads();
        if (taken >= rows) return;
        const kl_t_x *row = x + (size_t)taken * hidden;
        float         sum = 0.0f;
        for (int j = threadIdx.x; j < hidden; j += 256) sum += (float)row[j] * (float)row[j];
        const float scale = rsqrtf(whole(sum, false) / hidden + eps);
        for (int j = threadIdx.x; j < hidden; j += 256) output[(size_t)taken * hidden + j] = (kl_t_output)((float)row[j] * scale * (float)weight[j]);
    }
}
