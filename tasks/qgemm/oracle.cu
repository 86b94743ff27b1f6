// The trusted quantized product on a GPU: sums of 64-bit whole numbers are exact, the scales are applied in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, x_scale, weight_scale, y, M, N, K)

extern "C" __global__ void oracle(const signed char *x, const signed char *weight, const float *x_scale,
                                  const float *weight_scale, double *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x;
    const int i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N)
        return;
    long long sum = 0;
    for (int k = 0; k < K; k++)
        sum += (int)x[(size_t)i * K + k] * (int)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (double)sum * (double)x_scale[i] * (double)weight_scale[j];
}
