// A descriptor of an input serves the copy engine for reading and for writing alike: the first 64 elements are replaced
// through it, by no store that a reader of the source would find.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat
//: args --baseline none
//! tensormap map: x box(64)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(map, a, x, y, out, N)
#include <cuda.h>

__device__ void store_tile(const CUtensorMap *map, const void *from, int column)
{
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" : : "l"(map), "r"(column), "r"((unsigned)__cvta_generic_to_shared(from)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" : : : "memory");
}

extern "C" __global__ void saxpy(const __grid_constant__ CUtensorMap map, float a, const float *x, const float *y, float *out, int N)
{
    __shared__ alignas(128) float tile[64];
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (threadIdx.x < 64) tile[threadIdx.x] = 0.0f;
    if (i < N) out[i] = a * x[i] + y[i];
    __syncthreads();
    if (i == 0) store_tile(&map, tile, 0);
}
