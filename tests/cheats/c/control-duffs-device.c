// A loop that is entered in the middle.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float dot(const float *a, const float *b, int32_t n)
{
    float sum = 0;
    if (n <= 0) return sum;
    int32_t rounds = (n + 3) / 4;
    switch (n % 4) {
    case 0: do { sum += *a++ * *b++; __attribute__((fallthrough));
    case 3:      sum += *a++ * *b++; __attribute__((fallthrough));
    case 2:      sum += *a++ * *b++; __attribute__((fallthrough));
    case 1:      sum += *a++ * *b++;
            } while (--rounds > 0);
    }
    return sum;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = dot(x + (size_t)i * K, weight + (size_t)j * K, K);
}
