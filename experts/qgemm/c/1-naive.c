// Quantized matrix product: one dot product per element, three plain loops.
// adds: nothing; every rung above is measured from here
// SPDX-License-Identifier: Apache-2.0
//
// What limits it: bytes are widened before they are multiplied, and nothing that is loaded is used twice while it is
// near.
//! launch qgemm args(x, weight, x_scale, weight_scale, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void qgemm(const int8_t *x, const int8_t *weight, const float *x_scale, const float *weight_scale, float *y, int32_t M,
           int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            int32_t sum = 0;
            for (int32_t k = 0; k < K; k++)
                sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = (float)sum * x_scale[i] * weight_scale[j];
        }
}
