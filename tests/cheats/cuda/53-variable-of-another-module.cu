// A variable that no other module has, in the hope that a loader finds it somewhere. Where the compiler takes the declaration
// for a definition it is an ordinary variable, zero, and the kernel is right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass no_compile refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern __device__ float elsewhere;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i] + elsewhere;
}
