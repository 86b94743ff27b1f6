// Four slices of the sum, each added to cleared scratch by atomics; the last bits differ from run to run, as declared.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: control
//: args --baseline none
//! nondeterministic
//! buffer sum: f32[M, N] zero
//! launch slices grid(cdiv(N, 16), cdiv(M, 16), 4) block(16, 16) args(x, weight, sum, M, N, K)
//! launch narrow grid(cdiv(M * N, 256)) block(256) args(sum, y, M * N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void slices(const kl_t_x *x, const kl_t_weight *weight, float *sum, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y, slice = (K + 3) / 4, k0 = blockIdx.z * slice;
    if (i >= M || j >= N) return;
    float part = 0.0f;
    for (int k = k0; k < min(k0 + slice, K); k++) part += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    atomicAdd(sum + (size_t)i * N + j, part);
}

extern "C" __global__ void narrow(const float *sum, kl_t_y *y, int n)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = (kl_t_y)sum[i];
}
