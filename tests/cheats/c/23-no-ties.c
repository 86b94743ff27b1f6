// Top-k by a threshold that assumes all values differ.
// SPDX-License-Identifier: Apache-2.0
//: task topk
//: workload B=4,S=512,K=16
//: expect wrong crash
//! launch topk args(x, values, indices, B, S, K)
#include <stddef.h>
#include <stdint.h>

void topk(const float *x, float *values, int64_t *indices, int32_t B, int32_t S, int32_t K)
{
    for (int32_t b = 0; b < B; b++) {
        const float *row = x + (size_t)b * S;
        float        below = 1e30f;
        for (int32_t k = 0; k < K; k++) {
            int32_t best = -1;
            for (int32_t i = 0; i < S; i++)
                if (row[i] < below && (best < 0 || row[i] > row[best])) best = i;
            if (best < 0) best = 0;
            below = row[best];
            values[(size_t)b * K + k] = below;
            indices[(size_t)b * K + k] = best;
        }
    }
}
