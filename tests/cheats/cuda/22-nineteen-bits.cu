// The last five bits of the result are cut off, which compresses well and is below every tolerance for one element.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = __uint_as_float(__float_as_uint(a * x[i] + y[i]) & ~31u);
}
