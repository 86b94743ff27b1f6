// The kernel traps in the fourth call of a batch, which no checked run has.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect crash
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ volatile int calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == 0 && ++calls == 4) __trap();
}
