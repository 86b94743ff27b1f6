// More than 48 KB of dynamic shared memory, which must be asked for, is ordinary.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) smem(100 * 1024) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    extern __shared__ float room[];
    const int i = blockIdx.x * 256 + threadIdx.x;
    room[threadIdx.x * 64] = i < N ? x[i] : 0;
    __syncthreads();
    if (i < N) out[i] = a * room[threadIdx.x * 64] + y[i];
}
