//! launch mm grid(cdiv(N, 32), cdiv(M, 8)) block(32, 8) args(a, b, output, M, N, K)
/* output = a * b: one thread an element, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void mm(const kl_t_a *a, const kl_t_b *b, kl_t_output *output, int M, int N, int K)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    if (n >= N || m >= M) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += float(a[(size_t)m * K + k]) * float(b[(size_t)k * N + n]);
    output[(size_t)m * N + n] = kl_t_output(sum);
}
