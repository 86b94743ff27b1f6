//! launch softmax_back args(grad, y, dx, rows, cols, scale)
// One row after the other.  SPDX-License-Identifier: Apache-2.0

void softmax_back(const float *grad, const float *y, float *dx, int rows, int cols, float scale) {
    for (int row = 0; row < rows; row++, grad += cols, y += cols, dx += cols) {
        float dot = 0.0f;
        for (int i = 0; i < cols; i++) dot += grad[i] * y[i];
        for (int i = 0; i < cols; i++) dx[i] = scale * (grad[i] - dot) * y[i];
    }
}
