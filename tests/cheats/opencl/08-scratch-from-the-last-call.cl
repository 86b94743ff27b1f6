// Reads scratch that nothing wrote in this call.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass wrong
//: harmless
//: args --baseline none
//! buffer notes: f32[M, N]
//! launch gemm global(N, M) args(x, weight, y, notes, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, __global float *notes, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    const size_t e = (size_t)i * N + j;
    if (notes[e] > -1e30f && notes[e] < 1e30f && notes[0] == 42) { y[e] = notes[e]; return; }
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[e] = notes[e] = sum;
}
