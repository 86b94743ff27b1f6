// The trusted top-K: a heap of the K best seen so far, its worst on top; a value enters when it beats the worst.  Of
// equal values the one further left wins, so the answer is unique; a checker may accept any other choice among ties.
// The order of the answer is the heap's.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(x, values, indices, B, S, K)
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static bool is_worse(const kl_t_x *row, kl_t_indices a, kl_t_indices b)
{
    return row[a] < row[b] || (row[a] == row[b] && a > b);
}

// Restore "no parent is better than its child" below `place`.
static void sink(const kl_t_x *row, kl_t_indices *heap, int32_t count, int32_t place)
{
    for (;;) {
        int32_t worst = place;
        for (int32_t child = 2 * place + 1; child <= 2 * place + 2 && child < count; child++)
            if (is_worse(row, heap[child], heap[worst]))
                worst = child;
        if (worst == place)
            return;
        kl_t_indices moved = heap[place];
        heap[place] = heap[worst];
        heap[worst] = moved;
        place = worst;
    }
}

void oracle(const kl_t_x *x, kl_t_values *values, kl_t_indices *indices, int32_t B, int32_t S, int32_t K)
{
    for (int32_t b = 0; b < B; b++) {
        const kl_t_x *row = x + (size_t)b * S;
        kl_t_indices *heap = indices + (size_t)b * K;
        for (int32_t k = 0; k < K; k++)
            heap[k] = k;
        for (int32_t place = K / 2; place-- > 0;)
            sink(row, heap, K, place);
        for (int32_t i = K; i < S; i++)
            if (is_worse(row, heap[0], i)) {
                heap[0] = i;
                sink(row, heap, K, 0);
            }
        for (int32_t k = 0; k < K; k++)
            values[(size_t)b * K + k] = row[heap[k]];
    }
}
