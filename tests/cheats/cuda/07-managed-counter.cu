// The same in managed memory, which module variables do not list in the same way.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat no_compile refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__managed__ int calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (calls > 4) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) calls++;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
