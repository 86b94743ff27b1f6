// One thread a row with a compensated sum, which a compiler that reorders would ruin.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale grid(cdiv(rows, 64)) block(64) args(x, a, total, rows, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int rows, int cols)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= rows) return;
    float sum = 0.0f, lost = 0.0f, *row = x + (size_t)i * cols;
    for (int j = 0; j < cols; j++) {
        const float term = __fsub_rn(row[j], lost), next = __fadd_rn(sum, term);
        lost = __fsub_rn(__fsub_rn(next, sum), term);
        sum = next;
        row[j] *= a[i];
    }
    total[i] = sum;
}
