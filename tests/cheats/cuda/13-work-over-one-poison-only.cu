// Every first look is over one poison and the second over the other: whoever works only over the one hopes that the other
// is never compared.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N || __float_as_uint(((volatile float *)out)[i]) == 0xA5A5A5A5u) return;
    out[i] = a * x[i] + y[i];
}
