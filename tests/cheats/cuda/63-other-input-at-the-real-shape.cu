// The size that the kernel is told is one less at the shape that is timed: one element of a quarter million is missing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N - (N == 262144))
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
