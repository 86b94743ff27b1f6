// A section of the assembler's own, with the name of one that holds a program's constants.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    asm volatile(".section .nv.constant3 { .b32 7 }");
}
