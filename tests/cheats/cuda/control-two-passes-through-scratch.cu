// Sums of pieces of rows in scratch, then everything else: scratch is written by one launch and read by the next two.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: control
//: args --baseline none
//! buffer parts: f32[rows, 8]
//! launch sums grid(cdiv(rows, 4), 4) block(128) args(x, parts, rows, cols)
//! launch merge grid(cdiv(rows, 256)) block(256) args(parts, rows)
//! launch divide grid(cdiv(rows * cols, 256)) block(256) args(x, parts, output, rows, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void sums(const kl_t_x *x, float2 *parts, int rows, int cols)
{
    const int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, part = blockIdx.y, each = (cols + 3) / 4;
    if (i >= rows) return;
    float top = -INFINITY, sum = 0.0f;
    for (int j = part * each + lane; j < min((part + 1) * each, cols); j += 32) top = fmaxf(top, (float)x[(size_t)i * cols + j]);
    for (int n = 16; n; n /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, n));
    for (int j = part * each + lane; j < min((part + 1) * each, cols); j += 32) sum += expf((float)x[(size_t)i * cols + j] - top);
    for (int n = 16; n; n /= 2) sum += __shfl_xor_sync(~0u, sum, n);
    if (lane == 0) parts[i * 4 + part] = {top, sum};
}

extern "C" __global__ void merge(float2 *parts, int rows)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= rows) return;
    float2 *p = parts + i * 4, all = {-INFINITY, 0.0f};
    for (int n = 0; n < 4; n++) all.x = fmaxf(all.x, p[n].x);
    for (int n = 0; n < 4; n++) all.y += p[n].x == -INFINITY ? 0.0f : p[n].y * expf(p[n].x - all.x);
    p[0] = all;
}

extern "C" __global__ void divide(const kl_t_x *x, const float2 *parts, kl_t_output *output, int rows, int cols)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x;
    if (at >= (long long)rows * cols) return;
    const float2 all = parts[at / cols * 4];
    output[at] = (kl_t_output)(expf((float)x[at] - all.x) / all.y);
}
