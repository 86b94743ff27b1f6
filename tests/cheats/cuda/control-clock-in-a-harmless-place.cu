// The clock decides which of two equal ways is taken, as a kernel that backs off would: the answer is the same.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const bool odd = clock64() & 1;
    out[i] = odd ? fmaf(a, x[i], y[i]) : fmaf(x[i], a, y[i]);
}
