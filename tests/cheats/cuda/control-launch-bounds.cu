// Bounds on threads and blocks that make the compiler choose few registers, and a function it may not inline.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 1024)) block(1024) args(a, x, y, out, N)
__device__ __noinline__ float work(float a, float u, float v) { return a * u + v; }

extern "C" __global__ void __launch_bounds__(1024, 2) saxpy(float a, const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int N)
{
    const int i = blockIdx.x * 1024 + threadIdx.x;
    if (i < N) out[i] = work(a, x[i], y[i]);
}
