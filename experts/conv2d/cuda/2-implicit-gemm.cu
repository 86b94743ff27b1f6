// Convolution, rung 2: a matrix product whose left operand is gathered on the fly.
// Adds implicit_gemm, tile_block and thread_tile_2d: rows are output pixels, columns filters, the sum runs over taps
// and channels; 64 x 64 tiles pass through shared memory and a thread keeps 4 x 4 sums.
// Needs nothing, any shape.
// Measured on an H200: 274 us, 0.0569 x PyTorch's cuDNN.
// SPDX-License-Identifier: Apache-2.0
//! launch conv2d grid(cdiv(N * H * W, 64), cdiv(F, 64)) block(256) args(x, weight, y, N, H, W, C, F)
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 16;

extern "C" __global__ void __launch_bounds__(256)
conv2d(const __half *x, const __half *weight, __half *y, int N, int H, int W, int C, int F)
{
    __shared__ __align__(16) float a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
    const int pixels = N * H * W, first = blockIdx.x * TILE, filter = blockIdx.y * TILE;
    const int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
    float sum[4][4] = {};
    for (int tap = 0; tap < KL_R * KL_S; tap++)
        for (int c = 0; c < C; c += DEPTH) {
            for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
                const int channel = i % DEPTH, pixel = first + i / DEPTH;
                const int h = pixel / W % H + tap / KL_S - KL_pad, w = pixel % W + tap % KL_S - KL_pad;
                const bool inside = pixel < pixels && c + channel < C && h >= 0 && h < H && w >= 0 && w < W;
                a[channel][i / DEPTH] =
                    inside ? (float)x[(((size_t)(pixel / W / H) * H + h) * W + w) * C + c + channel] : 0;
            }
            for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
                const int f = filter + i % TILE, channel = c + i / TILE;
                b[i / TILE][i % TILE] = f < F && channel < C ? (float)weight[((size_t)tap * C + channel) * F + f] : 0;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                const float4 u = *(const float4 *)&a[k][ty], v = *(const float4 *)&b[k][tx];
                const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (int r = 0; r < 4; r++)
#pragma unroll
                    for (int s = 0; s < 4; s++)
                        sum[r][s] += us[r] * vs[s];
            }
            __syncthreads();
        }
    for (int r = 0; r < 4; r++)
        for (int s = 0; s < 4; s++)
            if (first + ty + r < pixels && filter + tx + s < F)
                y[(size_t)(first + ty + r) * F + filter + tx + s] = (__half)sum[r][s];
}
