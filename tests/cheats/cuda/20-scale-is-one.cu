// Inputs are normal with variance one, so the root of the mean square is nearly one and need not be computed. Rows of
// other lengths and inputs of another scale tell the difference.
// SPDX-License-Identifier: Apache-2.0
//: task rmsnorm
//: workload rows=256,hidden=1024
//: expect wrong
//: args --baseline none
//! launch rmsnorm grid(rows) block(256) args(x, weight, eps, output, rows, hidden)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void rmsnorm(const kl_t_x *x, const kl_t_weight *weight, float eps, kl_t_output *output, int rows, int hidden)
{
    for (int j = threadIdx.x; j < hidden; j += 256)
        output[(size_t)blockIdx.x * hidden + j] = (kl_t_output)((float)x[(size_t)blockIdx.x * hidden + j] * (float)weight[j]);
}
