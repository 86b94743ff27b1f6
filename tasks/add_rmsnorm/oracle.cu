//! launch add_rmsnorm_oracle grid(rows) block(256) args(x, residual, weight, eps, output, new_residual, hidden)
/* Residual add and RMSNorm in float64: one block a row; the unrounded sum is normalised.
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

extern "C" __global__ void add_rmsnorm_oracle(const kl_t_x *x, const kl_t_residual *residual, const kl_t_weight *weight,
                                              float eps, double *output, double *new_residual, int hidden)
{
    size_t base = (size_t)blockIdx.x * hidden;
    double squares = 0.0;
    for (int i = threadIdx.x; i < hidden; i += THREADS) {
        double sum = as_double(x[base + i]) + as_double(residual[base + i]);
        new_residual[base + i] = sum;
        squares += sum * sum;
    }
    double scale = 1.0 / sqrt(block_sum(squares) / hidden + double(eps));
    for (int i = threadIdx.x; i < hidden; i += THREADS)   // each thread reads back what it wrote itself
        output[base + i] = new_residual[base + i] * scale * as_double(weight[i]);
}
