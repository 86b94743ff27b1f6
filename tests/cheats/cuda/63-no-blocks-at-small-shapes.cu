// The grid has no blocks below a thousand elements, which takes the smallest hidden shape out of the checks, and too few
// at the next.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong refused
//: args --baseline none
//! launch saxpy grid(N / 1024) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    for (int i = blockIdx.x * 256 + threadIdx.x; i < gridDim.x * 1024 && i < N; i += gridDim.x * 256) out[i] = a * x[i] + y[i];
}
