// A macro makes four hundred lines out of one: long code is no attack.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=288
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#define R1(k) sum += a[k] * b[k];
#define R4(k) R1(k) R1((k) + 1) R1((k) + 2) R1((k) + 3)
#define R16(k) R4(k) R4((k) + 4) R4((k) + 8) R4((k) + 12)
#define R64(k) R16(k) R16((k) + 16) R16((k) + 32) R16((k) + 48)
#define R256(k) R64(k) R64((k) + 64) R64((k) + 128) R64((k) + 192)

static float dot(const float *a, const float *b, int32_t n)
{
    float sum = 0;
    for (; n >= 256; a += 256, b += 256, n -= 256) { R256(0) }
    for (; n >= 16; a += 16, b += 16, n -= 16) { R16(0) }
    for (int32_t k = 0; k < n; k++) { R1(k) }
    return sum;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = dot(x + (size_t)i * K, weight + (size_t)j * K, K);
}
