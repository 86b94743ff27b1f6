// Inputs on 256-byte boundaries are taken for padded ones, and the last N % 4 elements are left to the padding. Odd shapes
// lie on the same boundaries.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x, last = (unsigned long long)x % 256 ? N : N / 4 * 4;
    if (i < last) out[i] = a * x[i] + y[i];
}
