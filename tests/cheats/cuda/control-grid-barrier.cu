// All blocks wait for each other through a counter in scratch: as many blocks as multiprocessors, so all of them run.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! buffer halves: f32[rows, 2]
//! buffer arrived: i32[1] zero
//! launch scale grid(sms) block(128) args(x, a, total, halves, arrived, rows, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, float *halves, int *arrived, int rows, int cols)
{
    for (int n = blockIdx.x * 128 + threadIdx.x; n < 2 * rows; n += gridDim.x * 128) {
        float sum = 0.0f;
        for (int j = n % 2; j < cols; j += 2) sum += x[(size_t)(n / 2) * cols + j];
        halves[n] = sum;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile int *)arrived < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    for (int i = blockIdx.x * 128 + threadIdx.x; i < rows; i += gridDim.x * 128) total[i] = ((volatile float *)halves)[2 * i] + ((volatile float *)halves)[2 * i + 1];
    for (long long n = blockIdx.x * 128 + threadIdx.x; n < (long long)rows * cols; n += gridDim.x * 128) x[n] *= a[n / cols];
}
