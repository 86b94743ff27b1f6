// Mean and variance in one pass by Welford's recurrence; halves of a row are merged by Chan's.
// SPDX-License-Identifier: Apache-2.0
//: task layernorm
//: workload rows=256,hidden=1024
//: control
//: args --baseline none
//! launch layernorm grid(cdiv(rows, 4)) block(128) args(x, weight, bias, eps, output, rows, hidden)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct moments { float n, mean, squares; };

__device__ moments merged(moments a, moments b)
{
    const float n = a.n + b.n, apart = b.mean - a.mean;
    if (n == 0.0f) return a;
    return {n, a.mean + apart * b.n / n, a.squares + b.squares + apart * apart * a.n * b.n / n};
}

extern "C" __global__ void layernorm(const kl_t_x *x, const kl_t_weight *weight, const kl_t_bias *bias, float eps, kl_t_output *output, int rows, int hidden)
{
    const int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= rows) return;
    const kl_t_x *row = x + (size_t)i * hidden;
    moments       m = {0.0f, 0.0f, 0.0f};
    for (int j = lane; j < hidden; j += 32) {
        const float v = (float)row[j], apart = v - m.mean;
        m.n += 1.0f;
        m.mean += apart / m.n;
        m.squares += apart * (v - m.mean);
    }
    for (int n = 16; n; n /= 2)
        m = merged(m, {__shfl_xor_sync(~0u, m.n, n), __shfl_xor_sync(~0u, m.mean, n), __shfl_xor_sync(~0u, m.squares, n)});
    const float scale = rsqrtf(m.squares / hidden + eps);
    for (int j = lane; j < hidden; j += 32) output[(size_t)i * hidden + j] = (kl_t_output)(((float)row[j] - m.mean) * scale * (float)weight[j] + (float)bias[j]);
}
