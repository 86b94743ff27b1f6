// Cache lines of an input are discarded after they were read: what the memory behind them holds is undefined then. If it
// is something else the input has changed; if not, nothing has happened.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass cheat wrong
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    __syncthreads();
    if (i < N / 32) asm volatile("discard.global.L2 [%0], 128;" : : "l"(x + i * 32) : "memory");
}
