// The counter lies in a variable of 96 MB: more than a gate would copy away before every run to put it back. It must then
// load the module anew, or see that later calls of a batch left their output as it was.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#define ROOM (24 << 20)
__device__ int room[ROOM];

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    volatile int *calls = room + ROOM - 1;
    if (*calls > 4) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) *calls = *calls + 1;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
