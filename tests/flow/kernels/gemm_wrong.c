// Leaves out the last product of every sum: nearly right, and wrong.  The gate must answer `wrong`.
// SPDX-License-Identifier: Apache-2.0
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++) {
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k + 1 < K; k++)
                sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = (kl_t_y)sum;
        }
    }
}
