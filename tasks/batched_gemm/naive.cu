//! launch batched_gemm grid(cdiv(N, 32), cdiv(M, 8), B) block(32, 8) args(a, b, output, M, N, K)
/* output[p] = a[p] * b[p]: one thread an element, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void batched_gemm(const kl_t_a *a, const kl_t_b *b, kl_t_output *output, int M, int N, int K)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    int p = blockIdx.z;
    if (n >= N || m >= M) return;
    const kl_t_a *row = a + ((size_t)p * M + m) * K;
    const kl_t_b *column = b + (size_t)p * K * N + n;
    float         sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += float(row[k]) * float(column[(size_t)k * N]);
    output[((size_t)p * M + m) * N + n] = kl_t_output(sum);
}
