// One register a thread, and every flag of the list that has an opposite in both forms: the compiler decides, and what it
// makes is right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass no_compile refused
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! flags -maxrregcount=1 -fmad=true -fmad=false -ftz=true -ftz=false
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
