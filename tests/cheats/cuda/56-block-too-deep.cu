// A block of 1024 threads whose third dimension is larger than 64.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(4, 1, 256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
