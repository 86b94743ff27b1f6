// Every thread has a stack of 480 KB: the device must hold that for all threads that it could run, 130 GB in all. Devices
// that have so much run it, others refuse.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect refused crash pass no_compile
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    volatile float room[120000];
    const int      i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    room[i % 120000] = a * x[i];
    out[i] = room[i % 120000] + y[i];
}
