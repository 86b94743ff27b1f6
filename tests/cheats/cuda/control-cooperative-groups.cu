// Tiles of sixteen threads from the cooperative groups library, each with its row.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale grid(cdiv(rows, 8)) block(128) args(x, a, total, rows, cols)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void scale(float *x, const float *a, float *total, int rows, int cols)
{
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int  i = blockIdx.x * 8 + tile.meta_group_rank();
    if (i >= rows) return;
    float sum = 0.0f, *row = x + (size_t)i * cols;
    for (int j = tile.thread_rank(); j < cols; j += 16) {
        sum += row[j];
        row[j] *= a[i];
    }
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0) total[i] = sum;
}
