//! launch softmax_oracle grid(rows) block(256) args(x, output, cols)
/* Softmax in float64: one block a row.  The exponentials are kept in the output row and scaled in place.
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

static __device__ double block_max(double value)
{
    __shared__ double partial[THREADS];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int width = THREADS / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] = fmax(partial[threadIdx.x], partial[threadIdx.x + width]);
        __syncthreads();
    }
    return partial[0];
}

extern "C" __global__ void softmax_oracle(const kl_t_x *x, double *output, int cols)
{
    const kl_t_x *in = x + (size_t)blockIdx.x * cols;
    double       *out = output + (size_t)blockIdx.x * cols;
    double        largest = as_double(in[0]), sum = 0.0;
    for (int i = threadIdx.x; i < cols; i += THREADS)
        largest = fmax(largest, as_double(in[i]));
    largest = block_max(largest);
    for (int i = threadIdx.x; i < cols; i += THREADS)
        sum += out[i] = exp(as_double(in[i]) - largest);
    sum = block_sum(sum);
    for (int i = threadIdx.x; i < cols; i += THREADS)   // each thread reads back what it wrote itself
        out[i] /= sum;
}
