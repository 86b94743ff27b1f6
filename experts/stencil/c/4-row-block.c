// Heat flow: ROWS rows are formed at a time.
// adds: register_block_simd
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: row by row each cell is loaded three times, once from above, once as itself and once from below.  A
// block of ROWS rows loads ROWS + 2 of them.
// Needs: vectors of a row that stay in registers from one column to the next (fma_simd).  Rows that do not fill a block
// go one by one.
//! param  ROWS = 4 {2, 3, 4, 6}
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

// LANES columns from j on of `rows` neighbouring rows, a step later; from[0] is the row above the first, and `before`
// and `here` move on to the next columns.
static inline __attribute__((always_inline)) void step_columns(float *const *to, const float *const *from,
                                                               __m512 *before, __m512 *here, float alpha, int32_t j,
                                                               int32_t W, const int32_t rows)
{
    const __m512 factor = _mm512_set1_ps(alpha), rest = _mm512_set1_ps(1 - 4 * alpha);
    __m512 above = load(from[0], j, W);
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++) {
        const __m512 own = here[r], after = load(from[r + 1], j + LANES, W);
        const __m512 below = r + 1 < rows ? here[r + 1] : load(from[rows + 1], j, W);
        const __m512 left = shift(before[r], own, LANES - 1), right = shift(own, after, 1);
        const __m512 next = flow(own, _mm512_add_ps(above, below), left, right, factor, rest);
        if (W - j >= LANES)
            _mm512_storeu_ps(to[r] + j, next);
        else
            _mm512_mask_storeu_ps(to[r] + j, lanes(W - j), next);
        above = before[r] = own;
        here[r] = after;
    }
}

// At the plate's edge a cell is its own neighbour.
static inline __attribute__((always_inline)) void step_rows(float *const *to, const float *const *from, float alpha,
                                                            int32_t W, const int32_t rows)
{
    __m512 before[KL_ROWS], here[KL_ROWS];
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++) {
        before[r] = _mm512_set1_ps(from[r + 1][0]);
        here[r] = load(from[r + 1], 0, W);
    }
    int32_t j = 0;
    for (; j + 2 * LANES <= W; j += LANES)    // nothing of this hangs over the end, and the compiler sees it
        step_columns(to, from, before, here, alpha, j, INT32_MAX, rows);
    for (; j < W; j += LANES)
        step_columns(to, from, before, here, alpha, j, W, rows);
}

// `rows` rows from i on; a row outside the plate is the one at its edge.
static inline __attribute__((always_inline)) void form_rows(float *plate, const float *from, int32_t i, float alpha,
                                                            int32_t H, int32_t W, const int32_t rows)
{
    float *to[KL_ROWS];
    const float *around[KL_ROWS + 2];
    for (int32_t r = 0; r < rows; r++)
        to[r] = plate + (size_t)(i + r) * W;
    for (int32_t r = 0; r < rows + 2; r++) {
        const int32_t n = i + r - 1;
        around[r] = from + (size_t)(n < 0 ? 0 : n >= H ? H - 1 : n) * W;
    }
    step_rows(to, around, alpha, W, rows);
}

void stencil(const float *u, float *output, float *other, float alpha, int32_t H, int32_t W, int32_t T)
{
    const float *from = u;
    for (int32_t t = 0; t < T; t++) {
        float *to = (T - t) % 2 ? output : other;    // the last step writes output
        int32_t i = 0;
        for (; i + KL_ROWS <= H; i += KL_ROWS)
            form_rows(to, from, i, alpha, H, W, KL_ROWS);
        for (; i < H; i++)
            form_rows(to, from, i, alpha, H, W, 1);
        from = to;
    }
}
