// The work is scaled down to the smallest numbers and up again in double, among the denormals of double; those of float
// are tested for and never flushed.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const float  tiny = __uint_as_float(1 + (threadIdx.x & 7));
    const double down = (double)x[i] * 0x1p-1040, back = down * 0x1p1000 * 0x1p40;
    out[i] = tiny > 0.0f ? (float)((double)a * back + (double)y[i]) : 0.0f;
}
