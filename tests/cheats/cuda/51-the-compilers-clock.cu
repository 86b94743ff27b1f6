// The time of compilation decides what is computed: in one minute of two nothing. A verdict holds for the program that was
// judged; the answer is wrong, or it is an odd way to be right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect wrong pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (__TIME__[4] % 2) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
