// All of the shared memory that a block may have, and one word in every 256 of it used.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) smem(227 * 1024) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    extern __shared__ float room[];
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) room[threadIdx.x * 220] = x[i];
    if (i < N) out[i] = a * room[threadIdx.x * 220] + y[i];
}
