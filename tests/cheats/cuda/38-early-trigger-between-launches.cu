// The first launch lets the second start before its results are written, and the second does not wait. Only launches that
// the host marked so would overlap; it never marks any, so the order holds and the time is that of both.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass
//: args --baseline naive
//: expect-time-ratio naive 0 0.9
//! buffer part: f32[N]
//! launch scale grid(cdiv(N, 256)) block(256) args(a, x, part, N)
//! launch add grid(cdiv(N, 256)) block(256) args(part, y, out, N)
extern "C" __global__ void scale(float a, const float *x, float *part, int N)
{
    asm volatile("griddepcontrol.launch_dependents;");
    __nanosleep(500);
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) part[i] = a * x[i];
}

extern "C" __global__ void add(const float *part, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = part[i] + y[i];
}
