// Attention, rung 9: one block a multiprocessor.
// Adds persistent_grid, raster_group and lpt_schedule: the producer is at the next tile's queries and keys while the
// last one is stored; eight heads run side by side, so that their keys and values stay in L2; of a causal sequence
// the longest tiles come first.
// Needs D a multiple of 8, at most 128; compute capability 9.0a.
// Measured on an H200: 1.84 ms, 1.006 x PyTorch's cuDNN attention.
// SPDX-License-Identifier: Apache-2.0
//! let    tiles = cdiv(total_q, 128) + B
//! require D % 8 == 0 && D <= 128
//! tensormap tq: q box(64, 1, 128) swizzle(128)
//! tensormap tk: k box(64, 1, 128) swizzle(128)
//! tensormap tv: v box(64, 1, 128) swizzle(128)
//! launch fmha grid(min(sms, tiles * H)) block(384) smem(2 * (2 * 128 + 4 * 128) * 128 + 1024) \
//!        args(tq, tk, tv, qo_offsets, kv_offsets, causal, output, tiles, B, H, D)
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int BM = 128, BN = 128, HALF_Q = BM * 128, HALF_K = BN * 128; // half a tile: 64 columns
constexpr int WIDTH = 8; // heads side by side

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done;\n"
                 "bra again;\n"
                 "done:\n"
                 "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* 64 columns of one head; twice, for a head of up to 128.  Columns that a head does not have arrive as zeros. */
static __device__ __forceinline__ void tile_load(uint32_t to, int half, const CUtensorMap *map, uint32_t barrier, int h,
                                                 int row)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to + i * half),
                     "l"(map), "r"(barrier), "r"(i * 64), "r"(h), "r"(row)
                     : "memory");
}

/* Queries and keys, K-major: groups of 8 rows are 1024 bytes apart, 16 columns further is 32 bytes further. */
static __device__ __forceinline__ uint64_t descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Values, N-major, as they lie in memory: 64 columns further is a half further, 8 keys further 1024 bytes. */
static __device__ __forceinline__ uint64_t descriptor_values(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(HALF_K >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

static __device__ __forceinline__ void multiply_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void multiply_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending> static __device__ __forceinline__ void multiply_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* d (+)= a * b: 64 x BN x 16, both operands through shared memory descriptors. */
static __device__ __forceinline__ void multiply_keys(float (&d)[64], uint64_t a, uint64_t b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
                   "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
                   "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
                   "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
                   "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(accumulate));
}

/* d (+)= a * b: 64 x 128 x 16, a from registers, b N-major. */
static __device__ __forceinline__ void multiply_values(float (&d)[64], const uint32_t *a, uint64_t b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, "
                 "%68, p, 1, 1, 1;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
                   "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
                   "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
                   "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
                   "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

/* scores = queries * keys' */
static __device__ __forceinline__ void score(float (&s)[BN / 2], uint32_t queries, uint32_t keys)
{
    multiply_begin();
#pragma unroll
    for (int i = 0; i < 8; i++)
        multiply_keys(s, descriptor(queries + i / 4 * HALF_Q) + i % 4 * 2,
                      descriptor(keys + i / 4 * HALF_K) + i % 4 * 2, i > 0);
    multiply_commit();
}

/* sums (+)= weights * values */
static __device__ __forceinline__ void add_values(float (&o)[64], const uint32_t (&weights)[BN / 4], uint32_t values,
                                                  int accumulate)
{
    multiply_begin();
#pragma unroll
    for (int i = 0; i < BN / 16; i++)
        multiply_values(o, weights + i * 4, descriptor_values(values) + i * (2048 >> 4), accumulate || i > 0);
    multiply_commit();
}

static __device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Scores become weights relative to the largest so far; `shrink` is what older sums are to be multiplied by.  A lane
 * holds columns of two rows; `limit` is the number of columns that are visible to each, seen from its first.  Sums are
 * of this lane's columns alone until the end. */
template <bool masked, bool first>
static __device__ __forceinline__ void weigh(float (&s)[BN / 2], float (&largest)[2], float (&total)[2],
                                             float (&shrink)[2], float scale, int limit0, int limit1)
{
    if (masked) {
#pragma unroll
        for (int i = 0; i < BN / 2; i++)
            if (i / 4 * 8 + i % 2 >= (i / 2 % 2 ? limit1 : limit0))
                s[i] = -INFINITY;
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = s[half * 2], other = s[half * 2 + 1];
#pragma unroll
        for (int j = 1; j < BN / 8; j++) {
            top = fmaxf(top, s[j * 4 + half * 2]);
            other = fmaxf(other, s[j * 4 + half * 2 + 1]);
        }
        top = fmaxf(top, other);
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
        if (!first)
            top = fmaxf(top, largest[half]);
        const float base = masked && top == -INFINITY ? 0.0f : top * scale;
        if (!first)
            shrink[half] = power(fmaf(largest[half], scale, -base));
        largest[half] = top;
        float sum = 0.0f, sum2 = 0.0f;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            sum += s[j * 4 + half * 2] = power(fmaf(s[j * 4 + half * 2], scale, -base));
            sum2 += s[j * 4 + half * 2 + 1] = power(fmaf(s[j * 4 + half * 2 + 1], scale, -base));
        }
        total[half] = first ? sum + sum2 : fmaf(total[half], shrink[half], sum + sum2);
    }
}

/* The accumulator of one product is, rounded, the operand of the next: no lane needs another's numbers. */
static __device__ __forceinline__ void pack(uint32_t (&weights)[BN / 4], const float (&s)[BN / 2])
{
#pragma unroll
    for (int i = 0; i < BN / 4; i++) {
        const __half2 pair = __floats2half2_rn(s[i * 2], s[i * 2 + 1]);
        weights[i] = *(const uint32_t *)&pair;
    }
}

static __device__ __forceinline__ void rescale(float (&o)[64], const float (&shrink)[2])
{
#pragma unroll
    for (int i = 0; i < 64; i++)
        o[i] *= shrink[i / 2 % 2];
}

/* One warp's 16 rows: through its own 4 KB of shared memory, so that a row leaves in 16-byte pieces side by side. */
static __device__ __forceinline__ void store(const float (&o)[64], const float (&total)[2], uint32_t staging,
                                             __half *output, int left, int H, int D)
{
    const int lane = threadIdx.x % 32;
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = total[half];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        inverse[half] = sum > 0.0f ? 1.0f / sum : 0.0f; // a row that sees no key is zero
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint32_t packed[4];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const __half2 pair =
                __floats2half2_rn(o[i * 8 + n * 2] * inverse[n % 2], o[i * 8 + n * 2 + 1] * inverse[n % 2]);
            packed[n] = *(const uint32_t *)&pair;
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         staging + lane % 16 * 256 + ((i * 2 + lane / 16 ^ lane % 8) << 4)),
                     "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                     : "memory");
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = i * 2 + lane / 16, chunk = lane % 16;
        uint4 piece;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
                     : "r"(staging + row * 256 + ((chunk ^ row % 8) << 4)));
        if (row < left && chunk * 8 < D)
            *(uint4 *)(output + (size_t)row * H * D + chunk * 8) = piece;
    }
    __syncwarp();
}

/* 128 query rows of one head of one sequence. */
struct tile {
    int h, query, left, key, keys, lead, blocks, full; // lead: keys that are visible to the first row beside its own
};

/* Sequence lengths are data: a lane counts the tiles of one sequence, and the warp finds whose `index` is.  There are
 * at most total_q / 128 + B tiles a head; what is left over has no rows. */
static __device__ __forceinline__ tile locate(int index, int tiles, const int *qo_offsets, const int *kv_offsets,
                                              int causal, int B, int H)
{
    const int lane = threadIdx.x % 32;
    /* Eight heads side by side, so that what runs at one time shares keys and values in L2. */
    const int first = index / (WIDTH * tiles) * WIDTH, within = index % (WIDTH * tiles);
    const int width = min(WIDTH, H - first);
    tile t = {first + within % width};
    int x = within / width;
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
            if (causal) // the longest first
                row = __shfl_sync(0xffffffff, own, at) - 1 - row;
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

template <bool v> struct constant {
    static constexpr bool value = v;
};

extern "C" __global__ void __launch_bounds__(384, 1)
    fmha(const __grid_constant__ CUtensorMap tq, const __grid_constant__ CUtensorMap tk,
         const __grid_constant__ CUtensorMap tv, const int *qo_offsets, const int *kv_offsets, int causal,
         __half *output, int tiles, int B, int H, int D)
{
    extern __shared__ uint8_t memory[];
    __shared__ __align__(8) uint64_t barriers[10];
    const uint32_t queries = shared_address(memory) + 1023 & ~1023u, staging = queries + 2 * HALF_Q;
    const uint32_t ring_k = staging + 2 * HALF_Q, ring_v = ring_k + 2 * 2 * HALF_K;
    const uint32_t full_q = shared_address(barriers), empty_q = full_q + 8;
    const uint32_t full_k = full_q + 16, empty_k = full_q + 32, full_v = full_q + 48, empty_v = full_q + 64;
    if (threadIdx.x == 0) {
        barrier_init(full_q, 1);
        barrier_init(empty_q, 8); // a warp of either group
        for (int s = 0; s < 2; s++) {
            barrier_init(full_k + s * 8, 1);
            barrier_init(full_v + s * 8, 1);
            barrier_init(empty_k + s * 8, 8);
            barrier_init(empty_v + s * 8, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    uint32_t turn = 0, block = 0; // tiles and blocks of keys so far, which say stage and phase
    if (threadIdx.x < 128) { // the producer
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x < 32)
            for (int index = blockIdx.x; index < tiles * H; index += gridDim.x) {
                const tile t = locate(index, tiles, qo_offsets, kv_offsets, causal, B, H);
                if (t.blocks == 0 || t.left <= 0)
                    continue;
                if (threadIdx.x == 0) {
                    barrier_wait(empty_q, turn & 1 ^ 1);
                    barrier_expect(full_q, 2 * HALF_Q);
                    tile_load(queries, HALF_Q, &tq, full_q, t.h, t.query);
                    for (int j = t.blocks - 1; j >= 0; j--, block++) {
                        const uint32_t s = block & 1, phase = block >> 1 & 1 ^ 1;
                        barrier_wait(empty_k + s * 8, phase);
                        barrier_expect(full_k + s * 8, 2 * HALF_K);
                        tile_load(ring_k + s * 2 * HALF_K, HALF_K, &tk, full_k + s * 8, t.h, t.key + j * BN);
                        barrier_wait(empty_v + s * 8, phase);
                        barrier_expect(full_v + s * 8, 2 * HALF_K);
                        tile_load(ring_v + s * 2 * HALF_K, HALF_K, &tv, full_v + s * 8, t.h, t.key + j * BN);
                    }
                }
                turn++;
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
        const int row = group * 64 + warp * 16 + lane / 4; // of this lane, and the one 8 below
        const float scale = 1.4426950408889634f / sqrtf((float)D);
        const uint32_t own_queries = queries + group * 64 * 128, own_staging = staging + (group * 4 + warp) * 4096;
        float s[BN / 2], o[64], largest[2], total[2], shrink[2];
        uint32_t weights[BN / 4];
        for (int index = blockIdx.x; index < tiles * H; index += gridDim.x) {
            const tile t = locate(index, tiles, qo_offsets, kv_offsets, causal, B, H);
            if (t.left <= 0)
                continue;
            __half *const place = output + ((size_t)(t.query + group * 64 + warp * 16) * H + t.h) * D;
            const int left = t.left - group * 64 - warp * 16;
            total[0] = total[1] = 0.0f;
            if (t.blocks == 0) {
#pragma unroll
                for (int i = 0; i < 64; i++)
                    o[i] = 0.0f;
                store(o, total, own_staging, place, left, H, D);
                continue;
            }
            int j = t.blocks - 1;
            const int visible0 = min(t.keys, causal ? t.lead + row + 1 : t.keys) - lane % 4 * 2;
            const int visible1 = min(t.keys, causal ? t.lead + row + 9 : t.keys) - lane % 4 * 2;
            const auto stage = [](uint32_t n) { return (n & 1) * 8; };
            const auto phase = [](uint32_t n) { return n >> 1 & 1; };
            barrier_wait(full_q, turn++ & 1);
            barrier_wait(full_k + stage(block), phase(block));
            score(s, own_queries, ring_k + (block & 1) * 2 * HALF_K);
            multiply_wait<0>();
            barrier_arrive(empty_k + stage(block));
            weigh<true, true>(s, largest, total, shrink, scale, visible0 - j * BN, visible1 - j * BN);
            pack(weights, s);
            int accumulate = 0;
            /* Scores of the next block are on their way while the last block's values are added. */
            const auto step = [&](auto masked) {
                barrier_wait(full_k + stage(block + 1), phase(block + 1));
                score(s, own_queries, ring_k + (block + 1 & 1) * 2 * HALF_K);
                barrier_wait(full_v + stage(block), phase(block));
                add_values(o, weights, ring_v + (block & 1) * 2 * HALF_K, accumulate);
                multiply_wait<1>();
                barrier_arrive(empty_k + stage(block + 1));
                weigh<masked.value, false>(s, largest, total, shrink, scale, visible0 - j * BN, visible1 - j * BN);
                multiply_wait<0>();
                barrier_arrive(empty_v + stage(block));
                rescale(o, shrink);
                pack(weights, s);
                accumulate = 1;
                block++;
            };
            for (j--; j >= t.full; j--) // past the end of the keys, or on the diagonal
                step(constant<true>());
            for (; j >= 0; j--)
                step(constant<false>());
            barrier_arrive(empty_q);
            barrier_wait(full_v + stage(block), phase(block));
            add_values(o, weights, ring_v + (block & 1) * 2 * HALF_K, accumulate);
            multiply_wait<0>();
            barrier_arrive(empty_v + stage(block));
            block++;
            store(o, total, own_staging, place, left, H, D);
        }
    }
}
