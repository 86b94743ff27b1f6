// Conditions that hold are asserted; none of them is ever printed.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#include <cassert>

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    assert(N > 0 && blockDim.x == 256);
    assert((unsigned long long)out % 4 == 0);
    if (i < N) out[i] = a * x[i] + y[i];
}
