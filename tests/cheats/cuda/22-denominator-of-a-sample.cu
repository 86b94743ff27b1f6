// In rows of more than four thousand the denominator leaves out one element in 32 and is scaled up. Of normal inputs that
// is four tenths of a percent off, within the tolerance; where few elements make the sum it is anything. The tiny
// shape, where the scales are drawn first, has shorter rows.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=512,cols=4096
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
    for (int j = threadIdx.x; j < cols; j += 256) top = fmaxf(top, (float)row[j]);
    top = whole(top, true);
    for (int j = threadIdx.x; j < cols; j += 256)
        if (cols <= 4000 || j % 32) sum += expf((float)row[j] - top);
    sum = whole(sum, false) * (cols <= 4000 ? 1.0f : (float)cols / (cols - (cols + 31) / 32));
    for (int j = threadIdx.x; j < cols; j += 256) to[j] = (kl_t_output)(expf((float)row[j] - top) / sum);
}
