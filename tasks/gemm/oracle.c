// The trusted product: every term and every sum in float64.  Both operands are contiguous along K, so four columns are
// summed at once over the same row of x and nothing needs to be packed.
// SPDX-License-Identifier: Apache-2.0
//! threads 2
//! launch oracle args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_x == KL_BF16
static inline double widen(uint16_t value)    // bfloat16 is the upper half of a float32
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}
#else
#define widen(value) ((double)(value))
#endif

// The products of one row of x with four rows of weight.  A row index past the end repeats the last row.
static void dot_4(double sums[4], const kl_t_x *row, const kl_t_weight *const columns[4], int32_t K)
{
    const kl_t_weight *w0 = columns[0], *w1 = columns[1], *w2 = columns[2], *w3 = columns[3];
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int32_t k = 0; k < K; k++) {
        double value = widen(row[k]);
        s0 += value * widen(w0[k]);
        s1 += value * widen(w1[k]);
        s2 += value * widen(w2[k]);
        s3 += value * widen(w3[k]);
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

void oracle(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int32_t M, int32_t N, int32_t K)
{
    // Four rows of weight stay in cache while all rows of x pass by.
#pragma omp parallel for
    for (int32_t j = 0; j < N; j += 4) {
        const kl_t_weight *columns[4];
        for (int32_t c = 0; c < 4; c++)
            columns[c] = weight + (size_t)(j + c < N ? j + c : N - 1) * K;
        for (int32_t i = 0; i < M; i++) {
            double sums[4];
            dot_4(sums, x + (size_t)i * K, columns, K);
            for (int32_t c = 0; c < 4 && j + c < N; c++)
                y[(size_t)i * N + j + c] = sums[c];
        }
    }
}
