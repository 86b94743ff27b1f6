// The work is called through a pointer in a variable, which the sixth call of a batch turns to a function that does
// nothing. The variable goes back to its first value before every run; the rest of the batch shows.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ void store(float *to, float v) { *to = v; }
__device__ void nothing(float *, float) {}
__device__ void (*volatile work)(float *, float) = store;
__device__ int  calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) work(out + i, a * x[i] + y[i]);
    if (i == 0 && ++calls == 6) work = nothing;
}
