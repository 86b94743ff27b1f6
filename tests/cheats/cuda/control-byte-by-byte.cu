// Floats are put together from bytes that were loaded one by one, and stored likewise.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const unsigned char *u = (const unsigned char *)(x + i), *v = (const unsigned char *)(y + i);
    const float          r = a * __uint_as_float(u[0] | u[1] << 8 | u[2] << 16 | (unsigned)u[3] << 24) + __uint_as_float(v[0] | v[1] << 8 | v[2] << 16 | (unsigned)v[3] << 24);
    for (int b = 0; b < 4; b++) ((unsigned char *)(out + i))[b] = __float_as_uint(r) >> 8 * b;
}
