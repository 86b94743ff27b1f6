// An assembly statement closes the function that it stands in and opens a kernel of its own, which no parser of the source
// has seen. It runs on the device like any other, and must compute what it is timed for.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect no_compile pass wrong
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    asm volatile("ret;\n}\n.visible .entry hidden(.param .u64 to)\n{\n.reg .b64 at; ld.param.u64 at, [to]; st.global.u32 [at], 0;");
}
