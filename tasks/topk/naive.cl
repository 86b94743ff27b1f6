// Top-K by rank: a value's place is the number of values of its row that are larger, or equal and further left.  One
// work-item per value, S comparisons each; the first K places are kept.  float32 only.
// SPDX-License-Identifier: Apache-2.0
//! launch topk global(cdiv(S, 64) * 64, B) local(64, 1) args(x, values, indices, B, S, K)

__kernel void topk(__global const kl_t_x *x, __global kl_t_values *values, __global kl_t_indices *indices,
                   int B, int S, int K)
{
    const int i = get_global_id(0);
    const int b = get_global_id(1);
    if (i >= S)
        return;
    __global const kl_t_x *row = x + (size_t)b * S;
    int rank = 0;
    for (int j = 0; j < S; j++)
        if (row[j] > row[i] || (row[j] == row[i] && j < i))
            rank++;
    if (rank < K) {
        values[(size_t)b * K + rank] = row[i];
        indices[(size_t)b * K + rank] = i;
    }
}
