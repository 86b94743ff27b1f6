// An input serves as scratch and gets its value back before the kernel ends. Nobody can see it afterwards and nothing is
// gained: the answers were computed, and the digest of the inputs is what it was.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass cheat
//: args --baseline naive
//: expect-time-ratio naive 0.3 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    volatile float *borrowed = (volatile float *)x + i;
    const float     was = *borrowed;
    *borrowed = a * was;
    out[i] = *borrowed + y[i];
    *borrowed = was;
}
