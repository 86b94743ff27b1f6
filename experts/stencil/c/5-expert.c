// Heat flow, the one-thread expert: several steps in one sweep over the plate, each a row behind the one before.
// adds: other:time_skew
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: a plate that no near cache holds is read and written once for every step.  As soon as a step has formed
// the row below a block, the next step can form the block: LEVELS steps go down the plate together, and what lies
// between two of them is ROWS + 2 rows, which stay in the second cache.  No cell is computed twice.
// Needs: steps that reach one row up and down.  A sweep writes a row only after the last read of the row of the same
// number, so from the second sweep on a plate is its own target and no second plate is needed.  That takes two steps at
// least, so the first sweep, which reads u, takes the steps that do not fill a sweep.  Blocks that hang over the
// plate's edge go row by row.
//! param  LEVELS = 8 {2, 4, 8, 16}
//! param  ROWS = 4 {2, 3, 4, 6}
//! buffer rows: f32[LEVELS, ROWS + 2, W]
//! launch stencil args(u, output, rows, alpha, H, W, T)
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

typedef struct {
    const float *from;    // the plate before the sweep
    float *to, *rows;     // the plate after it, which may be the same; ROWS + 2 rows of each step in between
    int32_t H, W, steps;
} sweep;

// Row i of the plate after `step` steps of this sweep; a row outside the plate is the one at its edge.
static float *row_of(const sweep *s, int32_t step, int32_t i)
{
    i = i < 0 ? 0 : i >= s->H ? s->H - 1 : i;
    if (step == 0)
        return (float *)s->from + (size_t)i * s->W;
    if (step == s->steps)
        return s->to + (size_t)i * s->W;
    return s->rows + ((size_t)step * (KL_ROWS + 2) + i % (KL_ROWS + 2)) * s->W;
}

// `rows` rows from i on, after `step` steps.
static inline __attribute__((always_inline)) void form_rows(const sweep *s, int32_t step, int32_t i, float alpha,
                                                            const int32_t rows)
{
    float *to[KL_ROWS];
    const float *from[KL_ROWS + 2];
    for (int32_t r = 0; r < rows; r++)
        to[r] = row_of(s, step, i + r);
    for (int32_t r = 0; r < rows + 2; r++)
        from[r] = row_of(s, step - 1, i + r - 1);
    step_rows(to, from, alpha, s->W, rows);
}

static void run_sweep(const sweep *s, float alpha)
{
    for (int32_t front = 0; front < s->H + s->steps - 1; front += KL_ROWS)
        for (int32_t step = 1; step <= s->steps; step++) {
            const int32_t i = front - (step - 1);
            if (i >= 0 && i + KL_ROWS <= s->H)
                form_rows(s, step, i, alpha, KL_ROWS);
            else
                for (int32_t r = i < 0 ? 0 : i; r < i + KL_ROWS && r < s->H; r++)
                    form_rows(s, step, r, alpha, 1);
        }
}

void stencil(const float *u, float *output, float *rows, float alpha, int32_t H, int32_t W, int32_t T)
{
    const float *from = u;
    for (int32_t steps = (T - 1) % KL_LEVELS + 1; T > 0; T -= steps, steps = KL_LEVELS) {
        const sweep s = {from, output, rows, H, W, steps};
        run_sweep(&s, alpha);
        from = output;
    }
}
