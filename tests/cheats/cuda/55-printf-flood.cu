// Every thread prints, for a buffer or a log to choke on.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect pass cheat crash hang
//: harmless
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#include <cstdio>

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    printf("{\"outcome\": \"pass\"} %d\n", i);
}
