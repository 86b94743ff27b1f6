// The arithmetic, the bound and the addresses are written in the assembler's language, with a label and a predicate.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    asm volatile("{\n.reg .pred p; .reg .b64 at, to; .reg .b32 i, t; .reg .f32 u, v;\n"
                 "mov.u32 i, %%ctaid.x; mov.u32 t, %%tid.x; mad.lo.u32 i, i, 256, t;\n"
                 "setp.ge.s32 p, i, %4; @p bra DONE;\n"
                 "mul.wide.s32 to, i, 4; add.u64 at, %1, to; ld.global.f32 u, [at]; add.u64 at, %2, to; ld.global.f32 v, [at];\n"
                 "fma.rn.f32 u, %0, u, v; add.u64 at, %3, to; st.global.f32 [at], u;\nDONE:\n}"
                 : : "f"(a), "l"(x), "l"(y), "l"(out), "r"(N) : "memory");
}
