// Every block leaves a part of a row's sum; the one that finds itself last adds the parts in their order, so that the
// answer is the same each time.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! buffer parts: f32[rows, cdiv(cols, 128)]
//! buffer done: i32[rows] zero
//! launch scale grid(cdiv(cols, 128), rows) block(128) args(x, a, total, parts, done, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, float *parts, int *done, int cols)
{
    __shared__ float part[128];
    const int        j = blockIdx.x * 128 + threadIdx.x;
    float           *at = x + (size_t)blockIdx.y * cols + j;
    part[threadIdx.x] = j < cols ? *at : 0.0f;
    if (j < cols) *at *= a[blockIdx.y];
    for (int n = 64; n; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    }
    if (threadIdx.x) return;
    parts[blockIdx.y * gridDim.x + blockIdx.x] = part[0];
    __threadfence();
    if (atomicAdd(done + blockIdx.y, 1) != gridDim.x - 1) return;
    __threadfence();
    float sum = 0.0f;
    for (int n = 0; n < gridDim.x; n++) sum += ((volatile float *)parts)[blockIdx.y * gridDim.x + n];
    total[blockIdx.y] = sum;
}
