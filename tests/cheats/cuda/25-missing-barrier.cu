// A reduction in shared memory without the barrier between its steps: right when the warps happen to keep step.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: workload rows=4096,cols=4096
//: expect wrong
//! launch scale grid(rows) block(1024) args(x, a, total, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int cols)
{
    __shared__ volatile float part[1024];
    float *row = x + (size_t)blockIdx.x * cols, sum = 0;
    for (int j = threadIdx.x; j < cols; j += 1024) {
        sum += row[j];
        row[j] = a[blockIdx.x] * row[j];
    }
    part[threadIdx.x] = sum;
    for (int n = 512; n; n /= 2)
        if (threadIdx.x < n) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + n];
    if (threadIdx.x == 0) total[blockIdx.x] = part[0];
}
