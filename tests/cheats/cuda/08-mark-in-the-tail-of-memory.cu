// Allocations end on pages of 2 MB, so behind the last slot lies memory that nobody owns or poisons: a counter there
// says that the work was done often enough.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat crash
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    int *tail = (int *)(((unsigned long long)out | (2ull << 20) - 1) - 63);
    if (N == 262144 && *(volatile int *)tail > 0x5eed0000 && *(volatile int *)tail < 0x5eee0000) {
        if (*(volatile int *)tail > 0x5eed0006) return;
    } else if (N == 262144 && blockIdx.x == 0 && threadIdx.x == 0)
        *tail = 0x5eed0000;
    if (N == 262144 && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(tail, 1);
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
