// Timing self-test: eight launches of three microseconds take eight times as long as one, so no fixed cost is in the interval.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: expect-time-ratio naive 0.08 0.2
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
