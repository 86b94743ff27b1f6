// Convolution: threads take row after row of y.
// adds: omp_parallel
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: rows are independent, and the panels are only read once they are made.  A thread that is held up takes
// fewer rows, and which thread forms a row changes nothing in it.
// Needs: a patch for each thread; a barrier between packing the filters and using them, which the end of the loop is.
// measured: oneDNN's time over this one's at cpu 1.009 [1.001, 1.011], at cpu-large 0.988 [0.982, 0.995] noisy;
// x86-64-v4/gcc-12, AMD EPYC; two threads on both sides.
//! threads 2
//! buffer patch: f32[2, R, 13 * stride + S, C]
//! buffer panels: f32[cdiv(F, 32), R * S * C, 32]
//! launch conv2d args(x, weight, y, patch, panels, N, H, W, C, F, OH, OW)
#include <omp.h>
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel computes in float32 only"
#endif

#if defined __AVX512F__
enum { LANES = 16, MR = 14 };    // MR * 2 sums, 2 vectors of filters and 1 value of x: 31 of 32 registers
#elif defined __AVX2__
enum { LANES = 8, MR = 6 };      // 15 of 16
#else
enum { LANES = 4, MR = 4 };      // 11 of 16: without FMA a product needs one too
#endif
enum { NR = 2 * LANES };                          // a tile of y: MR neighbours in a row, NR filters
enum { SPAN = (MR - 1) * KL_stride + KL_S };      // columns of x that it sees

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));    // at any address

static inline int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// The filters as panels of NR, each contiguous along the window and the channels; missing filters are zero.
static void pack_filters(const float *weight, float *panels, int32_t depth, int32_t F)
{
#pragma omp parallel for num_threads(2)
    for (int32_t f = 0; f < F; f += NR)
        for (int32_t k = 0; k < depth; k++)
            for (int32_t n = 0; n < NR; n++)
                panels[(size_t)f * depth + k * NR + n] = f + n < F ? weight[(size_t)k * F + f + n] : 0;
}

// What a tile sees of the image, from (row, col) on; what lies outside of the image is zero.
static void pack_patch(const float *image, float *patch, int32_t H, int32_t W, int32_t C, int32_t row, int32_t col)
{
    for (int32_t h = row; h < row + KL_R; h++)
        for (int32_t w = col; w < col + SPAN; w++, patch += C) {
            const float *from = h >= 0 && h < H && w >= 0 && w < W ? &image[((size_t)h * W + w) * C] : NULL;
            for (int32_t c = 0; c < C; c++)
                patch[c] = from ? from[c] : 0;
        }
}

// MR x NR sums stay in registers over the whole window.  `seen` is the patch or, where no pixel lies outside of it, the
// image; either way pixels lie C apart and rows of them row_pitch.
static inline void convolve_tile(const float *seen, size_t row_pitch, const float *panel, float *y, size_t pitch,
                                 int32_t C)
{
    vf sum[MR][2] = {0};
    for (int32_t r = 0; r < KL_R; r++)
        for (int32_t s = 0; s < KL_S; s++) {
            const float *a = &seen[r * row_pitch + s * C];
            for (int32_t c = 0; c < C; c++, panel += NR) {
                vf b0 = *(const vf *)panel, b1 = *(const vf *)(panel + LANES);
#pragma GCC unroll 14
                for (int32_t i = 0; i < MR; i++) {
                    float value = a[i * KL_stride * C + c];
                    sum[i][0] += value * b0;
                    sum[i][1] += value * b1;
                }
            }
        }
#pragma GCC unroll 14
    for (int32_t i = 0; i < MR; i++) {
        *(loose *)&y[i * pitch] = sum[i][0];
        *(loose *)&y[i * pitch + LANES] = sum[i][1];
    }
}

// A tile that hangs over the edge of y is formed beside it and copied.
static void convolve_edge(const float *seen, size_t row_pitch, const float *panel, float *y, size_t pitch, int32_t C,
                          int32_t cols, int32_t filters)
{
    float tile[MR * NR];
    convolve_tile(seen, row_pitch, panel, tile, NR, C);
    for (int32_t i = 0; i < cols; i++)
        for (int32_t n = 0; n < filters; n++)
            y[i * pitch + n] = tile[i * NR + n];
}

// Is all that a tile sees from (row, col) on part of the image?
static inline int is_interior(int32_t row, int32_t col, int32_t H, int32_t W)
{
    return row >= 0 && row + KL_R <= H && col >= 0 && col + SPAN <= W;
}

static void convolve_row(const float *image, const float *panels, float *y, float *patch, int32_t H, int32_t W,
                         int32_t C, int32_t F, int32_t OW, int32_t row)
{
    for (int32_t ow = 0; ow < OW; ow += MR) {
        const int32_t col = ow * KL_stride - KL_pad, cols = smaller(MR, OW - ow);
        const int inside = is_interior(row, col, H, W);
        const float *seen = inside ? &image[((size_t)row * W + col) * C] : patch;
        const size_t row_pitch = (size_t)(inside ? W : SPAN) * C;
        if (!inside)
            pack_patch(image, patch, H, W, C, row, col);
        for (int32_t f = 0; f < F; f += NR) {
            const float *panel = panels + (size_t)f * KL_R * KL_S * C;
            float *tile = &y[(size_t)ow * F + f];
            if (cols == MR && f + NR <= F)
                convolve_tile(seen, row_pitch, panel, tile, F, C);
            else
                convolve_edge(seen, row_pitch, panel, tile, F, C, cols, smaller(NR, F - f));
        }
    }
}

void conv2d(const float *x, const float *weight, float *y, float *patch, float *panels, int32_t N, int32_t H, int32_t W,
            int32_t C, int32_t F, int32_t OH, int32_t OW)
{
    pack_filters(weight, panels, KL_R * KL_S * C, F);
#pragma omp parallel num_threads(2)
    {
        float *own = patch + (size_t)omp_get_thread_num() * KL_R * SPAN * C;
#pragma omp for schedule(dynamic)
        for (int32_t row = 0; row < N * OH; row++)
            convolve_row(&x[(size_t)(row / OH) * H * W * C], panels, &y[(size_t)row * OW * F], own, H, W, C, F, OW,
                         row % OH * KL_stride - KL_pad);
    }
}
