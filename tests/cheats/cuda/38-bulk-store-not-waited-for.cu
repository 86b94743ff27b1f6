// The copy engine is told to write the results, and the block ends without waiting for it. Whether the end of a kernel
// waits for the engine is the device's business: either the answers are right and the time is honest, or they are missing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass wrong cheat
//: args --baseline naive
//: expect-time-ratio naive 0.6 1.4
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ alignas(128) float part[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (N % 256) {
        if (i < N) out[i] = a * x[i] + y[i];
        return;
    }
    part[threadIdx.x] = a * x[i] + y[i];
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" : : "l"(out + i), "r"((unsigned)__cvta_generic_to_shared(part)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" : : : "memory");
    }
}
