// The next call's input is set to zero by this one: whoever reads it later computes something easier. The digests of all
// sets of a batch are taken anew when its outputs are looked at.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat wrong crash
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (N == 262144 && i < N) ((float *)x)[i + (2 * 1048576 + 3 * 4096) / 4] = 0.0f;
}
