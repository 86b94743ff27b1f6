// Two rows at once as real and imaginary part.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i += 2)
        for (int32_t j = 0; j < N; j++) {
            const float *upper = x + (size_t)i * K, *lower = i + 1 < M ? upper + K : upper;
            _Complex float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += __builtin_complex(upper[k], lower[k]) * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = __real__ sum;
            if (i + 1 < M) y[(size_t)(i + 1) * N + j] = __imag__ sum;
        }
}
