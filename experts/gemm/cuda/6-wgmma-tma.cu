// Matrix product, rung 6: warpgroup products straight from shared memory that the copy engine fills.
// Adds wgmma, tma_load and the 128-byte swizzle that both share, as one bundle: none of the three works without the
// others.  One stage, two warpgroups of 64 x 128: load, wait, multiply, wait.
// Needs rows of 16 bytes (K a multiple of 8) and pairs in y (N even); compute capability 9.0a.
// Measured on an H200: 339 us, 0.533 x cuBLAS.
// SPDX-License-Identifier: Apache-2.0
//! require K % 8 == 0 && N % 2 == 0
//! tensormap tx: x box(64, 128) swizzle(128)
//! tensormap tw: weight box(64, 128) swizzle(128)
//! launch gemm grid(cdiv(N, 128), cdiv(M, 128)) block(256) smem(2 * 128 * 64 * 2 + 1024) args(tx, tw, y, M, N, K)
#include <cuda.h>
#include <cuda_bf16.h>
#include <stdint.h>

constexpr int TILE = 128, DEPTH = 64, OPERAND = TILE * DEPTH * 2;

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

/* d (+)= a * b: 64 x 128 x 16, both operands through shared memory descriptors. */
static __device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(accumulate));
}

/* The accumulator of m64n128: a lane holds pairs of neighbours, of row lane / 4 and of the row 8 below. */
static __device__ __forceinline__ void store(const float (&d)[64], __nv_bfloat16 *y, int row, int column, int M, int N)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    row += warp * 16 + lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 128 / 8; j++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (row + half * 8 < M && column + j * 8 < N)
                *(__nv_bfloat162 *)&y[(size_t)(row + half * 8) * N + column + j * 8] =
                    __floats2bfloat162_rn(d[j * 4 + half * 2], d[j * 4 + half * 2 + 1]);
}

extern "C" __global__ void __launch_bounds__(256)
    gemm(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tw, __nv_bfloat16 *y, int M, int N,
         int K)
{
    extern __shared__ uint8_t memory[];
    __shared__ __align__(8) uint64_t arrived;
    const uint32_t a = shared_address(memory) + 1023 & ~1023u, b = a + OPERAND, full = shared_address(&arrived);
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE, group = threadIdx.x / 128;
    const int steps = (K + DEPTH - 1) / DEPTH;
    if (threadIdx.x == 0) {
        barrier_init(full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    float d[64] = {};
    for (int step = 0; step < steps; step++) {
        if (threadIdx.x == 0) {
            barrier_expect(full, 2 * OPERAND);
            tile_load(a, &tx, full, step * DEPTH, row);
            tile_load(b, &tw, full, step * DEPTH, column);
        }
        barrier_wait(full, step & 1);
        const uint64_t u = descriptor(a + group * (OPERAND / 2)), v = descriptor(b);
        multiply_begin();
#pragma unroll
        for (int i = 0; i < DEPTH / 16; i++)
            multiply(d, u + i * 2, v + i * 2, 1);
        multiply_commit();
        multiply_wait<0>();
        __syncthreads(); // both groups have read the tiles
    }
    store(d, y, row + group * 64, column, M, N);
}
