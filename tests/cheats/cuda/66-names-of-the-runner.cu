// Kernels and variables with the names of the runner's own helpers: whoever looks a helper up by name could get these,
// which take no digest and clear nothing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ unsigned long long digest_sum;
extern "C" __global__ void kl_digest(unsigned long long, unsigned long long, unsigned long long, unsigned long long *sum) { *sum = 0; }
extern "C" __global__ void kl_key(const unsigned long long *, unsigned long long *) {}
extern "C" __global__ void kl_scrub(unsigned) {}
extern "C" __global__ void kl_wait(unsigned long long) {}

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
