// One thread a row.
// SPDX-License-Identifier: Apache-2.0
//! launch scale grid(cdiv(rows, 64)) block(64) args(x, a, total, rows, cols)

extern "C" __global__ void scale(float *x, const float *a, float *total, int rows, int cols)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= rows) return;
    float *row = x + (size_t)i * cols;
    float sum = 0;
    for (int j = 0; j < cols; j++) sum += row[j];
    for (int j = 0; j < cols; j++) row[j] = a[i] * row[j];
    total[i] = sum;
}
