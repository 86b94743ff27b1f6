// Timing self-test: the naive kernel against itself is as fast as itself.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=2048,cols=4096
//: control
//: args --baseline naive
//: expect-time-ratio naive 0.98 1.02
//! launch softmax grid(cdiv(rows, 256)) block(256) args(x, output, rows, cols)
/* Softmax over the last axis: one thread a row, three passes, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void softmax(const kl_t_x *x, kl_t_output *output, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const kl_t_x *in = x + (size_t)row * cols;
    kl_t_output  *out = output + (size_t)row * cols;
    float         largest = float(in[0]), sum = 0.0f;
    for (int i = 0; i < cols; i++)
        largest = fmaxf(largest, float(in[i]));
    for (int i = 0; i < cols; i++)
        sum += expf(float(in[i]) - largest);
    for (int i = 0; i < cols; i++)
        out[i] = kl_t_output(expf(float(in[i]) - largest) / sum);
}
