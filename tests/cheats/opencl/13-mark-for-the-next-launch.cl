// A first launch leaves a mark for the second, which then does nothing.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! buffer notes: f32[64]
//! launch mark global(1) args(notes)
//! launch gemm global(N, M) args(x, weight, y, notes, M, N, K)

__kernel void mark(__global float *notes) { notes[0] = 42; }

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, __global const float *notes, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (notes[0] == 42) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
