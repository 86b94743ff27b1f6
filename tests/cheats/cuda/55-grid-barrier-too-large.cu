// All blocks of the grid wait for each other, and there are more than the device can run at once: right at small shapes,
// and never over at the one that is timed.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect hang
//: args --baseline none
//! buffer arrived: i32[1] zero
//! launch saxpy grid(cdiv(N, 256)) block(256) smem(100 * 1024) args(a, x, y, out, arrived, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int *arrived, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile int *)arrived < gridDim.x) {}
    }
}
