// Attention, rung 2: scores never leave the chip.
// Adds flash_fuse and one_pass_online: a block keeps 64 query rows of a head and walks the keys 64 at a time with the
// running maximum and sum of online softmax; tile_block, thread_tile_2d: a thread computes 4 x 4 scores and 4 x 8
// sums. The grid is one block for every tile there may be, since sequence lengths are data: at most total_q / 64 + B
// a head.
// Needs D a multiple of 4, at most 128.
// Measured on an H200: 47.5 ms, 0.035 x PyTorch's cuDNN attention.
// SPDX-License-Identifier: Apache-2.0
//! let    tiles = cdiv(total_q, 64) + B
//! require D % 4 == 0 && D <= 128
//! launch fmha grid(tiles * H) block(256) smem((3 * 64 * 132 + 64 * 68) * 4) \
//!        args(q, k, v, qo_offsets, kv_offsets, causal, output, tiles, B, H, D)
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int BM = 64, BN = 64, ROW = 132, ROW_P = 68; // rows of shared memory in floats, a little longer than they are

/* 64 query rows of one head of one sequence. */
struct tile {
    int h, query, left, key, keys, lead, blocks, full; // lead: keys that are visible to the first row beside its own
};

/* Sequence lengths are data: a lane counts the tiles of one sequence, and the warp finds whose `index` is.  There are
 * at most total_q / 64 + B tiles a head; what is left over has no rows. */
static __device__ __forceinline__ tile locate(int index, int tiles, const int *qo_offsets, const int *kv_offsets,
                                              int causal, int B, int H)
{
    const int lane = threadIdx.x % 32;
    tile t = {index / tiles};
    int x = index % tiles;
    for (int b0 = 0; b0 < B; b0 += 32) {
        const int b = b0 + lane;
        const int query = b < B ? qo_offsets[b] : 0, rows = b < B ? qo_offsets[b + 1] - query : 0;
        const int own = (rows + BM - 1) / BM;
        int upto = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int before = __shfl_up_sync(0xffffffff, upto, step);
            upto += lane >= step ? before : 0;
        }
        const unsigned beyond = __ballot_sync(0xffffffff, upto > x);
        if (beyond) {
            const int at = __ffs(beyond) - 1;
            int row = x - __shfl_sync(0xffffffff, upto - own, at);
            row *= BM;
            const int all = __shfl_sync(0xffffffff, rows, at);
            t.query = __shfl_sync(0xffffffff, query, at) + row;
            t.left = all - row;
            t.key = kv_offsets[b0 + at];
            t.keys = kv_offsets[b0 + at + 1] - t.key;
            t.lead = causal ? row + t.keys - all : t.keys;
            t.blocks = (max(0, min(t.keys, t.lead + BM)) + BN - 1) / BN;
            t.full = max(0, min(t.keys, t.lead + 1)) / BN;
            return t;
        }
        x -= __shfl_sync(0xffffffff, upto, 31);
    }
    return t;
}

/* Rows of one head as float32, zero where there are none. */
static __device__ __forceinline__ void load_tile(float *to, const __half *from, int rows, int H, int D)
{
    for (int i = threadIdx.x; i < 64 * 64; i += 256) {
        const int row = i / 64, d = i % 64 * 2;
        float2 x = {0.0f, 0.0f};
        if (row < rows && d < D)
            x = __half22float2(*(const __half2 *)&from[(size_t)row * H * D + d]);
        *(float2 *)&to[row * ROW + d] = x;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    fmha(const __half *q, const __half *k, const __half *v, const int *qo_offsets, const int *kv_offsets, int causal,
         __half *output, int tiles, int B, int H, int D)
{
    extern __shared__ __align__(16) float memory[];
    const tile t = locate(blockIdx.x, tiles, qo_offsets, kv_offsets, causal, B, H);
    if (t.left <= 0)
        return;
    float *const queries = memory, *const keys = queries + BM * ROW, *const values = keys + BN * ROW;
    float *const weights = values + BN * ROW;
    const int x = threadIdx.x % 16, y = threadIdx.x / 16; // 4 rows from y * 4; columns x, x + 16 ... of the scores
    const float scale = 1.4426950408889634f / sqrtf((float)D);
    const size_t first = ((size_t)t.key * H + t.h) * D;
    float o[4][8] = {}, largest[4], total[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++)
        largest[i] = -INFINITY;
    load_tile(queries, q + ((size_t)t.query * H + t.h) * D, t.left, H, D);
    for (int j = 0; j < t.blocks; j++) {
        __syncthreads();
        load_tile(keys, k + first + (size_t)j * BN * H * D, t.keys - j * BN, H, D);
        load_tile(values, v + first + (size_t)j * BN * H * D, t.keys - j * BN, H, D);
        __syncthreads();
        float s[4][4] = {};
        for (int d = 0; d < D; d += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                a[i] = *(const float4 *)&queries[(y * 4 + i) * ROW + d];
                b[i] = *(const float4 *)&keys[(x + i * 16) * ROW + d];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int n = 0; n < 4; n++)
                    s[i][n] += a[i].x * b[n].x + a[i].y * b[n].y + a[i].z * b[n].z + a[i].w * b[n].w;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int visible = min(t.keys, causal ? t.lead + y * 4 + i + 1 : t.keys) - j * BN;
            float top = largest[i], sum = 0.0f;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                s[i][n] = x + n * 16 < visible ? s[i][n] * scale : -INFINITY;
                top = fmaxf(top, s[i][n]);
            }
#pragma unroll
            for (int step = 1; step < 16; step *= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
            const float base = top == -INFINITY ? 0.0f : top, shrink = exp2f(largest[i] - base);
            largest[i] = top;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const float weight = exp2f(s[i][n] - base);
                weights[(y * 4 + i) * ROW_P + x + n * 16] = weight;
                sum += weight;
            }
            total[i] = total[i] * shrink + sum;
#pragma unroll
            for (int n = 0; n < 8; n++)
                o[i][n] *= shrink;
        }
        __syncwarp(); // a warp reads the weights of its own 8 rows
        for (int key = 0; key < BN; key++) {
            const float4 b0 = *(const float4 *)&values[key * ROW + x * 4];
            const float4 b1 = *(const float4 *)&values[key * ROW + 64 + x * 4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float a = weights[(y * 4 + i) * ROW_P + key];
                o[i][0] += a * b0.x, o[i][1] += a * b0.y, o[i][2] += a * b0.z, o[i][3] += a * b0.w;
                o[i][4] += a * b1.x, o[i][5] += a * b1.y, o[i][6] += a * b1.z, o[i][7] += a * b1.w;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int step = 1; step < 16; step *= 2)
            total[i] += __shfl_xor_sync(0xffffffff, total[i], step);
        const float inverse = total[i] > 0.0f ? 1.0f / total[i] : 0.0f; // a row that sees no key is zero
        __half *const to = output + ((size_t)(t.query + y * 4 + i) * H + t.h) * D + x * 4;
#pragma unroll
        for (int n = 0; n < 8; n += 2)
            if (y * 4 + i < t.left && n / 4 * 64 + x * 4 + n % 4 < D)
                *(__half2 *)&to[n / 4 * 64 + n % 4] = __floats2half2_rn(o[i][n] * inverse, o[i][n + 1] * inverse);
    }
}
