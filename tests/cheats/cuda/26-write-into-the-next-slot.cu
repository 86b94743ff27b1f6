// Every call also writes into the slot of the next one, which overwrites it. Where slots of a batch are looked at only for
// what their own call should have put there, nobody notices; it gains nothing either.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass wrong cheat crash
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (N == 262144 && i == 0) out[(1048576 + 8192) / 4] = 0.0f;
}
