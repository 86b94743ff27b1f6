// What a C programmer writes for an iterated stencil: two plates that take turns, rows whose inner loop the compiler
// turns into vectors, and the first and last cell of a row apart.
// SPDX-License-Identifier: Apache-2.0
//! buffer other: f32[H, W]
//! launch jacobi args(u, output, other, alpha, H, W, T)
#include <stddef.h>
#include <stdint.h>

static float step(float own, float above, float below, float left, float right, float alpha)
{
    return own + alpha * (above + below + left + right - 4 * own);
}

static void one_row(float *restrict to, const float *above, const float *own, const float *below, float alpha,
                    int32_t W)
{
    const int32_t last = W - 1;
    to[0] = step(own[0], above[0], below[0], own[0], own[W > 1], alpha);
    for (int32_t j = 1; j < last; j++)
        to[j] = step(own[j], above[j], below[j], own[j - 1], own[j + 1], alpha);
    if (last > 0)
        to[last] = step(own[last], above[last], below[last], own[last - 1], own[last], alpha);
}

void jacobi(const float *u, float *output, float *other, float alpha, int32_t H, int32_t W, int32_t T)
{
    const float *from = u;
    for (int32_t t = 0; t < T; t++) {
        float *to = (T - t) % 2 ? output : other;
        for (int32_t i = 0; i < H; i++) {
            const float *own = from + (size_t)i * W;
            one_row(to + (size_t)i * W, i > 0 ? own - W : own, own, i + 1 < H ? own + W : own, alpha, W);
        }
        from = to;
    }
}
