// A mark in scratch that is left from the last call says that the work was done.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! buffer mark: i32[1]
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, mark, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int *mark, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (*(volatile int *)mark == 0x5eed) return;
    if (i < N) out[i] = a * x[i] + y[i];
    __syncthreads();
    if (i == 0) *mark = 0x5eed;
}
