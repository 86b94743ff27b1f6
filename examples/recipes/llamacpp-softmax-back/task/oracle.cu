//! launch softmax_back_oracle grid(rows) block(256) args(grad, y, dx, cols, scale)
// The same in float64: one block a row, the sum in a fixed order.
// SPDX-License-Identifier: Apache-2.0

#define THREADS 256

extern "C" __global__ void softmax_back_oracle(const float *grad, const float *y, double *dx,
                                               int cols, float scale) {
    __shared__ double partial[THREADS];
    const size_t first = (size_t)blockIdx.x * cols;
    double dot = 0.0;
    for (int i = threadIdx.x; i < cols; i += THREADS) dot += (double)grad[first + i] * y[first + i];
    partial[threadIdx.x] = dot;
    __syncthreads();
    for (int width = THREADS / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < cols; i += THREADS)
        dx[first + i] = scale * (grad[first + i] - partial[0]) * y[first + i];
}
