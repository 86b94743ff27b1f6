// Heat flow: the first and last cell of a row apart, and rows above and below chosen once a row.
// adds: interior_border_split
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: without questions the inner loop is five loads from fixed distances, and the compiler makes vectors of
// it.
// Needs: rows that do not overlap the ones that are written (two plates take turns).
//! buffer other: f32[H, W]
//! launch stencil args(u, output, other, alpha, H, W, T)
#include <stddef.h>
#include <stdint.h>

static inline float flow(float own, float above, float below, float left, float right, float alpha)
{
    return own + alpha * (above + below + left + right - 4 * own);
}

// One row a step later.  At the plate's edge a cell is its own neighbour.
static void step_row(float *restrict to, const float *above, const float *own, const float *below, float alpha,
                     int32_t W)
{
    const int32_t last = W - 1;
    to[0] = flow(own[0], above[0], below[0], own[0], own[W > 1], alpha);
    for (int32_t j = 1; j < last; j++)
        to[j] = flow(own[j], above[j], below[j], own[j - 1], own[j + 1], alpha);
    if (last > 0)
        to[last] = flow(own[last], above[last], below[last], own[last - 1], own[last], alpha);
}

void stencil(const float *u, float *output, float *other, float alpha, int32_t H, int32_t W, int32_t T)
{
    const float *from = u;
    for (int32_t t = 0; t < T; t++) {
        float *to = (T - t) % 2 ? output : other;    // the last step writes output
        for (int32_t i = 0; i < H; i++) {
            const float *own = from + (size_t)i * W;
            step_row(to + (size_t)i * W, i > 0 ? own - W : own, own, i + 1 < H ? own + W : own, alpha, W);
        }
        from = to;
    }
}
