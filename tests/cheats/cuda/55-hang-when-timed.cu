// The kernel ends in every checked run and not when launches follow each other.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect hang wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ unsigned calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (atomicAdd(&calls, 1) > 8 * gridDim.x * 256)
        while (true) asm volatile("" : : : "memory");
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
