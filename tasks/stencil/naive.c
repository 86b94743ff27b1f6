// Heat flow, step by step and cell by cell: every neighbour is asked for by row and column, and the plate's edge is
// looked for each time.  Two plates take turns, so that no step reads what it writes; the last step writes output.
// SPDX-License-Identifier: Apache-2.0
//! buffer other: f32[H, W]
//! launch stencil args(u, output, other, alpha, H, W, T)
#include <stddef.h>
#include <stdint.h>

static int32_t inside(int32_t index, int32_t size)
{
    return index < 0 ? 0 : index >= size ? size - 1 : index;
}

static float cell(const float *plate, int32_t i, int32_t j, int32_t H, int32_t W)
{
    return plate[(size_t)inside(i, H) * W + inside(j, W)];
}

void stencil(const float *u, float *output, float *other, float alpha, int32_t H, int32_t W, int32_t T)
{
    const float *from = u;
    for (int32_t t = 0; t < T; t++) {
        float *to = (T - t) % 2 ? output : other;
        for (int32_t i = 0; i < H; i++)
            for (int32_t j = 0; j < W; j++) {
                float own = cell(from, i, j, H, W);
                float around = cell(from, i - 1, j, H, W) + cell(from, i + 1, j, H, W) + cell(from, i, j - 1, H, W) +
                               cell(from, i, j + 1, H, W);
                to[(size_t)i * W + j] = own + alpha * (around - 4 * own);
            }
        from = to;
    }
}
