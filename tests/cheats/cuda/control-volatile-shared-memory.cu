// A reduction in volatile shared memory whose last steps belong to one warp, with a barrier of the warp between them.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale grid(rows) block(128) args(x, a, total, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int cols)
{
    __shared__ volatile float part[128];
    float                    *row = x + (size_t)blockIdx.x * cols, sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 128) {
        sum += row[j];
        row[j] *= a[blockIdx.x];
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < 64) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + 64];
    __syncthreads();
    if (threadIdx.x >= 32) return;
    for (int n = 32; n; n /= 2) {
        const float v = part[threadIdx.x] + part[threadIdx.x + n];
        __syncwarp();
        if (threadIdx.x < n) part[threadIdx.x] = v;
        __syncwarp();
    }
    if (threadIdx.x == 0) total[blockIdx.x] = part[0];
}
