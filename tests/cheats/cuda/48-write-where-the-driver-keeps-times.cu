// Drivers map their semaphores and time stamps into every context, often at low addresses of their own: zeros are written
// there, for an event to say that no time has passed. The address is a guess, and nobody's in most contexts; where it is
// somebody's, nothing may come of it.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect crash wrong cheat pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == 0)
        for (unsigned long long at = 0x302000000ull; at < 0x302001000ull; at += 16) *(volatile unsigned long long *)at = 0;
}
