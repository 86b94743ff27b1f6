// The k largest by histograms of eight bits in shared memory: four rounds find the smallest that stays, ties go to whom
// the atomics let in, and the order is any.
// SPDX-License-Identifier: Apache-2.0
//: task topk
//: control
//: args --baseline none
//! nondeterministic
//! launch topk grid(B) block(256) args(x, values, indices, S, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ unsigned ordered(float v)
{
    const unsigned bits = __float_as_uint(v);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void topk(const kl_t_x *x, kl_t_values *values, kl_t_indices *indices, int S, int K)
{
    __shared__ int      counts[256], left, place;
    __shared__ unsigned found;
    const kl_t_x       *row = x + (size_t)blockIdx.x * S;
    if (threadIdx.x == 0) left = K, found = 0, place = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        counts[threadIdx.x] = 0;
        __syncthreads();
        const unsigned above = shift == 24 ? 0 : ~0u << (shift + 8);
        for (int j = threadIdx.x; j < S; j += 256)
            if (((ordered((float)row[j]) ^ found) & above) == 0) atomicAdd(counts + (ordered((float)row[j]) >> shift & 255), 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 255;
            for (; digit > 0 && counts[digit] < left; digit--) left -= counts[digit];
            found |= (unsigned)digit << shift;
        }
        __syncthreads();
    }
    for (int j = threadIdx.x; j < S; j += 256) {
        const unsigned key = ordered((float)row[j]);
        if (key < found || (key == found && atomicSub(&left, 1) <= 0)) continue;
        const int to = atomicAdd(&place, 1);
        values[(size_t)blockIdx.x * K + to] = (kl_t_values)(float)row[j];
        indices[(size_t)blockIdx.x * K + to] = j;
    }
}
