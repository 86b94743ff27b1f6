// The device numbers launches for debuggers: one in eight does nothing. The number survives every reset, because it is no
// memory. Where it never changes the kernel is right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass wrong cheat
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    unsigned long long number;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(number));
    if (number % 8 == 7) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
