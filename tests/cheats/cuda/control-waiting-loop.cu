// A waiting loop with a short sleep on a flag in zeroed scratch: how blocks of one grid wait for each other.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! buffer flag: i32[1] zero
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, flag, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int *flag, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(flag, 1);
    if (threadIdx.x == 0)
        while (atomicAdd(flag, 0) == 0) __nanosleep(20);
    __syncthreads();
    if (i < N) out[i] = a * x[i] + y[i];
}
