//! launch softmax_back_oracle args(grad, y, dx, rows, cols, scale)
// The same in float64.
// SPDX-License-Identifier: Apache-2.0

void softmax_back_oracle(const float *grad, const float *y, double *dx, int rows, int cols,
                         float scale) {
    for (int row = 0; row < rows; row++, grad += cols, y += cols, dx += cols) {
        double dot = 0.0;
        for (int i = 0; i < cols; i++) dot += (double)grad[i] * y[i];
        for (int i = 0; i < cols; i++) dx[i] = scale * (grad[i] - dot) * y[i];
    }
}
