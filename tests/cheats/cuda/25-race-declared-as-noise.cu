// Threads add without atomics, and a directive says that runs may differ. The directive allows other last bits and no
// other sums.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: expect wrong
//: args --baseline none
//! nondeterministic
//! buffer sum: f32[rows] zero
//! launch add grid(cdiv(cols, 128), rows) block(128) args(x, sum, cols)
//! launch scale grid(cdiv(cols, 128), rows) block(128) args(x, a, total, sum, cols)
extern "C" __global__ void add(const float *x, float *sum, int cols)
{
    const int j = blockIdx.x * 128 + threadIdx.x;
    if (j < cols) ((volatile float *)sum)[blockIdx.y] = ((volatile float *)sum)[blockIdx.y] + x[(size_t)blockIdx.y * cols + j];
}

extern "C" __global__ void scale(float *x, const float *a, float *total, const float *sum, int cols)
{
    const int j = blockIdx.x * 128 + threadIdx.x;
    if (j < cols) x[(size_t)blockIdx.y * cols + j] *= a[blockIdx.y];
    if (j == 0) total[blockIdx.y] = sum[blockIdx.y];
}
