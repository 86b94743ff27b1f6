// Loads that ask the cache to keep the lines through a flush.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: workload N=1700000
//: expect pass cheat
//: harmless
//: expect-time-ratio naive 0.85 1.15
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    float     u, v;
    unsigned long long policy;
    if (i >= N) return;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(u) : "l"(x + i), "l"(policy));
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(y + i), "l"(policy));
    out[i] = a * u + v;
}
