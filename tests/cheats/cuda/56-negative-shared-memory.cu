// Shared memory of less than nothing, which is four gigabytes in 32 bits.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) smem(0 - 1024) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
