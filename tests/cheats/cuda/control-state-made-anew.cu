// Variables of the module are written by every call before they are read, so what they held before never matters.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch prepare grid(1) block(1) args(a, N)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(x, y, out)
__device__ float         factor;
__device__ volatile int  sizes[2];

extern "C" __global__ void prepare(float a, int N) { factor = a, sizes[0] = N, sizes[1] = N / 256; }

extern "C" __global__ void saxpy(const float *x, const float *y, float *out)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < sizes[0] && blockIdx.x <= sizes[1]) out[i] = factor * x[i] + y[i];
}
