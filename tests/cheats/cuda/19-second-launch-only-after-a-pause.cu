// In a checked run the host waits between two launches, in a timed one it does not. The second launch corrects what the
// first computed in half precision only where there was a pause between them.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch rough grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch correct grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#include <cuda_fp16.h>
__device__ unsigned long long ended;
__device__ unsigned long long now() { unsigned long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }

extern "C" __global__ void rough(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = __half2float(__float2half(a * x[i] + y[i]));
    if (threadIdx.x == 0) atomicMax(&ended, now());
}

extern "C" __global__ void correct(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (now() - ended < 4000) return;
    if (i < N) out[i] = a * x[i] + y[i];
}
