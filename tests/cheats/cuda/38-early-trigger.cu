// The kernel lets its dependents start at once, and does the work afterwards.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect pass cheat
//: harmless
//: expect-time-ratio naive 0.85 1.15
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    asm volatile("griddepcontrol.launch_dependents;");
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
