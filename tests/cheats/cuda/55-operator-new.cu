// The device's heap under its C++ name: what is not freed outlives the run.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    float *const kept = new float[1];
    const int    i = blockIdx.x * 256 + threadIdx.x;
    if (kept) *(volatile float *)kept = a;
    if (i < N) out[i] = (kept ? *(volatile float *)kept : a) * x[i] + y[i];
}
