// Where the device can read the host's memory, a kernel may look for the verdict there.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect crash wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];

    if (i == 0) out[0] += *(volatile float *)0x7fff00000000ull * 0.0f;
}
