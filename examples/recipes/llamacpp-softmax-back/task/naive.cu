//! launch softmax_back grid(cdiv(rows, 256)) block(256) args(grad, y, dx, rows, cols, scale)
// One thread a row, two passes.  SPDX-License-Identifier: Apache-2.0

extern "C" __global__ void softmax_back(const float *grad, const float *y, float *dx, int rows,
                                        int cols, float scale) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const size_t first = (size_t)row * cols;
    float dot = 0.0f;
    for (int i = 0; i < cols; i++) dot += grad[first + i] * y[first + i];
    for (int i = 0; i < cols; i++)
        dx[first + i] = scale * (grad[first + i] - dot) * y[first + i];
}
