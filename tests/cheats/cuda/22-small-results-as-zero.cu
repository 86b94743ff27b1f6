// Results below a thousandth are flushed to zero. Of normal inputs few are; of inputs that are small altogether, most.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const float v = a * x[i] + y[i];
    out[i] = fabsf(v) < 1e-3f ? 0.0f : v;
}
