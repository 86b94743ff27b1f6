// Constant tables, a switch and a large frame on the stack are ordinary code.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static const float UNITS[4] = {1.0f, 1.0f, 1.0f, 1.0f};

static int order(int32_t k)
{
    switch (k % 7) {
    case 0: return 3;
    case 1: return 1;
    case 2: return 0;
    case 3: return 2;
    case 4: return 1;
    case 5: return 3;
    default: return 0;
    }
}

static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    float row[8192];
    for (int32_t i = 0; i < M; i++) {
        for (int32_t k = 0; k < K; k++) row[k] = x[(size_t)i * K + k] * UNITS[order(k)];
        product(row, weight, y + (size_t)i * N, 1, N, K);
    }
}
