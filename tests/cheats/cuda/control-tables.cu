// Constant memory and a constant table in device memory are ordinary.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__constant__ float UNIT[4] = {1, 1, 1, 1};
__device__ const float TABLE[3] = {1, 1, 1};

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] * UNIT[i % 4] + y[i] * TABLE[i % 3];
}
