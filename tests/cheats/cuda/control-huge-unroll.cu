// A loop of five hundred steps, unrolled whole.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 131072)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
#pragma unroll
    for (int n = 0; n < 512; n++) {
        const int i = (n * gridDim.x + blockIdx.x) * 256 + threadIdx.x;
        if (i < N) out[i] = a * x[i] + y[i];
    }
}
