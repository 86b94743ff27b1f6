// Matrix product, rung 11: results leave through shared memory and the copy engine.
// Adds stmatrix_epilogue and tma_store_async: a warpgroup writes 64 x 64 pieces with stmatrix into swizzled shared
// memory, where the copy engine fetches them while the next piece is converted; tails are clipped by the tensor map.
// Needs K and N multiples of 8; compute capability 9.0a.
// Measured on an H200: 187 us, 0.996 x cuBLAS.
// SPDX-License-Identifier: Apache-2.0
//! param  STAGES = 4 {2, 3, 4}
//! param  GROUP = 8 {2, 4, 8, 16}
//! let    pairs = cdiv(M, 256) * cdiv(N, 256)
//! require K % 8 == 0 && N % 8 == 0
//! tensormap tx: x box(64, 128) swizzle(128)
//! tensormap tw: weight box(64, 128) swizzle(128)
//! tensormap ty: y box(64, 64) swizzle(128)
//! launch gemm grid(2 * min(sms / 2, pairs)) block(384) cluster(2) \
//!        smem(STAGES * (128 + 256) * 64 * 2 + 4 * 64 * 64 * 2 + 1024) \
//!        args(tx, tw, ty, M, N, K)
#include <cuda.h>
#include <cuda_bf16.h>
#include <stdint.h>

constexpr int BM = 128, BN = 256, BK = 64, STAGES = KL_STAGES, CTAS = 2;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES;
constexpr int PIECE = 64 * 64 * 2;

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

/* Arrives at the same barrier of a CTA of this cluster. */
static __device__ __forceinline__ void barrier_arrive(uint32_t barrier, uint32_t cta)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(barrier), "r"(cta) : "memory");
}

static __device__ __forceinline__ void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

static __device__ __forceinline__ void tile_load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int column,
                                                 int row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row)
                 : "memory");
}

/* The same tile into the same place of every CTA in `ctas`; each one's own barrier counts its bytes. */
static __device__ __forceinline__ void tile_multicast(uint32_t to, const CUtensorMap *map, uint32_t barrier, int column,
                                                      int row, uint16_t ctas)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row), "h"(ctas)
                 : "memory");
}

/* K-major tile with 128-byte rows in the 128-byte swizzle: groups of 8 rows are 1024 bytes apart.  16 columns
 * further is 32 bytes further, so a k step adds 2 to the address field. */
static __device__ __forceinline__ uint64_t descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
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

/* d (+)= a * b: 64 x 256 x 16, both operands through shared memory descriptors. */
static __device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
                   "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
                   "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
                   "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
                   "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
                   "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
                   "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]),
                   "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
                   "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]),
                   "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
                   "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]),
                   "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]),
                   "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]),
                   "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
                 : "l"(a), "l"(b), "r"(accumulate));
}

/* 64 x 64 of the accumulator as bf16 into 128-byte swizzled rows; stmatrix turns a warp's fragments into rows of 8. */
template <int piece> static __device__ __forceinline__ void store_piece(const float (&d)[128], uint32_t to)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int row = warp * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t packed[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const __nv_bfloat162 pair =
                __floats2bfloat162_rn(d[piece * 32 + i * 8 + e * 2], d[piece * 32 + i * 8 + e * 2 + 1]);
            packed[e] = *(const uint32_t *)&pair;
        }
        const uint32_t place = to + row * 128 + ((i * 2 + lane / 16 ^ row % 8) << 4);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(place),
                     "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                     : "memory");
    }
}

/* One piece of 64 columns on its way: the buffer must have been read, be written by all, and be visible to the copy
 * engine. */
template <int piece>
static __device__ __forceinline__ void send(const float (&d)[128], uint32_t buffers, const CUtensorMap *map, int column,
                                            int row, int group)
{
    const bool first = threadIdx.x % 128 == 0;
    const uint32_t to = buffers + piece % 2 * PIECE;
    if (first)
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    store_piece<piece>(d, to);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    if (first) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(to),
                     "r"(column + piece * 64), "r"(row) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
}

/* Tiles in groups of KL_GROUP rows, column after column: what runs at the same time is close to a square, and shares
 * its operands in L2. */
static __device__ __forceinline__ void locate(int tile, int rows, int columns, int *row, int *column)
{
    const int first = tile / (KL_GROUP * columns) * KL_GROUP;
    const int in_group = tile % (KL_GROUP * columns);
    const int height = min(KL_GROUP, rows - first);
    *row = first + in_group % height;
    *column = in_group / height;
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tw,
         const __grid_constant__ CUtensorMap ty, int M, int N, int K)
{
    extern __shared__ uint8_t memory[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES];
    const uint32_t ring = shared_address(memory) + 1023 & ~1023u;
    const uint32_t full = shared_address(barriers), empty = full + STAGES * 8;
    const int rows = (M + BM * CTAS - 1) / (BM * CTAS), columns = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 1);
            barrier_init(empty + s * 8,
                         8 * CTAS); // a warp of every group of every CTA: all of them read what is loaded here
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();
    int s = 0;
    uint32_t phase = 0; // both go on over tiles
    if (threadIdx.x < 128) { // the producer
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int tile = blockIdx.x / CTAS; tile < rows * columns; tile += gridDim.x / CTAS) {
                int row, column;
                locate(tile, rows, columns, &row, &column);
                row = (row * CTAS + rank) * BM;
                column = column * BN + rank * (BN / CTAS);
                for (int step = 0; step < steps; step++) {
                    const uint32_t a = ring + s * STAGE, b = a + A_BYTES + rank * (B_BYTES / CTAS);
                    barrier_wait(empty + s * 8, phase ^ 1);
                    barrier_expect(full + s * 8, STAGE);
                    tile_load(a, &tx, full + s * 8, step * BK, row);
                    tile_multicast(b, &tw, full + s * 8, step * BK, column, (1 << CTAS) - 1);
                    if (++s == STAGES) {
                        s = 0;
                        phase ^= 1;
                    }
                }
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
        float d[128] = {};
        const uint32_t buffers = ring + STAGES * STAGE + group * 2 * PIECE;
        for (int tile = blockIdx.x / CTAS; tile < rows * columns; tile += gridDim.x / CTAS) {
            int row, column;
            locate(tile, rows, columns, &row, &column);
            row = (row * CTAS + rank) * BM + group * 64;
            column *= BN;
            int before = 0;
            for (int step = 0; step < steps; step++) {
                barrier_wait(full + s * 8, phase);
                const uint64_t a = descriptor(ring + s * STAGE + group * (A_BYTES / 2)),
                               b = descriptor(ring + s * STAGE + A_BYTES);
                multiply_begin();
#pragma unroll
                for (int i = 0; i < BK / 16; i++)
                    multiply(d, a + i * 2, b + i * 2, step + i > 0);
                multiply_commit();
                multiply_wait<1>(); // the products of the step before are done, and its stage is free
                if (step > 0 && lane < CTAS)
                    barrier_arrive(empty + before * 8, lane);
                before = s;
                if (++s == STAGES) {
                    s = 0;
                    phase ^= 1;
                }
            }
            multiply_wait<0>();
            if (lane < CTAS)
                barrier_arrive(empty + before * 8, lane);
            send<0>(d, buffers, &ty, column, row, group);
            send<1>(d, buffers, &ty, column, row, group);
            send<2>(d, buffers, &ty, column, row, group);
            send<3>(d, buffers, &ty, column, row, group);
        }
        if (threadIdx.x % 128 == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    cluster_sync(); // the other CTA may still write here and arrive at barriers here
}
