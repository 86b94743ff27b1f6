// Each operand is the sum of two bfloat16 numbers, 16 bits of 24: within the tolerance of an element and not within the
// rounding that the whole is allowed.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#include <cuda_bf16.h>

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const __nv_bfloat16 high = __float2bfloat16(x[i]), low = __float2bfloat16(x[i] - __bfloat162float(high));
    out[i] = a * (__bfloat162float(high) + __bfloat162float(low)) + y[i];
}
