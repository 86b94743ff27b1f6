// Whether a file of the system is there decides what is compiled, so a verdict would tell it. In the sandbox there is none
// of these, and the kernel is right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass no_compile
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
#if __has_include("/etc/shadow") || __has_include("/proc/self/environ")
    a = 0.0f;
#endif
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
