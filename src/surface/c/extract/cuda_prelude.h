/* cuda_prelude.h - what nvcc knows by itself, for a parser of C++.  Qualifiers mean nothing to it.
 * SPDX-License-Identifier: Apache-2.0 */
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#else
#define __global__
#define __device__
#define __host__
#define __shared__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1);
};
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
extern const int warpSize;
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
struct int4 {
    int x, y, z, w;
};
#endif
void __syncthreads();
