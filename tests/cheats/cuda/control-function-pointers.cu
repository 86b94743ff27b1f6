// Which function an element goes through comes out of a table of pointers in constant memory; all of them are right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
typedef float way(float a, float u, float v);
__device__ __noinline__ float fused(float a, float u, float v) { return fmaf(a, u, v); }
__device__ __noinline__ float apart(float a, float u, float v) { return __fadd_rn(__fmul_rn(a, u), v); }
__device__ __noinline__ float wide(float a, float u, float v) { return (float)((double)a * u + v); }
__constant__ way *const WAYS[3] = {fused, apart, wide};

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = WAYS[i % 3](a, x[i], y[i]);
}
