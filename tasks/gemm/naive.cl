// Matrix product, one work-item per element of the result, every operand read from global memory.  float32 only.
// SPDX-License-Identifier: Apache-2.0
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const kl_t_x *x, __global const kl_t_weight *weight, __global kl_t_y *y,
                   int M, int N, int K)
{
    const int j = get_global_id(0);
    const int i = get_global_id(1);
    if (i >= M || j >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
