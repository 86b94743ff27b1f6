// The path is put together by macros, for a reader of include lines to miss.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect no_compile refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#define TEXT(path) #path
#include TEXT(/etc/passwd)

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
