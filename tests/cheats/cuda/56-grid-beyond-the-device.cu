// Four thousand million blocks, more than a dimension of a grid holds.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect refused
//: args --baseline none
//! launch saxpy grid(4294967295) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
