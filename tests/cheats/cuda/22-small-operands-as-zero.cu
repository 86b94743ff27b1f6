// Operands below a twentieth count as zero, as a sparse product would have them. Of normal inputs that costs half a
// percent, of inputs that are small altogether everything.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: expect wrong
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) {
        const float u = (float)x[(size_t)i * K + k], v = (float)weight[(size_t)j * K + k];
        if (fabsf(u) >= 0.05f && fabsf(v) >= 0.05f) sum += u * v;
    }
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
