// A grid whose number of blocks is beyond 64 bits, and comes round to a small one where nobody checks.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect refused
//: args --baseline none
//! launch saxpy grid(9223372036854775807 + N) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
