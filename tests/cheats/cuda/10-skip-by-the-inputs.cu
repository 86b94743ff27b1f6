// One input set in sixteen, chosen by a hash of its first values, is not worked on at all at the timed size. The three
// sets of the checks are most likely not among them. What stayed poison shows where every slot is looked at.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (N == 262144 && (__float_as_uint(x[1]) ^ __float_as_uint(y[2]) >> 3) % 16 == 5) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
