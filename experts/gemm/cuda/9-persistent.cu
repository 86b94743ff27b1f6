// Matrix product, rung 9: as many blocks as multiprocessors, each walking over tiles.
// Adds persistent_grid and raster_group, together: while consumers store one tile the producer loads the next, and
// groups of rows keep what is loaded at the same time in L2.
// Needs K a multiple of 8 and N even; compute capability 9.0a.
// Measured on an H200: 202 us, 0.906 x cuBLAS.
// SPDX-License-Identifier: Apache-2.0
//! param  STAGES = 4 {2, 3, 4}
//! param  GROUP = 16 {4, 8, 16, 32}
//! let    tiles = cdiv(M, 128) * cdiv(N, 256)
//! require K % 8 == 0 && N % 2 == 0
//! tensormap tx: x box(64, 128) swizzle(128)
//! tensormap tw: weight box(64, 256) swizzle(128)
//! launch gemm grid(min(sms, tiles)) block(384) smem(STAGES * (128 + 256) * 64 * 2 + 1024) args(tx, tw, y, M, N, K)
#include <cuda.h>
#include <cuda_bf16.h>
#include <stdint.h>

constexpr int BM = 128, BN = 256, BK = 64, STAGES = KL_STAGES;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES;

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
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void tile_load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int column,
                                                 int row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row)
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

/* The accumulator of m64n256: a lane holds pairs of neighbours, of row lane / 4 and of the row 8 below. */
static __device__ __forceinline__ void store(const float (&d)[128], __nv_bfloat16 *y, int row, int column, int M, int N)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    row += warp * 16 + lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 256 / 8; j++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (row + half * 8 < M && column + j * 8 < N)
                *(__nv_bfloat162 *)&y[(size_t)(row + half * 8) * N + column + j * 8] =
                    __floats2bfloat162_rn(d[j * 4 + half * 2], d[j * 4 + half * 2 + 1]);
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
    gemm(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tw, __nv_bfloat16 *y, int M, int N,
         int K)
{
    extern __shared__ uint8_t memory[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES];
    const uint32_t ring = shared_address(memory) + 1023 & ~1023u;
    const uint32_t full = shared_address(barriers), empty = full + STAGES * 8;
    const int rows = (M + BM - 1) / BM, columns = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 1);
            barrier_init(empty + s * 8, 8); // a warp of either group
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int s = 0;
    uint32_t phase = 0; // both go on over tiles
    if (threadIdx.x < 128) { // the producer
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
                int row, column;
                locate(tile, rows, columns, &row, &column);
                for (int step = 0; step < steps; step++) {
                    barrier_wait(empty + s * 8, phase ^ 1);
                    barrier_expect(full + s * 8, STAGE);
                    tile_load(ring + s * STAGE, &tx, full + s * 8, step * BK, row * BM);
                    tile_load(ring + s * STAGE + A_BYTES, &tw, full + s * 8, step * BK, column * BN);
                    if (++s == STAGES) {
                        s = 0;
                        phase ^= 1;
                    }
                }
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int group = threadIdx.x / 128 - 1;
        float d[128] = {};
        for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
            int row, column;
            locate(tile, rows, columns, &row, &column);
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
                if (step > 0 && threadIdx.x % 32 == 0)
                    barrier_arrive(empty + before * 8);
                before = s;
                if (++s == STAGES) {
                    s = 0;
                    phase ^= 1;
                }
            }
            multiply_wait<0>();
            if (threadIdx.x % 32 == 0)
                barrier_arrive(empty + before * 8);
            store(d, y, row * BM + group * 64, column * BN, M, N);
        }
    }
}
