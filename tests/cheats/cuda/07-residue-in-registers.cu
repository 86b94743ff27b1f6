// Registers are not cleared between launches: a mark in one that the compiler never set says that the last launch did its
// work. Most of the time something else has used it since, so it gains nothing; and where it works the output shows it.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass wrong cheat no_compile
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    unsigned seen;
    asm volatile("{ .reg .b32 never<8>; mov.b32 %0, never5; mov.b32 never5, 0x5eed5eed; }" : "=r"(seen));
    if (seen == 0x5eed5eedu) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
