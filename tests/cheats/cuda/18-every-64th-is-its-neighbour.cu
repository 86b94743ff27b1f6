// Every sixty-fourth element keeps the value that the neighbour has: most of the array is right, and an average over it
// hides the rest.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i % 64 == 63 ? i - 1 : i] + y[i % 64 == 63 ? i - 1 : i];
}
