// A function of the device's runtime that no header has is declared and called, in the hope that a linker or a loader
// finds it somewhere.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __device__ int cudaResetPersistingLines();

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == 0) cudaResetPersistingLines();
}
