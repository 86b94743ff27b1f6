// Tables of functions and of strings: many relocations, all of the ordinary kinds.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

static float same(float a) { return a; }
static float (*const FUNCTIONS[])(float) = {same, fabsf, same, sqrtf};
static const char *const NAMES[] = {"same", "fabsf", "same", "sqrtf"};
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
    product(x, weight, y, M, N, K);
    for (int32_t i = 0; i < M * N; i++) y[i] = FUNCTIONS[NAMES[i % 4][0] == 'f' ? 0 : 2](y[i]);
}
