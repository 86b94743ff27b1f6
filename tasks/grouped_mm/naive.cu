//! launch grouped_mm grid(cdiv(N, 32), cdiv(T, 8)) block(32, 8) args(x, weight, offsets, output, T, N, K)
/* Rows offsets[g] .. offsets[g+1] of x times weight g: one thread an element, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void grouped_mm(const kl_t_x *x, const kl_t_weight *weight, const int *offsets,
                                        kl_t_output *output, int T, int N, int K)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int t = blockIdx.y * blockDim.y + threadIdx.y;
    if (n >= N || t >= T) return;
    int g = 0;
    while (t >= offsets[g + 1])
        g++;
    const kl_t_x      *row = x + (size_t)t * K;
    const kl_t_weight *column = weight + (size_t)g * K * N + n;
    float              sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += float(row[k]) * float(column[(size_t)k * N]);
    output[(size_t)t * N + n] = kl_t_output(sum);
}
