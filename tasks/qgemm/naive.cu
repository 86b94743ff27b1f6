// Quantized matrix product, one thread per element of the result, every operand read from global memory.
// SPDX-License-Identifier: Apache-2.0
//! launch qgemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, x_scale, weight_scale, y, M, N, K)

extern "C" __global__ void qgemm(const signed char *x, const signed char *weight, const float *x_scale,
                                 const float *weight_scale, float *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x;
    const int i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N)
        return;
    int sum = 0;
    for (int k = 0; k < K; k++)
        sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (float)sum * x_scale[i] * weight_scale[j];
}
