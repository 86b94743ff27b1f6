// Heat flow: explicit vectors, and a cell's left and right neighbours come out of registers.
// adds: fma_simd
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: the loads to the left and to the right hit two lines each, and what they bring is in the vectors next
// door already.  Two shuffles take their place, and a multiplication joins an addition: own * (1 - 4 alpha) + alpha *
// around.
// Needs: AVX-512.  A row's end is loaded under a mask that fills up with its last cell, which is what the edge asks
// for.
//! buffer other: f32[H, W]
//! launch stencil args(u, output, other, alpha, H, W, T)
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __AVX512F__
#error "this kernel needs AVX-512"
#endif

enum { LANES = 16 };

static inline __mmask16 lanes(int32_t left)
{
    return left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
}

// LANES cells from j on; cells behind the row's end are its last cell.
static inline __m512 load(const float *row, int32_t j, int32_t W)
{
    if (W - j >= LANES)
        return _mm512_loadu_ps(row + j);
    const __m512 last = _mm512_set1_ps(row[W - 1]);
    return j < W ? _mm512_mask_loadu_ps(last, lanes(W - j), row + j) : last;
}

// The vectors one cell to the left and to the right of `own`, out of its neighbours.
static inline __m512 shift(__m512 low, __m512 high, const int cells)
{
    return cells == 1 ? (__m512)_mm512_alignr_epi32((__m512i)high, (__m512i)low, 1)
                      : (__m512)_mm512_alignr_epi32((__m512i)high, (__m512i)low, LANES - 1);
}

// own + alpha * (neighbours - 4 * own), where rest is 1 - 4 * alpha
static inline __m512 flow(__m512 own, __m512 vertical, __m512 left, __m512 right, __m512 alpha, __m512 rest)
{
    const __m512 around = _mm512_add_ps(vertical, _mm512_add_ps(left, right));
    return _mm512_fmadd_ps(alpha, around, _mm512_mul_ps(rest, own));
}

// One row a step later.  At the plate's edge a cell is its own neighbour.
static void step_row(float *to, const float *above, const float *own, const float *below, float alpha, int32_t W)
{
    const __m512 factor = _mm512_set1_ps(alpha), rest = _mm512_set1_ps(1 - 4 * alpha);
    __m512 before = _mm512_set1_ps(own[0]), here = load(own, 0, W);
    for (int32_t j = 0; j < W; j += LANES) {
        const __m512 after = load(own, j + LANES, W);
        const __m512 vertical = _mm512_add_ps(load(above, j, W), load(below, j, W));
        const __m512 next = flow(here, vertical, shift(before, here, LANES - 1), shift(here, after, 1), factor, rest);
        if (W - j >= LANES)
            _mm512_storeu_ps(to + j, next);
        else
            _mm512_mask_storeu_ps(to + j, lanes(W - j), next);
        before = here;
        here = after;
    }
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
