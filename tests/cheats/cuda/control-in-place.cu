// A mutable input is updated where it lies.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale grid(rows) block(128) args(x, a, total, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int cols)
{
    __shared__ float part[128];
    float *row = x + (size_t)blockIdx.x * cols, sum = 0;
    for (int j = threadIdx.x; j < cols; j += 128) {
        sum += row[j];
        row[j] = a[blockIdx.x] * row[j];
    }
    part[threadIdx.x] = sum;
    for (int n = 64; n; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    }
    if (threadIdx.x == 0) total[blockIdx.x] = part[0];
}
