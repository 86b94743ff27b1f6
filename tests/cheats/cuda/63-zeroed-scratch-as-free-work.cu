// Scratch is declared to be cleared, so the gate clears it before the clock starts; the kernel has a sum's zeros for
// nothing. So has every kernel that asks for it, baselines included.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! buffer sum: f32[N] zero
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, sum, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, float *sum, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = atomicAdd(sum + i, a * x[i]) + a * x[i] + y[i];
}
