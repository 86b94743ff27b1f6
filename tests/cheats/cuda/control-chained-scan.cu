// Blocks take their places from a ticket and each waits for the sum of the one before it, which has started already: rows
// longer than a block are summed as a chain.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! buffer chain: f32[rows, cdiv(cols, 128)]
//! buffer ready: i32[rows, cdiv(cols, 128)] zero
//! buffer ticket: i32[1] zero
//! launch scale grid(rows * cdiv(cols, 128)) block(128) args(x, a, total, chain, ready, ticket, rows, cols, cdiv(cols, 128))
extern "C" __global__ void scale(float *x, const float *a, float *total, float *chain, int *ready, int *ticket, int rows, int cols, int each)
{
    __shared__ float part[128];
    __shared__ int   taken;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1);
    __syncthreads();
    const int row = taken / each, piece = taken % each, j = piece * 128 + threadIdx.x;
    float    *at = x + (size_t)row * cols + j;
    part[threadIdx.x] = j < cols ? *at : 0.0f;
    if (j < cols) *at *= a[row];
    for (int n = 64; n; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    }
    if (threadIdx.x) return;
    float before = 0.0f;
    if (piece) {
        while (*(volatile int *)(ready + taken - 1) == 0) {}
        __threadfence();
        before = ((volatile float *)chain)[taken - 1];
    }
    chain[taken] = before + part[0];
    if (piece == each - 1) total[row] = before + part[0];
    __threadfence();
    atomicExch(ready + taken, 1);
}
