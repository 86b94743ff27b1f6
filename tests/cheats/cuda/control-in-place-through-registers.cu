// A row lies in the registers of one warp between reading and writing: everything is read before anything is written.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale grid(cdiv(rows, 4)) block(128) args(x, a, total, rows, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int rows, int cols)
{
    const int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= rows) return;
    float *row = x + (size_t)i * cols, held[16], sum = 0.0f;
    for (int j0 = 0; j0 < cols; j0 += 512) {
#pragma unroll
        for (int n = 0; n < 16; n++) held[n] = j0 + n * 32 + lane < cols ? row[j0 + n * 32 + lane] : 0.0f;
#pragma unroll
        for (int n = 0; n < 16; n++) sum += held[n];
#pragma unroll
        for (int n = 0; n < 16; n++)
            if (j0 + n * 32 + lane < cols) row[j0 + n * 32 + lane] = held[n] * a[i];
    }
    for (int n = 16; n; n /= 2) sum += __shfl_down_sync(~0u, sum, n);
    if (lane == 0) total[i] = sum;
}
