// GNU extensions: statement expressions, typeof, a nested function that is called by name.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#define LARGER(a, b) ({ __typeof__(a) a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    float at(const float *m, int32_t row, int32_t k) { return m[(size_t)row * K + LARGER(k, 0)]; }
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += at(x, i, k) * at(weight, j, k);
            y[(size_t)i * N + j] = sum;
        }
}
