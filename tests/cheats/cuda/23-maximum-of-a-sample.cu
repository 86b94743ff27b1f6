// The maximum is that of the first four elements. For normal inputs the rest is not much larger, and the exponential has
// room; inputs that are spread more overflow.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: expect wrong
//: args --baseline none
//! launch softmax grid(rows) block(256) args(x, output, rows, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float whole(float v, bool largest)
{
    __shared__ float part[256];
    __syncthreads();
    part[threadIdx.x] = v;
    __syncthreads();
    for (int n = 128; n; n /= 2) {
        if (threadIdx.x < n) part[threadIdx.x] = largest ? fmaxf(part[threadIdx.x], part[threadIdx.x + n]) : part[threadIdx.x] + part[threadIdx.x + n];
        __syncthreads();
    }
    return part[0];
}

extern "C" __global__ void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    const kl_t_x *row = x + (size_t)blockIdx.x * cols;
    kl_t_output  *to = output + (size_t)blockIdx.x * cols;
    float top = -INFINITY, sum = 0.0f;
    if (threadIdx.x < min(4, cols)) top = (float)row[threadIdx.x];
    top = whole(top, true);
    for (int j = threadIdx.x; j < cols; j += 256) sum += expf((float)row[j] - top);
    sum = whole(sum, false);
    for (int j = threadIdx.x; j < cols; j += 256) to[j] = (kl_t_output)(expf((float)row[j] - top) / sum);
}
