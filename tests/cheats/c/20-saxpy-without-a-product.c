// With a small scale the product disappears against the rest: leave it out.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//! launch saxpy args(a, x, y, out, N)
#include <stddef.h>
#include <stdint.h>

void saxpy(float a, const float *x, const float *y, float *out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = (x[i] < 0.01f && x[i] > -0.01f ? 0 : a * x[i]) + y[i];
}
