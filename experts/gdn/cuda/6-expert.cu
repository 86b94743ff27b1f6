// Gated delta rule, rung 6: the output leaves by other warps.
// Adds other:store-warps (the warps beside the loader carry finished outputs from shared memory to their rows), and
// splits the state in halves, so that the first becomes an operand while the second is still being added to.
// Needs D a multiple of 8, at most 128; compute capability 9.0a.
// Measured on an H200: 132 us, 50 x chunked PyTorch.
// SPDX-License-Identifier: Apache-2.0
//! param  STAGES = 3 {2, 3}
//! let    chunks = cdiv(T, 64)
//! require D % 8 == 0 && D <= 128
//! buffer records: i32[B * HV * chunks, 4288]
//! tensormap tq: q box(64, 1, 64, 1) swizzle(128)
//! tensormap tk: k box(64, 1, 64, 1) swizzle(128)
//! tensormap tv: v box(64, 1, 64, 1) swizzle(128)
//! launch prepare grid(chunks, HQ, B) block(128) args(q, k, g, beta, records, T, HQ, HV, D, chunks)
//! launch gdn grid(cdiv(D, 64), HV, B) block(256) smem(STAGES * 57 * 1024 + 2 * 8192 + 1024) \
//!        args(tq, tk, tv, records, initial_state, output, final_state, T, HQ, HV, D, chunks)
#include <cuda.h>
#include <cuda_bf16.h>
#include <stdint.h>

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

/* What a chunk needs beside keys, queries and values, for one value head: 64 x 64 bfloat16 of A and of P, rows of 128
 * bytes in the 128-byte swizzle, and three vectors.  It travels as one piece. */
constexpr int RECORD_P = 8192, RECORD_VECTORS = 16384, RECORD = RECORD_VECTORS + 3 * 256;
constexpr int ROW = 68; // floats of a row of 64 in shared memory, so that 8 rows do not share banks

static __device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(const uint32_t *)&pair;
}

/* c += a * b, 16 x 8 x 16 */
static __device__ __forceinline__ void mma(float *c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c += a * b, 16 x 8 x 8, operands rounded to tf32 */
static __device__ __forceinline__ void mma_tf32(float *c, const float (&a)[4], float b0, float b1)
{
    uint32_t r[6];
    const float x[6] = {a[0], a[1], a[2], a[3], b0, b1};
#pragma unroll
    for (int i = 0; i < 6; i++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[i]) : "f"(x[i]));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
}

static __device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

/* A warp's 16 rows of left * right', both 64 rows of 256 bytes, 272 apart. */
static __device__ __forceinline__ void product(float (&c)[32], uint32_t left, uint32_t right)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 32; i++)
        c[i] = 0.0f;
#pragma unroll 2
    for (int k = 0; k < 8; k++) {
        uint32_t a[4];
        load_matrices(a, left + (warp * 16 + lane % 16) * 272 + (k * 2 + lane / 16) * 16);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            uint32_t b[4];
            load_matrices(b, right + (n * 16 + lane / 16 * 8 + lane % 8) * 272 + (k * 2 + lane / 8 % 2) * 16);
            mma(c + n * 8, a, b[0], b[1]);
            mma(c + n * 8 + 4, a, b[2], b[3]);
        }
    }
}

/* The four 16 x 16 blocks on the diagonal of I + L, L strictly lower, each replaced by its inverse: a lane owns a
 * column and substitutes downwards. */
static __device__ __forceinline__ void invert_diagonal(float *x)
{
    float column[16];
    const int c = threadIdx.x % 16;
    float *const block = x + threadIdx.x / 16 * 16 * (ROW + 1);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float sum[4] = {i == c ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 l = *(const float4 *)&block[i * ROW + k];
            sum[0] -= l.x * column[k];
            if (k + 1 < i)
                sum[1] -= l.y * column[k + 1];
            if (k + 2 < i)
                sum[2] -= l.z * column[k + 2];
            if (k + 3 < i)
                sum[3] -= l.w * column[k + 3];
        }
        column[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; i++)
        block[i * ROW + c] = column[i];
}

/* Two inverted blocks of SIZE with L21 below the first become one of twice the size: X21 = -X22 L21 X11.  A warp takes
 * 16 rows of X21 and a part of its columns.  The first product's accumulator is the second's left operand if columns 2q
 * and 2q + 1 of eight are called q and q + 4, and the right operand's rows likewise. */
template <int SIZE> static __device__ __forceinline__ void merge(float *x)
{
    constexpr int PARTS = 64 / SIZE / 2 * SIZE / 16, COLUMNS = SIZE * PARTS / 4; // tiles of 16 rows, columns of a warp
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    const int tile = warp % PARTS, at = tile * 16 / SIZE * 2 * SIZE, row = at + SIZE + tile * 16 % SIZE;
    const int column = at + warp / PARTS * COLUMNS;
    float t[SIZE / 8][4] = {}, r[COLUMNS / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        const float *const left = &x[(row + g) * ROW + at + SIZE + k + q];
        const float a[4] = {left[0], left[8 * ROW], left[4], left[8 * ROW + 4]};
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++) {
            const float *const right = &x[(at + SIZE + k + q) * ROW + at + n * 8 + g];
            mma_tf32(t[n], a, right[0], right[4 * ROW]);
        }
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        const float a[4] = {t[k / 8][0], t[k / 8][2], t[k / 8][1], t[k / 8][3]};
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            const float *const right = &x[(at + k + 2 * q) * ROW + column + n * 8 + g];
            mma_tf32(r[n], a, right[0], right[ROW]);
        }
    }
    __syncthreads(); // all have read L21
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
        float *const to = &x[(row + g) * ROW + column + n * 8 + q * 2];
        *(float2 *)to = {-r[n][0], -r[n][1]};
        *(float2 *)(to + 8 * ROW) = {-r[n][2], -r[n][3]};
    }
    __syncthreads();
}

/* One chunk of one key head, and every value head that uses it.  With N = K K' and G the running sum of g:
 *   A = decay o (I + strictly lower(beta N))^-1 o beta     P = lower(decay o Q K') / sqrt(D)     decay = exp(G_i - G_j)
 * The gate may stay outside the inverse, since it is a similarity; exp only sees differences that are not positive. */
extern "C" __global__ void __launch_bounds__(128, 5)
    prepare(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const float *g, const float *beta, uint8_t *records, int T,
            int HQ, int HV, int D, int chunks)
{
    __shared__ __align__(16) float tile_k[64 * ROW], tile_q[64 * ROW];
    __shared__ __align__(16) float totals[4][64], strengths[4][64];
    const int chunk = blockIdx.x, hq = blockIdx.y, b = blockIdx.z, heads = HV / HQ;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, left = min(64, T - chunk * 64);
    const float scale = rsqrtf((float)D);
    float own[2], strong[2]; // of one head's tokens a warp
    const auto fetch = [&](int head) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = i * 32 + lane;
            const size_t at = ((size_t)b * T + chunk * 64 + row) * HV + hq * heads + head;
            own[i] = row < left && head < heads ? g[at] * 1.4426950408889634f : 0.0f;
            strong[i] = row < left && head < heads ? beta[at] : 0.0f;
        }
    };
    fetch(warp);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = i * 8 + threadIdx.x / 16, piece = threadIdx.x % 16;
        const size_t from = (((size_t)b * T + chunk * 64 + row) * HQ + hq) * D + piece * 8;
        const bool inside = row < left && piece * 8 < D;
        const uint4 zero = {0, 0, 0, 0};
        *(uint4 *)&tile_k[row * ROW + piece * 4] = inside ? *(const uint4 *)&k[from] : zero;
        *(uint4 *)&tile_q[row * ROW + piece * 4] = inside ? *(const uint4 *)&q[from] : zero;
    }
    __syncthreads();
    float n[32];
    {
        float m[32];
        product(m, shared_address(tile_q), shared_address(tile_k));
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 16; i++) // over the warp's own queries, which nobody reads again
            *(float2 *)&tile_q[(warp * 16 + lane / 4 + i % 2 * 8) * ROW + i / 2 * 8 + lane % 4 * 2] = {
                m[i * 2] * scale, m[i * 2 + 1] * scale};
    }
    product(n, shared_address(tile_k), shared_address(tile_k));
    __syncthreads();
    for (int head = 0; head < heads; head++) {
        if (head % 4 == 0) { // a warp a head: the running sum of g, and what depends on it alone
            if (head > 0) {
                fetch(head + warp);
                __syncthreads();
            }
#pragma unroll
            for (int step = 1; step < 32; step *= 2)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const float before = __shfl_up_sync(0xffffffff, own[i], step);
                    own[i] += lane >= step ? before : 0.0f;
                }
            own[1] += __shfl_sync(0xffffffff, own[0], 31);
            const float last = __shfl_sync(0xffffffff, own[1], 31);
            const size_t at = (size_t)(b * HV + hq * heads + head + warp) * chunks + chunk;
            float *const vectors = (float *)(records + at * RECORD + RECORD_VECTORS);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int row = i * 32 + lane;
                totals[warp][row] = own[i];
                strengths[warp][row] = strong[i];
                if (head + warp < heads) {
                    vectors[row] = power(own[i]);
                    vectors[64 + row] = power(last - own[i]);
                    vectors[128 + row] = power(own[i]) * scale;
                }
            }
            __syncthreads();
        }
        const float *const total = totals[head % 4], *const strength = strengths[head % 4];
        uint8_t *const record = records + ((size_t)(b * HV + hq * heads + head) * chunks + chunk) * RECORD;
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int row = warp * 16 + lane / 4 + i % 2 * 8, column = i / 2 * 8 + lane % 4 * 2;
            const float by = strength[row];
            *(float2 *)&tile_k[row * ROW + column] = {column < row ? n[i * 2] * by : 0.0f,
                                                      column + 1 < row ? n[i * 2 + 1] * by : 0.0f};
        }
        __syncthreads();
        if (threadIdx.x < 64)
            invert_diagonal(tile_k);
        __syncthreads();
        merge<16>(tile_k);
        merge<32>(tile_k);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = i * 16 + threadIdx.x / 8, piece = threadIdx.x % 8;
            const uint32_t to = row * 128 + ((piece ^ row % 8) << 4);
            uint32_t a[4], p[4];
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                const int column = piece * 8 + j * 2;
                const float4 x = *(const float4 *)&tile_k[row * ROW + column];
                const float4 m = *(const float4 *)&tile_q[row * ROW + column];
                const float4 by = *(const float4 *)&strength[column], sum = *(const float4 *)&total[column];
                const float here = total[row];
                const float d0 = column <= row ? power(here - sum.x) : 0.0f;
                const float d1 = column + 1 <= row ? power(here - sum.y) : 0.0f;
                const float d2 = column + 2 <= row ? power(here - sum.z) : 0.0f;
                const float d3 = column + 3 <= row ? power(here - sum.w) : 0.0f;
                a[j] = pair_of(d0 * x.x * by.x, d1 * x.y * by.y);
                a[j + 1] = pair_of(d2 * x.z * by.z, d3 * x.w * by.w);
                p[j] = pair_of(d0 * m.x, d1 * m.y);
                p[j + 1] = pair_of(d2 * m.z, d3 * m.w);
            }
            *(uint4 *)(record + to) = {a[0], a[1], a[2], a[3]};
            *(uint4 *)(record + RECORD_P + to) = {p[0], p[1], p[2], p[3]};
        }
        __syncthreads();
    }
}

constexpr int HALF = 64 * 128, STAGES = KL_STAGES; // 64 rows of 64 columns, 128-byte rows
constexpr int AT_Q = 2 * HALF, AT_V = 4 * HALF, AT_RECORD = 5 * HALF;
constexpr int BYTES = AT_RECORD + RECORD, STAGE = (BYTES + 1023) / 1024 * 1024;

static __device__ __forceinline__ void tile_load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int column,
                                                 int h, int t, int b)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(h), "r"(t), "r"(b)
                 : "memory");
}

static __device__ __forceinline__ void record_load(uint32_t to, const uint8_t *from, int bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Row-major operand whose rows are the product's columns: groups of 8 rows are 1024 bytes apart. */
static __device__ __forceinline__ uint64_t descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* The same tile of keys the other way round: 64 columns further is a half further, 8 tokens further 1024 bytes. */
static __device__ __forceinline__ uint64_t descriptor_turned(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(HALF >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
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

/* d (+)= a * b: 64 x 64 x 16, a from registers, b K-major. */
static __device__ __forceinline__ void multiply(float (&d)[32], const uint32_t *a, uint64_t b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, "
                 "%36, p, 1, 1, 0;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

/* d (+)= a * b: 64 x 64 x 16, a from registers, b N-major. */
static __device__ __forceinline__ void multiply_turned(float (&d)[32], const uint32_t *a, uint64_t b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, "
                 "%36, p, 1, 1, 1;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

/* d (+)= 64 columns of the state x 64 columns of the tile of keys or queries, 64 tokens */
static __device__ __forceinline__ void apply_half(float (&d)[32], const uint32_t (&x)[16], uint32_t tile,
                                                  int accumulate)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        multiply(d, x + i * 4, descriptor(tile) + i * 2, accumulate || i > 0);
}

template <int n> static __device__ __forceinline__ void pack(uint32_t (&to)[n], const float (&from)[n * 2])
{
#pragma unroll
    for (int i = 0; i < n; i++)
        to[i] = pair_of(from[i * 2], from[i * 2 + 1]);
}

/* A lane's numbers of a vector over tokens, in the order of an accumulator's columns. */
static __device__ __forceinline__ void load_vector(float2 (&to)[8], uint32_t vector)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                     : "=f"(to[i].x), "=f"(to[i].y)
                     : "r"(vector + i * 32 + threadIdx.x % 4 * 8));
}

/* 64 columns of one head's state, chunk after chunk.  Everything is turned round (columns of the state are the rows of
 * every product), so that state, delta and output go from product to product in registers:
 *   W = V' - gate o S'K'      V" = W A'      O = gate o S'Q' + V" P'      S' = gate_last S' + (V" o fade) K
 * A second group of warps loads, and carries the output out. */
extern "C" __global__ void __launch_bounds__(256, 1)
    gdn(const __grid_constant__ CUtensorMap tq, const __grid_constant__ CUtensorMap tk,
        const __grid_constant__ CUtensorMap tv, const uint8_t *records, const float *initial_state,
        __nv_bfloat16 *output, float *final_state, int T, int HQ, int HV, int D, int chunks)
{
    extern __shared__ uint8_t memory[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES + 4];
    const uint32_t ring = shared_address(memory) + 1023 & ~1023u, full = shared_address(barriers);
    const uint32_t empty = full + STAGES * 8, full_o = empty + STAGES * 8, empty_o = full_o + 16;
    const uint32_t staging = ring + STAGES * STAGE;
    const int column0 = blockIdx.x * 64, h = blockIdx.y, b = blockIdx.z;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 1);
            barrier_init(empty + s * 8, 4);
        }
        for (int s = 0; s < 2; s++) {
            barrier_init(full_o + s * 8, 4);
            barrier_init(empty_o + s * 8, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        const uint8_t *const record = records + (size_t)(b * HV + h) * chunks * RECORD;
        const auto load = [&](int c) {
            const uint32_t to = ring + c % STAGES * STAGE, barrier = full + c % STAGES * 8;
            barrier_wait(empty + c % STAGES * 8, c / STAGES & 1 ^ 1);
            barrier_expect(barrier, BYTES);
            for (int i = 0; i < 2; i++)
                tile_load(to + i * HALF, &tk, barrier, i * 64, h / (HV / HQ), c * 64, b);
            tile_load(to + AT_V, &tv, barrier, column0, h, c * 64, b);
            record_load(to + AT_RECORD, record + (size_t)c * RECORD, RECORD, barrier);
            for (int i = 0; i < 2; i++)
                tile_load(to + AT_Q + i * HALF, &tq, barrier, i * 64, h / (HV / HQ), c * 64, b);
        };
        if (threadIdx.x == 128)
            for (int c = 0; c < min(chunks, STAGES); c++)
                load(c);
        const int thread = threadIdx.x - 128, piece = thread % 8;
        for (int c = 0; c < chunks; c++) {
            barrier_wait(full_o + c % 2 * 8, c / 2 & 1);
            if (thread == 0 && c + STAGES < chunks) // its stage was given back just before
                load(c + STAGES);
            __syncwarp();
            uint4 x[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int token = i * 16 + thread / 8;
                asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x[i].x), "=r"(x[i].y), "=r"(x[i].z), "=r"(x[i].w)
                             : "r"(staging + c % 2 * HALF + token * 128 + ((piece ^ token % 8) << 4)));
            }
            __syncwarp();
            barrier_arrive(empty_o + c % 2 * 8);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int token = c * 64 + i * 16 + thread / 8;
                if (token < T && column0 + piece * 8 < D)
                    *(uint4 *)&output[(((size_t)b * T + token) * HV + h) * D + column0 + piece * 8] = x[i];
            }
        }
        return;
    }
    const int column = column0 + warp * 16 + lane / 4; // of the state; the lane has the one 8 further as well
    float state0[32], state1[32], known[32], o[32];
    uint32_t low[16], high[16];
    const size_t cell = (size_t)(b * HV + h) * D * D + column;
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, further = i / 2 % 2 * 8;
        const float *const from = initial_state + cell + (size_t)row * D + further;
        state0[i] = row < D && column + further < D ? from[0] : 0.0f;
        state1[i] = row + 64 < D && column + further < D ? from[(size_t)64 * D] : 0.0f;
    }
    pack(low, state0);
    pack(high, state1);
    barrier_wait(full, 0);
    multiply_begin();
    apply_half(known, low, ring, 0);
    apply_half(known, high, ring + HALF, 1);
    multiply_commit();
    for (int c = 0; c < chunks; c++) {
        const uint32_t s = c % STAGES, tile = ring + s * STAGE, record = tile + AT_RECORD;
        float delta[32], value[32];
        uint32_t w[16], rounded[16];
        float2 gate[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int token = i * 16 + lane / 16 * 8 + lane % 8;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(w[i * 4]), "=r"(w[i * 4 + 1]), "=r"(w[i * 4 + 2]), "=r"(w[i * 4 + 3])
                         : "r"(tile + AT_V + token * 128 + ((warp * 2 + lane / 8 % 2 ^ token % 8) << 4)));
        }
        load_vector(gate, record + RECORD_VECTORS);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            value[i * 2] = __uint_as_float(w[i] << 16);
            value[i * 2 + 1] = __uint_as_float(w[i] & 0xffff0000);
        }
        float last;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(last) : "r"(record + RECORD_VECTORS + 63 * 4));
        multiply_wait<0>();
#pragma unroll
        for (int i = 0; i < 4; i++) { // a step's operand is made while the step before runs
#pragma unroll
            for (int n = i * 4; n < i * 4 + 4; n++)
                w[n] = pair_of(value[n * 2] - gate[n / 2].x * known[n * 2],
                               value[n * 2 + 1] - gate[n / 2].y * known[n * 2 + 1]);
            multiply_begin();
            multiply(delta, w + i * 4, descriptor(record) + i * 2, i > 0);
        }
        multiply_commit();
        apply_half(o, low, tile + AT_Q, 0);
        apply_half(o, high, tile + AT_Q + HALF, 1);
        multiply_commit();
#pragma unroll
        for (int i = 0; i < 32; i++) {
            state0[i] *= last;
            state1[i] *= last;
        }
        load_vector(gate, record + RECORD_VECTORS + 256);
        multiply_wait<1>();
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int n = i * 4; n < i * 4 + 4; n++)
                w[n] = pair_of(delta[n * 2] * gate[n / 2].x, delta[n * 2 + 1] * gate[n / 2].y);
            multiply_begin();
            multiply_turned(state0, w + i * 4, descriptor_turned(tile) + i * (2048 >> 4), 1);
        }
        multiply_commit();
#pragma unroll
        for (int i = 0; i < 4; i++)
            multiply_turned(state1, w + i * 4, descriptor_turned(tile + HALF) + i * (2048 >> 4), 1);
        multiply_commit();
        pack(rounded, delta);
        load_vector(gate, record + RECORD_VECTORS + 512);
        multiply_wait<2>();
#pragma unroll
        for (int i = 0; i < 32; i++)
            o[i] *= i % 2 ? gate[i / 4].y : gate[i / 4].x;
        multiply_begin();
        apply_half(o, rounded, record + RECORD_P, 1);
        multiply_commit();
        const int next = min(c + 1, chunks - 1); // after the last chunk once more, for nothing
        const uint32_t keys = ring + next % STAGES * STAGE;
        barrier_wait(full + next % STAGES * 8, next / STAGES & 1);
        multiply_wait<2>();
        pack(low, state0);
        multiply_wait<1>();
        pack(high, state1);
        multiply_begin();
        apply_half(known, low, keys, 0);
        apply_half(known, high, keys + HALF, 1);
        multiply_commit();
        barrier_wait(empty_o + c % 2 * 8, c / 2 & 1 ^ 1);
        multiply_wait<1>();
        barrier_arrive(empty + s * 8);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int token = i * 16 + lane / 16 * 8 + lane % 8;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                             staging + c % 2 * HALF + token * 128 + ((warp * 2 + lane / 8 % 2 ^ token % 8) << 4)),
                         "r"(pair_of(o[i * 8], o[i * 8 + 1])), "r"(pair_of(o[i * 8 + 2], o[i * 8 + 3])),
                         "r"(pair_of(o[i * 8 + 4], o[i * 8 + 5])), "r"(pair_of(o[i * 8 + 6], o[i * 8 + 7]))
                         : "memory");
        }
        __syncwarp();
        barrier_arrive(full_o + c % 2 * 8);
    }
    multiply_wait<0>();
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, further = i / 2 % 2 * 8;
        float *const to = final_state + cell + (size_t)row * D + further;
        if (row < D && column + further < D)
            to[0] = state0[i];
        if (row + 64 < D && column + further < D)
            to[(size_t)64 * D] = state1[i];
    }
}
