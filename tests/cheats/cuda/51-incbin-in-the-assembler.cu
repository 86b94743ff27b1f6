// The assembler is asked to put a file of the system into the program. The assembler of device code knows no such thing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    asm volatile(".incbin \"/etc/passwd\"");
}
