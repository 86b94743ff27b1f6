// Gated delta rule, rung 3: chunks of 64 tokens on tensor cores.
// Adds gemm_phase_decomposition, gate_reassociate, dedupe_gqa_work and mma_ldmatrix: what a chunk needs beside the
// state is prepared for all chunks at once, products of keys once for all value heads that share them; then a warp
// walks the chunks with 16 columns of the state in its accumulators, which rounded are the left operand of the next
// product.
// Needs D a multiple of 8, at most 128; compute capability 8.0.
// Measured on an H200: 326 us, 20.3 x chunked PyTorch.
// SPDX-License-Identifier: Apache-2.0
//! let    chunks = cdiv(T, 64)
//! require D % 8 == 0 && D <= 128
//! buffer records: i32[B * HV * chunks, 4288]
//! launch prepare grid(chunks, HQ, B) block(128) args(q, k, g, beta, records, T, HQ, HV, D, chunks)
//! launch gdn grid(cdiv(D, 64), HV, B) block(128) smem(5 * 8192 + 4288 * 4 + 4 * 2048) \
//!        args(q, k, v, records, initial_state, output, final_state, T, HQ, HV, D, chunks)
#include <cuda_bf16.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
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
#pragma unroll
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

/* I + L, L strictly lower, is replaced by its inverse: a thread owns a column and substitutes downwards.  Rows above
 * its own are zeros already. */
static __device__ __forceinline__ void invert(float *x)
{
    const int c = threadIdx.x;
    float column[64];
#pragma unroll
    for (int i = 0; i < 64; i++) {
        float sum = i == c ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k++)
            sum -= x[i * ROW + k] * column[k];
        column[i] = sum;
    }
    asm volatile("bar.sync 1, 64;" ::: "memory"); // all have read
#pragma unroll
    for (int i = 0; i < 64; i++)
        x[i * ROW + c] = column[i];
}

/* One chunk of one key head, and every value head that uses it.  With N = K K' and G the running sum of g:
 *   A = decay o (I + strictly lower(beta N))^-1 o beta     P = lower(decay o Q K') / sqrt(D)     decay = exp(G_i - G_j)
 * The gate may stay outside the inverse, since it is a similarity; exp only sees differences that are not positive. */
extern "C" __global__ void __launch_bounds__(128)
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
            invert(tile_k);
        __syncthreads();
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

constexpr int HALF = 64 * 128; // 64 rows of 64 columns, 128-byte rows
constexpr int AT_Q = 2 * HALF, AT_V = 4 * HALF, AT_RECORD = 5 * HALF;

/* A 16-byte piece of a tile of 128-byte rows, turned by the row, so that 8 rows do not share banks. */
static __device__ __forceinline__ uint32_t place(int row, int piece)
{
    return row * 128 + ((piece ^ row % 8) << 4);
}

static __device__ __forceinline__ void copy(uint32_t to, const void *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

/* d += a * b: a warp's 16 rows x 64 x 16, b's rows are the product's columns */
static __device__ __forceinline__ void multiply(float (&d)[32], const uint32_t *a, uint32_t tile, int step)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        uint32_t b[4];
        load_matrices(b, tile + place(n * 16 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
        mma(d + n * 8, *(const uint32_t(*)[4])a, b[0], b[1]);
        mma(d + n * 8 + 4, *(const uint32_t(*)[4])a, b[2], b[3]);
    }
}

/* d += a * b: 16 x 128 x 16, b as keys lie in memory */
static __device__ __forceinline__ void multiply_turned(float (&d)[64], const uint32_t *a, uint32_t tile, int step)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        uint32_t b[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                     : "r"(tile + n / 4 * HALF + place(step * 16 + lane % 16, n % 4 * 2 + lane / 16)));
        mma(d + n * 8, *(const uint32_t(*)[4])a, b[0], b[1]);
        mma(d + n * 8 + 4, *(const uint32_t(*)[4])a, b[2], b[3]);
    }
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

/* A warp's 16 columns of the output, 64 tokens: turned round on the way through 2 KB of shared memory. */
static __device__ __forceinline__ void store(const float (&o)[32], uint32_t staging, __nv_bfloat16 *output, int left,
                                             int columns, size_t stride)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int token = i * 16 + lane / 16 * 8 + lane % 8;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         staging + token * 32 + ((lane / 8 % 2 ^ token / 4 % 2) << 4)),
                     "r"(pair_of(o[i * 8], o[i * 8 + 1])), "r"(pair_of(o[i * 8 + 2], o[i * 8 + 3])),
                     "r"(pair_of(o[i * 8 + 4], o[i * 8 + 5])), "r"(pair_of(o[i * 8 + 6], o[i * 8 + 7]))
                     : "memory");
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int token = i * 16 + lane / 2, piece = lane % 2;
        uint4 x;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(staging + token * 32 + ((piece ^ token / 4 % 2) << 4)));
        if (token < left && piece * 8 < columns)
            *(uint4 *)(output + token * stride + piece * 8) = x;
    }
    __syncwarp();
}

/* 64 columns of one head's state, chunk after chunk.  Everything is turned round (columns of the state are the rows of
 * every product), so that state, delta and output go from product to product in registers:
 *   W = V' - gate o S'K'      V" = W A'      O = gate o S'Q' + V" P'      S' = gate_last S' + (V" o fade) K */
extern "C" __global__ void __launch_bounds__(128)
    gdn(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const uint8_t *records,
        const float *initial_state, __nv_bfloat16 *output, float *final_state, int T, int HQ, int HV, int D, int chunks)
{
    extern __shared__ __align__(128) uint8_t memory[];
    const uint32_t tile = shared_address(memory), record = tile + AT_RECORD;
    const int column0 = blockIdx.x * 64, h = blockIdx.y, b = blockIdx.z, hq = h / (HV / HQ);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int column = column0 + warp * 16 + lane / 4; // of the state; the lane has the one 8 further as well
    float state[64];
    uint32_t operand[32];
    const size_t cell = (size_t)(b * HV + h) * D * D + column;
#pragma unroll
    for (int i = 0; i < 64; i++) {
        const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, further = i / 2 % 2 * 8;
        state[i] = row < D && column + further < D ? initial_state[cell + (size_t)row * D + further] : 0.0f;
    }
    const uint32_t staging = record + RECORD + warp * 2048;
    __nv_bfloat16 *place_o = output + ((size_t)b * T * HV + h) * D + column0 + warp * 16;
    const size_t stride = (size_t)HV * D;
    for (int c = 0; c < chunks; c++) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * 16; i += 128) {
            const int row = i / 16, piece = i % 16, token = c * 64 + row;
            const bool inside = token < T && piece * 8 < D;
            const size_t from = inside ? (((size_t)b * T + token) * HQ + hq) * D + piece * 8 : 0;
            copy(tile + piece / 8 * HALF + place(row, piece % 8), k + from, inside);
            copy(tile + AT_Q + piece / 8 * HALF + place(row, piece % 8), q + from, inside);
        }
        for (int i = threadIdx.x; i < 64 * 8; i += 128) {
            const int row = i / 8, piece = i % 8, token = c * 64 + row;
            const bool inside = token < T && column0 + piece * 8 < D;
            const size_t from = inside ? (((size_t)b * T + token) * HV + h) * D + column0 + piece * 8 : 0;
            copy(tile + AT_V + place(row, piece), v + from, inside);
        }
        for (int i = threadIdx.x; i < RECORD / 16; i += 128)
            copy(record + i * 16, records + ((size_t)(b * HV + h) * chunks + c) * RECORD + i * 16, true);
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        float known[32] = {}, delta[32] = {}, o[32] = {};
        uint32_t w[16], v4[16];
        float2 gate[8];
        pack(operand, state);
#pragma unroll
        for (int i = 0; i < 8; i++)
            multiply(known, operand + i * 4, tile + i / 4 * HALF, i % 4);
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v4[i * 4]), "=r"(v4[i * 4 + 1]), "=r"(v4[i * 4 + 2]), "=r"(v4[i * 4 + 3])
                         : "r"(tile + AT_V + place(i * 16 + lane / 16 * 8 + lane % 8, warp * 2 + lane / 8 % 2)));
        load_vector(gate, record + RECORD_VECTORS);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const float2 value = __bfloat1622float2(*(const __nv_bfloat162 *)&v4[i]);
            w[i] = pair_of(value.x - gate[i / 2].x * known[i * 2], value.y - gate[i / 2].y * known[i * 2 + 1]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            multiply(delta, w + i * 4, record, i);
#pragma unroll
        for (int i = 0; i < 8; i++)
            multiply(o, operand + i * 4, tile + AT_Q + i / 4 * HALF, i % 4);
        load_vector(gate, record + RECORD_VECTORS + 512);
#pragma unroll
        for (int i = 0; i < 32; i++)
            o[i] *= i % 2 ? gate[i / 4].y : gate[i / 4].x;
        pack(w, delta);
#pragma unroll
        for (int i = 0; i < 4; i++)
            multiply(o, w + i * 4, record + RECORD_P, i);
        store(o, staging, place_o, T - c * 64, D - column0 - warp * 16, stride);
        place_o += 64 * stride;
        load_vector(gate, record + RECORD_VECTORS + 256);
        float last;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(last) : "r"(record + RECORD_VECTORS + 63 * 4));
#pragma unroll
        for (int i = 0; i < 16; i++)
            w[i] = pair_of(delta[i * 2] * gate[i / 2].x, delta[i * 2 + 1] * gate[i / 2].y);
#pragma unroll
        for (int i = 0; i < 64; i++)
            state[i] *= last;
#pragma unroll
        for (int i = 0; i < 4; i++)
            multiply_turned(state, w + i * 4, tile, i);
    }
#pragma unroll
    for (int i = 0; i < 64; i++) {
        const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, further = i / 2 % 2 * 8;
        if (row < D && column + further < D)
            final_state[cell + (size_t)row * D + further] = state[i];
    }
}
