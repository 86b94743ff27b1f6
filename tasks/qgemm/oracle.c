// The trusted quantized product: sums of 64-bit whole numbers are exact, and the scales are applied in float64.
// SPDX-License-Identifier: Apache-2.0
//! threads 2
//! launch oracle args(x, weight, x_scale, weight_scale, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static int64_t dot(const int8_t *a, const int8_t *b, int32_t K)
{
    enum { EXACT = 65536 };    // so many products of 2^14 fit 32 bits
    int64_t sum = 0;
    for (int32_t k = 0; k < K; k += EXACT) {
        const int32_t end = K - k < EXACT ? K : k + EXACT;
        int32_t part = 0;
        for (int32_t n = k; n < end; n++)
            part += (int32_t)a[n] * (int32_t)b[n];
        sum += part;
    }
    return sum;
}

void oracle(const int8_t *x, const int8_t *weight, const float *x_scale, const float *weight_scale, double *y, int32_t M,
            int32_t N, int32_t K)
{
#pragma omp parallel for
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++)
            y[(size_t)i * N + j] = (double)dot(x + (size_t)i * K, weight + (size_t)j * K, K) * (double)x_scale[i] *
                                   (double)weight_scale[j];
}
