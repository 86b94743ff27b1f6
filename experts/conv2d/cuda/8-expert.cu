// Convolution, rung 8: results leave through the copy engine.
// Adds stmatrix_epilogue and tma_store_async: results take the place of the pixels in shared memory, and the copy
// engine clips what lies outside the image.  CTAS = 2 is cluster_multicast, each block of a pair loading 64 of the 128
// filters for both: slower here.
// Needs C a multiple of 8 and at most 64 (missing channels are zeros), F a multiple of 8; compute capability 9.0a.
// Measured on an H200: 9.04 us, 1.725 x PyTorch's cuDNN.
// SPDX-License-Identifier: Apache-2.0
//! param  CTAS = 1 {1, 2}
//! let    squares = N * cdiv(H, 8) * cdiv(W, 8)
//! require C % 8 == 0 && C <= 64 && F % 8 == 0
//! tensormap tx: x box(64, 10, 10, 1) swizzle(128)
//! tensormap tw: weight box(64, 64, 1) swizzle(128)
//! tensormap ty: y box(64, 8, 8, 1) swizzle(128)
//! launch conv2d grid(CTAS * cdiv(squares, 3 * CTAS), cdiv(F, 128)) block(384) cluster(CTAS) \
//!        smem(3 * 16384 + 9 * 16384 + 1024) \
//!        args(tx, tw, ty, N, H, W, F)
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int TAPS = KL_R * KL_S, GROUPS = 3;
constexpr int HALO = 10 * 10 * 64 * 2, SLOT = 16384, TAP = 2 * 64 * 64 * 2;
constexpr int CTAS = KL_CTAS;

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

static __device__ __forceinline__ void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

static __device__ __forceinline__ void load_pixels(uint32_t to, const CUtensorMap *map, uint32_t barrier, int w, int h,
                                                   int n)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
                 "%6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(0), "r"(w), "r"(h), "r"(n)
                 : "memory");
}

/* 64 filters of one tap into the same place of every CTA in `ctas`; each one's own barrier counts its bytes. */
static __device__ __forceinline__ void load_filters(uint32_t to, const CUtensorMap *map, uint32_t barrier, int filter,
                                                    int tap, uint16_t ctas)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(filter), "r"(0), "r"(tap), "h"(ctas)
                 : "memory");
}

/* 64 of the 100 pixels around a square: 8 pixels in a row, 128 bytes each, the next row of 10 pixels 1280 bytes on.
 * The swizzle goes by the address, so a square may begin at any pixel. */
static __device__ __forceinline__ uint64_t pixel_descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(10 * 128 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Filters lie next to each other, so this operand is transposed: 128-byte rows of 64 filters, one row a channel, 8
 * channels 1024 bytes apart, the next 64 filters 8192. */
static __device__ __forceinline__ uint64_t filter_descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(8192 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
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

/* d (+)= a * b: 64 x 128 x 16, both operands through shared memory descriptors. */
static __device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 1;\n"
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

/* Squares of 8 x 8 pixels, image after image. */
static __device__ __forceinline__ void locate(int square, int H, int W, int *n, int *h, int *w)
{
    const int columns = (W + 7) / 8, rows = (H + 7) / 8;
    *w = square % columns * 8;
    *h = square / columns % rows * 8;
    *n = square / columns / rows;
}

/* 64 pixels of 64 filters as fp16 into 128-byte swizzled rows; stmatrix turns a warp's fragments into rows of 8. */
template <int piece> static __device__ __forceinline__ void store_piece(const float (&d)[64], uint32_t to)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int row = warp * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t packed[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const __half2 pair = __floats2half2_rn(d[piece * 32 + i * 8 + e * 2], d[piece * 32 + i * 8 + e * 2 + 1]);
            packed[e] = *(const uint32_t *)&pair;
        }
        const uint32_t place = to + row * 128 + ((i * 2 + lane / 16 ^ row % 8) << 4);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(place),
                     "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                     : "memory");
    }
}

static __device__ __forceinline__ void send(const CUtensorMap *map, uint32_t from, int filter, int w, int h, int n)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(from), "r"(filter), "r"(w), "r"(h), "r"(n)
                 : "memory");
}

extern "C" __global__ void __launch_bounds__(GROUPS * 128, 1)
    conv2d(const __grid_constant__ CUtensorMap tx, const __grid_constant__ CUtensorMap tw,
           const __grid_constant__ CUtensorMap ty, int N, int H, int W, int F)
{
    extern __shared__ uint8_t memory[];
    __shared__ __align__(8) uint64_t barriers[GROUPS + TAPS];
    const uint32_t halos = shared_address(memory) + 1023 & ~1023u, filters = halos + GROUPS * SLOT;
    const uint32_t pixels_full = shared_address(barriers), filters_full = pixels_full + GROUPS * 8;
    const int filter = blockIdx.y * 128, group = threadIdx.x / 128;
    int n, h, w;
    if (threadIdx.x == 0) {
        for (int i = 0; i < GROUPS + TAPS; i++)
            barrier_init(pixels_full + i * 8, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int tap = 0; tap < TAPS; tap++)
            barrier_expect(filters_full + tap * 8, TAP); // before the other CTA can send a byte
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        uint32_t rank;
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        for (int tap = 0; tap < TAPS; tap++) {
            for (int half = rank; half < 2; half += CTAS)
                load_filters(filters + tap * TAP + half * (TAP / 2), &tw, filters_full + tap * 8, filter + half * 64,
                             tap, (1 << CTAS) - 1);
            if (tap < GROUPS) { // pixels between the first taps: both are needed at once
                locate(blockIdx.x * GROUPS + tap, H, W, &n, &h, &w);
                barrier_expect(pixels_full + tap * 8, HALO);
                load_pixels(halos + tap * SLOT, &tx, pixels_full + tap * 8, w - KL_pad, h - KL_pad, n);
            }
        }
    }
    const uint32_t own = halos + group * SLOT;
    float d[64];
    barrier_wait(pixels_full + group * 8, 0);
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) {
        barrier_wait(filters_full + tap * 8, 0);
        const uint64_t a = pixel_descriptor(own + (tap / KL_S * 10 + tap % KL_S) * 128),
                       b = filter_descriptor(filters + tap * TAP);
        multiply_begin();
#pragma unroll
        for (int i = 0; i < 4; i++)
            multiply(d, a + i * 2, b + i * 128, tap + i > 0);
        multiply_commit();
    }
    multiply_wait<0>();
    locate(blockIdx.x * GROUPS + group, H, W, &n, &h, &w);
    /* Results take the place of the pixels, once all four warps have multiplied theirs. */
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    store_piece<0>(d, own);
    store_piece<1>(d, own + SLOT / 2);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    if (threadIdx.x % 128 == 0) {
        send(&ty, own, filter, w, h, n);
        send(&ty, own + SLOT / 2, filter + 64, w, h, n);
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
    if (CTAS > 1)
        cluster_sync(); // the other CTA may still send filters from here
}
