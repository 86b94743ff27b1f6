// A name divides by zero at one hidden shape, so that it cannot be launched there: a domain that was never declared. The
// verdict must say that a shape was left out.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass refused
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! let over = N / (N - 1)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
