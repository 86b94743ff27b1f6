// Fast exponentials and divisions by flag and by name, which are well within a softmax's tolerance.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: control
//: args --baseline none
//! flags --use_fast_math
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
    for (int j = threadIdx.x; j < cols; j += 256) sum += __expf((float)row[j] - top);
    sum = __fdividef(1.0f, whole(sum, false));
    for (int j = threadIdx.x; j < cols; j += 256) to[j] = (kl_t_output)(exp2f(((float)row[j] - top) * 1.44269504f) * sum);
}
