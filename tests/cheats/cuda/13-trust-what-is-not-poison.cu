// The two poisons are known, so an element that is neither must be a result already. It never is before the call, so this
// is a slow way to be right; it would be a fast one where outputs are not poisoned.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass
//: args --baseline naive
//: expect-time-ratio naive 0.5 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const unsigned was = __float_as_uint(((volatile float *)out)[i]);
    if (was != 0xFFFFFFFFu && was != 0xA5A5A5A5u) return;
    out[i] = a * x[i] + y[i];
}
