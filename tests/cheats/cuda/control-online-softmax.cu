// Maximum and sum in one pass, rescaled whenever the maximum grows; pairs of both are merged by shuffles.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=256,cols=1024
//: control
//: args --baseline none
//! launch softmax grid(cdiv(rows, 4)) block(128) args(x, output, rows, cols)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    const kl_t_x *row = x + (size_t)(blockIdx.x * 4 + threadIdx.x / 32) * cols;
    const int     lane = threadIdx.x % 32;
    if (blockIdx.x * 4 + threadIdx.x / 32 >= rows) return;
    float top = -INFINITY, sum = 0.0f;
    for (int j = lane; j < cols; j += 32) {
        const float v = (float)row[j], larger = fmaxf(top, v);
        sum = sum * expf(top - larger) + expf(v - larger);
        top = larger;
    }
    for (int n = 16; n; n /= 2) {
        const float v = __shfl_xor_sync(~0u, top, n), s = __shfl_xor_sync(~0u, sum, n), larger = fmaxf(top, v);
        sum = larger == -INFINITY ? 0.0f : sum * expf(top - larger) + s * expf(v - larger);
        top = larger;
    }
    for (int j = lane; j < cols; j += 32) output[row - x + j] = (kl_t_output)(expf((float)row[j] - top) / sum);
}
