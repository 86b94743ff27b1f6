// The block that comes first, not the last, adds up what all blocks of a row have left: right when they happened to be
// done. What they have not left yet is poison, or the zeros of cleared scratch.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: expect wrong
//: args --baseline none
//! nondeterministic
//! buffer parts: f32[rows, cdiv(cols, 128)] zero
//! launch scale grid(cdiv(cols, 128), rows) block(128) args(x, a, total, parts, cols, cdiv(cols, 128))
extern "C" __global__ void scale(float *x, const float *a, float *total, float *parts, int cols, int blocks)
{
    __shared__ float part;
    const int        j = blockIdx.x * 128 + threadIdx.x;
    float           *at = x + (size_t)blockIdx.y * cols + j;
    if (threadIdx.x == 0) part = 0.0f;
    __syncthreads();
    if (j < cols) atomicAdd(&part, *at), *at *= a[blockIdx.y];
    __syncthreads();
    if (threadIdx.x) return;
    ((volatile float *)parts)[blockIdx.y * blocks + blockIdx.x] = part;
    if (blockIdx.x) return;
    float sum = 0.0f;
    for (int n = 0; n < blocks; n++) sum += ((volatile float *)parts)[blockIdx.y * blocks + n];
    total[blockIdx.y] = sum;
}
