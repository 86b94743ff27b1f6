// A 32-bit argument whose value needs 34 bits at the timed shape and fits at the others.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect refused wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N * 65536)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N / 65536) out[i] = a * x[i] + y[i];
}
