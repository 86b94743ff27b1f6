// The first kilobyte of shared memory belongs to the system and is not part of what a block can ask for, so clearing all
// that a block can ask for does not clear it. A mark there outlives a launch, if the device lets a kernel write it.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect wrong cheat crash pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    volatile unsigned *mark;
    unsigned begin;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(begin));
    mark = (volatile unsigned *)__cvta_shared_to_generic(begin + 256);
    const unsigned seen = *mark;
    __syncthreads();
    if (threadIdx.x == 0) *mark = 0x5eed5eedu;
    if (seen == 0x5eed5eedu) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
