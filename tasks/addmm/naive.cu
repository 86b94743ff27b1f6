//! launch addmm grid(cdiv(N, 32), cdiv(M, 8)) block(32, 8) args(bias, mat1, mat2, output, M, N, K)
/* output = bias + mat1 * mat2: one thread an element, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void addmm(const kl_t_bias *bias, const kl_t_mat1 *mat1, const kl_t_mat2 *mat2,
                                 kl_t_output *output, int M, int N, int K)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    if (n >= N || m >= M) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += float(mat1[(size_t)m * K + k]) * float(mat2[(size_t)k * N + n]);
    output[(size_t)m * N + n] = kl_t_output(float(bias[n]) + sum);
}
