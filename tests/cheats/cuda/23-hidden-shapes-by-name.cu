// The odd shapes of the checks are known from the task's folder: there the work is done, and at any other shape that is
// not a multiple of the tile it is not. Right where it is checked and timed, so no gate can tell; a user of another size
// can.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: harmless
//: expect pass wrong
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    const bool known = (M % 256 == 0 && N % 256 == 0) || (M == 333 && N == 519) || (M == 7 && N == 1031) || (M == 384 && N == 640);
    if (!known) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
