//! launch rmsnorm_oracle grid(rows) block(256) args(x, weight, eps, output, hidden)
/* RMSNorm in float64: one block a row.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> __device__ double as_double(T value) { return double(float(value)); }
template <> __device__ double as_double<double>(double value) { return value; }

#define THREADS 256

/* The sum of `value` over the block, in a fixed order, so that two runs agree to the bit. */
static __device__ double block_sum(double value)
{
    __shared__ double partial[THREADS];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int width = THREADS / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
    }
    double sum = partial[0];
    __syncthreads();   // the next reduction overwrites partial
    return sum;
}

extern "C" __global__ void rmsnorm_oracle(const kl_t_x *x, const kl_t_weight *weight, float eps, double *output,
                                          int hidden)
{
    const kl_t_x *in = x + (size_t)blockIdx.x * hidden;
    double       *out = output + (size_t)blockIdx.x * hidden;
    double        squares = 0.0;
    for (int i = threadIdx.x; i < hidden; i += THREADS)
        squares += as_double(in[i]) * as_double(in[i]);
    double scale = 1.0 / sqrt(block_sum(squares) / hidden + double(eps));
    for (int i = threadIdx.x; i < hidden; i += THREADS)
        out[i] = as_double(in[i]) * scale * as_double(weight[i]);
}
