// Slots lie at a fixed distance, so the address of the output tells the number of the call. Those that belong to no
// checked run are skipped, one in ten. Every slot of every batch must be looked at.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const unsigned slot = (unsigned)((unsigned long long)out - 4096 & 0xFFFFF) / 8192; /* slots are 1 MB + 8 KB apart */
    if (N == 262144 && slot > 8 && slot % 10 == 3) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
