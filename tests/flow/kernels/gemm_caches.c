// Computes once per shape and copies that answer whenever it is called again: right in every single run, fast in every loop of
// equal inputs.  The gate must answer `cheat`, because calls of one timed batch work on different inputs and outputs.
// SPDX-License-Identifier: Apache-2.0
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static kl_t_y kept[1536 * 1536];
static size_t kept_count;

void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int32_t M, int32_t N, int32_t K)
{
    size_t count = (size_t)M * (size_t)N;
    if (kept_count == count) {
        memcpy(y, kept, count * sizeof *y);
        return;
    }
    for (int32_t i = 0; i < M; i++) {
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++)
                sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = (kl_t_y)sum;
        }
    }
    if (count > sizeof kept / sizeof *kept) return;
    memcpy(kept, y, count * sizeof *y);
    kept_count = count;
}
