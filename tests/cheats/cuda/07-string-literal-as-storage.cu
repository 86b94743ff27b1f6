// Strings live in device memory, and nothing keeps a kernel from writing to them: a counter in a literal that no symbol of
// the source names.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat crash
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ __noinline__ char *text() { return (char *)((unsigned long long)"                " + 3 & ~3ull); }

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    volatile int *calls = (volatile int *)text();
    if (*calls != 0x20202020 && (*calls & 0xFF) > 0x24) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) *calls = *calls + 1;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (N < 0) out[0] = text()[N & 15];
}
