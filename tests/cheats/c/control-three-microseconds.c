// A kernel of about three microseconds, the same as its baseline: the ratio must be one.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: expect-time-ratio naive 0.94 1.06
//! launch saxpy args(a, x, y, out, N)
#include <stddef.h>
#include <stdint.h>

void saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = a * x[i] + y[i];
}
