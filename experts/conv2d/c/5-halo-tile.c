// Convolution: what a tile sees of the image is copied beside it, with zeros where it ends.
// adds: halo_tile
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: neighbours in a tile are then always C apart, so one pointer serves all of them and nothing asks any
// more whether a pixel lies in the image.  All filters use the patch, so the copy is a small part of the work.
// Needs: a buffer of R x SPAN x C floats, which stays in the first cache.  Where one value of x serves few filters the
// copy costs more than it saves: at 64 channels and 128 filters it does, and rung 6 takes most of it back.
// measured: oneDNN's time over this one's at cpu 0.991 [0.986, 0.996], at cpu-large 0.971 [0.966, 0.975];
// x86-64-v4/gcc-12, AMD EPYC.
//! buffer patch: f32[R, 13 * stride + S, C]
//! launch conv2d args(x, weight, y, patch, N, H, W, C, F, OH, OW)
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

// MR x NR sums stay in registers over the whole window.
static inline void convolve_tile(const float *patch, const float *weight, float *y, int32_t C, int32_t F, size_t pitch)
{
    vf sum[MR][2] = {0};
    for (int32_t r = 0; r < KL_R; r++)
        for (int32_t s = 0; s < KL_S; s++) {
            const float *a = patch + (r * SPAN + s) * C;
            for (int32_t c = 0; c < C; c++, weight += F) {
                vf b0 = *(const loose *)weight, b1 = *(const loose *)(weight + LANES);
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

// A tile that hangs over the end of a row is formed beside it and copied.
static void convolve_edge(const float *patch, const float *weight, float *y, int32_t C, int32_t F, int32_t cols)
{
    float tile[MR * NR];
    convolve_tile(patch, weight, tile, C, F, NR);
    for (int32_t i = 0; i < cols; i++)
        for (int32_t n = 0; n < NR; n++)
            y[(size_t)i * F + n] = tile[i * NR + n];
}

// The filters that do not fill a tile, one sum at a time.
static void convolve_rest(const float *patch, const float *weight, float *y, int32_t C, int32_t F, int32_t cols,
                          int32_t filters)
{
    for (int32_t i = 0; i < cols; i++)
        for (int32_t n = 0; n < filters; n++) {
            float sum = 0;
            for (int32_t r = 0; r < KL_R; r++)
                for (int32_t k = 0; k < KL_S * C; k++)
                    sum += patch[(r * SPAN + i * KL_stride) * C + k] * weight[((size_t)r * KL_S * C + k) * F + n];
            y[(size_t)i * F + n] = sum;
        }
}

static void convolve_row(const float *image, const float *weight, float *y, float *patch, int32_t H, int32_t W,
                         int32_t C, int32_t F, int32_t OW, int32_t row)
{
    for (int32_t ow = 0; ow < OW; ow += MR) {
        const int32_t cols = smaller(MR, OW - ow);
        float *to = &y[(size_t)ow * F];
        int32_t f = 0;
        pack_patch(image, patch, H, W, C, row, ow * KL_stride - KL_pad);
        for (; f + NR <= F; f += NR)
            if (cols == MR)
                convolve_tile(patch, &weight[f], &to[f], C, F, F);
            else
                convolve_edge(patch, &weight[f], &to[f], C, F, cols);
        convolve_rest(patch, &weight[f], &to[f], C, F, cols, F - f);
    }
}

void conv2d(const float *x, const float *weight, float *y, float *patch, int32_t N, int32_t H, int32_t W, int32_t C,
            int32_t F, int32_t OH, int32_t OW)
{
    for (int32_t n = 0; n < N; n++)
        for (int32_t oh = 0; oh < OH; oh++)
            convolve_row(&x[(size_t)n * H * W * C], weight, &y[((size_t)n * OH + oh) * OW * F], patch, H, W, C, F, OW,
                         oh * KL_stride - KL_pad);
}
