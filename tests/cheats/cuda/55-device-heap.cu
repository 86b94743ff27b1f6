// The device's heap outlives a run.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    float    *p = (float *)malloc(64);
    if (p) p[0] = a;
    if (i < N) out[i] = (p ? p[0] : a) * x[i] + y[i];
}
