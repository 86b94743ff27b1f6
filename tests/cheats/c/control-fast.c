// Correct and fast: eight columns at once from a packed panel in declared scratch, with vector registers.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload cpu
//: control
//! flags -O3 -march=native -ffast-math
//! buffer panel: f32[cdiv(N, 16) * 16 * K]
//! launch gemm args(x, weight, y, panel, M, N, K)
#include <stddef.h>
#include <stdint.h>

enum { WIDE = 16 };
typedef float lanes __attribute__((vector_size(4 * WIDE), aligned(4)));

/* Panel p holds columns 16p..16p+15 of the transposed operand, one row of 16 for every k; columns past the end are zero. */
static void pack(const float *weight, float *panel, int32_t N, int32_t K)
{
    for (int32_t p = 0; p < N; p += WIDE)
        for (int32_t k = 0; k < K; k++)
            for (int32_t c = 0; c < WIDE; c++)
                panel[(size_t)p * K + (size_t)k * WIDE + c] = p + c < N ? weight[(size_t)(p + c) * K + k] : 0;
}

void gemm(const float *x, const float *weight, float *y, float *panel, int32_t M, int32_t N, int32_t K)
{
    pack(weight, panel, N, K);
    for (int32_t p = 0; p < N; p += WIDE) {
        const float *columns = panel + (size_t)p * K;
        for (int32_t i = 0; i < M; i += 4) {
            const float *rows[4];
            for (int32_t r = 0; r < 4; r++) rows[r] = x + (size_t)(i + r < M ? i + r : M - 1) * K;
            lanes sum[4] = {0};
            for (int32_t k = 0; k < K; k++) {
                const lanes w = *(const lanes *)(columns + (size_t)k * WIDE);
                for (int32_t r = 0; r < 4; r++) sum[r] += rows[r][k] * w;
            }
            for (int32_t r = 0; r < 4 && i + r < M; r++)
                for (int32_t c = 0; c < WIDE && p + c < N; c++) y[(size_t)(i + r) * N + p + c] = sum[r][c];
        }
    }
}
