// Functions, structures passed by value, a pointer to private memory.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

typedef struct { float a, b; } pair;

static float product_of(pair p) { return p.a * p.b; }
static void add(pair *to, float v) { to->a += v; }

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= M || j >= N) return;
    float sum = 0;
    pair p = {0, 0};
    for (int k = 0; k < K; k++) add(&p, product_of((pair){x[(size_t)i * K + k], weight[(size_t)j * K + k]}));
    sum = p.a;
    y[(size_t)i * N + j] = sum;
}
