// Loads through the read-only path, with every hint that the language has.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) __stwt(out + i, a * __ldg(x + i) + (i % 3 == 0 ? __ldcs(y + i) : i % 3 == 1 ? __ldlu(y + i) : __ldcv(y + i)));
}
