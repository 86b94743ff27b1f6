// The naive product over blocks of rows: something to tune, and always right.  SPDX-License-Identifier: Apache-2.0
//! param  BM = 8 {8, 32}
//! param  BK = 64 {16, 64}
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t block = 0; block < M; block += KL_BM) {
        for (int32_t i = block; i < least(block + KL_BM, M); i++) {
            for (int32_t j = 0; j < N; j++) {
                float sum = 0;
                for (int32_t k0 = 0; k0 < K; k0 += KL_BK)
                    for (int32_t k = k0; k < least(k0 + KL_BK, K); k++)
                        sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
                y[(size_t)i * N + j] = (kl_t_y)sum;
            }
        }
    }
}
