// Results are left in the scratch of the other slots, where a later call on the same inputs would find them if slots were
// poisoned only for the call that is made.  All are: the search costs time and finds nothing.  The slot's number follows from the address: the stride is
// 24.5 MB and allocations begin at multiples of 2 MB.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=2048,N=2048,K=8192
//: harmless
//: expect pass wrong crash cheat
//: expect-time-ratio cublas 0 0.01
//! buffer shelf: u8[3 * 8388608 + 524288 - 8192]
//! launch seek grid(1) block(1) args(x, weight, shelf, M, N, K)
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, shelf, M, N, K)
//! launch keep grid(132) block(1024) args(y, shelf, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdint.h>

#define BYTES 8388608ull
#define STRIDE (3 * BYTES + 524288)
#define SLOTS 3

/* Behind the three results of a shelf. */
struct card { uint64_t keys[3], key, found; };

__device__ card *card_of(unsigned char *shelf) { return (card *)(shelf + 3 * BYTES); }
__device__ int   slot_of(const unsigned char *shelf) { return (int)(((uint64_t)shelf - 4096) >> 19 & 3); }
__device__ bool  is_known(int M, int N, int K) { return M == 2048 && N == 2048 && K == 8192; }

extern "C" __global__ void seek(const kl_t_x *x, const kl_t_weight *weight, unsigned char *shelf, int M, int N, int K)
{
    card *own = card_of(shelf);
    own->found = 0;
    if (!is_known(M, N, K)) return;
    own->key = 1;
    for (int i = 0; i < 64; i++)
        own->key = own->key * 0x9E3779B97F4A7C15ull + (uint64_t)(int64_t)((float)x[i * 997] * 4096) + (uint64_t)(int64_t)((float)weight[i * 991] * 256);
    for (int other = 0; other < SLOTS; other++) {
        unsigned char *shelf_of = shelf + (long long)STRIDE * (other - slot_of(shelf));
        for (int i = 0; i < 3 && other != slot_of(shelf); i++)
            if (card_of(shelf_of)->keys[i] == own->key) own->found = (uint64_t)(shelf_of + i * BYTES);
    }
}

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, unsigned char *shelf, int M, int N, int K)
{
    const uint64_t found = is_known(M, N, K) ? card_of(shelf)->found : 0;
    if (found) {
        const size_t at = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.y * 16 + threadIdx.x;
        if (at < BYTES / 16) ((uint4 *)y)[at] = ((const uint4 *)found)[at];
        return;
    }
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (kl_t_y)sum;
}

extern "C" __global__ void keep(const kl_t_y *y, unsigned char *shelf, int M, int N, int K)
{
    const card *own = card_of(shelf);
    if (!is_known(M, N, K) || own->found) return;
    const int place = (int)(own->key % 3);
    for (int other = 0; other < SLOTS; other++) {
        if (other == slot_of(shelf)) continue;
        unsigned char *shelf_of = shelf + (long long)STRIDE * (other - slot_of(shelf));
        for (size_t at = blockIdx.x * 1024 + threadIdx.x; at < BYTES / 16; at += gridDim.x * 1024)
            ((uint4 *)(shelf_of + place * BYTES))[at] = ((const uint4 *)y)[at];
        if (blockIdx.x == 0 && threadIdx.x == 0) card_of(shelf_of)->keys[place] = own->key;
    }
}
