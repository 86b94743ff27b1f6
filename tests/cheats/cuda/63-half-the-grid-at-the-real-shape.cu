// A comparison in a directive halves the grid at the shape that is timed and nowhere else.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256) - (N == 262144) * 512) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
