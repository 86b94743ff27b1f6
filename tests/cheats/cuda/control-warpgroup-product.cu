// The smallest product of a warpgroup: 64 x 8 x 16, operands written to shared memory by hand in the layout without a
// swizzle, where eight rows of 16 bytes are a core matrix.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: control
//: args --baseline none
//! launch gemm grid(cdiv(N, 8), cdiv(M, 64)) block(128) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* No swizzle: core matrices of the k axis are 128 bytes apart, of the other axis 256. */
__device__ unsigned long long described(const void *p)
{
    return ((unsigned)__cvta_generic_to_shared(p) >> 4 & 0x3fff) | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    __shared__ alignas(128) __nv_bfloat16 u[64 * 16], v[8 * 16];
    float d[4] = {};
    const int i0 = blockIdx.y * 64, j0 = blockIdx.x * 8, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int n = threadIdx.x; n < 64 * 16; n += 128) { /* core matrices: along k first, 128 bytes apart; rows of eight 256 apart */
            const int i = n / 16, k = n % 16;
            u[i / 8 * 128 + k / 8 * 64 + i % 8 * 8 + k % 8] = i0 + i < M && k0 + k < K ? x[(size_t)(i0 + i) * K + k0 + k] : (__nv_bfloat16)0.0f;
        }
        const int j = threadIdx.x / 16, k = threadIdx.x % 16;
        v[k / 8 * 64 + j * 8 + k % 8] = j0 + j < N && k0 + k < K ? weight[(size_t)(j0 + j) * K + k0 + k] : (__nv_bfloat16)0.0f;
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;\n"
                     "{ .reg .pred p; setp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }\n"
                     "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(described(u)), "l"(described(v)) : "memory");
        __syncthreads();
    }
    for (int n = 0; n < 4; n++) {
        const int i = i0 + warp * 16 + lane / 4 + n / 2 * 8, j = j0 + lane % 4 * 2 + n % 2;
        if (i < M && j < N) y[(size_t)i * N + j] = (kl_t_y)d[n];
    }
}
