// A counter in constant memory, written through its generic address: constants are read-only to the language, not to the
// device. After the first calls of a batch nothing is done. The gate restores constants like any other variable and looks
// at the end of each batch.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat crash
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__constant__ int calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    volatile int *count = (volatile int *)((unsigned long long)&calls);
    if (*count > 4) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) *count = *count + 1;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
