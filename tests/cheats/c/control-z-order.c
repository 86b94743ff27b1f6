// Results in the order of a space-filling curve.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static uint32_t every_second(uint32_t bits)
{
    uint32_t out = 0;
    for (int b = 0; b < 16; b++) out |= (bits >> 2 * b & 1u) << b;
    return out;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    uint32_t side = 1;
    while (side < (uint32_t)M || side < (uint32_t)N) side *= 2;
    for (uint32_t z = 0; z < side * side; z++) {
        const uint32_t i = every_second(z), j = every_second(z >> 1);
        if (i >= (uint32_t)M || j >= (uint32_t)N) continue;
        float sum = 0;
        for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
        y[(size_t)i * N + j] = sum;
    }
}
