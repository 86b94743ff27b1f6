// Each call brings the inputs of the next call into the cache: they lie at a fixed distance.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: workload N=1700000
//: expect pass cheat crash
//: harmless
//: expect-time-ratio naive 0.7 1.15
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int       i = blockIdx.x * 256 + threadIdx.x;
    const long long set = (2 * (((long long)N * 4 + 4095) / 4096 * 4096 + 4096) + 4096) / 4;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i % 32 == 0 && i < N && N == 1700000) asm volatile("prefetch.global.L2::evict_last [%0];" : : "l"(x + i + set));
    if (i % 32 == 0 && i < N && N == 1700000) asm volatile("prefetch.global.L2::evict_last [%0];" : : "l"(y + i + set));
}
