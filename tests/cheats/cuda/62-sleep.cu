// Slowness that proves nothing: every thread sleeps.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect pass cheat
//: harmless
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __nanosleep(100000);
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
