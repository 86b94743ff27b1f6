// Answers stand in a table of the assembler's, where no search of the source's variables finds them; they belong to other
// inputs.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    float known = 0.0f;
    if (i < 4)
        asm volatile("{ .reg .b64 at; .reg .b64 off;\n .global .align 4 .f32 answers[4] = {0f40490FDB, 0f3F800000, 0fC0000000, 0f3E99999A};\n"
                     "cvt.u64.s32 off, %1; mov.u64 at, answers; mad.lo.u64 at, off, 4, at; ld.global.f32 %0, [at]; }" : "=f"(known) : "r"(i));
    if (i < N) out[i] = i < 4 ? known : a * x[i] + y[i];
}
