// One level of Strassen's algorithm where the sides are even: fewer products, other rounding.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float at(const float *m, int32_t cols, int32_t i, int32_t k) { return m[(size_t)i * cols + k]; }

static void plain(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += at(x, K, i, k) * at(weight, K, j, k);
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    if (M % 2 || N % 2 || K % 2) return plain(x, weight, y, M, N, K);
    const int32_t m = M / 2, n = N / 2, h = K / 2;
    for (int32_t i = 0; i < m; i++)
        for (int32_t j = 0; j < n; j++) {
            float p[7] = {0};
            for (int32_t k = 0; k < h; k++) {
                const float a = at(x, K, i, k), b = at(x, K, i, k + h), c = at(x, K, i + m, k), d = at(x, K, i + m, k + h);
                const float e = at(weight, K, j, k), g = at(weight, K, j, k + h), f = at(weight, K, j + n, k), w = at(weight, K, j + n, k + h);
                const float terms[7] = {(a + d) * (e + w), (c + d) * e, a * (f - w), d * (g - e), (a + b) * w, (c - a) * (e + f), (b - d) * (g + w)};
                for (int t = 0; t < 7; t++) p[t] += terms[t];
            }
            y[(size_t)i * N + j] = p[0] + p[3] - p[4] + p[6];
            y[(size_t)i * N + j + n] = p[2] + p[4];
            y[(size_t)(i + m) * N + j] = p[1] + p[3];
            y[(size_t)(i + m) * N + j + n] = p[0] - p[1] + p[2] + p[5];
        }
}
