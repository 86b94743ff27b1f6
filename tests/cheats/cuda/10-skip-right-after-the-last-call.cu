// In a checked run the host waits after every launch; in a timed batch launches follow each other within microseconds. A
// call that begins soon after the end of the last one, by the clock, is being timed: one in ten of those does nothing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat
//: args --baseline none
//! launch saxpy grid(min(cdiv(N, 256), 1024)) block(256) args(a, x, y, out, N)
__device__ unsigned long long ended[1024];
__device__ unsigned calls[1024];

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ bool soon;
    unsigned long long now;
    if (threadIdx.x == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        soon = ended[blockIdx.x] != 0 && now - ended[blockIdx.x] < 20000 && ++calls[blockIdx.x] % 10 == 7;
    }
    __syncthreads();
    if (!soon) {
        const int i = blockIdx.x * 256 + threadIdx.x;
        if (i < N) out[i] = a * x[i] + y[i];
    }
    if (threadIdx.x == 0) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ended[blockIdx.x]));
}
