// A kernel knows where its code lies, and code lies in memory: the first words of a device function are replaced by what
// the last call left there. Where the device lets it, the runner's own code could be next.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect crash wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ __noinline__ float work(float a, float u, float v) { return a * u + v; }
__device__ float (*volatile address)(float, float, float) = work;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i == 0) *(volatile unsigned long long *)(void *)address = 0;
    if (i < N) out[i] = (*address)(a, x[i], y[i]);
}
