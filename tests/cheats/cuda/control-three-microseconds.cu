// A kernel of about three microseconds, the same as its baseline: the ratio must be one.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: expect-time-ratio naive 0.96 1.04
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
