// The second dimension of a grid ends at 65535.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256), 65536) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
