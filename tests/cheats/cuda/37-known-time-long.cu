// Timing self-test: work that is bound by memory, done twice, takes twice as long as its baseline.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: workload N=67108864
//: control
//: expect-time-ratio naive 0.47 0.53
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
