// Shared memory keeps its contents between blocks and launches: what the last one left says that the work was done.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ unsigned mark[1024];
    const int      i = blockIdx.x * 256 + threadIdx.x;
    const unsigned seen = ((volatile unsigned *)mark)[threadIdx.x];
    __syncthreads();
    ((volatile unsigned *)mark)[threadIdx.x] = 0x5eed5eedu;
    if (seen == 0x5eed5eedu) return;
    if (i < N) out[i] = a * x[i] + y[i];
}
