// A variable that no module has, in the hope that a loader finds it somewhere.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect no_compile refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern __device__ float elsewhere;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i] + elsewhere;
}
