// The exponential from a table of 32 powers in constant memory and a polynomial of four terms.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: control
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

__constant__ float STEPS[32] = {1.0f, 1.0218971f, 1.0442737f, 1.0671404f, 1.0905077f, 1.1143868f, 1.1387886f, 1.1637248f, 1.1892071f, 1.2152474f, 1.2418578f,
    1.2690509f, 1.2968396f, 1.3252366f, 1.3542556f, 1.38391f, 1.4142135f, 1.4451808f, 1.4768262f, 1.5091645f, 1.5422108f, 1.5759809f, 1.6104903f, 1.6457555f,
    1.6817929f, 1.7186193f, 1.7562522f, 1.7947091f, 1.8340081f, 1.8741677f, 1.9152066f, 1.9571441f};

/* 2^(n / 32) e^r with |r| at most ln(2) / 64. */
__device__ float power(float v)
{
    const float n = rintf(v * 46.166241f), r = fmaf(n, -0.021660849f, v);
    const int   whole = (int)fmaxf(n, -5000.0f);
    return ldexpf(STEPS[whole & 31] * (1.0f + r * (1.0f + r * (0.5f + r * 0.16666667f))), whole >> 5);
}

extern "C" __global__ void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    const kl_t_x *row = x + (size_t)blockIdx.x * cols;
    kl_t_output  *to = output + (size_t)blockIdx.x * cols;
    float top = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 256) top = fmaxf(top, (float)row[j]);
    top = whole(top, true);
    for (int j = threadIdx.x; j < cols; j += 256) sum += power((float)row[j] - top);
    sum = whole(sum, false);
    for (int j = threadIdx.x; j < cols; j += 256) to[j] = (kl_t_output)(power((float)row[j] - top) / sum);
}
