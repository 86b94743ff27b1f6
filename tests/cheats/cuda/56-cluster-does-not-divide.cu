// A grid that is no multiple of its clusters at the odd shapes, so that these cannot be launched.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect refused pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) cluster(4) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
