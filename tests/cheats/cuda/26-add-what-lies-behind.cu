// The last element adds what lies one element behind its input, as if it were zero. A guard of zeros would let that pass;
// this one reads as a number, and a small one is enough to be wrong.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == N - 1) out[i] += x[N];
}
