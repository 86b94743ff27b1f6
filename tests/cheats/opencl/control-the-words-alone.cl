// asm and ifunc in a comment, in a name and in a macro: words are no assembly.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=33,N=33,K=33
//: control
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

#define TEXT "__asm__ volatile"
/* __asm__("nop"); __attribute__((ifunc("resolve"))) */
__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= M || j >= N) return;
    float asm_sum = 0;
    for (int plasma = 0; plasma < K; plasma++) asm_sum += x[(size_t)i * K + plasma] * weight[(size_t)j * K + plasma];
    y[(size_t)i * N + j] = asm_sum;
}
